//! The parts of a run beside grouping, each on one core against something everybody knows the cost of.
//!
//! `cargo bench --features cli --bench components -- [ROWS]`. Encoding and the assignment of cells are compared with hashing the same
//! columns, splits with sorting the codes, recoding with taking the original columns in the same order. Each figure is
//! the best of three.

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, reason = "a bench")]

mod support;

use std::path::Path;
use std::time::Duration;

use datafusion::prelude::{ParquetReadOptions, SessionContext};
use support::{census, timed};
use throng::internals::SecondPass;
use throng::{Policy, register};
use throng_core::auto::{Auto, Effort};
use throng_core::grouping::split::{Gain, Split, Widest, cut_subspaces};
use throng_core::grouping::{Method, enforce_rules};
use throng_core::model::{Grouping, Table};
use throng_core::privacy::Rules;

/// Rows of a subspace.
const SUBSPACE: usize = 1000;

fn main() {
    throng::internals::set_up();
    let rows = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let pass = runtime.block_on(open(rows));
    println!("{rows} rows, {} quasi-identifiers, {} cells", pass.quasi().len(), pass.cells());
    println!("{:<34} {:>10} {:>7}", "", "rows/us", "x");

    let hashing = line("hash the quasi-identifiers", rows, None, || pass.hash_rows().unwrap());
    line("encode them", rows, Some(hashing), || pass.encode_rows().unwrap());
    let table = pass.encode_rows().unwrap();
    line("assign cells", rows, Some(hashing), || pass.assign_cells(&table));

    let sorting = line("sort the codes", rows, None, || {
        let mut order: Vec<u32> = (0..table.rows() as u32).collect();
        order.sort_unstable_by(|&a, &b| table.row(a).cmp(table.row(b)));
        order
    });
    let splits: [(&str, &dyn Split); 2] =
        [("split by gain", &Gain::default()), ("split the widest", &Widest::default())];
    for (name, split) in splits {
        line(name, rows, Some(sorting), || cut_subspaces(&table, split, SUBSPACE));
    }

    let grouping = groups(&table);
    pass.take_and_recode(&table, &grouping, |taken, recoded| {
        let taking = line("take the quasi-identifiers", rows, None, || taken().unwrap());
        line("recode them", rows, Some(taking), || recoded().unwrap());
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
async fn open(rows: u64) -> SecondPass {
    let data = census::data(rows);
    let context = SessionContext::new();
    register(&context).unwrap();
    let frame = context.read_parquet(data.to_string_lossy().into_owned(), ParquetReadOptions::default()).await.unwrap();
    let job = census::job(&data, Path::new("unused"), 10, &census::QUASI, "");
    SecondPass::open(frame, &Policy::of(&job, Path::new(".")).unwrap()).await.unwrap()
}

fn groups(table: &Table) -> Grouping {
    let rules = Rules::k(10);
    enforce_rules(table, Auto::new(Effort::Fast).group(table, &rules, 1), &rules)
}
