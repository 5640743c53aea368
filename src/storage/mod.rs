//! Files as tables: what both the reading of a source and the verification of a release need of storage, and neither owns.
//!
//! `files_table` reads a fixed list of files whose footers have been looked at, `partitions` the columns in the names of their folders.

mod arrow_schema;
#[cfg(feature = "aws")]
mod aws_profile;
pub(crate) mod bounded;
mod cloud;
pub(crate) mod files_table;
mod footer;
pub(crate) mod locate;
pub(crate) mod location;
pub(crate) mod options;
pub(crate) mod partitions;
pub(crate) mod stores;
pub(crate) mod upload;

#[cfg(feature = "cli")]
pub(crate) use bounded::read_job_text;
#[cfg(feature = "cli")]
pub(crate) use bounded::read_statements;
#[cfg(feature = "cli")]
pub(crate) use bounded::read_text;
pub(crate) use locate::{is_url, local_path};
pub use location::Location;
pub use options::{StoreOptions, Timeout};
pub use stores::Stores;
#[cfg(feature = "cluster")]
pub(crate) use upload::Uploads;

pub(crate) use files_table::FilesTable;
pub(crate) use footer::{ensure_footer, read_footer};
pub(crate) use partitions::Partitions;
