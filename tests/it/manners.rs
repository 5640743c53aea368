//! How the command behaves beside its job: help, completions, manuals, JSON, widths, colours, progress, exit codes.

use std::fs;

use serde_json::Value;

use crate::support::{Desk, command, shell, throng};
use crate::tables::{JOB, people};

/// All commands that `throng help` lists.
pub fn commands() -> Vec<String> {
    let help = throng(&["help"]).ok().out;
    let listed = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    // Descriptions that go on in the next line stand further right.
    let named = listed.take_while(|line| line.starts_with("  ")).filter(|line| !line.starts_with("   "));
    let names = named.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

#[test]
fn every_command_has_an_example() {
    let commands = commands();
    assert!(commands.len() > 10, "{commands:?}");
    for name in &commands {
        let help = throng(&[name, "--help"]).ok().out;
        assert!(help.contains(&format!("Example: throng {name}")), "{name} has no example:\n{help}");
    }
}

#[test]
fn exit_codes_are_in_the_help_as_in_the_guide() {
    let guide = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/operating.rs")).unwrap();
    let table = guide
        .lines()
        .filter_map(|line| line.strip_prefix("//! "))
        .skip_while(|line| !line.starts_with("| exit code |"))
        .skip(2);
    let rows: Vec<Vec<&str>> = table
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 10);
    let help = throng(&["--help"]).ok().out;
    for row in rows {
        assert!(help.contains(&format!("  {:<4} {}", row[0], row[1])), "{row:?} is not in {help}");
    }
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = throng(&["completions", shell]).ok().out;
        for name in commands() {
            assert!(script.contains(&name), "{shell} does not know {name}");
        }
        assert!(script.contains("metrics-file"), "{shell} does not know flags");
    }
    let desk = Desk::new();
    desk.write("throng.bash", &throng(&["completions", "bash"]).ok().out);
    let script =
        "bash -c '. ./throng.bash; COMP_WORDS=(throng rel); COMP_CWORD=1; _throng throng rel throng; echo $COMPREPLY'";
    assert_eq!(shell(&desk.path("."), script).ok().out, "releases\n");
}

