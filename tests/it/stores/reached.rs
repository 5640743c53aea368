//! How stores are reached: addresses, credentials and patience, by the command line and over the wire.

use std::fs;

use assert_cmd::Command;

use super::s3::{BUCKET, KEY_ID, SECRET, Server};
use crate::support::{Desk, Ran, batch, command, write_parquet};
use crate::tables::{JOB, people};

/// A server with an input, and a job on it.
fn scene(more: &str) -> (Server, Desk) {
    let (server, desk) = (Server::start(), Desk::new());
    fs::create_dir_all(server.bucket().join("in")).unwrap();
    write_parquet(&server.bucket().join("in/a.parquet"), &batch(people(60)));
    let options = format!("endpoint = \"{}\"\nallow-http = true\n{more}", server.endpoint);
    desk.write(
        "job.toml",
        &format!(
            "version = 1\nsource.url = \"s3://{BUCKET}/in/\"\nsink.url = \"s3://{BUCKET}/out\"\nsink.releases = \"independent\"\n\
             [source.options]\n{options}\n[sink.options]\n{options}\n[privacy]\nk = 5\n{}",
            JOB.split_once('\n').unwrap().1
        ),
    );
    (server, desk)
}

/// The command, with nothing of the caller's clouds.
fn call(desk: &Desk, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let job = desk.name("job.toml");
    let mut command: Command = command(&[&[arguments[0], job.as_str()], &arguments[1..]].concat());
    for (key, _) in std::env::vars().filter(|(key, _)| key.starts_with("AWS_")) {
        command.env_remove(key);
    }
    command.env("HOME", desk.name("")).envs(variables.iter().copied());
    Ran::from(&command.output().unwrap())
}

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", KEY_ID), ("AWS_SECRET_ACCESS_KEY", SECRET)];

#[test]
fn a_job_runs_on_an_s3_compatible_store() {
    let (server, desk) = scene("region = \"eu-west-1\"");
    let ran = call(&desk, &["run", "--run-id", "one", "--json"], &KEYS).ok();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&ran.out).unwrap()["rows"], 60);
    assert!(server.bucket().join("out/_manifest/one.json").exists());
    call(&desk, &["check"], &KEYS).ok();
    call(&desk, &["verify"], &KEYS).ok();
}

#[test]
fn the_plan_tells_how_stores_are_reached_and_no_secret() {
    let (server, desk) = scene("region = \"eu-west-1\"\nretries = 4\nrequest-timeout = \"20s\"");
    let plan = call(&desk, &["plan", "--store-connect-timeout", "2s"], &KEYS).ok().out;
    for part in ["source: s3://lake/in/", "sink: s3://lake/out"] {
        let reported = format!(
            "{part} (S3, endpoint {}, region eu-west-1, bucket in path, retries 4 within 3m, request timeout 20s, \
             connect timeout 2s, credentials from environment)\n",
            server.endpoint
        );
        assert!(plan.contains(&reported), "{plan}");
    }
    assert!(!plan.contains(SECRET) && !plan.contains(KEY_ID), "{plan}");
}

#[test]
fn a_busy_server_is_asked_again() {
    let (server, desk) = scene("");
    server.be_busy(3);
    call(&desk, &["run", "--run-id", "one"], &KEYS).ok();
    let asked = server.asked();
    assert!(asked > 3);
    let busy = 8;
    server.be_busy(busy);
    let refused = call(&desk, &["run", "--run-id", "two", "--store-retries", "0"], &KEYS);
    refused.refused(75, &["the object store failed", "SlowDown"]);
    assert!(server.asked() < asked + busy, "nothing is asked again");
    assert!(!refused.err.contains(SECRET), "{}", refused.err);
}

#[test]
fn credentials_come_from_a_profile() {
    let (_server, desk) = scene("");
    desk.write("keys", &format!("[night]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\n"));
    let keys = desk.name("keys");
    let night = [("AWS_SHARED_CREDENTIALS_FILE", keys.as_str()), ("AWS_PROFILE", "night")];
    let plan = call(&desk, &["plan"], &night).ok().out;
    assert!(plan.contains("credentials from profile `night`"), "{plan}");
    call(&desk, &["run"], &night).ok();
    let other = [("AWS_SHARED_CREDENTIALS_FILE", keys.as_str()), ("AWS_PROFILE", "other")];
    call(&desk, &["run"], &other).refused(3, &["AWS_PROFILE is `other`"]);
}

#[test]
fn wrong_credentials_are_named_as_such() {
    let (_server, desk) = scene("");
    let ran = call(&desk, &["run"], &[KEYS[0], ("AWS_SECRET_ACCESS_KEY", "guessed")]);
    ran.refused(4, &["no permission", "s3://lake/in/"]);
    assert!(!ran.err.contains("guessed"), "{}", ran.err);
}

#[test]
fn other_programs_variables_are_not_settings() {
    let (_server, desk) = scene("");
    let noise = [("TOKEN", "x"), ("REGION", "nowhere"), ("ENDPOINT", "http://127.0.0.1:1"), ("TIMEOUT", "1ns")];
    call(&desk, &["run"], &[&KEYS[..], &noise].concat()).ok();
}

#[test]
fn an_unencrypted_address_must_be_allowed() {
    let (_server, desk) = scene("");
    let ran = call(&desk, &["run", "--set", "sink.options.allow-http=false"], &KEYS);
    ran.refused(3, &["sink.options.endpoint", "is not encrypted", "sink.options.allow-http = true"]);
}
