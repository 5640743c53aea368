//! Everything that is decided before pass 2: encoders, cells, method and rules, made from a bound policy and its survey.

use std::fmt;
use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::physical_plan::ExecutionPlan;

use super::labels::Labels;
use super::memory::cell_rows;
use crate::binding::BoundPolicy;
use crate::dependency::Dependencies;
use crate::encode::ColumnEncoder;
use crate::error::{Error, Result};
use crate::faults::Fault;
use crate::grouping::Method;
use crate::measure::workload::{self, Demand, Query};
use crate::measure::{Groups as Measures, Information, Workload};
use crate::methods::combined::Raising;
use crate::model::{Axis, Table};
use crate::permutation::Slices;
use crate::policy::{Form, Inference, presence_rule};
use crate::privacy::inference::HiddenFromReaders;
use crate::privacy::{Rules, is_within_bound};
use crate::secret::Purpose;
use crate::survey::{Survey, build_method, build_rules, collect_survey};

/// What every partition of pass 2 works by. Immutable.
pub(crate) struct AnonymizeParams {
    /// What happens to every column.
    pub bound_policy: Arc<BoundPolicy>,
    /// What the table looks like.
    pub survey: Survey,
    /// What the exchange knows the cells by.
    pub(crate) labels: Labels,
    /// One encoder per quasi-identifier.
    pub encoders: Vec<ColumnEncoder>,
    /// The axes of the encoders.
    pub axes: Arc<[Axis]>,
    /// How rows are grouped.
    pub method: Arc<dyn Method>,
    /// What every group must satisfy.
    pub rules: Rules,
    /// What is to be preserved between columns.
    pub dependencies: Arc<Dependencies>,
    /// Places of the columns that are published as they are and that a dependency names.
    pub plain: Vec<usize>,
    /// Queries whose answers are measured.
    pub queries: Vec<Query>,
    /// What stays together when values change places inside their group, as places in the input.
    pub slices: Slices,
    /// How little every group is generalised, in the form that permutes what is.
    pub combined: Option<Raising>,
}

/// Without the encoders: they hold values of the input, and plans are logged in their debug form.
impl fmt::Debug for AnonymizeParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut form = f.debug_struct("AnonymizeParams");
        form.field("bound_policy", &self.bound_policy.summary()).field("survey", &self.survey).finish_non_exhaustive()
    }
}

impl AnonymizeParams {
    /// Surveys the output of a plan whose columns are the quasi-identifiers, then the sensitive columns, for a query: one
    /// that sees its rows go by and cannot take them back.
    pub(crate) async fn survey_query(
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        bound_policy: Arc<BoundPolicy>,
    ) -> Result<Self> {
        let inference = bound_policy.policy.privacy.inference;
        if inference != Inference::Warn {
            return Err(Error::privacy(format!(
                "privacy.inference = \"{}\" needs the whole release, which a query does not see; run the job \
                 with `throng run`, or remove it",
                inference.as_str()
            )));
        }
        let limit = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(limit) => Some(limit),
            _ => None,
        };
        let cell_rows = cell_rows(&bound_policy.input, limit);
        let survey = collect_survey(plan, context, Arc::clone(&bound_policy), cell_rows).await?;
        Self::new(bound_policy, survey)
    }

    /// Creates the parameters from a survey and a bound policy.
    pub(crate) fn new(bound_policy: Arc<BoundPolicy>, survey: Survey) -> Result<Self> {
        let encoders = bound_policy
            .quasi
            .iter()
            .zip(&survey.stats)
            .map(|(column, stats)| ColumnEncoder::new(column, stats))
            .collect::<Result<Vec<_>>>()?;
        let axes: Arc<[Axis]> = encoders.iter().map(|encoder| encoder.axis().clone()).collect();
        let laid = bound_policy.dependencies();
        let mut frequencies = survey.frequencies.clone();
        frequencies.resize(encoders.len(), Vec::new());
        let dependencies = Arc::new(Dependencies::new(laid.list, &frequencies));
        let plain = laid.plain.into_iter().map(|(index, _)| index).collect();
        let slices = bound_policy.resolve_slices(&survey.slices);
        let method = build_method(&bound_policy, &survey.tuned, &dependencies, &slices);
        if let Some(reason) = method.too_much(&axes) {
            return Err(Error::job(format!("method.name: `{}` cannot run: {reason}", method.name())));
        }
        let rules = build_rules(&bound_policy, &slices);
        let presence = presence_rule(&bound_policy.policy.privacy).filter(|_| bound_policy.form() == Form::Combined);
        let people = bound_policy.policy.privacy.presence.as_ref().and_then(|rule| rule.people).unwrap_or(0);
        let combined = presence.map(|rule| Raising::new(rule.bounds).with_people(people as usize));
        let queries = bound_policy.policy.measures.queries.as_ref().map_or_else(Vec::new, |asked| {
            let demand = Demand {
                queries: asked.count as usize,
                dimensions: asked.dimensions as usize,
                selectivity: asked.selectivity,
                seed: asked.seed,
            };
            workload::draw_queries(&axes, &demand)
        });
        let labels = Labels::new(survey.tree.cell_count(), &mut bound_policy.key.rng(Purpose::CellOrder, 0))?;
        Ok(Self {
            bound_policy,
            survey,
            labels,
            encoders,
            axes,
            method,
            rules,
            dependencies,
            plain,
            queries,
            slices,
            combined,
        })
    }

    /// The rules that groups of a cell must meet: with `privacy.inference = "repair"`, also to a reader who knows the
    /// dependencies.
    pub(crate) fn rules_of(&self, cell: &Table) -> Rules {
        let mut rules = self.rules.clone();
        rules.k -= usize::from(Fault::SmallGroups.is_planted());
        if self.bound_policy.policy.privacy.inference == Inference::Repair
            && let Some(hidden) = HiddenFromReaders::new(&self.rules, cell, &self.dependencies.list)
        {
            rules.others.push(Arc::new(hidden));
        }
        rules
    }

    /// No groups yet, with room for everything that is measured.
    pub(crate) fn empty_measures(&self) -> Measures {
        let policy = &self.bound_policy.policy;
        let mut measures = Measures::new(self.axes.len(), self.bound_policy.sensitive.len());
        measures.protection = measures.protection.with_bound(self.range_diversity_bound());
        measures.published.hides_counts = self.hides_counts();
        measures.information = policy.measures.information.then(|| Information::new(self.axes.len()));
        measures.workload = (!self.queries.is_empty()).then(|| Workload::new(self.queries.len()));
        measures
    }
}

