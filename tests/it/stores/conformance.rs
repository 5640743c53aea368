//! What a release is, asked of every store in the same words.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use object_store::ObjectStoreExt;
use throng::releases::{Phase, ReleaseCheck, collect_garbage, rollback};
use throng::{ErrorKind, Outcome, Result};

use super::place::{Place, outcome};
use super::s3::Server;
use crate::tables::{JOB, assert_no_values, people};

/// The policy of [`JOB`] with another k.
fn other_policy() -> String {
    JOB.replace("k = 5", "k = 6")
}

/// Asks everything of a place that is empty.
pub async fn conforms(place: &Place) {
    runs_and_says_when_it_is_done(place).await;
    lists_and_rolls_back(place).await;
    collects_garbage(place).await;
    refuses_changed_input(place).await;
    lets_one_of_two_win(place).await;
    finds_damage(place).await;
}

async fn runs_and_says_when_it_is_done(place: &Place) {
    place.input("a.parquet", people(60)).await;
    assert_eq!(outcome(place.run("one", JOB).await), ("one".into(), true));
    assert_eq!(place.rows().await.len(), 60);
    let files = place.files().await;
    assert!(files.contains("_SUCCESS") && files.contains("_manifest/one.json"), "{files:?}");

    assert_eq!(outcome(place.run("one", JOB).await), ("one".into(), false));
    assert_eq!(place.files().await, files);
    let conflict = place.run("one", &other_policy()).await.unwrap_err();
    assert!(conflict.kind() == ErrorKind::Conflict && conflict.to_string().contains("another policy"), "{conflict}");
    place.input("b.parquet", people(40)).await;
    let conflict = place.run("one", JOB).await.unwrap_err();
    assert!(conflict.kind() == ErrorKind::Conflict && conflict.to_string().contains("another input"), "{conflict}");
    assert_eq!(place.files().await, files);
}

async fn lists_and_rolls_back(place: &Place) {
    assert_eq!(outcome(place.run("two", JOB).await), ("two".into(), true));
    assert_eq!(place.releases().await, ["one", "two"]);
    assert_eq!((place.latest_run().await.as_deref(), place.rows().await.len()), (Some("two"), 100));
    rollback(&place.sink(), "one").await.unwrap();
    assert_eq!((place.latest_run().await.as_deref(), place.rows().await.len()), (Some("one"), 60));
    // A scheduler that repeats the newer run does not undo what somebody has decided.
    assert_eq!(outcome(place.run("two", JOB).await), ("two".into(), false));
    assert_eq!(place.latest_run().await.as_deref(), Some("one"));
    assert!(rollback(&place.sink(), "none").await.is_err());
    rollback(&place.sink(), "two").await.unwrap();
    assert_eq!(place.rows().await.len(), 100);
    place.verify_all().await;
}

async fn collects_garbage(place: &Place) {
    let before = place.files().await;
    place.put("data/run=dead.0123/part-00000-000.parquet", b"left by a run that was killed").await;
    let with_garbage = place.files().await;
    let found = |age: u64, dry_run: bool| async move {
        let found = collect_garbage(&place.sink(), Duration::from_secs(age), dry_run).await.unwrap();
        found.into_iter().map(|(path, _)| path).collect::<Vec<_>>()
    };
    let dead = ["data/run=dead.0123/part-00000-000.parquet"];
    assert!(found(3600, false).await.is_empty(), "a run may be writing it");
    assert_eq!(found(0, true).await, dead);
    assert_eq!(place.files().await, with_garbage);
    assert_eq!(found(0, false).await, dead);
    assert_eq!(place.files().await, before);
    assert!(found(0, false).await.is_empty());
    place.verify_all().await;
}

