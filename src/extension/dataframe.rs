//! Anonymising inside another program: DataFrames, and one call that registers everything with a session.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::TableFunction;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{DataFrame, SessionContext};

use super::sql::AnonymizeRelation;
use super::table::AnonymizeFunction;
use crate::error::Error;
use crate::extension::{AnonymizeQueryPlanner, AnonymizedTable};
use crate::operator::{Anonymize, AnonymizeParams, PolicyRegistry, survey_plan};
use crate::policy::Policy;
use crate::recode::identifiers::replace_with_key;
use crate::source::scan_statistics::drop_column_statistics;

/// Adds `anonymize` to DataFrames. The session must know how to plan it: see [`register`].
#[async_trait]
pub trait AnonymizeExt {
    /// Anonymises the rows by a policy. Nothing is read before the result is. In a session prepared by [`register`],
    /// the same rows under the same policy give the same groups.
    ///
    /// ```
    /// use datafusion::prelude::{SessionContext, col};
    /// use throng::{AnonymizeExt, Column, Policy};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let context = SessionContext::new();
    /// let people = context.sql("SELECT value AS age, value % 7 AS ward FROM generate_series(20, 79)").await?;
    /// let policy = Policy::builder(5).column("age", Column::quasi()).column("ward", Column::sensitive()).build()?;
    /// // Filters above it do not reach below: the groups are those of all rows.
    /// let ward = people.anonymize(&policy)?.filter(col("ward").eq(datafusion::prelude::lit(3)))?;
    /// assert_eq!(ward.count().await?, 8);
    /// # Ok(())
    /// # }
    /// ```
    fn anonymize(self, policy: &Policy) -> Result<DataFrame>;

    /// Surveys the rows now and anonymises them later, by a plan that holds the survey. Such a plan can be sent to
    /// other machines: see [`AnonymizeCodec`](crate::planning::AnonymizeCodec).
    ///
    /// ```
    /// use datafusion::prelude::SessionContext;
    /// use datafusion_proto::bytes::logical_plan_to_bytes_with_extension_codec;
    /// use throng::planning::AnonymizeCodec;
    /// use throng::{AnonymizeExt, Column, Policy, register};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let context = SessionContext::new();
    /// register(&context)?;
    /// let people = context.sql("SELECT * FROM (VALUES (20), (21), (30), (31)) AS people (age)").await?;
    /// let policy = Policy::builder(2).column("age", Column::quasi()).build()?;
    /// let surveyed = people.anonymize_surveyed(&policy).await?;
    /// let bytes = logical_plan_to_bytes_with_extension_codec(surveyed.logical_plan(), &AnonymizeCodec)?;
    /// assert!(!bytes.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    async fn anonymize_surveyed(self, policy: &Policy) -> Result<DataFrame>;
}

#[async_trait]
impl AnonymizeExt for DataFrame {
    fn anonymize(self, policy: &Policy) -> Result<DataFrame> {
        let (state, plan) = self.into_parts();
        let policy = Arc::new(policy.clone());
        let session = state.config().get_extension::<PolicyRegistry>();
        let node = Anonymize::for_query(plan, policy, session.as_deref())?;
        Ok(DataFrame::new(state, AnonymizedTable::from(node).into_plan()?))
    }

    async fn anonymize_surveyed(self, policy: &Policy) -> Result<DataFrame> {
        let context = Arc::new(self.task_ctx());
        let (state, rows) = self.into_parts();
        let key = match state.config().get_extension::<PolicyRegistry>() {
            Some(session) => session.session_key(policy),
            None => policy.new_run_key(),
        };
        let key = key.map_err(Error::into_datafusion)?;
        let (rows, bound_policy) =
            replace_with_key(rows, Arc::new(policy.clone()), key).map_err(Error::into_datafusion)?;
        bound_policy.ensure_public_rows_present().map_err(Error::into_datafusion)?;
        let columns = survey_plan(&rows, &bound_policy)?;
        let plan = drop_column_statistics(DataFrame::new(state.clone(), columns).create_physical_plan().await?)?;
        let params = AnonymizeParams::survey_query(plan, context, Arc::new(bound_policy))
            .await
            .map_err(Error::into_datafusion)?;
        Ok(DataFrame::new(state, Anonymize::surveyed(rows, Arc::new(params))?.into_plan()))
    }
}

/// Registers anonymisation with a session, including `SELECT * FROM anonymize(...)` in SQL.
///
/// Queries can name the policies that [`register_policy`](crate::register_policy) adds, and open no files.
///
/// The session keeps its query planner, whichever that is, and may be given another one afterwards: anonymised rows are a
/// table ([`AnonymizedTable`]). Only plans that were surveyed before they are sent elsewhere hold a node of their own, and
/// that one is planned in front of the planner that the session has.
///
/// ```
/// use datafusion::prelude::SessionContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let context = SessionContext::new();
/// throng::register(&context)?;
/// let query = "SELECT min(age.min) AS youngest FROM anonymize(
///                  (SELECT value AS age, value % 7 AS ward FROM generate_series(20, 79)),
///                  k => 5, quasi => ['age'], sensitive => ['ward'])";
/// assert_eq!(context.sql(query).await?.count().await?, 1);
/// # Ok(())
/// # }
/// ```
pub fn register(context: &SessionContext) -> Result<()> {
    let state = context.state_ref();
    let mut state = state.write();
    *state = SessionStateBuilder::new_from_existing(state.clone()).with_anonymize().build();
    Ok(())
}

/// Adds anonymisation to a session that is being built.
///
/// ```
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion::prelude::SessionContext;
/// use throng::planning::PolicyRegistry;
/// use throng::AnonymizeSessionExt;
///
/// let state = SessionStateBuilder::new().with_default_features().with_anonymize().build();
/// let context = SessionContext::new_with_state(state);
/// assert!(PolicyRegistry::of_session(&context).is_ok());
/// ```
pub trait AnonymizeSessionExt {
    /// Registers `anonymize` with the session, as [`register`] does.
    fn with_anonymize(self) -> Self;
}

impl AnonymizeSessionExt for SessionStateBuilder {
    fn with_anonymize(mut self) -> Self {
        let config = self.config().get_or_insert_default();
        if config.get_extension::<PolicyRegistry>().is_some() {
            return self;
        }
        let policies = Arc::new(PolicyRegistry::default());
        config.set_extension(Arc::clone(&policies));
        let planner = AnonymizeQueryPlanner::wrapping(self.query_planner().take());
        let function =
            TableFunction::new("anonymize".to_owned(), Arc::new(AnonymizeFunction::new(Arc::clone(&policies))));
        let mut functions = self.table_functions().take().unwrap_or_default();
        functions.insert(function.name().to_owned(), Arc::new(function));
        let mut relations = self.relation_planners().take().unwrap_or_default();
        relations.insert(0, Arc::new(AnonymizeRelation::new(policies)));
        self.with_query_planner(Arc::new(planner)).with_table_functions(functions).with_relation_planners(relations)
    }
}
