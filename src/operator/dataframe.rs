//! Anonymising inside somebody else's program: DataFrames, and one call that teaches a session everything.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{DataFrame, SessionContext};

use super::sql::AnonymizeRelation;
use super::{Anonymize, AnonymizeQueryPlanner};
use crate::job::Policy;

/// Adds `anonymize` to DataFrames. The session must know how to plan it: see [`register`].
pub trait AnonymizeExt {
    /// Anonymises the rows by a policy. Nothing is read before the result is.
    fn anonymize(self, policy: &Policy) -> Result<DataFrame>;
}

impl AnonymizeExt for DataFrame {
    fn anonymize(self, policy: &Policy) -> Result<DataFrame> {
        let (state, plan) = self.into_parts();
        Ok(DataFrame::new(state, Anonymize::new(plan, Arc::new(policy.clone()))?.into_plan()))
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