async fn refuses_changed_input(place: &Place) {
    let before = place.files().await;
    for at in [Phase::Group, Phase::Verify] {
        let handle = tokio::runtime::Handle::current();
        let change = || {
            let rows = if at == Phase::Group { 45 } else { 50 };
            handle.block_on(place.input("b.parquet", people(rows)));
        };
        let error = place.run_with("changed", JOB, at, change).await.unwrap_err();
        // What is read may not be Parquet any more as it was found; the run need not come to the end to notice.
        assert!(matches!(error.kind(), ErrorKind::Input | ErrorKind::Retry), "{error}");
        if at == Phase::Verify {
            assert!(
                error.kind() == ErrorKind::Retry && error.to_string().contains("changed while it was read"),
                "{error}"
            );
        }
        assert_no_values(&error.to_string());
        assert_eq!(place.files().await, before, "nothing is published, nothing stays staged");
    }
    assert_eq!(place.latest_run().await.as_deref(), Some("two"));
}

/// Two runs that come to their commits at the same moment.
async fn race(place: &Place, ids: [&'static str; 2], jobs: [String; 2]) -> [Result<Outcome>; 2] {
    let gate = Arc::new(Barrier::new(2));
    let start = |id: &'static str, job: String| {
        let (place, gate) = (place.clone(), Arc::clone(&gate));
        let meet = move || {
            gate.wait();
        };
        tokio::spawn(async move { place.run_with(id, &job, Phase::Commit, meet).await })
    };
    let [first, second] = jobs;
    let (first, second) = (start(ids[0], first), start(ids[1], second));
    [first.await.unwrap(), second.await.unwrap()]
}

async fn lets_one_of_two_win(place: &Place) {
    let same = || [JOB.to_owned(), JOB.to_owned()];

    let mut won: Vec<_> = race(place, ["race", "race"], same()).await.map(outcome).to_vec();
    won.sort_unstable();
    assert_eq!(won, [("race".to_owned(), false), ("race".to_owned(), true)]);
    assert_eq!(place.latest_run().await.as_deref(), Some("race"));

    let [first, second] = race(place, ["rules", "rules"], [JOB.to_owned(), other_policy()]).await;
    let (won, lost) = if first.is_ok() { (first, second) } else { (second, first) };
    assert_eq!(outcome(won), ("rules".into(), true));
    let lost = lost.unwrap_err();
    assert!(lost.kind() == ErrorKind::Conflict && lost.to_string().contains("another policy"), "{lost}");

    assert_eq!(
        race(place, ["left", "right"], same()).await.map(outcome),
        [("left".into(), true), ("right".into(), true)]
    );
    let latest = place.latest_run().await.unwrap();
    assert!(latest == "left" || latest == "right", "{latest}");
    let releases = place.releases().await;
    assert!(["left", "right"].iter().all(|run| releases.contains(&(*run).to_owned())), "{releases:?}");
    // Those who lost have taken their files with them.
    assert!(collect_garbage(&place.sink(), Duration::ZERO, true).await.unwrap().is_empty());
    place.verify_all().await;
}

async fn finds_damage(place: &Place) {
    let run = place.prepare("left", JOB);
    let ReleaseCheck { manifest, findings, .. } = run.verify_latest(Some("left")).await.unwrap();
    assert_eq!(findings, []);
    let file = &manifest.files[0].path;
    place.store.copy(&place.sink().at(&manifest.files[0].path), &place.sink().at("data/copy")).await.unwrap();
    place.put(file, b"PAR1 no longer what it was").await;
    let damaged = run.verify_latest(Some("left")).await.unwrap().findings;
    assert!(
        damaged.iter().any(|finding| finding.rule == "files" && finding.message.contains("not the ones")),
        "{damaged:?}"
    );
    place.store.delete(&place.sink().at(file)).await.unwrap();
    let findings = run.verify_latest(Some("left")).await.unwrap().findings;
    assert!(findings.iter().any(|finding| finding.rule == "files"), "{findings:?}");
    place.store.copy(&place.sink().at("data/copy"), &place.sink().at(file)).await.unwrap();
    assert_eq!(run.verify_latest(Some("left")).await.unwrap().findings, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn local_files_conform() {
    conforms(&Place::local()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn memory_conforms() {
    conforms(&Place::memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn an_s3_server_conforms() {
    let server = Server::start();
    conforms(&Place::new(server.store(), "s3://lake/night")).await;
    assert_eq!(server.unfinished_uploads(), 0);
}
