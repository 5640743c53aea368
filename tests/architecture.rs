//! The rooms of `src/` and `core/src/`, and what each may use.
//!
//! A room may use the rooms above it in [`ORDER`], and no other. So the order can be read from top to bottom: whatever a
//! room needs has been read before. Only production code counts: tests may look anywhere.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, outside of any #[test] function, may fail as tests do"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Every room, those that may be used by all of the others first.
const ORDER: &[&str] = &[
    // Used everywhere.
    "error",
    "faults",
    "secret",
    "simd",
    "plan",
    "reading",
    // The mathematics: tables as codes, and everything that can be said of them without reading a file.
    "model",
    "hierarchy",
    "attack",
    "privacy",
    "dependency",
    "measure",
    "grouping",
    "permutation",
    "auto",
    "bound",
    "methods",
    // What to do, and with which data.
    "storage",
    "policy",
    "binding",
    "source",
    // The operator and its two passes.
    "encode",
    "survey",
    "recode",
    "operator",
    "windows",
    "extension",
    "codec",
    // From rows to a release.
    "write",
    "published",
    "verify",
    "audit",
    "series",
    "ledger",
    "agreement",
    "engine",
    "release",
    // Around releases.
    "explore",
    "report",
    "generate",
    "cluster",
    "telemetry",
    "arguments",
    "terminal",
    "bindings",
    "cli",
    "internals",
    "guide",
    "lib",
    "main",
];

/// Rooms that can be read beside a paper: no engine, no file, no thread.
const PURE: &[&str] = &[
    "model",
    "hierarchy",
    "attack",
    "privacy",
    "dependency",
    "measure",
    "grouping",
    "permutation",
    "auto",
    "bound",
    "methods",
];

/// What pure rooms know nothing of.
const IMPURE: &[&str] =
    &["datafusion", "arrow", "parquet", "tokio", "futures", "serde_json", "object_store", "std::fs", "async"];

/// What makes a release shares nothing with what judges it.
const JUDGED: &[&str] = &[
    "faults",
    "model",
    "grouping",
    "auto",
    "methods",
    "encode",
    "survey",
    "recode",
    "operator",
    "windows",
    "extension",
    "codec",
    "write",
    "series",
    "ledger",
    "agreement",
    "engine",
    "release",
];

/// What a room that judges may use all the same, and why.
const ARGUED: &[(&str, &str)] = &[
    // Which columns a dependency names: the policy as it was bound to the columns, no value of any row.
    ("audit/inference.rs", "model"),
];

/// Where the rooms are: the mathematics is a crate of its own.
const ROOTS: &[&str] = &["src", "core/src"];

/// A file of a room.
struct File {
    root: &'static str,
    path: String,
    /// Production code without comments and strings.
    code: String,
}

impl File {
    /// The first folder, or the name of a file that stands alone.
    fn room(&self) -> &str {
        self.path.split(['/', '.']).next().unwrap_or_default()
    }

    /// How many modules lie between the file and the root of the crate.
    fn depth(&self) -> usize {
        let steps = self.path.split('/').count();
        if self.path.ends_with("/mod.rs") || ["lib.rs", "main.rs"].contains(&self.path.as_str()) {
            steps - 1
        } else {
            steps
        }
    }

    /// The rooms that the file names, its own left out, each with the line of the first mention.
    fn uses(&self) -> BTreeMap<String, usize> {
        let mut found = BTreeMap::new();
        let own = self.room();
        for (name, at) in rooms_named(&self.code, self.depth()) {
            if name != own && ORDER.contains(&name.as_str()) {
                found.entry(name).or_insert(1 + self.code[..at].matches('\n').count());
            }
        }
        found
    }
}

/// All production files.
fn files() -> Vec<File> {
    ROOTS.iter().flat_map(|root| files_of(root)).collect()
}

