//! Releases over time: the promise of a series recounted by brute force, faults and kills between any two steps of a commit,
//! and everything that may happen to a table overnight.

mod commands;
mod edges;
mod exposure;
mod faults;
mod files;
mod horizon;
mod kills;
#[cfg(feature = "delta")]
mod lake;
mod random;
mod recommending;
mod stopping;
mod unseen;
mod world;
