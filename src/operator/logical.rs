//! The logical node: what `EXPLAIN` shows and the optimiser sees.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::{DFSchema, DFSchemaRef, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNodeCore};

use super::{AnonymizeParams, PolicyRegistry};
use crate::binding::BoundPolicy;
use crate::error::Error;
use crate::policy::Policy;
use crate::recode::identifiers::replace_with_key;
use crate::recode::replace_identifiers;

/// Anonymises its input by a policy.
///
/// It has two inputs: the rows, and the columns that the survey reads of them. When the survey is known already, only
/// the rows.
#[derive(Debug, Clone)]
pub(crate) struct Anonymize {
    input: LogicalPlan,
    survey: Option<LogicalPlan>,
    bound_policy: Arc<BoundPolicy>,
    params: Option<Arc<AnonymizeParams>>,
    /// Whether rows are anonymised a window at a time, as the policy says.
    windowed: bool,
    schema: DFSchemaRef,
}

impl Anonymize {
    /// Anonymises the rows of `input`, whose identifiers it replaces; they are surveyed when the plan runs. Every node
    /// has a key of its own, unless the policy fixes it.
    pub(crate) fn new(input: LogicalPlan, policy: Arc<Policy>) -> Result<Self> {
        let (input, bound_policy) = replace_identifiers(input, policy).map_err(Error::into_datafusion)?;
        Self::from_replaced(input, bound_policy)
    }

    /// The same for a query, with the key of a session if there is one: a window at a time if the policy says so.
    pub(crate) fn for_query(input: LogicalPlan, policy: Arc<Policy>, session: Option<&PolicyRegistry>) -> Result<Self> {
        let key = match session {
            Some(session) => session.session_key(&policy),
            None => policy.new_run_key(),
        };
        let key = key.map_err(Error::into_datafusion)?;
        let (input, bound_policy) = replace_with_key(input, policy, key).map_err(Error::into_datafusion)?;
        if bound_policy.policy.window.is_none() {
            return Self::from_replaced(input, bound_policy);
        }
        let node = Self::from_parts(input, None, bound_policy, None)?;
        Ok(Self { windowed: true, ..node })
    }

    /// Anonymises the rows of `input`, whose identifiers have been replaced; they are surveyed when the plan runs.
    pub(crate) fn from_replaced(input: LogicalPlan, bound_policy: BoundPolicy) -> Result<Self> {
        let survey = survey_plan(&input, &bound_policy)?;
        Self::from_parts(input, Some(survey), bound_policy, None)
    }

    /// Anonymises the rows of `input`, whose identifiers have been replaced and which have been surveyed.
    pub(crate) fn surveyed(input: LogicalPlan, params: Arc<AnonymizeParams>) -> Result<Self> {
        let bound_policy = params.bound_policy.as_ref().clone();
        Self::from_parts(input, None, bound_policy, Some(params))
    }

    fn from_parts(
        input: LogicalPlan,
        survey: Option<LogicalPlan>,
        bound_policy: BoundPolicy,
        params: Option<Arc<AnonymizeParams>>,
    ) -> Result<Self> {
        bound_policy.ensure_public_rows_present().map_err(Error::into_datafusion)?;
        let schema = Arc::new(DFSchema::try_from(bound_policy.output.as_ref().clone())?);
        Ok(Self { input, survey, bound_policy: Arc::new(bound_policy), params, windowed: false, schema })
    }

    /// What happens to every column.
    pub(crate) fn bound_policy(&self) -> &Arc<BoundPolicy> {
        &self.bound_policy
    }

    /// The parameters, when the survey is known.
    pub(crate) fn params(&self) -> Option<&Arc<AnonymizeParams>> {
        self.params.as_ref()
    }

    /// Whether rows are anonymised a window at a time.
    pub(crate) fn is_windowed(&self) -> bool {
        self.windowed
    }

