//! The generated census as the benches use it: the data on disk, the job, one run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use throng::releases::Phase;
use throng::{Job, Manifest, Outcome, Run, RunOptions};

/// The quasi-identifiers, and how each is written in a job.
pub const QUASI: [&str; 8] = [
    r#"age.role = "quasi""#,
    r#"sex.role = "quasi""#,
    r#"region = { role = "quasi", hierarchy = "HIERARCHIES/region.csv" }"#,
    r#"education = { role = "quasi", hierarchy = "HIERARCHIES/education.csv" }"#,
    r#"marital_status = { role = "quasi", hierarchy = "HIERARCHIES/marital_status.csv" }"#,
    r#"occupation = { role = "quasi", hierarchy = "HIERARCHIES/occupation.csv" }"#,
    r#"postcode = { role = "quasi", hierarchy = { mask = "right" } }"#,
    r#"arrival = { role = "quasi", hierarchy = { calendar = ["month", "quarter", "year", "decade"] } }"#,
];

/// Where the benches keep their files.
pub fn folder() -> PathBuf {
    std::env::temp_dir().join("throng-bench")
}

/// A census of so many rows, generated once.
pub fn data(rows: u64) -> PathBuf {
    let data = folder().join(format!("census-{rows}"));
    if !data.exists() {
        let files = (rows / 2_500_000).max(2);
        std::fs::create_dir_all(folder()).expect("the bench folder");
        let made = Command::new(env!("CARGO_BIN_EXE_throng"))
            .args(["generate", "--rows", &rows.to_string(), "--files", &files.to_string()])
            .arg(&data)
            .status();
        assert!(made.expect("throng generate").success());
    }
    data
}

/// The job over some quasi-identifiers; the other columns are kept as they are.
pub fn job(data: &Path, sink: &Path, k: u32, quasi: &[&str], more: &str) -> Job {
    let hierarchies = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("pipelines/hierarchies");
    let mut text = format!(
        "version = 1\nsource.url = {:?}\nsink.url = {:?}\nprivacy.k = {k}\ndefaults.role = \"kept\"\n\
         columns.person_id.role = \"identifier\"\ncolumns.name.role = \"identifier\"\n\
         columns.diagnosis.role = \"sensitive\"\ncolumns.income.role = \"sensitive\"\n{more}",
        data.to_string_lossy(),
        sink.to_string_lossy(),
    );
    for column in quasi {
        text += &format!("columns.{}\n", column.replace("HIERARCHIES", &hierarchies.to_string_lossy()));
    }
    Job::parse(&text, Path::new("bench.toml")).expect("a job")
}

/// What a run has published, and what its phases took.
pub type Released = (Box<Manifest>, Vec<(Phase, Duration)>);

/// One run, from Parquet to a verified release.
pub async fn run(options: RunOptions, data: &Path, sink: &Path, k: u32, quasi: &[&str], more: &str) -> Released {
    release(job(data, sink, k, quasi, more), options).await
}

/// One run of a job into a new sink.
pub async fn release(job: Job, options: RunOptions) -> Released {
    let run = Run::new(job, Path::new("."), options).expect("a run");
    match run.execute(&|_, _, _| {}).await.expect("a release") {
        Outcome::Released(manifest, times) => (manifest, times),
        _ => panic!("the sink is new"),
    }
}
