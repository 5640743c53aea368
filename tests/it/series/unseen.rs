//! Random series whose subjects are not published, so that rows of one class may be alike: an attack from outside. Who was
//! published where is read from the private ledger, whose digests are made here anew from the key; what was published is read from
//! the files. No code of Throng's counts.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::Value;
use throng::Manifest;
use throng::releases::rollback;

use super::random::Random;
use super::stopping::{Stop, killed};
use super::world::{K, L, Person, RULES, World};

/// Random series in the suite; `THRONG_SERIES` asks for more.
const SERIES: u64 = 8;

/// The digest of a subject, by the format of the ledger: a keyed hash of the purpose and of the row format of a short text.
fn digest(id: i64) -> Vec<u8> {
    let key = blake3::derive_key("throng 2026 key of the ledger of a series", b"0123456789abcdef0123456789abcdef");
    let text = id.to_string();
    assert!(text.len() <= 8);
    let mut row = b"subject\0\x02".to_vec();
    row.extend(text.bytes().chain(std::iter::repeat_n(0, 8 - text.len())));
    row.push(text.len() as u8);
    blake3::keyed_hash(&key, &row).as_bytes().to_vec()
}

type Cohort = Vec<u8>;

/// What is known of a series from outside.
#[derive(Default)]
struct Known {
    /// The sources of all releases, by number.
    nights: BTreeMap<u64, Vec<Person>>,
    /// In which cohort everybody was published, by the number of the release.
    placed: BTreeMap<u64, BTreeMap<i64, Cohort>>,
}

/// A class as readers see it: the release in which it was first published, and its quasi-identifiers.
type Class = (u64, (i32, i32), String);

async fn get(world: &World, path: &Path) -> Bytes {
    world.store.get(path).await.unwrap().bytes().await.unwrap()
}

/// The illnesses in every class of a release.
async fn classes(world: &World, manifest: &Manifest) -> BTreeMap<Class, Vec<String>> {
    let mut found: BTreeMap<Class, Vec<String>> = BTreeMap::new();
    for file in &manifest.files {
        let born = manifest.series.as_ref().unwrap().born[&file.path];
        let bytes = get(world, &world.sink().at(&file.path)).await;
        for batch in ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            assert!(batch.column_by_name("id").is_none(), "nobody is named");
            let text = |name: &str, row: usize| {
                let text = datafusion::arrow::compute::cast(
                    batch.column_by_name(name).unwrap(),
                    &datafusion::arrow::datatypes::DataType::Utf8,
                );
                text.unwrap().as_string::<i32>().value(row).to_owned()
            };
            let age = batch.column_by_name("age").unwrap().as_struct();
            let end = |at: usize, row: usize| age.column(at).as_primitive::<Int32Type>().value(row);
            for row in 0..batch.num_rows() {
                let class = (born, (end(0, row), end(1, row)), text("town", row));
                found.entry(class).or_default().push(text("ill", row));
            }
        }
    }
    found
}

impl Known {
    /// Reads the newest version of the ledger.
    async fn read_ledger(&mut self, world: &World) {
        let state = world.open("s3://lake/private/ledger");
        let listed: Vec<_> = world.store.list(Some(&state.at("pointer"))).try_collect().await.unwrap();
        let pointer = listed.into_iter().map(|meta| meta.location).max().unwrap();
        let pointer: Value = serde_json::from_slice(&get(world, &pointer).await).unwrap();
        let folder = pointer["folder"].as_str().unwrap();
        let version: Value =
            serde_json::from_slice(&get(world, &state.at(&format!("{folder}/version.json"))).await).unwrap();
        let rows = get(world, &state.at(&format!("{folder}/part-00000.parquet"))).await;
        let ids: BTreeMap<Vec<u8>, i64> =
            self.nights.values().flatten().map(|person| (digest(person.id), person.id)).collect();
        let mut placed = BTreeMap::new();
        for batch in ParquetRecordBatchReaderBuilder::try_new(rows).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            let column = |name: &str| batch.column_by_name(name).unwrap();
            let (subjects, cohorts) =
                (column("subject").as_fixed_size_binary(), column("cohort").as_fixed_size_binary());
            let states = column("state").as_primitive::<Int64Type>();
            for row in (0..batch.num_rows()).filter(|&row| matches!(states.value(row), 1 | 2)) {
                placed.insert(ids[subjects.value(row)], cohorts.value(row).to_vec());
            }
        }
        self.placed.insert(version["number"].as_u64().unwrap(), placed);
    }

    /// What was published of somebody in a cohort: what the source held when the cohort came.
    fn published(&self) -> BTreeMap<(i64, Cohort), (u64, Person)> {
        let (mut born, mut found) = (BTreeMap::new(), BTreeMap::new());
        for (number, placed) in &self.placed {
            for (id, cohort) in placed {
                if found.contains_key(&(*id, cohort.clone())) {
                    continue;
                }
                assert_eq!(born.entry(cohort).or_insert(number), &number, "somebody has joined a living class");
                let source = self.nights[number].iter().find(|person| person.id == *id).expect("they were there");
                found.insert((*id, cohort.clone()), (*number, *source));
            }
        }
        found
    }

    /// Asserts the promise of the series and that classes are what the ledger says, from everything that is known.
    async fn recount(&self, world: &World) {
        let published = self.published();
        let releases = world.releases().await;
        let mut shown = Vec::new();
        for manifest in &releases {
            let number = manifest.series.as_ref().unwrap().number;
            let found = classes(world, manifest).await;
            self.check_classes(number, &found, &published);
            shown.push(found);
        }
        let everybody: BTreeSet<i64> = self.placed.values().flat_map(BTreeMap::keys).copied().collect();
        let mut groups: BTreeMap<Vec<Option<&Cohort>>, Vec<i64>> = BTreeMap::new();
        for id in everybody {
            groups.entry(self.placed.values().map(|placed| placed.get(&id)).collect()).or_default().push(id);
        }
        for (history, ids) in &groups {
            assert!(ids.len() >= K, "{} share a history", ids.len());
            for cohort in history.iter().copied().flatten() {
                let ills: BTreeSet<u8> = ids.iter().map(|id| published[&(*id, cohort.clone())].1.ill).collect();
                assert!(ills.len() >= L, "{} share a history and {ills:?}", ids.len());
            }
        }
        // Any two releases, not only neighbours.
        for one in &shown {
            for other in &shown {
                one.iter().for_each(|(class, ills)| check_more(ills, other.get(class).map_or(&[][..], Vec::as_slice)));
            }
        }
    }

    /// Every class is a cohort: as many rows, the same illnesses, and values that hold those of all members.
    fn check_classes(
        &self,
        number: u64,
        found: &BTreeMap<Class, Vec<String>>,
        published: &BTreeMap<(i64, Cohort), (u64, Person)>,
    ) {
        let mut members: BTreeMap<&Cohort, Vec<(u64, Person)>> = BTreeMap::new();
        for (id, cohort) in &self.placed[&number] {
            members.entry(cohort).or_default().push(published[&(*id, cohort.clone())]);
        }
        let mut left: BTreeMap<&Class, Vec<String>> = BTreeMap::new();
        for (class, ills) in found {
            let mut ills = ills.clone();
            ills.sort();
            left.insert(class, ills);
        }
        for people in members.values() {
            let mut ills: Vec<String> = people.iter().map(|(_, person)| format!("ill-{}", person.ill)).collect();
            ills.sort();
            let holds = |class: &Class| {
                let towns: Vec<&str> = class.2.trim_matches(['{', '}']).split(", ").collect();
                people.iter().all(|(born, person)| {
                    let town = format!("town-{}", person.town);
                    *born == class.0
                        && (class.1.0..=class.1.1).contains(&person.age)
                        && (class.2 == "*" || towns.contains(&town.as_str()))
                })
            };
            let class = left.iter().find(|(class, shown)| **shown == ills && holds(class)).map(|(class, _)| *class);
            let class = class.unwrap_or_else(|| panic!("release {number} has no class for {people:?}"));
            left.remove(class);
        }
        assert!(left.is_empty(), "release {number} has classes of nobody: {left:?}");
    }
}

