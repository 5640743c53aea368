//! The mathematics of Throng: everything that can be said of a table without reading a file.
//!
//! A researcher can read these rooms beside the papers. They know nothing of DataFusion, Arrow, threads or files, and
//! cannot: this crate does not depend on any of them. Each uses those before it only.
//!
//! | module | what it does |
//! |---|---|
//! | [`model`] | codes, axes, covers: a table as the algorithms see it |
//! | [`hierarchy`] | how values generalise: trees, ladders, calendars, masks |
//! | [`attack`] | what an adversary can conclude |
//! | [`privacy`] | rules, behind one trait |
//! | [`dependency`] | what columns tell of each other, and what is left of it |
//! | [`measure`] | information loss, protection, risk |
//! | [`grouping`] | median splits, the trait of methods, enforcement of rules |
//! | [`permutation`] | published forms that permute instead of generalising |
//! | [`auto`] | the default method: covers by the cheapest boxes, growth, local search |
//! | [`bound`] | how little any grouping can lose, proven |
//! | [`methods`] | the list of methods, and those of research works |
//! | [`series`] | what releases over time may show together |
//!
//! The `throng` crate runs them on Parquet; its interface is the one that stays.

pub mod attack;
pub mod auto;
pub mod bound;
pub mod dependency;
pub mod faults;
pub mod grouping;
pub mod hierarchy;
pub mod measure;
pub mod methods;
pub mod model;
pub mod permutation;
pub mod privacy;
pub mod series;
pub mod simd;
