//! A run of a series: the same stages, with the ledger beside them.
//!
//! ```text
//! recover    the pointer of the ledger is where the newest manifest says           series/state
//! begin      today beside yesterday                                                series/night
//! retire, group                                                                    series/retirement, series/grouping
//! write      new rows, and what stays of files that rows have left                 this file
//! conclude   the next version of the ledger, staged                                series/tomorrow
//! verify     the whole release as any other; the promise of the series             audit/histories
//! commit     manifest, pointer of the ledger, `_latest`
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{DataFrame, SessionContext};

use super::prepared::Work;
use super::shown::{open_files, read_shown};
use super::staged::Folder;
use super::{Outcome, Run};
use crate::agreement::files;
use crate::agreement::manifest::{REENACTABLE, check_coherence, check_files, column_roles, rule_records};
use crate::audit::changes::{Changes, changes_schema, check_changes, compare_ledgers};
use crate::binding::BoundPolicy;
use crate::engine::Verifier;
use crate::engine::phase::{Begun, Phase};
use crate::error::{Error, Result};
use crate::ledger;
use crate::ledger::commit::{Commit, ensure_files};
use crate::ledger::guard::overtaken_error;
use crate::ledger::manifest::{FORMAT, Manifest, OutputFile, Scores, Verification};
use crate::measure::Groups;
use crate::policy::{Policy, Series, SeriesMode};
use crate::series::arrivals::Arrivals;
use crate::series::counts::{SeriesCounts, SeriesRelease};
use crate::series::night::{Night, Setting, reset_history};
use crate::series::retirement::{Leaving, OldFile};
use crate::series::scratch::Scratch;
use crate::series::state::{Published, State, Stored, Tables, Version, ledger_schema};
use crate::source::Source;
use crate::storage::Location;
use crate::survey;
use crate::verify::{Finding, InProcess, Look, check_order, measure_classes, read_footers, shown_losses, verify_rows};
use crate::write::{WriteExec, WrittenFile, decode_write_results, stored_schema};

/// The series that a run goes on with.
pub(super) struct Continued {
    pub(super) state: State,
    /// The ledger of the release before; none of the first.
    pub(super) ledger: Option<Stored>,
    /// The manifest of the release before.
    pub(super) manifest: Option<Manifest>,
    /// Number of the first release whose history is remembered.
    remembered: u64,
}

impl Continued {
    /// Opens the state of a series, and finishes what a run that died has left undone.
    pub(super) async fn open_series(run: &Run, series: &Series, sink: &Location) -> Result<Self> {
        let state = State::open(&run.job, series, &run.base, &run.options.stores)?;
        let releases = ledger::series_releases(sink).await?;
        let published = published_series(sink, &releases)?;
        let ledger = state.recover_version(published.as_ref()).await?;
        let mut newest = None;
        for manifest in &releases {
            let Some(of_series) = &manifest.series else { continue };
            let Some(ledger) = ledger.as_ref().filter(|ledger| ledger.version.number == of_series.number) else {
                continue;
            };
            if of_series.ledger == ledger.digest {
                newest = Some(manifest.clone());
            } else {
                // Another run has lost the race for this number, and died before it could take its manifest back.
                ledger::withdraw_release(sink, manifest).await?;
            }
        }
        if let Some(manifest) = &newest {
            ledger::complete_series(sink, manifest).await?;
        }
        // What `throng gc` has removed as older than the horizon is forgotten.
        let oldest = releases.iter().filter_map(|manifest| manifest.series.as_ref()).map(|series| series.number).min();
        let remembered = if series.horizon.is_some() { oldest.unwrap_or(0) } else { 0 };
        Ok(Self { state, ledger, manifest: newest, remembered })
    }

    /// The ledger of the release before, without what is forgotten.
    async fn ledger_rows(&self, context: &SessionContext) -> Result<DataFrame> {
        match &self.ledger {
            Some(stored) => reset_history(self.state.read_rows(context, stored).await?, self.remembered),
            None => Ok(context.read_batch(RecordBatch::new_empty(ledger_schema()))?),
        }
    }

