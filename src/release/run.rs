//! A run from start to end: open, survey, group and write, verify, commit.

use std::collections::BTreeMap;
use std::path::{Path as LocalPath, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::{DataFrame, SessionContext};
use object_store::ObjectStoreExt;
use object_store::path::Path;

use super::anatomy::Tables;
use super::attack::{self, Attack, Membership, Risks};
use super::buckets::{self, Buckets, Shown};
use super::commit::{self, Commit};
use super::dependencies;
use super::engine::{Engine, Local, Place};
use super::feasibility::Report;
use super::inference::{self, Verdict};
use super::judge::{Look, classes_beside, classification};
use super::ledger::{self, Ledger};
use super::location::Location;
use super::manifest::{FORMAT, InputFile, Manifest, OutputFile, PeopleCounts, QueryScores, Scores, Verification};
use super::phase::{Begun, Phase, known_rows, spilled_bytes};
use super::population::PopulationRisk;
use super::presence;
use super::public::Public;
use super::queries;
use super::session::{SessionOptions, SpillFolder, unique_name};
use super::source::Source;
use super::stores::Stores;
use super::upload::Uploads;
use super::verify::{self, Finding, Found};
use super::write::{Target, WriteExec, Written, by_folder, gather, stored_schema};
use crate::attack::overlap::Effort;
use crate::error::{Error, Result};
use crate::job::{Form, Job, MEMBER_COLUMN, Policy, Treatment, check, check_layout};
use crate::measure::{Classes, Groups};
use crate::operator::{Anonymize, AnonymizeExec, Blueprint, cell_rows, fitting_partitions, survey_plan, treat};
use crate::privacy::Figures;

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
    /// Object stores that are at hand; others are opened with the credentials of the environment.
    pub stores: Stores,
    /// Where the work is done; in this process when absent.
    pub engine: Option<Arc<dyn Engine>>,
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
    engine: Arc<dyn Engine>,
    /// Held for its end, when the folder goes.
    _spill: SpillFolder,
    options: RunOptions,
    /// Where files lie that are not committed yet, while there are any.
    staged: Mutex<Option<(Location, Path)>>,
    uploads: Uploads,
}

impl Run {
    /// Prepares a run; everything that can be wrong with the job itself is found here.
    pub fn new(job: Job, base: &LocalPath, options: RunOptions) -> Result<Self> {
        refuse(check(&job, base).iter().filter(|problem| problem.is_error()))?;
        let policy = Arc::new(Policy::of(&job, base)?);
        let engine = options.engine.clone().unwrap_or_else(|| Arc::new(Local));
        let places = Place::all(&job);
        let (context, spill) = options.session.open_with(|config| engine.configure(config, &places))?;
        let (staged, uploads) = (Mutex::default(), Uploads::default());
        Ok(Self { job, base: base.to_owned(), policy, context, engine, _spill: spill, options, staged, uploads })
    }

    /// Runs the job.
    pub async fn execute(&self, observer: &Observer<'_>) -> Result<Outcome> {
        observer(Phase::Plan, None, 0);
        let phase = Phase::Plan.begin();
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        match self.release(&source, phase, observer).await {
            Err(error) => Err(source.explain(error).await),
            done => done,
        }
    }

