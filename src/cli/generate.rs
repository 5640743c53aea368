//! `throng generate`: a synthetic census of any size.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use clap::Args;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

use crate::error::{Error, Result, unwritable_file};
use crate::generate::{Census, Nights};
use crate::terminal::eprint_line;

/// Write a synthetic census as Parquet, for demonstrations, tests and benchmarks
///
/// The same seed gives the same rows, whatever the number of files.
///
/// With --nights, the census of so many nights: one file for each, from `night-000.parquet` on, of people who come and leave.
///
/// Example: throng generate --rows 1000000 census.parquet
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// File to write, or folder when there are several files
    output: PathBuf,
    /// Number of rows
    #[arg(long, default_value_t = 10_000)]
    rows: u64,
    /// Seed of all values
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Number of files to distribute the rows over
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    files: u64,
    /// Number of nights to write the census of, each into a file of its own below the output
    #[arg(long, conflicts_with = "files", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    nights: Option<u64>,
    /// Share of people who leave every night while as many come
    #[arg(long, default_value_t = 0.01, requires = "nights")]
    churn: f64,
}

/// Rows made at a time.
const BATCH_ROWS: usize = 1 << 16;

/// Writes the census.
pub(crate) fn run_generate(arguments: &Arguments, quiet: bool) -> Result<()> {
    if let Some(nights) = arguments.nights {
        return write_nights(arguments, nights, quiet);
    }
    let census = Census::new(arguments.seed, arguments.rows);
    if arguments.files == 1 {
        write_census(&census, 0..arguments.rows, &arguments.output)?;
    } else {
        fs::create_dir_all(&arguments.output).map_err(|error| unwritable_file(&arguments.output, &error))?;
        // Files are handed out one by one to as many threads as there are cores.
        let next = AtomicU64::new(0);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..cores)
                .map(|_| {
                    scope.spawn(|| {
                        loop {
                            let file = next.fetch_add(1, Ordering::Relaxed);
                            if file >= arguments.files {
                                return Ok(());
                            }
                            let at = |file: u64| {
                                (u128::from(arguments.rows) * u128::from(file) / u128::from(arguments.files)) as u64
                            };
                            let path = arguments.output.join(format!("part-{file:05}.parquet"));
                            write_census(&census, at(file)..at(file + 1), &path)?;
                        }
                    })
                })
                .collect();
            workers.into_iter().try_for_each(|worker| {
                worker.join().unwrap_or_else(|_| Err(Error::internal("a writer thread panicked")))
            })
        })?;
    }
    if !quiet {
        eprint_line(&format!("wrote {} rows to {}", arguments.rows, arguments.output.display()));
    }
    Ok(())
}

/// Writes the census of every night.
fn write_nights(arguments: &Arguments, nights: u64, quiet: bool) -> Result<()> {
    if !(0.0..1.0).contains(&arguments.churn) {
        return Err(Error::job(format!("--churn must be at least 0 and below 1, is {}", arguments.churn)));
    }
    fs::create_dir_all(&arguments.output).map_err(|error| unwritable_file(&arguments.output, &error))?;
    let census = Nights::new(arguments.seed, arguments.rows, arguments.churn);
    for night in 0..nights {
        write_rows(
            census.night_batches(night, BATCH_ROWS),
            &arguments.output.join(format!("night-{night:03}.parquet")),
        )?;
    }
    if !quiet {
        eprint_line(&format!("wrote {nights} nights to {}", arguments.output.display()));
    }
    Ok(())
}

fn write_census(census: &Census, rows: std::ops::Range<u64>, path: &PathBuf) -> Result<()> {
    write_rows(census.batches(rows, BATCH_ROWS), path)
}

fn write_rows(batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>, path: &PathBuf) -> Result<()> {
    let file = File::create(path).map_err(|error| unwritable_file(path, &error))?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut writer = ArrowWriter::try_new(file, Census::schema(), Some(properties))?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    writer.close()?;
    Ok(())
}