fn files_of(name: &'static str) -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let mut paths = Vec::new();
    let mut open = vec![root.clone()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let mut tests = BTreeSet::new();
    let mut files = Vec::new();
    for path in paths {
        let code = without_text(&fs::read_to_string(&path).unwrap());
        for module in test_modules(&code) {
            let folder = match path.file_stem().and_then(|stem| stem.to_str()) {
                Some("mod" | "lib" | "main") => path.parent().map(Path::to_path_buf).unwrap_or_default(),
                _ => path.with_extension(""),
            };
            tests.insert(folder.join(module));
        }
        files.push((path, code));
    }
    let is_test = |path: &PathBuf| tests.iter().any(|test| path.with_extension("") == *test || path.starts_with(test));
    let kept = files.into_iter().filter(|(path, _)| !is_test(path));
    let named = |path: &Path| path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
    kept.map(|(path, code)| File { root: name, path: named(&path), code: without_tests(&code) }).collect()
}

/// The source with blanks in the place of comments, strings and characters.
fn without_text(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &source.as_bytes()[at..];
        let length = if rest.starts_with(b"//") {
            rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            source[at..].find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest[0] == b'r' && (rest.starts_with(b"r\"") || rest.starts_with(b"r#")) && !in_word(bytes, at) {
            let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
            if rest.get(1 + hashes) == Some(&b'"') {
                let end = format!("\"{}", "#".repeat(hashes));
                source[at + 2 + hashes..].find(&end).map_or(rest.len(), |found| 2 + hashes + found + end.len())
            } else {
                0
            }
        } else if rest[0] == b'"' {
            let mut end = 1;
            while end < rest.len() && rest[end] != b'"' {
                end += if rest[end] == b'\\' { 2 } else { 1 };
            }
            (end + 1).min(rest.len())
        } else if rest[0] == b'\'' && rest.get(1) == Some(&b'\\') {
            rest.iter().skip(3).position(|byte| *byte == b'\'').map_or(1, |end| end + 4)
        } else if rest[0] == b'\'' && source[at + 1..].chars().nth(1) == Some('\'') {
            2 + source[at + 1..].chars().next().map_or(0, char::len_utf8)
        } else {
            0
        };
        code[at..at + length].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        at += length.max(1);
    }
    String::from_utf8(code).unwrap()
}

/// Whether the byte before stands in a word too.
fn in_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_')
}

const TEST: &str = "#[cfg(test)]";