    /// Number of the release that comes next.
    fn next_number(&self) -> u64 {
        self.ledger.as_ref().map_or(0, |ledger| ledger.version.number) + 1
    }
}

/// What the manifests of a sink say of the series; refuses releases that are of none.
fn published_series(sink: &Location, releases: &[Manifest]) -> Result<Option<Published>> {
    if releases.iter().any(|manifest| manifest.series.is_none()) {
        return Err(Error::conflict(format!(
            "the sink `{}` holds a release that is not of a series, and nobody knows who is in it; choose an empty sink for \
             the series",
            sink.name
        )));
    }
    let of_series = || releases.iter().filter_map(|manifest| manifest.series.as_ref());
    let Some(number) = of_series().map(|series| series.number).max() else { return Ok(None) };
    let newest = of_series().filter(|series| series.number == number);
    Ok(Some(Published { number, ledgers: newest.map(|series| series.ledger.clone()).collect() }))
}

impl Run {
    /// Makes the next release of a series.
    pub(super) async fn release_in_series(
        &self,
        work: Work<'_>,
        series: &Series,
        continued: Continued,
        phase: Begun,
    ) -> Result<Outcome> {
        work.ledger.ensure_own_sink(&work.sink).await?;
        let version = self.next_version(&work, series, &continued)?;
        let floor = self.floor_policy(&version, &work.opened.bound_policy)?;
        phase.record_count("files", work.source.file_count() as u64);
        let times = vec![phase.finish_phase()];
        let arrivals = self.arrivals(series, &continued, work.source).await?;
        let folder = Folder::open(&work).await?;
        let dawn = Dawn { run: self, work: &work, series, continued: &continued, arrivals, folder: &folder, floor };
        let committed = dawn.publish_release(version, times).await;
        match committed {
            Ok((Commit::Won, manifest, times)) => {
                folder.keep().await;
                Ok(Outcome::Released(Box::new(manifest), times))
            }
            Ok((Commit::Unknown(error), ..)) => {
                folder.leave_unsettled();
                Err(error)
            }
            Ok((Commit::Lost(other), ..)) => {
                folder.discard().await;
                self.already_done(*other, work.source, None)
            }
            Err(error) => {
                self.uploads.join_all().await;
                folder.discard().await;
                Err(error)
            }
        }
    }

    /// The next version of the ledger, yet without its files. Refuses a policy that the series cannot go on with.
    fn next_version(&self, work: &Work<'_>, series: &Series, continued: &Continued) -> Result<Version> {
        let shape = describe_shape(&self.policy, &work.opened.bound_policy)?;
        let rules = serde_json::to_value(&self.policy.privacy).map_err(|error| Error::internal(error.to_string()))?;
        let mut floor = rules.clone();
        if let Some(Stored { version, .. }) = &continued.ledger {
            if version.subject != series.subject {
                return Err(Error::conflict(format!(
                    "series.subject was [{}] in earlier releases of this series, and nobody would be known again by [{}]; \
                     put it back, or begin a new series in an empty sink and an empty state",
                    version.subject.join(", "),
                    series.subject.join(", ")
                )));
            }
            if version.shape != shape {
                return Err(Error::conflict(
                    "columns, their hierarchies or their types are not those of earlier releases of this series; put them \
                     back, or begin a new series in an empty sink and an empty state",
                ));
            }
            crate::series::terms::ensure_stricter(&version.rules, &self.policy.privacy)?;
            floor = version.floor.clone();
        }
        Ok(Version {
            format: 0,
            number: continued.next_number(),
            run: work.id.clone(),
            key: String::new(),
            subject: series.subject.clone(),
            shape,
            floor,
            rules,
            files: Vec::new(),
            consumed: Vec::new(),
            waiting: Vec::new(),
            suppressed: 0,
        })
    }

