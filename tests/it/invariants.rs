//! Random tables under random policies: every class is large and diverse enough, every published value covers the
//! original one, and no row is lost, added or changed. All of it is counted here, from the files, without Throng.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, LargeStringArray,
    ListArray, RecordBatch, StringArray, StringViewArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray, UInt8Array, UInt32Array,
};
use datafusion::arrow::compute::{cast, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Int32Type};
use fastrand::Rng;
use proptest::prelude::*;
use proptest::sample::select;

use crate::readings::Reading::{Bounds, Calendar, Centroid, Ladder, LineLabel, MaskLeft, MaskRight, Range, Set, Tree};
use crate::readings::{Reading, TINY_TREE, TREE, assert_central};
use crate::support::{Desk, batch, lines, multiset, texts};

/// A type of column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Small,
    Huge,
    Tiny,
    Real,
    Money,
    Day,
    Moment,
    Instant,
    Clock,
    Flag,
    Word,
    LargeWord,
    WordView,
    Term,
}

const KINDS: [Kind; 14] = [
    Kind::Small,
    Kind::Huge,
    Kind::Tiny,
    Kind::Real,
    Kind::Money,
    Kind::Day,
    Kind::Moment,
    Kind::Instant,
    Kind::Clock,
    Kind::Flag,
    Kind::Word,
    Kind::LargeWord,
    Kind::WordView,
    Kind::Term,
];

/// Texts with shared beginnings and ends, of none and of several bytes; some are not in the tree.
const WORDS: [&str; 10] = ["NW1", "NW10", "NW2", "SE1", "SE10", "S", "éa", "", "éb", "a b"];

impl Kind {
    /// Options that a column of this type can have in the job file, and how what it publishes is read.
    fn options(self) -> Vec<(String, Reading)> {
        let line = [("", Range), ("publish = \"bounds\"", Bounds), ("publish = \"label\"", LineLabel)];
        let mean = ("publish = \"centroid\"", Centroid);
        let text = |options: &[(&str, Reading)]| -> Vec<(String, Reading)> {
            options.iter().map(|(option, reading)| ((*option).to_owned(), *reading)).collect()
        };
        let mut options = match self {
            Self::Clock => text(&line),
            Self::Flag => text(&[("", Set), ("publish = \"label\"", Set)]),
            Self::Word | Self::LargeWord | Self::WordView | Self::Term => text(&[
                ("", Set),
                ("hierarchy.mask = \"right\"", MaskRight),
                ("hierarchy = { mask = \"left\", keep = [2, 1] }", MaskLeft),
            ]),
            _ => text(&[line[0], line[1], line[2], mean]),
        };
        options.extend(match self {
            Self::Small => text(&[
                ("hierarchy.widths = [5, 25]", Ladder),
                ("hierarchy.bounds = [[-20, 0, 20], [0]]", Ladder),
                ("hierarchy.quantiles = [8, 2]", Ladder),
                ("domain = [-10, 10]", Range),
            ]),
            Self::Huge => text(&[("hierarchy.widths = [1000, 1000000]", Ladder)]),
            Self::Tiny => vec![
                ("hierarchy.mask = \"right\"".to_owned(), MaskRight),
                (format!("hierarchy.tree = {TINY_TREE}, unknown = \"top\""), Tree),
            ],
            Self::Real => text(&[("hierarchy.widths = [0.1, 2.5]", Ladder), ("hierarchy.quantiles = [4]", Ladder)]),
            Self::Money => text(&[("hierarchy = { widths = [0.5, 10], origin = 0.25 }", Ladder)]),
            Self::Day | Self::Moment | Self::Instant => text(&[
                ("hierarchy.calendar = [\"month\", \"year\"]", Calendar),
                ("hierarchy.calendar = [\"day\", \"quarter\", \"decade\"]", Calendar),
            ]),
            Self::Word | Self::LargeWord | Self::WordView | Self::Term => {
                vec![(format!("hierarchy.tree = {TREE}, unknown = \"top\""), Tree)]
            }
            Self::Clock | Self::Flag => Vec::new(),
        });
        options
    }

