//! The parts of a run beside grouping, each on one core against something everybody knows the cost of.
//!
//! `cargo bench --features cli --bench components -- [ROWS]`. Encoding and the assignment of cells are compared with hashing the same
//! columns, splits with sorting the codes, recoding with taking the original columns in the same order. Each figure is
//! the best of three.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench"
)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::{concat_batches, take};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use support::{census, timed};
use throng::internals::{Anonymize, AnonymizeParams, Groups, publish, row_hashes};
use throng::{AnonymizeExt, Policy, register};
use throng_core::auto::{Auto, Effort};
use throng_core::grouping::split::{Gain, Split, Widest, subspaces};
use throng_core::grouping::{Method, settle};
use throng_core::model::{Code, Grouping, Table};
use throng_core::privacy::Rules;

/// Rows of a subspace.
const SUBSPACE: usize = 1000;

fn main() {
    throng::internals::set_up();
    let rows = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (params, batch) = runtime.block_on(open(rows));
    let quasi: Vec<ArrayRef> =
        params.coders.iter().map(|coder| Arc::clone(batch.column(coder.column().index))).collect();
    println!("{rows} rows, {} quasi-identifiers, {} cells", quasi.len(), params.survey.tree.cells());
    println!("{:<34} {:>10} {:>7}", "", "rows/us", "x");

    let hashing = line("hash the quasi-identifiers", rows, None, || row_hashes(&quasi, batch.num_rows(), 1).unwrap());
    line("encode them", rows, Some(hashing), || encode(&params, &quasi));
    let table = encode(&params, &quasi);
    line("assign cells", rows, Some(hashing), || {
        let tree = &params.survey.tree;
        (0..table.rows() as u32).map(|row| u64::from(tree.assign(table.row(row)))).sum::<u64>()
    });

    let sorting = line("sort the codes", rows, None, || {
        let mut order: Vec<u32> = (0..table.rows() as u32).collect();
        order.sort_unstable_by(|&a, &b| table.row(a).cmp(table.row(b)));
        order
    });
    let splits: [(&str, &dyn Split); 2] =
        [("split by gain", &Gain::default()), ("split the widest", &Widest::default())];
    for (name, split) in splits {
        line(name, rows, Some(sorting), || subspaces(&table, split, SUBSPACE));
    }

    let grouping = groups(&table);
    let order: Vec<u32> = (0..table.rows() as u32).collect();
    let groups = Groups::new(&table, &grouping, &order);
    let taken = groups.rows();
    let taking = line("take the quasi-identifiers", rows, None, || {
        quasi.iter().map(|column| take(column, &taken, None).unwrap()).collect::<Vec<_>>()
    });
    line("recode them", rows, Some(taking), || {
        let columns = params.coders.iter().zip(&quasi).enumerate();
        columns.map(|(axis, (coder, column))| publish(coder, axis, column, &groups).unwrap()).collect::<Vec<_>>()
    });
}

/// The best of three, in rows per microsecond and against a baseline.
fn line<T>(name: &str, rows: u64, baseline: Option<Duration>, mut work: impl FnMut() -> T) -> Duration {
    let best = (0..3).map(|_| timed(&mut work).2).min().unwrap_or_default();
    let speed = rows as f64 / best.as_secs_f64() / 1e6;
    let ratio = baseline.map_or(String::new(), |base| format!("{:.2}", best.as_secs_f64() / base.as_secs_f64()));
    println!("{name:<34} {speed:>10.2} {ratio:>7}");
    best
}

/// The census and what a run would decide before its second pass.
async fn open(rows: u64) -> (Arc<AnonymizeParams>, RecordBatch) {
    let data = census::data(rows);
    let context = SessionContext::new();
    register(&context).unwrap();
    let frame = context.read_parquet(data.to_string_lossy().into_owned(), ParquetReadOptions::default()).await.unwrap();
    let job = census::job(&data, Path::new("unused"), 10, &census::QUASI, "");
    let policy = Policy::of(&job, Path::new(".")).unwrap();
    let surveyed = frame.clone().anonymize_surveyed(&policy).await.unwrap();
    let LogicalPlan::Extension(node) = surveyed.logical_plan() else { panic!("the node is on top") };
    let node = node.node.as_any().downcast_ref::<Anonymize>().expect("an anonymising node");
    let batches = frame.collect().await.unwrap();
    let batch = concat_batches(&batches[0].schema(), &batches).unwrap();
    (Arc::clone(node.params().expect("a surveyed node")), batch)
}

fn encode(params: &AnonymizeParams, quasi: &[ArrayRef]) -> Table {
    let width = quasi.len();
    let mut codes: Vec<Code> = vec![0; quasi[0].len() * width];
    for (axis, (coder, array)) in params.coders.iter().zip(quasi).enumerate() {
        coder.encode(array, |row, code| codes[row * width + axis] = code).unwrap();
    }
    Table::new(Arc::clone(&params.axes), codes)
}

fn groups(table: &Table) -> Grouping {
    let rules = Rules::k(10);
    settle(table, Auto::new(Effort::Fast).group(table, &rules, 1), &rules)
}
