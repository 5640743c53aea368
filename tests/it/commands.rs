//! What the commands promise beside the main job: schema, generated data, silence, clean folders.

use std::fs;

use crate::support::{Desk, command, files, multiset, read_parquet, throng};
use crate::tables::{ILLS, JOB, TOWNS, people};

#[test]
fn schema_names_every_part_of_a_job() {
    let schema: serde_json::Value = serde_json::from_str(&throng(&["schema"]).ok().out).unwrap();
    for part in ["version", "source", "sink", "privacy", "defaults", "columns", "method", "output"] {
        assert!(schema["properties"].get(part).is_some(), "{part}");
    }
}

#[test]
fn generated_rows_do_not_depend_on_files() {
    let desk = Desk::new();
    let rows = ["--rows", "1000", "--seed", "5", "--quiet"];
    throng(&[&["generate", &desk.name("one.parquet")][..], &rows].concat()).ok();
    throng(&[&["generate", &desk.name("four"), "--files", "4"][..], &rows].concat()).ok();
    let one = multiset(&read_parquet(&desk.path("one.parquet")));
    let parts = files(&desk.path("four"));
    assert_eq!((one.len(), parts.len()), (1000, 4));
    let mut four: Vec<String> = parts.iter().flat_map(|part| multiset(&read_parquet(part))).collect();
    four.sort_unstable();
    assert!(one == four);
}

#[test]
fn quiet_says_nothing_when_all_is_well() {
    let desk = Desk::with(people(100), JOB);
    for name in ["run", "run", "verify"] {
        let ran = desk.throng(name, &["--quiet"]).ok();
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""), "{name}");
    }
}

#[test]
fn flags_can_come_from_the_environment() {
    let desk = Desk::with(people(100), JOB);
    command(&["run", &desk.name("job.toml"), "--quiet"]).env("THRONG_RUN_ID", "monday").assert().success();
    assert!(desk.path("out/_manifest/monday.json").exists());
}

#[test]
fn spill_folder_is_left_empty() {
    let desk = Desk::with(people(2000), JOB);
    let spill = desk.name("spill");
    desk.run(&["--spill-dir", &spill, "--memory-limit", "100MB"]).ok();
    desk.run(&["--spill-dir", &spill, "--set", "privacy.k=5000"]).refused(5, &[]);
    assert_eq!(fs::read_dir(spill).unwrap().count(), 0);
}

#[test]
fn no_value_is_told_beside_the_data() {
    let desk = Desk::with(people(200), JOB);
    let ran = desk.run(&["--verbose"]).ok();
    let plan = desk.throng("plan", &[]).ok();
    let mut reported = format!("{}{}{}", ran.out, ran.err, plan.out);
    for file in desk.sink_files().iter().filter(|file| file.extension().is_none_or(|end| end != "parquet")) {
        reported += &format!("{} {}", file.display(), fs::read_to_string(file).unwrap());
    }
    for word in TOWNS.iter().chain(&ILLS) {
        assert!(!reported.contains(word), "{word} is quoted in: {reported}");
    }
}
