//! What happens to identifiers: dropped, pseudonyms, a constant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, StringArray};

use crate::support::{Desk, NULL, Ran, manifest, multiset, shell, texts};
use crate::tables::{JOB, people};

const KEY: &str = "THE_KEY=0123456789abcdef0123";

/// A job on people with a name and a badge, which are identifiers and are treated so.
fn job(name: &str, badge: &str) -> String {
    format!(
        "{JOB}name = {{ role = \"identifier\", treat = {name} }}\nbadge = {{ role = \"identifier\", treat = {badge} }}\n"
    )
}

/// That job and its people.
fn desk(name: &str, badge: &str) -> Desk {
    let mut columns = people(200);
    let names: Vec<Option<String>> =
        (0..200).map(|row| (row % 10 > 0).then(|| format!("Zaphod {}", row / 2))).collect();
    columns.push(("name", Arc::new(StringArray::from(names)) as ArrayRef));
    columns.push(("badge", Arc::new(Int32Array::from_iter_values(88_000..88_200))));
    Desk::with(columns, &job(name, badge))
}

fn with_key(desk: &Desk, key: &str, command: &str) -> Ran {
    shell(&desk.path("."), &format!("{key} $THRONG {command}"))
}

const PSEUDONYM: &str = "{ pseudonym = { key-env = \"THE_KEY\" } }";

#[test]
fn pseudonyms_stand_for_values() {
    let desk = desk(PSEUDONYM, "{ pseudonym = { key-env = \"THE_KEY\", encoding = \"base64url\" } }");
    let check = with_key(&desk, KEY, "check job.toml").ok();
    assert!(check.out.contains("warning") && check.out.contains("can be joined on them"), "{}", check.out);
    with_key(&desk, KEY, "run job.toml").ok();
    let rows = desk.released();
    let mut pseudonyms: BTreeMap<i64, String> = BTreeMap::new();
    for (id, name) in texts(&rows, "id").iter().zip(texts(&rows, "name")) {
        pseudonyms.insert(id.parse::<i64>().unwrap() - crate::tables::FIRST_ID, name);
    }
    for (row, name) in &pseudonyms {
        if row % 10 == 0 {
            assert_eq!(name, NULL, "null stays null");
        } else {
            assert!(name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        }
    }
    assert_eq!(pseudonyms[&2], pseudonyms[&3], "equal values have equal pseudonyms");
    let distinct: BTreeSet<&String> = pseudonyms.values().collect();
    assert_eq!(distinct.len(), 100 + 1);
    assert!(texts(&rows, "badge").iter().all(|badge| badge.len() == 43));
    with_key(&desk, KEY, "verify job.toml").ok();
    // Nothing of the values or of the key is anywhere in the sink.
    for file in desk.sink_files() {
        let bytes = std::fs::read(&file).unwrap();
        for secret in ["Zaphod", "0123456789abcdef"] {
            assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "{secret} in {file:?}");
        }
    }
}

#[test]
fn another_key_is_another_run() {
    let desk = desk(PSEUDONYM, "\"drop\"");
    with_key(&desk, KEY, "run job.toml").ok();
    let first = (manifest(&desk.path("out")), desk.released());
    assert!(first.1.column_by_name("badge").is_none());
    assert!(with_key(&desk, KEY, "run job.toml").ok().err.contains("released before"));
    desk.write("key", "0123456789abcdef0123\n");
    desk.job(&job("{ pseudonym = { key-file = \"key\" } }", "\"drop\""));
    assert!(desk.run(&[]).ok().err.contains("released before"), "the same key from another place");
    desk.write("key", "another key of enough bytes");
    desk.run(&[]).ok();
    let second = (manifest(&desk.path("out")), desk.released());
    assert_ne!(first.0["policy"], second.0["policy"]);
    let names = |rows| texts(rows, "name").into_iter().filter(|name| name != NULL).collect::<BTreeSet<_>>();
    assert!(names(&first.1).is_disjoint(&names(&second.1)), "nothing links releases of two keys");
}

#[test]
fn a_constant_tells_nothing() {
    let desk = desk("{ constant = \"somebody\" }", "{ constant = \"0\" }");
    desk.run(&[]).ok();
    let rows = desk.released();
    assert!(texts(&rows, "name").iter().all(|name| name == "somebody"), "null is replaced too");
    assert!(texts(&rows, "badge").iter().all(|badge| badge == "0"));
    desk.throng("verify", &[]).ok();
}

#[test]
fn keys_that_cannot_be_used() {
    let missing = desk(PSEUDONYM, "\"drop\"");
    for command in ["check", "run", "plan"] {
        missing.throng(command, &[]).refused(3, &["columns.name.treat.pseudonym", "`THE_KEY` is not set"]);
    }
    let short = with_key(&missing, "THE_KEY=0123456789abcde", "run job.toml");
    short.refused(3, &["`THE_KEY` holds 15 bytes", "at least 16"]);
    assert!(!short.err.contains("0123456789abcde"), "the key is revealed");
    desk("{ pseudonym = { key = \"x\" } }", "\"drop\"").run(&[]).refused(3, &["unknown key `key`"]);
    desk("\"hash\"", "\"drop\"").run(&[]).refused(3, &["`hash` is not a known value"]);
    let quasi = Desk::with(people(50), &JOB.replace("town.role", "town.treat = \"drop\"\ntown.role"));
    quasi.run(&[]).refused(3, &["columns.town.treat", "is an option of identifier columns"]);
    assert!(missing.sink_files().is_empty());
}

#[test]
fn identifiers_are_replaced_below_the_sort() {
    let desk = desk(PSEUDONYM, "\"drop\"");
    let plan = with_key(&desk, KEY, "plan job.toml --partitions 2").ok().out;
    assert!(plan.contains("pseudonym=[name]"), "{plan}");
    let sort = plan.find("SortExec").unwrap();
    assert!(plan.find("pseudonym(name@").unwrap() > sort, "{plan}");
    assert!(!plan.contains("badge"), "what is dropped is not read: {plan}");
    assert!(!plan.contains("0123456789abcdef"));
}

#[test]
fn queries_get_pseudonyms_too() {
    let desk = desk(PSEUDONYM, "\"drop\"");
    with_key(&desk, KEY, "run job.toml").ok();
    let query = "CREATE EXTERNAL TABLE people STORED AS PARQUET LOCATION 'in.parquet';\n\
                 COPY (SELECT * FROM anonymize((SELECT * FROM people), 'job.toml')) TO 'copy.parquet' STORED AS PARQUET;";
    desk.write("query.sql", query);
    with_key(&desk, KEY, "sql query.sql").ok();
    let copied = crate::support::read_parquet(&desk.path("copy.parquet"));
    let sorted = |rows, column: &str| {
        let mut values = texts(rows, column);
        values.sort_unstable();
        values
    };
    assert_eq!(sorted(&copied, "name"), sorted(&desk.released(), "name"));
    assert_eq!(multiset(&copied).len(), 200);
}
