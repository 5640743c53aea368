//! A run from start to end: open, survey, group and write, verify, commit.

use std::collections::BTreeMap;
use std::path::{Path as LocalPath, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::logical_expr::LogicalPlan;
use datafusion::parquet::basic::{Compression as Codec, GzipLevel, ZstdLevel};
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{DataFrame, SessionContext};
use object_store::ObjectStoreExt;
use object_store::path::Path;

use super::attack::{self, Attack, Membership, Risks};
use super::commit::{self, Commit};
use super::location::Location;
use super::manifest::{FORMAT, InputFile, Manifest, OutputFile, Scores, Verification};
use super::matching::Matching;
use super::presence;
use super::public::Public;
use super::session::{SessionOptions, SpillFolder, unique_name};
use super::source::Source;
use super::verify::{self, Finding};
use super::write::{Target, WriteExec, Written, stored_schema};
use crate::error::{Error, Result};
use crate::job::{Compression, Job, Output, Policy, Treatment, check};
use crate::measure::{Classes, Groups};
use crate::operator::{Anonymize, AnonymizeExec, Blueprint, cell_rows, fitting_partitions, survey_plan};
use crate::survey::survey;

/// How to run a job.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Memory, spill and partitions.
    pub session: SessionOptions,
    /// Identity of the run; made of policy, input and version when absent.
    pub run_id: Option<String>,
    /// Rows of a cell; as many as the memory limit has room for when absent, at most
    /// [`CELL_ROWS`](crate::survey::CELL_ROWS).
    pub cell_rows: Option<usize>,
}

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Pass 1.
    Survey,
    /// Pass 2: grouping and writing.
    Group,
    /// Reading back.
    Verify,
    /// Making the release visible.
    Commit,
}

/// Where a run reports that a phase begins: the plan that runs, if any, tells by its metrics how far it is.
pub type Observer<'a> = dyn Fn(Phase, Option<&Arc<dyn ExecutionPlan>>, u64) + Send + Sync + 'a;

/// How a run ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A new release.
    Released(Box<Manifest>, Vec<(Phase, Duration)>),
    /// The same release was there already.
    AlreadyDone(Box<Manifest>),
}

/// A job that is ready to run.
pub struct Run {
    job: Job,
    base: PathBuf,
    policy: Arc<Policy>,
    context: SessionContext,
    /// Held for its end, when the folder goes.
    _spill: SpillFolder,
    options: RunOptions,
    /// Where files lie that are not committed yet, while there are any.
    staged: Mutex<Option<(Location, Path)>>,
}

impl Run {
    /// Prepares a run; everything that can be wrong with the job itself is found here.
    pub fn new(job: Job, base: &LocalPath, options: RunOptions) -> Result<Self> {
        refuse(check(&job, base).iter().filter(|problem| problem.is_error()))?;
        let policy = Arc::new(Policy::of(&job, base)?);
        let (context, spill) = options.session.open()?;
        Ok(Self { job, base: base.to_owned(), policy, context, _spill: spill, options, staged: Mutex::default() })
    }

    /// Runs the job.
    pub async fn execute(&self, observer: &Observer<'_>) -> Result<Outcome> {
        let source = Source::find(&self.base, &self.job.source.url).await?;
        let Opened { input, treatment, public, source_rows } = self.open(&source).await?;
        let sink = Location::open(&self.base, &self.job.sink.url)?;
        let run = self.run_id(&source, public.as_ref(), &treatment);
        if let Some(done) = commit::committed(&sink, &run).await? {
            let outcome = self.already(done, &source, public.as_ref())?;
            if let Outcome::AlreadyDone(manifest) = &outcome {
                commit::settle(&sink, manifest).await?;
            }
            return Ok(outcome);
        }
        refuse_foreign(&sink).await?;
        if let (Some(public), Some(rule)) = (&public, &self.policy.privacy.presence) {
            public.hold_everybody(&DataFrame::new(self.context.state(), source_rows), rule).await?;
        }

        let mut times = Vec::new();
        let mut clock = std::time::Instant::now();
        let mut lap =
            |phase: Phase| times.push((phase, std::mem::replace(&mut clock, std::time::Instant::now()).elapsed()));

        let blueprint = self.survey(&input, treatment, observer).await?;
        lap(Phase::Survey);
        let folder_name = format!("data/run={run}.{}", unique_name());
        let folder = sink.at(&folder_name);
        self.stage(Some((sink.clone(), folder.clone())));
        let staged = async {
            let target = self.target(&sink, &folder, &run, &blueprint)?;
            let (files, measures, cells) = self.group(input, &blueprint, target, observer).await?;
            lap(Phase::Group);
            observer(Phase::Verify, None, blueprint.survey.rows);
            let read = (&source, public.as_ref());
            let manifest = self.verify(&sink, &run, folder_name, read, &blueprint, files, &measures, cells).await?;
            lap(Phase::Verify);
            source.confirm().await?;
            if let Some(public) = &public {
                public.source.confirm().await?;
            }
            observer(Phase::Commit, None, 0);
            self.stage(None);
            commit::commit(&sink, &manifest).await.map(|commit| (commit, manifest))
        };
        match staged.await {
            Ok((Commit::Won, manifest)) => {
                lap(Phase::Commit);
                Ok(Outcome::Released(Box::new(manifest), times))
            }
            Ok((Commit::Unsettled(error), _)) => Err(error),
            Ok((Commit::Lost(other), _)) => {
                commit::discard(&sink, &folder).await;
                self.already(*other, &source, public.as_ref())
            }
            Err(error) => {
                commit::discard(&sink, &folder).await;
                Err(error)
            }
        }
    }

