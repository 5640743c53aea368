//! One session with extensions of other makers: federation, which brings a query planner and an optimiser rule, tracing,
//! which wraps every operator, a Delta table, and Throng; in both orders of registration.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{Int64Type, SchemaRef};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::unparser::dialect::{DefaultDialect, Dialect};
use datafusion_federation::sql::{RemoteTableRef, SQLExecutor, SQLFederationProvider, SQLTableSource};
use datafusion_federation::{FederatedQueryPlanner, FederatedTableProviderAdaptor, default_optimizer_rules};
use datafusion_tracing::{InstrumentationOptions, instrument_with_info_spans};
use futures::{StreamExt, TryStreamExt};
use throng::{AnonymizeExt, AnonymizeSessionExt, Column, LDiversity, Policy, register_policy};

use crate::delta::people_table;

/// A database elsewhere: another session, which gets SQL and nothing else.
struct Elsewhere(SessionContext);

#[async_trait]
impl SQLExecutor for Elsewhere {
    fn name(&self) -> &str {
        "elsewhere"
    }

    fn compute_context(&self) -> Option<String> {
        Some("elsewhere".into())
    }

    fn dialect(&self) -> Arc<dyn Dialect> {
        Arc::new(DefaultDialect {})
    }

    fn execute(
        &self,
        query: &str,
        schema: SchemaRef,
        _filters: &[Arc<dyn PhysicalExpr>],
    ) -> Result<SendableRecordBatchStream> {
        let (context, query) = (self.0.clone(), query.to_owned());
        let rows = futures::stream::once(async move { context.sql(&query).await?.execute_stream().await });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten().boxed())))
    }

    async fn table_names(&self) -> Result<Vec<String>> {
        Ok(vec!["people".into()])
    }

    async fn get_table_schema(&self, table: &str) -> Result<SchemaRef> {
        Ok(Arc::new(self.0.table(table).await?.schema().as_arrow().clone()))
    }
}

fn with_federation(builder: SessionStateBuilder) -> SessionStateBuilder {
    builder.with_optimizer_rules(default_optimizer_rules()).with_query_planner(Arc::new(FederatedQueryPlanner::new()))
}

fn with_tracing(builder: SessionStateBuilder) -> SessionStateBuilder {
    let options = InstrumentationOptions::builder().record_metrics(true).build();
    builder.with_physical_optimizer_rule(instrument_with_info_spans!(options: options))
}

/// A session that knows all of them, with a federated table `people` and a Delta table `towns`.
async fn session(throng_first: bool, delta: &Path) -> SessionContext {
    let builder =
        SessionStateBuilder::new().with_config(SessionConfig::new().with_target_partitions(2)).with_default_features();
    let builder = if throng_first {
        with_tracing(with_federation(builder.with_anonymize()))
    } else {
        with_tracing(with_federation(builder)).with_anonymize()
    };
    let context = SessionContext::new_with_state(builder.build());
    let elsewhere = SessionContext::new();
    elsewhere
        .sql(
            "CREATE TABLE people AS SELECT value AS id, 20 + value * 7 % 60 AS age, value * 3 % 5 AS ward, \
              CASE value % 4 WHEN 0 THEN 'flu' WHEN 1 THEN 'gout' WHEN 2 THEN 'none' ELSE 'rash' END AS illness \
              FROM generate_series(1, 400)",
        )
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    let executor = Arc::new(Elsewhere(elsewhere));
    let schema = executor.get_table_schema("people").await.unwrap();
    let provider = Arc::new(SQLFederationProvider::new(executor));
    let table = RemoteTableRef::try_from("people".to_owned()).unwrap();
    let source = Arc::new(SQLTableSource::new_with_schema(provider, table, schema));
    context.register_table("people", Arc::new(FederatedTableProviderAdaptor::new(source))).unwrap();
    let towns = deltalake_core::open_table(url::Url::from_directory_path(delta).unwrap()).await.unwrap();
    towns.update_datafusion_session(&context.state()).unwrap();
    context.register_table("towns", towns.table_provider().await.unwrap()).unwrap();
    context
}

fn policy() -> Policy {
    Policy::builder(8)
        .column("id", Column::identifier())
        .column("age", Column::quasi())
        .column("ward", Column::quasi())
        .column("illness", Column::sensitive())
        .rule(LDiversity::distinct("illness", 2))
        .build()
        .unwrap()
}

#[tokio::test]
async fn federation_tracing_delta_and_throng_plan_together_in_both_orders() {
    let folder = tempfile::tempdir().unwrap();
    people_table(folder.path());
    for throng_first in [true, false] {
        let context = session(throng_first, folder.path()).await;
        register_policy(&context, "eight", policy()).unwrap();
        for relation in ["anonymize('people', 'eight')", "anonymize((SELECT * FROM people), 'eight')"] {
            let query = format!(
                "SELECT count(*) AS classes, min(n) AS smallest, sum(n) AS people \
                 FROM (SELECT count(*) AS n FROM {relation} GROUP BY age, ward)"
            );
            let batches = context.sql(&query).await.unwrap().collect().await.unwrap();
            let of = |column: usize| batches[0].column(column).as_primitive::<Int64Type>().value(0);
            assert!(of(0) > 10 && of(1) >= 8 && of(2) == 400, "{relation}: {} {} {}", of(0), of(1), of(2));
            let plan = context.sql(&format!("EXPLAIN SELECT * FROM {relation}")).await.unwrap();
            let plan = pretty_format_batches(&plan.collect().await.unwrap()).unwrap().to_string();
            for part in ["AnonymizeExec", "Hash([__throng_cell", "SchemaCastScanExec"] {
                assert!(plan.contains(part), "no {part}, throng first: {throng_first}\n{plan}");
            }
        }
        // The DataFrame, joined with the Delta table; and the Delta table anonymised.
        let released = context.table("people").await.unwrap().anonymize(&policy()).unwrap();
        context.register_table("released", released.into_view()).unwrap();
        let joined = "SELECT t.town, count(*) FROM released r JOIN towns t ON t.age - 1000 BETWEEN r.age.min AND r.age.max GROUP BY t.town";
        assert!(!context.sql(joined).await.unwrap().collect().await.unwrap().is_empty());
        let towns = "SELECT * FROM anonymize((SELECT * FROM towns), k => 8, quasi => ['age', 'town'], \
                     sensitive => ['ill'], identifier => ['id'])";
        assert_eq!(context.sql(towns).await.unwrap().count().await.unwrap(), 250);
        // What belongs elsewhere still goes there as a whole.
        let plan = context.sql("EXPLAIN SELECT ward, count(*) FROM people GROUP BY ward").await.unwrap();
        let plan = pretty_format_batches(&plan.collect().await.unwrap()).unwrap().to_string();
        assert!(plan.contains("VirtualExecutionPlan") && !plan.contains("AggregateExec"), "{plan}");
    }
}
