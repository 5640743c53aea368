//! `throng releases`, `throng rollback`, `throng gc`: manage the releases of a sink.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::arguments::{StoreArguments, blame_job_file, read_job};
use crate::error::{Error, Result};
use crate::release::{self, Run, RunOptions, collect_garbage, latest_run, releases};
use crate::storage::local_path;
use crate::terminal::new_table;
use crate::terminal::{eprint_line, print_json, print_result};

/// List the releases of a sink, oldest first; the one that readers see is marked
///
/// Example: throng releases pipelines/out/census
#[derive(Debug, Args)]
pub(crate) struct Releases {
    /// The sink: a folder or an object-store prefix
    sink: PathBuf,
    #[command(flatten)]
    stores: StoreArguments,
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// Make an earlier release the one that readers see
///
/// Nothing is removed; `throng rollback` to the newer one brings it back.
///
/// Example: throng rollback pipelines/out/census 2026-11-15
#[derive(Debug, Args)]
pub(crate) struct Rollback {
    /// The sink: a folder or an object-store prefix
    sink: PathBuf,
    /// Run id of the release, as `throng releases` lists it
    run_id: String,
    #[command(flatten)]
    stores: StoreArguments,
    /// Print the run that readers see now as JSON
    #[arg(long)]
    json: bool,
}

/// Remove files that no release refers to, as killed runs leave them behind, and releases of a series beyond its horizon
///
/// Files younger than --older-than are kept, because a run may be writing them; those of a run in progress
/// are kept however old they are. Given the job file of a series, old versions of its ledger are removed as well, never the
/// one in force.
///
/// Example: throng gc pipelines/out/census --dry-run
#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// The sink: a folder or an object-store prefix; or the job file that publishes into it
    sink: PathBuf,
    /// Only list what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Minimum age of a file in hours
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    older_than: u64,
    #[command(flatten)]
    stores: StoreArguments,
    /// Print the files as JSON
    #[arg(long)]
    json: bool,
}

/// Lists releases.
pub(crate) async fn list_releases(arguments: Releases) -> Result<()> {
    let sink = arguments.stores.open_sink(&arguments.sink)?;
    let newest = latest_run(&sink).await?;
    let found = releases(&sink).await?;
    if found.is_empty() {
        let sink = arguments.sink.display();
        return Err(Error::input(format!("there is no release at `{sink}`; `throng run` makes one")));
    }
    if arguments.json {
        let listed = found.iter().map(|release| {
            json!({
                "run": release.run,
                "newest": newest.as_ref() == Some(&release.run),
                "committed": release.committed,
                "rows": release.rows,
                "suppressed": release.suppressed,
                "k": release.k,
                "files": release.files.len(),
                "series": release.series.as_ref().map(|series| series.number),
            })
        });
        return print_json(&listed.collect::<Vec<Value>>());
    }
    let mut table = new_table(&["", "run", "committed", "rows", "suppressed", "k", "files"]);
    for release in found {
        table.add_row([
            if newest.as_ref() == Some(&release.run) { "*" } else { "" }.to_owned(),
            release.run,
            release.committed,
            release.rows.to_string(),
            release.suppressed.to_string(),
            release.k.to_string(),
            release.files.len().to_string(),
        ]);
    }
    print_result(&table.to_string())
}

/// Makes an earlier release the newest.
pub(crate) async fn run_rollback(arguments: Rollback, quiet: bool) -> Result<()> {
    release::rollback(&arguments.stores.open_sink(&arguments.sink)?, &arguments.run_id).await?;
    if arguments.json {
        return print_json(&json!({ "run": arguments.run_id }));
    }
    if !quiet {
        eprint_line(&format!("readers of {} now see run `{}`", arguments.sink.display(), arguments.run_id));
    }
    Ok(())
}

/// Removes unreferenced files.
pub(crate) async fn run_gc(arguments: Gc, quiet: bool) -> Result<()> {
    let age = Duration::from_secs(arguments.older_than.saturating_mul(3600));
    let found = if arguments.sink.extension().is_some_and(|extension| extension == "toml") {
        collect_of_job(&arguments, age).await.map_err(|error| blame_job_file(&arguments.sink, error))?
    } else {
        collect_of_sink(&arguments, age).await?
    };
    let bytes: u64 = found.iter().map(|(_, size)| size).sum();
    if arguments.json {
        let files: Vec<Value> = found.iter().map(|(path, size)| json!({ "path": path, "size": size })).collect();
        let removed = !arguments.dry_run && !found.is_empty();
        return print_json(&json!({ "removed": removed, "bytes": bytes, "files": files }));
    }
    if !quiet {
        for (path, _) in &found {
            print_result(path)?;
        }
        let verb = if arguments.dry_run { "would be removed" } else { "removed" };
        match found.len() {
            0 => eprint_line(&format!("{}: nothing to remove", arguments.sink.display())),
            files => eprint_line(&format!("{files} files, {} {verb}", bytesize::ByteSize(bytes))),
        }
    }
    Ok(())
}

async fn collect_of_sink(arguments: &Gc, age: Duration) -> Result<Vec<(String, u64)>> {
    let missing = |path: PathBuf| !path.exists();
    if local_path(Path::new("."), &arguments.sink.to_string_lossy()).is_some_and(missing) {
        return Err(Error::input(format!("there is no sink at `{}`", arguments.sink.display())));
    }
    collect_garbage(&arguments.stores.open_sink(&arguments.sink)?, age, arguments.dry_run).await
}

/// Removes what the sink of a job does not need any more, and the ledger of its series.
async fn collect_of_job(arguments: &Gc, age: Duration) -> Result<Vec<(String, u64)>> {
    let (mut job, base) = read_job(&arguments.sink, &[])?;
    arguments.stores.lay_over(&mut job);
    let in_table = job.series.is_some() && job.sink.is_delta();
    let run = Run::new(job, &base, RunOptions::default())?;
    // The ledger first, which finishes the commit of a run that has died.
    let versions = run.collect_versions(age, arguments.dry_run).await?;
    let mut found = if in_table {
        tracing::warn!("the files of the Delta table are left to VACUUM");
        Vec::new()
    } else {
        collect_garbage(&run.sink()?, age, arguments.dry_run).await?
    };
    found.extend(versions.into_iter().map(|(name, size)| (format!("series.state: {name}"), size)));
    Ok(found)
}
