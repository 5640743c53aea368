//! Series of rows without an identity: every file of the source is read once, and every row is published once or never.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use throng::releases::SeriesCounts;
use throng::{ErrorKind, Manifest, Outcome};

use super::stopping::{Stop, killed};
use super::world::{Person, Row, World, check_difference, check_histories, people, released, shown};
use crate::support::{Desk, batch, multiset, write_parquet};
use crate::tables;

const PROMPT: &str = "max-loss = 1.0\nreserve = 1.0\n";

fn counts(manifest: &Manifest) -> SeriesCounts {
    manifest.series.as_ref().unwrap().counts
}

/// Publishes a night that adds a file.
async fn night(world: &World, file: &str, people: &[Person]) -> Manifest {
    world.add_file(&format!("{file}.parquet"), people).await;
    released(world.run(file).await)
}

/// Asserts by brute force that every row that was read is published once, waits or is suppressed, and that the promise holds.
/// The number of a row is published, so that a test knows it again; the job does not know that it is one.
pub async fn recount(world: &World, files: &[Vec<Person>]) {
    let releases = world.releases().await;
    assert_eq!(releases.len(), files.len(), "one release for every file");
    let shown = shown(world, &releases).await;
    check_histories(&shown);
    let mut read: BTreeMap<i64, Person> = BTreeMap::new();
    for (at, manifest) in releases.iter().enumerate() {
        for person in &files[at] {
            assert!(read.insert(person.id, *person).is_none(), "a file of the test repeats a row");
        }
        let counts = counts(manifest);
        let known = manifest.rows + counts.waiting + counts.suppressed;
        assert_eq!(known, read.len() as u64, "nothing is lost: {counts:?}");
        assert_eq!(manifest.rows_read, manifest.rows + counts.suppressed);
        shown[at].values().for_each(|row| row.assert_true(&read[&row.id]));
        if at > 0 {
            check_difference(&shown[at - 1], &shown[at]);
            assert!(shown[at - 1].iter().all(|(id, row)| shown[at].get(id) == Some(row)), "what is published stays");
        }
    }
}

/// The rows that wait in the newest version of the ledger, as the state keeps them.
async fn waiting_files(world: &World) -> Vec<Path> {
    let versions = Path::from("private/ledger/version");
    let listed: Vec<_> = world.store.list(Some(&versions)).try_collect().await.unwrap();
    let mut waiting: Vec<Path> = listed
        .into_iter()
        .map(|meta| meta.location)
        .filter(|path| path.as_ref().ends_with("waiting.parquet"))
        .collect();
    waiting.sort();
    waiting
}

#[tokio::test]
async fn every_file_is_read_once_and_who_waits_is_published_later() {
    let world = World::of_files(PROMPT);
    let files = [people(1, 30), people(31, 2), people(33, 1), people(34, 20)];
    let mut found = Vec::new();
    for (at, file) in files.iter().enumerate() {
        found.push(night(&world, &format!("night-{at}"), file).await);
        recount(&world, &files[..=at]).await;
    }
    let arrived: Vec<_> = found.iter().map(|manifest| (counts(manifest).new, counts(manifest).waiting)).collect();
    assert_eq!(arrived[..2], [(30, 0), (0, 2)]);
    assert_eq!(found[3].rows, 53, "everybody in the end: {arrived:?}");
    // Nothing new: the same files again.
    let again = released(world.run("again").await);
    assert_eq!((again.rows, counts(&again).new), (53, 0));
    assert_eq!(again.files, found[3].files);
    assert_eq!(waiting_files(&world).await.len(), 2, "this version and the one before");
}

#[tokio::test]
async fn who_has_waited_too_long_is_suppressed_and_leaves_the_state() {
    let world = World::of_files("max-loss = 1.0\nreserve = 1.0\nmax-wait = 1\n");
    let files = [people(1, 2), people(3, 30), people(33, 1), Vec::new(), Vec::new()];
    for (at, file) in files.iter().enumerate() {
        night(&world, &format!("night-{at}"), file).await;
        recount(&world, &files[..=at]).await;
    }
    let changes: Vec<_> =
        world.releases().await.iter().map(|made| (made.rows, counts(made).waiting, counts(made).suppressed)).collect();
    assert_eq!(changes, [(0, 2, 0), (32, 0, 0), (32, 1, 0), (32, 0, 1), (32, 0, 1)]);
    // What was suppressed is not there any more when others come.
    let last = night(&world, "night-5", &people(40, 30)).await;
    assert_eq!((last.rows, counts(&last).suppressed), (62, 1));
    let rows = world.rows(&last).await;
    assert!(rows.iter().all(|row: &Row| row.id != 33), "once or never");
}

#[tokio::test]
async fn what_has_happened_to_a_file_that_was_read_ends_the_run() {
    let world = World::of_files(PROMPT);
    night(&world, "monday", &people(1, 30)).await;
    night(&world, "tuesday", &people(31, 30)).await;
    world.add_file("wednesday.parquet", &people(61, 30)).await;
    world.add_file("monday.parquet", &people(1, 31)).await;
    let refused = world.run("wednesday").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    for words in ["monday.parquet", "is not as release 1", "put it back"] {
        assert!(refused.to_string().contains(words), "{refused}");
    }
    for file in ["monday", "tuesday"] {
        world.store.delete(&world.open("s3://lake/in").at(&format!("{file}.parquet"))).await.unwrap();
    }
    let refused = world.run("wednesday").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Input, "{refused}");
    assert!(refused.to_string().contains("and another file are gone"), "{refused}");
    assert_eq!(world.releases().await.len(), 2, "nothing is published");
}

