//! The public table of a job with `privacy.presence`: its rows beside those of the source, and whether everybody of the
//! source is in it.

use std::path::Path;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, ident, lit};
use datafusion::prelude::{DataFrame, SessionContext};

use super::Source;
use crate::binding::{BoundPolicy, MEMBER_COLUMN};
use crate::error::{Error, Result};
use crate::policy::{Presence, Role};
use crate::storage::{StoreOptions, Stores};

/// A public table that was found and opened.
pub(crate) struct Public {
    /// Its files.
    pub(crate) source: Source,
    plan: LogicalPlan,
    schema: SchemaRef,
}

impl Public {
    /// Opens the public table of a rule.
    pub(crate) async fn open_public(
        stores: &Stores,
        base: &Path,
        context: &SessionContext,
        url: &str,
        options: &StoreOptions,
    ) -> Result<Self> {
        let about = |error: Error| error.context("privacy.presence.public");
        let source = Source::with_options(stores, base, url, options).await.map_err(about)?;
        let (plan, schema) = source.scan(context).await.map_err(about)?;
        Ok(Self { source, plan, schema })
    }

    /// The rows as a table.
    pub(crate) fn frame(&self, context: &SessionContext) -> DataFrame {
        DataFrame::new(context.state(), self.plan.clone())
    }

    /// The quasi-identifiers of the public table as the source has them, by name.
    pub(crate) fn quasi_exprs(&self, columns: &[(String, DataType)]) -> Result<Vec<Expr>> {
        columns.iter().map(|(name, data_type)| self.column_expr(name, data_type)).collect()
    }

    fn column_expr(&self, name: &str, data_type: &DataType) -> Result<Expr> {
        let Ok(field) = self.schema.field_with_name(name) else {
            return Err(Error::input(format!(
                "the public table has no column `{name}`, which is a quasi-identifier; privacy.presence.public needs all \
                 of them under the same names"
            )));
        };
        let column = ident(name);
        Ok(if field.data_type() == data_type { column } else { cast(column, data_type.clone()).alias(name) })
    }

    /// Rejects a release that would publish a column of the public table unchanged: whoever holds both tables finds its
    /// people by it, whatever is generalised beside it.
    pub(crate) fn ensure_nothing_shared(
        &self,
        input: &LogicalPlan,
        bound_policy: &BoundPolicy,
        rule: &Presence,
    ) -> Result<()> {
        let as_it_is = input.schema().fields().iter().zip(&bound_policy.roles).filter(|(field, role)| {
            // A pseudonym or a constant in its place is not the column.
            let replaced = bound_policy
                .policy
                .columns
                .get(field.name())
                .is_some_and(|column| column.identifier_action().is_some());
            matches!(role, Role::Kept | Role::Sensitive)
                && !replaced
                && (self.schema.field_with_name(field.name()).is_ok() || rule.key.contains(field.name()))
        });
        let shared: Vec<String> = as_it_is.map(|(field, _)| format!("`{}`", field.name())).collect();
        if shared.is_empty() {
            return Ok(());
        }
        Err(Error::job(format!(
            "privacy.presence: the public table has columns that the release publishes unchanged ({}), which reveals who is \
             in the source; give them the role quasi or identifier, or take a public table without them",
            shared.join(", ")
        )))
    }

    /// Rows of the source and of the public table together: the quasi-identifiers of both, everything else null for the
    /// public, and a column that says which are of the source.
    pub(crate) fn union_with(&self, input: &LogicalPlan, bound_policy: &BoundPolicy) -> Result<LogicalPlan> {
        let mut of_source: Vec<Expr> = Vec::new();
        let mut of_public: Vec<Expr> = Vec::new();
        for ((qualifier, field), role) in input.schema().iter().zip(&bound_policy.roles) {
            let name = field.name();
            of_source.push(Expr::from((qualifier, field)).alias(name));
            of_public.push(if *role == Role::Quasi {
                self.column_expr(name, field.data_type())?.alias(name)
            } else {
                lit(ScalarValue::try_from(field.data_type())?).alias(name)
            });
        }
        of_source.push(lit(true).alias(MEMBER_COLUMN));
        of_public.push(lit(false).alias(MEMBER_COLUMN));
        let public = LogicalPlanBuilder::from(self.plan.clone()).project(of_public)?.build()?;
        Ok(LogicalPlanBuilder::from(input.clone()).project(of_source)?.union(public)?.build()?)
    }

