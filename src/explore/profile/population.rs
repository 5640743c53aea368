//! How exposed people are to somebody who does not know that they are in the data: estimates for a population of a known
//! size, or counts against a public table. Each is a query of its own over the guessed quasi-identifiers.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::{Expr, LogicalPlan, cast, ident, lit};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::TryStreamExt;

use super::Profile;
use crate::agreement::count_classes;
use crate::attack::linkage::Linkage;
use crate::attack::population::SampleClasses;
use crate::audit::PopulationRisk;
use crate::error::{Error, Result};

impl Profile {
    /// Adds risks in the population: by its size, by a public table with the quasi-identifiers under the same names, or both.
    pub(crate) async fn look_at_population(
        &mut self,
        context: &SessionContext,
        input: LogicalPlan,
        people: Option<u64>,
        public: Option<LogicalPlan>,
    ) -> Result<()> {
        let quasi = &self.exposure.quasi;
        if quasi.is_empty() {
            return Ok(());
        }
        let rows = DataFrame::new(context.state(), input);
        let mut risk = PopulationRisk::default();
        if let Some(people) = people {
            let classes = count_classes(&rows, quasi).await?;
            risk.people = Some(people);
            risk.source = Some(SampleClasses::new(classes.histogram(), people).estimate_uniques());
        }
        if let Some(public) = public {
            let public = DataFrame::new(context.state(), public);
            risk.add_linkage(&measure_linkage(rows, public, quasi).await?);
        }
        self.exposure.population = risk.if_known();
        Ok(())
    }
}

/// Public people with the values of every row. People of the data who are not public count as public all the same.
async fn measure_linkage(rows: DataFrame, public: DataFrame, quasi: &[String]) -> Result<Linkage> {
    let types = rows.schema().as_arrow().clone();
    let side = |frame: DataFrame, ours: i64| -> Result<DataFrame> {
        let mut columns: Vec<Expr> = Vec::new();
        for name in quasi {
            let missing =
                |_| Error::input(format!("the public table has no column `{name}`, a guessed quasi-identifier"));
            frame.schema().as_arrow().field_with_name(name).map_err(missing)?;
            let data_type = types.field_with_name(name).map(|field| field.data_type().clone()).map_err(missing)?;
            columns.push(cast(ident(name), data_type).alias(name));
        }
        columns.push(lit(ours).alias("__ours"));
        Ok(frame.select(columns)?)
    };
    let both = side(rows, 1)?.union(side(public, 0)?)?;
    let classes = both
        .aggregate(
            quasi.iter().map(ident).collect(),
            vec![sum(ident("__ours")).alias("__rows"), (count(lit(1)) - sum(ident("__ours"))).alias("__people")],
        )?
        .filter(ident("__rows").gt(lit(0_i64)))?
        .aggregate(vec![ident("__rows"), ident("__people")], vec![count(lit(1)).alias("__classes")])?;
    let mut linkage = Linkage::default();
    let mut stream = classes.execute_stream().await?;
    while let Some(batch) = stream.try_next().await? {
        let [rows, people, classes] = [0, 1, 2].map(|column| batch.column(column).as_primitive::<Int64Type>());
        for row in 0..batch.num_rows() {
            let of_class = rows.value(row) as u64;
            let fitting = (people.value(row) as u64).max(of_class);
            (0..classes.value(row)).for_each(|_| linkage.add_class(of_class, fitting));
        }
    }
    Ok(linkage)
}
