//! A series in a Delta table. Its log is read here by hand, from what the protocol says, and by readers of other makers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use serde_json::{Value, json};
use throng::releases::{latest_run, releases, rollback};
use throng::{ErrorKind, Manifest, Outcome, SessionOptions};

use super::kills::{SETTINGS, second_night};
use super::world::{World, people, recount, released};
use crate::support::{Desk, batch, throng, write_parquet};
use crate::tables::{FIRST_ID, JOB, people as columns};

fn table(settings: &str) -> World {
    World::new(settings).in_table(true)
}

/// The actions of every version of the table.
async fn versions(world: &World) -> Vec<Vec<Value>> {
    let mut found = Vec::new();
    loop {
        let path = world.sink().at(&format!("_delta_log/{:020}.json", found.len()));
        let Ok(version) = world.store.get(&path).await else { return found };
        let text = String::from_utf8(version.bytes().await.unwrap().to_vec()).unwrap();
        found.push(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect());
    }
}

/// Writes the next version of the table, as another program would.
async fn append_version(world: &World, actions: &[Value]) {
    let lines: Vec<String> = actions.iter().map(Value::to_string).collect();
    let path = world.sink().at(&format!("_delta_log/{:020}.json", versions(world).await.len()));
    world.store.put(&path, lines.join("\n").into()).await.unwrap();
}

/// Asserts that the log shows the files of every release in its version, and moves no file that stays.
pub async fn recount_log(world: &World, releases: &[Manifest]) {
    let mut active: BTreeMap<String, i64> = BTreeMap::new();
    let mut seen = 0;
    for version in versions(world).await {
        for action in &version {
            if let Some(path) = action["remove"]["path"].as_str() {
                assert!(active.remove(path).is_some(), "{path} is removed and was not there");
            }
            if let Some(path) = action["add"]["path"].as_str() {
                let known = active.insert(path.to_owned(), action["add"]["size"].as_i64().unwrap());
                assert!(known.is_none(), "{path} is added once more");
            }
        }
        let Some(told) = version.iter().find_map(|action| action["commitInfo"].get("throng")) else { continue };
        let manifest = &releases[seen];
        assert_eq!(told["run"], manifest.run.as_str());
        let listed: BTreeMap<String, i64> =
            manifest.files.iter().map(|file| (file.path.clone(), file.size as i64)).collect();
        assert_eq!(active, listed, "what readers see is not what the manifest lists");
        seen += 1;
    }
    assert_eq!(seen, releases.len());
}

#[tokio::test]
async fn a_night_adds_what_is_new_and_removes_what_was_left() {
    let world = table(SETTINGS);
    let mut nights = vec![people(1, 60), people(1, 90)];
    world.night("monday", &nights[0]).await;
    let tuesday = world.night("tuesday", &nights[1]).await;
    let paths = |version: &[Value], action: &str| -> Vec<String> {
        version.iter().filter_map(|line| line[action]["path"].as_str().map(str::to_owned)).collect()
    };
    let log = versions(&world).await;
    assert_eq!(log.len(), 2);
    assert!(paths(&log[1], "remove").is_empty(), "files of living classes stay");
    assert_eq!(paths(&log[1], "add").len(), tuesday.files.len() - paths(&log[0], "add").len());
    // Half of the first night's people leave: files that rows have left are exchanged, and no other.
    let mut fewer = people(1, 90);
    fewer.retain(|person| person.id % 2 == 0 || person.id > 60);
    nights.push(fewer);
    let wednesday = world.night("wednesday", &nights[2]).await;
    assert!(wednesday.series.as_ref().unwrap().counts.retired_classes > 0);
    let log = versions(&world).await;
    let mut removed = paths(&log[2], "remove");
    removed.sort();
    let mut expected: Vec<String> =
        tuesday.files.iter().filter(|file| !wednesday.files.contains(file)).map(|file| file.path.clone()).collect();
    expected.sort();
    assert!(!removed.is_empty() && removed.len() < tuesday.files.len(), "{removed:?}");
    assert_eq!(removed, expected);
    recount(&world, &nights).await;
    assert!(!log[2].iter().any(|line| line.get("metaData").is_some()), "the table itself is as it was");
    // The same run again.
    assert!(matches!(world.run("wednesday").await, Ok(Outcome::AlreadyDone(_))));
    assert_eq!(versions(&world).await.len(), 3);
}

