//! Publishing again: the same people in more than one release.
//!
//! Every release keeps k and the rules by itself. Several releases of the same people do not: a reader who knows somebody's
//! quasi-identifiers finds the class of that person in each release, and only values that all of these classes hold can be
//! theirs. The value of a single newcomer between two releases of a table follows by subtraction.
//!
//! # What a sink allows
//!
//! - **One release.** Without further settings, a sink takes the release of one run. Running the same job on the same input
//!   again does nothing; another run is refused with exit code 7, before any work is done.
//! - **Independent releases.** `releases = "independent"` in `[sink]` lets a sink take as many as are made. Set it where no
//!   people are in two releases (each day's visitors, each year's applicants), or where the owner has decided to accept
//!   the risk. The manifest (`earlier_releases`), the summary and the report of each release then say how many were
//!   there before it.
//!
//! ```toml
//! [sink]
//! url = "s3://lake/published/visitors/"
//! releases = "independent"
//! ```
//!
//! - **A series.** With `[series]` in the job, releases of the same people stay safe together, night after night: see below.
//!
//! Two sinks are two publications just like two releases in one: the guard only knows one sink. Nor does it know what was
//! published by other means.
//!
//! # What releases reveal together
//!
//! `throng attack --series` measures it. It compares all releases of the job's sink, or folders of Parquet that `--release`
//! names, whoever wrote them, as seen by somebody who knows everybody's quasi-identifiers and who was in which
//! release, but no sensitive value:
//!
//! ```text
//! throng attack nightly.toml --series --subject person_id --public monday.parquet --public tuesday.parquet
//! throng attack nightly.toml --series --subject person_id --public people.parquet --present-column monday --present-column tuesday
//! ```
//!
//! `--public` is given once for each release, as who was there and with which quasi-identifiers (the sources of these nights
//! will do), or once for all, with a boolean column for each release. For every sensitive column and after every release it prints:
//!
//! | figure | meaning |
//! |---|---|
//! | one value | share of people of whom a single value is left |
//! | fewer than l | share of people who may have fewer values than the l-diversity of the job promises; two without such a rule |
//! | fewer than k rows | share of people of whom a release has left fewer than k rows with a value that they may have |
//! | found by subtraction | people who came or went between two releases that held everybody, so that their values are the difference |
//!
//! `throng report out --series attack.json` draws these figures, which `--json` prints, as curves over releases.
//!
//! `--json` lists people by the number of values and rows that are left. The attack keeps one entry per person in memory. It
//! reads releases of the form `generalise`, and it is a lower bound: whoever fits several classes may be in any of them to this
//! reader, and kept columns and what is known of others' values are not used. On eight nights of a generated census (8,000 people,
//! 0.6 % coming and going, k = 10, l = 3 on the diagnosis, the income kept, effort `fast`) it finds fewer than three diagnoses for
//! 6 % of people; a reader who knows the class that each person was in (here, from a kept person number) has fewer for 43 %.
//!
//! # A series: the same people, every night
//!
//! ```toml
//! [series]
//! subject = ["person_id"]                # who a row is about; an identifier that is dropped will do
//! state = "s3://private/census-ledger/"  # the ledger: where readers of the sink cannot look
//! key-env = "CENSUS_LEDGER_KEY"          # `openssl rand -hex 32`, kept apart from the ledger
//! ```
//!
//! Run it as any other job, once a night; give each run a name that the scheduler repeats when it tries again:
//!
//! ```text
//! throng check nightly.toml                          # what a series cannot be made of is refused here
//! throng recommend nightly.toml --nights 14 --churn 0.01   # keys of [series], by simulated nights
//! throng run nightly.toml --run-id 2026-11-19
//! throng verify nightly.toml                         # the newest release against ledger, source and rules
//! throng gc nightly.toml                             # what nobody needs any more, in the sink and in the state
//! ```
//!
//! The promise: *whatever changes between two releases changes in throngs*. Take everybody who was ever published, and group them
//! by the classes that they were in, release by release; every such group has k people and meets every rule, on the values that
//! were published of them. Whoever keeps all releases and knows who was there on which night learns no more of anybody than one
//! release may tell.
//!
//! - **Classes never change.** A class stays as it was first published, file and all: a night writes what is new and lists all other
//!   files again. Readers take the files that the manifest lists; the folder of the newest run holds the newest rows only.
//! - **New people wait for each other.** They are grouped among themselves. Who would lose more than `max-loss`, or finds fewer than
//!   `reserve` times k others, waits; after `max-wait` releases the best class there is will do, or the row is suppressed.
//! - **People who leave stay published**, and so do old values of those who change (*stale* rows), until a share `retire-at` of
//!   their class is stale. Then the class is split, if those who stay and those who left each meet the rules: the former come back
//!   as one class. If they do not, the class stays, or leaves as a whole with `dissolve = true`. Who has left with a class is never
//!   published again, also when they come back to the source (*withheld*).
//!
//! | key of `[series]` | default | meaning |
//! |---|---|---|
//! | `subject` | none | the columns that tell subjects apart; may be left out with `mode = "append"` |
//! | `state`, `options` | | where the ledger is, and how its object store is reached |
//! | `key-env`, `key-file` | | the secret that digests in the ledger are made with |
//! | `mode` | `snapshot` | the source is everybody of the day; `append`: rows that come, each published once and kept |
//! | `reserve` | 1.5 | rows of a new class in multiples of k; room for a later split |
//! | `max-loss` | 0.35 | largest mean loss of a new class; what would lose more waits |
//! | `max-wait` | 7 | releases that a row waits for at most |
//! | `retire-at` | 0.5 | share of stale rows from which on a class is retired |
//! | `dissolve` | false | whether a class that cannot be split leaves as a whole |
//! | `horizon` | for ever | how long releases are kept, such as `400d` |
//!
//! `throng recommend nightly.toml --nights 14 --churn 0.01` chooses these keys: it draws rows from the source, lets people come and
//! leave, publishes these nights in memory with one setting after another, and prints what each loses, what waits, is stale or
//! withheld, and the lines to write. A class is split when those who stay and those who left are throngs both, so where
//! people leave, a `reserve` of 2 and more keeps fewer stale rows than the default, and loses more.
//!
//! The summary, the manifest (`series`), the report and the metrics count new, waiting, stale, retired and withheld rows. A policy
//! may become stricter on the way (k may rise, rules may be added): old classes are as they were, so the manifest's `k` is the first
//! one. Rules that compare a class with the whole table are refused, and so are forms that do not generalise.
//!
//! With `--cluster`, the driver merges the ledger and groups what has come, within its own memory limit and spill folder, because
//! the key of the ledger never leaves it; executors judge the classes of every release. What is published is the same.
//!
//! ## Rows that only come
//!
//! With `mode = "append"`, the source is what was added, and may hold what was added before: each subject is published once and
//! stays. Rows without a number of their own (log lines, measurements) need no `subject` then:
//!
//! ```toml
//! [source]
//! url = "s3://lake/events/"              # every file is read once
//! [series]
//! mode = "append"
//! state = "s3://private/events-ledger/"
//! key-env = "EVENTS_LEDGER_KEY"
//! ```
//!
//! - A run reads the files that no run before has read; the ledger knows them by path, size and version tag (in local folders
//!   by size and time). Files may be added while it reads. The source must be files of Parquet or CSV, without SQL.
//! - Rows that wait are kept in the state *as they are*, so the state then holds raw rows, and leave it when they are published or
//!   suppressed. Every row is published once or never: after `max-wait` releases without a class it is dropped for good.
//! - A file that is not as it was read ends the run with exit code 7, and one that is gone with 4: put it back. Under another
//!   name its rows would be published twice. New or corrected rows come in files with new names.
//! - Two rows of one person are two subjects. If a person may have several rows, name a `subject`, and one row for each.
//!
//! ## The ledger
//!
//! It holds a keyed hash of every subject, its class, a hash of its history, and keyed hashes of what was published of it; no
//! value. It is as secret as the source all the same: with it and the key, rows can be followed through releases.
//!
//! | object in `state` | what it is |
//! |---|---|
//! | `version/<number>.<unique>/` | a version of the ledger: Parquet, with the checksums of its files in `version.json` |
//! | `pointer/<number>.json` | created once: the version that belongs to release `<number>` |
//! | `forgotten/` | keyed hashes of subjects that must not be published again |
//!
//! - **The key** is read from `key-env` or `key-file` by every run, and cannot be changed within a series: whoever loses it
//!   begins anew. Keep it where you keep other secrets, for as long as the series lasts.
//! - **Who may read it**: the job, and nobody who reads the sink. A prefix of the sink, or the sink of a prefix, is refused.
//! - **Back it up** with the sink, as of one moment, and the key apart from both: copy the state after a run has ended and before
//!   the next one begins. Versions never change, so a copy of `version/` and `pointer/` is enough; the newest two are kept. A ledger that was lost, or does not fit the sink,
//!   or another key, ends a run with exit code 7 before anything is published. Without a backup, begin a new series in an empty
//!   sink and an empty state, and withdraw the old one: to the new ledger everybody is new.
//! - A run that dies at any moment leaves sink and ledger at the same release; the next run finishes what is left to do.
//! - **Backfill.** Releases are numbered as they are made. Publish old nights in their order, one run for each, before the first
//!   new one, or not at all: a night that is published late counts as today, and whoever was not there then as gone.
//! - **A night that was missed** needs nothing: the next one publishes what has changed since.
//! - **Rollback** shows an earlier release again and forgets nothing: the next run goes on from the newest one.
//! - **Horizon.** `throng gc` removes releases that are older than `horizon`, and the files that no other release lists. What only
//!   they alone showed is forgotten: histories begin with the oldest release that is left, and who had left before it may be published
//!   anew. The promise then holds for readers who did not keep what was removed, as the manifest says (`series.horizon`, and a
//!   warning). The newest release and the one that readers see stay, however old they are, and so does every file that a release
//!   lists. Nothing is forgotten before it is removed: without `throng gc`, a horizon does nothing.
//! - **Garbage.** Runs keep the newest two versions of the ledger. `throng gc nightly.toml` leaves the one in force alone, as
//!   older ones know what was to be forgotten.
//! - **Erasure.** `throng forget nightly.toml --subjects erased.parquet` keeps people from being published again and says in which
//!   releases they may be. They count as gone from the next run on: their rows stay, as stale ones, until their class is retired,
//!   because a row that is taken out of a class alone tells its value. Where they must not stay, withdraw these releases: begin a
//!   new series in an empty sink and an empty state, and remove the old one. Waiting rows lapse at once.
//!
//! ## A Delta table
//!
//! With `sink.format = "delta"` (feature `delta`) a night is one version of the table: it adds the files of new rows and removes
//! those that rows have left; files of classes that stay keep their place. The version carries the manifest, and all readers of
//! Delta see whole releases. What is different from files:
//!
//! - **Other writers.** Between two nights the table must hold the files of a release of the series. Rows that were appended,
//!   deleted or compacted (OPTIMIZE) by somebody else end the next run with exit code 7; RESTORE the table to the version that the
//!   message names. Versions that change no file do not matter.
//! - **RESTORE** is the rollback, and `throng rollback` says to which version. The ledger stays: the next night goes on from the
//!   newest release, and whatever was published stays known.
//! - **VACUUM** removes the files of rows that have left, once nobody may read older versions; `throng gc` refuses the table, and
//!   `throng gc nightly.toml` removes old versions of the ledger only. `throng verify --series` and `throng attack --series`
//!   then look at the releases whose files are all there.
//! - **Horizon** is refused: Throng does not know what readers can still go back to, so nothing is forgotten. Keep the log as long
//!   as you want to audit releases; the series itself needs the newest one only.
//!
//! ## Checking it
//!
//! Before every commit the promise is recounted from the staged files and the staged ledger, by code that does not know how
//! classes were made. `throng verify nightly.toml` does it again, and holds every live row against the source.
//! `throng verify out --series` needs nothing but the published files: of every pair of neighbours, the rows that came and those
//! that went meet k (with the job file, all rules) by themselves.
//!
//! ## What it does not cover
//!
//! - Readers who know sensitive values of others in a class, and what other tables tell: as for one release.
//! - Several sinks that are fed from one source, and releases that were made before the series.
//! - Readers who kept releases that a horizon has removed.
//! - Subjects that are not people: if several subjects are one person, their rows are counted as several.
//! - Who waits or is withheld is not published, and the manifest counts them: it tells how many, never who. A reader who knows
//!   everybody's quasi-identifiers may tell who it is, and reason from it about what these people have in common: see
//!   [`threats`](super::threats).
//! - Pseudonyms and other kept columns that tell people apart: whoever knows one knows the row.
//!
//! # From a program
//!
//! The same run again does nothing, another one is refused:
//!
//! ```
//! use std::path::Path;
//!
//! use throng::{Column, ErrorKind, Outcome, Policy, Role, Run, RunOptions};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), throng::Error> {
//! # let folder = tempfile::tempdir()?;
//! # let sink = folder.path().to_string_lossy();
//! let census = concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines/data/census.parquet");
//! let policy = Policy::builder(10).column("age", Column::quasi()).other_columns(Role::Identifier).build()?;
//! let run = |id: &str| Run::new(policy.to_job(census, &*sink), Path::new("."), RunOptions::default().with_run_id(id));
//! assert!(matches!(run("monday")?.execute(&|_, _, _| ()).await?, Outcome::Released(..)));
//! assert!(matches!(run("monday")?.execute(&|_, _, _| ()).await?, Outcome::AlreadyDone(_)));
//! let refused = run("tuesday")?.execute(&|_, _, _| ()).await.unwrap_err();
//! assert_eq!(refused.kind(), ErrorKind::Conflict);
//! # Ok(())
//! # }
//! ```
