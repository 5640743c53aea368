//! Every example job runs as it stands, and publishes what it says.

use std::fs::File;
use std::path::{Path, PathBuf};

use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support::{Ran, command, counts, lines, manifest, multiset, read_parquet, released, released_files, throng};

/// Names the variable with the key of the run, so that every run draws the same random numbers.
const KEY: [&str; 2] = ["--set", "method.key-env=PIPELINE_KEY"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines")
}

/// Runs an example into a sink of the test's own and checks what comes out. `golden` is the digest of its published rows,
/// whatever their order: a change that is not meant to change what is published leaves it as it is.
fn check(name: &str, more: &[&str], golden: &str) {
    let job = folder().join(name);
    let job = job.to_str().unwrap();
    let sink = tempfile::tempdir().unwrap();
    let set = format!("sink.url={}", sink.path().to_str().unwrap());
    let example = |verb: &str| {
        let arguments = [&[verb, job, "--set", &set], &KEY[..], more].concat();
        Ran::from(&command(&arguments).env("PIPELINE_KEY", "a key of 32 bytes that no run shares").output().unwrap())
            .ok()
    };
    let first = example("run");
    // Nobody can tell what a mean loses, so a release with one has no GCP.
    let loss = if name == "register-bounds.toml" { "MPM" } else { "GCP" };
    for word in ["Every row left in a throng of at least", loss, "quasi-identifier", "verified: k = ", "release:"] {
        assert!(first.out.contains(word), "`{word}` is not in the summary:\n{}", first.out);
    }
    assert_eq!(first.err, "", "quiet when nothing is wrong");

    let verified = example("verify");
    assert!(verified.out.contains("against the source"), "{verified:?}");
    let alone = throng(&["verify", sink.path().to_str().unwrap()]).ok();
    assert!(alone.out.contains(" holds: "), "{alone:?}");

    let again = example("run");
    assert!(again.err.contains("has been released before"), "{again:?}");

    footers(sink.path());
    columns(job, sink.path());
    let digest = blake3::hash(multiset(&released(sink.path())).join("\n").as_bytes()).to_hex();
    assert_eq!(&digest[..16], golden, "the published rows of {name} are others than before");
}

/// Readers find in every file what made it.
fn footers(sink: &Path) {
    let manifest = manifest(sink);
    for path in released_files(sink) {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let value = |key: &str| pairs.iter().find(|pair| pair.key == key).unwrap().value.clone().unwrap();
        assert_eq!(value("throng.k"), manifest["k"].to_string());
        assert_eq!(value("throng.policy"), manifest["policy"].as_str().unwrap());
        assert_eq!(value("throng.run"), manifest["run"].as_str().unwrap());
        assert_eq!(value("throng.version"), env!("CARGO_PKG_VERSION"));
    }
}

/// Identifiers are gone, quasi-identifiers are there in their form, the others are as they were.
fn columns(job: &str, sink: &Path) {
    let parsed: toml::Table = std::fs::read_to_string(job).unwrap().parse().unwrap();
    let source = read_parquet(&folder().join(parsed["source"]["url"].as_str().unwrap()));
    let published = released(sink);
    let manifest = manifest(sink);
    let has = |name: &str| published.column_by_name(name).is_some();
    let mut unchanged: Vec<String> = Vec::new();
    for field in source.schema().fields() {
        let name = field.name();
        let column = parsed["columns"].get(name);
        let role = column.map_or_else(|| parsed["defaults"]["role"].as_str(), |column| column["role"].as_str());
        match role.unwrap() {
            "identifier" => assert!(!has(name), "{name} is an identifier"),
            "quasi" => assert!(has(name) || has(&format!("{name}_min")) && has(&format!("{name}_max")), "{name}"),
            _ => {
                let (before, after) = (source.column_by_name(name).unwrap(), published.column_by_name(name).unwrap());
                assert_eq!(before.data_type(), after.data_type(), "{name}");
                unchanged.push(name.clone());
            }
        }
    }
    assert!(!unchanged.is_empty());
    let suppressed = manifest["suppressed"].as_u64().unwrap() as usize;
    assert_eq!(published.num_rows() + suppressed, source.num_rows());
    let before = counts(lines(&source, &unchanged));
    for (line, count) in counts(lines(&published, &unchanged)) {
        assert!(before.get(&line).is_some_and(|had| count <= *had), "a published row is not in the source");
    }
    let classes = counts(lines(&published, &class_columns(&manifest)));
    let k = manifest["k"].as_u64().unwrap() as usize;
    assert!(classes.values().all(|size| *size >= k), "{:?}", classes.values().min());
    assert_eq!(classes.len() as u64, manifest["verification"]["classes"]["count"].as_u64().unwrap());
}

fn class_columns(manifest: &serde_json::Value) -> Vec<String> {
    manifest["class_columns"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn census() {
    check("census.toml", &[], "004018ef6511eee2");
}

#[test]
fn adult() {
    // Thirty thousand rows: the quickest search will do.
    check("adult.toml", &["--set", "method.auto.effort=fast"], "26d28fc2064dca31");
}

#[test]
fn income_upc() {
    check("income-upc.toml", &[], "fc5430081b99347d");
}

#[test]
fn register_bounds() {
    check("register-bounds.toml", &[], "e919a81fd24f66d1");
}

#[test]
fn no_example_is_left_out() {
    let mut found: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    found.sort();
    assert_eq!(found, ["adult.toml", "census.toml", "income-upc.toml", "register-bounds.toml"]);
}

#[test]
fn json_is_the_manifest() {
    let job = folder().join("income-upc.toml");
    let sink = tempfile::tempdir().unwrap();
    let set = format!("sink.url={}", sink.path().to_str().unwrap());
    let ran = throng(&["run", job.to_str().unwrap(), "--set", &set, "--json"]).ok();
    let mut printed: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let object = printed.as_object_mut().unwrap();
    assert!(object.remove("effort").is_some() && object.remove("done_before").is_some());
    assert_eq!(printed, manifest(sink.path()));
    let bound = |name: &str| printed["scores"][name].as_f64().unwrap();
    assert!(bound("wgu") <= 0.4 + 1e-9, "U holds in every group: {}", printed["scores"]);
    assert!(bound("wgp") <= 0.3 + 1e-9, "P holds in every group: {}", printed["scores"]);
}
