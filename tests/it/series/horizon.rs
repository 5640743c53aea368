//! Releases that are older than the horizon are removed, and what only they showed is forgotten.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use serde_json::Value;
use throng::releases::{collect_garbage, latest_run, rollback};

use super::world::{Person, World, people, recount, recount_kept};
use crate::support::{Desk, batch, files, throng, write_parquet};
use crate::tables;

const HOUR: &str = "max-loss = 1.0\nreserve = 1.0\nhorizon = \"1h\"\n";

/// Lets some releases be two hours old, as far as their manifests say.
async fn age(world: &World, numbers: &BTreeSet<u64>) {
    for mut manifest in world.releases().await {
        if !numbers.contains(&manifest.series.as_ref().unwrap().number) {
            continue;
        }
        let old = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(2);
        manifest.committed = old.to_string();
        let path = world.sink().at(&format!("_manifest/{}.json", manifest.run));
        world.store.put(&path, serde_json::to_vec_pretty(&manifest).unwrap().into()).await.unwrap();
    }
}

/// Removes what is too old; the releases that are left.
async fn collect(world: &World) -> Vec<u64> {
    let would = collect_garbage(&world.sink(), Duration::ZERO, true).await.unwrap();
    let removed = collect_garbage(&world.sink(), Duration::ZERO, false).await.unwrap();
    assert_eq!(would, removed, "a dry run finds what is removed");
    let mut left = Vec::new();
    for manifest in world.releases().await {
        for file in &manifest.files {
            assert!(
                world.store.head(&world.sink().at(&file.path)).await.is_ok(),
                "{} lacks {}",
                manifest.run,
                file.path
            );
        }
        left.push(manifest.series.unwrap().number);
    }
    assert_eq!(collect_garbage(&world.sink(), Duration::ZERO, false).await.unwrap(), [], "once is enough");
    left
}

async fn counts(world: &World) -> throng::releases::SeriesCounts {
    world.releases().await.last().unwrap().series.as_ref().unwrap().counts
}

#[tokio::test]
async fn old_releases_go_and_the_newest_stays_however_old_it_is() {
    let world = World::new(HOUR);
    let mut nights = vec![people(1, 30), people(1, 60), people(31, 60), people(31, 90)];
    for (number, people) in nights.iter().enumerate() {
        let made = world.night(&format!("night-{number}"), people).await;
        assert!(made.warnings.iter().any(|warning| warning.contains("did not keep releases")), "{:?}", made.warnings);
    }
    recount(&world, &nights).await;
    assert_eq!(collect(&world).await, [1, 2, 3, 4], "nothing is old yet");
    age(&world, &[1, 2].into()).await;
    assert_eq!(collect(&world).await, [3, 4]);
    recount_kept(&world, &nights).await;
    nights.push(people(40, 90));
    let made = world.night("night-4", &nights[4]).await;
    assert!(made.warnings.iter().any(|warning| warning.contains("since number 3")), "{:?}", made.warnings);
    recount_kept(&world, &nights).await;
    // Readers see an earlier one; it stays for them, and the newest stays for the next run.
    rollback(&world.sink(), "night-2").await.unwrap();
    age(&world, &[3, 4, 5].into()).await;
    assert_eq!(collect(&world).await, [3, 5]);
    assert_eq!(latest_run(&world.sink()).await.unwrap().as_deref(), Some("night-2"));
    nights.push(people(41, 90));
    world.night("night-5", &nights[5]).await;
    assert_eq!(collect(&world).await, [6], "all others are old");
    nights.push(people(41, 95));
    world.night("night-6", &nights[6]).await;
    recount_kept(&world, &nights).await;
}

#[tokio::test]
async fn without_a_horizon_nothing_is_forgotten() {
    let world = World::new("max-loss = 1.0\nreserve = 1.0\n");
    let nights = [people(1, 30), people(31, 60), people(31, 60)];
    for (number, people) in nights.iter().enumerate() {
        world.night(&format!("night-{number}"), people).await;
    }
    age(&world, &[1, 2, 3].into()).await;
    assert_eq!(collect(&world).await, [1, 2, 3]);
}

