//! Every method of the list from end to end: the same release for any number of partitions, verified; and the two tables
//! of the form `anatomy`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch, UInt64Array};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::UInt64Type;
use throng_core::methods::METHODS;

use crate::support::{
    Desk, counts, lines, manifest, multiset, read_parquet, released_files, texts, throng, write_parquet,
};
use crate::tables::{JOB, assert_no_values, people};

/// Several cells, and rules that every kind of method builds for.
const CENSUS: &str = "
[privacy]
k = 4
max-loss = 0.95
max-suppression = 0.5
l-diversity = { column = \"diagnosis\", l = 3 }
range-diversity = { column = \"income\", p = 0.9, ranges.interval = 2000.0 }
[defaults]
role = \"identifier\"
[columns]
age.role = \"quasi\"
sex.role = \"quasi\"
postcode = { role = \"quasi\", hierarchy.mask = \"right\" }
marital_status = { role = \"quasi\", hierarchy = \"marital_status.csv\" }
diagnosis.role = \"sensitive\"
income.role = \"sensitive\"
household_size.role = \"kept\"
";

const ROWS: usize = 1500;

/// All rows of the newest release by the folder of their files: one folder, or one for each table.
fn tables(sink: &Path) -> BTreeMap<String, RecordBatch> {
    let mut parts: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in released_files(sink) {
        let folder = file.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let folder = if folder.starts_with("run=") { "rows".to_owned() } else { folder };
        parts.entry(folder).or_default().push(file);
    }
    let read = |files: Vec<PathBuf>| {
        let rows: Vec<RecordBatch> = files.iter().map(|file| read_parquet(file)).collect();
        concat_batches(&rows[0].schema(), &rows).unwrap()
    };
    parts.into_iter().map(|(folder, files)| (folder, read(files))).collect()
}

/// Methods that work by something that this job does not have; they have tests of their own.
const ASK_FOR_MORE: [&str; 3] = ["mpalm", "spalm", "combined"];

/// What the methods that preserve dependencies preserve here: it holds for some rows only.
const DEPENDENCY: &str = "dependencies=[{ from = [\"age\"], to = [\"marital_status\"], tolerance = 0.8 }]";

#[test]
fn every_method_publishes_the_same_for_any_number_of_partitions() {
    let desk = Desk::new();
    throng(&["generate", &desk.name("in.parquet"), "--rows", &ROWS.to_string(), "--seed", "3", "--quiet"]).ok();
    let hierarchies = Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines/hierarchies");
    fs::copy(hierarchies.join("marital_status.csv"), desk.path("marital_status.csv")).unwrap();
    desk.job(CENSUS);
    for entry in METHODS.iter().filter(|entry| !ASK_FOR_MORE.contains(&entry.name)) {
        let name = format!("method.name=\"{}\"", entry.name);
        let published = |sink: &str, more: &[&str]| {
            let set = format!("sink.url={sink}");
            // Cells of a fifth of the rows, unless the method must see all of them.
            let cell = if entry.whole { ROWS } else { 400 };
            let cell = cell.to_string();
            let fixed = ["--cell-rows", &cell, "--set", "measures.source=true", "--set", &name, "--set", &set];
            // Tuning on a sample is tested once, elsewhere: it takes longer than the run.
            let tuned: &[&str] = match entry.name {
                "toc" => &["--set", "method.toc.delta=0.4", "--set", "method.toc.s=40"],
                "upc" => &["--set", "method.upc.s=40"],
                "pair-enum" | "k-assemble" => &["--set", DEPENDENCY],
                // A sensitive value beside quasi-identifiers would be revealed by them.
                "slicing" => &["--set", "method.slices=[[\"diagnosis\"], [\"income\"]]"],
                _ => &[],
            };
            desk.run(&[&fixed, tuned, more].concat()).ok();
            desk.throng(
                "verify",
                &["--set", &name, "--set", &set].into_iter().chain(tuned.iter().copied()).collect::<Vec<_>>(),
            )
            .ok();
            let found = manifest(&desk.path(sink));
            let cells = found["cells"].as_u64().unwrap();
            // Where rows were suppressed, the number of cells follows from them too.
            let complete = found["suppressed"] == 0;
            assert!(!complete || if entry.whole { cells == 1 } else { cells > 2 }, "the test is about several cells");
            let rows = found["rows"].as_u64().unwrap() + found["suppressed"].as_u64().unwrap();
            assert_eq!(rows, ROWS as u64, "{}", entry.name);
            tables(&desk.path(sink)).into_iter().map(|(table, rows)| (table, multiset(&rows))).collect::<Vec<_>>()
        };
        let one = published(&format!("{}-one", entry.name), &["--partitions", "1"]);
        let many = published(&format!("{}-many", entry.name), &["--partitions", "5", "--batch-rows", "100"]);
        assert!(one == many, "{} depends on partitions or batches", entry.name);
    }
}

/// What was tuned follows all rows of the source. Where some are not published, no output may reveal it: not manifest,
/// summary, page, plan, sweep or log.
#[test]
fn tuned_parameters_are_told_only_where_every_row_is_published() {
    let rows = 240;
    let age = Int32Array::from_iter((0..rows).map(|row| (row % 40 > 0).then_some(20 + row * 7 % 50)));
    let zip = Int32Array::from_iter_values((0..rows).map(|row| 700_100 + row * 13 % 60));
    let pay = Int32Array::from_iter_values((0..rows).map(|row| 900_100 + row * 31 % 97));
    let columns = vec![
        ("age", Arc::new(age) as ArrayRef),
        ("zip", Arc::new(zip) as ArrayRef),
        ("pay", Arc::new(pay) as ArrayRef),
    ];
    let job = "privacy = { k = 4, max-suppression = 0.5 }\nmethod.name = \"toc\"\nmeasures.source = true\n[columns]\nage = { role = \"quasi\" }\n\
               zip.role = \"quasi\"\npay.role = \"sensitive\"\n";
    let desk = Desk::with(columns, job);
    let unasked = desk.run(&["--set", "measures.source=false", "--set", "sink.url=\"unasked\""]).ok().out;
    assert!(!unasked.contains("found from a sample") && manifest(&desk.path("unasked")).get("tuned").is_none());
    let whole = desk.run(&[]).ok().out;
    let tuned = manifest(&desk.path("out"))["tuned"].clone();
    assert!(tuned["delta"].is_number() && tuned["s"].is_number(), "{tuned}");
    assert!(whole.contains("found from a sample: delta = "));

    let part = ["--set", "columns.age.nulls=drop", "--set", "sink.url=part"];
    let run = desk.run(&[&part[..], &["-vvv"]].concat()).ok();
    let reported = manifest(&desk.path("part"));
    assert!(reported["rows"].as_u64() < reported["rows_read"].as_u64(), "the test wants rows that are not published");
    assert!(
        reported.get("tuned").is_none_or(|tuned| tuned.as_object().is_some_and(serde_json::Map::is_empty)),
        "{reported}"
    );
    throng(&["report", &desk.name("part"), "-o", &desk.name("page.html")]).ok();
    let page = fs::read_to_string(desk.path("page.html")).unwrap();
    let explained = desk.throng("plan", &part).ok();
    let swept = desk.throng("sweep", &[&part[..], &["--method", "toc", "--json", "--k", "4"]].concat()).ok();
    let all = [run.out, run.err, page, explained.out, explained.err, swept.out, swept.err];
    for text in all {
        let found = ["found from a sample", "Found from a sample", "Tuned", "delta:", "delta =", "delta\":", "least:"];
        let lines = text.lines().filter(|line| found.iter().any(|word| line.contains(word)));
        assert_eq!(lines.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}

/// Whole columns are generalised: all rows are seen at once or none, and levels are not mixed.
#[test]
fn full_domain_raises_whole_columns_of_whole_tables() {
    let desk = Desk::new();
    throng(&["generate", &desk.name("in.parquet"), "--rows", &ROWS.to_string(), "--seed", "3", "--quiet"]).ok();
    desk.job(
        "privacy = { k = 4, max-suppression = 0.0 }\nmethod.name = \"full-domain\"\ndefaults.role = \"identifier\"\n[columns]\n\
         age = { role = \"quasi\", hierarchy.widths = [5, 10, 20, 40, 80] }\nsex.role = \"quasi\"\n\
         postcode = { role = \"quasi\", hierarchy.mask = \"right\" }\ndiagnosis.role = \"sensitive\"\n",
    );
    let several = desk.run(&["--cell-rows", "400"]);
    several.refused(6, &["`full-domain` must see all rows at once", "1500 rows make", "raise --cell-rows"]);
    assert!(desk.sink_files().is_empty());
    let gcp = |cost: &str| {
        let sink = format!("sink.url=\"{cost}\"");
        let set = format!("method.full-domain.cost=\"{cost}\"");
        desk.run(&["--set", &sink, "--set", &set]).ok();
        desk.throng("verify", &["--set", &sink, "--set", &set]).ok();
        // A trial gives the loss that the method lowers; the manifest measures masks by the characters that they hide.
        let swept = desk.name(&format!("{cost}.json"));
        let trial = ["--k", "4", "--method", "full-domain", "--output", &swept, "--quiet", "--set", &set];
        desk.throng("sweep", &trial).ok();
        let trials: serde_json::Value = serde_json::from_str(&fs::read_to_string(&swept).unwrap()).unwrap();
        let found = manifest(&desk.path(cost));
        (trials[0]["scores"]["gcp"].as_f64().unwrap(), found["scores"]["dm"].as_f64().unwrap())
    };
    let [loss, dm, height] = ["loss", "discernibility", "height"].map(gcp);
    assert!(loss.0 <= dm.0 && loss.0 <= height.0, "{loss:?} {dm:?} {height:?}");
    assert!(dm.1 <= loss.1 && dm.1 <= height.1, "{loss:?} {dm:?} {height:?}");
}

const ANATOMY: &str = "privacy.k = 3\nprivacy.l-diversity = { column = \"ill\", l = 3 }\nmethod.name = \"anatomy\"";

fn anatomy() -> Desk {
    let desk = Desk::with(people(240), &JOB.replace("privacy.k = 5", ANATOMY));
    desk.run(&["--partitions", "2"]).ok();
    desk.throng("verify", &[]).ok();
    desk
}

fn groups(rows: &RecordBatch) -> Vec<u64> {
    rows.column_by_name("group").unwrap().as_primitive::<UInt64Type>().values().to_vec()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn anatomy_publishes_two_tables_linked_by_group() {
    let desk = anatomy();
    let tables = tables(&desk.path("out"));
    assert_eq!(tables.keys().collect::<Vec<_>>(), ["qit", "st"]);
    let (qit, st) = (&tables["qit"], &tables["st"]);
    let columns =
        |rows: &RecordBatch| rows.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    assert_eq!(columns(qit), ["id", "age", "town", "group"]);
    assert_eq!(columns(st), ["group", "ill", "count"]);

    // The left table is the source without its sensitive column.
    let source = read_parquet(&desk.path("in.parquet"));
    let exact = names(&["id", "age", "town"]);
    assert_eq!(counts(lines(qit, &exact)), counts(lines(&source, &exact)));

    // Every group has k rows, three illnesses, and as many counted as it has rows: the right ones.
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    groups(qit).into_iter().for_each(|group| *sizes.entry(group).or_default() += 1);
    let counted = st.column_by_name("count").unwrap().as_primitive::<UInt64Type>().values().to_vec();
    let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (group, count) in groups(st).into_iter().zip(&counted) {
        let sum = sums.entry(group).or_default();
        *sum = (sum.0 + count, sum.1 + 1);
    }
    assert_eq!(sizes.keys().collect::<Vec<_>>(), sums.keys().collect::<Vec<_>>());
    assert!(sizes.iter().all(|(group, size)| *size >= 3 && sums[group].0 == *size && sums[group].1 >= 3));
    let ill_of: BTreeMap<String, String> = texts(&source, "id").into_iter().zip(texts(&source, "ill")).collect();
    let mut true_ills: BTreeMap<(u64, String), u64> = BTreeMap::new();
    for (group, id) in groups(qit).into_iter().zip(texts(qit, "id")) {
        *true_ills.entry((group, ill_of[&id].clone())).or_default() += 1;
    }
    let reported: BTreeMap<(u64, String), u64> = groups(st).into_iter().zip(texts(st, "ill")).zip(counted).collect();
    assert_eq!(reported, true_ills);

    let manifest = manifest(&desk.path("out"));
    assert_eq!((manifest["form"].as_str(), manifest["rows"].as_u64()), (Some("anatomy"), Some(240)));
    assert_eq!(manifest["class_columns"], serde_json::json!(["group"]));
}

/// The place of a row in its group must not reveal its illness: the buckets are filled value by value, and that
/// order is forgotten.
#[test]
fn anatomy_forgets_the_order_of_its_buckets() {
    let desk = anatomy();
    let tables = tables(&desk.path("out"));
    let (qit, source) = (&tables["qit"], read_parquet(&desk.path("in.parquet")));
    let ill_of: BTreeMap<String, String> = texts(&source, "id").into_iter().zip(texts(&source, "ill")).collect();
    let mut first: BTreeMap<u64, String> = BTreeMap::new();
    for (group, id) in groups(qit).into_iter().zip(texts(qit, "id")) {
        first.entry(group).or_insert_with(|| ill_of[&id].clone());
    }
    let ills = counts(first.into_values().collect());
    assert!(ills.len() == 3 && ills.values().all(|count| *count >= 10), "{ills:?}");
}

#[test]
fn tables_that_do_not_fit_together_are_found() {
    let change = |table: &str, change: &dyn Fn(&RecordBatch) -> RecordBatch, words: &[&str]| {
        let desk = anatomy();
        let file = released_files(&desk.path("out")).into_iter().find(|file| file.to_str().unwrap().contains(table));
        let file = file.unwrap();
        write_parquet(&file, &change(&read_parquet(&file)));
        let found = desk.throng("verify", &[]);
        found.refused(5, words);
        assert_no_values(&found.err);
    };
    let counted = |rows: &RecordBatch| {
        let mut counts = rows.column_by_name("count").unwrap().as_primitive::<UInt64Type>().values().to_vec();
        counts[0] += 1;
        let mut columns = rows.columns().to_vec();
        columns[2] = std::sync::Arc::new(UInt64Array::from(counts));
        RecordBatch::try_new(rows.schema(), columns).unwrap()
    };
    change("/st/", &counted, &["groups: 1 groups do not hold as many sensitive values as rows"]);
    let shorter = |rows: &RecordBatch| rows.slice(1, rows.num_rows() - 1);
    change("/qit/", &shorter, &["groups: 1 groups do not hold", "truthful: 1 rows of the source were lost or changed"]);
    change("/st/", &shorter, &["groups: 1 groups do not hold", "l-diversity: 1 classes"]);
}

#[test]
fn columns_that_link_the_tables_must_be_free() {
    let mut columns = people(60);
    columns[0].0 = "group";
    let desk = Desk::with(columns, &JOB.replace("privacy.k = 5", ANATOMY).replace("id.role", "group.role"));
    desk.run(&[]).refused(3, &["columns.group: the form `anatomy` adds a column of this name"]);
    assert!(desk.sink_files().is_empty(), "nothing is written");
}

#[test]
fn any_method_can_publish_two_tables() {
    let rules = "privacy.k = 5\nmethod = { name = \"mondrian\", form = \"anatomy\" }";
    let desk = Desk::with(people(240), &JOB.replace("privacy.k = 5", rules));
    desk.run(&[]).ok();
    desk.throng("verify", &[]).ok();
    assert_eq!(tables(&desk.path("out"))["qit"].num_rows(), 240);
}

#[test]
fn what_the_values_allow_is_told_before_the_run() {
    let l = |l: u32, method: &str| {
        let rules =
            format!("privacy.k = 5\nprivacy.l-diversity = {{ column = \"ill\", l = {l} }}\nmethod.name = \"{method}\"");
        Desk::with(people(240), &JOB.replace("privacy.k = 5", &rules))
    };
    let reported = l(3, "kl-redinfo").throng("check", &["--data"]).ok().out;
    for line in [
        "`ill`: 3 different values in 240 rows",
        "largest l: 3; 3 if no value may exceed 1/l",
        "at most 80 groups, 0 rows left over",
        "discernibility at least 720",
    ] {
        assert!(reported.contains(line), "{reported}");
    }
    assert_no_values(&reported);
    let desk = l(4, "kl-redinfo");
    let words = ["column `ill` holds 3 different values", "lower l to at most 3"];
    desk.throng("check", &["--data"]).refused(5, &words);
    desk.run(&[]).refused(5, &words);
    assert!(desk.sink_files().is_empty(), "nothing is written");
    let empty = Desk::with(people(0), &JOB.replace("privacy.k = 5", ANATOMY));
    empty.run(&[]).refused(4, &["the input holds no rows"]);
    l(4, "mondrian").throng("check", &["--data"]).refused(5, &words);
}
