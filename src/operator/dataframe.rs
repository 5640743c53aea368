//! Anonymising inside somebody else's program: DataFrames, and one call that teaches a session everything.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{DataFrame, SessionContext};

use super::sql::AnonymizeRelation;
use super::{Anonymize, AnonymizeQueryPlanner, Blueprint, survey_plan};
use crate::error::Error;
use crate::job::{Policy, Treatment};

/// Adds `anonymize` to DataFrames. The session must know how to plan it: see [`register`].
#[async_trait]
pub trait AnonymizeExt {
    /// Anonymises the rows by a policy. Nothing is read before the result is.
    fn anonymize(self, policy: &Policy) -> Result<DataFrame>;

    /// Surveys the rows now and anonymises them later, by a plan that holds the survey. Such a plan can be sent to
    /// other machines: see [`AnonymizeCodec`](super::AnonymizeCodec).
    async fn anonymize_surveyed(self, policy: &Policy) -> Result<DataFrame>;
}

#[async_trait]
impl AnonymizeExt for DataFrame {
    fn anonymize(self, policy: &Policy) -> Result<DataFrame> {
        let (state, plan) = self.into_parts();
        Ok(DataFrame::new(state, Anonymize::new(plan, Arc::new(policy.clone()))?.into_plan()))
    }

    async fn anonymize_surveyed(self, policy: &Policy) -> Result<DataFrame> {
        let context = Arc::new(self.task_ctx());
        let (state, rows) = self.into_parts();
        let schema = Arc::new(rows.schema().as_arrow().clone());
        let treatment = Treatment::new(Arc::new(policy.clone()), schema).map_err(Error::into_datafusion)?;
        let columns = survey_plan(&rows, &treatment)?;
        let plan = DataFrame::new(state.clone(), columns).create_physical_plan().await?;
        let blueprint = Blueprint::survey(plan, context, Arc::new(treatment)).await.map_err(Error::into_datafusion)?;
        Ok(DataFrame::new(state, Anonymize::surveyed(rows, Arc::new(blueprint))?.into_plan()))
    }
}

/// Teaches a session to plan anonymisation and to understand `SELECT * FROM anonymize(...)`.
///
/// It replaces the session's query planner. A host that has one of its own adds
/// [`AnonymizePlanner`](super::AnonymizePlanner) to it instead, and registers [`AnonymizeRelation`] for SQL.
pub fn register(context: &SessionContext) -> Result<()> {
    let state = context.state_ref();
    let mut state = state.write();
    *state = SessionStateBuilder::new_from_existing(state.clone())
        .with_query_planner(Arc::new(AnonymizeQueryPlanner))
        .build();
    drop(state);
    context.register_relation_planner(Arc::new(AnonymizeRelation))
}
