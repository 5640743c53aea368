//! What operators see of a run: logs, metrics, spans. No value of the data is in any of them.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::support::{Desk, command};
use crate::tables::{JOB, assert_no_values, people};

/// The samples of a file of metrics, by name and labels.
fn samples(desk: &Desk, file: &str) -> BTreeMap<String, f64> {
    let text = fs::read_to_string(desk.path(file)).unwrap();
    let mut samples = BTreeMap::new();
    let mut described = String::new();
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            described = kind.split(' ').next().unwrap().to_owned();
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with(&format!("{described}{{")), "{name} comes without its type");
            assert!(samples.insert(name.to_owned(), value.parse().unwrap()).is_none(), "{name} comes twice");
        }
    }
    samples
}

#[test]
fn metrics_are_those_of_the_release() {
    let desk = Desk::with(people(300), JOB);
    let ran = desk.run(&["--json", "--metrics-file", &desk.name("run.prom")]).ok();
    let manifest: Value = serde_json::from_str(&ran.out).unwrap();
    let found = samples(&desk, "run.prom");
    let get = |name: &str| found.get(name).copied().unwrap_or_else(|| panic!("no {name} in {found:?}"));
    let plain = |name: &str| get(&format!("throng_{name}{{pipeline=\"job\"}}"));
    assert_eq!((plain("run_success"), plain("run_exit_code")), (1.0, 0.0));
    assert_eq!(plain("rows_read"), 300.0);
    assert_eq!(plain("rows_published") + plain("rows_suppressed"), 300.0);
    assert_eq!(plain("smallest_class"), manifest["verification"]["classes"]["smallest"].as_f64().unwrap());
    assert_eq!(plain("classes"), manifest["verification"]["classes"]["count"].as_f64().unwrap());
    let gcp = get("throng_score{pipeline=\"job\",measure=\"gcp\"}");
    assert_eq!(gcp, manifest["scores"]["gcp"].as_f64().unwrap());
    for phase in ["plan", "survey", "group", "verify", "commit"] {
        assert!(get(&format!("throng_phase_seconds{{pipeline=\"job\",phase=\"{phase}\"}}")) >= 0.0);
    }
    assert_eq!(plain("spilled_bytes"), 0.0);
    assert!(plain("run_timestamp_seconds") > 1.7e9);
    #[cfg(target_os = "linux")]
    assert!(plain("peak_memory_bytes") > 1e6);
    let reason =
        format!("throng_run_info{{pipeline=\"job\",reason=\"done\",version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(get(&reason), 1.0);

    desk.run(&["--quiet", "--metrics-file", &desk.name("run.prom")]).ok();
    assert!(fs::read_to_string(desk.path("run.prom")).unwrap().contains("reason=\"already-done\""));
    let beside = fs::read_dir(desk.path("."))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("tmp"));
    assert_eq!(beside.count(), 0, "nothing half-written stays");
}

#[test]
fn a_run_that_spills_says_so() {
    let desk = Desk::with(people(100_000), JOB);
    let limits = ["--memory-limit", "20MB", "--partitions", "1", "--cell-rows", "4096"];
    let more = ["--quiet", "--metrics-file", &desk.name("run.prom"), "--set", "method.name=mondrian"];
    desk.run(&[&limits[..], &more].concat()).ok();
    assert!(samples(&desk, "run.prom")["throng_spilled_bytes{pipeline=\"job\"}"] > 0.0);
}

