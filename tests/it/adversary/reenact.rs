//! Re-enacting a run: whoever has the source but for one value, and the program, tries every value and compares bytes.
//!
//! With the key of a run unknown, not even the true source gives the same bytes again, so no value can be told from
//! another in this way. A seed in the job makes a run repeatable; then the program must say what that means.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value as Json;

use super::order::{desk, release, settings};
use super::publication::Publication;
use super::values::{Value, rows};
use crate::support::{Desk, Ran, command};

const ROWS: usize = 600;

/// Rows where hundreds of runs are made.
const FEW_ROWS: usize = 150;

/// Everything that is published, in its order.
fn content(publication: &Publication) -> Vec<(String, Vec<Vec<Value>>)> {
    let of = |piece: &super::publication::Piece| {
        let all: Vec<usize> = (0..piece.rows.num_columns()).collect();
        (piece.folder.clone(), rows(&piece.rows, &all))
    };
    publication.pieces.iter().map(of).collect()
}

/// Methods and forms in which groups or numbers are drawn by chance. Strict Mondrian, generalised, draws nothing: what it
/// publishes is a function of the rows.
const DRAWN: [(&str, &str); 6] = [
    ("auto", "generalise"),
    ("k-members", "generalise"),
    ("mondrian", "bucketise"),
    ("mondrian", "permute"),
    ("mondrian", "anatomy"),
    ("anatomy", "anatomy"),
];

#[test]
fn a_run_without_a_seed_cannot_be_repeated() {
    let desk = desk(ROWS);
    let mut repeated = Vec::new();
    for (method, form) in DRAWN {
        let name = format!("{method}-{form}");
        let settings = settings(method, form);
        let published = release(&desk, &name, &settings, &[]).unwrap();
        // As the job says; with the seed of old; and with whatever number the manifest gives.
        let mut tries = vec![settings.clone(), [settings.clone(), vec!["method.seed=42".to_owned()]].concat()];
        if let Some(seed) = published.manifest["seed"].as_u64() {
            tries.push([settings, vec![format!("method.seed={seed}")]].concat());
        }
        for (number, settings) in tries.iter().enumerate() {
            let again = release(&desk, &format!("{name}-{number}"), settings, &[]).unwrap();
            if content(&published) == content(&again) {
                repeated.push(format!("{name}, try {number}"));
            }
        }
    }
    println!("re-enacting: {} of {} releases repeated: {repeated:?}", repeated.len(), DRAWN.len());
    assert!(repeated.is_empty(), "releases can be re-enacted: {repeated:?}");
}

#[test]
fn a_seed_repeats_a_run_and_is_warned_of() {
    let desk = desk(ROWS);
    for (method, form) in DRAWN {
        let settings = [settings(method, form), vec!["method.seed=7".to_owned()]].concat();
        let name = format!("{method}-{form}");
        let one = release(&desk, &name, &settings, &[]).unwrap();
        let two = release(&desk, &format!("{name}-again"), &settings, &["--partitions", "2"]).unwrap();
        let all = |publication: &Publication| {
            let mut rows: Vec<_> = content(publication);
            rows.iter_mut().for_each(|(_, rows)| rows.sort());
            let mut all: Vec<(String, Vec<Value>)> = Vec::new();
            rows.into_iter().for_each(|(folder, rows)| all.extend(rows.into_iter().map(|row| (folder.clone(), row))));
            all.sort();
            all
        };
        assert!(all(&one) == all(&two), "{name}: a seed does not repeat the run");
        let said = one.manifest.to_string().to_lowercase();
        assert!(said.contains("re-enact"), "{name}: the manifest does not say that the release can be re-enacted");
    }
    let check = desk.throng("check", &["--set", "method.seed=7"]);
    let said = format!("{}{}", check.out, check.err).to_lowercase();
    assert!(said.contains("re-enact") && said.contains("seed"), "check does not warn of the seed: {said}");
}

