//! Sources: what can be read.
//!
//! `source.url` is a file, a folder, a glob or an object-store prefix.
//!
//! # Parquet
//!
//! The default. A column that some files lack is null there. A column that two files hold with different types is an error
//! that names both, before any data is read.
//!
//! # Folders that name columns
//!
//! `year=2024/region=north/...` become columns like all others and need a role. Their types follow from the values (whole
//! numbers without leading zeros, dates, else text) or are declared: `schema = { year = "int32" }`. Values of folder columns
//! that are not `kept` are omitted from manifests, plans and errors.
//!
//! # CSV
//!
//! CSV needs a type for every column. A row that cannot be parsed is named by file, line and column, never by its value.
//!
//! ```toml
//! [source]
//! url = "data/people/"
//! format = "csv"
//! delimiter = ";"                  # defaults to a comma
//! null = "NA"                      # what stands for null, beside an empty field
//! schema = { name = "text", age = "int32", born = "date", income = "decimal(12, 2)" }
//! # header = false, and names = ["name", "age", "born", "income"] for files without a header
//! ```
//!
//! # A query
//!
//! A query over several tables, each a location or a table of the keys above. It must return the same rows every time it is
//! read, so `random()`, `now()` and LIMIT without ORDER BY are rejected.
//!
//! ```toml
//! [source]
//! sql = "SELECT p.age, p.zip, v.ward FROM people p JOIN visits v ON v.person = p.id"
//! [source.tables]
//! people = "data/people/"
//! visits = { url = "data/visits.csv", format = "csv", schema = { person = "int64", ward = "text" } }
//! ```
//!
//! # Delta Lake
//!
//! With the feature `delta`: a folder with a Delta log, or `delta://` before a location. The run reads the version that is
//! newest when it starts, or `version = 12`, and the manifest records it.
//!
//! # What is wrong is named
//!
//! A source is checked before it is read:
//!
//! ```
//! use std::path::Path;
//!
//! use throng::Job;
//!
//! let job = r#"
//!     version = 1
//!     source = { url = "people.csv", format = "csv", schema = { age = "int32", ward = "text" } }
//!     sink.url = "out"
//!     privacy.k = 5
//!     columns = { age.role = "quasi", ward.role = "sensitive" }
//! "#;
//! assert!(Job::parse(job, Path::new("job.toml")).is_ok());
//! let misspelt = Job::parse(&job.replace("format", "fromat"), Path::new("job.toml")).unwrap_err();
//! assert!(misspelt.to_string().contains("did you mean `format`?"));
//! ```