#[test]
fn manual_pages_are_roff() {
    let page = throng(&["man"]).ok().out;
    assert!(page.contains(".TH throng 1") && page.contains("Exit codes"), "{page}");
    let run = throng(&["man", "run"]).ok().out;
    assert!(run.contains("metrics\\-file"), "{run}");
    let unknown = throng(&["man", "dance"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    let desk = Desk::new();
    throng(&["man", "--folder", &desk.name("man"), "--quiet"]).ok();
    for name in commands() {
        assert!(desk.path(&format!("man/throng-{name}.1")).exists(), "{name}");
    }
}

#[test]
fn programs_can_read_every_result() {
    let desk = Desk::with(people(100), JOB);
    let checked = json(&desk.throng("check", &["--json"]).ok().out);
    assert_eq!((checked["fine"].as_bool(), checked["problems"][0]["severity"].as_str()), (Some(true), Some("remark")));

    let ran = json(&desk.run(&["--json", "--run-id", "monday"]).ok().out);
    assert_eq!((&ran["run"], &ran["done_before"]), (&"monday".into(), &false.into()));
    let phases: Vec<&String> = ran["effort"]["phases"].as_object().unwrap().keys().collect();
    assert_eq!(phases, ["plan", "survey", "group", "verify", "commit"]);
    assert!(ran["effort"]["seconds"].as_f64().unwrap() > 0.0);
    let again = json(&desk.run(&["--json", "--run-id", "monday", "--quiet"]).ok().out);
    assert_eq!((&again["run"], &again["done_before"]), (&"monday".into(), &true.into()));
    assert_eq!(again["committed"], ran["committed"]);

    let verified = json(&desk.throng("verify", &["--json"]).ok().out);
    assert_eq!((&verified["holds"], &verified["rows"]), (&true.into(), &100.into()));
    desk.run(&["--quiet", "--run-id", "tuesday", "--set", "privacy.k=6"]).ok();
    let sink = desk.name("out");
    let rolled = json(&throng(&["rollback", &sink, "monday", "--json"]).ok().out);
    assert_eq!(rolled["run"], "monday");
    let listed = json(&throng(&["releases", &sink, "--json"]).ok().out);
    let seen: Vec<(&str, bool)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|release| (release["run"].as_str().unwrap(), release["newest"].as_bool().unwrap()))
        .collect();
    assert_eq!(seen, [("monday", true), ("tuesday", false)]);
    let garbage = json(&throng(&["gc", &sink, "--older-than", "0", "--json"]).ok().out);
    assert_eq!((&garbage["bytes"], &garbage["files"]), (&0.into(), &Value::Array(vec![])));
    assert_eq!(garbage["removed"], false, "nothing was");
}

#[test]
fn programs_can_read_every_failure() {
    let desk = Desk::with(people(100), JOB);
    let failed = desk.run(&["--json", "--set", "privacy.k=1000"]);
    failed.refused(5, &["k = 1000"]);
    let reported = json(&failed.out);
    assert_eq!((&reported["error"], &reported["exit_code"]), (&"privacy".into(), &5.into()));
    assert!(failed.err.contains(reported["message"].as_str().unwrap()));

    let wrong = desk.throng("check", &["--json", "--set", "privacy.k=0", "--set", "privacy.max-loss=7"]);
    wrong.refused(3, &["privacy.k", "privacy.max-loss"]);
    let reported = json(&wrong.out);
    let keys: Vec<&str> = reported["problems"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|problem| problem["severity"] == "error")
        .map(|problem| problem["key"].as_str().unwrap())
        .collect();
    assert_eq!((reported["fine"].as_bool(), keys), (Some(false), vec!["privacy.k", "privacy.max-loss"]));
}

#[test]
fn tables_fit_their_place() {
    let desk = Desk::with(people(100), JOB);
    let longest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
    let narrow = command(&["run", &desk.name("job.toml")]).env("COLUMNS", "60").output().unwrap();
    let narrow = String::from_utf8(narrow.stdout).unwrap();
    let table = |text: &str| text.lines().filter(|line| line.contains('│')).map(str::to_owned).collect::<Vec<_>>();
    assert!(table(&narrow).iter().all(|line| line.chars().count() <= 60), "{narrow}");
    for arguments in [
        vec!["profile", "in.parquet"],
        vec!["sweep", "job.toml", "--k", "5", "--quiet"],
        vec!["attack", "job.toml", "--public", "in.parquet"],
        vec!["recommend", "job.toml", "--min-k", "5", "--sample", "90", "--repeats", "2"],
    ] {
        let shown = command(&arguments).current_dir(desk.path(".")).env("COLUMNS", "72").output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(table(&shown).iter().all(|line| line.chars().count() <= 72), "{arguments:?}: {shown}");
    }
    let wide = throng(&["releases", &desk.name("out")]).ok().out;
    let narrow = command(&["releases", &desk.name("out")]).env("COLUMNS", "50").output().unwrap();
    let narrow = String::from_utf8(narrow.stdout).unwrap();
    assert!(longest(&wide) > 50 && longest(&narrow) <= 50, "{wide}\n{narrow}");
}

/// Runs a script whose standard error is a terminal of 100 columns; what the terminal got is the output.
fn on_a_terminal(desk: &Desk, script: &str) -> String {
    desk.write("script.sh", &format!("stty rows 30 cols 100; {script}"));
    shell(&desk.path("."), "script -qec 'sh script.sh' /dev/null </dev/null").ok().out
}

#[test]
fn progress_is_for_terminals_only() {
    let desk = Desk::with(people(60_000), JOB);
    let seen = on_a_terminal(&desk, "$THRONG run job.toml --run-id a --set method.auto.effort=thorough > summary.txt");
    for word in ["group and write", " of 60,000 rows", "rows/s", "left", "all ", "%"] {
        assert!(seen.contains(word), "`{word}` is not in {seen:?}");
    }
    assert!(fs::read_to_string(desk.path("summary.txt")).unwrap().contains("Every row left"));
    let quiet = on_a_terminal(&desk, "$THRONG run job.toml --run-id b --quiet");
    assert_eq!(quiet.trim(), "");
    desk.secret_job(JOB);
    assert_eq!(desk.run(&["--run-id", "c"]).ok().err, "");
}

#[test]
fn every_long_command_shows_that_it_works() {
    let desk = Desk::with(people(400_000), JOB);
    desk.run(&["--quiet"]).ok();
    for (command, words) in [
        ("profile in.parquet > shown.txt", &["columns ", "exposure ", " of 400,000 rows", "left", "all "][..]),
        ("verify job.toml > shown.txt", &["release and source "]),
        ("report out", &["release "]),
    ] {
        let seen = on_a_terminal(&desk, &format!("$THRONG {command}"));
        for word in words {
            assert!(seen.contains(word), "`{word}` is not shown by {command}: {seen:?}");
        }
        assert_eq!(on_a_terminal(&desk, &format!("$THRONG {command} --quiet")).trim(), "", "{command}");
    }
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let desk = Desk::with(people(100), JOB);
    let coloured = |seen: &str| seen.contains("\u{1b}[3");
    let run = |id: &str| format!("$THRONG run job.toml -v --run-id {id} > /dev/null");
    assert!(coloured(&on_a_terminal(&desk, &run("a"))));
    assert!(!coloured(&on_a_terminal(&desk, &format!("NO_COLOR=1 {}", run("b")))));
    assert!(!coloured(&desk.run(&["-v", "--run-id", "c"]).ok().err));
}

#[test]
fn a_terminal_can_interrupt() {
    let desk = Desk::with(people(600_000), JOB);
    // Ctrl-C, as a terminal sends it, once the run has made its spill folder.
    let script = "THRONG_SPILL_DIR=spill $THRONG run job.toml --set method.auto.effort=thorough --metrics-file m.prom & \
                  run=$!; while ! ls spill/* >/dev/null 2>&1; do sleep 0.02; done; sleep 0.1; kill -INT $run; wait $run; \
                  echo code $?";
    let ran = shell(&desk.path("."), script);
    assert!(ran.out.contains("code 130"), "{ran:?}");
    assert!(ran.err.contains("interrupted; nothing was published"), "{ran:?}");
    assert!(desk.sink_files().is_empty(), "{:?}", desk.sink_files());
    assert_eq!(fs::read_dir(desk.path("spill")).unwrap().count(), 0);
    let metrics = fs::read_to_string(desk.path("m.prom")).unwrap();
    assert!(metrics.contains("throng_run_success{pipeline=\"job\"} 0"), "{metrics}");
    assert!(metrics.contains("reason=\"interrupted\""), "{metrics}");
    // Other commands end as cleanly, and as soon.
    let script = "THRONG_SPILL_DIR=spill $THRONG sweep job.toml --set method.auto.effort=thorough & \
                  run=$!; while ! ls spill/* >/dev/null 2>&1; do sleep 0.02; done; sleep 0.1; kill -INT $run; wait $run; \
                  echo code $?";
    let swept = shell(&desk.path("."), script);
    assert!(swept.out.contains("code 130") && swept.err.contains("interrupted"), "{swept:?}");
    assert_eq!(fs::read_dir(desk.path("spill")).unwrap().count(), 0);
}