    fn stage(&self, folder: Option<(Location, Path)>) {
        if let Ok(mut staged) = self.staged.lock() {
            *staged = folder;
        }
    }

    /// Removes what a run that was stopped has staged.
    pub async fn abandon(&self) {
        let staged = self.staged.lock().ok().and_then(|mut staged| staged.take());
        if let Some((sink, folder)) = staged {
            commit::discard(&sink, &folder).await;
        }
    }

    /// The source as a plan, beside the public table if there is one, and what will happen to its columns.
    async fn open(&self, source: &Source) -> Result<Opened> {
        let (source_rows, schema) = source.scan(&self.context).await?;
        let Some(rule) = &self.policy.privacy.presence else {
            let treatment = Arc::new(Treatment::new(Arc::clone(&self.policy), schema)?);
            return Ok(Opened { input: source_rows.clone(), treatment, public: None, source_rows });
        };
        let public = Public::open(&self.base, &self.context, &rule.public).await?;
        let input = public.beside(&source_rows, &self.policy)?;
        let schema = Arc::new(input.schema().as_arrow().clone());
        let treatment = Arc::new(Treatment::new(Arc::clone(&self.policy), schema)?);
        Ok(Opened { input, treatment, public: Some(public), source_rows })
    }

    /// Same policy, input, cells and version, same run: an identity that a scheduler need not invent.
    fn run_id(&self, source: &Source, public: Option<&Public>, treatment: &Treatment) -> String {
        self.options.run_id.clone().unwrap_or_else(|| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(self.policy.hash.as_bytes());
            hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
            hasher.update(&self.cell_rows(treatment).to_le_bytes());
            for file in source.files().iter().chain(public_files(public)) {
                let tag = file.etag.as_deref().unwrap_or(&file.modified);
                hasher.update(format!("{}\0{}\0{tag}\n", file.path, file.size).as_bytes());
            }
            hasher.finalize().to_hex()[..16].to_owned()
        })
    }

    /// Rows of a cell. It decides the groups, so it is part of what a run is.
    fn cell_rows(&self, treatment: &Treatment) -> usize {
        let limit = self.options.session.memory_limit;
        self.options.cell_rows.unwrap_or_else(|| cell_rows(&treatment.input, limit))
    }

    /// A committed manifest of this run id: the same work, or another's.
    fn already(&self, done: Manifest, source: &Source, public: Option<&Public>) -> Result<Outcome> {
        if done.policy != self.policy.hash {
            return Err(Error::Conflict(format!(
                "run `{}` has been released under another policy; choose another --run-id",
                done.run
            )));
        }
        if done.input != source.files() || done.public != public_files(public) {
            return Err(Error::Conflict(format!(
                "run `{}` has been released from another input; choose another --run-id",
                done.run
            )));
        }
        Ok(Outcome::AlreadyDone(Box::new(done)))
    }

    async fn survey(
        &self,
        input: &LogicalPlan,
        treatment: Arc<Treatment>,
        observer: &Observer<'_>,
    ) -> Result<Arc<Blueprint>> {
        let plan = survey_plan(input, &treatment)?;
        let plan = DataFrame::new(self.context.state(), plan).create_physical_plan().await?;
        observer(Phase::Survey, Some(&plan), 0);
        let cell_rows = self.cell_rows(&treatment);
        let found = survey(plan, self.context.task_ctx(), Arc::clone(&treatment), cell_rows).await?;
        Blueprint::new(treatment, found).map(Arc::new)
    }

    async fn group(
        &self,
        input: LogicalPlan,
        blueprint: &Arc<Blueprint>,
        target: Target,
        observer: &Observer<'_>,
    ) -> Result<(Vec<Written>, Groups, usize)> {
        let logical = Anonymize::surveyed(input, Arc::clone(blueprint))?.into_plan();
        let mut state = self.context.state();
        if let Some(limit) = self.options.session.memory_limit {
            let options = state.config_mut().options_mut();
            let wanted = options.execution.target_partitions;
            options.execution.target_partitions = fitting_partitions(&blueprint.treatment.input, limit, wanted);
        }
        let grouped = DataFrame::new(state, logical).create_physical_plan().await?;
        let plan: Arc<dyn ExecutionPlan> = Arc::new(WriteExec::new(Arc::clone(&grouped), target));
        observer(Phase::Group, Some(&plan), blueprint.survey.rows);
        let files = written(&collect(plan, self.context.task_ctx()).await?);
        let measures = measures(&grouped)
            .unwrap_or_else(|| Groups::new(blueprint.axes.len(), blueprint.treatment.sensitive.len()));
        Ok((files, measures, blueprint.survey.tree.cells()))
    }

    fn target(&self, sink: &Location, folder: &Path, run: &str, blueprint: &Blueprint) -> Result<Target> {
        let metadata = vec![
            KeyValue::new("throng.version".into(), env!("CARGO_PKG_VERSION").to_owned()),
            KeyValue::new("throng.run".into(), run.to_owned()),
            KeyValue::new("throng.policy".into(), self.policy.hash.clone()),
            KeyValue::new("throng.k".into(), blueprint.rules.k.to_string()),
        ];
        let Output { row_group_rows, file_rows, .. } = self.job.output;
        let properties = WriterProperties::builder()
            .set_compression(codec(&self.job.output)?)
            .set_max_row_group_row_count(Some(row_group_rows))
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_created_by(format!("throng {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(metadata))
            .build();
        Ok(Target { store: Arc::clone(&sink.store), folder: folder.clone(), properties, file_rows })
    }

    #[expect(clippy::too_many_arguments, reason = "the manifest gathers what every phase has found")]
    async fn verify(
        &self,
        sink: &Location,
        run: &str,
        data: String,
        read: (&Source, Option<&Public>),
        blueprint: &Blueprint,
        written: Vec<Written>,
        measures: &Groups,
        cells: usize,
    ) -> Result<Manifest> {
        let mut files = Vec::new();
        for file in written {
            let name = file.path.rsplit('/').next().unwrap_or_default();
            let path = format!("{data}/{name}");
            let blake3 = verify::checksum(sink, &path).await?;
            let blake3 = blake3.ok_or_else(|| Error::Retry(format!("`{path}` was written but is not there")))?;
            files.push(OutputFile { path, rows: file.rows, size: file.size, blake3 });
        }
        let treatment = &blueprint.treatment;
        let suppressed = measures.loss.suppressed();
        let rows = blueprint.survey.source_rows().saturating_sub(suppressed);
        let table = verify::open(&self.context, sink, &files).await?;
        let domains = Some(blueprint.survey.sensitive.as_slice());
        let (classes, mut findings) = verify::verify_rows(&table, treatment, domains, rows).await?;
        if let Some(public) = read.1 {
            findings.extend(presence::verify(&table, public, &self.context, treatment).await?);
        }
        Finding::refuse(&findings)?;
        self.manifest(run, data, read, blueprint, files, measures, &classes, cells)
    }

    #[expect(clippy::too_many_arguments, reason = "the manifest gathers what every phase has found")]
    fn manifest(
        &self,
        run: &str,
        data: String,
        (source, public): (&Source, Option<&Public>),
        blueprint: &Blueprint,
        files: Vec<OutputFile>,
        measures: &Groups,
        classes: &Classes,
        cells: usize,
    ) -> Result<Manifest> {
        let treatment = &blueprint.treatment;
        let tuned = &blueprint.survey.tuned;
        let delta = tuned.delta.map(|delta| ("delta".to_owned(), delta));
        let s = tuned.s.map(|s| ("s".to_owned(), s as f64));
        let columns: Vec<String> = treatment.quasi.iter().map(|column| column.name.clone()).collect();
        let k = self.policy.privacy.k;
        let rules = blueprint.rules.others.iter().map(|rule| rule.name());
        let schema = stored_schema(&treatment.output);
        Ok(Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            run: run.to_owned(),
            committed: jiff::Timestamp::now().to_string(),
            policy: self.policy.hash.clone(),
            k,
            method: self.policy.method.name.as_str().to_owned(),
            seed: self.policy.method.seed,
            tuned: delta.into_iter().chain(s).collect(),
            input: source.files().to_vec(),
            public: public_files(public).to_vec(),
            data,
            files,
            schema: schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect(),
            class_columns: treatment.class_columns(),
            rows_read: blueprint.survey.source_rows(),
            rows: measures.loss.rows(),
            suppressed: measures.loss.suppressed(),
            cells,
            scores: Scores::new(measures, classes, k, &columns),
            verification: Verification {
                rules: [format!("k = {k}")].into_iter().chain(rules).collect(),
                classes: classes.into(),
            },
        })
    }

    /// The newest release of the job's sink, checked against its manifest, the policy and the source.
    pub async fn verify_latest(&self, release: Option<&str>) -> Result<(Manifest, Classes, Vec<Finding>)> {
        let sink = Location::open(&self.base, &self.job.sink.url)?;
        let manifest = find_release(&sink, release).await?;
        let (classes, mut findings) = verify::verify_release(&self.context, &sink, &manifest).await?;
        let source = Source::find(&self.base, &self.job.source.url).await?;
        let Opened { treatment, public, source_rows, .. } = self.open(&source).await?;
        let present = existing(&sink, &manifest.files).await?;
        if present.is_empty() {
            return Ok((manifest, classes, findings));
        }
        let published = verify::open(&self.context, &sink, &present).await?;
        if manifest.policy != self.policy.hash {
            findings.push(Finding {
                rule: "policy".into(),
                count: 1,
                message: "the release was made under another policy than this job's".into(),
            });
        }
        let (_, found) = verify::verify_rows(&published, &treatment, None, manifest.rows).await?;
        findings.extend(found.into_iter().filter(|finding| finding.rule != "rows" && finding.rule != "k"));
        if let Some(public) = &public {
            findings.extend(presence::verify(&published, public, &self.context, &treatment).await?);
        }
        if manifest.input == source.files() {
            let source = DataFrame::new(self.context.state(), source_rows);
            findings.extend(verify::verify_against_source(&published, &source, &treatment, manifest.suppressed).await?);
        } else {
            findings.push(Finding {
                rule: "source".into(),
                count: 1,
                message: "the source has changed since the release, so its rows cannot be compared".into(),
            });
        }
        Ok((manifest, classes, findings))
    }
}

