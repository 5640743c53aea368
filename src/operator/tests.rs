//! The operator under the real optimiser: what stands above it must not change the groups.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, Int32Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::prelude::{SessionConfig, SessionContext};

use super::register_policy;
use crate::extension::{AnonymizeExt, register};
use crate::policy::Policy;

/// A session of so many partitions over a table of people: age and town, two sensitive columns, a unique id.
async fn people(partitions: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(partitions);
    let context = SessionContext::new_with_config(config);
    register(&context).unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    let batches: Vec<Vec<RecordBatch>> = (0..4)
        .map(|part| {
            let ids: Vec<i32> = (part * 100..(part + 1) * 100).collect();
            let ages: Vec<i32> = ids.iter().map(|_| rng.i32(18..90)).collect();
            let towns: Vec<&str> = ids.iter().map(|_| ["Ely", "Bath", "Wells", "York"][rng.usize(0..4)]).collect();
            let ills: Vec<&str> = ids.iter().map(|_| ["flu", "gout", "mumps"][rng.usize(0..3)]).collect();
            let batch = RecordBatch::try_from_iter([
                ("id", Arc::new(Int32Array::from(ids)) as _),
                ("age", Arc::new(Int32Array::from(ages)) as _),
                ("town", Arc::new(StringArray::from(towns)) as _),
                ("illness", Arc::new(StringArray::from(ills)) as _),
            ]);
            vec![batch.unwrap()]
        })
        .collect();
    let table = MemTable::try_new(batches[0][0].schema(), batches).unwrap();
    context.register_table("people", Arc::new(table)).unwrap();
    context
}

const RELEASED: &str = "anonymize((SELECT * FROM people), k => 5, quasi => ['age', 'town'], sensitive => ['illness'], \
                        kept => ['id'], seed => 42)";

async fn show(context: &SessionContext, sql: &str) -> String {
    let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
    pretty_format_batches(&batches).unwrap().to_string()
}

#[tokio::test]
async fn what_stands_above_does_not_change_the_groups() {
    let context = people(3).await;
    context.sql(&format!("CREATE TABLE released AS SELECT * FROM {RELEASED}")).await.unwrap().collect().await.unwrap();
    for query in [
        "SELECT * FROM T ORDER BY id",
        "SELECT * FROM T WHERE id < 40 ORDER BY id",
        "SELECT id, town FROM T WHERE illness = 'flu' ORDER BY id",
        "SELECT id, age.min, age.max FROM T ORDER BY id LIMIT 7",
        "SELECT town, count(*) FROM T GROUP BY town ORDER BY town",
        "SELECT T.id, town, m FROM T JOIN (VALUES (7, 'x'), (11, 'y')) AS v(i, m) ON T.id = v.i ORDER BY T.id",
        "WITH old AS (SELECT * FROM T WHERE age.min > 60) SELECT count(*) FROM old",
        "SELECT id, town FROM T ORDER BY town DESC, id LIMIT 9",
        "SELECT id FROM T WHERE id IN (SELECT i FROM (VALUES (3), (5), (8)) AS v(i)) ORDER BY id",
        "SELECT DISTINCT town FROM T WHERE age.max < 50 ORDER BY town",
    ] {
        let live = query.replacen("FROM T", &format!("FROM {RELEASED} AS T"), 1);
        let stored = query.replacen("FROM T", "FROM released AS T", 1);
        assert_eq!(show(&context, &live).await, show(&context, &stored).await, "{query}");
    }
}

/// What a query writes is what it would have shown.
#[tokio::test]
async fn copies_and_tables_hold_the_groups_of_the_whole() {
    let context = people(3).await;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.parquet");
    let run = |sql: String| {
        let context = &context;
        async move { context.sql(&sql).await.unwrap().collect().await.unwrap() }
    };
    run(format!("CREATE TABLE released AS SELECT * FROM {RELEASED}")).await;
    let some = "SELECT town, age.max AS oldest, id FROM T WHERE illness <> 'gout' AND id % 3 = 0";
    let live = some.replace("FROM T", &format!("FROM {RELEASED} AS T"));
    run(format!("COPY ({live}) TO '{}' STORED AS PARQUET", copy.display())).await;
    run(format!("CREATE EXTERNAL TABLE copied STORED AS PARQUET LOCATION '{}'", copy.display())).await;
    run(format!("CREATE TABLE part AS {live}")).await;
    run(format!("CREATE VIEW seen AS SELECT * FROM {RELEASED}")).await;
    let expected = show(&context, &format!("{} ORDER BY id", some.replace("FROM T", "FROM released AS T"))).await;
    assert!(expected.lines().count() > 50, "{expected}");
    for table in ["copied", "part"] {
        assert_eq!(show(&context, &format!("SELECT * FROM {table} ORDER BY id")).await, expected, "{table}");
    }
    let viewed = show(&context, &format!("{} ORDER BY id", some.replace("FROM T", "FROM seen AS T"))).await;
    assert_eq!(viewed, expected);
}

