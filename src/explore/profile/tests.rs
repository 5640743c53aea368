//! Whole profiles of tables whose truth is known: whatever way the rows are split, and whether the forecast holds or not.

use std::collections::HashMap;
use std::sync::Mutex;

use datafusion::arrow::array::{ArrayRef, Int32Array, ListArray, StringArray, new_null_array};
use datafusion::arrow::datatypes::Int32Type;
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionConfig;
use serde_json::Value;

use super::*;

/// People with ages, sexes, post codes and regions, more of them than a forecast looks at.
struct People {
    rows: Vec<(i32, &'static str, String, String)>,
}

const REGIONS: [&str; 3] = ["north", "a region in the south with a long name", "west"];

impl People {
    fn new(rows: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut person = |_| {
            let region = REGIONS[rng.usize(0..3)].to_owned();
            (rng.i32(0..100), ["female", "male"][rng.usize(0..2)], format!("{:05}", rng.u32(0..20_000)), region)
        };
        Self { rows: (0..rows).map(&mut person).collect() }
    }

    fn batch(&self, rows: std::ops::Range<usize>) -> RecordBatch {
        let text = |of: &dyn Fn(usize) -> String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.clone().map(of)))
        };
        let ages: ArrayRef = Arc::new(Int32Array::from_iter(
            rows.clone().map(|row| (self.rows[row].0 != 3).then_some(self.rows[row].0)),
        ));
        let tags: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
            rows.clone().map(|row| (row % 4 != 0).then(|| vec![Some(row as i32); row % 3])),
        ));
        RecordBatch::try_from_iter_with_nullable([
            ("email", text(&|row| format!("somebody.{row}@example.org")), false),
            ("age", ages, true),
            ("sex", text(&|row| self.rows[row].1.to_owned()), false),
            ("postcode", text(&|row| self.rows[row].2.clone()), false),
            ("region", text(&|row| self.rows[row].3.clone()), false),
            ("void", new_null_array(&DataType::Utf8, rows.len()), true),
            ("tags", tags, true),
        ])
        .unwrap()
    }

    /// The table in so many parts, each of batches of a size of its own.
    fn table(&self, parts: usize) -> (SessionContext, LogicalPlan) {
        let rows = self.rows.len();
        let part = |part: usize| {
            let (from, to) = (rows * part / parts, rows * (part + 1) / parts);
            let size = 3000 + 517 * part;
            (from..to).step_by(size).map(|start| self.batch(start..to.min(start + size))).collect()
        };
        let table = MemTable::try_new(self.batch(0..0).schema(), (0..parts).map(part).collect()).unwrap();
        let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(parts));
        let plan = context.read_table(Arc::new(table)).unwrap().into_unoptimized_plan();
        (context, plan)
    }

    /// The profile of the table in so many parts, and the scans that it took.
    async fn profile(&self, parts: usize) -> (Profile, Vec<Scan>) {
        let (context, plan) = self.table(parts);
        let scans = Mutex::new(Vec::new());
        let watch = |scan: Scan, _: &Arc<dyn ExecutionPlan>, _: u64| scans.lock().unwrap().push(scan);
        let profile = profile_watched(&context, plan, &watch).await.unwrap();
        (profile, scans.into_inner().unwrap())
    }

    /// Share of the rows that are unique by what `of` extracts from them.
    fn alone<T: Eq + std::hash::Hash>(&self, of: impl Fn(&(i32, &'static str, String, String)) -> T) -> f64 {
        let mut times = HashMap::<T, u32>::new();
        self.rows.iter().for_each(|row| *times.entry(of(row)).or_default() += 1);
        times.values().filter(|times| **times == 1).count() as f64 / self.rows.len() as f64
    }
}

fn figures(profile: &Profile) -> Value {
    serde_json::to_value(profile).unwrap()
}

#[test]
fn extents_are_rounded_outwards() {
    let of = |ends| {
        describe_extent(&DataType::Float64, &ColumnStats { ends: Some(ends), ..ColumnStats::default() }).unwrap()
    };
    assert_eq!(of((17.0, 90.0)), "10 to 100");
    assert_eq!(of((-3.5, 12.25)), "-10 to 20");
    assert_eq!(of((0.0, 0.37)), "0 to 0.4");
    let days = ColumnStats { ends: Some((12_000.0, 20_000.0)), ..ColumnStats::default() };
    assert_eq!(describe_extent(&DataType::Date32, &days).unwrap(), "2000s to 2020s");
}

#[tokio::test]
async fn one_scan_finds_the_truth_in_any_number_of_parts() {
    let people = People::new(120_000);
    let (found, scans) = people.profile(1).await;
    assert_eq!(scans, [Scan::Columns]);
    for parts in [2, 3, 8] {
        let (again, scans) = people.profile(parts).await;
        assert_eq!(figures(&again), figures(&found), "{parts} parts");
        assert_eq!(scans, [Scan::Columns]);
    }
    let column = |name: &str| found.columns.iter().find(|column| column.name == name).unwrap();
    let nulls = people.rows.iter().filter(|row| row.0 == 3).count() as u64;
    assert_eq!((column("age").nulls, column("age").distinct), (nulls, Some(99)));
    let postcodes = people.rows.iter().map(|row| &row.2).collect::<std::collections::HashSet<_>>().len() as u64;
    assert_eq!((column("postcode").distinct, column("postcode").estimated), (Some(postcodes), false));
    assert_eq!(column("region").extent, Some(format!("4 to {} letters", REGIONS[1].len())));
    assert_eq!((column("void").nulls, column("void").role), (120_000, Role::Identifier));
    assert_eq!((column("tags").nulls, column("tags").distinct), (30_000, None));
    let emails = column("email");
    assert!(emails.estimated && (emails.distinct.unwrap() as f64 / 120_000.0 - 1.0).abs() < 0.02, "{emails:?}");
    assert_eq!((emails.role, emails.extent.as_deref()), (Role::Identifier, Some("22 to 27 letters")));
    let exposure = &found.exposure;
    assert_eq!(exposure.quasi, ["age", "sex", "postcode", "region"]);
    assert!(exposure.estimated_from.is_some());
    let near = |found: f64, exact: f64, allowed: f64| assert!((found - exact).abs() < allowed, "{found}, not {exact}");
    near(exposure.unique, people.alone(Clone::clone), 0.01);
    let pair = exposure.singling.iter().find(|set| set.columns == ["age", "postcode"]).unwrap();
    near(pair.share, people.alone(|row| (row.0, row.2.clone())), 0.03);
    assert!(pair.estimated_from.is_some());
}

#[tokio::test]
async fn a_forecast_that_proves_wrong_changes_no_figure() {
    let mut people = People::new(150_000);
    // The first rows are all of one region, which therefore looks as if it revealed nothing.
    people.rows.sort_by(|a, b| a.3.cmp(&b.3));
    people.rows.iter_mut().take(70_000).for_each(|row| row.3 = "east".into());
    let (found, scans) = people.profile(1).await;
    assert_eq!(scans, [Scan::Columns, Scan::Exposure]);
    // The same rows in another order let expect what comes.
    fastrand::Rng::with_seed(3).shuffle(&mut people.rows);
    let (shuffled, scans) = people.profile(1).await;
    assert_eq!(scans, [Scan::Columns]);
    assert_eq!(figures(&found)["exposure"], figures(&shuffled)["exposure"]);
    assert_eq!(found.exposure.quasi, ["age", "sex", "postcode", "region"]);
}

#[tokio::test]
async fn of_few_rows_every_figure_is_exact() {
    let people = People::new(30_000);
    for parts in [1, 3] {
        let (found, _) = people.profile(parts).await;
        assert!(found.columns.iter().all(|column| !column.estimated));
        assert_eq!((found.exposure.unique, found.exposure.estimated_from), (people.alone(Clone::clone), None));
        let singling: Vec<_> =
            found.exposure.singling.iter().map(|set| (&set.columns[..], set.share, set.estimated_from)).collect();
        assert_eq!(singling, [(&["postcode".to_owned()][..], people.alone(|row| row.2.clone()), None)]);
    }
}

#[tokio::test]
async fn a_table_without_rows_or_quasi_identifiers_has_a_profile_or_an_error() {
    let (context, plan) = People::new(0).table(2);
    assert!(profile_rows(&context, plan).await.unwrap_err().to_string().contains("no rows"));
    let (context, plan) = People::new(100).table(1);
    let plan = LogicalPlanBuilder::from(plan).project([ident("email"), ident("tags")]).unwrap().build().unwrap();
    let found = profile_rows(&context, plan).await.unwrap();
    assert!(found.exposure.quasi.is_empty() && found.exposure.singling.is_empty());
}
