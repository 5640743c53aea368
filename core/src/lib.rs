//! The algorithms of Throng: everything that needs codes but no files.
//!
//! A researcher can read these modules beside the papers. They know nothing of DataFusion, Arrow, threads or files, and
//! cannot: this crate depends on none of them. Each module uses only those before it.
//!
//! | module | what it does |
//! |---|---|
//! | [`model`] | codes, axes, covers: a table as the algorithms see it |
//! | [`hierarchy`] | how values generalise: trees, ladders, calendars, masks |
//! | [`attack`] | what an adversary can conclude |
//! | [`privacy`] | rules, behind one trait |
//! | [`dependency`] | what columns reveal about each other, and how much of it is preserved |
//! | [`measure`] | information loss, protection, risk |
//! | [`grouping`] | median splits, the trait of methods, enforcement of rules |
//! | [`permutation`] | published forms that permute instead of generalising |
//! | [`auto`] | the default method: covers by the cheapest boxes, growth, local search |
//! | [`bound`] | a proven lower bound on the loss of any grouping |
//! | [`methods`] | the list of methods, and those of research works |
//! | [`series`] | what releases over time may show together |
//!
//! The `throng` crate runs them on Parquet; only its API is stable.

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