#[tokio::test]
async fn a_table_that_shrinks_to_nothing_and_comes_back() {
    let world = table("max-loss = 1.0\nreserve = 1.0\n");
    let nights = [Vec::new(), people(1, 30), Vec::new(), people(100, 30)];
    for (number, people) in nights.iter().enumerate() {
        world.night(&format!("night-{number}"), people).await;
        recount(&world, &nights[..=number]).await;
    }
}

/// Rows without an identity: every file of the source is read once, and nothing ever leaves the table.
#[tokio::test]
async fn files_of_rows_come_into_a_table_once() {
    let world = World::of_files("max-loss = 1.0\nreserve = 1.0\n").in_table(true);
    let files = [people(1, 30), people(31, 2), people(33, 1), people(34, 20)];
    for (at, file) in files.iter().enumerate() {
        world.add_file(&format!("night-{at}.parquet"), file).await;
        released(world.run(&format!("night-{at}")).await);
        super::files::recount(&world, &files[..=at]).await;
    }
    // A night on which nothing has come.
    let again = released(world.run("again").await);
    assert_eq!(again.rows, 53);
    recount_log(&world, &world.releases().await).await;
    let log = versions(&world).await;
    assert_eq!(log.len(), 5);
    assert!(!log.iter().flatten().any(|action| action.get("remove").is_some()));
    assert!(!log[4].iter().any(|action| action.get("add").is_some()));
}

/// Two runs of the same night, and of the first one: one makes the release, the other is told to try again.
#[tokio::test]
async fn of_runs_that_race_one_wins() {
    let world = table(SETTINGS);
    let nights = [people(1, 60), second_night()];
    for (number, people) in nights.iter().enumerate() {
        world.dawn(people).await;
        let (one, other) = (format!("one-{number}"), format!("other-{number}"));
        let (one, other) = tokio::join!(world.run(&one), world.run(&other));
        let outcomes = [one, other];
        let lost: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
        assert!(lost.len() == 1 && lost[0].kind() == ErrorKind::Retry, "{outcomes:?}");
        assert!(lost[0].to_string().contains("at the same moment"), "{lost:?}");
        assert_eq!(world.releases().await.len(), number + 1);
        recount(&world, &nights[..=number]).await;
    }
    // The series goes on.
    let nights = [&nights[..], &nights[1..]].concat();
    world.night("wednesday", &nights[2]).await;
    recount(&world, &nights).await;
}

/// What others do to the table between two nights.
#[tokio::test]
async fn a_table_that_somebody_else_has_written_to_is_refused() {
    let store = Arc::new(InMemory::new());
    let first = World::on(Arc::clone(&store) as _, SETTINGS).in_table(true);
    let monday = first.night("monday", &people(1, 60)).await;
    first.dawn(&second_night()).await;
    let file = &monday.files[0];
    let info = json!({ "commitInfo": { "timestamp": 0, "operation": "SOMETHING" } });
    let remove = json!({ "remove": { "path": file.path, "deletionTimestamp": 0, "dataChange": true } });
    let add = |path: &str| {
        json!({ "add": { "path": path, "partitionValues": {}, "size": file.size, "modificationTime": 0,
                                            "dataChange": true } })
    };
    for (what, actions) in [
        ("append", vec![info.clone(), add("foreign.parquet")]),
        ("delete", vec![info.clone(), remove.clone()]),
        ("compact", vec![info.clone(), remove, add("compacted.parquet")]),
    ] {
        let world = first.through(Arc::new(store.fork()) as Arc<dyn ObjectStore>);
        append_version(&world, &actions).await;
        let before = count(&world).await;
        let refused = world.run("tuesday").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{what}: {refused}");
        assert!(refused.to_string().contains("RESTORE the table to version 0"), "{what}: {refused}");
        assert_eq!(count(&world).await, before, "{what}: nothing stays staged");
    }
    // A version that changes no file, as VACUUM writes it.
    let world = first.through(Arc::new(store.fork()) as Arc<dyn ObjectStore>);
    append_version(&world, &[info]).await;
    assert!(matches!(world.run("tuesday").await, Ok(Outcome::Released(..))));
    // A file that VACUUM, or somebody, has taken although the newest version lists it.
    let world = first.through(Arc::new(store.fork()) as Arc<dyn ObjectStore>);
    world.store.delete(&world.sink().at(&file.path)).await.unwrap();
    let refused = world.run("tuesday").await.unwrap_err();
    assert!(refused.kind() == ErrorKind::Conflict && refused.to_string().contains("lacks 1 of its"), "{refused}");
    // Another table in the place of this one.
    let world = first.through(Arc::new(store.fork()) as Arc<dyn ObjectStore>);
    let schema = versions(&world).await[0].iter().find(|line| line.get("metaData").is_some()).unwrap().clone();
    let mut metadata = schema;
    metadata["metaData"]["configuration"] = json!({});
    append_version(&world, &[metadata]).await;
    let refused = world.run("tuesday").await.unwrap_err();
    assert!(refused.kind() == ErrorKind::Conflict && refused.to_string().contains("other than releases"), "{refused}");
}

