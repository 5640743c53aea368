//! Everything that is decided before pass 2: coders, cells, method and rules, made from a treatment and its survey.

use std::fmt;
use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::physical_plan::ExecutionPlan;

use super::labels::Labels;
use super::memory::cell_rows;
use crate::domain::Axis;
use crate::encode::Coder;
use crate::error::{Error, Result};
use crate::job::{Form, Inference, Treatment, presence_rule};
use crate::measure::dependency::Dependencies;
use crate::measure::workload::{self, Demand, Query};
use crate::measure::{Groups as Measures, Information, Workload};
use crate::method::Method;
use crate::method::combined::Raising;
use crate::permutation::Slices;
use crate::privacy::{Rules, within};
use crate::survey::{Survey, method, rules, survey};

/// What every partition of pass 2 works by. Immutable.
pub struct Blueprint {
    /// What happens to every column.
    pub treatment: Arc<Treatment>,
    /// What the table looks like.
    pub survey: Survey,
    /// What the exchange knows the cells by.
    pub(super) labels: Labels,
    /// One coder per quasi-identifier.
    pub coders: Vec<Coder>,
    /// The axes of the coders.
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

/// Without the coders: they hold values of the input, and plans are logged in their debug form.
impl fmt::Debug for Blueprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut form = f.debug_struct("Blueprint");
        form.field("treatment", &self.treatment.summary()).field("survey", &self.survey).finish_non_exhaustive()
    }
}

impl Blueprint {
    /// Surveys the output of a plan whose columns are the quasi-identifiers, then the sensitive columns, for a query: one
    /// that sees its rows go by and cannot take them back.
    pub(super) async fn survey(
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        treatment: Arc<Treatment>,
    ) -> Result<Self> {
        let inference = treatment.policy.privacy.inference;
        if inference != Inference::Warn {
            return Err(Error::Privacy(format!(
                "privacy.inference = \"{}\" needs a look at the whole release, which a query does not get; run the job \
                 with `throng run`, or remove it",
                inference.as_str()
            )));
        }
        let limit = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(limit) => Some(limit),
            _ => None,
        };
        let cell_rows = cell_rows(&treatment.input, limit);
        let survey = survey(plan, context, Arc::clone(&treatment), cell_rows).await?;
        Self::new(treatment, survey)
    }

    /// Lays a survey over a treatment.
    pub fn new(treatment: Arc<Treatment>, survey: Survey) -> Result<Self> {
        let coders = treatment
            .quasi
            .iter()
            .zip(&survey.facts)
            .map(|(column, facts)| Coder::new(column, facts))
            .collect::<Result<Vec<_>>>()?;
        let axes: Arc<[Axis]> = coders.iter().map(|coder| coder.axis().clone()).collect();
        let laid = treatment.dependencies();
        let mut frequencies = survey.frequencies.clone();
        frequencies.resize(coders.len(), Vec::new());
        let dependencies = Arc::new(Dependencies::new(laid.list, &frequencies));
        let plain = laid.plain.into_iter().map(|(index, _)| index).collect();
        let slices = treatment.slices(&survey.slices);
        let method = method(&treatment, &survey.tuned, &dependencies, &slices);
        if let Some(reason) = method.too_much(&axes) {
            return Err(Error::Job(format!("method.name: `{}` gives up: {reason}", method.name())));
        }
        let rules = rules(&treatment, &slices);
        let presence = presence_rule(&treatment.policy.privacy).filter(|_| treatment.form() == Form::Combined);
        let combined = presence.map(|rule| Raising::new(rule.bounds));
        let asked = treatment.policy.measures.queries();
        // Nobody asks the usual queries of a form that publishes values as they are.
        let queries = if treatment.policy.measures.queries.is_some() || treatment.form() == Form::Generalise {
            let demand = Demand {
                queries: asked.count as usize,
                dimensions: asked.dimensions as usize,
                selectivity: asked.selectivity,
                seed: asked.seed,
            };
            workload::draw(&axes, &demand)
        } else {
            Vec::new()
        };
        let labels = Labels::new(survey.tree.cells())?;
        Ok(Self {
            treatment,
            survey,
            labels,
            coders,
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

    /// No groups yet, with room for everything that is measured.
    pub fn measures(&self) -> Measures {
        let policy = &self.treatment.policy;
        let mut measures = Measures::new(self.axes.len(), self.treatment.sensitive.len());
        let bounds = policy.privacy.range_diversity.iter().map(|rule| rule.p);
        let bound = policy.measures.unprotected.or(bounds.min_by(f64::total_cmp));
        measures.protection = measures.protection.bounded(bound);
        measures.information = policy.measures.information.then(|| Information::new(self.axes.len()));
        measures.workload = (!self.queries.is_empty()).then(|| Workload::new(self.queries.len()));
        measures
    }
}

impl Blueprint {
    /// Refuses a result that loses more in a group, or has suppressed more rows, than the policy allows.
    pub(crate) fn refuse(&self, measures: &Measures) -> Result<()> {
        if let (Some(bound), Some(worst)) = (self.treatment.policy.privacy.max_loss, measures.loss.wgu())
            && !within(worst, bound)
        {
            return Err(Error::Privacy(format!(
                "the worst group loses {worst:.4}, more than privacy.max-loss = {bound} allows; raise it, or lower k"
            )));
        }
        let suppressed = measures.loss.suppressed();
        let rows = suppressed + measures.loss.rows();
        let share = suppressed as f64 / rows.max(1) as f64;
        let allowed = self.treatment.policy.privacy.max_suppression;
        if rows == 0 || measures.loss.rows() > 0 && share <= allowed {
            return Ok(());
        }
        let others = self.rules.others.iter().map(|rule| rule.name());
        let people = if self.treatment.person.is_some() { " people" } else { "" };
        let rules: Vec<String> = others.chain([format!("k = {}{people}", self.rules.k)]).collect();
        let (dropped, homeless) = (self.survey.dropped, suppressed.saturating_sub(self.survey.dropped));
        let percent = |rows_of: u64| rows_of as f64 * 100.0 / rows as f64;
        let mut why = Vec::new();
        if dropped > 0 {
            why.push(format!(
                "{dropped} of {rows} rows ({:.2} %) hold a null that `nulls` says to drop",
                percent(dropped)
            ));
        }
        if homeless > 0 {
            why.push(format!(
                "{homeless} of {rows} rows ({:.2} %) fit into no group that meets the rules ({})",
                percent(homeless),
                rules.join(", ")
            ));
        }
        let relax = match homeless {
            0 => "set nulls = \"category\"",
            _ => "relax a rule (a lower k or l, a higher max-loss or p)",
        };
        Err(Error::Privacy(format!(
            "{}, and privacy.max-suppression allows {:.2} %; {relax}, or allow more suppression",
            why.join(", "),
            allowed * 100.0
        )))
    }
}