    /// The policy that all cohorts of the series meet: the rules of its first release.
    pub(super) fn floor_policy(&self, version: &Version, bound_policy: &Arc<BoundPolicy>) -> Result<Arc<BoundPolicy>> {
        let privacy = serde_json::from_value(version.floor.clone());
        let privacy = privacy.map_err(|error| Error::internal(format!("the first rules of the series: {error}")))?;
        if privacy == self.policy.privacy {
            return Ok(Arc::clone(bound_policy));
        }
        let job = crate::policy::Job { privacy, ..self.job.clone() };
        let policy = Arc::new(Policy::of_checked(&job, &self.base)?);
        let (input, key) = (Arc::clone(&bound_policy.input), bound_policy.key.clone());
        Ok(Arc::new(BoundPolicy::bind_schema(policy, input, key)?))
    }
}

impl Run {
    /// The files of the source beside those that the series has read, where rows have no identity.
    pub(super) async fn arrivals(
        &self,
        series: &Series,
        continued: &Continued,
        source: &Source,
    ) -> Result<Option<Arrivals>> {
        if !series.is_by_file() {
            return Ok(None);
        }
        let (state, ledger) = (&continued.state, continued.ledger.as_ref());
        Arrivals::find(state, ledger, &source.input_files()?, &self.local).await.map(Some)
    }

    /// What a night of the series works with.
    pub(super) fn night_setting<'a>(
        &'a self,
        series: &'a Series,
        continued: &Continued,
        bound_policy: &Arc<BoundPolicy>,
        number: u64,
    ) -> Setting<'a> {
        Setting {
            session: &self.local,
            spill: self.spill.path(),
            job: &self.job,
            series,
            base: &self.base,
            key: continued.state.key().clone(),
            number,
            bound_policy: Arc::clone(bound_policy),
            memory_limit: self.options.session.memory_limit,
            cell_rows: self.cell_rows(bound_policy),
        }
    }
}

/// What must stay the same through a series: what is published of every column, and how.
fn describe_shape(policy: &Policy, bound_policy: &BoundPolicy) -> Result<String> {
    let columns = serde_json::to_string(&(&policy.columns, &policy.defaults, &policy.files));
    let columns = columns.map_err(|error| Error::internal(error.to_string()))?;
    let stored = stored_schema(&bound_policy.output);
    let types: Vec<String> =
        stored.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    Ok(blake3::hash(format!("{columns}\n{}", types.join("\n")).as_bytes()).to_hex().to_string())
}

/// A run of a series at work.
struct Dawn<'a> {
    run: &'a Run,
    work: &'a Work<'a>,
    series: &'a Series,
    continued: &'a Continued,
    /// The files of tonight, where rows have no identity.
    arrivals: Option<Arrivals>,
    folder: &'a Folder,
    /// What all cohorts of the series meet.
    floor: Arc<BoundPolicy>,
}

type Times = Vec<(Phase, Duration)>;