async fn count(world: &World) -> usize {
    use futures::TryStreamExt;
    world.store.list(None).try_collect::<Vec<_>>().await.unwrap().len()
}

/// RESTORE shows an earlier night again and forgets nothing: the next night goes on from the newest one.
#[tokio::test]
async fn a_restored_table_goes_on_from_the_newest_release() {
    let world = table(SETTINGS);
    let mut nights = vec![people(1, 60), second_night()];
    let monday = world.night("monday", &nights[0]).await;
    let tuesday = world.night("tuesday", &nights[1]).await;
    let refused = rollback(&world.sink(), "monday").await.unwrap_err().to_string();
    assert!(refused.contains("RESTORE") && refused.contains("goes on from its newest release"), "{refused}");
    let add = |file: &throng::releases::OutputFile| {
        json!({ "add": { "path": file.path, "partitionValues": {}, "size": file.size, "modificationTime": 0,
                         "dataChange": true } })
    };
    let remove = |file: &throng::releases::OutputFile| json!({ "remove": { "path": file.path, "deletionTimestamp": 0, "dataChange": true } });
    let gone = tuesday.files.iter().filter(|file| !monday.files.contains(file)).map(remove);
    let back = monday.files.iter().filter(|file| !tuesday.files.contains(file)).map(add);
    let mut actions = vec![json!({ "commitInfo": { "timestamp": 0, "operation": "RESTORE" } })];
    actions.extend(gone.chain(back));
    append_version(&world, &actions).await;
    nights.push(people(30, 60));
    world.night("wednesday", &nights[2]).await;
    recount(&world, &nights).await;
    assert_eq!(latest_run(&world.sink()).await.unwrap().as_deref(), Some("wednesday"));
}

/// Two sinks must not share one ledger; a release that stands is not forgotten silently.
#[tokio::test]
async fn a_ledger_that_belongs_to_another_release_is_noticed() {
    let world = table(SETTINGS);
    world.night("monday", &people(1, 60)).await;
    let log = versions(&world).await;
    let mut version: Vec<Value> = log[0].clone();
    for line in &mut version {
        if let Some(manifest) = line.get_mut("commitInfo").and_then(|info| info.get_mut("throng")) {
            manifest["series"]["ledger"] = json!("0".repeat(64));
        }
    }
    let lines: Vec<String> = version.iter().map(Value::to_string).collect();
    let path = world.sink().at("_delta_log/00000000000000000000.json");
    world.store.put(&path, PutPayload::from(lines.join("\n"))).await.unwrap();
    let refused = world.run("tuesday").await.unwrap_err();
    assert!(refused.kind() == ErrorKind::Conflict && refused.to_string().contains("another ledger"), "{refused}");
    assert_eq!(releases(&world.sink()).await.unwrap().len(), 1);
}

const SERIES: &str = "[series]\nsubject = [\"id\"]\nstate = \"ledger\"\nkey-file = \"key\"\nmax-loss = 1.0\nreserve = 1.0\n\
                      dissolve = true\n";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("key", "0123456789abcdef0123456789abcdef");
    desk.write(
        "job.toml",
        &format!(
            "version = 1\nsource.url = \"in.parquet\"\nsink = {{ url = \"out\", format = \"delta\" }}\n{JOB}{SERIES}"
        ),
    );
    desk
}

fn night(desk: &Desk, run: &str, from: usize, rows: usize) {
    write_parquet(&desk.path("in.parquet"), &batch(columns(from + rows)).slice(from, rows));
    desk.run(&["--run-id", run]).ok();
    fs::copy(desk.path("in.parquet"), desk.path(&format!("{run}.parquet"))).unwrap();
}

