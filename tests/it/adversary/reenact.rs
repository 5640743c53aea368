//! Re-enacting a run: whoever has the source but for one value, and the program, tries every value and compares bytes.
//!
//! With the key of a run unknown, not even the true source gives the same bytes again, so no value can be told from
//! another in this way. A seed in the job makes a run repeatable; then the program must say what that means.

use std::fs;

use super::order::{desk, release, settings};
use super::publication::Publication;
use super::values::{Value, rows};

const ROWS: usize = 600;

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

/// The key stands nowhere: no two runs share a long number or word beside what the job and the source give them.
#[test]
fn manifests_of_two_runs_share_no_secret() {
    let desk = desk(ROWS);
    let settings = settings("auto", "generalise");
    let mut texts = Vec::new();
    for sink in ["one", "two"] {
        release(&desk, sink, &settings, &[]).unwrap();
        let manifest = super::publication::Publication::open(&desk.path(sink)).manifest;
        for secret in ["key", "salt", "secret"] {
            assert!(manifest.get(secret).is_none(), "the manifest holds a {secret}");
        }
        assert!(manifest["seed"].is_null(), "the manifest holds a seed although the job sets none");
        texts.push(fs::read_dir(desk.path(sink).join("_manifest")).unwrap().count());
    }
    assert_eq!(texts, [1, 1]);
}
