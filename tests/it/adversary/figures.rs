//! Figures of a manifest are functions of the published rows: sources that publish the same rows have the same figures.
//!
//! Somebody who knows all original values but one tries those that the release allows for it, and keeps the ones that give
//! the figures of the manifest. So for every kind of generalisation one value is moved to another one that is published
//! alike, and for classes that are counted in people a row is given to another person of its class.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int32Type;

use super::twins::{Files, Left, ROWS, people, with};
use crate::support::Desk;

/// A desk whose jobs keep one quasi-identifier, or two.
fn desk(privacy: &str, columns: &str) -> Desk {
    let desk = Desk::new();
    desk.write(
        "job.toml",
        &format!(
            "version = 1\nsource.url = \"in\"\nsink.url = \"out\"\nmethod = {{ name = \"mondrian\", seed = 11 }}\n\
             privacy = {{ {privacy} }}\ndefaults.role = \"identifier\"\n[columns]\nill.role = \"sensitive\"\n{columns}\n"
        ),
    );
    desk
}

/// Moves one row at a time and compares releases of the same rows. Returns how many there were and what told them apart.
fn told_apart(
    desk: &Desk,
    rows: &RecordBatch,
    wanted: usize,
    moved: impl Fn(&mut fastrand::Rng) -> RecordBatch,
) -> (usize, BTreeMap<String, usize>) {
    let left = Left::of(desk, rows, Files::One, &[]);
    let mut rng = fastrand::Rng::with_seed(31);
    let (mut compared, mut by) = (0, BTreeMap::new());
    for _ in 0..6 * wanted {
        let twin = Left::of(desk, &moved(&mut rng), Files::One, &[]);
        if compared == wanted {
            break;
        }
        if twin.rows == left.rows {
            compared += 1;
            left.differences(&twin).into_iter().for_each(|name| *by.entry(name).or_default() += 1);
        }
    }
    (compared, by)
}

fn texts(values: Vec<String>) -> ArrayRef {
    Arc::new(StringArray::from(values))
}

fn column(rows: &RecordBatch, name: &str) -> Vec<String> {
    rows.column_by_name(name).unwrap().as_string::<i32>().iter().map(|value| value.unwrap().to_owned()).collect()
}

fn assert_none(what: &str, wanted: usize, (compared, by): (usize, BTreeMap<String, usize>)) {
    println!("figures, {what}: {compared} pairs of sources that publish the same rows, told apart by {by:?}");
    assert!(compared >= wanted, "{what}: {compared} twins");
    assert!(by.is_empty(), "{what}: original values show by {by:?}");
}

/// Digits that a mask hides. How many different codes lie below a mask is nobody's to know.
#[test]
fn masked_characters_are_not_in_figures() {
    let desk = desk("k = 5", "zip = { role = \"quasi\", hierarchy.mask = \"right\" }\nage.role = \"quasi\"");
    let rows = people();
    let zips = column(&rows, "zip");
    let moved = |rng: &mut fastrand::Rng| {
        let mut zips = zips.clone();
        let row = rng.usize(..ROWS);
        zips[row] = (zips[row].parse::<u32>().unwrap() + rng.u32(1..3)).to_string();
        with(&rows, "zip", texts(zips))
    };
    assert_none("masks", 10, told_apart(&desk, &rows, 10, moved));
}

/// Moves all that lie at an end of a column of whole numbers some steps inside.
fn ends_moved(rows: &RecordBatch, name: &'static str) -> impl Fn(&mut fastrand::Rng) -> RecordBatch {
    let (rows, values) =
        (rows.clone(), rows.column_by_name(name).unwrap().as_primitive::<Int32Type>().values().to_vec());
    let ends = [*values.iter().min().unwrap(), *values.iter().max().unwrap()];
    move |rng| {
        let (low, by) = (rng.bool(), rng.i32(1..4));
        let inside = |value: &i32| match low {
            true if *value == ends[0] => value + by,
            false if *value == ends[1] => value - by,
            _ => *value,
        };
        with(&rows, name, Arc::new(values.iter().map(inside).collect::<Int32Array>()))
    }
}