impl Dawn<'_> {
    /// From the ledger of yesterday to a release.
    async fn publish_release(&self, mut version: Version, mut times: Times) -> Result<(Commit, Manifest, Times)> {
        let night = Box::pin(self.begin_night()).await?;
        let phase = Phase::Group.begin();
        (self.work.observer)(Phase::Group, None, 0);
        let old = self.old_files(&night).await?;
        let leaving = night.retire_cohorts(&old).await?;
        let staged = Box::pin(night.group_rows()).await?;
        let mut files = Files::default();
        self.keep_files(&leaving, &mut files);
        self.write_rows(night.rows_to_publish().await?, version.number, "", &mut files).await?;
        self.rewrite_files(&night, &old, &leaving, &mut files).await?;
        let (ledger, mut counts) = night.build_tomorrow(&leaving).await?;
        phase.record_count("rows", staged.rows);
        times.push(phase.finish_phase());
        let mut tables = Tables { ledger, arrivals: None };
        if let Some(arrivals) = &self.arrivals {
            // Rows without an identity are not met again: they stay suppressed.
            counts.suppressed += self.continued.ledger.as_ref().map_or(0, |ledger| ledger.version.suppressed);
            version.suppressed = counts.suppressed;
            tables.arrivals = Some((arrivals.consumed_files(night.scratch.context())?, night.waiting_rows().await?));
        }
        let ledger = self.continued.state.stage_version(version, tables, &self.run.uploads).await?;
        let done = Box::pin(self.verify_files(&night, files, &ledger, counts)).await;
        match done {
            Ok((manifest, phase)) => {
                times.push(phase.finish_phase());
                self.commit_release(manifest, &ledger, times).await
            }
            Err(error) => {
                self.continued.state.discard_version(&ledger.folder).await;
                // The winner of a race removes what the others have staged, also while they read it.
                Err(if self.continued.state.is_past(&ledger).await { overtaken_error(&self.work.sink) } else { error })
            }
        }
    }

    async fn begin_night(&self) -> Result<Night<'_>> {
        let Self { run, work, continued, .. } = self;
        (work.observer)(Phase::Survey, None, 0);
        let ledger = continued.ledger_rows(&run.local).await?;
        let setting = run.night_setting(self.series, continued, &work.opened.bound_policy, continued.next_number());
        if let Some(arrivals) = &self.arrivals {
            let new = work.source.scan_files(&run.local, &arrivals.new).await?;
            let waiting = match &continued.ledger {
                Some(stored) => continued.state.read_part(&run.local, stored, &stored.version.waiting).await?,
                None => None,
            };
            return Night::begin_with_arrivals(setting, &new, waiting, ledger).await;
        }
        let forgotten = continued.state.forgotten_subjects(&run.local).await?;
        Night::begin(setting, &work.opened.scanned, ledger, forgotten).await
    }

    /// The files of the release before.
    async fn old_files(&self, night: &Night<'_>) -> Result<Vec<OldFile>> {
        let Some(manifest) = &self.continued.manifest else { return Ok(Vec::new()) };
        ensure_files(&self.work.sink, manifest).await?;
        let mut old = Vec::new();
        for file in &manifest.files {
            let rows = self.open_files(night, std::slice::from_ref(file)).await?;
            let born = manifest.series.as_ref().and_then(|series| series.born.get(&file.path)).copied();
            let born =
                born.ok_or_else(|| Error::conflict("the newest manifest does not say when its files were made"))?;
            old.push(OldFile { path: file.path.clone(), born, rows });
        }
        Ok(old)
    }

    async fn open_files(&self, night: &Night<'_>, files: &[OutputFile]) -> Result<DataFrame> {
        open_files(night, &self.work.sink, files).await
    }

    /// Files as rows in the session that plans of a verification are made in.
    async fn open_released(&self, night: &Night<'_>, listed: &[OutputFile]) -> Result<DataFrame> {
        let output = &night.setting.bound_policy.output;
        night.as_published(files::open_published(&self.run.context, &self.work.sink, listed, Some(output)).await?)
    }

    /// Lists the files again that nothing has left.
    fn keep_files(&self, leaving: &Leaving, files: &mut Files) {
        let Some(manifest) = &self.continued.manifest else { return };
        let Some(series) = &manifest.series else { return };
        for file in manifest.files.iter().filter(|file| !leaving.files.contains(&file.path)) {
            files.born.extend(series.born.get(&file.path).map(|born| (file.path.clone(), *born)));
            files.kept.push(file.clone());
        }
        files.losses.clone_from(&series.losses);
    }

    /// Writes what stays of the files that rows have left, those of one night together.
    async fn rewrite_files(
        &self,
        night: &Night<'_>,
        old: &[OldFile],
        leaving: &Leaving,
        files: &mut Files,
    ) -> Result<()> {
        let touched = || old.iter().filter(|file| leaving.files.contains(&file.path));
        let nights: BTreeSet<u64> = touched().map(|file| file.born).collect();
        for born in nights {
            let mut all: Option<DataFrame> = None;
            for file in touched().filter(|file| file.born == born) {
                let rows = night.staying_rows(file, leaving).await?;
                all = Some(match all {
                    None => rows,
                    Some(others) => others.union(rows)?,
                });
            }
            if let Some(rows) = all {
                self.write_rows(rows, born, &format!("night-{born:05}"), files).await?;
            }
        }
        Ok(())
    }

    /// Writes rows in their published order, into a folder below that of the run.
    async fn write_rows(&self, rows: DataFrame, born: u64, below: &str, files: &mut Files) -> Result<()> {
        let Self { run, work, folder, floor, .. } = self;
        let path = work.sink.at(folder.name());
        let path = if below.is_empty() { path } else { path.join(below) };
        let target = run.write_target(&work.sink, &path, &work.id, floor, false);
        let count = rows.clone().count().await? as u64;
        let parts = target.order.part_count(count, run.local.copied_config().target_partitions());
        let ordered = target.order.arrange_rows(rows.create_physical_plan().await?, parts)?;
        let plan: Arc<dyn ExecutionPlan> = Arc::new(WriteExec::new(ordered, target, run.uploads.clone()));
        (work.observer)(Phase::Group, Some(&plan), 0);
        let (written, _) = decode_write_results(&collect(plan, run.local.task_ctx()).await?)?;
        let written = written.into_iter().filter(|file| file.rows > 0);
        files.written.extend(written.map(|file| (file, born)));
        Ok(())
    }

    /// Reads back what would stand, and checks every promise.
    async fn verify_files(
        &self,
        night: &Night<'_>,
        mut files: Files,
        ledger: &Stored,
        counts: SeriesCounts,
    ) -> Result<(Manifest, Begun)> {
        let Self { run, work, floor, .. } = self;
        let phase = Phase::Verify.begin();
        let mut listed = std::mem::take(&mut files.kept);
        let mut findings: Vec<Finding> = self.check_kept(&listed).await?.into_iter().collect();
        for (file, born) in &files.written {
            let path = files::released_path(&work.sink, self.folder.name(), file);
            let blake3 = files::file_checksum(&work.sink, &path).await?;
            let blake3 = blake3.ok_or_else(|| Error::retry(format!("`{path}` was written but is not there")))?;
            files.born.insert(path.clone(), *born);
            listed.push(OutputFile { path, rows: file.rows, size: file.size, blake3 });
        }
        let rows: u64 = listed.iter().map(|file| file.rows).sum();
        (work.observer)(Phase::Verify, None, rows);
        let watch = |plan: &Arc<dyn ExecutionPlan>| (work.observer)(Phase::Verify, Some(plan), rows);
        let plans = Verifier { engine: run.engine.as_ref(), rows, watch: &watch };
        let mut found = crate::verify::Found::default();
        if !listed.is_empty() {
            let columns = files::check_types(&run.context, &work.sink, &listed, &work.opened.bound_policy).await?;
            Finding::ensure_none(&columns.findings)?;
            let table = self.open_released(night, &listed).await?;
            let slices = floor.resolve_slices(&[]);
            found = verify_rows(&plans, &table, floor, &slices, rows, Look::Guarded).await?;
            findings.append(&mut found.findings);
            let published = files::published_files(&work.sink, &listed);
            let class_columns = floor.class_columns();
            findings.extend(check_order(&plans, &run.context, &published, &class_columns).await?);
            let input = work.data_frame(&work.opened.input);
            findings.extend(files::check_raw(&plans, &table, &input, floor, 0).await?);
        }
        findings.extend(self.check_promise(night, &listed, &files.born, ledger).await?);
        Finding::ensure_none(&findings)?;
        self.measure_tonight(&plans, night, &listed, ledger.version.number, &mut files).await?;
        let series = SeriesRelease {
            number: ledger.version.number,
            mode: self.series.mode,
            ledger: ledger.digest.clone(),
            k: run.policy.privacy.k,
            counts,
            horizon: self
                .series
                .horizon_seconds()
                .map_err(|message| Error::job(format!("series.horizon {message}")))?,
            born: files.born,
            losses: files.losses,
        };
        let manifest = self.build_manifest(listed, rows, series, &found)?.into_released(false)?;
        let mut disagreements = check_coherence(&manifest);
        let footers = read_footers(&files::published_files(&work.sink, &manifest.files)).await?;
        disagreements.extend(check_files(&manifest, &manifest.files, &footers));
        Finding::ensure_none(&disagreements)?;
        phase.record_count("rows", manifest.rows);
        phase.record_count("classes", manifest.verification.classes.count);
        phase.record_count("smallest_class", manifest.verification.classes.smallest);
        Ok((manifest, phase))
    }

    /// Measures what the files of tonight lose, by their values and not by those that they were made from.
    async fn measure_tonight(
        &self,
        plans: &Verifier<'_>,
        night: &Night<'_>,
        listed: &[OutputFile],
        number: u64,
        files: &mut Files,
    ) -> Result<()> {
        let floor = &self.floor;
        let tonight: Vec<OutputFile> =
            listed.iter().filter(|file| files.born.get(&file.path) == Some(&number)).cloned().collect();
        if !tonight.is_empty() {
            let table = self.open_released(night, &tonight).await?;
            let classes = measure_classes(plans, &table, floor, None).await?;
            let shown = shown_losses(floor).into_iter().all(|shown| shown);
            files.losses.extend(classes.loss.gcp().filter(|_| shown).map(|loss| (number, loss)));
        }
        Ok(())
    }

    /// Recounts the promise of the series from what was written.
    async fn check_promise(
        &self,
        night: &Night<'_>,
        listed: &[OutputFile],
        born: &BTreeMap<String, u64>,
        ledger: &Stored,
    ) -> Result<Vec<Finding>> {
        let Self { continued, floor, .. } = self;
        let context = night.scratch.context();
        let (old, born_before) = match &continued.manifest {
            Some(manifest) => (manifest.files.as_slice(), manifest.series.as_ref().map(|series| &series.born)),
            None => (&[][..], None),
        };
        let only = |these: &[OutputFile], others: &[OutputFile]| -> Vec<OutputFile> {
            these.iter().filter(|file| !others.contains(file)).cloned().collect()
        };
        let (removed, written) = (only(old, listed), only(listed, old));
        let born_before = born_before.cloned().unwrap_or_default();
        let before = Scratch::stream_in_order(continued.ledger_rows(context).await?).await?;
        let after = Scratch::stream_in_order(continued.state.read_rows(context, ledger).await?).await?;
        let mut file = night.scratch.create_file("changes", &changes_schema())?;
        let compared = compare_ledgers(before, after, |rows| file.write_rows(rows)).await?;
        file.close()?;
        night.scratch.name_folder("changes", &changes_schema()).await?;
        let changes = Changes {
            compared,
            moves: night.scratch.table("changes").await?,
            after: continued.state.read_rows(context, ledger).await?,
            removed: read_shown(night, &self.work.sink, &removed, &born_before).await?,
            written: read_shown(night, &self.work.sink, &written, born).await?,
        };
        // The key of the ledger stays in this process.
        check_changes(&InProcess, context, changes, floor).await
    }

    /// Files of earlier releases must be as they were when they were verified.
    async fn check_kept(&self, kept: &[OutputFile]) -> Result<Option<Finding>> {
        let mut changed = 0;
        for file in kept {
            let found = files::file_checksum(&self.work.sink, &file.path).await?;
            changed += u64::from(found.as_ref() != Some(&file.blake3));
        }
        Ok(Finding::if_any("files", changed, |files| {
            format!("{files} files of earlier releases are missing, or not as they were released")
        }))
    }

    fn build_manifest(
        &self,
        files: Vec<OutputFile>,
        rows: u64,
        series: SeriesRelease,
        found: &crate::verify::Found,
    ) -> Result<Manifest> {
        let Self { run, work, floor, .. } = self;
        let policy = &run.policy;
        let k = floor.policy.privacy.k;
        let columns: Vec<String> = floor.quasi.iter().map(|column| column.name.clone()).collect();
        let schema = stored_schema(&floor.output);
        let mut scores = Scores::new(&Groups::new(columns.len(), floor.sensitive.len()), &found.classes, k, &[]);
        scores.gcp = mean_loss(&files, &series);
        let suppressed = series.counts.suppressed;
        let read = match series.mode {
            SeriesMode::Snapshot => series.counts.read(rows),
            SeriesMode::Append => Some(rows + suppressed),
        };
        let read = read.ok_or_else(|| Error::internal("more rows are gone than were published"))?;
        let rules = survey::build_rules(floor, &floor.resolve_slices(&[]));
        Ok(Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            run: work.id.clone(),
            committed: jiff::Timestamp::now().to_string(),
            policy: policy.hash.clone(),
            k,
            method: policy.method.name.as_str().to_owned(),
            seed: policy.method.seed,
            warnings: policy
                .method
                .seed
                .map(|_| REENACTABLE.to_owned())
                .into_iter()
                .chain(self.horizon_warning())
                .collect(),
            earlier_releases: None,
            series: Some(series),
            form: None,
            slices: Vec::new(),
            tuned: BTreeMap::new(),
            input: work.source.input().to_vec(),
            snapshot: run.source_identity(work.source),
            public: Vec::new(),
            public_snapshot: String::new(),
            data: self.folder.name().to_owned(),
            files,
            schema: schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect(),
            class_columns: floor.class_columns(),
            roles: column_roles(floor),
            rows_read: read,
            rows,
            suppressed,
            dropped: 0,
            rounded: false,
            cells: 0,
            cell_rows: None,
            scores,
            dependencies: Vec::new(),
            population: None,
            verification: Verification {
                rules: rule_records(floor, &rules),
                classes: (&found.classes).into(),
                inference: None,
                people: None,
                attained: found.figures.clone(),
            },
        })
    }

    /// What the promise does not hold for when releases are removed.
    fn horizon_warning(&self) -> Option<String> {
        let horizon = self.series.horizon.as_ref()?;
        Some(format!(
            "the promise of the series holds for readers who did not keep releases that are older than {horizon} and were \
             removed by `throng gc`; this release remembers those since number {}",
            self.continued.remembered.max(1)
        ))
    }

    /// Makes the release visible: its manifest, then the pointer of the ledger, which one of two runs that race moves, then
    /// `_latest`.
    async fn commit_release(
        &self,
        manifest: Manifest,
        stored: &Stored,
        mut times: Times,
    ) -> Result<(Commit, Manifest, Times)> {
        let Self { run, work, continued, .. } = self;
        let phase = Phase::Commit.begin();
        let confirmed = work.source.ensure_unchanged().await;
        if let Err(error) = confirmed {
            continued.state.discard_version(&stored.folder).await;
            return Err(error);
        }
        (work.observer)(Phase::Commit, None, 0);
        run.note_folder(None);
        let (sink, state) = (&work.sink, &continued.state);
        if state.is_past(stored).await {
            state.discard_version(&stored.folder).await;
            return Err(overtaken_error(sink));
        }
        match work.ledger.commit_next(sink, &manifest, continued.manifest.as_ref()).await {
            Ok(Commit::Won) => {}
            Ok(other) => return Ok((other, manifest, times)),
            Err(error) => {
                state.discard_version(&stored.folder).await;
                return Err(error);
            }
        }
        match state.advance_pointer(stored).await {
            Ok(true) => {}
            Ok(false) => {
                if let Err(error) = ledger::withdraw_release(sink, &manifest).await {
                    return Ok((Commit::Unknown(error), manifest, times));
                }
                state.discard_version(&stored.folder).await;
                return Err(overtaken_error(sink));
            }
            Err(error) => return Ok((Commit::Unknown(error), manifest, times)),
        }
        if let Err(error) = work.ledger.show_next(sink, &manifest).await {
            return Ok((Commit::Unknown(error), manifest, times));
        }
        if let Err(error) = state.remove_old_versions(stored).await {
            tracing::warn!(%error, "old versions of the ledger could not be removed");
        }
        times.push(phase.finish_phase());
        Ok((Commit::Won, manifest, times))
    }
}

