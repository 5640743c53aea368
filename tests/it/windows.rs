//! Input that never ends, through SQL: a FIFO and a streaming table, recounted by code that knows nothing of windows.
//!
//! `THRONG_STREAM_ROWS=5000000` makes the streams as long as that, with windows of 100,000 rows, and says what it took.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use throng::{Column, HierarchySpec, LDiversity, Policy, Window, register, register_policy};

use crate::support::Desk;

const K: usize = 10;
const L: usize = 3;
const ILLNESSES: [&str; 5] = ["flu", "gout", "mumps", "cold", "asthma"];

/// Rows of a stream and of its windows.
fn lengths() -> (i64, u64) {
    match std::env::var("THRONG_STREAM_ROWS") {
        Ok(rows) => (rows.parse().unwrap(), 100_000),
        Err(_) => (23_456, 4_000),
    }
}

fn scrambled(id: i64) -> u64 {
    let mixed = (id as u64 ^ 0x5851_F42D).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 16
}

fn age_of(id: i64) -> i64 {
    (scrambled(id) % 72 + 18) as i64
}

fn postcode_of(id: i64) -> String {
    format!("{}", 10_000 + scrambled(id + 1) % 900)
}

/// Two thirds have the commonest illness, so that l-diversity has something to do.
fn illness_of(id: i64) -> &'static str {
    let drawn = scrambled(id + 2) % 12;
    if drawn < 8 { ILLNESSES[0] } else { ILLNESSES[drawn as usize - 7] }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("age", DataType::Int64, false),
        Field::new("postcode", DataType::Utf8, false),
        Field::new("ill", DataType::Utf8, false),
    ]))
}

fn rows(ids: impl Iterator<Item = i64> + Clone) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(ids.clone().collect::<Int64Array>()),
        Arc::new(ids.clone().map(age_of).collect::<Int64Array>()),
        Arc::new(ids.clone().map(|id| Some(postcode_of(id))).collect::<StringArray>()),
        Arc::new(ids.map(|id| Some(illness_of(id))).collect::<StringArray>()),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// A stream of batches, made as they are asked for. `ids` of a batch by its number. After so many batches it ends, or waits
/// for ever.
struct Endless {
    hangs: bool,
    schema: SchemaRef,
    batches: i64,
    ids: fn(i64) -> Vec<i64>,
}

impl fmt::Debug for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Endless")
    }
}

impl PartitionStream for Endless {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (ids, hangs) = (self.ids, self.hangs);
        let batches = futures::stream::iter(0..self.batches).map(move |batch| Ok(rows(ids(batch).into_iter())));
        let silence = futures::stream::iter(hangs.then_some(())).then(|()| std::future::pending());
        let batches = batches.chain(silence);
        Box::pin(RecordBatchStreamAdapter::new(schema(), batches))
    }
}

fn streaming_table(context: &SessionContext, partitions: i64, batches: i64, ids: fn(i64) -> Vec<i64>) {
    let partition = || Arc::new(Endless { hangs: false, schema: schema(), batches, ids }) as Arc<dyn PartitionStream>;
    let table = StreamingTable::try_new(schema(), (0..partitions).map(|_| partition()).collect()).unwrap();
    context.register_table("people", Arc::new(table.with_infinite_table(true))).unwrap();
}

/// A pool that knows how much it has given out at most.
#[derive(Debug)]
struct Peak {
    pool: GreedyMemoryPool,
    most: AtomicUsize,
}

impl fmt::Display for Peak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Peak")
    }
}

impl MemoryPool for Peak {
    fn name(&self) -> &str {
        "peak"
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
        self.most.fetch_max(self.pool.reserved(), Ordering::Relaxed);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> DataFusionResult<()> {
        self.pool.try_grow(reservation, additional)?;
        self.most.fetch_max(self.pool.reserved(), Ordering::Relaxed);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}

fn session(limit: usize) -> (SessionContext, Arc<Peak>) {
    let peak = Arc::new(Peak { pool: GreedyMemoryPool::new(limit), most: AtomicUsize::new(0) });
    let runtime =
        RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&peak) as Arc<dyn MemoryPool>).build_arc().unwrap();
    let context = SessionContext::new_with_config_rt(SessionConfig::new(), runtime);
    register(&context).unwrap();
    (context, peak)
}

