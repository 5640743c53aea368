//! Faults at every store call of a night: readers see the night before or the night, the promise holds, and trying again
//! ends well.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use throng::{ErrorKind, Outcome};

use super::kills::{SETTINGS, second_night};
use super::world::{Person, World, people, recount};
use crate::stores::faulty::{Fault, Faulty, WAYS, When};

/// A series after its first night, and the source of the second.
struct Evening {
    store: InMemory,
    world: World,
    nights: Vec<Vec<Person>>,
}

impl Evening {
    async fn new(delta: bool) -> Self {
        let store = Arc::new(InMemory::new());
        let world = World::on(Arc::clone(&store) as _, SETTINGS).in_table(delta);
        let nights = vec![people(1, 60), second_night()];
        world.night("monday", &nights[0]).await;
        world.dawn(&nights[1]).await;
        Self { store: store.fork(), world, nights }
    }

    fn place(&self) -> World {
        self.world.through(Arc::new(self.store.fork()) as Arc<dyn ObjectStore>)
    }

    /// The calls of a night without faults.
    async fn calls(&self) -> Vec<String> {
        let place = self.place();
        let counting = Faulty::counting(&place.store);
        let made = place.through(Arc::new(counting.clone())).run("tuesday").await;
        assert!(matches!(made, Ok(Outcome::Released(..))), "{made:?}");
        counting.calls.names()
    }

    /// A night with a fault at a call, and the same once more without.
    async fn survives(&self, call: usize, name: &str, fault: Fault, when: When) {
        let what = format!("{fault:?} {when:?} call {call}, {name}");
        let place = self.place();
        let faulty = Faulty::at(&place.store, call, fault, when);
        let ran = place.through(Arc::new(faulty.clone())).run("tuesday").await;
        assert!(faulty.calls.fired(), "{what}: no such call");
        assert_eq!(faulty.calls.unfinished_uploads(), 0, "{what}");
        if let Err(error) = &ran {
            assert!(fault != Fault::Slow && error.kind() == ErrorKind::Retry, "{what}: {error:?}");
        }
        let made = place.releases().await.len();
        assert!(made == 2 || made == 1 && ran.is_err(), "{what}: {made} releases");
        let again = place.run("tuesday").await;
        assert!(again.is_ok(), "{what}: {again:?}");
        recount(&place, &self.nights).await;
        let latest = throng::releases::latest_run(&place.sink()).await.unwrap();
        assert_eq!(latest.as_deref(), Some("tuesday"), "{what}");
    }
}

#[tokio::test]
async fn every_call_of_a_night_may_fail() {
    fail_everywhere(false, &["out/_manifest/", "out/_latest"]).await;
}

#[cfg(feature = "delta")]
#[tokio::test]
async fn every_call_of_a_night_in_a_delta_table_may_fail() {
    fail_everywhere(true, &["out/_delta_log/"]).await;
}

/// Every call fails in one way, one after another in another one; with `THRONG_SERIES_FAULTS=all` in every way. Of a night in a
/// Delta table only calls at its log do without that: the rest is that of files.
async fn fail_everywhere(delta: bool, places: &[&str]) {
    let evening = Evening::new(delta).await;
    let calls = evening.calls().await;
    let all = std::env::var("THRONG_SERIES_FAULTS").is_ok_and(|wanted| wanted == "all");
    let mut points = 0;
    let is_asked = |name: &str| all || !delta || name.contains("_delta_log");
    for (call, name) in calls.iter().enumerate().filter(|(_, name)| is_asked(name)) {
        for (way, (fault, when)) in WAYS.into_iter().enumerate() {
            if all || way == call % WAYS.len() {
                evening.survives(call, name, fault, when).await;
                points += 1;
            }
        }
    }
    eprintln!("{points} faults at {} calls of a night", calls.len());
    for place in ["out/data/", "ledger/version/", "ledger/pointer/"].iter().chain(places) {
        assert!(calls.iter().any(|call| call.contains(place)), "no call at {place}: {calls:?}");
    }
}