/// The files of a release in the making.
#[derive(Default)]
struct Files {
    /// Those of the release before.
    kept: Vec<OutputFile>,
    /// Those of tonight, with the release in which their rows were first published.
    written: Vec<(WrittenFile, u64)>,
    born: BTreeMap<String, u64>,
    losses: BTreeMap<u64, f64>,
}

/// Mean loss of a published value: rows lose what they lost when they were first published.
fn mean_loss(files: &[OutputFile], series: &SeriesRelease) -> Option<f64> {
    let (mut rows, mut loss) = (0.0, 0.0);
    for file in files {
        let lost = series.born.get(&file.path).and_then(|born| series.losses.get(born))?;
        rows += file.rows as f64;
        loss += file.rows as f64 * lost;
    }
    (rows > 0.0).then(|| loss / rows)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};

    use super::super::tests::Lab;
    use super::*;
    use crate::error::ErrorKind;
    use crate::ledger::manifest::tests::small_manifest;

    fn of_series(number: u64, ledger: &str) -> Manifest {
        let series = SeriesRelease { number, ledger: ledger.to_owned(), ..SeriesRelease::default() };
        Manifest { series: Some(series), ..small_manifest(9, 9) }
    }

    /// Two runs that raced have left two manifests of one number; which of them the ledger knows is not decided here.
    #[tokio::test]
    async fn what_is_published_is_the_newest_number_and_all_its_ledgers() {
        let sink = Lab::new().await.sink();
        assert!(published_series(&sink, &[]).unwrap().is_none());
        let releases = [of_series(1, "a"), of_series(2, "b"), of_series(2, "c")];
        let found = published_series(&sink, &releases).unwrap().unwrap();
        assert_eq!((found.number, found.ledgers), (2, vec!["b".to_owned(), "c".to_owned()]));
        let Err(error) = published_series(&sink, &[of_series(1, "a"), small_manifest(9, 9)]) else {
            panic!("it is of none")
        };
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains("`s3://lake/out` holds a release that is not of a series"), "{error}");
    }

    #[test]
    fn rows_lose_what_they_lost_when_they_were_first_published() {
        let file = |path: &str, rows| OutputFile { path: path.into(), rows, size: 1, blake3: String::new() };
        let mut series = SeriesRelease {
            born: [("old".to_owned(), 1), ("new".to_owned(), 2)].into(),
            losses: [(1, 0.5), (2, 0.1)].into(),
            ..SeriesRelease::default()
        };
        let files = [file("old", 30), file("new", 10)];
        assert_eq!(mean_loss(&files, &series), Some((30.0 * 0.5 + 10.0 * 0.1) / 40.0));
        assert_eq!(mean_loss(&files[..1], &series), Some(0.5));
        assert_eq!(mean_loss(&[], &series), None, "nothing is published, nothing is lost");
        series.losses.remove(&1);
        assert_eq!(mean_loss(&files, &series), None, "what is not known of a part is not known of the whole");
    }

    /// The order of columns in the job says nothing; what is published of one does.
    #[test]
    fn the_shape_is_what_is_published_of_every_column() {
        let shape_of = |columns: &str, fields: [(&str, DataType); 2]| {
            let text = format!("privacy.k = 2\n[columns]\n{columns}");
            let policy = Policy::from_table(toml::from_str(&text).unwrap(), std::path::Path::new(".")).unwrap();
            let fields = fields.map(|(name, data_type)| Field::new(name, data_type, true));
            let policy = Arc::new(policy);
            let bound_policy = BoundPolicy::new(Arc::clone(&policy), Arc::new(Schema::new(fields.to_vec()))).unwrap();
            describe_shape(&policy, &bound_policy).unwrap()
        };
        let ints = || [("age", DataType::Int32), ("ill", DataType::Utf8)];
        let first = shape_of("age.role = \"quasi\"\nill.role = \"sensitive\"", ints());
        assert_eq!(shape_of("ill.role = \"sensitive\"\nage.role = \"quasi\"", ints()), first);
        assert_ne!(shape_of("age.role = \"quasi\"\nill.role = \"kept\"", ints()), first, "another role");
        let label = "age = { role = \"quasi\", publish = \"label\" }\nill.role = \"sensitive\"";
        assert_ne!(shape_of(label, ints()), first, "another form");
        let wide = [("age", DataType::Int64), ("ill", DataType::Utf8)];
        assert_ne!(shape_of("age.role = \"quasi\"\nill.role = \"sensitive\"", wide), first, "another type");
    }

    #[tokio::test]
    async fn whoever_was_overtaken_may_run_again() {
        let error = overtaken_error(&Lab::new().await.sink());
        assert!(error.is_retryable() && error.message().contains("nothing of this one stays"), "{error}");
    }
}
