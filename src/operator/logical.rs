//! The logical node: what `EXPLAIN` shows and the optimiser sees.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::{DFSchema, DFSchemaRef, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNodeCore};

use super::{Blueprint, PolicyRegistry};
use crate::error::Error;
use crate::policy::Policy;
use crate::recode::identifiers::treat_with_key;
use crate::recode::treat;
use crate::treatment::Treatment;

/// Anonymises its input by a policy.
///
/// It has two inputs: the rows, and the columns that the survey reads of them. When the survey is known already, only
/// the rows.
#[derive(Debug, Clone)]
pub struct Anonymize {
    input: LogicalPlan,
    survey: Option<LogicalPlan>,
    treatment: Arc<Treatment>,
    blueprint: Option<Arc<Blueprint>>,
    schema: DFSchemaRef,
}

impl Anonymize {
    /// Anonymises the rows of `input`, whose identifiers it replaces; they are surveyed when the plan runs. Every node
    /// has a key of its own, unless the policy fixes it.
    pub fn new(input: LogicalPlan, policy: Arc<Policy>) -> Result<Self> {
        let (input, treatment) = treat(input, policy).map_err(Error::into_datafusion)?;
        Self::treated(input, treatment)
    }

    /// The same with the key of a session.
    pub(crate) fn in_session(input: LogicalPlan, policy: Arc<Policy>, session: &PolicyRegistry) -> Result<Self> {
        let key = session.session_key(&policy).map_err(Error::into_datafusion)?;
        let (input, treatment) = treat_with_key(input, policy, key).map_err(Error::into_datafusion)?;
        Self::treated(input, treatment)
    }

    /// Anonymises the rows of `input`, whose identifiers have been replaced; they are surveyed when the plan runs.
    pub(crate) fn treated(input: LogicalPlan, treatment: Treatment) -> Result<Self> {
        let survey = survey_plan(&input, &treatment)?;
        Self::with(input, Some(survey), treatment, None)
    }

    /// Anonymises the rows of `input`, whose identifiers have been replaced and which have been surveyed.
    pub(crate) fn surveyed(input: LogicalPlan, blueprint: Arc<Blueprint>) -> Result<Self> {
        let treatment = blueprint.treatment.as_ref().clone();
        Self::with(input, None, treatment, Some(blueprint))
    }

    fn with(
        input: LogicalPlan,
        survey: Option<LogicalPlan>,
        treatment: Treatment,
        blueprint: Option<Arc<Blueprint>>,
    ) -> Result<Self> {
        treatment.refuse_alone().map_err(Error::into_datafusion)?;
        let schema = Arc::new(DFSchema::try_from(treatment.output.as_ref().clone())?);
        Ok(Self { input, survey, treatment: Arc::new(treatment), blueprint, schema })
    }

    /// What happens to every column.
    pub fn treatment(&self) -> &Arc<Treatment> {
        &self.treatment
    }

    /// The blueprint, when the survey is known.
    pub fn blueprint(&self) -> Option<&Arc<Blueprint>> {
        self.blueprint.as_ref()
    }

    /// The same node above only those columns that it needs, so that dropped identifiers are not even read.
    pub(super) fn without_unread_columns(&self) -> Result<Self> {
        let columns = self.needed().into_iter().map(|index| Expr::from(self.input.schema().qualified_field(index)));
        let input = LogicalPlanBuilder::from(self.input.clone()).project(columns)?.build()?;
        self.with_exprs_and_inputs(Vec::new(), std::iter::once(input).chain(self.survey.clone()).collect())
    }

    /// The node as a plan.
    pub fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(datafusion::logical_expr::Extension { node: Arc::new(self) })
    }

    /// Input columns that the node needs: everything but dropped identifiers, and the one that tells people apart. What
    /// the parents need of its output makes no difference, because fewer columns would mean other groups.
    fn needed(&self) -> Vec<usize> {
        (0..self.treatment.roles.len()).filter(|index| self.treatment.reads(*index)).collect()
    }
}

/// The columns that the survey reads: quasi-identifiers, then sensitive columns, then who is a member if that is asked.
pub(crate) fn survey_plan(input: &LogicalPlan, treatment: &Treatment) -> Result<LogicalPlan> {
    let indices = treatment.quasi.iter().map(|column| column.index).chain(treatment.sensitive.iter().map(|c| c.index));
    let indices = indices.chain(treatment.member);
    let columns = indices.map(|index| Expr::from(input.schema().qualified_field(index)));
    LogicalPlanBuilder::from(input.clone()).project(columns)?.build()
}

impl UserDefinedLogicalNodeCore for Anonymize {
    fn name(&self) -> &str {
        "Anonymize"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        std::iter::once(&self.input).chain(&self.survey).collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn necessary_children_exprs(&self, _output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let mut needed = vec![self.needed()];
        needed.extend(self.survey.as_ref().map(|survey| (0..survey.schema().fields().len()).collect()));
        Some(needed)
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Anonymize: {}", self.treatment.summary())
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        if !exprs.is_empty() || inputs.len() != self.inputs().len() {
            return plan_err!("Anonymize takes no expressions and {} inputs", self.inputs().len());
        }
        let mut inputs = inputs.into_iter();
        let Some(input) = inputs.next() else { return plan_err!("Anonymize needs an input") };
        let survey = inputs.next();
        let schema = Arc::new(input.schema().as_arrow().clone());
        if schema == self.treatment.input {
            return Ok(Self { input, survey, ..self.clone() });
        }
        // The optimiser has dropped identifiers below, so columns have moved.
        let known = &self.treatment;
        let treatment = Treatment::resolve(Arc::clone(&known.policy), schema, known.key.clone());
        let treatment = treatment.map_err(Error::into_datafusion)?;
        let blueprint = match &self.blueprint {
            Some(known) => Some(Arc::new(
                Blueprint::new(Arc::new(treatment.clone()), known.survey.clone()).map_err(Error::into_datafusion)?,
            )),
            None => None,
        };
        Self::with(input, survey, treatment, blueprint)
    }
}

impl PartialEq for Anonymize {
    fn eq(&self, other: &Self) -> bool {
        self.treatment.policy.hash == other.treatment.policy.hash
            && self.input == other.input
            && self.survey == other.survey
            && self.blueprint.is_some() == other.blueprint.is_some()
    }
}

impl Eq for Anonymize {}

impl Hash for Anonymize {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.treatment.policy.hash.hash(state);
        self.input.hash(state);
        self.survey.hash(state);
    }
}

impl PartialOrd for Anonymize {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.treatment.policy.hash.cmp(&other.treatment.policy.hash) {
            Ordering::Equal => self.input.partial_cmp(&other.input),
            order => Some(order),
        }
    }
}