impl Run {
    /// What an adversary learns from a release of the job's sink, with a public table (the job's when none is given) and
    /// the number of people in the whole population, as far as they are known.
    pub async fn attack(&self, release: Option<&str>, public: Option<&str>, population: Option<u64>) -> Result<Attack> {
        let sink = Location::open(&self.base, &self.job.sink.url)?;
        let manifest = find_release(&sink, release).await?;
        let source = Source::find(&self.base, &self.job.source.url).await?;
        let Opened { treatment, public: of_job, source_rows, .. } = self.open(&source).await?;
        let public = match public {
            Some(url) => Some(Public::open(LocalPath::new("."), &self.context, url).await?),
            None => of_job,
        };
        let published = verify::open(&self.context, &sink, &manifest.files).await?;
        let classes = verify::count_classes(&published, &treatment.class_columns()).await?;
        let matching = match &public {
            Some(public) => Some(presence::matching(&published, public, &self.context, &treatment).await?),
            None => None,
        };
        let linkage = matching.as_ref().map(Matching::linkage);
        let mut sensitive = BTreeMap::new();
        for column in &treatment.sensitive {
            sensitive.insert(column.name.clone(), attack::disclosure(&published, &treatment, column).await?);
        }
        let population = match population {
            Some(people) => {
                let source = DataFrame::new(self.context.state(), source_rows);
                Some(attack::population(people, &source, &classes, &treatment).await?)
            }
            None => None,
        };
        Ok(Attack {
            run: manifest.run,
            rows: classes.rows(),
            classes: classes.classes(),
            membership: matching.map(|matching| Membership::new(matching.tally())),
            linkage: Risks::new(&classes, linkage.as_ref()),
            sensitive,
            population,
        })
    }
}

