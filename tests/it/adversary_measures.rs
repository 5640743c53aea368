//! Solving for a suppressed person from what a release reports: the published rows and the figures of its manifest.
//!
//! Losses and MPM are shares of a domain, so whoever has the covers and the mean share has the width of the domain. Where
//! that domain is the source's, it reaches to the one person whom the release leaves out, and the width reveals this
//! person's age and income to the last digit. The equations are written here from the definitions of the measures, not
//! with the code that computes them.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use datafusion::arrow::array::{
    ArrayRef, AsArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
};
use datafusion::arrow::datatypes::{Field, Int64Type, Schema};
use serde_json::Value;

use crate::support::{Desk, Ran, command, files, manifest, texts, write_parquet};

/// Somebody of the table: age, income, postcode and a category.
type Person = (i64, i64, Option<i64>, &'static str);

/// Two colours of every knot.
const COLOURS: [&str; 14] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "red"];

/// Seven knots of six people each, as narrow in age as they are far apart, so that every method finds them.
fn crowd() -> Vec<Person> {
    let knots = (0..7).flat_map(|knot| (0..6).map(move |one| (knot, one)));
    knots
        .map(|(knot, one)| {
            let category = COLOURS[(2 * knot + one % 2) as usize];
            (20 + 6 * knot + one % 3, 30_000 + 700 * knot + 1_100 * one, Some(1_000 + knot), category)
        })
        .collect()
}

/// How the release comes to leave the one person out.
#[derive(Clone, Copy)]
enum LeftOut {
    /// No group that holds the person loses little enough.
    Suppressed,
    /// A null that the policy says to drop.
    Dropped,
}

impl LeftOut {
    /// A desk with the crowd and one more person, who is left out. With `more`, everybody also has a code that is masked and
    /// a height that goes up a ladder; the one person's are their own.
    fn desk(self, age: i64, income: i64, category: &'static str, more: bool) -> Desk {
        let mut people = crowd();
        let (postcode, privacy) = match self {
            Self::Suppressed => (Some(1_006), "max-loss = 0.1"),
            Self::Dropped => (None, ""),
        };
        people.push((age, income, postcode, category));
        let number = |pick: fn(&Person) -> Option<i64>| -> ArrayRef {
            Arc::new(people.iter().map(pick).collect::<Int64Array>())
        };
        let categories: ArrayRef = Arc::new(people.iter().map(|person| Some(person.3)).collect::<StringArray>());
        let mut columns = vec![
            ("age", number(|person| Some(person.0))),
            ("postcode", number(|person| person.2)),
            ("colour", categories),
            ("income", number(|person| Some(person.1))),
        ];
        let mut roles = String::new();
        if more {
            let of_knots = people.iter().take(42).enumerate();
            let codes = of_knots.clone().map(|(at, _)| format!("10{}{}", at / 6, at % 2)).chain([format!("{age}99")]);
            let heights =
                of_knots.map(|(at, _)| 150 + 5 * (at as i64 / 6) + at as i64 % 3).chain([age + income / 10_000]);
            columns.push(("code", Arc::new(codes.map(Some).collect::<StringArray>())));
            columns.push(("height", Arc::new(heights.map(Some).collect::<Int64Array>())));
            roles += "code = { role = \"quasi\", hierarchy = { mask = \"right\" } }\n\
                      height = { role = \"quasi\", hierarchy = { widths = [5, 10, 20] } }\n";
        }
        let job = format!(
            "[privacy]\nk = 6\nmax-suppression = 0.1\n{privacy}\n\
             [columns]\nage.role = \"quasi\"\npostcode = {{ role = \"quasi\", nulls = \"drop\" }}\n\
             colour.role = \"quasi\"\nincome.role = \"sensitive\"\n{roles}\
             [measures]\ninformation = true\nqueries = {{ count = 50 }}\n[method]\nseed = 7\n"
        );
        Desk::with(columns, &job)
    }
}

/// The smallest and the largest age of every row's class.
fn ages(rows: &RecordBatch) -> Vec<(i64, i64)> {
    let ranges = rows.column_by_name("age").unwrap().as_struct();
    let end = |name: &str| ranges.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone();
    let (low, high) = (end("min"), end("max"));
    (0..rows.num_rows()).map(|row| (low.value(row), high.value(row))).collect()
}

