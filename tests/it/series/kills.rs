//! Kills at every write of a run: ledger and sink agree after the next start, nothing is published twice or lost.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::memory::InMemory;

use super::stopping::{Stop, killed};
use super::world::{Person, World, people, recount};

/// A night on which classes are split and rows come.
pub fn second_night() -> Vec<Person> {
    let mut night = people(1, 60);
    night.retain(|person| person.id % 2 == 0 || person.id > 40);
    night.iter_mut().filter(|person| person.id % 8 == 0).for_each(|person| person.ill = (person.ill + 1) % 5);
    night.extend(people(100, 20));
    night
}

pub const SETTINGS: &str = "retire-at = 0.2\nmax-loss = 1.0\n";

#[test]
fn a_run_may_be_killed_at_any_moment() {
    kill_everywhere(false);
}

#[cfg(feature = "delta")]
#[test]
fn a_run_into_a_delta_table_may_be_killed_at_any_moment() {
    kill_everywhere(true);
}

/// A kill at every write of the second night, before and after it was done; then the same run once more, or another.
fn kill_everywhere(delta: bool) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = Arc::new(InMemory::new());
    let world = World::on(Arc::clone(&store) as _, SETTINGS).in_table(delta);
    let nights = vec![people(1, 60), second_night()];
    runtime.block_on(async {
        let first = world.night("monday", &nights[0]).await;
        assert_eq!(first.rows, 60);
        world.dawn(&nights[1]).await;
    });
    let mut kills = 0;
    for stop in [Stop::Before, Stop::After] {
        for at in 0.. {
            let place = world.through(Arc::new(store.fork()) as Arc<dyn ObjectStore>);
            if !killed(&place, "tuesday", at, stop) {
                assert!(at > if delta { 6 } else { 8 }, "a run writes more than {at} times");
                break;
            }
            kills += 1;
            // The scheduler tries again under the same name or under another.
            let again = if at % 2 == 0 { "tuesday" } else { "tuesday-again" };
            runtime.block_on(async {
                let outcome = place.run(again).await;
                assert!(outcome.is_ok(), "{stop:?} {at}: {outcome:?}");
                let made = place.releases().await;
                let mut nights = nights.clone();
                // A release whose manifest was written stands; another run after it is another release.
                nights.resize(made.len(), nights[1].clone());
                assert!(made.len() == 2 || made.len() == 3 && again != "tuesday", "{stop:?} {at}");
                recount(&place, &nights).await;
                let newest = made.last().unwrap();
                let latest = throng::releases::latest_run(&place.sink()).await.unwrap();
                assert_eq!(latest.as_ref(), Some(&newest.run), "{stop:?} {at}");
                // And the night after that.
                nights.push(people(30, 60));
                place.night("wednesday", &nights[nights.len() - 1]).await;
                recount(&place, &nights).await;
            });
        }
    }
    println!("{kills} kills");
}
