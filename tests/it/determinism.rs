//! The same rows, policy and seed give the same published rows: for any number of partitions, batches and files, and
//! in whatever order the rows come.

use std::fs;
use std::path::Path;

use datafusion::arrow::array::{RecordBatch, UInt32Array};
use datafusion::arrow::compute::take_record_batch;

use crate::support::{Desk, multiset, read_parquet, throng, write_parquet};

const ROWS: usize = 5000;

/// Duplicates, nulls, lists, and every kind of quasi-identifier; several cells.
const JOB: &str = "
privacy = { k = 5, max-loss = 0.9, range-diversity = { column = \"income\", p = 0.7, ranges.interval = 2000.0 } }
defaults.role = \"identifier\"
[columns]
age = { role = \"quasi\", priority = 2 }
sex.role = \"quasi\"
postcode = { role = \"quasi\", hierarchy.mask = \"right\" }
arrival = { role = \"quasi\", hierarchy.calendar = [\"month\", \"year\", \"decade\"] }
marital_status = { role = \"quasi\", hierarchy = \"marital_status.csv\" }
income.role = \"sensitive\"
household_size.role = \"kept\"
tags.role = \"kept\"
";

fn desk() -> Desk {
    let desk = Desk::new();
    throng(&["generate", &desk.name("in.parquet"), "--rows", &ROWS.to_string(), "--seed", "11", "--quiet"]).ok();
    let hierarchies = Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines/hierarchies");
    fs::copy(hierarchies.join("marital_status.csv"), desk.path("marital_status.csv")).unwrap();
    desk.job(JOB);
    desk
}

/// Writes the rows in another order, cut into files of uneven length.
fn shuffle(rows: &RecordBatch, folder: &Path, files: usize, seed: u64) {
    let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut order);
    fs::create_dir(folder).unwrap();
    let cut = |file: usize| rows.num_rows() * file * file / (files * files);
    for file in 0..files {
        let part = UInt32Array::from(order[cut(file)..cut(file + 1)].to_vec());
        write_parquet(&folder.join(format!("{file}.parquet")), &take_record_batch(rows, &part).unwrap());
    }
}

/// Variants of input and engine settings.
const VARIANTS: [&[&str]; 7] = [
    &["--partitions", "2"],
    &["--partitions", "3", "--batch-rows", "1000"],
    &["--partitions", "8"],
    &["--partitions", "2", "--batch-rows", "64"],
    &["--partitions", "1", "--set", "source.url=five"],
    &["--partitions", "3", "--set", "source.url=two", "--memory-limit", "256MB"],
    &["--partitions", "8", "--set", "source.url=five", "--batch-rows", "64"],
];

/// Runs a method on variants; each must publish the same rows.
fn check(method: &str, more: &[&str], variants: &[&[&str]]) {
    let desk = desk();
    let method = format!("method.name=\"{method}\"");
    let published = |sink: &str, settings: &[&str]| {
        let sink = desk.name(sink);
        let set = format!("sink.url={sink}");
        let fixed = ["--cell-rows", "700", "--set", "measures.source=true", "--set", &method, "--set", &set];
        let ran = desk.run(&[&fixed, more, settings, &["--json"]].concat()).ok();
        let manifest: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let several = manifest["cells"].as_u64().unwrap() >= 4 || manifest["suppressed"] != 0;
        assert!(several, "the test is about several cells");
        let rows = multiset(&crate::support::released(Path::new(&sink)));
        assert_eq!(rows.len() as u64 + manifest["suppressed"].as_u64().unwrap(), ROWS as u64);
        (rows, manifest["tuned"].clone())
    };
    let source = read_parquet(&desk.path("in.parquet"));
    shuffle(&source, &desk.path("five"), 5, 1);
    shuffle(&source, &desk.path("two"), 2, 2);

    let expected = published("first", &["--partitions", "1"]);
    assert!(expected.0.len() > ROWS * 9 / 10, "most rows are published");
    for (number, variant) in variants.iter().enumerate() {
        let found = published(&format!("again{number}"), variant);
        assert_eq!(found.1, expected.1, "parameters differ with {variant:?}");
        let differing = found.0.iter().zip(&expected.0).filter(|(a, b)| a != b).count();
        assert!(found.0 == expected.0, "{differing} rows differ with {variant:?}");
    }
}

#[test]
fn auto() {
    check("auto", &[], &VARIANTS);
}

#[test]
fn mondrian() {
    check("mondrian", &[], &VARIANTS);
}

#[test]
fn toc() {
    check("toc", &["--set", "method.toc.delta=0.4", "--set", "method.toc.s=40"], &VARIANTS);
}

/// Parameters found from a sample are the same, too. Finding them takes longer than the run, so the last two will do.
#[test]
fn tuned_toc() {
    check("toc", &[], &VARIANTS[5..]);
}

#[test]
fn upc() {
    check("upc", &[], &VARIANTS);
}

#[test]
fn k_members() {
    check("k-members", &[], &VARIANTS);
}

/// The batch size can be given by the environment, too.
#[test]
fn batch_rows_from_the_environment() {
    let desk = desk();
    let run = |sink: &str, batch_rows: &str| {
        let set = format!("sink.url={}", desk.name(sink));
        let mut command = crate::support::command(&["run", &desk.name("job.toml"), "--set", &set, "--quiet"]);
        command.args(["--set", "method.name=\"mondrian\""]).env("THRONG_BATCH_ROWS", batch_rows).assert().success();
        multiset(&crate::support::released(&desk.path(sink)))
    };
    assert!(run("a", "64") == run("b", "8192"));
}

/// Another seed is another search: the tests above would notice if the seed did nothing.
#[test]
fn seed_matters() {
    let desk = desk();
    let run = |sink: &str, seed: &str| {
        let set = format!("sink.url={}", desk.name(sink));
        desk.run(&["--set", &set, "--set", &format!("method.seed={seed}")]).ok();
        multiset(&crate::support::released(&desk.path(sink)))
    };
    assert!(run("a", "1") != run("b", "2"));
}