/// Who has left with a class may be published anew when the last release that showed them is gone, and one more.
#[tokio::test]
async fn who_has_left_before_the_horizon_is_unknown() {
    let world = World::new(HOUR);
    let nights = vec![people(1, 30), Vec::new(), people(1, 30), people(1, 30), people(1, 30)];
    for (number, people) in nights[..3].iter().enumerate() {
        world.night(&format!("night-{number}"), people).await;
    }
    assert_eq!(counts(&world).await.withheld, 30);
    age(&world, &[1].into()).await;
    assert_eq!(collect(&world).await, [2, 3]);
    world.night("night-3", &nights[3]).await;
    assert_eq!(counts(&world).await.withheld, 30, "they have left in release 2, which is there");
    age(&world, &[2].into()).await;
    assert_eq!(collect(&world).await, [3, 4]);
    world.night("night-4", &nights[4]).await;
    assert_eq!((counts(&world).await.withheld, counts(&world).await.new), (0, 30));
    recount_kept(&world, &nights).await;
}

/// Random nights with removals between them: the promise holds for whoever has kept what is still there.
#[test]
fn the_promise_holds_for_readers_inside_the_horizon() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let wanted: u64 = std::env::var("THRONG_SERIES_HORIZON").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let (mut anew, mut removals) = (0, 0);
    for seed in 0..wanted {
        let found = runtime.block_on(async { tokio::spawn(series(seed)).await });
        let found = found.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        anew += found.0;
        removals += found.1;
    }
    println!("{wanted} series: {removals} releases removed, {anew} people published anew");
    assert!(wanted < 6 || anew > 0 && removals > 0, "{anew} {removals}");
}

/// One series: people published anew after they were forgotten, and releases that were removed.
async fn series(seed: u64) -> (usize, usize) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let world = World::new(&format!("{HOUR}retire-at = 0.3\ndissolve = true\n"));
    let (mut nights, mut ever): (Vec<Vec<Person>>, BTreeSet<i64>) = (Vec::new(), BTreeSet::new());
    let (mut anew, mut removed) = (0, 0);
    for number in 0..8_usize {
        // Most come back sooner or later.
        let mut night = people(1, 60);
        night.retain(|_| rng.u8(0..100) < 65);
        for person in &mut night {
            if rng.u8(0..100) < 10 {
                person.ill = rng.u8(0..5);
            }
        }
        nights.push(night);
        let made = world.night(&format!("night-{number}"), &nights[number]).await;
        let born = made.series.as_ref().unwrap().number;
        let fresh: Vec<i64> = world.rows(&made).await.iter().filter(|row| row.born == born).map(|row| row.id).collect();
        let series = made.series.as_ref().unwrap().counts;
        let known = fresh.iter().filter(|id| ever.contains(id)).count();
        anew += known.saturating_sub(series.returned as usize);
        ever.extend(fresh);
        recount_kept(&world, &nights).await;
        if rng.bool() {
            let kept = rng.u64(1..4);
            age(&world, &(1..=born.saturating_sub(kept)).collect()).await;
            let before = world.releases().await.len();
            removed += before - collect(&world).await.len();
            recount_kept(&world, &nights).await;
        }
    }
    (anew, removed)
}

/// A ledger of before there were horizons is read, and nothing of it is forgotten.
#[tokio::test]
async fn a_ledger_without_the_last_move_is_read() {
    let world = World::new(HOUR);
    let mut nights = vec![people(1, 30), people(31, 30), people(1, 60)];
    for (number, people) in nights.iter().enumerate() {
        world.night(&format!("night-{number}"), people).await;
    }
    let withheld = counts(&world).await.withheld;
    assert_eq!(withheld, 30);
    drop_column(&world, "moved").await;
    age(&world, &[1, 2].into()).await;
    assert_eq!(collect(&world).await, [3]);
    nights.push(people(1, 60));
    world.night("night-3", &nights[3]).await;
    assert_eq!(counts(&world).await.withheld, withheld, "nobody knows when they left");
    recount_kept(&world, &nights).await;
}

