//! Streams: rows that never end, anonymised a window at a time.
//!
//! A release is made of a table that is there. A stream is not: a FIFO, a message queue, a change feed. With a `[window]` in
//! its policy, `anonymize` gathers rows in a window, makes classes of them, and publishes the classes; rows that make no
//! class wait for the next window.
//!
//! ```
//! use datafusion::prelude::SessionContext;
//! use throng::{Column, HierarchySpec, Policy, Window, register, register_policy};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = Policy::builder(5)
//!     .column("age", Column::quasi().with_domain(0.0, 120.0))
//!     .column("ward", Column::sensitive())
//!     .window(Window::of_rows(100).with_time("10m").with_max_wait(3))
//!     .build()?;
//! let context = SessionContext::new();
//! register(&context)?;
//! register_policy(&context, "wards", policy)?;
//! // Elsewhere: CREATE UNBOUNDED EXTERNAL TABLE visits (...) STORED AS CSV LOCATION '/run/visits.fifo'
//! context.sql("CREATE VIEW visits AS SELECT value % 60 + 20 AS age, value % 7 AS ward FROM generate_series(1, 500)").await?.collect().await?;
//! let published = context.sql("SELECT * FROM anonymize('visits', 'wards')").await?;
//! assert_eq!(published.count().await?, 500);
//! # Ok(())
//! # }
//! ```
//!
//! | key of `[window]` | |
//! |---|---|
//! | `rows` | rows that gather before classes are made of them; needed, because it bounds what is held |
//! | `time` | a window is closed after this time even if it is not full, `"10m"` |
//! | `max-wait` | windows that a row waits at most (3); then it goes into the best class there is, or is suppressed |
//! | `max-loss` | rows whose class would lose more than this wait as well |
//! | `subject`, `remember` | columns that tell subjects apart, and how many of the latest are remembered (a million) |
//! | `survey` | a file of `throng survey` with domains of columns |
//!
//! In SQL without a registered policy these are `window => 100000`, `window_time => '10m'` and `max_wait => 3`. A window over
//! a table that does end works the same way; without one, `anonymize` sees the whole table, as it should where it can.
//!
//! # What holds
//!
//! - Every class of every window meets k and the rules by itself. Two windows may publish classes with the same label; together
//!   they meet the rules, too, and rules that this is not true of (range diversity) are refused.
//! - Every row is published once, or counted as suppressed, or as repeated. At the end of input, and only then, nobody waits:
//!   what is left goes into the best classes of the last window, or is suppressed.
//! - At most two windows of rows are held, within the memory pool of the session. A query whose window does not fit fails and
//!   says so; windows do not spill.
//! - Rows of a window leave in an order that follows from what is published and from the key of the session. In which window
//!   a row came can be seen from the order of windows: a reader of the stream knows about when it arrived.
//!
//! More suppression than `privacy.max-suppression` ends the query, once as many rows have come as a window holds. What was
//! emitted before is out: a stream is not verified before it is published, as a release is.
//!
//! # Subjects must not repeat
//!
//! A person whose row comes in two windows is in two classes, and what both have in common says more than each. Either the
//! stream has one row for each subject, or `subject` names the columns that tell subjects apart: keyed digests of the latest
//! `remember` subjects are kept in memory, and rows of somebody who is among them are dropped and counted. The memory ends
//! with the query; a subject that comes back after more than `remember` others is not known again. Tables of the same
//! people, published again and again, are a series: see [`again`](super::again).
//!
//! # Domains
//!
//! Loss is measured against the domain of a column, and a stream has published before it has shown its ends. So numbers and
//! dates need one of three things, and are refused without:
//!
//! - a hierarchy, such as `hierarchy = { widths = [5, 10, 50] }`;
//! - bounds, `domain = [0, 120]`;
//! - a survey of rows that are at hand: `throng survey people.toml -o people.survey`, then `window.survey =
//!   "people.survey"`. Rules that compare classes with the whole table, such as t-closeness, need it in any case.
//!
//! A value outside of the domain widens it for its window. A sensitive value that the survey has not seen counts as one that
//! does not occur in the table: where the rule cannot bear it, its row waits and is suppressed in the end.
//!
//! A survey file holds values of columns and no rows. Only its owner may read it; keep it as you keep the source. It names the
//! policy and the columns that it is for, and is refused with others (`[window]` is no part of that), or when it is damaged.
//!
//! The same file spares a run over a whole table its first pass: `throng run people.toml --survey people.survey`. Cells and
//! domains are then those of the surveyed table. That costs quality where the tables differ, never privacy: classes are made
//! of the rows as they are, and verified. Policies that compare classes with the table itself are refused there.
//!
//! # What to watch
//!
//! `EXPLAIN ANALYZE` and the metrics of `AnonymizeWindowsExec` tell `windows`, `waiting_rows`, `suppressed_rows` and
//! `repeated_rows`. They count all rows: they are for those who may read the stream. One node gathers all partitions, because
//! a class needs its rows in one place; streams that must go faster are split by something that is published anyway, each
//! part with a query of its own. Plans with windows are not sent to other machines.