    async fn release(&self, source: &Source, phase: Begun, observer: &Observer<'_>) -> Result<Outcome> {
        let Opened { input, treatment, public, rows, scanned } = self.open(source).await?;
        let sink = self.sink()?;
        let run = self.run_id(source, public.as_ref(), &treatment);
        let ledger = Ledger::of(&self.job, &treatment)?;
        if let Some(done) = ledger.committed(&sink, &run).await? {
            let outcome = self.already(done, source, public.as_ref())?;
            if let Outcome::AlreadyDone(manifest) = &outcome {
                ledger.settle(&sink, manifest).await?;
            }
            phase.done();
            return Ok(outcome);
        }
        ledger.refuse_foreign(&sink).await?;
        if let (Some(public), Some(rule)) = (&public, &self.policy.privacy.presence) {
            public.hold_everybody(&DataFrame::new(self.context.state(), scanned), rule).await?;
        }
        self.foresee(&rows, &treatment).await?;
        phase.count("files", (source.files().len() + public_files(public.as_ref()).len()) as u64);
        let mut times = vec![phase.done()];

        let phase = Phase::Survey.begin();
        let source_rows = DataFrame::new(self.context.state(), input.clone());
        let held = dependencies::check(&source_rows, &treatment).await?;
        let blueprint = self.survey(&input, treatment, observer).await?;
        phase.count("rows", blueprint.survey.rows);
        phase.count("cells", blueprint.survey.tree.cells() as u64);
        times.push(phase.done());
        let folder_name = format!("data/run={run}.{}", unique_name());
        let folder = sink.at(&folder_name);
        self.stage(Some((sink.clone(), folder.clone())));
        let staged = async {
            let mut blueprint = blueprint;
            let phase = Phase::Group.begin();
            let (files, measures, cells, inferred) = loop {
                let target = self.target(&sink, &folder, &run, &blueprint.treatment);
                let (files, measures, cells) = self.group(input.clone(), &blueprint, target, observer, &phase).await?;
                if self.policy.dependencies.is_empty() {
                    break (files, measures, cells, None);
                }
                let rows =
                    verify::open_written(&self.context, &sink, &folder_name, &files, &blueprint.treatment).await?;
                match inference::weigh(&rows, &blueprint.treatment).await? {
                    Verdict::Publish(inferred) => break (files, measures, cells, inferred),
                    Verdict::Withhold(treatment) => {
                        commit::discard(&sink, &folder).await;
                        blueprint = Arc::new(Blueprint::new(Arc::new(*treatment), blueprint.survey.clone())?);
                    }
                }
            };
            if self.engine.is_remote() {
                commit::discard_untold(&sink, &folder, &files).await?;
            }
            times.push(phase.done());
            let phase = Phase::Verify.begin();
            observer(Phase::Verify, None, blueprint.survey.rows);
            let read = (source, public.as_ref());
            let mut manifest =
                self.verify(&sink, &run, folder_name, read, &blueprint, files, &measures, cells, observer).await?;
            manifest.dependencies = dependencies::score(held, &measures.dependencies);
            manifest.verification.inference = inferred;
            // Queries that the job asks for are answered from the files; the usual few have been, cell by cell.
            if self.policy.measures.queries.is_some() {
                // Of two tables, the one with the quasi-identifiers.
                let published = match Tables::of(&self.context, &sink, &manifest.files, manifest.form()).await? {
                    Some(tables) => tables.quasi().clone(),
                    None => {
                        let output = Some(blueprint.treatment.output.as_ref());
                        verify::open(&self.context, &sink, &manifest.files, output).await?
                    }
                };
                let source = DataFrame::new(self.context.state(), rows);
                let error = queries::answer(&source, &published, &blueprint).await?;
                manifest.scores.queries = error.map(QueryScores::from);
            }
            phase.count("rows", manifest.rows);
            phase.count("classes", manifest.verification.classes.count);
            phase.count("smallest_class", manifest.verification.classes.smallest);
            times.push(phase.done());
            let phase = Phase::Commit.begin();
            source.confirm().await?;
            if let Some(public) = &public {
                public.source.confirm().await?;
            }
            observer(Phase::Commit, None, 0);
            self.stage(None);
            let commit = ledger.commit(&sink, &manifest).await?;
            times.push(phase.done());
            Ok((commit, manifest))
        };
        match staged.await {
            Ok((Commit::Won, manifest)) => Ok(Outcome::Released(Box::new(manifest), times)),
            Ok((Commit::Unsettled(error), _)) => Err(error),
            Ok((Commit::Lost(other), _)) => {
                commit::discard(&sink, &folder).await;
                self.already(*other, source, public.as_ref())
            }
            Err(error) => {
                self.engine.settle().await;
                self.uploads.settle().await;
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

    /// The sink of the job.
    pub fn sink(&self) -> Result<Location> {
        self.options.stores.open(&self.base, &self.job.sink.url, &self.job.sink.options)
    }

    /// Removes what a run that was stopped has staged.
    pub async fn abandon(&self) {
        self.engine.settle().await;
        self.uploads.settle().await;
        let staged = self.staged.lock().ok().and_then(|mut staged| staged.take());
        if let Some((sink, folder)) = staged {
            commit::discard(&sink, &folder).await;
        }
    }

    /// The source as a plan, with its identifiers replaced and beside the public table if there is one, and what will happen
    /// to its columns.
    async fn open(&self, source: &Source) -> Result<Opened> {
        let (scanned, _) = source.scan(&self.context).await?;
        refuse(check_layout(&self.job, scanned.schema().as_arrow()).iter())?;
        let (rows, treatment) = treat(scanned.clone(), Arc::clone(&self.policy))?;
        let Some(rule) = &self.policy.privacy.presence else {
            let (input, treatment) = (rows.clone(), Arc::new(treatment));
            return Ok(Opened { input, treatment, public: None, rows, scanned });
        };
        let public = self.public(&self.base, &rule.public).await?;
        let input = public.beside(&rows, &treatment)?;
        let schema = Arc::new(input.schema().as_arrow().clone());
        let treatment = Arc::new(Treatment::resolve(Arc::clone(&self.policy), schema)?);
        Ok(Opened { input, treatment, public: Some(public), rows, scanned })
    }

    /// A public table, which is reached as the source is.
    async fn public(&self, base: &LocalPath, url: &str) -> Result<Public> {
        Public::open(&self.options.stores, base, &self.context, url, &self.job.source.options).await
    }

    /// The source as it is now, and what the job does to its columns.
    pub async fn inspect(&self) -> Result<(DataFrame, Arc<Treatment>)> {
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let Opened { rows, treatment, .. } = self.open(&source).await?;
        Ok((DataFrame::new(self.context.state(), rows), treatment))
    }

    /// The session of the run.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Same policy, input, cells and version, same run: an identity that a scheduler need not invent.
    fn run_id(&self, source: &Source, public: Option<&Public>, treatment: &Treatment) -> String {
        self.options.run_id.clone().unwrap_or_else(|| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(self.policy.hash.as_bytes());
            hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
            hasher.update(&self.cell_rows(treatment).to_le_bytes());
            hasher.update(source.snapshot().as_bytes());
            if let Some(public) = public {
                hasher.update(public.source.snapshot().as_bytes());
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
        if done.version != env!("CARGO_PKG_VERSION") {
            return Err(Error::Conflict(format!(
                "run `{}` has been released by Throng {}, this is {}; choose another --run-id",
                done.run,
                done.version,
                env!("CARGO_PKG_VERSION")
            )));
        }
        if !reads(&done, source) || done.public != public_files(public) {
            return Err(Error::Conflict(format!(
                "run `{}` has been released from another input; choose another --run-id",
                done.run
            )));
        }
        Ok(Outcome::AlreadyDone(Box::new(done)))
    }

    /// Before methods that fill groups with different values begin: whether there are enough.
    async fn foresee(&self, input: &LogicalPlan, treatment: &Treatment) -> Result<()> {
        if !self.policy.method.name.entry().buckets {
            return Ok(());
        }
        for report in self.reports(input, treatment).await? {
            tracing::info!("{report}");
            report.refuse()?;
        }
        Ok(())
    }

    async fn reports(&self, input: &LogicalPlan, treatment: &Treatment) -> Result<Vec<Report>> {
        let mut reports = Vec::new();
        for column in &treatment.sensitive {
            let source = DataFrame::new(self.context.state(), input.clone());
            reports.push(Report::of(source, treatment, &column.name).await?);
        }
        Ok(reports)
    }

    /// What the sensitive columns of the source allow. Reads them.
    pub async fn feasibility(&self) -> Result<Vec<Report>> {
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let Opened { rows, treatment, .. } = self.open(&source).await?;
        self.reports(&rows, &treatment).await
    }

    async fn survey(
        &self,
        input: &LogicalPlan,
        treatment: Arc<Treatment>,
        observer: &Observer<'_>,
    ) -> Result<Arc<Blueprint>> {
        let plan = survey_plan(input, &treatment)?;
        let plan = DataFrame::new(self.context.state(), plan).create_physical_plan().await?;
        let (rows, cell_rows) = (known_rows(&plan), self.cell_rows(&treatment));
        let watch = |plan: &Arc<dyn ExecutionPlan>| observer(Phase::Survey, Some(plan), rows);
        let found = self.engine.survey(plan, &self.context, Arc::clone(&treatment), cell_rows, &watch).await?;
        Blueprint::new(treatment, found).map(Arc::new)
    }

    async fn group(
        &self,
        input: LogicalPlan,
        blueprint: &Arc<Blueprint>,
        target: Target,
        observer: &Observer<'_>,
        phase: &Begun,
    ) -> Result<(Vec<Written>, Groups, usize)> {
        let (grouped, plan) = self.group_plan(input, blueprint, target).await?;
        let rows = blueprint.survey.rows;
        let watch = |plan: &Arc<dyn ExecutionPlan>| observer(Phase::Group, Some(plan), rows);
        let (files, told) = gather(&self.engine.collect(Arc::clone(&plan), rows, &self.context, &watch).await?)?;
        phase.count("spilled_bytes", spilled_bytes(&plan));
        let measures = told.or_else(|| measures(&grouped)).unwrap_or_else(|| blueprint.measures());
        if self.engine.is_remote() {
            // A cluster that has lost an executor may have lost what a task had told: then others do it again.
            let told = measures.loss.rows() + measures.loss.suppressed();
            let read = blueprint.survey.source_rows();
            if told != read {
                return Err(Error::Retry(format!(
                    "the cluster has told of {told} rows out of {read}, as it may when an executor is lost; nothing was \
                     published, run again"
                )));
            }
            blueprint.refuse(&measures)?;
        }
        phase.count("rows", measures.loss.rows());
        phase.count("suppressed", measures.loss.suppressed());
        Ok((files, measures, blueprint.survey.tree.cells()))
    }

    /// The plan of pass 2, and its anonymising part alone.
    async fn group_plan(
        &self,
        input: LogicalPlan,
        blueprint: &Arc<Blueprint>,
        target: Target,
    ) -> Result<(Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>)> {
        let logical = Anonymize::surveyed(input, Arc::clone(blueprint))?.into_plan();
        let mut state = self.context.state();
        if let Some(limit) = self.options.session.memory_limit.filter(|_| !self.engine.is_remote()) {
            let options = state.config_mut().options_mut();
            let wanted = options.execution.target_partitions;
            options.execution.target_partitions = fitting_partitions(&blueprint.treatment.input, limit, wanted);
        }
        let mut grouped = DataFrame::new(state, logical).create_physical_plan().await?;
        if self.engine.is_remote() {
            grouped = in_part(grouped)?;
        }
        // Measures of a partition must be where its files are written: no exchange may come between.
        let laid_out = by_folder(Arc::clone(&grouped), &target.output.partition_by, !self.engine.is_remote())?;
        let plan = Arc::new(WriteExec::new(laid_out, target, self.uploads.clone()));
        Ok((grouped, plan))
    }

    fn target(&self, sink: &Location, folder: &Path, run: &str, treatment: &Treatment) -> Target {
        let metadata = [
            ("throng.version", env!("CARGO_PKG_VERSION")),
            ("throng.run", run),
            ("throng.policy", &self.policy.hash),
            ("throng.k", &self.policy.privacy.k.to_string()),
        ];
        self.context.register_object_store(&sink.root, Arc::clone(&sink.store));
        Target {
            store: sink.root.to_string(),
            folder: folder.to_string(),
            output: self.job.output.clone(),
            metadata: metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec(),
            tables: treatment.form().is_two_tables(),
            shared: self.engine.is_remote(),
        }
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
        observer: &Observer<'_>,
    ) -> Result<Manifest> {
        let mut files = Vec::new();
        for file in written {
            let path = verify::released_path(sink, &data, &file);
            let blake3 = verify::checksum(sink, &path).await?;
            let blake3 = blake3.ok_or_else(|| Error::Retry(format!("`{path}` was written but is not there")))?;
            files.push(OutputFile { path, rows: file.rows, size: file.size, blake3 });
        }
        let treatment = &blueprint.treatment;
        let suppressed = measures.loss.suppressed();
        let rows = blueprint.survey.source_rows().saturating_sub(suppressed);
        let (table, links) =
            verify::readable(&self.context, sink, &files, treatment.form(), Some(&treatment.output)).await?;
        let domains = Some(blueprint.survey.sensitive.as_slice());
        let watch = |plan: &Arc<dyn ExecutionPlan>| observer(Phase::Verify, Some(plan), rows);
        let slices = &blueprint.slices;
        let mut found = verify::verify_rows(&table, treatment, slices, domains, rows, Look::Guarded, &watch).await?;
        found.findings.extend(links);
        let mut population = PopulationRisk::default();
        if let Some(public) = read.1 {
            let (findings, linkage) = presence::verify(&table, public, &self.context, treatment).await?;
            found.findings.extend(findings);
            population.link(&linkage);
        }
        if let Some(people) = &measures.people {
            let counts = PeopleCounts::from(people);
            let (columns, k) = (treatment.class_columns(), treatment.policy.privacy.k);
            found.findings.extend(verify::verify_people(&table, &columns, &counts.classes, &counts.digest, k).await?);
        } else if treatment.person.is_some() {
            let message = "the people of the published classes were not counted".to_owned();
            found.findings.push(Finding { rule: "person".into(), count: 1, message });
        }
        if suppressed > 0 {
            found.findings.iter_mut().for_each(|finding| explain_shift(treatment, suppressed, finding));
        }
        Finding::refuse(&found.findings)?;
        let cm = match &treatment.policy.measures.class {
            Some(label) => classification(&table, treatment, label, suppressed).await?,
            None => None,
        };
        if let Some(people) = treatment.policy.measures.population {
            let (scanned, _) = read.0.scan(&self.context).await?;
            let source = DataFrame::new(self.context.state(), scanned);
            let before = verify::count_classes(&source, &treatment.quasi_names(), &|_| {}).await?;
            population.estimate(people, &before, &found.classes);
        }
        let mut manifest = self.manifest(run, data, read, blueprint, files, measures, found, cells)?;
        manifest.scores.cm = cm;
        manifest.population = population.known();
        Ok(manifest)
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
        found: Found,
        cells: usize,
    ) -> Result<Manifest> {
        let treatment = &blueprint.treatment;
        let tuned = &blueprint.survey.tuned;
        let delta = tuned.delta.map(|delta| ("delta".to_owned(), delta));
        let s = tuned.s.map(|s| ("s".to_owned(), s as f64));
        let columns: Vec<String> = treatment.quasi.iter().map(|column| column.name.clone()).collect();
        let k = self.policy.privacy.k;
        let people = if treatment.person.is_some() { " people" } else { "" };
        let rules = blueprint.rules.others.iter().map(|rule| rule.name());
        let classes = &found.classes;
        let schema = stored_schema(&treatment.output);
        Ok(Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            run: run.to_owned(),
            committed: jiff::Timestamp::now().to_string(),
            policy: self.policy.hash.clone(),
            k,
            method: self.policy.method.name.as_str().to_owned(),
            seed: (!treatment.form().is_permuted()).then_some(self.policy.method.seed),
            form: Some(treatment.form()).filter(|form| form.is_numbered()),
            slices: if treatment.form().is_numbered() { treatment.named(&blueprint.slices) } else { Vec::new() },
            tuned: delta.into_iter().chain(s).collect(),
            input: source.files().to_vec(),
            snapshot: source.snapshot(),
            public: public_files(public).to_vec(),
            data,
            files,
            schema: schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect(),
            class_columns: treatment.class_columns(),
            roles: treatment
                .input
                .fields()
                .iter()
                .zip(&treatment.roles)
                .filter(|(field, _)| field.name() != MEMBER_COLUMN)
                .map(|(field, role)| (field.name().clone(), *role))
                .collect(),
            rows_read: blueprint.survey.source_rows(),
            rows: measures.loss.rows(),
            suppressed: measures.loss.suppressed(),
            cells,
            scores: Scores::new(measures, classes, k, &columns),
            dependencies: Vec::new(),
            population: None,
            verification: Verification {
                rules: [format!("k = {k}{people}")].into_iter().chain(rules).collect(),
                classes: classes.into(),
                inference: None,
                people: measures.people.as_ref().map(PeopleCounts::from),
                attained: found.figures,
            },
        })
    }

    /// The newest release of the job's sink, checked against its manifest, the policy and the source.
    pub async fn verify_latest(&self, release: Option<&str>) -> Result<Verified> {
        let sink = self.sink()?;
        let manifest = find_release(&sink, release).await?;
        let (classes, mut findings) = verify::verify_release(&self.context, &sink, &manifest).await?;
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let Opened { treatment, public, rows, .. } = self.open(&source).await?;
        let present = existing(&sink, &manifest.files).await?;
        if present.is_empty() {
            return Ok(Verified { manifest, classes, findings, attained: BTreeMap::new() });
        }
        // What the files do not hold any more has been found missing.
        let (published, _) =
            verify::readable(&self.context, &sink, &present, manifest.form(), Some(&treatment.output)).await?;
        if manifest.policy != self.policy.hash {
            findings.push(Finding {
                rule: "policy".into(),
                count: 1,
                message: "the release was made under another policy than this job's".into(),
            });
        }
        let slices = treatment.slices(&manifest.slices);
        let found =
            verify::verify_rows(&published, &treatment, &slices, None, manifest.rows, Look::All, &|_| {}).await?;
        let known: Vec<Finding> = findings.clone();
        findings.extend(found.findings.into_iter().filter(|finding| !known.contains(finding)));
        if let Some(chased) = inference::chase(&published, &treatment).await? {
            findings.extend(inference::judge(&inference::report(&chased, &treatment), &treatment));
        }
        if treatment.person.is_some() && manifest.verification.people.is_none() {
            let message = "nobody has counted the people of this release".to_owned();
            findings.push(Finding { rule: "person".into(), count: 1, message });
        }
        if let Some(public) = &public {
            findings.extend(presence::verify(&published, public, &self.context, &treatment).await?.0);
        }
        if reads(&manifest, &source) {
            let source = DataFrame::new(self.context.state(), rows);
            let suppressed = manifest.suppressed;
            findings.extend(
                match (Tables::of(&self.context, &sink, &present, manifest.form()).await?, manifest.form()) {
                    (Some(tables), Form::Anatomy) => tables.check_source(&source, &treatment, suppressed).await?,
                    (None, Form::Generalise) => {
                        verify::verify_against_source(&published, &source, &treatment, suppressed).await?
                    }
                    (tables, _) => {
                        let shown = tables.map_or_else(|| Shown::One(published.clone()), Shown::Two);
                        let buckets = Buckets::read(&shown, &treatment, &slices, buckets::Look::All, &source).await?;
                        buckets.check_source(&buckets.fit(&source).await?, suppressed)
                    }
                },
            );
        } else {
            findings.push(Finding {
                rule: "source".into(),
                count: 1,
                message: "the source has changed since the release, so its rows cannot be compared".into(),
            });
        }
        Ok(Verified { manifest, classes, findings, attained: found.figures })
    }
}

impl Run {
    /// What an adversary learns from a release of the job's sink, with a public table (the job's when none is given) and
    /// the number of people in the whole population, as far as they are known.
    pub async fn attack(&self, release: Option<&str>, public: Option<&str>, population: Option<u64>) -> Result<Attack> {
        let sink = self.sink()?;
        let manifest = find_release(&sink, release).await?;
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let Opened { treatment, public: of_job, rows, .. } = self.open(&source).await?;
        if manifest.form() != treatment.form() {
            return Err(Error::Job(format!(
                "method.form: the release has the form `{}`, and the job would publish `{}`; attack it with the job that \
                 made it",
                manifest.form().as_str(),
                treatment.form().as_str()
            )));
        }
        let public = match public {
            Some(url) => Some(self.public(LocalPath::new("."), url).await?),
            None => of_job,
        };
        let tables = Tables::of(&self.context, &sink, &manifest.files, manifest.form()).await?;
        let published = match &tables {
            Some(tables) => tables.rows()?,
            None => verify::open(&self.context, &sink, &manifest.files, Some(&treatment.output)).await?,
        };
        let classes = verify::count_classes(&published, &treatment.class_columns(), &|_| {}).await?;
        let slices = treatment.slices(&manifest.slices);
        let known = match &public {
            Some(public) if manifest.form().is_numbered() => {
                let people = presence::people(public, &self.context, &treatment)?;
                let shown = tables.map_or_else(|| Shown::One(published.clone()), Shown::Two);
                let buckets = Buckets::read(&shown, &treatment, &slices, buckets::Look::Quasi, &people).await?;
                let fits = buckets.fit(&people).await?;
                Some((buckets.tally(&fits, Effort::default()), buckets.linkage(&fits)))
            }
            Some(public) => {
                let matching = presence::matching(&published, public, &self.context, &treatment).await?;
                Some((matching.tally(), matching.linkage()))
            }
            None => None,
        };
        let chased = inference::chase(&published, &treatment).await?;
        let mut sensitive = BTreeMap::new();
        for column in &treatment.sensitive {
            let by = classes_beside(&treatment, &slices, column);
            sensitive.insert(column.name.clone(), attack::disclosure(&published, &by, column).await?);
        }
        let population = match population {
            Some(people) => {
                let source = DataFrame::new(self.context.state(), rows);
                Some(attack::population(people, &source, &classes, &treatment).await?)
            }
            None => None,
        };
        let (tally, linkage) = known.unzip();
        Ok(Attack {
            run: manifest.run,
            form: manifest.form,
            rows: classes.rows(),
            classes: classes.classes(),
            membership: tally.map(Membership::new),
            linkage: Risks::new(&classes, linkage.as_ref()),
            inference: chased.map(|chased| inference::report(&chased, &treatment)),
            sensitive,
            population,
        })
    }
}

/// What a run reads.
struct Opened {
    /// Rows to anonymise: those of the source, beside those of the public table if there is one.
    input: LogicalPlan,
    treatment: Arc<Treatment>,
    public: Option<Public>,
    /// Rows of the source alone, with their identifiers replaced.
    rows: LogicalPlan,
    /// Rows of the source as they are.
    scanned: LogicalPlan,
}

fn public_files(public: Option<&Public>) -> &[InputFile] {
    public.map_or(&[], |public| public.source.files())
}

/// Suppressed rows are part of the table that groups were compared with, and not of the one that is published.
fn explain_shift(treatment: &Treatment, suppressed: u64, finding: &mut Finding) {
    let rules = treatment.policy.privacy.rules();
    if rules.iter().any(|listed| listed.name == finding.rule && listed.rule.needs().table) {
        finding.message += &format!(
            "; {suppressed} rows were suppressed, which changes the table that groups are compared with: allow none \
             (privacy.max-suppression = 0), or a wider bound"
        );
    }
}

/// What `verify` has found of a release.
#[derive(Debug, Clone)]
pub struct Verified {
    /// The manifest of the release.
    pub manifest: Manifest,
    /// Its classes, counted in the files.
    pub classes: Classes,
    /// What does not hold.
    pub findings: Vec<Finding>,
    /// How well each sensitive column is protected, by every rule.
    pub attained: BTreeMap<String, Figures>,
}

/// Whether a release was made from this source, as it is now.
fn reads(release: &Manifest, source: &Source) -> bool {
    let same = release.snapshot.is_empty() || release.snapshot == source.snapshot();
    same && release.input == source.files()
}

/// A release of a sink by run id, or the newest one.
pub(crate) async fn find_release(sink: &Location, run: Option<&str>) -> Result<Manifest> {
    let run = match run {
        Some(run) => run.to_owned(),
        None => match ledger::latest_run(sink).await? {
            Some(run) => run,
            None => return Err(Error::Input(format!("`{}` holds no release; `throng run` makes one", sink.name))),
        },
    };
    let found = ledger::committed(sink, &run).await?;
    found.ok_or_else(|| commit::no_such_run(sink, &run))
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
    let source = Source::find(&run.options.stores, &run.base, &run.job).await?;
    let Opened { input, treatment, public, .. } = run.open(&source).await?;
    let sink = run.sink()?;
    let logical = Anonymize::treated(input.clone(), treatment.as_ref().clone())?.into_plan();
    let plan = DataFrame::new(run.context.state(), logical).create_physical_plan().await?;
    let survey = DataFrame::new(run.context.state(), survey_plan(&input, &treatment)?).create_physical_plan().await?;
    let target = run.target(&sink, &sink.at("data"), "", &treatment);
    let write = WriteExec::new(in_part(Arc::clone(&plan))?, target, Uploads::default());
    let stages = run.engine.explain(survey, Arc::new(write), &treatment, &run.context)?;
    let shown = stages.unwrap_or_else(|| displayable(plan.as_ref()).indent(false).to_string());
    let described = |what: &str, place: &Location| format!("{what}: {} ({})\n", place.name, place.service);
    let mut places: String = source.locations().map(|place| described("source", place)).collect();
    let public_places = public.iter().flat_map(|public| public.source.locations());
    places.extend(public_places.map(|place| described("public", place)));
    Ok(source.mask(places + &described("sink", &sink) + &shown))
}

/// Measures of the anonymising node of a plan.
pub(super) fn measures(plan: &Arc<dyn ExecutionPlan>) -> Option<Groups> {
    match plan.downcast_ref::<AnonymizeExec>() {
        Some(node) => node.measures(),
        None => plan.children().into_iter().find_map(measures),
    }
}

/// The plan with its anonymising node told that it sees a part of the cells.
fn in_part(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let changed = plan.transform_up(|node| {
        Ok(match node.downcast_ref::<AnonymizeExec>() {
            Some(whole) => Transformed::yes(Arc::new(whole.in_part()) as Arc<dyn ExecutionPlan>),
            None => Transformed::no(node),
        })
    })?;
    Ok(changed.data)
}

fn refuse<'a>(problems: impl Iterator<Item = &'a crate::job::Problem>) -> Result<()> {
    let lines: Vec<String> = problems.map(ToString::to_string).collect();
    if lines.is_empty() { Ok(()) } else { Err(Error::Job(lines.join("\n"))) }
}
