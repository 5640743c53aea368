//! Whether a release agrees with what is said of it: its manifest with its files, its tables with each other, and a release
//! of a series with its neighbours. The rules themselves are judged by [`crate::verify`], which knows no manifest.

pub(crate) mod files;
pub(crate) mod manifest;
mod neighbours;
mod tables;

pub use files::verify_release;
pub(crate) use files::{count_classes, open_readable};
pub(crate) use neighbours::{verify_neighbours, verify_series};
pub(crate) use tables::Tables;
