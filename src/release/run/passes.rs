//! The two passes of a run, survey and grouping, and the plans that they are.

use std::path::Path as LocalPath;
use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::DataFrame;
use object_store::path::Path;

use super::{Observer, Opened, Run};
use crate::binding::BoundPolicy;
use crate::engine::phase::{Begun, Phase, known_rows, spilled_bytes};
use crate::engine::retry_lost;
use crate::error::{Error, Result};
use crate::measure::Groups;
use crate::operator::{Anonymize, AnonymizeExec, AnonymizeParams, fitting_partitions, survey_plan};
use crate::release::feasibility::Report;
use crate::source::Source;
use crate::storage::Location;
use crate::storage::upload::Uploads;
use crate::survey::file::{encode_survey, open_survey};
use crate::write::order::PublishedOrder;
use crate::write::{Target, WriteExec, WrittenFile, decode_write_results};

impl Run {
    /// Before methods that fill groups with different values begin: whether there are enough.
    pub(crate) async fn check_feasibility(&self, input: &LogicalPlan, bound_policy: &BoundPolicy) -> Result<()> {
        if !self.policy.method.name.entry().buckets {
            return Ok(());
        }
        // Their figures count all rows of the source, so they are not logged; `throng check --data` prints them.
        self.feasibility_reports(input, bound_policy).await?.iter().try_for_each(Report::ensure_feasible)
    }

    async fn feasibility_reports(&self, input: &LogicalPlan, bound_policy: &BoundPolicy) -> Result<Vec<Report>> {
        let mut reports = Vec::new();
        for column in &bound_policy.sensitive {
            let source = DataFrame::new(self.context.state(), input.clone());
            reports.push(Report::of_column(source, bound_policy, &column.name).await?);
        }
        Ok(reports)
    }

    /// What the sensitive columns of the source allow. Reads them.
    pub(crate) async fn feasibility(&self) -> Result<Vec<Report>> {
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let Opened { rows, bound_policy, .. } = self.open_source(&source).await?;
        self.feasibility_reports(&rows, &bound_policy).await
    }

    pub(crate) async fn survey_input(
        &self,
        input: &LogicalPlan,
        bound_policy: Arc<BoundPolicy>,
        observer: &Observer<'_>,
    ) -> Result<Arc<AnonymizeParams>> {
        let plan = survey_plan(input, &bound_policy)?;
        let plan = DataFrame::new(self.context.state(), plan).create_physical_plan().await?;
        let (rows, cell_rows) = (known_rows(&plan), self.cell_rows(&bound_policy));
        let watch = |plan: &Arc<dyn ExecutionPlan>| observer(Phase::Survey, Some(plan), rows);
        let survey =
            || self.engine.run_survey(Arc::clone(&plan), &self.context, Arc::clone(&bound_policy), cell_rows, &watch);
        let found = retry_lost(self.engine.as_ref(), survey).await?;
        AnonymizeParams::new(bound_policy, found).map(Arc::new)
    }

    /// A survey that was taken before, instead of pass 1. Rows are counted, which the footers of Parquet files tell.
    pub(crate) async fn known_survey(
        &self,
        path: &LocalPath,
        input: &LogicalPlan,
        bound_policy: Arc<BoundPolicy>,
    ) -> Result<Arc<AnonymizeParams>> {
        let survey = open_survey(path, &bound_policy)?;
        let rows = DataFrame::new(self.context.state(), input.clone()).count().await? as u64;
        AnonymizeParams::new(Arc::clone(&bound_policy), survey.loosened(rows, &bound_policy)?).map(Arc::new)
    }

    /// Surveys the source: the bytes of a survey file, and how many rows were seen.
    #[cfg(feature = "cli")]
    pub(crate) async fn take_survey(&self) -> Result<(Vec<u8>, u64)> {
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let Opened { input, bound_policy, .. } = self.open_source(&source).await?;
        let params = self.survey_input(&input, bound_policy, &|_, _, _| ()).await;
        let params = match params {
            Ok(params) => params,
            Err(error) => return Err(source.explain_error(error).await),
        };
        Ok((encode_survey(&params.survey, &params.bound_policy), params.survey.source_rows()))
    }