/// What a run reads.
struct Opened {
    /// Rows to anonymise, with those of the public table if there is one.
    input: LogicalPlan,
    treatment: Arc<Treatment>,
    public: Option<Public>,
    /// Rows of the source alone.
    source_rows: LogicalPlan,
}

fn public_files(public: Option<&Public>) -> &[InputFile] {
    public.map_or(&[], |public| public.source.files())
}

/// A release of a sink by run id, or the newest one.
pub(crate) async fn find_release(sink: &Location, run: Option<&str>) -> Result<Manifest> {
    let run = match run {
        Some(run) => run.to_owned(),
        None => match commit::latest(sink).await? {
            Some(latest) => latest.run,
            None => return Err(Error::Input(format!("`{}` holds no release", sink.name))),
        },
    };
    let found = commit::committed(sink, &run).await?;
    found.ok_or_else(|| Error::Input(format!("`{}` holds no release of run `{run}`", sink.name)))
}

async fn existing(sink: &Location, files: &[OutputFile]) -> Result<Vec<OutputFile>> {
    let mut present = Vec::new();
    for file in files {
        match sink.store.head(&sink.at(&file.path)).await {
            Ok(_) => present.push(file.clone()),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(present)
}

/// The plan of a job as text; reads the schema of the source and nothing else.
pub async fn plan(run: &Run) -> Result<String> {
    let source = Source::find(&run.base, &run.job.source.url).await?;
    let Opened { input, .. } = run.open(&source).await?;
    let logical = Anonymize::new(input, Arc::clone(&run.policy))?.into_plan();
    let plan = DataFrame::new(run.context.state(), logical).create_physical_plan().await?;
    Ok(displayable(plan.as_ref()).indent(false).to_string())
}

/// Measures of the anonymising node of a plan.
fn measures(plan: &Arc<dyn ExecutionPlan>) -> Option<Groups> {
    match plan.downcast_ref::<AnonymizeExec>() {
        Some(node) => node.measures(),
        None => plan.children().into_iter().find_map(measures),
    }
}

fn written(batches: &[RecordBatch]) -> Vec<Written> {
    let mut files: Vec<Written> = batches
        .iter()
        .flat_map(|batch| {
            let number = |column: usize, row: usize| batch.column(column).as_primitive::<UInt64Type>().value(row);
            (0..batch.num_rows()).map(move |row| Written {
                path: batch.column(0).as_string::<i32>().value(row).to_owned(),
                rows: number(1, row),
                size: number(2, row),
            })
        })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn codec(output: &Output) -> Result<Codec> {
    let level = output.level;
    Ok(match output.compression {
        Compression::Zstd => {
            Codec::ZSTD(level.map_or(Ok(ZstdLevel::default()), |level| ZstdLevel::try_new(level as i32))?)
        }
        Compression::Gzip => Codec::GZIP(level.map_or(Ok(GzipLevel::default()), GzipLevel::try_new)?),
        Compression::Snappy => Codec::SNAPPY,
        Compression::Lz4 => Codec::LZ4_RAW,
        Compression::None => Codec::UNCOMPRESSED,
    })
}

/// Refuses a sink that holds something else than releases.
async fn refuse_foreign(sink: &Location) -> Result<()> {
    let listed = sink.store.list_with_delimiter(Some(&sink.prefix)).await?;
    let ours = ["_manifest", "_latest", "_SUCCESS", "data"];
    let foreign = listed
        .objects
        .iter()
        .map(|meta| &meta.location)
        .chain(&listed.common_prefixes)
        .find(|path| path.filename().is_some_and(|name| !ours.contains(&name)));
    match foreign {
        None => Ok(()),
        Some(path) => Err(Error::Conflict(format!(
            "the sink `{}` holds something that is not a release (`{}`); choose an empty folder",
            sink.name,
            path.filename().unwrap_or_default()
        ))),
    }
}

fn refuse<'a>(problems: impl Iterator<Item = &'a crate::job::Problem>) -> Result<()> {
    let lines: Vec<String> = problems.map(ToString::to_string).collect();
    if lines.is_empty() { Ok(()) } else { Err(Error::Job(lines.join("\n"))) }
}