impl AnonymizeParams {
    /// The range diversity above which a row counts as unprotected.
    pub(crate) fn range_diversity_bound(&self) -> Option<f64> {
        let policy = &self.bound_policy.policy;
        let bounds = policy.privacy.range_diversity.iter().map(|rule| rule.p);
        policy.measures.unprotected.or(bounds.min_by(f64::total_cmp))
    }

    /// Whether even the number of rows of the source is a secret: among public rows, who is in the source is one.
    pub(crate) fn hides_counts(&self) -> bool {
        self.bound_policy.member.is_some()
    }

    /// Rows of the input, for whoever shows how far a run is; 0 where their number is a secret.
    pub(crate) fn shown_rows(&self) -> u64 {
        if self.hides_counts() { 0 } else { self.survey.rows }
    }

    /// Rows of the input that may be counted: those of the source, or of the public table where the others are a secret.
    pub(crate) fn countable_rows(&self) -> u64 {
        let survey = &self.survey;
        survey.members.map_or_else(|| survey.source_rows(), |members| survey.rows.saturating_sub(members))
    }

    /// Rejects a result that loses more in a group, or has suppressed more rows, than the policy allows.
    pub(crate) fn ensure_within_limits(&self, measures: &Measures) -> Result<()> {
        if let (Some(bound), Some(worst)) = (self.bound_policy.policy.privacy.max_loss, measures.loss.wgu())
            && !is_within_bound(worst, bound)
            && !Fault::AnyLoss.is_planted()
            && !Fault::LeftOverGroup.is_planted()
        {
            // Saying by how much would reveal the domain of the source.
            return Err(Error::privacy(format!(
                "a group loses more than privacy.max-loss = {bound} allows; raise it, or lower k"
            )));
        }
        let suppressed = measures.loss.suppressed();
        let rows = suppressed + measures.loss.rows();
        let share = suppressed as f64 / rows.max(1) as f64;
        let allowed = self.bound_policy.policy.privacy.max_suppression;
        if rows == 0 || measures.loss.rows() > 0 && share <= allowed {
            return Ok(());
        }
        if self.hides_counts() {
            return Err(Error::privacy(format!(
                "more rows are left out than privacy.max-suppression = {allowed} allows; relax a rule, or allow more \
                 suppression (the number is withheld under `presence`)"
            )));
        }
        let others = self.rules.others.iter().map(|rule| rule.record().to_string());
        let people = if self.bound_policy.person.is_some() { " people" } else { "" };
        let rules: Vec<String> = others.chain([format!("k = {}{people}", self.rules.k)]).collect();
        let (dropped, ungrouped) = (self.survey.dropped, suppressed.saturating_sub(self.survey.dropped));
        let percent = |rows_of: u64| rows_of as f64 * 100.0 / rows as f64;
        let mut why = Vec::new();
        if dropped > 0 {
            why.push(format!(
                "{dropped} of {rows} rows ({:.2} %) hold a null that `nulls` says to drop",
                percent(dropped)
            ));
        }
        if ungrouped > 0 {
            why.push(format!(
                "{ungrouped} of {rows} rows ({:.2} %) found no group that meets the rules ({})",
                percent(ungrouped),
                rules.join(", ")
            ));
        }
        let relax = match ungrouped {
            0 => "set nulls = \"category\"",
            _ => "relax a rule (a lower k or l, a higher max-loss or p)",
        };
        Err(Error::privacy(format!(
            "{}, and privacy.max-suppression allows {:.2} %; {relax}, or allow more suppression",
            why.join(", "),
            allowed * 100.0
        )))
    }
}