/// The ids that delta-rs reads from a version of a table, or from the newest one.
async fn read_by_delta_rs(table: &Path, version: Option<u64>) -> Vec<i64> {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Int64Type;

    let url = url::Url::from_directory_path(table).unwrap();
    let mut table = deltalake_core::open_table(url).await.unwrap();
    if let Some(version) = version {
        table.load_version(version).await.unwrap();
    }
    let (context, _spill) = SessionOptions::default().open().unwrap();
    table.update_datafusion_session(&context.state()).unwrap();
    context.register_table("t", table.table_provider().await.unwrap()).unwrap();
    let rows = context.sql("SELECT id FROM t ORDER BY id").await.unwrap().collect().await.unwrap();
    rows.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

/// The ids that Python's deltalake reads from every version.
#[cfg(feature = "test-servers")]
fn read_by_others(table: &str) -> Option<Vec<Vec<i64>>> {
    Some(serde_json::from_str(&crate::stores::python("delta.py", &[table])).unwrap())
}

#[cfg(not(feature = "test-servers"))]
fn read_by_others(_table: &str) -> Option<Vec<Vec<i64>>> {
    None
}

#[test]
fn nights_in_a_table_are_read_by_others() {
    let desk = desk();
    night(&desk, "monday", 0, 60);
    desk.throng("check", &[]).ok();
    night(&desk, "tuesday", 0, 90);
    night(&desk, "wednesday", 45, 75);
    let out = desk.path("out");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let seen: Vec<Vec<i64>> = runtime.block_on(async {
        let mut seen = Vec::new();
        for version in 0..3 {
            seen.push(read_by_delta_rs(&out, Some(version)).await);
        }
        assert_eq!(read_by_delta_rs(&out, None).await, seen[2]);
        seen
    });
    assert_eq!(seen[0], (FIRST_ID..FIRST_ID + 60).collect::<Vec<_>>());
    assert!(seen[0].iter().all(|id| seen[1].contains(id)) && seen[1].len() > 60);
    assert_ne!(seen[2], seen[1]);
    if let Some(others) = read_by_others(&desk.name("out")) {
        assert_eq!(others, seen);
    }
    // Our own commands.
    desk.throng("verify", &[]).ok();
    throng(&["verify", &desk.name("out")]).ok();
    assert!(throng(&["verify", &desk.name("out"), "--series"]).ok().out.contains("3 releases hold"));
    assert!(desk.throng("verify", &["--series"]).ok().out.contains("every rule"));
    let mut attacked = vec!["--series", "--subject", "id"];
    let there = ["monday", "tuesday", "wednesday"].map(|run| desk.name(&format!("{run}.parquet")));
    there.iter().for_each(|night| attacked.extend(["--public", night]));
    desk.throng("attack", &attacked).ok();
    write_parquet(&desk.path("erased.parquet"), &batch(columns(5)));
    let told = desk.throng("forget", &["--subjects", &desk.name("erased.parquet"), "--json"]).ok().out;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["releases"], json!([["monday", 5], ["tuesday", 5], ["wednesday", 5]]), "{told}");
    throng(&["rollback", &desk.name("out"), "monday"]).refused(7, &["version 0", "RESTORE", "newest release"]);
    throng(&["gc", &desk.name("out")]).refused(7, &["VACUUM"]);
    // Given the job, it removes old versions of the ledger and leaves the table alone.
    let before = crate::support::files(&out);
    let collected = desk.throng("gc", &["--older-than", "0"]).ok();
    assert!(collected.err.contains("VACUUM"), "{collected:?}");
    assert!(collected.out.lines().count() > 0 && collected.out.lines().all(|line| line.starts_with("series.state: ")));
    assert_eq!(crate::support::files(&out), before);
    let listed = throng(&["releases", &desk.name("out"), "--json"]).ok().out;
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.iter().map(|release| release["series"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
}

/// What VACUUM takes is missed by nobody: the series goes on, and earlier nights that lack files are not compared.
#[test]
fn a_series_goes_on_after_a_vacuum() {
    let desk = desk();
    night(&desk, "monday", 0, 60);
    night(&desk, "tuesday", 45, 75);
    let newest = crate::support::files(&desk.path("out"));
    let listed: Value = serde_json::from_str(&throng(&["releases", &desk.name("out"), "--json"]).ok().out).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let log = fs::read_to_string(desk.path("out/_delta_log/00000000000000000001.json")).unwrap();
    let removed: Vec<String> = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).unwrap()["remove"]["path"].as_str().map(str::to_owned))
        .collect();
    assert!(!removed.is_empty(), "rows have left a file of the first night: {newest:?}");
    for path in removed {
        fs::remove_file(desk.path("out").join(path)).unwrap();
    }
    let checked = throng(&["verify", &desk.name("out"), "--series"]).ok();
    assert!(checked.out.contains("1 releases hold") && checked.err.contains("VACUUM"), "{checked:?}");
    night(&desk, "wednesday", 45, 90);
    desk.throng("verify", &[]).ok();
    assert!(throng(&["verify", &desk.name("out"), "--series"]).ok().out.contains("2 releases hold"));
}
