//! Faults that are planted in the code that makes a release, one at a time, and that verification catches each: a run does
//! not publish what a rule forbids, and what only the source can show, `throng verify` reports.
//!
//! `mutations` changes the files of good releases instead, so it has faults that no line of code can be made to have.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use throng_core::faults::{ENABLED, Fault};

use crate::support::{Desk, Ran, batch, command, write_parquet};

const ROWS: usize = 240;
/// A number that floating point cannot distinguish from its neighbours.
const NEAR: i64 = 123_456_789_012_345_678;
const ILLS: [&str; 8] = ["flu", "cold", "rash", "gout", "mumps", "croup", "lupus", "shingles"];
const TOWNS: [&str; 4] = ["Ash", "Alder", "Birch", "Beech"];

/// Who sees a fault, by the rule that is named.
#[derive(Debug, Clone, Copy)]
enum Seen {
    /// The run itself, which publishes nothing.
    Run(&'static str),
    /// `throng verify job.toml`, which compares with the source, though the fault is planted there, too.
    Source(&'static str),
    /// The same without the fault: what reads the source and replaces identifiers is the same code for both.
    SoundBuild(&'static str),
}

/// A job in which a fault shows.
struct Case {
    rows: RecordBatch,
    job: String,
    arguments: &'static [&'static str],
    seen: Seen,
}

fn ints(of: impl Fn(i32) -> i32) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values((0..ROWS as i32).map(of)))
}

fn longs(of: impl Fn(i64) -> i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values((0..ROWS as i64).map(of)))
}

fn words(of: impl Fn(usize) -> Option<String>) -> ArrayRef {
    Arc::new(StringArray::from_iter((0..ROWS).map(of)))
}

/// Two quasi-identifiers, a sensitive column and a kept one by which every row is known.
fn people() -> Vec<(&'static str, ArrayRef)> {
    people_of(|row| row)
}

/// The same with the quasi-identifiers of other rows. Illnesses go with age.
fn people_of(place: impl Fn(i32) -> i32) -> Vec<(&'static str, ArrayRef)> {
    let age = |row: i32| 20 + place(row) * 7 % 240;
    vec![
        ("age", ints(age)),
        ("pay", ints(|row| 3_000 + place(row) * 11 % 240 * 10)),
        ("ill", words(|row| Some(ILLS[age(row as i32) as usize / 40 % 3 + usize::from(row % 5 == 0) * 3].to_owned()))),
        ("code", longs(|row| NEAR + row)),
    ]
}

const JOB: &str = "privacy.k = 5
method.name = \"mondrian\"
defaults.role = \"kept\"
columns.age.role = \"quasi\"
columns.pay.role = \"quasi\"
columns.ill.role = \"sensitive\"
";

