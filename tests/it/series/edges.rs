//! What may happen to a table overnight.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use object_store::ObjectStoreExt;
use throng::releases::rollback;
use throng::{ErrorKind, Outcome};

use super::world::{Person, World, people, recount, released};

/// Settings by which nothing waits that could be published.
const PROMPT: &str = "max-loss = 1.0\nreserve = 1.0\n";

/// Publishes nights one after another, and recounts after each.
async fn publish(world: &World, nights: &[Vec<Person>]) {
    for (number, people) in nights.iter().enumerate() {
        world.night(&format!("night-{number}"), people).await;
        recount(world, &nights[..=number]).await;
    }
}

async fn counts(world: &World) -> throng::releases::SeriesCounts {
    world.releases().await.last().unwrap().series.as_ref().unwrap().counts
}

#[tokio::test]
async fn one_newcomer_waits_and_one_leaver_stays() {
    let world = World::new(PROMPT);
    let mut nights = vec![people(1, 30), people(1, 31)];
    publish(&world, &nights).await;
    assert_eq!((counts(&world).await.waiting, counts(&world).await.new), (1, 0));
    nights.push(people(2, 30));
    world.night("night-2", &nights[2]).await;
    recount(&world, &nights).await;
    assert_eq!((counts(&world).await.gone, counts(&world).await.retired), (1, 0));
    let mut changed = people(2, 30);
    changed[4].ill = (changed[4].ill + 1) % 5;
    nights.push(changed);
    world.night("night-3", &nights[3]).await;
    recount(&world, &nights).await;
    assert_eq!((counts(&world).await.changed, counts(&world).await.gone), (1, 1));
    // Files of living classes are listed again, and nothing was written.
    let releases = world.releases().await;
    assert!(releases.iter().all(|release| release.files == releases[0].files));
}

#[tokio::test]
async fn who_has_waited_long_enough_is_published() {
    let world = World::new("max-loss = 0.01\nmax-wait = 2\nreserve = 1.0\n");
    let nights: Vec<Vec<Person>> = (0..4).map(|_| people(1, 30)).collect();
    publish(&world, &nights).await;
    let found: Vec<(u64, u64)> = world
        .releases()
        .await
        .iter()
        .map(|release| release.series.as_ref().unwrap().counts)
        .map(|counts| (counts.new, counts.waiting))
        .collect();
    assert_eq!(found[0], (0, 30), "too much would be lost");
    assert_eq!(found[1], (0, 30));
    assert_eq!(found[2], (30, 0), "the best classes there are");
    assert_eq!(found[3], (0, 0));
}

#[tokio::test]
async fn everybody_leaves() {
    let world = World::new(PROMPT);
    let nights = vec![people(1, 30), Vec::new(), people(1, 30), people(100, 30)];
    publish(&world, &nights).await;
    let releases = world.releases().await;
    assert_eq!(releases.iter().map(|release| release.rows).collect::<Vec<_>>(), [30, 0, 0, 30]);
    assert_eq!(
        releases[2].series.as_ref().unwrap().counts.withheld,
        30,
        "who has left with a class does not come back"
    );
}

#[tokio::test]
async fn everybody_changes() {
    let world = World::new(PROMPT);
    let mut changed = people(1, 30);
    changed.iter_mut().for_each(|person| person.age += 1);
    let nights = vec![people(1, 30), changed];
    publish(&world, &nights).await;
    let found = counts(&world).await;
    assert_eq!((found.returned, found.changed, found.new), (30, 0, 0));
}

#[tokio::test]
async fn who_comes_back_in_time_is_live_again() {
    let world = World::new(PROMPT);
    let nights = vec![people(1, 30), people(2, 29), people(1, 30)];
    publish(&world, &nights).await;
    assert_eq!(counts(&world).await.gone, 0);
}