/// Writes the newest version of the ledger without a column, as another program would have done.
async fn drop_column(world: &World, column: &str) {
    let mut newest = world.releases().await.pop().unwrap();
    let series = newest.series.as_mut().unwrap();
    let pointer = world.open("s3://lake/private/ledger").at(&format!("pointer/{:08}.json", series.number));
    let read = |path: Path| async move { world.store.get(&path).await.unwrap().bytes().await.unwrap() };
    let mut said: Value = serde_json::from_slice(&read(pointer.clone()).await).unwrap();
    let folder = said["folder"].as_str().unwrap().to_owned();
    let at = |name: &str| world.open("s3://lake/private/ledger").at(&format!("{folder}/{name}"));
    let mut version: Value = serde_json::from_slice(&read(at("version.json")).await).unwrap();
    let ledger = read(at("part-00000.parquet")).await;
    let mut rows = ParquetRecordBatchReaderBuilder::try_new(ledger).unwrap().build().unwrap();
    let rows = rows.next().unwrap().unwrap();
    let kept: Vec<usize> = (0..rows.num_columns()).filter(|at| rows.schema().field(*at).name() != column).collect();
    assert_eq!(kept.len(), rows.num_columns() - 1);
    let rows = rows.project(&kept).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    version["files"][0]["blake3"] = blake3::hash(&bytes).to_hex().to_string().into();
    world.store.put(&at("part-00000.parquet"), bytes.into()).await.unwrap();
    let version = serde_json::to_vec_pretty(&version).unwrap();
    let digest = blake3::hash(&version).to_hex().to_string();
    world.store.put(&at("version.json"), version.into()).await.unwrap();
    said["digest"] = digest.clone().into();
    world.store.put(&pointer, serde_json::to_vec_pretty(&said).unwrap().into()).await.unwrap();
    series.ledger = digest;
    let path = world.sink().at(&format!("_manifest/{}.json", newest.run));
    world.store.put(&path, serde_json::to_vec_pretty(&newest).unwrap().into()).await.unwrap();
}

/// The ledger keeps the version in force and the one before; given the job, `throng gc` leaves the one in force.
#[test]
fn old_versions_of_the_ledger_go_on_a_local_disk() {
    let desk = Desk::new();
    desk.write("key", "0123456789abcdef0123456789abcdef");
    let rules = tables::JOB.replace("id.role = \"kept\"", "id.role = \"identifier\"");
    let series =
        "[series]\nsubject = [\"id\"]\nstate = \"ledger\"\nkey-file = \"key\"\nmax-loss = 1.0\nhorizon = \"1h\"\n";
    desk.write("job.toml", &format!("version = 1\nsource.url = \"in.parquet\"\nsink.url = \"out\"\n{rules}{series}"));
    let versions = || {
        let found = files(&desk.path("ledger/version"));
        found.iter().filter(|file| file.ends_with("version.json")).count()
    };
    for (run, rows) in [("monday", 60), ("tuesday", 90), ("wednesday", 120)] {
        write_parquet(&desk.path("in.parquet"), &batch(tables::people(rows)));
        desk.run(&["--run-id", run]).ok();
    }
    assert_eq!(versions(), 2);
    for run in ["monday", "wednesday"] {
        let path = desk.path(&format!("out/_manifest/{run}.json"));
        let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        manifest["committed"] = "2020-01-01T00:00:00Z".into();
        fs::write(&path, manifest.to_string()).unwrap();
    }
    let would = desk.throng("gc", &["--older-than", "0", "--dry-run"]).ok().out;
    assert!(would.contains("_manifest/monday.json") && !would.contains("wednesday"), "{would}");
    assert!(would.contains("series.state: version/"), "{would}");
    assert_eq!(versions(), 2, "a dry run removes nothing");
    assert_eq!(desk.throng("gc", &["--older-than", "0"]).ok().out, would);
    assert_eq!(versions(), 1);
    let listed = throng(&["releases", &desk.name("out"), "--json"]).ok().out;
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let numbers: BTreeSet<u64> = listed.iter().map(|release| release["series"].as_u64().unwrap()).collect();
    assert_eq!(numbers, BTreeSet::from([2, 3]));
    desk.throng("verify", &[]).ok();
    desk.throng("verify", &["--series"]).ok();
    write_parquet(&desk.path("in.parquet"), &batch(tables::people(150)));
    desk.run(&["--run-id", "thursday"]).ok();
    desk.throng("verify", &[]).ok();
    let young = desk.throng("gc", &["--older-than", "24"]).ok().out;
    assert_eq!(
        young.lines().collect::<Vec<_>>(),
        ["_manifest/wednesday.json"],
        "files and versions that are young stay"
    );
}