/// The table with a column more, and a job that says what happens to it.
fn case(column: Option<(&'static str, ArrayRef)>, job: &str, seen: Seen) -> Case {
    let mut columns = people();
    columns.extend(column);
    Case { rows: batch(columns), job: format!("{JOB}{job}"), arguments: &["--partitions", "1"], seen }
}

fn towns() -> Option<(&'static str, ArrayRef)> {
    Some(("town", words(|row| Some(TOWNS[row / 5 % 4].to_owned()))))
}

fn names() -> Option<(&'static str, ArrayRef)> {
    Some(("name", words(|row| Some(format!("Person {row}")))))
}

/// The job in which a fault shows. A new fault has no case until it has one here.
fn case_of(fault: Fault) -> Case {
    use Seen::{Run, SoundBuild, Source};
    let loss = "privacy.max-loss = 0.16\nprivacy.max-suppression = 1.0\n";
    let person = || Some(("person", longs(|row| row / 2)));
    let people = "privacy.person = \"person\"\ncolumns.person.role = \"identifier\"\n";
    let bucketise = "method.form = \"bucketise\"\n";
    match fault {
        Fault::SmallGroups => case(None, "", Run("k")),
        Fault::OnePersonMore => case(person(), people, Run("k")),
        Fault::OneValueLess => case(None, "privacy.l-diversity = { column = \"ill\", l = 3 }\n", Run("l-diversity")),
        Fault::AnyDistribution => {
            case(None, "privacy.t-closeness = { column = \"ill\", t = 0.4 }\n", Run("t-closeness"))
        }
        Fault::AnyLoss | Fault::LeftOverGroup | Fault::StaleDomain => case(None, loss, Run("max-loss")),
        Fault::SensitiveAsFloat => {
            let codes = Some(("diagnosis", longs(|row| NEAR + (20 + row * 7 % 240) / 70)));
            let job = "columns.diagnosis.role = \"sensitive\"\n\
                       privacy.t-closeness = { column = \"diagnosis\", t = 0.5, distance = \"equal\" }\n";
            case(codes, job, Run("t-closeness"))
        }
        Fault::RowHashColumn => {
            let stage = Some(("stage", ints(|row| row % 3)));
            let job = "columns.stage.role = \"sensitive\"\nmethod.form = \"anatomy\"\n";
            case(stage, job, Source("truthful"))
        }
        Fault::ClassHashColumn => case(person(), people, Run("person")),
        Fault::NullsKept => {
            let size = words(|row| (row % 9 > 0).then(|| format!("size {}", row % 3)));
            let job = "columns.size = { role = \"quasi\", nulls = \"drop\" }\nprivacy.max-suppression = 0.5\n";
            case(Some(("size", size)), job, Run("nulls"))
        }
        Fault::TrustedStatistics => {
            let odd = |row: usize| if row.is_multiple_of(4) { 1.0 } else { f64::NAN };
            let score: ArrayRef = Arc::new(Float64Array::from_iter_values((0..ROWS).map(odd)));
            case(Some(("score", score)), "", SoundBuild("truthful"))
        }
        Fault::SwappedColumns
        | Fault::NeighbourRow
        | Fault::NeighbourValues
        | Fault::KeptAsFloat
        | Fault::StaleLabel
        | Fault::ShortRange
        | Fault::RepeatedRow => case(None, "", Source("truthful")),
        Fault::OneRowMore => case(None, "", Run("manifest")),
        Fault::UncountedSuppression => case(None, loss, Run("rows")),
        Fault::NullInRange => {
            let few = (0..ROWS as i32).map(|row| (row % 80 > 0).then_some(row * 17 % 240));
            let size: ArrayRef = Arc::new(Int32Array::from_iter(few));
            case(Some(("size", size)), "columns.size.role = \"quasi\"\n", Source("truthful"))
        }
        Fault::LowNode => {
            let job = "columns.town = { role = \"quasi\", hierarchy.tree = [{ A = [\"Ash\", \"Alder\"] }, \
                       { B = [\"Birch\", \"Beech\"] }] }\n";
            case(towns(), job, Source("truthful"))
        }
        Fault::ThinMask => {
            let zip = words(|row| Some(format!("{:05}", row * 37 % 1000 * 7)));
            let job = "columns.zip = { role = \"quasi\", hierarchy.mask = \"right\" }\n";
            case(Some(("zip", zip)), job, Source("truthful"))
        }
        Fault::LowStep => {
            let size = ints(|row| row * 17 % 240);
            let job = "columns.size = { role = \"quasi\", hierarchy.widths = [10, 50] }\n";
            case(Some(("size", size)), job, Source("truthful"))
        }
        Fault::ShortSet => case(towns(), "columns.town.role = \"quasi\"\n", Source("truthful")),
        Fault::CountedGroups => case(None, bucketise, Run("groups")),
        Fault::NoPermutation => case(None, bucketise, Source("permutation")),
        Fault::RawIdentifier => {
            let job = "columns.name = { role = \"identifier\", treat = { constant = \"X\" } }\n";
            case(names(), job, Run("identifier"))
        }
        Fault::UnkeyedPseudonym => {
            let job = "columns.name = { role = \"identifier\", treat = { pseudonym = { key-env = \"NAME_KEY\" } } }\n";
            case(names(), job, SoundBuild("truthful"))
        }
        Fault::GroupingOrder | Fault::ClassOrder => case(None, "", Run("order")),
        Fault::SpreadClass => {
            let case = case(None, "", Run("order"));
            Case {
                rows: batch(people_of(|row| row % 2)),
                arguments: &["--partitions", "4", "--batch-rows", "100"],
                ..case
            }
        }
        Fault::LostRow => case(None, "", Run("rows")),
        Fault::SourceMetadata => case(None, "", Run("columns")),
        Fault::FileCount => case(None, "", Run("files")),
    }
}

/// Runs a command on the job of a desk, with a fault if there is one.
fn throng(desk: &Desk, name: &str, arguments: &[&str], fault: Option<Fault>) -> Ran {
    let job = desk.name("job.toml");
    let mut command = command(&[&[name, job.as_str()], arguments].concat());
    command.env("NAME_KEY", "a key of which nobody else has heard");
    command.envs(fault.map(|fault| ("THRONG_TEST_FAULT", fault.name())));
    Ran::from(&command.output().unwrap())
}

/// What is wrong with how a fault is caught; none when it is.
fn missed(fault: Fault) -> Option<String> {
    let Case { rows, job, arguments, seen } = case_of(fault);
    let desk = || {
        let desk = Desk::new();
        write_parquet(&desk.path("in.parquet"), &rows);
        desk.job(&job);
        desk
    };
    let good = desk();
    let ran = [throng(&good, "run", arguments, None), throng(&good, "verify", &[], None)];
    if let Some(ran) = ran.iter().find(|ran| ran.code != Some(0)) {
        return Some(format!("without the fault: {}", ran.err));
    }
    let bad = desk();
    let ran = throng(&bad, "run", arguments, Some(fault));
    let is_named = |ran: &Ran, rule: &str| ran.err.lines().any(|line| line.trim().starts_with(&format!("{rule}: ")));
    let (rule, planted) = match seen {
        Seen::Run(rule) => {
            if ran.code != Some(5) || !is_named(&ran, rule) {
                return Some(format!("the run ends with {:?}: {}", ran.code, ran.err));
            }
            let left = bad.sink_files();
            return (!left.is_empty()).then(|| format!("files are left: {left:?}"));
        }
        Seen::Source(rule) => (rule, Some(fault)),
        Seen::SoundBuild(rule) => (rule, None),
    };
    if ran.code != Some(0) {
        return Some(format!("the run ends with {:?}: {}", ran.code, ran.err));
    }
    let found = throng(&bad, "verify", &[], planted);
    (found.code != Some(5) || !is_named(&found, rule))
        .then(|| format!("verify ends with {:?}: {}", found.code, found.err))
}

#[test]
fn every_planted_fault_is_caught() {
    if !ENABLED {
        return;
    }
    let missed = |fault: &Fault| Some(format!("{}: {}", fault.name(), missed(*fault)?));
    let missed: Vec<String> = Fault::ALL.iter().filter_map(missed).collect();
    assert!(missed.is_empty(), "{} of {} are not caught:\n{}", missed.len(), Fault::ALL.len(), missed.join("\n"));
}

/// Builds with faults say so; all others do not know the variable.
#[test]
fn faults_are_planted_in_builds_for_tests_alone() {
    let version = Ran::from(&command(&["--version"]).output().unwrap()).ok().out;
    assert_eq!(version.contains("fault injection"), ENABLED, "{version}");
    let desk = Desk::with(people(), JOB);
    let ran = throng(&desk, "run", &[], Some(Fault::SmallGroups));
    assert_eq!(ran.err.contains("THRONG_TEST_FAULT"), ENABLED, "{ran:?}");
    assert_eq!(ran.code, Some(if ENABLED { 5 } else { 0 }), "{ran:?}");
}