/// The names of test modules that are files of their own.
fn test_modules(code: &str) -> Vec<String> {
    let behind = code.split(TEST).skip(1).map(str::trim_start);
    let modules = behind.filter_map(|item| {
        let item = item.split(';').next()?;
        let (visibility, name) = item.split_once("mod ")?;
        (visibility.is_empty() || visibility.starts_with("pub")).then(|| name.trim().to_owned())
    });
    modules.filter(|name| name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')).collect()
}

/// The code without items that are there for tests only.
fn without_tests(code: &str) -> String {
    let mut kept = code.to_owned();
    while let Some(start) = kept.find(TEST) {
        let item = &kept[start + TEST.len()..];
        let (brace, semicolon) = (item.find('{'), item.find(';'));
        let length = match (brace, semicolon) {
            (Some(brace), semicolon) if semicolon.is_none_or(|end| brace < end) => {
                let mut depth = 0;
                let closed = item[brace..].bytes().position(|byte| {
                    depth += i32::from(byte == b'{') - i32::from(byte == b'}');
                    depth == 0
                });
                closed.map_or(item.len(), |end| brace + end + 1)
            }
            (_, Some(end)) => end + 1,
            _ => item.len(),
        };
        let gone: String = kept[start..start + TEST.len() + length]
            .chars()
            .map(|letter| if letter == '\n' { '\n' } else { ' ' })
            .collect();
        kept.replace_range(start..start + TEST.len() + length, &gone);
    }
    kept
}

/// What follows `crate::`, `throng_core::`, or as many `super::` as lead out of the room, and where.
fn rooms_named(code: &str, depth: usize) -> Vec<(String, usize)> {
    let mut named = Vec::new();
    let mut roots = Vec::new();
    for root in ["crate::", "throng_core::"] {
        roots.extend(code.match_indices(root).map(|(at, word)| at + word.len()));
    }
    let up = "super::".repeat(depth.max(1));
    roots.extend(code.match_indices(&up).map(|(at, word)| at + word.len()).filter(|_| depth > 0));
    for root in roots {
        match code[root..].strip_prefix('{') {
            None => named.extend(word(&code[root..]).map(|name| (name, root))),
            Some(group) => {
                let mut depth = 0;
                let mut fresh = true;
                for (at, letter) in group.char_indices() {
                    match letter {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => fresh = true,
                        letter if fresh && !letter.is_whitespace() => {
                            named.extend(word(&group[at..]).map(|name| (name, root)));
                            fresh = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    named
}

/// The word that a text begins with.
fn word(text: &str) -> Option<String> {
    let word: String = text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    (!word.is_empty()).then_some(word)
}

/// Which room uses which, and where.
fn edges() -> BTreeMap<(String, String), String> {
    let mut edges = BTreeMap::new();
    for file in files() {
        for (room, line) in file.uses() {
            edges
                .entry((file.room().to_owned(), room))
                .or_insert_with(|| format!("{}/{}:{line}", file.root, file.path));
        }
    }
    edges
}

fn place(room: &str) -> usize {
    ORDER
        .iter()
        .position(|known| *known == room)
        .unwrap_or_else(|| panic!("`{room}` has no place in ORDER: give it one"))
}

#[test]
fn every_room_has_its_place() {
    let rooms: BTreeSet<String> = files().iter().map(|file| file.room().to_owned()).collect();
    let known: BTreeSet<String> = ORDER.iter().map(|room| (*room).to_owned()).collect();
    assert_eq!(rooms, known, "rooms of src/ and ORDER differ");
}

#[test]
fn rooms_use_only_those_above_them() {
    let against: Vec<String> = edges()
        .into_iter()
        .filter(|((user, used), _)| place(used) > place(user))
        .map(|((user, used), at)| format!("{user} uses {used} at {at}"))
        .collect();
    assert!(against.is_empty(), "against the order:\n{}", against.join("\n"));
}

#[test]
fn no_room_uses_itself_by_way_of_others() {
    let mut edges = edges();
    loop {
        // Rooms that use nobody any more, and rooms that nobody uses, are in no circle.
        let users: BTreeSet<String> = edges.keys().map(|(user, _)| user.clone()).collect();
        let used: BTreeSet<String> = edges.keys().map(|(_, used)| used.clone()).collect();
        let before = edges.len();
        edges.retain(|(from, to), _| users.contains(to) && used.contains(from));
        if edges.len() == before {
            break;
        }
    }
    assert!(edges.is_empty(), "in a circle: {edges:#?}");
}

#[test]
fn pure_rooms_know_nothing_of_engines_and_files() {
    let mut found = Vec::new();
    let is_pure = |file: &&File| PURE.contains(&file.room()) || file.root == "core/src" && file.room() == "series";
    for file in files().iter().filter(is_pure) {
        for (line, code) in file.code.lines().enumerate() {
            for impure in IMPURE.iter().filter(|impure| names(code, impure)) {
                found.push(format!("{}/{}:{}: {impure}", file.root, file.path, line + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Whether a line of code holds a word by itself.
fn names(code: &str, wanted: &str) -> bool {
    let in_word = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    code.match_indices(wanted)
        .any(|(at, _)| !in_word(code[..at].chars().next_back()) && !in_word(code[at + wanted.len()..].chars().next()))
}

/// A check must not share code with what it checks.
#[test]
fn verification_shares_nothing_with_what_it_judges() {
    let judges = ["published", "verify", "audit"];
    let files: Vec<File> = files().into_iter().filter(|file| judges.contains(&file.room())).collect();
    assert!(files.len() > 10);
    let mut argued = BTreeSet::new();
    for file in &files {
        for (room, line) in file.uses() {
            match ARGUED.iter().find(|one| **one == (file.path.as_str(), room.as_str())) {
                Some(one) => _ = argued.insert(one),
                None => assert!(!JUDGED.contains(&room.as_str()), "{}/{}:{line} uses {room}", file.root, file.path),
            }
        }
    }
    assert_eq!(argued.len(), ARGUED.len(), "an exception that nobody needs any more");
}

/// The share of functions that may have a name of one word: `of`, `at` or `check` leave a reader to guess what they are about.
/// The aim is 0.40; lower the ceiling with every name that gains its noun, and never raise it.
const MAX_ONE_WORD: f64 = 0.40;

/// Names carry their noun. Methods of traits are not counted where they are implemented: whoever named the trait chose them.
#[test]
fn most_functions_have_a_name_of_more_than_one_word() {
    let names: Vec<String> = files().iter().flat_map(|file| own_functions(&file.code)).collect();
    assert!(names.len() > 2000, "{} functions were read", names.len());
    let one_word = names.iter().filter(|name| !name.contains('_')).count();
    let share = one_word as f64 / names.len() as f64;
    assert!(share < MAX_ONE_WORD, "{one_word} of {} functions have a name of one word: {share:.3}", names.len());
}

/// The functions that are named where they stand.
fn own_functions(code: &str) -> Vec<String> {
    let named_elsewhere: Vec<(usize, usize)> = trait_impls(code);
    let functions = code.match_indices("fn ").filter(|(at, _)| !in_word(code.as_bytes(), *at));
    let own = functions.filter(|(at, _)| !named_elsewhere.iter().any(|(from, to)| (*from..*to).contains(at)));
    own.filter_map(|(at, keyword)| word(&code[at + keyword.len()..])).collect()
}

/// Where `impl Trait for Type { ... }` begins and ends.
fn trait_impls(code: &str) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    for (at, _) in code.match_indices("impl").filter(|(at, _)| !in_word(code.as_bytes(), *at)) {
        let Some(brace) = code[at..].find(['{', ';']).filter(|end| code[at + end..].starts_with('{')) else { continue };
        let head = code[at..at + brace].split("where").next().unwrap_or_default();
        // `for<'a>` names a lifetime, and `impl Trait` in the type of an argument is no item.
        let line = code[..at].rfind('\n').map_or(0, |end| end + 1);
        if !code[line..at].trim().is_empty() || !head.contains(" for ") {
            continue;
        }
        let mut depth = 0;
        let end = code[at + brace..].bytes().position(|byte| {
            depth += i32::from(byte == b'{') - i32::from(byte == b'}');
            depth == 0
        });
        spans.push((at, at + brace + end.unwrap_or_default()));
    }
    spans
}

#[test]
fn functions_are_counted_where_they_are_named() {
    let code = "fn one() {}\nimpl<'a> Show for A<'a> {\n    fn show(&self) { fn inner() {} }\n}\nimpl A {\n    pub fn \
                two_words(f: impl Fn(u8)) -> u8 { 0 }\n}\ntrait Show {\n    fn show(&self);\n}\n";
    assert_eq!(own_functions(code), ["one", "two_words", "show"]);
}

/// The reader of this file sees what it should.
#[test]
fn uses_are_found_in_production_code_alone() {
    let source = r##"
        //! crate::cli::a
        use crate::{error::{Error, Result}, model, policy::{self, Job}};
        use super::super::write::Written;
        fn a() -> crate::measure::Loss { "crate::attack::b"; 'c'; r#"crate::cluster"#; todo() }
        #[cfg(test)]
        mod tests { use crate::audit::X; fn b() { let _ = '{'; } }
        #[cfg(test)]
        pub(crate) mod fixtures;
        fn c(x: &'static str) { crate::source::open(x) }
    "##;
    let code = without_text(source);
    assert_eq!(test_modules(&code), ["fixtures"]);
    let file = File { root: "src", path: "release/run.rs".into(), code: without_tests(&code) };
    let found: Vec<String> = file.uses().into_keys().collect();
    assert_eq!(found, ["error", "measure", "model", "policy", "source", "write"]);
    assert!(
        names("use std::fs::read;", "std::fs") && !names("use std::fsx;", "std::fs") && !names("asynchronous", "async")
    );
}

/// The most items that a program can name from outside: types, traits, functions, constants and modules.
const MAX_PUBLIC_ITEMS: usize = 120;

/// The names of the `pub` items of a file, and how many of its functions belong to a type.
fn public_items(code: &str) -> (Vec<String>, usize) {
    let (mut items, mut associated, mut depth) = (Vec::new(), 0, 0_usize);
    for line in code.lines() {
        let nested = depth > 0;
        depth = (depth + line.matches('{').count()).saturating_sub(line.matches('}').count());
        let Some(declared) = line.trim_start().strip_prefix("pub ") else { continue };
        let words = declared.split_whitespace().skip_while(|word| ["async", "unsafe"].contains(word));
        let words: Vec<&str> = words.collect();
        match words.as_slice() {
            ["const", "fn", ..] | ["fn", ..] if nested => associated += 1,
            ["const", "fn", name, ..] => items.extend(word(name)),
            ["struct" | "enum" | "trait" | "fn" | "const" | "static" | "type" | "mod" | "union", name, ..] => {
                items.extend(word(name));
            }
            // What comes from the crate of the mathematics is named here alone.
            ["use", path, ..] if path.starts_with("throng_core::") => {
                let names = declared.rsplit("::").next().unwrap_or_default();
                items.extend(names.split([',', '{', '}', ';', ' ']).filter(|name| !name.is_empty()).map(str::to_owned));
            }
            _ => {}
        }
    }
    (items, associated)
}

/// The compiler refuses a `pub` that cannot be reached from the root of the crate (`unreachable_pub`), so every one that
/// is written can be.
#[test]
fn the_front_door_is_narrow() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    assert!(fs::read_to_string(root).unwrap().contains("#![warn(unreachable_pub)]"));
    let mut items = Vec::new();
    let mut associated = 0;
    for file in files_of("src") {
        let (found, functions) = public_items(&file.code);
        items.extend(found.into_iter().map(|item| format!("{}: {item}", file.path)));
        associated += functions;
    }
    let listed = items.join("\n");
    assert!(items.len() > 80, "the items are found: {listed}");
    assert!(items.len() <= MAX_PUBLIC_ITEMS, "{} items and {associated} functions of types:\n{listed}", items.len());
}

#[test]
fn public_items_are_told_from_those_inside() {
    let code = "pub mod a;\npub(crate) struct B;\npub struct C {\n    pub d: u8,\n}\nimpl C {\n    pub fn e() {}\n}\n\
                pub use throng_core::privacy::k::{F, G};\npub use crate::h::I;\npub async fn j() {}\npub const K: u8 = 1;\n";
    let (items, associated) = public_items(code);
    assert_eq!(items, ["a", "C", "F", "G", "j", "K"]);
    assert_eq!(associated, 1);
}

/// The path of a row in CONTRIBUTING names functions of the files that it names them in.
#[test]
fn the_path_of_a_row_leads_through_functions_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let table = text.split("### One row").nth(1).and_then(|text| text.split("\n### ").next()).unwrap();
    let quoted = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let files = files();
    let mut lost = Vec::new();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split('|').collect()).collect();
    let rows: Vec<&Vec<&str>> = rows.iter().filter(|cells| cells.len() == 5 && cells[2].contains('/')).collect();
    assert!(rows.len() > 20, "{} rows were read", rows.len());
    for cells in rows {
        let places = quoted(cells[2]);
        let code: String = files
            .iter()
            .filter(|file| places.iter().any(|place| format!("{}/{}", file.root, file.path).starts_with(place)))
            .map(|file| file.code.as_str())
            .collect();
        for function in quoted(cells[1]) {
            let name = function.rsplit("::").next().unwrap_or_default();
            let is_there = [format!("fn {name}("), format!("fn {name}<")].iter().any(|wanted| code.contains(wanted));
            lost.extend((!is_there).then(|| format!("`{function}` in {places:?}")));
        }
    }
    assert!(lost.is_empty(), "not there any more: {lost:#?}");
}
