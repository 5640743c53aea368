//! `throng recommend --nights`: nights are simulated, nothing is published, and what it prints works.

use std::fs;

use serde_json::Value;

use crate::support::{Desk, batch, files, shell, write_parquet};
use crate::tables::{JOB, people};

const SERIES: &str = "[series]\nsubject = [\"id\"]\nstate = \"ledger\"\nkey-file = \"key\"\nmax-loss = 0.6\n";

fn desk(series: &str) -> Desk {
    let desk = Desk::new();
    desk.write("key", "0123456789abcdef0123456789abcdef");
    let rules = JOB.replace("id.role = \"kept\"", "id.role = \"identifier\"");
    desk.write("job.toml", &format!("version = 1\nsource.url = \"in.parquet\"\nsink.url = \"out\"\n{rules}{series}"));
    write_parquet(&desk.path("in.parquet"), &batch(people(400)));
    desk
}

const SMALL: [&str; 6] = ["--nights", "4", "--churn", "0.1", "--sample", "200"];

#[test]
fn keys_of_a_series_are_recommended_by_nights_in_memory() {
    let desk = desk(SERIES);
    let before = files(&desk.path("."));
    let output = desk.throng("recommend", &[&SMALL[..], &["--json", "--quiet"]].concat()).ok().out;
    let plan: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(files(&desk.path(".")), before, "nothing is written");
    let tried = plan["tried"].as_array().unwrap();
    assert!(tried.len() >= 10, "{plan}");
    assert_eq!(tried[0]["max-loss"], 0.6, "the settings of the job come first");
    let share = |trial: &Value, name: &str| trial[name].as_f64().unwrap();
    for trial in tried {
        for name in ["loss", "waiting", "stale", "withheld", "suppressed", "missed"] {
            assert!((0.0..=1.0).contains(&share(trial, name)), "{name} of {trial}");
        }
        assert!(share(trial, "missed") >= share(&plan["recommended"], "missed"), "{plan}");
        assert!(share(trial, "missed") >= share(trial, "waiting") + share(trial, "stale"));
    }
    assert!(tried.iter().any(|trial| share(trial, "stale") > 0.0), "people leave: {plan}");
    assert!(tried.iter().any(|trial| share(trial, "waiting") > 0.0), "people wait: {plan}");
    let (first, come) = (plan["subjects"].as_u64().unwrap(), plan["newcomers"].as_u64().unwrap());
    assert!(first + 3 * come <= plan["rows_drawn"].as_u64().unwrap() && come > 0, "{plan}");
}

#[test]
fn what_is_printed_works() {
    let desk = desk(SERIES);
    let output = desk.throng("recommend", &[&SMALL[..], &["--set", "privacy.k=6"]].concat()).ok().out;
    for words in ["Simulated: 4 nights at a churn of 0.1", "Nobody changes, nobody comes back", "[series]", "missed"] {
        assert!(output.contains(words), "{output}");
    }
    let command = output.lines().find(|line| line.starts_with("  throng run ")).unwrap();
    assert!(command.contains("--set privacy.k=6"), "{command}");
    shell(&desk.path("."), &command.replacen("  throng", "\"$THRONG\"", 1)).ok();
    // The lines of the table, in the place of those of the job.
    let lines: Vec<&str> = output.lines().skip_while(|line| *line != "[series]").skip(1).take(5).collect();
    let rest: Vec<&str> = SERIES.lines().filter(|line| !line.starts_with("max-loss")).collect();
    let job = fs::read_to_string(desk.path("job.toml")).unwrap().replace(SERIES, &rest.join("\n"));
    desk.write("other.toml", &format!("{job}\n{}\n", lines.join("\n")));
    let checked = shell(&desk.path("."), "\"$THRONG\" check other.toml").ok();
    assert!(checked.out.contains("fine"), "{checked:?}");
}

#[test]
fn rows_that_are_appended_need_fewer_keys() {
    let desk = desk("[series]\nmode = \"append\"\nstate = \"ledger\"\nkey-file = \"key\"\n");
    write_parquet(&desk.path("in.parquet"), &batch(people(400)));
    let output = desk.throng("recommend", &SMALL).ok().out;
    assert!(output.contains("are added") && output.contains("max-wait = "), "{output}");
    assert!(!output.contains("retire-at = ") && !output.contains("series.dissolve"), "{output}");
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let desk = desk(SERIES);
    desk.throng("recommend", &["--nights", "4", "--churn", "2"]).refused(3, &["--churn must be from 0 to 1"]);
    desk.throng("recommend", &["--nights", "4", "--set", "privacy.k=300"])
        .refused(4, &["too few to simulate", "--sample"]);
    assert_eq!(desk.throng("recommend", &["--nights", "4", "--min-k", "5"]).code, Some(2));
    assert_eq!(desk.throng("recommend", &["--churn", "0.1", "--min-k", "5"]).code, Some(2));
    let job = fs::read_to_string(desk.path("job.toml")).unwrap().replace(SERIES, "");
    desk.write("job.toml", &job);
    desk.throng("recommend", &["--nights", "4"]).refused(3, &["series: is missing"]);
}
