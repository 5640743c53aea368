//! Faults at every call that a run makes, one after another: whatever happens, readers see exactly the old release or
//! exactly the new one, and trying again ends well.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, FixedSizeBinaryArray};
use object_store::memory::InMemory;
use throng::releases::collect_garbage;
use throng::{ErrorKind, Outcome};

use super::faulty::{Fault, Faulty, WAYS, When};
use super::place::{Place, outcome};
use crate::tables::{JOB, assert_no_values, people};

/// Where the releases are.
const URL: &str = "s3://lake/night";

/// A store that holds the old release, and the input of the new one.
struct Scene {
    store: InMemory,
    job: String,
    old: Vec<String>,
    new: Vec<String>,
}

impl Scene {
    async fn new(before: Vec<(&'static str, ArrayRef)>, after: Vec<(&'static str, ArrayRef)>, job: &str) -> Self {
        let store = Arc::new(InMemory::new());
        let place = Place::new(Arc::clone(&store) as _, URL);
        place.input("a.parquet", before).await;
        assert_eq!(outcome(place.run("old", job).await), ("old".into(), true));
        let old = place.rows().await;
        place.input("a.parquet", after).await;
        let ready = store.fork();
        assert_eq!(outcome(place.run("new", job).await), ("new".into(), true));
        let new = place.rows().await;
        assert_ne!(old, new);
        Self { store: ready, job: job.to_owned(), old, new }
    }

    /// A place like it was before the new run.
    fn place(&self) -> Place {
        Place::new(Arc::new(self.store.fork()), URL)
    }

    /// The calls of a run without faults.
    async fn calls(&self) -> Vec<String> {
        let place = self.place();
        let counting = Faulty::counting(&place.store);
        assert!(outcome(place.through(Arc::new(counting.clone())).run("new", &self.job).await).1);
        assert_eq!(counting.calls.unfinished_uploads(), 0);
        counting.calls.names()
    }

    /// A run with a fault at a call, and one after it without.
    async fn survives(&self, call: usize, name: &str, fault: Fault, when: When) {
        let reported = format!("{fault:?} {when:?} call {call}, {name}");
        let place = self.place();
        let faulty = Faulty::at(&place.store, call, fault, when);
        let ran = place.through(Arc::new(faulty.clone())).run("new", &self.job).await;
        assert!(faulty.calls.fired(), "{reported}: no such call");
        assert_eq!(faulty.calls.unfinished_uploads(), 0, "{reported}");

        let seen = place.latest_run().await.unwrap();
        let rows = place.rows().await;
        assert!(
            seen == "old" && rows == self.old || seen == "new" && rows == self.new,
            "{reported}: readers see {seen}"
        );
        place.verify_all().await;
        match ran {
            Ok(Outcome::Released(..)) => assert_eq!(seen, "new", "{reported}"),
            Ok(Outcome::AlreadyDone(_)) => panic!("{reported}: it was not done"),
            Err(error) => {
                assert_ne!(fault, Fault::Slow, "{reported}: {error}");
                assert!(error.kind() == ErrorKind::Retry, "{reported}: {error:?}");
                assert_no_values(&error.to_string());
            }
        }

        assert_eq!(outcome(place.run("new", &self.job).await).0, "new", "{reported}");
        assert_eq!(
            (place.latest_run().await.as_deref(), place.rows().await),
            (Some("new"), self.new.clone()),
            "{reported}"
        );
        collect_garbage(&place.sink(), Duration::ZERO, false).await.unwrap();
        assert_eq!(place.releases().await, ["old", "new"], "{reported}");
        place.verify_all().await;
    }
}

#[tokio::test]
async fn every_call_of_a_run_may_fail() {
    let scene = Scene::new(people(40), people(60), JOB).await;
    let calls = scene.calls().await;
    let mut points = 0;
    for (call, name) in calls.iter().enumerate() {
        for (fault, when) in WAYS {
            scene.survives(call, name, fault, when).await;
            points += 1;
        }
    }
    eprintln!("{points} faults at {} calls of a run", calls.len());
    assert_eq!(points, calls.len() * WAYS.len());
    for kind in ["head", "get", "list", "list folder", "put"] {
        assert!(calls.iter().any(|call| call.starts_with(&format!("{kind} "))), "no {kind} in {calls:?}");
    }
}

/// Few rows, of which every one is large: the release is uploaded in parts.
pub fn large(rows: usize) -> Vec<(&'static str, ArrayRef)> {
    let mut random = fastrand::Rng::with_seed(rows as u64);
    let values = (0..rows).map(|_| (0..96 << 10).map(|_| random.u8(..)).collect::<Vec<u8>>());
    let scans: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter(values).unwrap());
    let mut columns = people(rows);
    columns.push(("scan", scans));
    columns
}

/// The job on [`large`] rows.
pub fn large_job() -> String {
    format!("{JOB}scan.role = \"kept\"\n[output]\ncompression = \"none\"\n")
}

#[tokio::test]
async fn every_call_of_an_upload_may_fail() {
    let scene = Scene::new(large(20), large(200), &large_job()).await;
    let calls = scene.calls().await;
    let uploading = |name: &str| ["begin upload", "put part", "complete upload"].iter().any(|at| name.starts_with(at));
    let mut points = 0;
    for (call, name) in calls.iter().enumerate().filter(|(_, name)| uploading(name)) {
        for (fault, when) in [(Fault::Error, When::Before), (Fault::TimeOut, When::After), (Fault::Cut, When::After)] {
            scene.survives(call, name, fault, when).await;
            points += 1;
        }
    }
    eprintln!("{points} faults at the calls of an upload");
    assert!(points >= 4 * 3, "{calls:?}");
}