fn policy(window: Window) -> Policy {
    Policy::builder(K as u32)
        .column("id", Column::kept())
        .column("age", Column::quasi().with_domain(0.0, 120.0))
        .column("postcode", Column::quasi().with_hierarchy(HierarchySpec::mask_right()))
        .column("ill", Column::sensitive())
        .rule(LDiversity::distinct("ill", L as u32))
        .max_suppression(0.2)
        .window(window)
        .build()
        .unwrap()
}

/// What came out of a stream, counted from the published values alone.
#[derive(Debug)]
struct Recount {
    published: usize,
    suppressed: usize,
    repeated: usize,
    windows: usize,
    waiting: usize,
    /// Rows and illnesses of every published combination.
    classes: HashMap<String, (usize, u8)>,
    seconds: f64,
}

impl Recount {
    /// Asserts that every published combination meets the rules, and that no row is lost.
    fn check(&self, came: usize) {
        assert!(!self.classes.is_empty());
        for (class, (rows, illnesses)) in &self.classes {
            assert!(*rows >= K, "{class}: {rows} rows");
            assert!(illnesses.count_ones() as usize >= L, "{class}: {illnesses:b}");
        }
        assert_eq!(self.published + self.suppressed + self.repeated, came, "{self:?}");
        assert_eq!(self.waiting, 0, "nobody waits at the end");
    }
}

fn metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    if plan.name() == "AnonymizeWindowsExec" {
        return plan.metrics().unwrap().sum_by_name(name).map_or(0, |value| value.as_usize());
    }
    plan.children().into_iter().map(|child| metric(child, name)).sum()
}

