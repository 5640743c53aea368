//! The job file: what to read, what each column is, what the release must satisfy, how to group and where to write.
//!
//! The way of a job: [`Job::parse`] turns TOML into the plain [`model`] (unknown keys refused with a suggestion),
//! [`check`] finds every problem that shows without reading data, [`check_schema`] every problem that shows once the
//! columns of the source are known. A [`Treatment`] is the checked policy laid over those columns. [`json_schema`]
//! describes the file for editors, and [`Job::policy_hash`] names the policy that a release was made under.

mod check;
mod columns;
mod dependencies;
mod forms;
mod hash;
mod identifier;
mod load;
mod locate;
mod measures;
mod method;
pub mod model;
mod output;
mod parse;
mod presence;
mod privacy;
mod problem;
mod rules;
mod schema;
mod slices;
mod source;
mod store;
mod treatment;

pub use check::check;
pub use columns::{check_layout, check_schema};
pub use dependencies::{Dependency, Inference, Laid};
pub use forms::Several;
pub use identifier::{Encoding, Pseudonym, Treat};
pub use load::OpenError;
pub use locate::{is_url, local_path, resolve};
pub use measures::{MeasureSpec, Queries};
pub use method::{COUNT, GROUP};
pub(crate) use method::{diversity_rules, presence_rule, range_rules};
pub use model::*;
pub use output::FileSize;
pub use parse::JobError;
pub use presence::Presence;
pub use problem::{Problem, Severity};
pub use schema::json_schema;
pub use slices::SliceSpec;
pub(crate) use source::BUILD;
pub use source::{Format, SinkFormat, data_type};
pub use store::{StoreOptions, TimeOut};
pub use treatment::{MEMBER_COLUMN, Policy, QuasiColumn, SensitiveColumn, Treatment, published_fields};
