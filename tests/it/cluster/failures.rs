//! Executors and drivers that are killed in the middle of a job. The job ends as if nothing had happened, or with exit code
//! 75 and the old release in its place; it never publishes a row too many or too few.

use std::thread::sleep;
use std::time::Duration;

use super::busy::{self, GROUP, SHUFFLE, SMALL, WRITE};
use super::fleet::{Fleet, Process, Progress, SILENCE, wait};
use crate::support::{Desk, expire_leases, manifest, multiset, released, released_files, throng};

/// A cluster, a folder with an old release, and what a new one must hold.
struct Scene {
    desk: Desk,
    fleet: Fleet,
    expected: Vec<String>,
}

impl Scene {
    fn set() -> Self {
        let desk = busy::desk();
        let alone = format!("sink.url={}", desk.name("alone"));
        desk.run(&[&["--quiet", "--set", &alone], &SMALL[..]].concat()).ok();
        desk.run(&["--quiet", "--run-id", "old", "--set", "method.auto.effort=fast"]).ok();
        let expected = multiset(&released(&desk.path("alone")));
        Self { desk, fleet: Fleet::start(2), expected }
    }

    fn run(&self, id: &str) -> Process {
        self.fleet.run(&self.desk.name("job.toml"), &[&["--run-id", id], &SMALL[..]].concat())
    }

    /// Files that a run has staged so far.
    fn staged(&self, id: &str) -> usize {
        let folder = format!("run={id}.");
        let staged = |file: &&std::path::PathBuf| {
            file.to_string_lossy().contains(&folder) && file.extension().is_some_and(|ending| ending == "parquet")
        };
        self.desk.sink_files().iter().filter(staged).count()
    }

    /// Waits for a moment of pass 2 of a run, which must not be over before it comes.
    fn moment(&self, run: &mut Process, what: &str, come: impl Fn(&Progress) -> bool) -> Progress {
        wait(what, || {
            assert!(run.runs(), "the run was over before {what}: {}", run.said());
            self.fleet.progress(run, "group").filter(&come)
        })
    }

    /// How a run ends that has lost an executor: successfully, or as a transient failure with the old release in place.
    fn ends_well_or_is_tried_again(&self, run: &mut Process, id: &str, when: &str) {
        let code = run.end();
        eprintln!("an executor killed while {when}: exit code {code:?}");
        match code {
            Some(0) => {
                assert_eq!(manifest(&self.desk.path("out"))["run"], id);
                assert!(multiset(&self.desk.released()) == self.expected, "rows differ: {}", run.said());
                assert_eq!(self.staged(id), released_files(&self.desk.path("out")).len(), "stray files");
            }
            Some(75) => {
                assert_eq!(manifest(&self.desk.path("out"))["run"], "old", "{}", run.said());
                assert_eq!(self.staged(id), 0, "what was staged is gone");
            }
            other => panic!("exit code {other:?}: {}", run.said()),
        }
        throng(&["verify", &self.desk.name("out"), "--quiet"]).ok();
    }
}

#[test]
fn an_executor_dies_during_the_shuffle() {
    let scene = Scene::set();
    let mut run = scene.run("new");
    let progress = scene.moment(&mut run, "the shuffle", |progress| progress.amid(SHUFFLE));
    // One that has shuffle files, which others will miss.
    let position = scene.fleet.position(&progress.executors[0]);
    scene.fleet.executors[position].process.signal("-KILL");
    scene.ends_well_or_is_tried_again(&mut run, "new", "shuffling");
}

#[test]
fn an_executor_dies_during_the_grouping() {
    let scene = Scene::set();
    let mut run = scene.run("new");
    let progress = scene.moment(&mut run, "the grouping", |progress| progress.past(SHUFFLE) && !progress.past(GROUP));
    assert_eq!(scene.staged("new"), 0, "nothing is written yet: {progress:?}");
    scene.fleet.executors[0].process.signal("-KILL");
    scene.ends_well_or_is_tried_again(&mut run, "new", "grouping");
}

#[test]
fn an_executor_dies_during_the_writing() {
    let scene = Scene::set();
    let mut run = scene.run("new");
    // It has written files and said so: they are there, and what it knows of them goes with it.
    let progress = scene.moment(&mut run, "the first files", |progress| {
        let done = progress.stages.get(&WRITE).map_or(0, |(done, _)| *done);
        progress.amid(WRITE) && done >= 2 && scene.staged("new") > 0
    });
    let position = scene.fleet.position(progress.executors.last().unwrap());
    scene.fleet.executors[position].process.signal("-KILL");
    scene.ends_well_or_is_tried_again(&mut run, "new", "writing");
}

#[test]
fn a_driver_dies_and_leaves_nothing_behind() {
    let scene = Scene::set();
    let mut run = scene.run("new");
    scene.moment(&mut run, "the first files", |progress| progress.amid(WRITE));
    run.signal("-KILL");
    assert_eq!(run.end(), None);
    assert_eq!(manifest(&scene.desk.path("out"))["run"], "old", "nothing was published");
    // The scheduler hears no more of it, and cancels the job unless it is done before.
    wait("the executors to stop", || {
        let before = scene.staged("new");
        sleep(SILENCE + Duration::from_secs(2));
        (scene.staged("new") == before).then_some(())
    });
    expire_leases(&scene.desk.path("out"));
    throng(&["gc", &scene.desk.name("out"), "--older-than", "0"]).ok();
    assert_eq!(scene.staged("new"), 0);
    assert_eq!(throng(&["gc", &scene.desk.name("out"), "--older-than", "0", "--dry-run"]).ok().out, "");
    throng(&["verify", &scene.desk.name("out"), "--quiet"]).ok();

    // The cluster is as good as new, and so is the sink.
    let mut next = scene.run("next");
    assert_eq!(next.end(), Some(0), "{}", next.said());
    assert!(multiset(&scene.desk.released()) == scene.expected);
}