    pub(crate) async fn group_rows(
        &self,
        input: LogicalPlan,
        params: &Arc<AnonymizeParams>,
        target: Target,
        observer: &Observer<'_>,
        phase: &Begun,
    ) -> Result<(Vec<WrittenFile>, Groups)> {
        let (grouped, plan) = self.group_plan(input, params, target).await?;
        let rows = params.survey.rows;
        let watch = |plan: &Arc<dyn ExecutionPlan>| observer(Phase::Group, Some(plan), params.shown_rows());
        let execute_plan = || async {
            let (files, reported) = decode_write_results(
                &self.engine.collect_rows("group", Arc::clone(&plan), rows, &self.context, &watch).await?,
            )?;
            let measures =
                reported.or_else(|| AnonymizeExec::find_measures(&grouped)).unwrap_or_else(|| params.empty_measures());
            if self.engine.is_remote() {
                ensure_all_rows_reported(&measures, params.survey.source_rows())?;
            }
            Ok((files, measures))
        };
        let (files, measures) = retry_lost(self.engine.as_ref(), execute_plan).await?;
        phase.record_count("spilled_bytes", spilled_bytes(&plan));
        if self.engine.is_remote() {
            params.ensure_within_limits(&measures)?;
        }
        phase.record_count("rows", measures.loss.rows());
        if let Some(suppressed) = measures.shown_suppressed() {
            phase.record_count("suppressed", suppressed);
        }
        Ok((files, measures))
    }

    /// The plan of pass 2, and its anonymising part alone.
    async fn group_plan(
        &self,
        input: LogicalPlan,
        params: &Arc<AnonymizeParams>,
        target: Target,
    ) -> Result<(Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>)> {
        let logical = Anonymize::surveyed(input, Arc::clone(params))?.into_plan();
        let mut state = self.context.state();
        let options = state.config_mut().options_mut();
        if let Some(limit) = self.options.session.memory_limit.filter(|_| !self.engine.is_remote()) {
            let wanted = options.execution.target_partitions;
            options.execution.target_partitions = fitting_partitions(&params.bound_policy.input, limit, wanted);
        }
        let partitions = options.execution.target_partitions;
        // Executors take a part each.
        let parts = match self.engine.is_remote() {
            true => partitions,
            false => target.order.part_count(params.countable_rows(), partitions),
        };
        let mut grouped = DataFrame::new(state, logical).create_physical_plan().await?;
        if self.engine.is_remote() {
            grouped = AnonymizeExec::mark_in_part(grouped)?;
        }
        let ordered = target.order.arrange_rows(Arc::clone(&grouped), parts)?;
        let plan = Arc::new(WriteExec::new(ordered, target, self.uploads.clone()));
        Ok((grouped, plan))
    }

    pub(crate) fn write_target(
        &self,
        sink: &Location,
        folder: &Path,
        run: &str,
        bound_policy: &BoundPolicy,
        is_remote: bool,
    ) -> Target {
        let metadata = [
            ("throng.version", env!("CARGO_PKG_VERSION")),
            ("throng.run", run),
            ("throng.policy", &self.policy.hash),
            ("throng.k", &bound_policy.policy.privacy.k.to_string()),
        ];
        self.context.register_object_store(&sink.root, Arc::clone(&sink.store));
        Target {
            store: sink.root.to_string(),
            folder: folder.to_string(),
            output: self.job.output.clone(),
            metadata: metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec(),
            order: PublishedOrder::new(
                bound_policy,
                &self.job.output.partition_by,
                is_remote,
                self.context.copied_config().batch_size(),
            ),
            rows: Arc::clone(&bound_policy.output),
            shared: is_remote,
        }
    }
}

/// The plan of a job as text; reads the schema of the source and nothing else.
pub(crate) async fn explain_plan(run: &Run) -> Result<String> {
    let source = Source::find(&run.options.stores, &run.base, &run.job).await?;
    let Opened { input, bound_policy, public, .. } = run.open_source(&source).await?;
    let sink = run.sink()?;
    let logical = Anonymize::from_replaced(input.clone(), bound_policy.as_ref().clone())?.into_plan();
    let plan = DataFrame::new(run.context.state(), logical).create_physical_plan().await?;
    let survey =
        DataFrame::new(run.context.state(), survey_plan(&input, &bound_policy)?).create_physical_plan().await?;
    let target = run.write_target(&sink, &sink.at("data"), "", &bound_policy, run.engine.is_remote());
    // How many rows there are is not known yet.
    let parts = run.context.copied_config().target_partitions();
    let ordered = target.order.arrange_rows(AnonymizeExec::mark_in_part(Arc::clone(&plan))?, parts)?;
    let write = WriteExec::new(ordered, target, Uploads::default());
    let stages = run.engine.explain_stages(survey, Arc::new(write), &bound_policy, &run.context)?;
    let shown = stages.unwrap_or_else(|| displayable(plan.as_ref()).indent(false).to_string());
    let described = |what: &str, place: &Location| format!("{what}: {} ({})\n", place.name, place.service);
    let mut places: String = source.locations().map(|place| described("source", place)).collect();
    let public_places = public.iter().flat_map(|public| public.source.locations());
    places.extend(public_places.map(|place| described("public", place)));
    Ok(source.mask_text(places + &described("sink", &sink) + &shown))
}