    /// Rejects a source with people who are not in the public table, and a public table with people who are in it twice,
    /// if the rule names a key for them. Without one, every cell counts the quasi-identifiers, and rows that look
    /// like doubles are worth a warning.
    pub(crate) async fn ensure_public_contains_source(
        &self,
        source: &DataFrame,
        rule: &Presence,
        bound_policy: &BoundPolicy,
    ) -> Result<()> {
        if rule.key.is_empty() {
            let public = DataFrame::new(source.clone().into_parts().0, self.plan.clone());
            let repeated = self.repeated_rows(public, bound_policy).await?;
            if repeated > 0 {
                tracing::warn!(
                    "{repeated} rows of the public table are the same as another in every column; if they are the same \
                     people, their chances are counted too low: remove them, or name privacy.presence.key"
                );
            }
            return Ok(());
        }
        for (schema, table) in [(source.schema().as_arrow(), "source"), (self.schema.as_ref(), "public table")] {
            if let Some(name) = rule.key.iter().find(|name| schema.field_with_name(name).is_err()) {
                return Err(Error::input(format!("privacy.presence.key: the {table} has no column `{name}`")));
            }
        }
        let context = source.clone().into_parts().0;
        let keys = |frame: DataFrame, of_source: i64| -> Result<DataFrame> {
            let fields = source.schema().as_arrow();
            let mut columns: Vec<Expr> = Vec::new();
            for name in &rule.key {
                let data_type =
                    fields.field_with_name(name).map(|field| field.data_type().clone()).map_err(internal_error)?;
                columns.push(cast(ident(name), data_type).alias(name));
            }
            columns.push(lit(of_source).alias("of_source"));
            Ok(frame.select(columns)?)
        };
        let public = keys(DataFrame::new(context, self.plan.clone()), 0)?;
        let both = keys(source.clone(), 1)?.union(public)?;
        let counted = both.aggregate(
            rule.key.iter().map(ident).collect(),
            vec![sum(ident("of_source")).alias("members"), count(lit(1)).alias("rows")],
        )?;
        let twice = counted.clone().filter((ident("rows") - ident("members")).gt(lit(1_i64)))?;
        let twice = twice.count().await?;
        if twice > 0 {
            return Err(Error::input(format!(
                "{twice} people (by {}) are in the public table more than once; privacy.presence.public must hold everybody \
                 once, or their chances are miscounted",
                rule.key.join(", ")
            )));
        }
        let missing = counted.filter((lit(2_i64) * ident("members")).gt(ident("rows")))?.count().await?;
        if missing > 0 {
            return Err(Error::input(format!(
                "{missing} people of the source (by {}) are not in the public table; privacy.presence.public must hold \
                 everybody",
                rule.key.join(", ")
            )));
        }
        Ok(())
    }

    /// Rows that are the same as another in every column. Of a table that has nothing but quasi-identifiers none are
    /// counted: different people have the same values there.
    async fn repeated_rows(&self, public: DataFrame, bound_policy: &BoundPolicy) -> Result<usize> {
        let is_quasi = |name: &str| bound_policy.quasi.iter().any(|quasi| quasi.name == name);
        let fields = self.schema.fields();
        let sorted: Vec<SortField> = fields.iter().map(|field| SortField::new(field.data_type().clone())).collect();
        if fields.iter().all(|field| is_quasi(field.name())) || !RowConverter::supports_fields(&sorted) {
            return Ok(0);
        }
        let columns = fields.iter().map(|field| ident(field.name())).collect();
        let distinct = public.clone().aggregate(columns, vec![])?.count().await?;
        Ok(public.count().await?.saturating_sub(distinct))
    }
}

fn internal_error(error: impl std::fmt::Display) -> Error {
    Error::internal(error.to_string())
}
