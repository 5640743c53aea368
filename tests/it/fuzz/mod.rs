//! Random tables, policies, methods, forms and layouts against a checker that shares nothing with the program.
//!
//! A few hundred cases run with the tests. `THRONG_FUZZ_CASES=10000 cargo test --test it fuzz::` runs any number, and
//! `THRONG_FUZZ_SEED=n` begins with another one: case `n` is always the same, so a case that fails is run again by its own
//! seed and `THRONG_FUZZ_CASES=1`. `THRONG_FUZZ_KEEP=folder` leaves the files of failing cases there.

mod case;
mod check;
mod damage;
mod table;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use case::Case;

use crate::adversary::publication::Publication;
use crate::adversary::values::{Value, rows};
use crate::support::{Desk, Ran, files, throng};

/// Exit codes that a run on one machine may end with; 1 is a fault of the program, 101 and none are panics and signals.
fn documented(ran: &Ran) -> bool {
    matches!(ran.code, Some(0 | 2..=7))
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// Everything published, without order and numbers of files.
fn content(sink: &Path) -> Vec<(String, Vec<Value>)> {
    let publication = Publication::open(sink);
    let mut all = Vec::new();
    for piece in &publication.pieces {
        let columns: Vec<usize> = (0..piece.rows.num_columns()).collect();
        all.extend(rows(&piece.rows, &columns).into_iter().map(|row| (piece.folder.clone(), row)));
    }
    all.sort();
    all
}

/// Runs a case: how it ended in a word, or what is wrong with it.
fn try_case(seed: u64) -> Result<String, String> {
    let case = Case::new(seed);
    let desk = Desk::new();
    case.write(&desk);
    let outcome = judge(&case, &desk, seed);
    if let (Err(_), Some(folder)) = (&outcome, std::env::var_os("THRONG_FUZZ_KEEP")) {
        keep(&desk, &Path::new(&folder).join(seed.to_string()));
    }
    outcome
}

fn judge(case: &Case, desk: &Desk, seed: u64) -> Result<String, String> {
    let about = format!("{} as {}", case.method, case.form);
    let more: Vec<&str> = std::iter::once("--quiet").chain(case.arguments.iter().map(String::as_str)).collect();
    let ran = desk.run(&more);
    let last = || ran.err.lines().next().unwrap_or("").to_owned();
    if !documented(&ran) || ran.err.contains("panicked") {
        return Err(format!("{about}: exit code {:?}: {}", ran.code, last()));
    }
    if ran.code == Some(5) && check::one_class_would_do(case) {
        return Err(format!("{about}: false refusal, one class of all rows would do: {}", last()));
    }
    if ran.code != Some(0) {
        let said: String = last().chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).take(100).collect();
        return Ok(format!("exit {}: {said}", ran.code.unwrap_or_default()));
    }
    let faults = check::faults(case, &desk.path("out"));
    if !faults.is_empty() {
        return Err(format!("{about}: {}", faults.join("; ")));
    }
    if seed.is_multiple_of(4) {
        let verified = desk.throng("verify", &["--quiet"]);
        if verified.code != Some(0) {
            return Err(format!("{about}: verify says {:?} of a sound release: {}", verified.code, verified.err));
        }
    }
    if case.seeded && seed.is_multiple_of(3) {
        case.write_shuffled(desk, seed);
        let (job, cell) = (desk.name("again.toml"), case.arguments[1].as_str());
        let again = throng(&["run", &job, "--quiet", "--cell-rows", cell, "--partitions", "3", "--batch-rows", "5"]);
        if again.code != Some(0) {
            return Err(format!("{about}: rows in another order end with {:?}: {}", again.code, again.err));
        }
        if content(&desk.path("out")) != content(&desk.path("out-again")) {
            return Err(format!("{about}: rows in another order, files or partitions publish something else"));
        }
    }
    Ok("released".to_owned())
}

/// Copies the files of a failing case.
fn keep(desk: &Desk, folder: &Path) {
    let from = desk.path("");
    for path in files(&from) {
        let to = folder.join(path.strip_prefix(&from).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(path, to).unwrap();
    }
}

/// Tries cases on all cores; prints how they ended, and fails with those that went wrong.
fn try_all(name: &str, cases: u64, one: impl Fn(u64) -> Result<String, String> + Sync) -> BTreeMap<String, u64> {
    let first = setting("THRONG_FUZZ_SEED", 1);
    let next = AtomicU64::new(first);
    let (endings, wrong) = (Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + cases {
                        break;
                    }
                    // A checker that panics is a failing case like others.
                    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| one(seed)));
                    match ended.unwrap_or_else(|_| Err("the checker cannot read the release".to_owned())) {
                        Ok(ending) => *endings.lock().unwrap().entry(ending).or_default() += 1,
                        Err(fault) => {
                            println!("{name} case {seed}: {fault}");
                            wrong.lock().unwrap().push(format!("case {seed}: {fault}"));
                        }
                    }
                }
            });
        }
    });
    let (endings, wrong) = (endings.into_inner().unwrap(), wrong.into_inner().unwrap());
    println!("{name}: {cases} cases from seed {first}, {} went wrong", wrong.len());
    endings.iter().for_each(|(ending, count)| println!("  {count} x {ending}"));
    assert!(wrong.is_empty(), "{name}: {} of {cases} cases went wrong:\n{}", wrong.len(), wrong.join("\n"));
    endings
}

#[test]
fn random_tables_are_published_as_their_policies_say() {
    let cases = setting("THRONG_FUZZ_CASES", 200);
    let endings = try_all("fuzz", cases, try_case);
    let released = endings.get("released").copied().unwrap_or(0);
    assert!(cases < 100 || released * 3 > cases, "only {released} of {cases} cases were released");
}

#[test]
fn damaged_input_ends_in_a_documented_way() {
    let cases = setting("THRONG_FUZZ_CASES", 100);
    try_all("damage", cases, |seed| damage::try_damaged(seed).map(str::to_owned));
}
