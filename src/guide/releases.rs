//! Releases: what lies in the sink, how to read it, and the published forms.
//!
//! ```text
//! <sink>/data/run=<run id>.<attempt>/part-*.parquet    rows, immutable (in qit/ and st/ if there are two tables)
//! <sink>/_manifest/<run id>.json                       what was published and how good it is; written last
//! <sink>/_latest                                       points to the newest release
//! <sink>/_SUCCESS                                      for programs that wait for it
//! ```
//!
//! A release exists once its manifest does. Readers follow `_latest`, which changes atomically:
//!
//! ```python
//! import json, pyarrow.dataset as ds
//! sink = "pipelines/out/census"
//! people = ds.dataset(f"{sink}/{json.load(open(f'{sink}/_latest'))['data']}").to_table()
//! ```
//!
//! ```sql
//! -- DuckDB
//! SET VARIABLE data = (SELECT data FROM read_json('pipelines/out/census/_latest'));
//! SELECT age.min, age.max, region, diagnosis
//! FROM read_parquet('pipelines/out/census/' || getvariable('data') || '/*.parquet', hive_partitioning = false);
//! ```
//!
//! ```bash
//! # DataFusion
//! data=$(sed -n 's/.*"data": "\(.*\)".*/\1/p' pipelines/out/census/_latest)
//! datafusion-cli -c "SELECT age['min'], age['max'], region, diagnosis FROM 'pipelines/out/census/$data/'"
//! ```
//!
//! Files never change; `throng verify <sink>` checks them at any time, without policy or source, and `throng verify job.toml`
//! against both. It compares files with the manifest and the manifest with itself; with a job also both with the job, the
//! types of columns and every row with the source. What only a signature can show is in the guide on
//! [threats](super::threats). Earlier releases stay in place, and `throng rollback` makes one of them current again.
//!
//! # What is checked when
//!
//! A run reads its files back before it commits, and publishes nothing if a check fails. Comparing rows
//! with the source takes another scan and a `GROUP BY` over both, so `throng verify job.toml` does that: run it before a
//! release is handed on.
//!
//! | | `throng run` | `verify <sink>` | `verify job.toml` |
//! |---|---|---|---|
//! | `k`, in rows or people | yes | yes | yes |
//! | all other rules, `max-loss` and presence included | yes | | yes |
//! | order of rows, random group numbers, links of two tables | yes | order and links | yes |
//! | columns, types, and no other metadata about them in the files | yes | yes | yes |
//! | as many rows as the source has, less those left out | yes | by the manifest | yes |
//! | identifiers replaced, nulls dropped | yes | | yes |
//! | manifest, footers and checksums agree | yes | yes | yes |
//! | kept and sensitive values are those of the source, row by row | | | yes |
//! | generalised values cover those of the source; permuted ones have moved | | | yes |
//!
//! # A sink and its releases
//!
//! A sink takes the release of one run, and further ones only if the job says that they are independent
//! ([`again`](super::again)).
//!
//! # Identity
//!
//! A run that has been released is not repeated: the same policy, input, cell size and version give the same run id, or
//! choose one with `--run-id`. Readers of the manifest must not be able to confirm guesses of the raw files, so the input is
//! identified by the names of its files and when they were last changed; with `key-env` by their content, under that key.
//! The Parquet metadata of every file carries `throng.run`, `throng.policy`, `throng.k` and
//! `throng.version`.
//!
//! # Order
//!
//! Rows are ordered by their published values: the columns of their class first, then all others. Every class lies in one
//! file, or in files that continue each other, chosen by a hash of its published values. Order and file borders therefore
//! reveal nothing about how groups were made, and `throng verify` checks them. Dictionaries and page statistics are made of
//! published values only.
//!
//! # Delta Lake as a sink
//!
//! `sink = { url = "...", format = "delta" }` (feature `delta`) publishes to a Delta table: a release is one commit that adds
//! its files, removes those of the previous release and carries the manifest. The run id is an application transaction of
//! that commit (`throng/<run id>`), so a released run is not repeated. `throng releases` and `verify` read the log; an earlier
//! release is an earlier version, so `rollback` and `gc` leave it to Delta's RESTORE and VACUUM. A night of a series
//! changes only the files that rows have come to or left: see [`again`](crate::guide::again).
//!
//! # Forms
//!
//! `method.form` decides how the groups of any method are published. All forms but the first keep values unchanged and break
//! the links between them; rows then carry a `group` number.
//!
//! | `method.form` | published |
//! |---|---|
//! | `generalise` | one combination of quasi-identifiers for every group (default) |
//! | `bucketise` | quasi-identifiers unchanged; sensitive values permuted inside their group |
//! | `slice` | columns that depend on each other stay together; each slice is permuted inside its group. `method.slices` is their number (defaults to 2, found in a sample by Pearson's and the mean-square contingency coefficient) or lists them: `[["age", "pay"], ["town", "ill"]]` |
//! | `permute` | every column permuted on its own |
//! | `anatomy` | two linked tables: `qit/` with the quasi-identifiers unchanged and a group number, `st/` with the sensitive values of every group and their counts |
//! | `anatomy-permuted` | the same, with every quasi-identifier permuted on its own |
//! | `combined` | every group generalised as little as permuting each column allows within `presence`; the form of the method `combined` |
//!
//! How often every value (of a slice) occurs in every group is preserved exactly, and `throng verify` checks it: it finds the
//! group of every row of the source, compares the counts, checks the size of every group, and applies the rules on sensitive
//! columns to every group. A release in which no value has changed its place is detected as well: the chance of that is the
//! product over all groups of the share of orders that show what the source has; below 1e-9 it is reported.
//! Permutations and group numbers are drawn from the secret key of the run. These forms do not hide
//! who is in the table: a reader with a public table exploits exact counts. `throng attack` shows how many people such a
//! reader finds, and a job with `presence` rejects all forms but `generalise` and `combined`. In SQL both tables of `anatomy`
//! stand side by side in one relation: `group` links them, and rows with a `count` are those of the sensitive table.
//!
//! # From a program
//!
//! ```
//! use std::path::Path;
//!
//! use throng::releases::{Location, latest_run, releases};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), throng::Error> {
//! let sink = Location::open(Path::new("pipelines/out"), "census")?;
//! for release in releases(&sink).await? {
//!     println!("{}: {} rows, k = {}", release.run, release.rows, release.k);
//! }
//! println!("readers see {:?}", latest_run(&sink).await?);
//! # Ok(())
//! # }
//! ```
