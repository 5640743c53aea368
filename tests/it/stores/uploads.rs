//! Uploads that end badly leave nothing in the store: seen at an S3 server that keeps every part on its disk.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use throng::Outcome;
use throng::releases::Phase;

use super::faults::{large, large_job};
use super::faulty::{Fault, Faulty, When};
use super::place::{Place, outcome};
use super::s3::Server;

/// A server with an input that is released in several parts.
async fn scene() -> (Server, Place) {
    let server = Server::start();
    let place = Place::new(server.store(), "s3://lake/night");
    place.input("a.parquet", large(200)).await;
    (server, place)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn failed_uploads_are_aborted() {
    let (server, place) = scene().await;
    let counting = Faulty::counting(&place.store);
    assert!(outcome(place.through(Arc::new(counting.clone())).run("clean", &large_job()).await).1);
    let parts = counting.calls.names().iter().filter(|call| call.starts_with("put part")).count();
    assert!(parts > 2, "{parts}");
    let files = place.files().await;
    assert_eq!(server.unfinished_uploads(), 0);
    for (kind, call, when) in [
        ("put part", 0, When::Before),
        ("put part", parts - 1, When::After),
        ("complete upload", 0, When::Before),
        ("complete upload", 0, When::After),
    ] {
        let faulty = Faulty::at_kind(&place.store, kind, call, Fault::Error, when);
        let ran = place.through(Arc::new(faulty.clone())).run("failed", &large_job()).await;
        assert!(faulty.calls.fired() && ran.is_err(), "{kind}: {ran:?}");
        assert_eq!(server.unfinished_uploads(), 0, "{kind} {call} {when:?}");
        assert_eq!(place.files().await, files, "nothing stays staged");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_run_that_is_stopped_aborts_its_uploads() {
    let (server, place) = scene().await;
    // Slow parts give the run time to be stopped in the middle of them.
    let config =
        object_store::throttle::ThrottleConfig { wait_put_per_call: Duration::from_millis(200), ..Default::default() };
    let slow: Arc<dyn ObjectStore> = Arc::new(object_store::throttle::ThrottledStore::new(server.store(), config));
    let counting = Faulty::counting(&slow);
    let slow = place.through(Arc::new(counting.clone()));
    let run = slow.prepare("stopped", &large_job());
    let (begun, observed) = (tokio::sync::Notify::new(), Arc::clone(&counting.calls));
    let observer = |phase: Phase, _: Option<&Arc<dyn datafusion::physical_plan::ExecutionPlan>>, _: u64| {
        if phase == Phase::Group {
            begun.notify_one();
        }
    };
    let mut execution = Box::pin(run.execute(&observer));
    let in_the_middle = async {
        begun.notified().await;
        while !observed.names().iter().any(|call| call.starts_with("put part")) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let ended: Option<Outcome> = tokio::select! {
        ended = &mut execution => Some(ended.unwrap()),
        () = in_the_middle => None,
    };
    assert!(ended.is_none(), "the run was over before it could be stopped");
    assert!(counting.calls.unfinished_uploads() > 0);
    drop(execution);
    run.abandon().await;
    assert_eq!((server.unfinished_uploads(), counting.calls.unfinished_uploads()), (0, 0));
    assert!(place.files().await.is_empty(), "{:?}", place.files().await);
    assert!(outcome(place.run("stopped", &large_job()).await).1);
}