/// Runs a query over a stream of `most` different ids at most.
async fn recount(context: &SessionContext, query: &str, most: i64) -> DataFusionResult<Recount> {
    let started = Instant::now();
    let plan = context.sql(query).await?.create_physical_plan().await?;
    assert!(plan.boundedness().is_unbounded(), "the plan does not know that it need not end");
    let mut stream = execute_stream(Arc::clone(&plan), context.task_ctx())?;
    let mut seen = vec![false; most as usize];
    let (mut classes, mut published) = (HashMap::<String, (usize, u8)>::new(), 0);
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        published += batch.num_rows();
        let ids = batch.column_by_name("id").unwrap().as_primitive::<Int64Type>();
        let ages = batch.column_by_name("age").unwrap();
        let (least, largest) = (ages.as_struct().column(0), ages.as_struct().column(1));
        let (least, largest) = (least.as_primitive::<Int64Type>(), largest.as_primitive::<Int64Type>());
        let codes = batch.column_by_name("postcode").unwrap();
        let codes = ArrayFormatter::try_new(codes.as_ref(), &FormatOptions::default())?;
        let ills = batch.column_by_name("ill").unwrap();
        let ills = ArrayFormatter::try_new(ills.as_ref(), &FormatOptions::default())?;
        for row in 0..batch.num_rows() {
            let id = ids.value(row);
            assert!(!std::mem::replace(&mut seen[id as usize], true), "a row is published twice");
            assert!((least.value(row)..=largest.value(row)).contains(&age_of(id)), "an age is not covered");
            let (code, ill) = (codes.value(row).to_string(), ills.value(row).to_string());
            let original = postcode_of(id);
            assert!(code.chars().zip(original.chars()).all(|(a, b)| a == '*' || a == b), "a postcode is not covered");
            assert_eq!(ill, illness_of(id));
            let place = ILLNESSES.iter().position(|known| *known == ill).unwrap();
            let class = classes.entry(format!("{}-{} {code}", least.value(row), largest.value(row))).or_default();
            class.0 += 1;
            class.1 |= 1 << place;
        }
    }
    drop(stream);
    let of = |name: &str| metric(&plan, name);
    let (suppressed, repeated) = (of("suppressed_rows"), of("repeated_rows"));
    let (windows, waiting, seconds) = (of("windows"), of("waiting_rows"), started.elapsed().as_secs_f64());
    Ok(Recount { published, suppressed, repeated, windows, waiting, classes, seconds })
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The largest number of bytes that this process has held, as the kernel counts.
fn resident() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fifo_is_published_window_by_window() {
    let (length, window) = lengths();
    let desk = Desk::new();
    let path = desk.path("people.csv");
    fifo(&path);
    let (context, peak) = session(256 << 20);
    register_policy(&context, "people", policy(Window::of_rows(window))).unwrap();
    let create = format!(
        "CREATE UNBOUNDED EXTERNAL TABLE people (id BIGINT NOT NULL, age BIGINT NOT NULL, postcode VARCHAR NOT NULL, ill \
         VARCHAR NOT NULL) STORED AS CSV OPTIONS ('format.has_header' 'false') LOCATION '{}'",
        path.display()
    );
    context.sql(&create).await.unwrap().collect().await.unwrap();
    let writer = std::thread::spawn(move || {
        let mut file = BufWriter::new(File::options().write(true).open(path).unwrap());
        for id in 0..length {
            writeln!(file, "{id},{},{},{}", age_of(id), postcode_of(id), illness_of(id)).unwrap();
        }
        file.flush().unwrap();
    });
    let found = recount(&context, "SELECT * FROM anonymize('people', 'people')", length).await.unwrap();
    writer.join().unwrap();
    found.check(length as usize);
    let rows = length as u64;
    assert_eq!(found.windows as u64, rows.div_ceil(window));
    let most = peak.most.load(Ordering::Relaxed);
    println!(
        "fifo: {length} rows, {:.1} s, {} published, {} suppressed, {} windows, {} combinations, pool at most {most}, {}",
        found.seconds,
        found.published,
        found.suppressed,
        found.windows,
        found.classes.len(),
        resident()
    );
    assert!(most > 0 && most < 2 * 3 * window as usize * 64 * 2, "{most} bytes for windows of {window} rows");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_does_not_grow_with_the_length_of_a_stream() {
    let (length, window) = lengths();
    let mut peaks = Vec::new();
    for share in [5, 1] {
        let (context, peak) = session(256 << 20);
        register_policy(&context, "people", policy(Window::of_rows(window).with_max_wait(2))).unwrap();
        let batches = length / share / 1000;
        streaming_table(&context, 1, batches, |batch| (batch * 1000..(batch + 1) * 1000).collect());
        let query = "SELECT * FROM anonymize((SELECT * FROM people), 'people')";
        let found = recount(&context, query, length).await.unwrap();
        found.check(batches as usize * 1000);
        peaks.push(peak.most.load(Ordering::Relaxed));
        println!("streaming table: {} rows, {:.1} s, {}", batches * 1000, found.seconds, resident());
    }
    assert!(peaks[0] > 0 && peaks[1] as f64 <= 1.25 * peaks[0] as f64, "five times as many rows: {peaks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_meet_in_one_window_and_repeats_are_dropped() {
    // Two partitions bring the same 3,000 people, and each of them 500 people twice.
    let ids = |batch: i64| (batch * 500..batch * 500 + 1000).collect();
    let (context, _) = session(256 << 20);
    register_policy(&context, "people", policy(Window::of_rows(700).with_subject(["id"], 100_000))).unwrap();
    streaming_table(&context, 2, 5, ids);
    let found = recount(&context, "SELECT * FROM anonymize('people', 'people')", 3000).await.unwrap();
    found.check(10_000);
    assert_eq!(found.published + found.suppressed, 3000);
    assert_eq!(found.repeated, 7000);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stream_cannot_have_is_refused_with_the_way_on() {
    let (context, _) = session(256 << 20);
    streaming_table(&context, 1, 3, |batch| (batch * 1000..(batch + 1) * 1000).collect());
    let columns = "k => 10, quasi => ['age'], sensitive => ['ill'], kept => ['id'], identifier => ['postcode']";
    for (arguments, expected) in [
        ("", "an unbounded table cannot be anonymised as a whole"),
        (", window => 1000", "columns.age.domain = [0, 120]"),
        (", window => 1000", "columns.age.hierarchy.widths"),
        (", window => 1000", "throng survey"),
        (", window => 9", "window.rows: is 9, but a class has at least k = 10 rows"),
        (", window_time => '10m'", "window.rows: is missing: time alone"),
        (", window => 1000, max_loss => 0.5", "set window.max-loss"),
    ] {
        let query = format!("SELECT * FROM anonymize((SELECT * FROM people), {columns}{arguments})");
        let refused = async { context.sql(&query).await?.create_physical_plan().await }.await.unwrap_err().to_string();
        assert!(refused.contains(expected), "{arguments}: {refused}");
    }
    let few = session(100_000).0;
    streaming_table(&few, 1, 30, |batch| (batch * 1000..(batch + 1) * 1000).collect());
    register_policy(&few, "people", policy(Window::of_rows(20_000))).unwrap();
    let refused = recount(&few, "SELECT * FROM anonymize('people', 'people')", 30_000).await.unwrap_err().to_string();
    assert!(refused.contains("a window of 20000 rows") && refused.contains("lower window.rows"), "{refused}");
}

/// People of one illness make no class: they wait until others come, or in vain.
#[tokio::test(flavor = "multi_thread")]
async fn rows_wait_for_those_who_make_a_class_with_them() {
    fn of_one_illness(batch: i64) -> Vec<i64> {
        (batch * 10_000..).filter(|id| illness_of(*id) == ILLNESSES[0]).take(1000).collect()
    }
    let lonely_first = |batch: i64| match batch {
        0 => of_one_illness(0),
        batch => (batch * 10_000..batch * 10_000 + 1000).collect(),
    };
    for (ids, window, expected_suppressed) in [
        (lonely_first as fn(i64) -> Vec<i64>, Window::of_rows(1000), 0),
        (lonely_first, Window::of_rows(1000).with_max_wait(0), 1000),
        // Whoever comes last has nobody to wait for.
        (of_one_illness, Window::of_rows(1000).with_max_wait(9), 4000),
    ] {
        let (context, _) = session(256 << 20);
        let policy = Policy::builder(K as u32)
            .column("id", Column::kept())
            .column("age", Column::quasi().with_domain(0.0, 120.0))
            .column("postcode", Column::quasi().with_hierarchy(HierarchySpec::mask_right()))
            .column("ill", Column::sensitive())
            .rule(LDiversity::distinct("ill", L as u32))
            .max_suppression(1.0)
            .window(window)
            .build()
            .unwrap();
        register_policy(&context, "people", policy).unwrap();
        streaming_table(&context, 1, 4, ids);
        let found = recount(&context, "SELECT * FROM anonymize('people', 'people')", 50_000).await.unwrap();
        assert_eq!((found.suppressed, found.published), (expected_suppressed, 4000 - expected_suppressed));
        if found.published > 0 {
            found.check(4000);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_suppression_than_allowed_ends_the_stream() {
    let (context, _) = session(256 << 20);
    register_policy(&context, "people", policy(Window::of_rows(1000).with_max_wait(0))).unwrap();
    let ids = |batch: i64| (batch * 10_000..).filter(|id| illness_of(*id) == ILLNESSES[0]).take(1000).collect();
    streaming_table(&context, 1, 4, ids);
    let refused =
        recount(&context, "SELECT * FROM anonymize('people', 'people')", 50_000).await.unwrap_err().to_string();
    assert!(refused.contains("1000 of 1000 rows (100.00 %)") && refused.contains("window.max-wait"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn time_closes_a_window_that_does_not_fill() {
    let (context, _) = session(256 << 20);
    register_policy(&context, "people", policy(Window::of_rows(100_000).with_time("200ms"))).unwrap();
    let ids = |batch: i64| (batch * 300..(batch + 1) * 300).collect();
    let partition = Arc::new(Endless { hangs: true, schema: schema(), batches: 2, ids });
    let table = StreamingTable::try_new(schema(), vec![partition]).unwrap().with_infinite_table(true);
    context.register_table("people", Arc::new(table)).unwrap();
    let plan = context.sql("SELECT * FROM anonymize('people', 'people')").await.unwrap();
    let mut stream = plan.execute_stream().await.unwrap();
    let first = stream.next().await.unwrap().unwrap();
    assert!(first.num_rows() > 400, "{} rows", first.num_rows());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_dropped_lets_go_of_everything() {
    let (context, peak) = session(256 << 20);
    register_policy(&context, "people", policy(Window::of_rows(2000).with_subject(["id"], 1000))).unwrap();
    streaming_table(&context, 1, i64::MAX, |batch| (batch * 1000..(batch + 1) * 1000).collect());
    let plan = context.sql("SELECT * FROM anonymize('people', 'people')").await.unwrap();
    let mut stream = plan.execute_stream().await.unwrap();
    assert!(stream.next().await.unwrap().unwrap().num_rows() > 0, "rows leave before the stream ends");
    assert!(peak.reserved() > 0);
    drop(stream);
    assert_eq!(peak.reserved(), 0);
}

#[test]
fn a_survey_serves_streams_and_runs_of_its_own_policy() {
    let desk = Desk::new();
    crate::support::write_parquet(&desk.path("in.parquet"), &rows(0..3000));
    let job = "privacy.k = 10\n[columns]\nid.role = \"identifier\"\nage.role = \"quasi\"\npostcode.role = \"quasi\"\n\
               ill.role = \"sensitive\"\n";
    desk.job(job);
    desk.throng("survey", &["-o", &desk.name("people.survey")]).ok();
    assert!(!fs::read(desk.path("people.survey")).unwrap().is_empty());
    desk.throng("survey", &["-o", &desk.name("out/people.survey")]).refused(3, &["inside the sink"]);
    // Another table of the same kind, with values that the survey has not seen.
    crate::support::write_parquet(&desk.path("in.parquet"), &rows(2000..9000));
    desk.run(&["--survey", &desk.name("people.survey")]).ok();
    let manifest = crate::support::manifest(&desk.path("out"));
    assert_eq!(manifest["rows"].as_u64().unwrap() + manifest["suppressed"].as_u64().unwrap(), 7000);
    let survey = fs::read(desk.path("people.survey")).unwrap();
    desk.run(&["--survey", &desk.name("people.survey"), "--set", "privacy.k=11", "--run-id", "b"])
        .refused(3, &["people.survey", "under another policy"]);
    fs::write(desk.path("damaged.survey"), &survey[..survey.len() - 1]).unwrap();
    desk.run(&["--survey", &desk.name("damaged.survey"), "--run-id", "b"]).refused(4, &["damaged"]);
    let text = format!("method.seed = 42\n{job}[window]\nrows = 1000\nsurvey = \"{}\"\n", desk.name("people.survey"));
    let opened = Policy::from_table(toml::from_str(&text).unwrap(), Path::new(".")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (context, _) = session(256 << 20);
        register_policy(&context, "people", opened).unwrap();
        streaming_table(&context, 1, 12, |batch| (batch * 1000..(batch + 1) * 1000).collect());
        let published = context.sql("SELECT age FROM anonymize('people', 'people')").await.unwrap();
        let published = published.collect().await.unwrap();
        let count: usize = published.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(count, 12_000, "k alone leaves nobody over");
    });
}