/// The smallest and the largest value of a ladder, which publishes intervals: the width of the domain of the source would
/// tell where in its interval each of them lies.
#[test]
fn ends_of_a_ladder_are_not_in_figures() {
    let desk = desk("k = 5", "size = { role = \"quasi\", hierarchy.widths = [10, 50] }\ntown.role = \"quasi\"");
    let rows = people();
    assert_none("ladders", 8, told_apart(&desk, &rows, 8, ends_moved(&rows, "size")));
}

/// What a mean stands for: how wide a class is, and how wide the domain.
#[test]
fn values_behind_a_mean_are_not_in_figures() {
    let desk = desk("k = 40", "age = { role = \"quasi\", publish = \"centroid\" }\ntown.role = \"quasi\"");
    let rows = people();
    assert_none("means", 4, told_apart(&desk, &rows, 4, ends_moved(&rows, "age")));
}

/// Whose a row is, is not published: neither is how many people a class holds beyond k.
#[test]
fn owners_of_rows_are_not_in_figures() {
    let desk = desk("k = 3, person = \"name\"", "age.role = \"quasi\"\nward.role = \"kept\"");
    let rows = people();
    // Five people of every age, so that classes have several rows of each.
    let ages: Vec<i32> = rows.column_by_name("age").unwrap().as_primitive::<Int32Type>().values().to_vec();
    let names: Vec<String> = ages.iter().enumerate().map(|(row, age)| format!("Person {age}-{}", row % 5)).collect();
    let rows = with(&rows, "name", texts(names.clone()));
    let moved = |rng: &mut fastrand::Rng| {
        let (mut names, row) = (names.clone(), rng.usize(..ROWS));
        names[row] = format!("Person {}-{}", ages[row], rng.usize(..5));
        with(&rows, "name", texts(names))
    };
    assert_none("people", 12, told_apart(&desk, &rows, 12, moved));
}

/// Which of the values that a class publishes goes with which: how well dependencies hold in the source.
#[test]
fn dependencies_of_the_source_are_not_in_figures() {
    let desk = desk("k = 60", "town.role = \"quasi\"\nsize.role = \"quasi\"");
    let job = std::fs::read_to_string(desk.path("job.toml")).unwrap();
    let dependency = "dependencies = [{ from = [\"size\"], to = [\"town\"], tolerance = 1.0 }]\n";
    desk.write("job.toml", &job.replace("defaults.role", &format!("{dependency}defaults.role")));
    let rows = people();
    let sizes: Vec<i32> = rows.column_by_name("size").unwrap().as_primitive::<Int32Type>().values().to_vec();
    let moved = |rng: &mut fastrand::Rng| {
        let (mut sizes, row) = (sizes.clone(), rng.usize(..ROWS));
        sizes[row] += if rng.bool() { 1 } else { -1 };
        with(&rows, "size", Arc::new(Int32Array::from(sizes)))
    };
    assert_none("dependencies", 4, told_apart(&desk, &rows, 4, moved));
}

/// Figures that follow from original values are there when they are asked for, with a warning.
#[test]
fn figures_of_the_source_take_a_wish_and_warn() {
    let desk = desk("k = 5", "zip = { role = \"quasi\", hierarchy.mask = \"right\" }\nage.role = \"quasi\"");
    let rows = people();
    let plain = Left::of(&desk, &rows, Files::One, &[]);
    let asked = Left::of(&desk, &rows, Files::One, &["measures.source=true"]);
    assert_eq!(plain.rows, asked.rows);
    let names = |left: &Left| left.figures.keys().cloned().collect::<BTreeSet<String>>();
    let more: Vec<String> = names(&asked).difference(&names(&plain)).cloned().collect();
    let of_source =
        ["/cell_rows/largest", "/cell_rows/smallest", "/scores/distortion", "/scores/genc", "/scores/iloss"];
    of_source.iter().for_each(|name| assert!(more.iter().any(|more| more == name), "{name} is not among {more:?}"));
    let warned = |left: &Left| left.figures.values().any(|value| value.to_string().contains("confirm a guess"));
    assert!(warned(&asked) && !warned(&plain));
    let said = desk.throng("check", &["--set", "measures.source=true"]).ok();
    assert!(said.err.contains("confirm a guess") || said.out.contains("confirm a guess"), "{said:?}");
    let page = desk.name("page.html");
    crate::support::throng(&["report", &desk.name("out"), "--output", &page]).ok();
    assert!(std::fs::read_to_string(page).unwrap().contains("confirm a guess"));
}
