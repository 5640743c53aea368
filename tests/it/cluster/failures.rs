//! Executors and drivers that are killed in the middle of a job. A job ends as if nothing had happened, or with exit code
//! 75 and the old release in its place; it never publishes a row too many or too few.

use std::collections::BTreeSet;

use super::fleet::{Fleet, Process, Progress, wait};
use crate::support::{Desk, files, manifest, multiset, released, throng};

/// Rows that keep two executors at work for some seconds.
const ROWS: &str = "60000";

const JOB: &str = "privacy.k = 5
method = { name = \"auto\", effort = \"thorough\" }
defaults.role = \"identifier\"
[columns]
age.role = \"quasi\"
sex.role = \"quasi\"
education.role = \"quasi\"
postcode = { role = \"quasi\", hierarchy.mask = \"right\" }
diagnosis.role = \"sensitive\"
household_size.role = \"kept\"
";

/// Small cells and many tasks: a stage takes a while, and is done bit by bit.
const SMALL: [&str; 4] = ["--cell-rows", "2000", "--partitions", "12"];

/// A folder with an old release, and what a new one must hold.
struct Scene {
    desk: Desk,
    fleet: Fleet,
    expected: Vec<String>,
}

impl Scene {
    fn set() -> Self {
        let desk = Desk::new();
        throng(&["generate", &desk.name("in.parquet"), "--rows", ROWS, "--files", "12", "--quiet"]).ok();
        desk.job(JOB);
        let alone = format!("sink.url={}", desk.name("alone"));
        desk.run(&[&["--quiet", "--set", &alone], &SMALL[..]].concat()).ok();
        let quick = ["--quiet", "--run-id", "old", "--set", "method.name=mondrian", "--set", "method.effort="];
        let quick = &quick[..5];
        let old = desk.run(quick);
        if old.code != Some(0) {
            // `mondrian` knows no effort.
            desk.write("old.toml", &std::fs::read_to_string(desk.path("job.toml")).unwrap().replace(
                "method = { name = \"auto\", effort = \"thorough\" }",
                "method.name = \"mondrian\"",
            ));
            throng(&["run", &desk.name("old.toml"), "--quiet", "--run-id", "old"]).ok();
        }
        let expected = multiset(&released(&desk.path("alone")));
        Self { desk, fleet: Fleet::start(2), expected }
    }
}