#[tokio::test]
async fn same_rows_for_any_number_of_partitions() {
    let query = format!("SELECT * FROM {RELEASED} ORDER BY id");
    let one = show(&people(1).await, &query).await;
    for partitions in [2, 3, 8] {
        assert_eq!(show(&people(partitions).await, &query).await, one, "{partitions} partitions");
    }
}

#[tokio::test]
async fn the_plan_distributes_and_sorts_by_cell_and_reads_nothing() {
    let context = people(4).await;
    let plan = show(&context, &format!("EXPLAIN SELECT town FROM {RELEASED}")).await;
    let at = |what: &str| plan.find(what).unwrap_or_else(|| panic!("no {what} in\n{plan}"));
    assert!(at("AnonymizeExec") < at("SortExec: expr=[__throng_cell"));
    assert!(at("SortExec") < at("RepartitionExec: partitioning=Hash([__throng_cell"));
    assert!(at("RepartitionExec") < at("assign_cell(age"));
    let metrics = show(&context, &format!("EXPLAIN ANALYZE SELECT * FROM {RELEASED}")).await;
    for metric in [
        "groups=",
        "cells=",
        "smallest_cell=",
        "largest_cell=",
        "splits=",
        "spill_count=",
        "suppressed_rows=0",
        "group_time=",
        "recode_time=",
    ] {
        assert!(metrics.contains(metric), "no {metric} in\n{metrics}");
    }
}

#[tokio::test]
async fn statistics_of_the_raw_rows_are_not_reported() {
    let context = people(2).await;
    let plan = context.sql(&format!("SELECT * FROM {RELEASED}")).await.unwrap().create_physical_plan().await.unwrap();
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).unwrap();
    assert!(statistics.num_rows.get_value().is_none(), "rows may be suppressed");
    assert!(statistics.total_byte_size.get_value().is_none());
    assert!(statistics.column_statistics.iter().all(|column| column.distinct_count.get_value().is_none()));
    assert!(statistics.column_statistics.iter().all(|column| column.max_value.get_value().is_none()));
    assert!(statistics.column_statistics.iter().all(|column| column.min_value.get_value().is_none()));
}

#[tokio::test]
async fn wrong_calls_say_what_is_missing() {
    let context = people(1).await;
    for (call, expected) in [
        ("anonymize((SELECT * FROM people))", "anonymize takes a query in parentheses"),
        ("anonymize(people, k => 5)", "write (SELECT * FROM people)"),
        ("anonymize((SELECT * FROM people), k => 5, quasi => ['age'])", "columns.town"),
        (
            "anonymize((SELECT * FROM people), k => 5, quasi => ['age'], colour => 'red', others => 'kept')",
            "unknown argument colour",
        ),
        ("anonymize((SELECT * FROM people), k => 1, quasi => ['age'], others => 'kept')", "privacy.k"),
        ("anonymize((SELECT * FROM people), 'no-such-file.toml')", "no policy is registered as `no-such-file.toml`"),
        ("anonymize((SELECT * FROM people), '/etc/passwd')", "no policy is registered as `/etc/passwd`"),
    ] {
        let error = match context.sql(&format!("SELECT * FROM {call}")).await {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{call} was planned"),
        };
        assert!(error.contains(expected), "{call}: {error}");
    }
}

