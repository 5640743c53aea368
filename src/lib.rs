//! Throng anonymises large Parquet datasets: every row leaves in a throng of at least k.

#[cfg(feature = "cli")]
pub mod cli;
pub mod domain;
pub mod encode;
pub mod error;
pub mod generate;
pub mod hierarchy;
pub mod job;
pub mod measure;
pub mod method;
pub mod operator;
pub mod partition;
pub mod privacy;
pub mod recode;
pub mod release;
pub mod survey;