/// Every class, by what it publishes, with the incomes of its rows.
fn incomes(rows: &RecordBatch) -> Vec<Vec<i64>> {
    let income = rows.column_by_name("income").unwrap().as_primitive::<Int64Type>();
    let mut classes: BTreeMap<(i64, i64), Vec<i64>> = BTreeMap::new();
    for (row, age) in ages(rows).into_iter().enumerate() {
        classes.entry(age).or_default().push(income.value(row));
    }
    classes.into_values().collect()
}

/// The ends that a domain of this width may have, given that it holds the published values from `low` to `high`: the person
/// who widens it lies above them or below.
fn beyond((low, high): (i64, i64), width: f64) -> [f64; 2] {
    [low as f64 + width, high as f64 - width]
}

/// Ages that the loss of the column gives away: mean width of the published ranges = loss x width of the domain.
fn solve_age(rows: &RecordBatch, scores: &Value) -> [f64; 2] {
    let ages = ages(rows);
    let mean = ages.iter().map(|(low, high)| (high - low) as f64).sum::<f64>() / ages.len() as f64;
    let ends = (ages.iter().map(|age| age.0).min().unwrap(), ages.iter().map(|age| age.1).max().unwrap());
    beyond(ends, mean / scores["by_column"]["age"].as_f64().unwrap())
}

/// Incomes that MPM gives away: 1 - MPM = mean over classes of the range of their incomes / width of the domain.
fn solve_income(rows: &RecordBatch, scores: &Value) -> [f64; 2] {
    let classes = incomes(rows);
    let ends = |class: &[i64]| (*class.iter().min().unwrap(), *class.iter().max().unwrap());
    let ranges = classes.iter().map(|class| ends(class)).map(|(low, high)| (high - low) as f64);
    let mean = ranges.sum::<f64>() / classes.len() as f64;
    beyond(ends(&classes.concat()), mean / (1.0 - scores["mpm"].as_f64().unwrap()))
}

fn found(candidates: [f64; 2], truth: i64) -> bool {
    // Nearer than a tenth of the way from the crowd to the person is more than nothing.
    candidates.iter().any(|candidate| (candidate - truth as f64).abs() < 0.1 * truth as f64)
}

#[test]
fn release_and_manifest_do_not_give_away_who_was_left_out() {
    for left_out in [LeftOut::Suppressed, LeftOut::Dropped] {
        for (age, income) in [(97, 987_654), (91, 250_000)] {
            let desk = left_out.desk(age, income, "red", false);
            desk.run(&[]).ok();
            let (rows, manifest) = (desk.released(), manifest(&desk.path("out")));
            assert_eq!((rows.num_rows(), &manifest["suppressed"]), (42, &Value::from(1)), "{manifest:#}");
            let scores = &manifest["scores"];
            let (by_age, by_income) = (solve_age(&rows, scores), solve_income(&rows, scores));
            assert!(!found(by_age, age), "the age of {age} is revealed: {by_age:?}");
            assert!(!found(by_income, income), "the income of {income} is revealed: {by_income:?}");
            // What the equations give are the ends of what is published anyway, as far as four digits go.
            assert!((by_age[0] - 58.0).abs() < 0.1 && (by_age[1] - 20.0).abs() < 0.1, "{by_age:?}");
        }
    }
}

/// The text without what differs between any two runs of two folders: times, names and hashes of files.
fn reported(manifest: &Value) -> Value {
    let mut reported = manifest.clone();
    for key in ["committed", "data", "files", "snapshot"] {
        reported.as_object_mut().unwrap().remove(key);
    }
    reported
}

/// Lines of a text that are figures of the release, not of the machine.
fn figures(text: &str) -> Vec<&str> {
    let of_the_machine = ["time:", "release:", "_seconds", "_bytes", "run_timestamp"];
    text.lines().filter(|line| !of_the_machine.iter().any(|word| line.contains(word))).collect()
}

