//! Throng inside somebody else's pipeline: scan, join, anonymise, aggregate.
//!
//! `cargo run --example embed`

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::path::Path;

use datafusion::error::Result;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use throng::{AnonymizeExt, Column, Policy, Role, register};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let context = SessionContext::new();
    register(&context)?;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines/data/census.parquet");
    context.register_parquet("census", data.to_string_lossy(), ParquetReadOptions::default()).await?;
    context.sql("CREATE TABLE rates AS VALUES ('anxiety', 1.5), ('depression', 2.0), ('back pain', 3.0)").await?;

    // In SQL: the anonymised rows are a relation like any other. Filters and projections above it do not reach below.
    let by_age = context
        .sql(
            "WITH released AS (
                 SELECT * FROM anonymize(
                     (SELECT age, sex, region, diagnosis FROM census WHERE age >= 18),
                     k => 10, quasi => ['age', 'sex', 'region'], sensitive => ['diagnosis'])
             )
             SELECT sex, count(*) AS people, min(age.min) AS youngest, max(age.max) AS oldest, avg(column2) AS rate
             FROM released JOIN rates ON released.diagnosis = rates.column1
             GROUP BY sex ORDER BY people DESC LIMIT 5",
        )
        .await?;
    by_age.show().await?;

    // In Rust: a policy from typed parts.
    let policy = Policy::builder(10)
        .other_columns(Role::Identifier)
        .columns(["age", "region"], Column::quasi())
        .column("income", Column::sensitive())
        .build()
        .map_err(throng::Error::into_datafusion)?;
    let released = context.table("census").await?.anonymize(&policy)?;
    println!("{}", released.clone().explain(false, false)?.to_string().await?);
    released.limit(0, Some(5))?.show().await
}