#[test]
fn metrics_tell_of_failures() {
    let desk = Desk::with(people(300), JOB);
    for (setting, code, reason, rows) in [
        ("privacy.k=1000", 5, "privacy", None),
        ("privacy.l-diversity={ column = \"ill\", l = 4 }", 5, "privacy", Some(300.0)),
        ("privacy.k=0", 3, "job", None),
        ("columns.nobody.role=\"kept\"", 3, "job", None),
    ] {
        let file = desk.name("failed.prom");
        let ran =
            command(&["run", &desk.name("job.toml"), "--set", setting]).env("THRONG_METRICS_FILE", &file).output();
        assert_eq!(ran.unwrap().status.code(), Some(code), "{setting}");
        let found = samples(&desk, "failed.prom");
        assert_eq!(found["throng_run_success{pipeline=\"job\"}"], 0.0);
        assert_eq!(found["throng_run_exit_code{pipeline=\"job\"}"], f64::from(code));
        assert!(found.keys().any(|name| name.contains(&format!("reason=\"{reason}\""))), "{found:?}");
        assert_eq!(found.get("throng_rows_read{pipeline=\"job\"}").copied(), rows, "{setting}");
        assert!(!found.keys().any(|name| name.starts_with("throng_rows_published")));
        assert_no_values(&fs::read_to_string(&file).unwrap());
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn metrics_that_cannot_be_written_are_a_warning() {
    let desk = Desk::with(people(100), JOB);
    let ran = desk.run(&["--metrics-file", &desk.name("no/such/folder.prom")]).ok();
    assert!(ran.err.contains("metrics file") && ran.err.contains("cannot be written"), "{}", ran.err);
    assert!(ran.out.contains("Every row left"), "{}", ran.out);
    assert_eq!(desk.released().num_rows(), 100);
}

#[test]
fn log_lines_are_json_when_asked() {
    let desk = Desk::with(people(300), JOB);
    let ran = desk.run(&["-v", "--log-format", "json"]).ok();
    let lines: Vec<Value> = ran.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let done = |phase: &str| {
        let mut found = lines.iter().filter(|line| line["message"] == format!("{phase}: done"));
        found.next().unwrap_or_else(|| panic!("{phase} is not in {}", ran.err))
    };
    for phase in ["plan", "survey", "group", "verify", "commit"] {
        let line = done(phase);
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["span"]["name"], phase);
        assert!(line["seconds"].as_f64().unwrap() >= 0.0);
        assert_eq!(line["spans"][0]["name"], "run");
    }
    assert_eq!(done("survey")["span"]["rows"], 300);
    assert_eq!(done("group")["span"]["rows"], 300);
    assert!(done("verify")["span"]["smallest_class"].as_u64().unwrap() >= 5);
    let failed = desk.run(&["-v", "--log-format", "json", "--set", "privacy.k=1000"]);
    assert!(failed.err.contains("survey: done") || failed.err.contains("survey: not done"), "{}", failed.err);
}

#[test]
fn levels_follow_flags_and_the_environment() {
    let desk = Desk::with(people(100), JOB);
    desk.secret_job(JOB);
    let says = |more: &[&str], log: Option<&str>, id: &str| {
        let job = desk.name("job.toml");
        let mut command = command(&[&["run", &job, "--run-id", id], more].concat());
        log.map(|log| command.env("THRONG_LOG", log));
        let output = command.output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(says(&[], None, "a"), "");
    assert!(says(&["-v"], None, "b").contains("survey: done"));
    assert!(says(&[], Some("throng=info"), "c").contains("survey: done"));
    assert_eq!(says(&["-v"], Some("off"), "d"), "");
    let wrong = command(&["run", &desk.name("job.toml")]).env("THRONG_LOG", "throng=loud").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}

#[test]
fn nothing_of_the_data_is_logged_at_any_level() {
    let desk = Desk::with(people(300), JOB);
    let ran = desk.run(&["-vvv", "--log-format", "json", "--metrics-file", &desk.name("run.prom")]).ok();
    assert!(ran.err.contains("commit: done"));
    assert_no_values(&ran.err.replace(|c: char| c.is_ascii_digit(), ""));
    let metrics = fs::read_to_string(desk.path("run.prom")).unwrap();
    assert_no_values(&metrics.replace(|c: char| c.is_ascii_digit(), ""));
}
