//! Checks of a job that need no data: all problems are reported at once.
//!
//! This file looks at version, source and sink and output; `rules` at the privacy rules, `columns` at the columns,
//! `method` at the method. Hierarchy files are opened and validated.

use std::path::Path;

use datafusion::arrow::datatypes::Schema;

use super::columns::{self, Demands};
use super::definition::Policy;
use super::model::{Compression, Job};
use super::{dependencies, identifier, measures, method, output, privacy, rules, series, source, window};
use crate::error::Problem;
use crate::storage::locate::location_names;
use crate::storage::{is_url, local_path};

/// The version of the job file that this crate reads.
const VERSION: u32 = 1;

/// Where data may be: the local file system and the object stores.
const SCHEMES: [&str; 9] = ["file", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl"];

/// Finds all problems of a job that show without reading data, and adds notes. `base` is
/// the folder of the job file.
///
/// ```
/// use std::path::Path;
///
/// use throng::{Job, check};
///
/// let text = "version = 1\nsource.url = \"in\"\nsink.url = \"out\"\nprivacy.k = 1\ncolumns.age.role = \"quasi\"\n";
/// let problems = check(&Job::parse(text, Path::new("job.toml"))?, Path::new("."));
/// assert!(problems.iter().any(|problem| problem.is_error() && problem.key == "privacy.k"));
/// # Ok::<(), throng::Error>(())
/// ```
pub fn check(job: &Job, base: &Path) -> Vec<Problem> {
    let mut problems = Vec::new();
    if job.version != VERSION {
        problems.push(Problem::error("version", format!("must be {VERSION}, got {}", job.version)));
    }
    check_locations(job, base, &mut problems);
    privacy::check_presence(job, base, &mut problems);
    let trees = columns::open_hierarchies(job, base, &mut problems);
    columns::check_options(job, &mut problems);
    identifier::check_identifiers(job, base, &mut problems);
    rules::check_privacy(job, &trees, &mut problems);
    dependencies::check_dependencies(job, &mut problems);
    method::check_method(job, &mut problems);
    check_output(job, &mut problems);
    measures::check_measures(job, &mut problems);
    series::check_series(job, base, &mut problems);
    window::check_window(job, base, &mut problems);
    problems
}

/// Finds all problems between the columns of a source and a policy.
pub(crate) fn check_columns(policy: &Policy, schema: &Schema) -> Vec<Problem> {
    let demands = Demands { privacy: &policy.privacy, defaults: policy.defaults.as_ref(), columns: &policy.columns };
    let mut problems = demands.check_schema(schema);
    problems.extend(dependencies::missing_columns(&policy.dependencies, schema));
    problems
}

fn check_locations(job: &Job, base: &Path, problems: &mut Vec<Problem>) {
    source::check_source(&job.source, problems);
    source::check_sink(&job.sink, problems);
    let sink = job.sink.url.as_str();
    for (key, table) in job.source.located_sources() {
        // A table of a query may be written as its location alone.
        let key = if key == "source" { "source.url".to_owned() } else { key };
        check_source(&key, table.location(), sink, base, problems);
    }
    problems.extend(check_location("sink.url", sink));
    problems.extend(job.sink.options.check_options("sink"));
    for (key, table) in job.source.located_sources() {
        problems.extend(table.options.check_options(&key));
        if same_root(table.location(), sink) && !table.options.same_service(&job.sink.options) {
            problems.push(
                Problem::error(
                    "sink.options",
                    "lead to another service than the source's, for a bucket of the same name",
                )
                .help("give source.options and sink.options the same endpoint and region, or rename a bucket"),
            );
        }
    }
    if let Some(path) = local_path(base, sink)
        && path.is_file()
    {
        problems.push(Problem::error("sink.url", "is a file, but a release is a folder"));
    }
}

/// Checks a source location: it must exist, and neither lie in the sink nor contain it.
fn check_source(key: &str, source: &str, sink: &str, base: &Path, problems: &mut Vec<Problem>) {
    problems.extend(check_location(key, source));
    if let Some(path) = local_path(base, source)
        && !source.contains(['*', '?', '['])
        && !path.exists()
    {
        problems.push(
            Problem::error(key, format!("there is no file or folder {}", path.display()))
                .help("a relative path starts at the folder of the job file"),
        );
    }
    if source.trim().is_empty() || sink.trim().is_empty() {
        return;
    }
    let (from, to) = (location_names(base, source), location_names(base, sink));
    if from == to {
        problems.push(Problem::error("sink.url", "is the source: a release must not overwrite its input"));
    } else if to.starts_with(&from) {
        problems.push(
            Problem::error("sink.url", "lies inside the source: the next run would read this release as input")
                .help("choose a folder beside the source"),
        );
    } else if from.starts_with(&to) {
        problems.push(
            Problem::error(key, "lies inside the sink: raw rows would be mixed with published ones")
                .help("choose a sink beside the source"),
        );
    }
}

/// Whether two locations are in the same bucket.
fn same_root(source: &str, sink: &str) -> bool {
    let root = |location: &str| url::Url::parse(location).ok().map(|url| url[..url::Position::BeforePath].to_owned());
    is_url(source) && root(source) == root(sink)
}

pub(crate) fn check_location(key: &str, location: &str) -> Option<Problem> {
    if location.trim().is_empty() {
        return Some(Problem::error(key, "is empty"));
    }
    if !is_url(location) {
        return None;
    }
    let (scheme, rest) = location.split_once("://")?;
    if !SCHEMES.contains(&scheme.to_lowercase().as_str()) {
        let problem = Problem::error(key, format!("`{scheme}` is not a known kind of storage"));
        return Some(problem.help("a local path, or s3://, gs://, az:// or abfss://"));
    }
    let parsed = url::Url::parse(location).ok();
    // abfss://container@account is a name, not a login.
    let secret =
        parsed.is_some_and(|url| url.password().is_some()) || rest.contains("Signature=") || rest.contains("sig=");
    secret.then(|| {
        Problem::error(key, "holds a credential").help("credentials come from the environment, never from the job file")
    })
}

/// Minimum number of rows of a row group: smaller ones have more metadata than data.
const MIN_ROW_GROUP_ROWS: usize = 100;

/// Minimum number of rows of a file: a million files of one row each are useless and take hours to write.
const MIN_FILE_ROWS: usize = 100;

/// Maximum number of row groups of a Parquet file.
const MAX_ROW_GROUPS: usize = i16::MAX as usize;

fn check_output(job: &Job, problems: &mut Vec<Problem>) {
    output::check_output(job, problems);
    let output = &job.output;
    let levels = match output.compression {
        Compression::Zstd => Some(1..=22),
        Compression::Gzip => Some(0..=9),
        Compression::Snappy | Compression::Lz4 | Compression::None => None,
    };
    match (output.level, levels) {
        (Some(_), None) => problems.push(Problem::error("output.level", "is an option of zstd and gzip")),
        (Some(level), Some(levels)) if !levels.contains(&level) => {
            let message = format!("must be from {} to {}, got {level}", levels.start(), levels.end());
            problems.push(Problem::error("output.level", message));
        }
        _ => {}
    }
    if output.file_rows < MIN_FILE_ROWS {
        let message = format!("must be at least {MIN_FILE_ROWS}, got {}", output.file_rows);
        problems.push(Problem::error("output.file-rows", message));
    }
    let (key, rows) = ("output.row-group-rows", output.row_group_rows);
    if rows < MIN_ROW_GROUP_ROWS {
        problems.push(Problem::error(key, format!("must be at least {MIN_ROW_GROUP_ROWS}, got {rows}")));
    } else if output.file_rows.div_ceil(rows) > MAX_ROW_GROUPS {
        let message = format!("{rows} rows are too few for files of {} rows", output.file_rows);
        let least = output.file_rows.div_ceil(MAX_ROW_GROUPS);
        problems.push(Problem::error(key, message).help(format!(
            "a Parquet file holds at most {MAX_ROW_GROUPS} row groups: raise it to {least}, or lower output.file-rows"
        )));
    }
}

/// The problem with a number that is not a share, if it is not one.
pub(crate) fn outside_share(key: &str, value: f64) -> Option<Problem> {
    let inside = (0.0..=1.0).contains(&value);
    (!inside).then(|| Problem::error(key, format!("must be from 0 to 1, got {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Problems of a job whose parts are given; without the notes and warnings.
    fn errors(rest: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        let text = format!("version = 1\nsource.url = \"in\"\nsink.url = \"out\"\n{rest}");
        errors_at(&text, folder.path())
    }

    fn warnings(rest: &str) -> Vec<String> {
        let text = format!("version = 1\nsource.url = \"in\"\nsink.url = \"out\"\n{rest}");
        let job = Job::parse(&text, Path::new("job.toml")).unwrap();
        let found = check(&job, Path::new("."));
        found.iter().filter(|problem| !problem.is_error()).map(Problem::to_string).collect()
    }

    fn errors_at(text: &str, base: &Path) -> Vec<String> {
        let job = Job::parse(text, Path::new("job.toml")).unwrap();
        check(&job, base).iter().filter(|problem| problem.is_error()).map(Problem::to_string).collect()
    }

    const REST: &str = "privacy.k = 5\ncolumns.age.role = \"quasi\"\n";

    #[test]
    fn a_good_job_has_no_problems() {
        assert_eq!(errors(REST), [""; 0]);
    }

    #[test]
    fn version() {
        let text = format!("version = 2\nsource.url = \"s3://a/in\"\nsink.url = \"s3://a/out\"\n{REST}");
        assert_eq!(errors_at(&text, Path::new(".")), ["version: must be 1, got 2"]);
    }

    #[test]
    fn source_and_sink() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let at = |source: &str, sink: &str| {
            let text = format!("version = 1\nsource.url = \"{source}\"\nsink.url = \"{sink}\"\n{REST}");
            errors_at(&text, folder.path()).join("|").replace(&folder.path().display().to_string(), "BASE")
        };
        assert_eq!(at("in", "out"), "");
        assert_eq!(at("in/*.parquet", "out"), "");
        assert_eq!(at("s3://lake/in/", "s3://lake/inner/"), "");
        assert!(
            at("inn", "out").starts_with("source.url: there is no file or folder BASE/inn\n  help: a relative path")
        );
        assert_eq!(at("in", "file"), "sink.url: is a file, but a release is a folder");
        assert!(at("in", "../x/../BASE/in").is_empty(), "another folder that is called in");
        assert!(at("in", "./in/").starts_with("sink.url: is the source"));
        assert!(at("in", "in/published").starts_with("sink.url: lies inside the source"));
        assert!(at("in/*.parquet", "in/out").starts_with("sink.url: lies inside the source"));
        assert!(at("s3://lake/out/raw", "s3://lake/out/").starts_with("source.url: lies inside the sink"));
        assert_eq!(at("", "out"), "source.url: is empty");
        assert_eq!(
            at("s4://lake/in", "out"),
            "source.url: `s4` is not a known kind of storage\n  help: a local path, or s3://, gs://, az:// or abfss://"
        );
        let secret = at("in", "s3://key:secret@lake/out");
        assert!(secret.starts_with("sink.url: holds a credential") && !secret.contains("secret@"), "{secret}");
        assert!(at("in", "az://c/out?sig=abc").starts_with("sink.url: holds a credential"));
        assert_eq!(at("in", "abfss://container@account/out"), "");
    }

    #[test]
    fn options_belong_to_their_method() {
        let unused = format!("{REST}method.auto.effort = \"fast\"\nmethod.toc = {{ delta = 0.3, s = 50 }}\n");
        assert_eq!(errors(&unused), [""; 0], "a sweep tries other methods");
        let wanted = "warning: method.toc: is not used: the method is `auto`";
        assert!(warnings(&unused).iter().any(|warning| warning.starts_with(wanted)), "{:?}", warnings(&unused));
        assert_eq!(
            errors(&format!("{REST}method = {{ name = \"toc\", toc = {{ delta = 0.3, s = 50, w-utility = 0.4 }} }}\n")),
            [""; 0]
        );
        assert_eq!(
            errors(&format!(
                "{REST}method = {{ name = \"toc\", toc = {{ delta = 1.5, s = 4, w-utility = 0.4, w-protection = 0.5 }} }}\n"
            )),
            [
                "method.toc.delta: must be from 0 to 1, got 1.5",
                "method.toc.w-utility: w-utility and w-protection must sum to 1, got 0.9",
                "method.toc.s: a subspace of 4 rows cannot hold a group of k = 5\n  help: s is usually 4 to 32 \
                 times k; omit it to have it chosen",
            ]
        );
        let widths = format!("{REST}method = {{ name = \"toc\", toc = {{ split = \"gain\", width = \"raw\" }} }}\n");
        assert_eq!(errors(&widths), ["method.toc.width: is an option of widest splits, but the split is `gain`"]);
        assert_eq!(errors(&widths.replace("gain", "widest")), [""; 0]);
    }

    #[test]
    fn upc_needs_both_its_bounds() {
        assert_eq!(
            errors(&format!("{REST}method.name = \"upc\"\n")),
            [
                "privacy.range-diversity: is missing: method `upc` groups under its bound P\n  \
                 help: add range-diversity = { column = \"...\", p = 0.5 }",
                "privacy.max-loss: is missing: method `upc` groups under its bound U\n  help: add max-loss = 0.5",
            ]
        );
    }

    #[test]
    fn methods_of_buckets_need_a_sensitive_column() {
        for method in ["kl-redinfo", "g-anatomy"] {
            let found = errors(&format!("{REST}method.name = \"{method}\"\n"));
            assert!(found.len() == 1 && found[0].starts_with("method.name: this method builds groups of"), "{found:?}");
            let sensitive = format!("{REST}columns.s.role = \"sensitive\"\nmethod.name = \"{method}\"\n");
            assert_eq!(errors(&sensitive), [""; 0]);
        }
        let found = errors(&format!("{REST}method.name = \"anatomy\"\n"));
        assert!(found.iter().any(|problem| problem.starts_with("method.form: `anatomy` separates")), "{found:?}");
        let form = "columns.ill.role = \"sensitive\"\ncolumns.age.publish = \"label\"\nmethod.form = \"anatomy\"\n";
        assert!(errors(&format!("{REST}{form}"))[0].starts_with("columns.age.publish: has no meaning in the form"));
    }

    #[test]
    fn density_ranks_every_quasi_identifier_and_names_its_class() {
        let density = |rest: &str| errors(&format!("{REST}method.name = \"density\"\n{rest}"));
        assert_eq!(density("method.density.priorities = [\"age\"]\n"), [""; 0]);
        assert_eq!(
            density("method.density = { priorities = [\"zip\"], beta = 2 }\n"),
            [
                "method.density.beta: is an option of height weights\n  help: set weights = \"height\", or remove it",
                "method.density.priorities: must name every quasi-identifier once\n  help: there are age",
            ]
        );
        assert_eq!(
            density("method.density = { weights = \"height\", beta = 0.5 }\n"),
            ["method.density.beta: must be at least 1, got 0.5"]
        );
        let class = errors(&format!("{REST}method.name = \"density-cm\"\nmethod.density-cm.class = \"pay\"\n"));
        assert!(class[0].starts_with("method.density-cm.class: `density-cm` needs a sensitive column"), "{class:?}");
    }

    #[test]
    fn output() {
        assert_eq!(
            errors(&format!("{REST}output = {{ level = 23, row-group-rows = 0, file-rows = 99 }}\n")),
            [
                "output.level: must be from 1 to 22, got 23",
                "output.file-rows: must be at least 100, got 99",
                "output.row-group-rows: must be at least 100, got 0"
            ]
        );
        let lz4 = format!("{REST}output = {{ compression = \"lz4\", level = 3 }}\n");
        assert_eq!(errors(&lz4), ["output.level: is an option of zstd and gzip"]);
    }
}