/// A kill at every write of a night that publishes who has waited; then the same run once more, or another.
#[test]
fn a_run_may_be_killed_at_any_moment() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = Arc::new(InMemory::new());
    let mut world = World::of_files(PROMPT);
    world.store = Arc::clone(&store) as _;
    let files = vec![people(1, 30), people(31, 2), people(33, 1)];
    runtime.block_on(async {
        night(&world, "monday", &files[0]).await;
        night(&world, "tuesday", &files[1]).await;
        world.add_file("wednesday.parquet", &files[2]).await;
    });
    let mut kills = 0;
    for stop in [Stop::Before, Stop::After] {
        for at in 0.. {
            let place = world.through(Arc::new(store.fork()) as Arc<dyn ObjectStore>);
            if !killed(&place, "wednesday", at, stop) {
                assert!(at > 8, "a run writes more than {at} times");
                break;
            }
            kills += 1;
            let again = if at % 2 == 0 { "wednesday" } else { "again" };
            runtime.block_on(async {
                let outcome = place.run(again).await;
                assert!(outcome.is_ok(), "{stop:?} {at}: {outcome:?}");
                let mut files = files.clone();
                // A release whose manifest was written stands, and the next one finds nothing new.
                files.resize(place.releases().await.len(), Vec::new());
                recount(&place, &files).await;
                files.push(people(60, 20));
                night(&place, "thursday", &files[files.len() - 1]).await;
                recount(&place, &files).await;
                assert_eq!(place.releases().await.last().unwrap().rows, 53);
            });
        }
    }
    println!("{kills} kills");
}

/// On the command line, in a local folder, with rows that are alike.
#[test]
fn files_of_a_folder() {
    let desk = Desk::new();
    desk.write("key", "0123456789abcdef0123456789abcdef");
    let rules = tables::JOB.replace("id.role = \"kept\"", "id.role = \"identifier\"");
    let series = "[series]\nmode = \"append\"\nstate = \"ledger\"\nkey-file = \"key\"\nmax-loss = 1.0\nreserve = 1.0\n";
    desk.write("job.toml", &format!("version = 1\nsource.url = \"in/\"\nsink.url = \"out\"\n{rules}{series}"));
    fs::create_dir(desk.path("in")).unwrap();
    let add = |name: &str, rows: usize| {
        write_parquet(&desk.path(&format!("in/{name}.parquet")), &batch(tables::people(rows)))
    };
    add("monday", 40);
    let monday = desk.run(&["--run-id", "monday"]).ok();
    assert!(monday.out.contains("40 new"), "{}", monday.out);
    let alone = multiset(&desk.released());
    desk.throng("verify", &[]).ok();
    // The same rows in another file are other rows.
    add("tuesday", 40);
    desk.run(&["--run-id", "tuesday"]).ok();
    let twice = multiset(&desk.released());
    assert_eq!((alone.len(), twice.len()), (40, 80));
    desk.throng("verify", &[]).ok();
    desk.throng("verify", &["--series"]).ok();
    assert!(desk.run(&["--run-id", "tuesday"]).ok().err.contains("has been released before"));
    // A file that is restored from a backup is the same file.
    let kept = desk.path("in/monday.parquet");
    let backup = desk.path("monday.backup");
    let modified = fs::metadata(&kept).unwrap().modified().unwrap();
    fs::rename(&kept, &backup).unwrap();
    desk.run(&["--run-id", "wednesday"]).refused(4, &["monday.parquet", "is gone", "put it back"]);
    fs::copy(&backup, &kept).unwrap();
    desk.run(&["--run-id", "wednesday"]).refused(7, &["monday.parquet", "is not as release 1"]);
    fs::File::options().write(true).open(&kept).unwrap().set_modified(modified).unwrap();
    add("wednesday", 2);
    let wednesday = desk.run(&["--run-id", "wednesday"]).ok();
    assert!(wednesday.out.contains("2 wait"), "{}", wednesday.out);
    desk.throng("verify", &[]).ok();
    let erased = desk.name("in/wednesday.parquet");
    desk.throng("forget", &["--subjects", &erased]).refused(3, &["nobody can be told from others"]);
}

/// The same rows, spread over files in another way, in another order, read by more partitions: the same release.
#[tokio::test]
async fn files_and_their_order_change_nothing() {
    let mut found = Vec::new();
    for (parts, partitions) in [(1, 1), (3, 2)] {
        let mut world = World::of_files(PROMPT);
        world.partitions = partitions;
        let mut all = people(1, 60);
        if parts > 1 {
            all.reverse();
        }
        for (at, part) in all.chunks(60 / parts).enumerate() {
            world.add_file(&format!("part-{at}.parquet"), part).await;
        }
        let made = world.run("monday").await.unwrap();
        let Outcome::Released(manifest, _) = made else { panic!("released before") };
        found.push(world.rows(&manifest).await);
    }
    assert_eq!(found[0], found[1]);
}