    /// A column of random values, close together or wide apart, at least one of them there.
    fn column(self, rows: usize, nulls: f64, wide: bool, rng: &mut Rng) -> ArrayRef {
        let missing: Vec<bool> = (0..rows).map(|row| row > 0 && rng.f64() < nulls).collect();
        let spread = if wide { 1000 } else { 4 };
        let numbers: Vec<i64> = (0..rows).map(|_| rng.i64(-spread..=spread)).collect();
        let present = || numbers.iter().zip(&missing).map(|(number, missing)| (!missing).then_some(*number));
        let word = |number: i64| WORDS[number.unsigned_abs() as usize % if wide { 10 } else { 5 }];
        let words = || present().map(|number| number.map(word));
        // Some eighty years around 1970, to the microsecond.
        let moment = |number: i64| number * 1_234_567_890_123 + number;
        match self {
            Self::Small => Arc::new(present().map(|number| number.map(|n| n as i32)).collect::<Int32Array>()),
            Self::Huge => Arc::new(present().map(|number| number.map(|n| (1 << 60) + n)).collect::<Int64Array>()),
            Self::Tiny => {
                Arc::new(present().map(|number| number.map(|n| n.rem_euclid(200) as u8)).collect::<UInt8Array>())
            }
            Self::Real => {
                let real = |n: i64| match n {
                    3 if wide => f64::NAN,
                    0 => -0.0,
                    n => n as f64 * 0.1,
                };
                Arc::new(present().map(|number| number.map(real)).collect::<Float64Array>())
            }
            Self::Money => {
                let money = present().map(|number| number.map(i128::from)).collect::<Decimal128Array>();
                Arc::new(money.with_precision_and_scale(12, 2).unwrap())
            }
            Self::Day => Arc::new(present().map(|number| number.map(|n| n as i32 * 14)).collect::<Date32Array>()),
            Self::Moment => {
                let moments = present().map(|number| number.map(moment)).collect::<TimestampMicrosecondArray>();
                Arc::new(moments.with_timezone("Europe/Berlin"))
            }
            Self::Instant => Arc::new(
                present().map(|number| number.map(|n| moment(n) * 1000 + n)).collect::<TimestampNanosecondArray>(),
            ),
            Self::Clock => Arc::new(
                present().map(|number| number.map(|n| (n + 1000) * 43_000_001)).collect::<Time64MicrosecondArray>(),
            ),
            Self::Flag => Arc::new(present().map(|number| number.map(|n| n > 0)).collect::<BooleanArray>()),
            Self::Word => Arc::new(words().collect::<StringArray>()),
            Self::LargeWord => Arc::new(words().collect::<LargeStringArray>()),
            Self::WordView => Arc::new(words().collect::<StringViewArray>()),
            Self::Term => {
                let plain: ArrayRef = Arc::new(words().collect::<StringArray>());
                cast(&plain, &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))).unwrap()
            }
        }
    }
}

/// A quasi-identifier of a random table.
#[derive(Debug, Clone)]
struct Quasi {
    kind: Kind,
    options: String,
    reading: Reading,
    nulls: f64,
    wide: bool,
}

fn quasi() -> impl Strategy<Value = Quasi> {
    let kind = select(&KINDS[..]);
    let choice = kind.prop_flat_map(|kind| (Just(kind), select(kind.options())));
    (choice, select(&[0.0, 0.1, 0.6][..]), any::<bool>()).prop_map(|((kind, (options, reading)), nulls, wide)| Quasi {
        kind,
        options,
        reading,
        nulls,
        wide,
    })
}

/// A random table and policy.
#[derive(Debug, Clone)]
struct Case {
    rows: usize,
    seed: u64,
    columns: Vec<Quasi>,
    k: usize,
    l: Option<usize>,
    /// A further rule on the sensitive column.
    rule: &'static str,
    /// Whether k counts people.
    persons: bool,
    method: &'static str,
    /// Rows per cell; none: the whole table is one.
    cell_rows: Option<usize>,
    partitions: usize,
    batch_rows: usize,
}

const METHODS: [&str; 9] = [
    "name = \"auto\"",
    "name = \"auto\"\nauto.effort = \"fast\"",
    "name = \"auto\"\nauto.effort = \"thorough\"",
    "name = \"mondrian\"",
    "name = \"mondrian\"\nmondrian.variant = \"relaxed\"",
    "name = \"toc\"",
    "name = \"toc\"\ntoc = { s = 20, delta = 0.4 }",
    "name = \"upc\"\ns = 30",
    "name = \"k-members\"",
];