#[tokio::test]
async fn queries_name_policies_that_the_host_has_registered() {
    let context = people(2).await;
    let policy = toml::toml! {
        privacy.k = 20
        columns.id.role = "identifier"
        columns.age.role = "quasi"
        columns.town.role = "quasi"
        columns.illness.role = "sensitive"
    };
    let policy = Policy::from_table(policy, std::path::Path::new(".")).unwrap();
    register_policy(&context, "twenty", policy).unwrap();
    let query = "SELECT min(n) AS n FROM (SELECT count(*) AS n FROM anonymize((SELECT * FROM people), 'twenty') \
                 GROUP BY age, town)";
    let batches = context.sql(query).await.unwrap().collect().await.unwrap();
    let smallest = batches[0].column(0).as_primitive::<Int64Type>().value(0);
    assert!(smallest >= 20, "{smallest}");
    assert!(register_policy(&SessionContext::new(), "x", policy_of_names("\"drop\"")).is_err());
}

/// A policy under which every person's town is an identifier.
fn policy_of_names(treat: &str) -> Policy {
    let text = format!(
        "privacy.k = 5\n[columns]\nid.role = \"identifier\"\nage.role = \"quasi\"\nillness.role = \"sensitive\"\n\
         town = {{ role = \"identifier\", treat = {treat} }}\n"
    );
    Policy::from_table(toml::from_str(&text).unwrap(), std::path::Path::new(".")).unwrap()
}

/// Also of a plan that was surveyed first.
#[tokio::test]
async fn identifiers_are_replaced_on_every_way_into_the_operator() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "0123456789abcdef0123456789abcdef").unwrap();
    for treat in ["{ constant = \"somewhere\" }".into(), format!("{{ pseudonym.key-file = {key:?} }}")] {
        let (context, policy) = (people(2).await, policy_of_names(&treat));
        register_policy(&context, "names", policy.clone()).unwrap();
        let rows = context.table("people").await.unwrap();
        for released in [
            rows.clone().anonymize(&policy).unwrap(),
            rows.clone().anonymize_surveyed(&policy).await.unwrap(),
            context.sql("SELECT * FROM anonymize((SELECT * FROM people), 'names')").await.unwrap(),
        ] {
            let shown = pretty_format_batches(&released.collect().await.unwrap()).unwrap().to_string();
            assert!(shown.contains("flu") && shown.lines().count() > 300, "{shown}");
            for town in ["Ely", "Bath", "Wells", "York"] {
                assert!(!shown.contains(town), "{treat} publishes {town}");
            }
        }
    }
}

/// Answers of one session must not be intersected: asked twice, by whatever way, it gives the same groups. Another
/// session has another key.
#[tokio::test]
async fn a_session_groups_the_same_rows_in_one_way() {
    let unseeded = RELEASED.replace(", seed => 42", "");
    let policy = || {
        let table = "privacy.k = 5\n[columns]\nage.role = \"quasi\"\ntown.role = \"quasi\"\nillness.role = \"sensitive\"\n\
                     id.role = \"kept\"\n";
        Policy::from_table(toml::from_str(table).unwrap(), std::path::Path::new(".")).unwrap()
    };
    let mut of_sessions = Vec::new();
    for _ in 0..2 {
        let context = people(2).await;
        register_policy(&context, "by name", policy()).unwrap();
        register_policy(&context, "by another", policy()).unwrap();
        context
            .sql(&format!("CREATE VIEW released AS SELECT * FROM {unseeded}"))
            .await
            .unwrap()
            .collect()
            .await
            .unwrap();
        let written = show(&context, &format!("SELECT * FROM {unseeded} ORDER BY id")).await;
        assert_eq!(written, show(&context, &format!("SELECT * FROM {unseeded} ORDER BY id")).await);
        assert_eq!(written, show(&context, "SELECT * FROM released ORDER BY id").await);
        let named = |name: &str| format!("SELECT * FROM anonymize((SELECT * FROM people), '{name}') ORDER BY id");
        let registered = show(&context, &named("by name")).await;
        assert_eq!(registered, show(&context, &named("by name")).await);
        assert_eq!(registered, show(&context, &named("by another")).await, "a policy is the same under another name");
        let people = || async { context.table("people").await.unwrap() };
        for released in [people().await.anonymize(&policy()), people().await.anonymize_surveyed(&policy()).await] {
            context.register_table("framed", released.unwrap().into_view()).unwrap();
            assert_eq!(registered, show(&context, "SELECT * FROM framed ORDER BY id").await);
            context.deregister_table("framed").unwrap();
        }
        of_sessions.push((written, registered));
    }
    assert_ne!(of_sessions[0].0, of_sessions[1].0);
    assert_ne!(of_sessions[0].1, of_sessions[1].1);
}
