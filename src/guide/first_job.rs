//! A release in five minutes.
//!
//! All you need is Parquet. If you have none at hand, make some:
//!
//! ```sh
//! throng generate --rows 2000 --files 2 people
//! ```
//!
//! # 1. Look at it, and draft a job
//!
//! ```sh
//! throng profile people/ --write job.toml
//! ```
//!
//! prints every column with a guess of what it is to an attacker, and how many rows are alone with their values as
//! things stand. `job.toml` is a complete job; hierarchies lie beside it, in `hierarchies/`. They list the values of
//! their columns, so treat them like the data.
//!
//! Read the job before you run it. Four roles decide everything:
//!
//! | role | meaning | published |
//! |---|---|---|
//! | `identifier` | points at one person on its own | not at all |
//! | `quasi` | could be known from elsewhere, and points at one person together with others | coarsely |
//! | `sensitive` | what the release is for, and what nobody may link to a person | unchanged, guarded by rules |
//! | `kept` | neither | unchanged |
//!
//! A wrong guess towards `quasi` costs detail. A wrong guess towards `kept` or `sensitive` costs privacy: those are
//! the lines to read twice.
//!
//! # 2. Run it
//!
//! ```sh
//! throng check job.toml
//! throng run job.toml
//! ```
//!
//! groups the rows, writes them, reads them back, counts every class, and only then makes the release visible, in the
//! folder that `sink.url` names. Running it again does nothing: the same rows under the same policy are the same
//! release.
//!
//! # 3. Show it to those who sign
//!
//! ```sh
//! throng report job.toml -o report.html
//! ```
//!
//! is one page that needs no network: the verdict, what was done to every column, how large the classes are, the risk
//! that is left, and where everything came from.
//!
//! # The same from a program
//!
//! ```
//! use std::fs::File;
//!
//! use datafusion::parquet::arrow::ArrowWriter;
//! use throng::generate::{Census, schema};
//! use throng::policy::Job;
//! use throng::explore::profile::{Draft, profile};
//! use throng::release::{Outcome, Run, RunOptions, SessionOptions};
//! use throng::source::Source;
//! use throng::storage::Stores;
//! use throng::report::{Options, Report};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let data = folder.join("people.parquet");
//! let mut writer = ArrowWriter::try_new(File::create(&data)?, schema(), None)?;
//! for batch in Census::new(7, 1500).batches(0..1500, 1024) {
//!     writer.write(&batch?)?;
//! }
//! writer.close()?;
//!
//! // 1. Look at it, and draft a job.
//! let (context, _spill) = SessionOptions::default().open()?;
//! let source = Source::at(&Stores::default(), folder, "people.parquet").await?;
//! let (input, _) = source.scan(&context).await?;
//! let found = profile(&context, input).await?;
//! assert!(found.exposure.unique > 0.5, "most people of a census are alone with their values");
//! let path = folder.join("job.toml");
//! Draft::new(&found, &data.to_string_lossy(), &path)?.write(false)?;
//!
//! // 2. Run it.
//! let job = Job::parse(&std::fs::read_to_string(&path)?, &path)?;
//! let run = Run::new(job.clone(), folder, RunOptions::default())?;
//! let Outcome::Released(manifest, _) = run.execute(&|_, _, _| ()).await? else { panic!("released before") };
//! assert!(manifest.verification.classes.smallest >= u64::from(manifest.k));
//!
//! // 3. Show it.
//! let report = Report::of_job(&job, folder, Options::default()).await?;
//! assert!(report.findings.is_empty());
//! std::fs::write(folder.join("report.html"), report.html())?;
//! # Ok(())
//! # }
//! ```