/// Rules on the sensitive column of the random tables, mild and strict.
const RULES: [&str; 7] = [
    "",
    "t-closeness = { column = \"ill\", t = 0.4 }",
    "t-closeness = { column = \"ill\", t = 0.15 }",
    "alpha-k = { column = \"ill\", alpha = 0.5 }",
    "delta-disclosure = { column = \"ill\", delta = 1.0 }",
    "beta-likeness = { column = \"ill\", beta = 1.5, kind = \"enhanced\" }",
    "p-sensitive = { column = \"ill\", p = 3 }",
];

fn case() -> impl Strategy<Value = Case> {
    let table = (10_usize..140, any::<u64>(), prop::collection::vec(quasi(), 1..5));
    let rules = (prop::option::weighted(0.4, 2_usize..4), select(&RULES[..]), prop::bool::weighted(0.3));
    let policy = (2_usize..9, rules, select(&METHODS[..]));
    let engine = (prop::option::weighted(0.3, 20_usize..60), select(&[1_usize, 2, 3, 8][..]), 1_usize..200);
    (table, policy, engine).prop_map(
        |((rows, seed, columns), (k, (l, rule, persons), method), (cell_rows, partitions, batch_rows))| Case {
            rows,
            seed,
            columns,
            k,
            l,
            rule,
            persons,
            method,
            cell_rows,
            partitions,
            batch_rows,
        },
    )
}

/// Whose a row is: some have one, some several.
fn person(id: i64) -> i64 {
    id * id % 61 % 40
}

