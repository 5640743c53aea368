//! What a reader of all nights knows, by the definition: an attack that shares no code with `throng attack`, and knows more than
//! it. It knows in which class every published person was on every night, and keeps the values that were there every time.

use std::collections::{BTreeMap, BTreeSet};

use super::world::{K, L, Person, Row, World, recount, shown};

/// Nights in the suite; `THRONG_SERIES_NIGHTS=30` asks for more.
const NIGHTS: usize = 8;

/// People who are there every night.
const PEOPLE: usize = 400;

/// The census of a night after the one before: a share leaves, and as many come.
fn next_night(rng: &mut fastrand::Rng, before: &[Person], next: &mut i64, churn: f64) -> Vec<Person> {
    let mut night: Vec<Person> = before.iter().copied().filter(|_| rng.f64() >= churn).collect();
    let come = if before.is_empty() { PEOPLE } else { (PEOPLE as f64 * churn).round() as usize };
    for _ in 0..come {
        *next += 1;
        let ill = if rng.bool() { 0 } else { rng.u8(0..5) };
        night.push(Person { id: *next, age: rng.i32(20..60), town: rng.u8(0..3), ill });
    }
    night
}

/// People who may have fewer than l values, and people of whom some night has left fewer than k rows.
fn exposed(nights: &[BTreeMap<i64, Row>]) -> (usize, usize) {
    let mut known: BTreeMap<i64, (BTreeSet<&str>, usize)> = BTreeMap::new();
    for night in nights {
        let mut classes: BTreeMap<_, Vec<&str>> = BTreeMap::new();
        night.values().for_each(|row| classes.entry(row.class()).or_default().push(&row.ill));
        for (id, row) in night {
            let values = &classes[&row.class()];
            let (left, fewest) = known.entry(*id).or_insert_with(|| (values.iter().copied().collect(), usize::MAX));
            left.retain(|value| values.contains(value));
            assert!(left.contains(row.ill.as_str()), "nobody changes, so the true value is left");
            *fewest = (*fewest).min(values.iter().filter(|value| left.contains(*value)).count());
        }
    }
    let few_values = known.values().filter(|(left, _)| left.len() < L).count();
    (few_values, known.values().filter(|(_, fewest)| *fewest < K).count())
}

#[tokio::test]
async fn nobody_is_exposed_at_any_churn() {
    let wanted = std::env::var("THRONG_SERIES_NIGHTS").ok().and_then(|text| text.parse().ok()).unwrap_or(NIGHTS);
    for churn in [0.002, 0.01, 0.05] {
        let (series, mut alone) = (World::new("retire-at = 0.3\n"), World::new(""));
        alone.is_independent = true;
        let (mut rng, mut next) = (fastrand::Rng::with_seed(7), 0);
        let mut nights: Vec<Vec<Person>> = Vec::new();
        let mut independent = Vec::new();
        for number in 0..wanted {
            let before = nights.last().map_or(&[][..], Vec::as_slice);
            let night = next_night(&mut rng, before, &mut next, churn);
            series.night(&format!("night-{number}"), &night).await;
            // Without a seed of its own, a night groups people as the night before does wherever it can.
            alone.rules = super::world::RULES.replace("seed = 7", &format!("seed = {number}"));
            independent.push(alone.night(&format!("night-{number}"), &night).await);
            nights.push(night);
        }
        recount(&series, &nights).await;
        let found = exposed(&shown(&series, &series.releases().await).await);
        let leak = exposed(&shown(&alone, &independent).await);
        println!(
            "churn {churn}, {wanted} nights: {found:?} of {next} people in the series, {leak:?} in independent releases"
        );
        assert_eq!(found, (0, 0), "people below l and below k at a churn of {churn}");
        assert!(leak.0 > 0 && leak.1 > 0, "the attack finds what there is: {leak:?}");
    }
}
