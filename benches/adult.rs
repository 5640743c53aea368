//! The methods side by side on UCI Adult (30,162 rows, 8 quasi-identifiers): mean loss of a published value (GCP) of
//! verified releases, at several k, and the CPU time of each run, Parquet to Parquet. `auto` must have the lowest of all.
//!
//! `cargo bench --features cli --bench adult -- [K...]`

#![allow(missing_docs, clippy::print_stdout, clippy::expect_used, reason = "a bench")]

mod support;

use std::path::{Path, PathBuf};

use support::timed;
use throng::{Job, Manifest, Outcome, Run, RunOptions};

/// Keys of the job file and their values.
type Settings = &'static [(&'static str, &'static str)];

/// A dependency that nearly holds, for the methods that preserve such; and bounds that allow everything, for the one that
/// asks for some.
const DEPENDENCY: (&str, &str) =
    ("dependencies", "[{ from = [\"occupation\"], to = [\"workclass\"], tolerance = 0.3 }]");
const ANY_LOSS: (&str, &str) = ("privacy.max-loss", "1.0");
const ANY_RANGE: (&str, &str) = ("privacy.range-diversity", "{ column = \"salary-class\", p = 1.0 }");

/// Name, settings, and the GCP that the method must not exceed at k = 2, 5, 10, 25, 50, where one was set.
const METHODS: [(&str, Settings, Option<[f64; 5]>); 19] = [
    ("auto best", &[("method.auto.effort", "best")], None),
    ("auto thorough", &[("method.auto.effort", "thorough")], Some([0.0145, 0.0410, 0.0655, 0.104, 0.141])),
    ("auto balanced", &[("method.auto.effort", "balanced")], Some([0.0151, 0.0435, 0.0724, 0.109, 0.142])),
    ("auto fast", &[("method.auto.effort", "fast")], None),
    ("k-members", &[("method.name", "k-members")], None),
    ("mondrian strict", &[("method.name", "mondrian")], None),
    ("mondrian relaxed", &[("method.name", "mondrian"), ("method.mondrian.variant", "relaxed")], None),
    ("l-mondrian", &[("method.name", "l-mondrian")], None),
    ("top-down", &[("method.name", "top-down")], None),
    ("density", &[("method.name", "density")], None),
    ("density-cm", &[("method.name", "density-cm")], None),
    ("kl-redinfo", &[("method.name", "kl-redinfo")], None),
    ("kl-redinfo near", &[("method.name", "kl-redinfo"), ("method.kl-redinfo.nearest", "true")], None),
    ("g-anatomy", &[("method.name", "g-anatomy")], None),
    ("k-members-p", &[("method.name", "k-members-p")], None),
    ("k-assemble", &[("method.name", "k-assemble"), DEPENDENCY], None),
    ("pair-enum", &[("method.name", "pair-enum"), DEPENDENCY], None),
    ("upc, U = P = 1", &[("method.name", "upc"), ANY_LOSS, ANY_RANGE], None),
    ("toc", &[("method.name", "toc")], None),
];

const KS: [u32; 5] = [2, 5, 10, 25, 50];

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    println!("Adult, GCP (CPU s of the whole run); limit in brackets where one is set");
    println!("{:<18}{}", "", KS.map(|k| format!("{:>24}", format!("k = {k}"))).concat());
    let mut least = [f64::INFINITY; 5];
    for (name, settings, limits) in METHODS {
        let mut line = format!("{name:<18}");
        for (at, k) in KS.into_iter().enumerate() {
            let (manifest, cpu, _) = timed(|| runtime.block_on(release(k, settings)));
            assert_eq!(manifest.suppressed, 0, "{name} suppressed rows at k = {k}");
            let gcp = manifest.scores.gcp.expect("groups");
            if name.starts_with("auto") {
                least[at] = least[at].min(gcp);
            }
            assert!(least[at] <= gcp, "{name} loses less than auto at k = {k}");
            let limit = limits.map_or(String::new(), |limits| format!(" [{}]", limits[at]));
            line += &format!("{:>24}", format!("{gcp:.5} ({:.2}){limit}", cpu.as_secs_f64()));
        }
        println!("{line}");
    }
}

async fn release(k: u32, settings: Settings) -> Manifest {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("pipelines");
    let text = std::fs::read_to_string(folder.join("adult.toml")).expect("pipelines/adult.toml");
    let sink = std::env::temp_dir().join("throng-bench").join("adult");
    std::fs::remove_dir_all(&sink).ok();
    let (k, sink_url) = (k.to_string(), sink.to_string_lossy().into_owned());
    let mut all = vec![("privacy.k", k.as_str()), ("sink.url", sink_url.as_str())];
    all.extend_from_slice(settings);
    let job = Job::parse_with(&text, Path::new("adult.toml"), &all).expect("a job");
    let run = Run::new(job, &folder, RunOptions::default()).expect("a run");
    let outcome = run.execute(&|_, _, _| {}).await.expect("a release");
    std::fs::remove_dir_all(&sink).ok();
    match outcome {
        Outcome::Released(manifest, _) | Outcome::AlreadyDone(manifest) => *manifest,
    }
}
