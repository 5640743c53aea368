//! Group numbers say nothing of the groups: their order is independent of the raw values of the members, of the sensitive
//! values, and of each other, over many runs of every method in every numbered form.

use std::collections::BTreeMap;
use std::fs;

use super::order::{ROWS, desk, methods_and_forms, release, settings};
use super::publication::Publication;
use super::statistics::{SIGNIFICANT, rank_correlation, serial_correlation};
use super::values::{Value, column};
use crate::support::WHOLE_TABLE;

/// What is known of a group: the mean of every column over its rows, by rank among all values of the column.
fn features(publication: &Publication) -> (Vec<u64>, BTreeMap<String, Vec<f64>>) {
    let mut of_groups: BTreeMap<(String, Value), (f64, f64)> = BTreeMap::new();
    let mut numbers: Vec<Value> = Vec::new();
    for piece in &publication.pieces {
        let schema = piece.rows.schema();
        let groups = column(piece.rows.column_by_name("group").unwrap().as_ref());
        numbers.extend(groups.iter().cloned());
        for field in schema.fields().iter().filter(|field| *field.name() != "group") {
            let values = column(piece.rows.column_by_name(field.name()).unwrap().as_ref());
            for (group, value) in groups.iter().zip(&values) {
                let number = match value {
                    Value::Int(number) => *number as f64,
                    // Text by its first bytes: a number that sorts the same.
                    Value::Bytes(bytes) => {
                        (0..6).fold(0.0, |all, at| all * 256.0 + f64::from(*bytes.get(at).unwrap_or(&0)))
                    }
                    other => other.as_f64().unwrap_or(0.0),
                };
                let (sum, count) = of_groups.entry((field.name().clone(), group.clone())).or_default();
                *sum += number;
                *count += 1.0;
            }
        }
    }
    numbers.sort();
    numbers.dedup();
    let mut features: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    // The map is sorted by column and then by number.
    for ((name, _), (sum, count)) in of_groups {
        features.entry(name).or_default().push(sum / count);
    }
    let plain = |number: &Value| match number {
        Value::Int(number) => u64::try_from(*number).expect("an unsigned number of 64 bits"),
        other => panic!("a group number is {other:?}"),
    };
    (numbers.iter().map(plain).collect(), features)
}

#[test]
fn group_numbers_are_independent_of_what_groups_hold() {
    const SEEDS: usize = 3;
    let desk = desk(ROWS);
    let (methods, forms) = methods_and_forms();
    let mut telling = Vec::new();
    let (mut tests, mut releases, mut largest) = (0, 0, 0.0_f64);
    for method in &methods {
        for form in forms.iter().filter(|form| *form != "generalise") {
            let mut scores: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            for seed in 0..SEEDS {
                let sink = format!("{method}-{form}-{seed}");
                let mut settings = settings(method, form);
                settings.push(format!("method.seed={}", 1000 + seed));
                let cell = if WHOLE_TABLE.contains(&method.as_str()) { ROWS } else { 500 }.to_string();
                let Some(publication) = release(&desk, &sink, &settings, &["--cell-rows", &cell]) else { break };
                releases += 1;
                let (numbers, features) = features(&publication);
                fs::remove_dir_all(desk.path(&sink)).unwrap();
                if numbers.len() < 20 {
                    continue;
                }
                // Random numbers of 64 bits: none is small, half have the highest bit, within six standard deviations.
                let high = numbers.iter().filter(|number| **number >> 63 == 1).count() as f64;
                let half = numbers.len() as f64 / 2.0;
                if (high - half).abs() > 6.0 * (half / 2.0).sqrt() {
                    telling
                        .push(format!("{method} as {form}: {high} of {} numbers have the highest bit", numbers.len()));
                }
                let order: Vec<f64> = (0..numbers.len()).map(|at| at as f64).collect();
                for (name, of_groups) in features.iter().filter(|(_, of)| of.len() == numbers.len()) {
                    let trend = rank_correlation(of_groups, &order);
                    scores.entry(format!("{name} by rank")).or_default().extend(trend);
                    let serial = serial_correlation(of_groups);
                    scores.entry(format!("{name} by neighbours")).or_default().extend(serial);
                }
            }
            for (name, scores) in scores.into_iter().filter(|(_, scores)| !scores.is_empty()) {
                tests += 1;
                // The sum of normal scores is normal; trends may go either way.
                let pooled = scores.iter().sum::<f64>().abs() / (scores.len() as f64).sqrt();
                let worst = scores.iter().fold(pooled, |worst, score| worst.max(score.abs()));
                largest = largest.max(worst);
                if worst > SIGNIFICANT + 1.0 {
                    telling.push(format!("{method} as {form}: {name}, {worst:.1} standard deviations"));
                }
            }
        }
    }
    println!(
        "group numbers: {releases} releases, {tests} tests of independence, the largest {largest:.1} standard deviations, {} significant",
        telling.len()
    );
    assert!(tests > 200, "{tests}");
    assert!(telling.is_empty(), "group numbers reveal their groups:\n{}", telling.join("\n"));
}