/// A cluster that has lost an executor may have lost the results of a task: then the pass is repeated.
fn ensure_all_rows_reported(measures: &Groups, read: u64) -> Result<()> {
    let reported = measures.loss.rows() + measures.loss.suppressed();
    if reported == read {
        return Ok(());
    }
    Err(Error::retry(format!(
        "the cluster has returned {reported} of {read} rows, which can happen if an executor is lost; nothing was published, run \
         again"
    )))
}

#[cfg(test)]
mod tests {
    use super::super::tests::Lab;
    use super::*;
    use crate::error::ErrorKind;

    /// Rows that an executor took with it are missed, and the pass is repeated.
    #[test]
    fn rows_that_nobody_reports_are_a_reason_to_try_again() {
        let mut measures = Groups::new(1, 0);
        measures.loss.add_group(7, &[0.5]);
        measures.loss.add_suppressed(3);
        assert!(ensure_all_rows_reported(&measures, 10).is_ok());
        for read in [9, 11] {
            let error = ensure_all_rows_reported(&measures, read).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Retry);
            assert!(error.message().starts_with(&format!("the cluster has returned 10 of {read} rows")), "{error}");
        }
    }

    /// The files of a run say by what they were made, and nothing else.
    #[tokio::test]
    async fn files_are_annotated_with_their_run() {
        let lab = Lab::new().await;
        let run = lab.run("monday");
        let source = Source::find(&run.options.stores, &run.base, &run.job).await.unwrap();
        let opened = run.open_source(&source).await.unwrap();
        let sink = lab.sink();
        let target = run.write_target(&sink, &sink.at("data"), "monday", &opened.bound_policy, false);
        let noted: Vec<(&str, &str)> =
            target.metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let version = env!("CARGO_PKG_VERSION");
        let expected = [
            ("throng.version", version),
            ("throng.run", "monday"),
            ("throng.policy", run.policy.hash()),
            ("throng.k", "3"),
        ];
        assert_eq!(noted, expected);
        assert_eq!((target.folder.as_str(), target.shared), ("out/data", false));
    }

    /// Measures are those of the anonymising node, wherever it stands; a plan without one has none.
    #[tokio::test]
    async fn the_anonymising_node_is_found_below_others() {
        let lab = Lab::new().await;
        let run = lab.run("monday");
        let (frame, bound_policy) = run.inspect().await.unwrap();
        let scan = frame.clone().create_physical_plan().await.unwrap();
        assert!(AnonymizeExec::find_measures(&scan).is_none());
        let plain = AnonymizeExec::mark_in_part(Arc::clone(&scan)).unwrap();
        assert_eq!(
            displayable(plain.as_ref()).indent(false).to_string(),
            displayable(scan.as_ref()).indent(false).to_string()
        );
        let params = run.survey_input(frame.logical_plan(), Arc::clone(&bound_policy), &|_, _, _| {}).await.unwrap();
        assert_eq!(params.survey.rows, 60);
        let sink = lab.sink();
        let target = run.write_target(&sink, &sink.at("data"), "monday", &bound_policy, false);
        let (grouped, whole) = run.group_plan(frame.logical_plan().clone(), &params, target).await.unwrap();
        assert!(AnonymizeExec::find_measures(&grouped).is_none(), "nothing has run yet");
        let names: Vec<&str> = std::iter::successors(Some(&whole), |node| node.children().first().copied())
            .map(|node| node.name())
            .collect();
        let place = |wanted: &str| names.iter().position(|name| *name == wanted);
        assert_eq!(place("WriteExec"), Some(0), "{names:?}");
        assert!(place("AnonymizeExec").is_some_and(|at| at > 0), "{names:?}");
    }
}