/// Whoever it is that was left out, everything that leaves is the same.
#[test]
fn nothing_that_leaves_depends_on_who_was_left_out() {
    let ways = [LeftOut::Suppressed, LeftOut::Dropped].into_iter().flat_map(|way| [(way, false), (way, true)]);
    for (left_out, more) in ways {
        let run = |age, income, category| {
            let desk = left_out.desk(age, income, category, more);
            let metrics = desk.name("metrics.prom");
            let ran = desk.run(&["--run-id", "one", "--metrics-file", &metrics]).ok();
            let page = desk.name("page.html");
            desk.throng("report", &["-o", &page]).ok();
            (desk, ran)
        };
        let (desk, ran) = run(97, 987_654, "red");
        // Somebody else, with a colour and an income of their own.
        for (age, income, category) in [(93, 610_000, "a"), (88, 400_123, "mauve")] {
            let (other_desk, other) = run(age, income, category);
            let read = |desk: &Desk, name: &str| std::fs::read_to_string(desk.path(name)).unwrap();
            let (mine, theirs) = (manifest(&desk.path("out")), manifest(&other_desk.path("out")));
            assert_eq!(reported(&mine), reported(&theirs));
            assert_eq!((&mine["rows"], mine["scores"]["wgu"].is_number()), (&42.into(), true), "{mine:#}");
            assert_eq!(figures(&ran.out), figures(&other.out));
            assert_eq!(figures(&read(&desk, "metrics.prom")), figures(&read(&other_desk, "metrics.prom")));
            let page = |desk: &Desk| {
                let page = read(desk, "page.html");
                page[..page.find("id=\"provenance\"").unwrap()].replace(desk.path("").to_str().unwrap(), "")
            };
            let committed =
                |page: &str| page.split("committed").nth(1).unwrap().split_once("</p>").unwrap().1.to_owned();
            assert_eq!(committed(&page(&desk)), committed(&page(&other_desk)));
        }
    }
}

/// Every figure of a manifest has four significant digits at most.
#[test]
fn figures_have_four_digits() {
    let desk = LeftOut::Dropped.desk(97, 987_654, "red", true);
    desk.run(&[]).ok();
    let mut seen = 0;
    let mut look = |value: &Value| {
        let mut waiting = vec![value.clone()];
        while let Some(value) = waiting.pop() {
            match value {
                Value::Number(number) if number.is_f64() => {
                    seen += 1;
                    let digits = number.to_string();
                    let digits = digits.split('e').next().unwrap().replace(['.', '-'], "");
                    let digits = digits.trim_start_matches('0').trim_end_matches('0');
                    assert!(digits.len() <= 4, "{number}");
                }
                Value::Array(values) => waiting.extend(values),
                Value::Object(values) => waiting.extend(values.into_iter().map(|(_, value)| value)),
                _ => {}
            }
        }
    };
    look(&manifest(&desk.path("out")));
    assert!(seen > 8, "{seen} figures");
}

