//! Random tables, random churn, random settings, runs that are killed on the way: the promise holds after every night.

use object_store::ObjectStoreExt;

use super::stopping::{Stop, killed};
use super::world::{Person, World, recount, released};

/// Random series in the suite; `THRONG_SERIES` asks for more.
const SERIES: u64 = 24;

/// A night's churn in percent: who leaves, changes, comes back; and how many come.
struct Churn {
    leave: u32,
    change: u32,
    back: u32,
    come: usize,
}

pub struct Random {
    pub rng: fastrand::Rng,
    next: i64,
    gone: Vec<Person>,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { rng: fastrand::Rng::with_seed(seed), next: 0, gone: Vec::new() }
    }

    fn person(&mut self) -> Person {
        self.next += 1;
        let rng = &mut self.rng;
        // Illnesses are uneven, so that classes often just meet the rules.
        let ill = if rng.bool() { 0 } else { rng.u8(0..5) };
        Person { id: self.next, age: rng.i32(20..60), town: rng.u8(0..3), ill }
    }

    pub fn people(&mut self, count: usize) -> Vec<Person> {
        (0..count).map(|_| self.person()).collect()
    }

    fn in_percent(&mut self, percent: u32) -> bool {
        self.rng.u32(0..100) < percent
    }

    fn churn(&mut self) -> Churn {
        let rng = &mut self.rng;
        let mut churn =
            Churn { leave: rng.u32(0..25), change: rng.u32(0..15), back: rng.u32(0..40), come: rng.usize(0..15) };
        match rng.u32(0..16) {
            0 => churn.leave = 100,
            1 => churn.change = 100,
            2 => churn = Churn { leave: 0, change: 0, back: 0, come: 1 },
            3 => churn.leave = 60,
            _ => {}
        }
        churn
    }

    fn change(&mut self, person: &mut Person) {
        match self.rng.u32(0..3) {
            0 => person.age = self.rng.i32(20..60),
            1 => person.town = self.rng.u8(0..3),
            _ => person.ill = self.rng.u8(0..5),
        }
    }

    /// The next night.
    pub fn night(&mut self, people: &[Person]) -> Vec<Person> {
        let churn = self.churn();
        let mut next = Vec::new();
        for person in people {
            let mut person = *person;
            if self.in_percent(churn.leave) {
                self.gone.push(person);
                continue;
            }
            if self.in_percent(churn.change) {
                self.change(&mut person);
            }
            next.push(person);
        }
        for person in std::mem::take(&mut self.gone) {
            let is_back = self.in_percent(churn.back) && people.iter().all(|known| known.id != person.id);
            if is_back { next.push(person) } else { self.gone.push(person) }
        }
        next.extend(self.people(churn.come));
        self.rng.shuffle(&mut next);
        next
    }

    pub fn settings(&mut self) -> String {
        let rng = &mut self.rng;
        format!(
            "reserve = {}\nmax-loss = {}\nmax-wait = {}\nretire-at = {}\ndissolve = {}\n",
            [1.0, 1.5, 2.0][rng.usize(0..3)],
            [0.2, 0.5, 1.0][rng.usize(0..3)],
            rng.u32(0..4),
            [0.1, 0.3, 0.5, 1.0][rng.usize(0..4)],
            rng.bool()
        )
    }
}

/// One series from its seed; how many nights it had, and what happened in them.
async fn series(seed: u64) -> [u64; 6] {
    let mut random = Random::new(seed);
    let settings = random.settings();
    let mut world = World::new(&settings);
    world.partitions = random.rng.usize(1..3);
    world.delta = cfg!(feature = "delta") && seed.is_multiple_of(3);
    let first = random.rng.usize(0..70);
    let mut nights: Vec<Vec<Person>> = vec![random.people(first)];
    let mut seen = [0; 6];
    for number in 0..random.rng.usize(3..9) {
        if number > 0 {
            let next = random.night(&nights[number - 1]);
            nights.push(next);
        }
        world.dawn(&nights[number]).await;
        let run = format!("night-{number}");
        if random.rng.u32(0..3) == 0 {
            let stop = if random.rng.bool() { Stop::Before } else { Stop::After };
            let at = random.rng.usize(0..14);
            killed(&world, &run, at, stop);
            seen[5] += 1;
        }
        let outcome = world.run(&run).await;
        let outcome = outcome.unwrap_or_else(|error| panic!("seed {seed}, night {number}: {error}\n{settings}"));
        let manifest = match outcome {
            throng::Outcome::Released(manifest, _) | throng::Outcome::AlreadyDone(manifest) => manifest,
        };
        let counts = manifest.series.as_ref().unwrap().counts;
        let happened = [1, counts.returned, counts.retired_classes, counts.waiting, counts.withheld];
        seen.iter_mut().zip(happened).for_each(|(sum, count)| *sum += count);
        recount(&world, &nights).await;
    }
    seen
}

#[test]
fn the_promise_holds_in_random_series() {
    let wanted = std::env::var("THRONG_SERIES").ok().and_then(|text| text.parse().ok()).unwrap_or(SERIES);
    let first: u64 = std::env::var("THRONG_SERIES_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut seen = [0; 6];
    for seed in first..first + wanted {
        let found = runtime.block_on(async { tokio::spawn(series(seed)).await });
        let found = found.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        seen.iter_mut().zip(found).for_each(|(sum, count)| *sum += count);
    }
    let [nights, returned, retired, waiting, withheld, kills] = seen;
    println!(
        "{wanted} series of {nights} nights: {retired} classes retired, {returned} rows returned, {waiting} waited, \
         {withheld} withheld, {kills} runs killed"
    );
    assert!(wanted < 10 || [returned, retired, waiting, withheld, kills].iter().all(|count| *count > 0), "{seen:?}");
}

/// The recount finds what it should.
#[tokio::test]
#[should_panic(expected = "have the history")]
async fn a_newcomer_who_joins_a_class_is_found() {
    let world = World::new("");
    world.dawn(&super::world::people(1, 30)).await;
    released(world.run("monday").await);
    let nights = vec![super::world::people(1, 30), super::world::people(1, 31)];
    world.dawn(&nights[1]).await;
    let mut tuesday = released(world.run("tuesday").await);
    // What an independent release would do: everybody is grouped again.
    let other = World::new("");
    let again = other.night("tuesday", &nights[1]).await;
    for file in &again.files {
        let bytes = other.store.get(&other.sink().at(&file.path)).await.unwrap().bytes().await.unwrap();
        world.store.put(&world.sink().at(&file.path), bytes.into()).await.unwrap();
    }
    let series = tuesday.series.as_mut().unwrap();
    series.born = again.files.iter().map(|file| (file.path.clone(), 2)).collect();
    (tuesday.files, tuesday.rows) = (again.files, again.rows);
    let path = world.sink().at("_manifest/tuesday.json");
    world.store.put(&path, serde_json::to_vec(&tuesday).unwrap().into()).await.unwrap();
    recount(&world, &nights).await;
}
