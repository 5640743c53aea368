//! Guides and reference. All Rust code in them is compiled and run by the tests, and so are the commands.
//!
//! **Start here**
//!
//! | page | for |
//! |---|---|
//! | [`first_job`] | a release in five minutes, from a folder that nobody has looked at yet |
//! | [`choosing`] | choosing k, rules, and how much loss to accept |
//! | [`threats`] | the threat model: what a release protects against, and what it does not |
//! | [`embedding`] | Throng inside another DataFusion program |
//!
//! **Reference**
//!
//! | page | about |
//! |---|---|
//! | [`job_file`] | columns, roles, published forms, dependencies, output, measures |
//! | [`hierarchies`] | how values are generalised |
//! | [`rules`] | privacy rules |
//! | [`methods`] | grouping methods, measures, and where they come from |
//! | [`sources`] | Parquet, CSV, SQL, Delta |
//! | [`releases`] | what lies in the sink, how to read it, published forms |
//! | [`again`] | publishing again: several releases of the same people |
//! | [`streams`] | rows that never end: windows, surveys |
//! | [`stores`] | object stores and credentials |
//! | [`operating`] | running in production: exit codes, logs, metrics, traces |
//! | [`cluster`] | distributed execution |

pub mod again;
pub mod choosing;
pub mod cluster;
pub mod embedding;
pub mod first_job;
pub mod hierarchies;
pub mod job_file;
pub mod methods;
pub mod operating;
pub mod releases;
pub mod rules;
pub mod sources;
pub mod stores;
pub mod streams;
pub mod threats;