/// Puts another table into the place of the source of a desk, as if it had been written at the same moment.
fn replace_source(desk: &Desk, (age, income, category): (i64, i64, &'static str)) -> u64 {
    let source = desk.path("in.parquet");
    fs::copy(LeftOut::Dropped.desk(age, income, category, true).path("in.parquet"), &source).unwrap();
    let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    fs::File::options().write(true).open(&source).unwrap().set_modified(moment).unwrap();
    fs::metadata(&source).unwrap().len()
}

/// What a manifest says of the source and its run.
fn identity(desk: &Desk) -> [Value; 3] {
    let manifest = manifest(&desk.path("out"));
    ["input", "snapshot", "run"].map(|key| manifest[key].clone())
}

/// Whoever knows everybody but one, and when the source was written, can make every table that it may be. None of them is
/// confirmed: neither by its size, nor by its tag or a hash of them.
#[test]
fn the_identity_of_the_source_confirms_no_guess_of_it() {
    let desk = LeftOut::Dropped.desk(97, 987_654, "red", true);
    let mut seen = Vec::new();
    for guess in [(97, 987_654, "red"), (93, 610_000, "a colour that nobody else has ever heard of")] {
        let size = replace_source(&desk, guess);
        let _ = fs::remove_dir_all(desk.path("out"));
        desk.run(&[]).ok();
        let text = manifest(&desk.path("out")).to_string();
        assert!(!text.contains("etag") && !text.contains(&format!(":{size},")), "{text}");
        seen.push((size, identity(&desk)));
    }
    assert_ne!(seen[0].0, seen[1].0, "tables of two sizes");
    assert_eq!(seen[0].1, seen[1].1);
    assert!(desk.run(&[]).ok().err.contains("released before"));
    // What is written later is another source.
    fs::File::options().write(true).open(desk.path("in.parquet")).unwrap().set_modified(SystemTime::now()).unwrap();
    desk.run(&[]).ok();
    assert_ne!(identity(&desk), seen[1].1);
}

/// The owner's key lets the owner see by the content that there is nothing new, and nobody else.
#[test]
fn with_a_lasting_key_the_owner_knows_the_content_again() {
    let desk = LeftOut::Dropped.desk(97, 987_654, "red", true);
    let job = fs::read_to_string(desk.path("job.toml")).unwrap();
    desk.write("job.toml", &job.replace("seed = 7", "key-env = \"OWNER_KEY\""));
    let run = |key: &str, more: &[&str]| {
        let job = desk.name("job.toml");
        Ran::from(&command(&[&["run", job.as_str()], more].concat()).env("OWNER_KEY", key).output().unwrap())
    };
    let (mine, theirs) = ("a4c91e0b7f62d835a4c91e0b7f62d835", "0f1e2d3c4b5a69788796a5b4c3d2e1f0");
    replace_source(&desk, (97, 987_654, "red"));
    run(mine, &[]).ok();
    let first = identity(&desk);
    assert!(run(mine, &[]).ok().err.contains("released before"));
    run(theirs, &["--run-id", first[2].as_str().unwrap()]).refused(7, &["another input"]);
    // Another table of the same moment is seen.
    replace_source(&desk, (93, 610_000, "a colour that nobody else has ever heard of"));
    run(mine, &[]).ok();
    let second = identity(&desk);
    assert_eq!(first[0], second[0]);
    assert!(first[1] != second[1] && first[2] != second[2], "{first:?} {second:?}");
}

/// Borders of a ladder by quantiles are published: they are nobody's value.
#[test]
fn borders_by_quantiles_are_no_values_of_the_source() {
    let mut rng = fastrand::Rng::with_seed(8);
    let values: Vec<f64> = (0..300).map(|_| f64::from(rng.u32(1_000_000..9_999_999)) / 1000.0).collect();
    let desk = Desk::with(
        vec![("dose", Arc::new(Float64Array::from(values.clone())) as ArrayRef)],
        "privacy.k = 5\n[columns]\ndose = { role = \"quasi\", hierarchy = { quantiles = [8, 4, 2] } }\n",
    );
    desk.run(&[]).ok();
    let labels = texts(&desk.released(), "dose");
    let numbers: Vec<f64> = labels
        .iter()
        .flat_map(|label| label.split(|c: char| !c.is_ascii_digit() && c != '.'))
        .filter_map(|number| number.parse().ok())
        .collect();
    assert!(numbers.len() >= 300, "{labels:?}");
    assert!(numbers.iter().all(|border| !values.contains(border)), "{numbers:?}");
    desk.throng("verify", &[]).ok();
}

/// What the author of the source has written about its columns may hold anything of them: it stays behind.
#[test]
fn metadata_of_the_source_stay_behind() {
    let note = |field: Field| {
        field.with_metadata(HashMap::from([("bounds".to_owned(), "canary 918273 in the metadata".to_owned())]))
    };
    let ages: ArrayRef = Arc::new(Int64Array::from_iter_values((0..60).map(|row| 20 + row % 7)));
    let inner = Arc::new(note(Field::new("score", ages.data_type().clone(), true)));
    let scores: ArrayRef = Arc::new(StructArray::from(vec![(inner, Arc::clone(&ages))]));
    let items = vec![Some(vec![Some(1), None]); 60];
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(items);
    let item = Arc::new(note(Field::new("item", ages.data_type().clone(), true)));
    let (_, offsets, values, nulls) = lists.into_parts();
    let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, values, nulls));
    let columns = [("age", ages), ("scores", scores), ("lists", lists)];
    let fields = columns.iter().map(|(name, array)| note(Field::new(*name, array.data_type().clone(), true)));
    let about = HashMap::from([("about".to_owned(), "canary 918273 in the metadata".to_owned())]);
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), about);
    let rows = RecordBatch::try_new(Arc::new(schema), columns.map(|(_, array)| array).to_vec()).unwrap();
    let desk = Desk::new();
    write_parquet(&desk.path("in.parquet"), &rows);
    desk.job("privacy.k = 5\n[columns]\nage.role = \"quasi\"\nscores.role = \"kept\"\nlists.role = \"kept\"\n");
    desk.run(&[]).ok();
    desk.throng("verify", &[]).ok();
    let is_parquet = |path: &std::path::Path| path.extension().is_some_and(|extension| extension == "parquet");
    for path in files(&desk.path("out")) {
        let mut reported = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        if is_parquet(&path) {
            let file = fs::File::open(&path).unwrap();
            let reader =
                datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            reported += &format!("{:?} {:?}", reader.schema(), reader.metadata().file_metadata());
        }
        assert!(!reported.contains("canary"), "{}", path.display());
    }
}