/// Every number and every text of a manifest.
fn leaves(value: &Json, numbers: &mut BTreeSet<u64>, texts: &mut BTreeSet<String>) {
    match value {
        Json::Number(number) => {
            numbers.extend(number.as_u64());
            numbers.extend(number.as_f64().filter(|_| number.is_f64()).map(f64::to_bits));
        }
        Json::String(text) => {
            texts.insert(text.clone());
        }
        Json::Array(items) => items.iter().for_each(|item| leaves(item, numbers, texts)),
        Json::Object(fields) => fields.iter().for_each(|(name, field)| {
            texts.insert(name.clone());
            leaves(field, numbers, texts);
        }),
        _ => {}
    }
}

/// All that somebody would try as a seed or as a key who has the manifest: its numbers; numbers that are written in its texts,
/// in decimal or in hexadecimal digits, from either end; and its texts, and what stands between their signs.
fn guesses(manifest: &Json) -> (BTreeSet<u64>, BTreeSet<String>) {
    let (mut numbers, mut texts) = (BTreeSet::from([0, 1, 42]), BTreeSet::new());
    leaves(manifest, &mut numbers, &mut texts);
    let words: Vec<String> =
        texts.iter().flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric())).map(str::to_owned).collect();
    for word in words.iter().filter(|word| word.is_ascii()) {
        numbers.extend(word.parse::<u64>());
        let ends = [word.get(..16), word.get(word.len().saturating_sub(16)..)];
        for digits in ends.into_iter().flatten().filter(|digits| digits.len() >= 6) {
            let number = u64::from_str_radix(digits, 16);
            numbers.extend(number.iter().flat_map(|number| [*number, number.swap_bytes()]));
        }
    }
    texts.extend(words);
    // Shorter ones are refused as keys.
    texts.retain(|text| text.len() >= 32);
    // Numbers of a job file have 63 bits.
    numbers.retain(|number| i64::try_from(*number).is_ok());
    (numbers, texts)
}

/// The guess that gives the same release again.
fn reenacted(desk: &Desk, settings: &[String], published: &Publication) -> (usize, Option<String>) {
    let (numbers, texts) = guesses(&published.manifest);
    let seeds = numbers.iter().map(|seed| (format!("method.seed={seed}"), ""));
    let keys = texts.iter().map(|key| ("method.key-env=\"GUESS\"".to_owned(), key.as_str()));
    let tried = content(published);
    let mut count = 0;
    for (number, (setting, key)) in seeds.chain(keys).enumerate() {
        let (job, sink) = (desk.name("job.toml"), format!("guess-{number}"));
        let sink_is = format!("sink.url=\"{sink}\"");
        let mut arguments = vec!["run", &job, "--quiet", "--set", &sink_is, "--set", &setting];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        let ran = Ran::from(&command(&arguments).env("GUESS", key).output().unwrap());
        if ran.code == Some(3) && ran.err.contains("GUESS") {
            // A file that does not have the form of a key cannot have been it.
            continue;
        }
        ran.ok();
        count += 1;
        if content(&Publication::open(&desk.path(&sink))) == tried {
            return (count, Some(format!("{setting} {key}")));
        }
        fs::remove_dir_all(desk.path(&sink)).unwrap();
    }
    (count, None)
}

/// The key stands nowhere: whatever is in the manifest is tried. A seed, which is there, is found.
#[test]
fn nothing_in_the_manifest_re_enacts_a_run() {
    let desk = desk(FEW_ROWS);
    let settings = settings("k-members", "bucketise");
    let published = release(&desk, "secret", &settings, &[]).unwrap();
    for secret in ["key", "salt", "secret", "seed"] {
        assert!(published.manifest.get(secret).is_none(), "the manifest holds a {secret} although the job sets none");
    }
    let (tried, found) = reenacted(&desk, &settings, &published);
    println!("re-enacting by the manifest: {tried} seeds and keys tried, found {found:?}");
    assert!(tried > 50, "{tried}");
    assert_eq!(found, None);
    let seeded = [settings.clone(), vec!["method.seed=271828".to_owned()]].concat();
    let published = release(&desk, "seeded", &seeded, &[]).unwrap();
    let (_, found) = reenacted(&desk, &settings, &published);
    assert_eq!(found.as_deref(), Some("method.seed=271828 "));
}