#[tokio::test]
async fn a_series_may_begin_with_nobody() {
    let world = World::new(PROMPT);
    publish(&world, &[Vec::new(), people(1, 2), people(1, 20)]).await;
    assert_eq!(counts(&world).await.new, 20);
}

#[tokio::test]
async fn subjects_must_be_told_apart() {
    let world = World::new(PROMPT);
    let mut twice = people(1, 30);
    twice.extend(people(1, 3));
    world.dawn(&twice).await;
    let refused = world.run("monday").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Input);
    assert!(refused.to_string().starts_with("3 rows of the source are of a subject that another row"), "{refused}");
    let ids: ArrayRef = Arc::new(Int64Array::from_iter((0..20).map(|id| (id > 3).then_some(id))));
    let columns: [(&str, ArrayRef); 4] = [
        ("id", ids),
        ("age", Arc::new(Int32Array::from_iter_values(0..20))),
        ("town", Arc::new(StringArray::from_iter_values((0..20).map(|_| "town")))),
        ("ill", Arc::new(StringArray::from_iter_values((0..20).map(|id| format!("ill-{}", id % 3))))),
    ];
    world
        .write(RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap())
        .await;
    let refused = world.run("monday").await.unwrap_err();
    assert!(refused.to_string().starts_with("4 rows of the source do not say whose they are"), "{refused}");
    assert!(world.releases().await.is_empty());
}

/// Lost, foreign and damaged ledgers, and keys that are not theirs.
#[tokio::test]
async fn a_ledger_that_does_not_fit_ends_the_run() {
    let refused = |world: World, words: &'static str| async move {
        world.dawn(&people(1, 40)).await;
        let refused = world.run("tuesday").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
        assert!(refused.to_string().contains(words), "{refused}");
        assert!(refused.to_string().contains("begin a new series") || words.contains("key"), "{refused}");
    };
    let fresh = || async {
        let world = World::new(PROMPT);
        world.night("monday", &people(1, 30)).await;
        world
    };
    let remove = |world: &World, prefix: &str| {
        let (store, prefix) = (Arc::clone(&world.store), object_store::path::Path::from(prefix));
        async move {
            use futures::TryStreamExt;
            let listed: Vec<_> = store.list(Some(&prefix)).try_collect().await.unwrap();
            assert!(!listed.is_empty());
            for meta in listed {
                store.delete(&meta.location).await.unwrap();
            }
        }
    };
    let world = fresh().await;
    remove(&world, "private").await;
    refused(world, "it lacks the version that belongs to release 1").await;
    let world = fresh().await;
    remove(&world, "private/ledger/version").await;
    refused(world, "the version that its pointer names is gone").await;
    let world = fresh().await;
    remove(&world, "out").await;
    refused(world, "the sink holds none of them").await;
    let world = fresh().await;
    world.change_key();
    refused(world, "the key of the series is not the one").await;
    // The ledger of another series.
    let (world, other) = (fresh().await, World::new(PROMPT));
    other.night("monday", &people(5, 30)).await;
    for (meta, bytes) in all_objects(&other, "private").await {
        world.store.put(&meta, bytes.into()).await.unwrap();
    }
    refused(world, "does not fit the sink").await;
}

async fn all_objects(world: &World, folder: &str) -> Vec<(object_store::path::Path, bytes::Bytes)> {
    use futures::TryStreamExt;
    let folder = object_store::path::Path::from(folder);
    let listed: Vec<_> = world.store.list(Some(&folder)).try_collect().await.unwrap();
    let mut found = Vec::new();
    for meta in listed {
        found.push((meta.location.clone(), world.store.get(&meta.location).await.unwrap().bytes().await.unwrap()));
    }
    found
}

