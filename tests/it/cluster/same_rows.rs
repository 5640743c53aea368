//! A cluster publishes what one machine publishes: the same rows, as often, and the same figures about them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use super::fleet::Fleet;
use crate::stores::s3::{BUCKET, KEY_ID, SECRET, Server};
use crate::support::{Desk, files, manifest, multiset, released, released_files, throng};

/// Rows of the generated job, unless `THRONG_TEST_CLUSTER_ROWS` says otherwise.
const ROWS: u64 = 200_000;

/// A cluster whose processes have the credentials of an S3 server in their environment.
fn fleet() -> Fleet {
    let credentials =
        [("AWS_ACCESS_KEY_ID", KEY_ID), ("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_REGION", "eu-central-1")];
    Fleet::with(2, &credentials)
}

/// Number of rows, and a sum over the digests of all rows: the same for the same multiset, and for no other.
fn digest(sink: &Path) -> (usize, u128) {
    let (mut rows, mut sum) = (0, 0u128);
    for file in released_files(sink) {
        for batch in ParquetRecordBatchReaderBuilder::try_new(File::open(file).unwrap()).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            let fields =
                batch.schema().fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
            rows += batch.num_rows();
            for row in &RowConverter::new(fields).unwrap().convert_columns(batch.columns()).unwrap() {
                let hash: [u8; 16] = blake3::hash(row.as_ref()).as_bytes()[..16].try_into().unwrap();
                sum = sum.wrapping_add(u128::from_le_bytes(hash));
            }
        }
    }
    (rows, sum)
}

/// What a manifest says of the published rows, whoever made them.
fn figures(manifest: &Value) -> Vec<&Value> {
    ["run", "policy", "rows", "rows_read", "suppressed", "cells", "cell_rows", "scores", "verification"]
        .iter()
        .map(|key| &manifest[*key])
        .collect()
}

fn pipelines() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines")
}

#[test]
fn the_census_from_and_to_an_object_store() {
    let server = Server::start();
    fs::create_dir(server.bucket().join("raw")).unwrap();
    fs::copy(pipelines().join("data/census.parquet"), server.bucket().join("raw/census.parquet")).unwrap();
    let fleet = fleet();
    let job = pipelines().join("census.toml");
    let set = |key: &str, value: &str| ["--set".to_owned(), format!("{key}={value}")];
    let far = [
        set("source.url", &format!("s3://{BUCKET}/raw/census.parquet")),
        set("sink.url", &format!("s3://{BUCKET}/published")),
        // The address travels with the job to every executor; what opens the door does not.
        set("source.options.endpoint", &server.endpoint),
        set("source.options.allow-http", "true"),
        set("sink.options.endpoint", &server.endpoint),
        set("sink.options.allow-http", "true"),
    ];
    let far: Vec<&str> = far.iter().flatten().map(String::as_str).collect();
    // Small cells, so that there is something to share out.
    let cells = ["--cell-rows", "500", "--run-id", "one", "--set", "method.seed=42"];
    let mut run = fleet.run(job.to_str().unwrap(), &[&far[..], &cells].concat());
    assert_eq!(run.end(), Some(0), "{}", run.said());

    let desk = Desk::new();
    let near = format!("sink.url={}", desk.name("out"));
    throng(&[&["run", job.to_str().unwrap(), "--quiet", "--set", &near], &cells[..]].concat()).ok();
    let (cluster, alone) = (server.bucket().join("published"), desk.path("out"));
    assert_eq!(multiset(&released(&cluster)), multiset(&released(&alone)));
    assert_eq!(figures(&manifest(&cluster)), figures(&manifest(&alone)));
}

#[test]
fn a_generated_census_to_an_object_store() {
    let rows = std::env::var("THRONG_TEST_CLUSTER_ROWS").map_or(ROWS, |text| text.parse().unwrap());
    let server = Server::start();
    let fleet = fleet();
    let desk = Desk::new();
    let raw = server.bucket().join("raw");
    throng(&["generate", raw.to_str().unwrap(), "--rows", &rows.to_string(), "--files", "8", "--quiet"]).ok();
    let job = |source: &str, sink: &str, options: &str| {
        let census = fs::read_to_string(pipelines().join("census.toml")).unwrap();
        let (_, rest) = census.split_once("[privacy]").unwrap();
        let rest = rest.replace("\"hierarchies/", &format!("\"{}/hierarchies/", pipelines().display()));
        format!(
            "version = 1\n[source]\nurl = \"{source}\"\n{options}[sink]\nurl = \"{sink}\"\n{options}[privacy]{rest}"
        )
    };
    let options = format!("options = {{ endpoint = \"{}\", allow-http = true }}\n", server.endpoint);
    let far = job(&format!("s3://{BUCKET}/raw/"), &format!("s3://{BUCKET}/published"), &options);
    desk.write("far.toml", &far);
    desk.write("near.toml", &job(&format!("{}/", raw.display()), "out", ""));
    let seed = ["--set", "method.seed=42"];
    let more = [&seed[..], &["--set", "method.auto.effort=fast", "--cell-rows", "20000", "--run-id", "one"]].concat();
    let mut run = fleet.run(&desk.name("far.toml"), &more);
    assert_eq!(run.end(), Some(0), "{}", run.said());
    throng(&[&["run", &desk.name("near.toml"), "--quiet"], &more[..]].concat()).ok();
    let (cluster, alone) = (server.bucket().join("published"), desk.path("out"));
    assert_eq!(digest(&cluster), digest(&alone));
    assert_eq!(figures(&manifest(&cluster)), figures(&manifest(&alone)));
    let written = manifest(&cluster)["files"].as_array().unwrap().len();
    assert!(written > 1, "every task writes its own files, here {written}");
    assert_eq!(files(&cluster.join("data")).len(), written, "nothing lies beside the released files");
    assert_eq!(server.unfinished_uploads(), 0);
    // Both have worked, and say so.
    for executor in &fleet.executors {
        let said = executor.process.said();
        assert!(said.contains("task finished"), "{said}");
    }
}

#[test]
fn a_table_of_rows_that_are_alike_is_surveyed_again() {
    let fleet = Fleet::start(1);
    let desk = Desk::new();
    // So many that tasks sample below a ceiling, and so few different ones that too few lie below it.
    throng(&["generate", &desk.name("in.parquet"), "--rows", "600000", "--files", "4", "--quiet"]).ok();
    desk.job(
        "privacy.k = 5\nmethod.auto.effort = \"fast\"\ndefaults.role = \"identifier\"\n[columns]\nage.role = \"quasi\"\n\
         sex.role = \"quasi\"\ndiagnosis.role = \"sensitive\"\n",
    );
    let more = ["--cell-rows", "50000", "--run-id", "one"];
    let mut run = fleet.run(&desk.name("job.toml"), &[&more[..], &["--partitions", "4"]].concat());
    assert_eq!(run.end(), Some(0), "{}", run.said());
    assert!(run.said().contains("repeating the survey"), "{}", run.said());
    let near = format!("sink.url={}", desk.name("alone"));
    desk.run(&[&["--quiet", "--set", &near], &more[..]].concat()).ok();
    let (cluster, alone) = (desk.path("out"), desk.path("alone"));
    assert_eq!(digest(&cluster), digest(&alone));
    assert_eq!(figures(&manifest(&cluster)), figures(&manifest(&alone)));
}