    /// Prunes the input to the columns that the node needs, so that dropped identifiers are not even read.
    pub(crate) fn without_unread_columns(&self) -> Result<Self> {
        let columns =
            self.needed_columns().into_iter().map(|index| Expr::from(self.input.schema().qualified_field(index)));
        let input = LogicalPlanBuilder::from(self.input.clone()).project(columns)?.build()?;
        self.with_exprs_and_inputs(Vec::new(), std::iter::once(input).chain(self.survey.clone()).collect())
    }

    /// Returns the node as a plan.
    pub(crate) fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(datafusion::logical_expr::Extension { node: Arc::new(self) })
    }

    /// Input columns that the node needs: everything but dropped identifiers, and the one that identifies people. What
    /// the parents need of its output makes no difference, because fewer columns would mean other groups.
    fn needed_columns(&self) -> Vec<usize> {
        let subject =
            self.bound_policy.policy.window.iter().filter(|_| self.windowed).flat_map(|window| &window.subject);
        let subject: Vec<usize> = subject.filter_map(|name| self.bound_policy.input.index_of(name).ok()).collect();
        let reads = |index: &usize| self.bound_policy.reads_column(*index) || subject.contains(index);
        (0..self.bound_policy.roles.len()).filter(reads).collect()
    }
}

/// The columns that the survey reads: quasi-identifiers, then sensitive columns, then who is a member if that is asked.
pub(crate) fn survey_plan(input: &LogicalPlan, bound_policy: &BoundPolicy) -> Result<LogicalPlan> {
    let indices =
        bound_policy.quasi.iter().map(|column| column.index).chain(bound_policy.sensitive.iter().map(|c| c.index));
    let indices = indices.chain(bound_policy.member);
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
        let mut needed = vec![self.needed_columns()];
        needed.extend(self.survey.as_ref().map(|survey| (0..survey.schema().fields().len()).collect()));
        Some(needed)
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let windows = if self.windowed { ", in windows" } else { "" };
        write!(f, "Anonymize: {}{windows}", self.bound_policy.summary())
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        if !exprs.is_empty() || inputs.len() != self.inputs().len() {
            return plan_err!("Anonymize takes no expressions and {} inputs", self.inputs().len());
        }
        let mut inputs = inputs.into_iter();
        let Some(input) = inputs.next() else { return plan_err!("Anonymize needs an input") };
        let survey = inputs.next();
        let schema = Arc::new(input.schema().as_arrow().clone());
        if schema == self.bound_policy.input {
            return Ok(Self { input, survey, ..self.clone() });
        }
        // The optimiser has dropped identifiers below, so columns have moved.
        let known = &self.bound_policy;
        let bound_policy = BoundPolicy::bind_schema(Arc::clone(&known.policy), schema, known.key.clone());
        let bound_policy = bound_policy.map_err(Error::into_datafusion)?;
        let params = match &self.params {
            Some(known) => Some(Arc::new(
                AnonymizeParams::new(Arc::new(bound_policy.clone()), known.survey.clone())
                    .map_err(Error::into_datafusion)?,
            )),
            None => None,
        };
        let node = Self::from_parts(input, survey, bound_policy, params)?;
        Ok(Self { windowed: self.windowed, ..node })
    }
}

impl PartialEq for Anonymize {
    fn eq(&self, other: &Self) -> bool {
        self.bound_policy.policy.hash == other.bound_policy.policy.hash
            && self.input == other.input
            && self.survey == other.survey
            && self.params.is_some() == other.params.is_some()
            && self.windowed == other.windowed
            && self.bound_policy.policy.window == other.bound_policy.policy.window
    }
}

impl Eq for Anonymize {}

impl Hash for Anonymize {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bound_policy.policy.hash.hash(state);
        self.input.hash(state);
        self.survey.hash(state);
    }
}

impl PartialOrd for Anonymize {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.bound_policy.policy.hash.cmp(&other.bound_policy.policy.hash) {
            Ordering::Equal => self.input.partial_cmp(&other.input),
            order => Some(order),
        }
    }
}
