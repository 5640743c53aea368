//! Random tables, policies, methods, forms and layouts against a checker that shares nothing with the program.
//!
//! A few hundred cases run with the tests. `THRONG_FUZZ_CASES=10000 cargo test --test it fuzz::` runs any number, and
//! `THRONG_FUZZ_SEED=n` begins with another one: case `n` is always the same, so a case that fails is run again by its own
//! seed and `THRONG_FUZZ_CASES=1`. `THRONG_FUZZ_KEEP=folder` leaves the files of failing cases there.

mod case;
mod check;
mod damage;
mod layout;
mod presence;
mod quasi;
mod refusal;
mod rules;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use case::{Case, Key};

use crate::adversary::publication::Publication;
use crate::adversary::values::{Value, rows};
use crate::support::{Desk, Ran, command, files, released_files};

/// Exit codes that a run on one machine may end with; 1 is a fault of the program, 101 and none are panics and signals.
fn documented(ran: &Ran) -> bool {
    matches!(ran.code, Some(0 | 2..=7))
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// Runs a command on a job of a case, with the key that it may name.
fn run(desk: &Desk, verb: &str, job: &str, more: &[String]) -> Ran {
    let job = desk.name(job);
    let arguments: Vec<&str> = [verb, job.as_str()].into_iter().chain(more.iter().map(String::as_str)).collect();
    Ran::from(&command(&arguments).env("FUZZ_KEY", "0123456789abcdefghijklmnopqrstuvwxyz").output().unwrap())
}

/// The bytes of every published file, by its name below the folder of the release.
fn bytes(sink: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let name = |path: &PathBuf| path.strip_prefix(sink).unwrap().iter().skip(2).collect();
    released_files(sink).iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
}

/// The rows of every folder, in no order.
fn content(sink: &Path) -> BTreeMap<String, Vec<Vec<Value>>> {
    let mut all: BTreeMap<String, Vec<Vec<Value>>> = BTreeMap::new();
    for piece in &Publication::open(sink).pieces {
        let columns: Vec<usize> = (0..piece.rows.num_columns()).collect();
        all.entry(piece.folder.clone()).or_default().extend(rows(&piece.rows, &columns));
    }
    all.values_mut().for_each(|rows| rows.sort());
    all
}

/// Whether two runs on the same rows published the same: the very bytes where partitions and batches are as many, however
/// the rows lie in files.
fn same(case: &Case, desk: &Desk, seed: u64) -> bool {
    let (one, two) = (desk.path("out"), desk.path("out-again"));
    match case.division(None) == case.division(Some(seed)) {
        true => bytes(&one) == bytes(&two),
        false => content(&one) == content(&two),
    }
}

/// Runs a case: how it ended in a word, or what is wrong with it.
fn try_case(seed: u64) -> Result<String, String> {
    let case = Case::new(seed);
    let desk = Desk::new();
    case.write(&desk);
    keep_failing(&desk, &seed.to_string(), judge(&case, &desk, seed))
}

/// Leaves the files of a failing case where the environment says.
fn keep_failing(desk: &Desk, name: &str, outcome: Result<String, String>) -> Result<String, String> {
    if let (Err(_), Some(folder)) = (&outcome, std::env::var_os("THRONG_FUZZ_KEEP")) {
        keep(desk, &Path::new(&folder).join(name));
    }
    outcome
}

fn judge(case: &Case, desk: &Desk, seed: u64) -> Result<String, String> {
    let about = format!("{} as {}", case.method, case.form);
    let first = run(desk, "run", "job.toml", &case.arguments(None));
    if !documented(&first) || first.err.contains("panicked") {
        return Err(format!(
            "{about}: exit code {:?}: {}",
            first.code,
            first.err.lines().find(|line| !line.is_empty()).unwrap_or("")
        ));
    }
    if first.code != Some(0) {
        return refusal::explain(case, &first)
            .map(|why| format!("refused: {why}"))
            .map_err(|fault| format!("{about}: {fault}"));
    }
    let faults = check::faults(case, &desk.path("out"));
    if !faults.is_empty() {
        return Err(format!("{about}: {}", faults.join("; ")));
    }
    if seed.is_multiple_of(4) {
        let verified = run(desk, "verify", "job.toml", &["--quiet".to_owned()]);
        if verified.code != Some(0) {
            return Err(format!("{about}: verify says {:?} of a sound release: {}", verified.code, verified.err));
        }
    }
    if case.key != Key::Secret && seed.is_multiple_of(3) {
        case.write_again(desk, seed);
        let again = run(desk, "run", "again.toml", &case.arguments(Some(seed)));
        if again.code != Some(0) {
            return Err(format!("{about}: rows in another order end with {:?}: {}", again.code, again.err));
        }
        if !same(case, desk, seed) {
            let (first, again) = (case.division(None), case.division(Some(seed)));
            return Err(format!("{about}: the same rows publish something else: {first:?} and {again:?}"));
        }
        return Ok("released, twice the same".to_owned());
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
    let released: u64 =
        endings.iter().filter(|(ending, _)| ending.starts_with("released")).map(|(_, count)| count).sum();
    assert!(cases < 100 || released * 3 > cases, "only {released} of {cases} cases were released");
}

#[test]
fn damaged_input_ends_in_a_documented_way() {
    let cases = setting("THRONG_FUZZ_CASES", 100);
    try_all("damage", cases, damage::try_damaged);
}