impl Case {
    fn table(&self) -> RecordBatch {
        let mut rng = Rng::with_seed(self.seed);
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..self.rows as i64));
        let ills = (0..self.rows).map(|_| [Some("flu"), Some("gout"), Some("rash"), None][rng.usize(0..4)]);
        let ills: ArrayRef = Arc::new(ills.collect::<StringArray>());
        let notes = (0..self.rows).map(|row| (row % 7 > 0).then(|| vec![Some(row as i32); row % 3]));
        let notes: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(notes));
        let names: Vec<String> = (0..self.columns.len()).map(|number| format!("q{number}")).collect();
        let owners: ArrayRef = Arc::new(Int64Array::from_iter_values((0..self.rows as i64).map(person)));
        let mut columns = vec![("id", ids), ("ill", ills), ("note", notes), ("owner", owners)];
        for (name, quasi) in names.iter().zip(&self.columns) {
            columns.push((name, quasi.kind.column(self.rows, quasi.nulls, quasi.wide, &mut rng)));
        }
        batch(columns)
    }

    fn job(&self) -> String {
        let mut job = format!("[privacy]\nk = {}\nmax-suppression = 1.0\n", self.k);
        if let Some(l) = self.l {
            job += &format!("l-diversity = {{ column = \"ill\", l = {l} }}\n");
        }
        if !self.rule.is_empty() {
            job += &format!("{}\n", self.rule);
        }
        if self.persons {
            job += "person = \"owner\"\n";
        }
        if self.method.contains("upc") {
            job += "max-loss = 1.0\nrange-diversity = { column = \"ill\", p = 0.9 }\n";
        }
        job += &format!("[method]\n{}\n[columns]\nid.role = \"kept\"\nnote.role = \"kept\"\n", self.method);
        job += "ill.role = \"sensitive\"\nowner.role = \"identifier\"\n";
        for (number, quasi) in self.columns.iter().enumerate() {
            let comma = if quasi.options.is_empty() { "" } else { ", " };
            job += &format!("q{number} = {{ role = \"quasi\", constant = \"allow\"{comma}{} }}\n", quasi.options);
        }
        job
    }

    /// Whether one group of all rows would do, so that the run has to find a release and leave nothing out.
    fn is_easy(&self) -> bool {
        let only_k = self.l.is_none() && self.rule.is_empty() && !self.persons;
        self.cell_rows.is_none() && only_k && !self.method.contains("upc")
    }

    fn check(&self) {
        let source = self.table();
        let desk = Desk::new();
        crate::support::write_parquet(&desk.path("in.parquet"), &source);
        desk.job(&self.job());
        let (partitions, batch_rows) = (self.partitions.to_string(), self.batch_rows.to_string());
        let cell_rows = self.cell_rows.unwrap_or(1_000_000).to_string();
        let engine = ["--partitions", &partitions, "--batch-rows", &batch_rows, "--cell-rows", &cell_rows, "--json"];
        let ran = desk.run(&engine);
        self.check_again(&source, &cell_rows, ran.code, &desk);
        if ran.code == Some(5) && !self.is_easy() {
            assert!(desk.sink_files().is_empty(), "nothing is written");
            return;
        }
        let ran = ran.ok();
        let manifest: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let suppressed = manifest["suppressed"].as_u64().unwrap() as usize;
        let published = desk.released();
        self.check_rows(&source, &published, suppressed);
        desk.throng("verify", &[]).ok();
    }

    /// The same rows the other way round, by another number of partitions and rows per batch: the same release.
    fn check_again(&self, source: &RecordBatch, cell_rows: &str, code: Option<i32>, first: &Desk) {
        let backwards = UInt32Array::from_iter_values((0..source.num_rows() as u32).rev());
        let desk = Desk::new();
        crate::support::write_parquet(&desk.path("in.parquet"), &take_record_batch(source, &backwards).unwrap());
        desk.job(&self.job());
        let partitions = match self.partitions {
            1 => "8",
            2 => "3",
            3 => "1",
            _ => "2",
        };
        let batch_rows = (self.batch_rows % 97 + 5).to_string();
        let engine = ["--partitions", partitions, "--batch-rows", &batch_rows, "--cell-rows", cell_rows, "--quiet"];
        assert_eq!(desk.run(&engine).code, code, "the same end");
        if code == Some(0) {
            assert!(multiset(&desk.released()) == multiset(&first.released()), "the same rows are published");
        }
    }

    fn check_rows(&self, source: &RecordBatch, published: &RecordBatch, suppressed: usize) {
        assert_eq!(published.num_rows() + suppressed, self.rows, "rows published and suppressed are the rows read");
        assert!(suppressed == 0 || !self.is_easy(), "{suppressed} rows are suppressed without need");

        let ids: Vec<i64> = texts(published, "id").iter().map(|id| id.parse().unwrap()).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "no row is published twice");
        let places = UInt32Array::from_iter_values(ids.iter().map(|id| *id as u32));
        let original = take_record_batch(source, &places).unwrap();
        let unchanged = ["id", "ill", "note"].map(str::to_owned);
        assert_eq!(lines(published, &unchanged), lines(&original, &unchanged), "kept columns are as they were");

        let mut class_columns = Vec::new();
        for (number, quasi) in self.columns.iter().enumerate() {
            let name = format!("q{number}");
            quasi.reading.assert_covers(&name, published, &original);
            class_columns.extend(quasi.reading.columns(&name));
        }
        let mut classes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (row, line) in lines(published, &class_columns).into_iter().enumerate() {
            classes.entry(line).or_default().push(row);
        }
        let ills = texts(published, "ill");
        for rows in classes.values() {
            assert!(rows.len() >= self.k, "a class of {} rows", rows.len());
            let people = rows.iter().map(|row| person(ids[*row])).collect::<BTreeSet<_>>().len();
            assert!(!self.persons || people >= self.k, "a class of {people} people");
            let variety = rows.iter().map(|row| &ills[*row]).collect::<BTreeSet<_>>().len();
            assert!(variety >= self.l.unwrap_or(1), "a class with {variety} sensitive values");
        }
        let classes: Vec<Vec<usize>> = classes.into_values().collect();
        for (number, quasi) in self.columns.iter().enumerate() {
            if quasi.reading == Reading::Centroid {
                assert_central(&format!("q{number}"), published, &original, &classes);
            }
        }
    }
}

/// Cases of a run: a few, as each is a whole job; `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(32)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_tables_and_policies(case in case()) {
        case.check();
    }
}

/// Every type with every option it can have, one after another: the random cases meet only some of them.
#[test]
fn every_kind_of_column() {
    let mut seed = 1;
    for kind in KINDS {
        let columns: Vec<Quasi> = kind
            .options()
            .into_iter()
            .map(|(options, reading)| Quasi { kind, options, reading, nulls: 0.05, wide: true })
            .collect();
        for wide in [false, true] {
            let columns = columns.iter().map(|quasi| Quasi { wide, ..quasi.clone() }).collect();
            let case = Case {
                rows: 120,
                seed,
                columns,
                k: 4,
                l: None,
                rule: "",
                persons: wide,
                method: METHODS[0],
                cell_rows: None,
                partitions: 2,
                batch_rows: 50,
            };
            seed += 1;
            case.check();
        }
    }
}