#[tokio::test]
async fn rules_only_become_stricter() {
    let mut world = World::new(PROMPT);
    world.night("monday", &people(1, 30)).await;
    world.rules = world.rules.replace("k = 3", "k = 2");
    world.dawn(&people(1, 40)).await;
    let refused = world.run("tuesday").await.unwrap_err();
    assert!(refused.kind() == ErrorKind::Conflict && refused.to_string().contains("k was 3 and is 2"), "{refused}");
    world.rules = world.rules.replace("k = 2", "k = 9");
    let nights = vec![people(1, 30), people(1, 50)];
    let tuesday = world.night("tuesday", &nights[1]).await;
    recount(&world, &nights).await;
    let series = tuesday.series.unwrap();
    assert_eq!((tuesday.k, series.k, series.counts.new), (3, 9, 20), "old classes are as they were");
    let born: Vec<_> = world.rows(world.releases().await.last().unwrap()).await;
    let classes = crate::support::counts(
        born.iter().filter(|row| row.born == 2).map(|row| format!("{:?}", row.class())).collect(),
    );
    assert!(classes.values().all(|size| *size >= 9), "{classes:?}");
}

#[tokio::test]
async fn of_two_runs_that_race_one_wins() {
    let world = World::new(PROMPT);
    world.night("monday", &people(1, 30)).await;
    world.dawn(&people(1, 60)).await;
    let (one, two) = tokio::join!(world.run("one"), world.run("two"));
    let won = [&one, &two].into_iter().filter(|outcome| matches!(outcome, Ok(Outcome::Released(..)))).count();
    assert!(won >= 1, "{one:?} {two:?}");
    for lost in [one, two].into_iter().filter_map(Result::err) {
        assert!([ErrorKind::Retry, ErrorKind::Conflict].contains(&lost.kind()), "{lost}");
    }
    let nights = vec![people(1, 30); 1].into_iter().chain(std::iter::repeat_n(people(1, 60), won)).collect::<Vec<_>>();
    recount(&world, &nights).await;
    let again = world.run("three").await;
    assert!(again.is_ok(), "{again:?}");
}

#[tokio::test]
async fn a_rollback_forgets_nothing() {
    let world = World::new(PROMPT);
    let mut nights = vec![people(1, 30), people(1, 60)];
    publish(&world, &nights).await;
    rollback(&world.sink(), "night-0").await.unwrap();
    nights.push(people(1, 61));
    let manifest = world.night("night-2", &nights[2]).await;
    recount(&world, &nights).await;
    assert_eq!((manifest.rows, manifest.series.unwrap().number), (60, 3), "who was published stays published");
    assert_eq!(throng::releases::latest_run(&world.sink()).await.unwrap().as_deref(), Some("night-2"));
}

#[tokio::test]
async fn rows_of_an_append_series_are_published_once() {
    let world = World::new(&format!("mode = \"append\"\n{PROMPT}"));
    let first = world.night("monday", &people(1, 30)).await;
    // The next part holds some rows again, one of them with other values.
    let mut part = people(21, 30);
    part[0].ill = (part[0].ill + 1) % 5;
    let second = world.night("tuesday", &part).await;
    let third = world.night("wednesday", &[]).await;
    assert_eq!([first.rows, second.rows, third.rows], [30, 50, 50]);
    let rows = world.rows(&third).await;
    assert_eq!(rows.iter().filter(|row| row.id == 21).count(), 1);
    assert_eq!(rows.iter().filter(|row| row.born == 1).count(), 30, "what was published stays");
    assert_eq!(released_files(&third), released_files(&second), "nothing new, nothing written");
}

fn released_files(manifest: &throng::Manifest) -> Vec<&str> {
    manifest.files.iter().map(|file| file.path.as_str()).collect()
}

#[tokio::test]
async fn the_same_run_is_done_once() {
    let world = World::new(PROMPT);
    world.night("monday", &people(1, 30)).await;
    assert!(matches!(world.run("monday").await, Ok(Outcome::AlreadyDone(_))));
    let second = released(world.run("tuesday").await);
    assert_eq!(second.series.unwrap().counts.new, 0);
}