/// The rows that a class has in one release and not in another one are none, or a throng.
fn check_more(more: &[String], less: &[String]) {
    let mut rest = less.to_vec();
    let mut added = Vec::new();
    for ill in more {
        match rest.iter().position(|other| other == ill) {
            Some(at) => _ = rest.swap_remove(at),
            None => added.push(ill),
        }
    }
    let ills: BTreeSet<_> = added.iter().collect();
    assert!(added.is_empty() || added.len() >= K && ills.len() >= L, "{added:?}");
}

async fn series(seed: u64) -> [u64; 4] {
    let mut random = Random::new(seed ^ 0x5eed);
    let mut world = World::new(&random.settings());
    world.rules = RULES.replace("id.role = \"kept\"", "id.role = \"identifier\"");
    world.partitions = random.rng.usize(1..3);
    let first = random.rng.usize(0..80);
    let (mut known, mut people, mut seen) = (Known::default(), random.people(first), [0; 4]);
    for night in 0..random.rng.usize(3..8) {
        if night > 0 {
            people = random.night(&people);
        }
        world.dawn(&people).await;
        let run = format!("night-{night}");
        if random.rng.u32(0..3) == 0 {
            let stop = if random.rng.bool() { Stop::Before } else { Stop::After };
            seen[3] += u64::from(killed(&world, &run, random.rng.usize(0..14), stop));
        }
        let outcome = world.run(&run).await.unwrap_or_else(|error| panic!("seed {seed}, night {night}: {error}"));
        let (throng::Outcome::Released(manifest, _) | throng::Outcome::AlreadyDone(manifest)) = outcome;
        let of_series = manifest.series.as_ref().unwrap();
        known.nights.insert(of_series.number, people.clone());
        known.read_ledger(&world).await;
        known.recount(&world).await;
        for (sum, count) in seen.iter_mut().zip([1, of_series.counts.retired_classes, of_series.counts.waiting]) {
            *sum += count;
        }
        if random.rng.u32(0..4) == 0 {
            // Readers see an earlier release again; the next night goes on from the newest one.
            let releases = world.releases().await;
            rollback(&world.sink(), &releases[random.rng.usize(0..releases.len())].run).await.unwrap();
        }
    }
    seen
}

#[test]
fn the_promise_holds_where_nobody_is_named() {
    let wanted = std::env::var("THRONG_SERIES").ok().and_then(|text| text.parse().ok()).unwrap_or(SERIES);
    let first: u64 = std::env::var("THRONG_SERIES_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut seen = [0; 4];
    for seed in first..first + wanted {
        let found = runtime.block_on(async { tokio::spawn(series(seed)).await });
        let found = found.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        seen.iter_mut().zip(found).for_each(|(sum, count)| *sum += count);
    }
    let [nights, retired, waiting, kills] = seen;
    println!("{wanted} series of {nights} nights: {retired} classes retired, {waiting} waited, {kills} runs killed");
    assert!(wanted < 8 || [retired, waiting, kills].iter().all(|count| *count > 0), "{seen:?}");
}
