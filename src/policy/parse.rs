//! From TOML text to a [`Job`].
//!
//! 1. The text is parsed with the place of every key and value kept.
//! 2. Overrides (`privacy.k = 5` of a command line or the environment) are applied.
//! 3. The tables are read into the model. At an unknown key or an impossible value the problem is noted, the key is
//!    taken out and reading starts again, so that one look shows all problems.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::model::Job;
use crate::error::problem::nearest_word;
use crate::error::{Error, Problem, Result};
use crate::reading::{Fault, Node, Wrong};

/// The error of a job file that cannot be read, with everything that is wrong with it in the order found.
fn job_error(path: &Path, problems: &[Problem]) -> Error {
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| match problem.line {
            Some(line) => format!("{}:{line}: {problem}", path.display()),
            None => format!("{}: {problem}", path.display()),
        })
        .collect();
    Error::job(lines.join("\n"))
}

impl Job {
    /// Reads a job file. `path` is only named in errors.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        Self::parse_with(text, path, &[])
    }

    /// Reads a job file and applies overrides: pairs such as `("privacy.k", "5")`. A value is read as TOML, and as
    /// plain text when it is not TOML; it replaces what the key has in the file, a table as a whole.
    pub fn parse_with(text: &str, path: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        let fail = |problems: Vec<Problem>| job_error(path, &problems);
        let laid: Vec<String> = settings.iter().map(|(key, value)| as_toml(key, value)).collect();
        let mut root = DeTable::parse(text).map_err(|error| fail(vec![syntax_problem(text, &error)]))?;
        for ((key, _), toml) in settings.iter().zip(&laid) {
            let wrong = Problem::error(*key, "is not a key of a job file").help("write it as `privacy.k=5`");
            let over = key_depth(key).zip(DeTable::parse(toml).ok());
            let (depth, over) = over.ok_or_else(|| fail(vec![wrong]))?;
            lay_over(root.get_mut(), over.into_inner(), depth);
        }
        let mut problems: Vec<Problem> = Vec::new();
        loop {
            let fault = match Self::deserialize(Node::of_table(root.clone())) {
                Ok(job) if problems.is_empty() => return Ok(job),
                Ok(_) => break,
                Err(fault) => fault,
            };
            let problem = problem_of(&fault);
            let is_missing = matches!(fault.what, Wrong::MissingKey(_));
            let key = problem.key.as_str();
            let set_outside = settings.iter().any(|(setting, _)| is_within(key, setting) || is_within(setting, key));
            // A part that is missing altogether has no line.
            let has_line = !(set_outside || is_missing && fault.keys.is_empty());
            let line = fault.span.as_ref().filter(|_| has_line).map(|span| line_of(text, span.start));
            // What was taken out because of another problem is not missing.
            let taken_out = is_missing && problems.iter().any(|known| is_within(&known.key, key));
            if !taken_out {
                problems.push(Problem { line, ..problem });
            }
            if !take_out(root.get_mut(), &keys_to_take_out(&fault)) {
                break;
            }
        }
        for key in REQUIRED.iter().filter(|key| !root.get_ref().contains_key(**key)) {
            if !problems.iter().any(|known| is_within(&known.key, key)) {
                problems.push(Problem::error(*key, "is missing"));
            }
        }
        problems.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
        Err(fail(problems))
    }
}

/// The parts that no job file goes without.
const REQUIRED: [&str; 4] = ["version", "source", "sink", "privacy"];

/// Whether a key is another one or below it.
fn is_within(key: &str, above: &str) -> bool {
    key.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// One setting as a line of TOML.
fn as_toml(key: &str, value: &str) -> String {
    let line = format!("{key} = {value}");
    if !value.contains('\n') && DeTable::parse(&line).is_ok() {
        return line;
    }
    format!("{key} = {}", toml::Value::String(value.to_owned()))
}

/// How many names a key has: two for `privacy.k`. `None` for anything but a key.
fn key_depth(key: &str) -> Option<usize> {
    let line = format!("{key} = 0");
    let mut table = DeTable::parse(&line).ok()?.into_inner();
    let mut depth = 1;
    while let Some((_, value)) = table.into_iter().next() {
        let DeValue::Table(below) = value.into_inner() else { return Some(depth) };
        (table, depth) = (below, depth + 1);
    }
    None
}

/// Replaces the value of a key with the given number of names.
fn lay_over<'a>(base: &mut DeTable<'a>, over: DeTable<'a>, depth: usize) {
    for (key, value) in over {
        match (base.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut), value) {
            (Some(DeValue::Table(below)), value) if depth > 1 => {
                if let DeValue::Table(table) = value.into_inner() {
                    lay_over(below, table, depth - 1);
                }
            }
            (_, value) => {
                // Replaces the value but keeps the key, and with it the place of the key.
                base.insert(key, value);
            }
        }
    }
}

/// Removes the value at a path, or the closest one above it that can be removed. False when there is none.
fn take_out(table: &mut DeTable<'_>, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    match table.get_mut(*first).map(Spanned::get_mut) {
        None => false,
        Some(DeValue::Table(below)) if !rest.is_empty() && below.contains_key(rest[0]) => take_out(below, rest),
        Some(_) => table.remove(*first).is_some(),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
}

fn syntax_problem(text: &str, error: &toml::de::Error) -> Problem {
    let line = error.span().map(|span| line_of(text, span.start));
    Problem { line, ..Problem::error("", error.message().replace('\n', ", ")) }
}

/// A fault as a problem of the job file.
fn problem_of(fault: &Fault) -> Problem {
    let within = fault.keys.join(".");
    let join = |key: &str| if within.is_empty() { key.to_owned() } else { format!("{within}.{key}") };
    match &fault.what {
        Wrong::UnknownKey(key, known) => {
            let section = if within.is_empty() { "the job file".to_owned() } else { format!("[{within}]") };
            suggest_word(Problem::error(join(key), format!("unknown key `{key}` in {section}")), key, known)
        }
        Wrong::UnknownValue(value, known) => {
            suggest_word(Problem::error(within, format!("`{value}` is not a known value")), value, known)
        }
        Wrong::MissingKey(key) => Problem::error(join(key), "is missing"),
        Wrong::Value(message) => Problem::error(within, message.as_str()),
    }
}

/// The keys to take out so that reading can go on; those of the whole table when one of its keys is missing.
fn keys_to_take_out(fault: &Fault) -> Vec<&str> {
    let mut keys: Vec<&str> = fault.keys.iter().map(String::as_str).collect();
    if let Wrong::UnknownKey(key, _) = &fault.what {
        keys.push(key);
    }
    keys
}

fn suggest_word(problem: Problem, word: &str, known: &[&str]) -> Problem {
    match nearest_word(word, known.iter().copied()) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None if known.is_empty() => problem,
        None => problem.help(format!("expected one of {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::InlineTree;
    use crate::policy::model::*;

    const JOB: &str = r#"
version = 1
[source]
url = "in"
[sink]
url = "out"
[privacy]
k = 10
[columns]
age = { role = "quasi" }
"#;

    fn errors(text: &str) -> String {
        Job::parse(text, Path::new("job.toml")).unwrap_err().to_string()
    }

    /// What an error says of the first problem, behind file and line.
    fn without_line(error: &Error) -> String {
        let text = error.to_string();
        let first = text.split("\njob.toml:").next().unwrap_or_default();
        first.split_once(": ").unwrap().1.to_owned()
    }

    fn column(hierarchy: &str) -> Result<Column> {
        let text = format!("{JOB}x = {{ role = \"quasi\", hierarchy = {hierarchy} }}\n");
        Job::parse(&text, Path::new("job.toml")).map(|mut job| job.columns.remove("x").unwrap())
    }

    #[test]
    fn the_smallest_job_has_defaults() {
        let job = Job::parse(JOB, Path::new("job.toml")).unwrap();
        assert_eq!(job.privacy.max_suppression, 0.05);
        assert_eq!(job.method, MethodSpec::default());
        assert_eq!((job.method.name, job.method.seed), (MethodName::default(), None));
        assert_eq!(job.output.compression, Compression::Zstd);
        assert_eq!(job.columns["age"], Column::new(Role::Quasi));
    }

    #[test]
    fn a_full_job_is_read_and_written_back() {
        let text = r#"
            version = 1
            source = { url = "s3://lake/raw/" }
            sink = { url = "s3://lake/published/" }
            [privacy]
            k = 4
            max-suppression = 0
            max-loss = 0.4
            l-diversity = { column = "disease", kind = "recursive", l = 2, c = 3 }
            [[privacy.range-diversity]]
            column = "salary"
            p = 0.5
            ranges = [{ values = [0, 10], range = [0, 20] }]
            [[privacy.range-diversity]]
            column = "disease"
            p = 0.5
            ranges = [{ values = ["flu", "cold"], range = "respiratory" }, { values = ["x"], range = ["x", "y"] }]
            [defaults]
            role = "kept"
            [columns]
            name = { role = "identifier" }
            zip = { role = "quasi", hierarchy = { mask = "right", keep = [3, 2] }, unknown = "top", priority = 2 }
            age = { role = "quasi", hierarchy = { widths = [5, 10], origin = 1 }, publish = "label", domain = [0, 120] }
            pay = { role = "quasi", hierarchy = { bounds = [[0, 10.5], [0]] } }
            dose = { role = "quasi", hierarchy = { quantiles = [16, 4] } }
            born = { role = "quasi", hierarchy = { calendar = ["month", "year"] }, publish = "range" }
            job = { role = "quasi", hierarchy = "job.csv" }
            land = { role = "quasi", hierarchy = { tree = { Europe = ["Spain"], Asia = { East = ["Japan"] } } } }
            disease = { role = "sensitive", hierarchy = { tree = [{ respiratory = ["flu", "cold"] }, "x", "y"] } }
            salary = { role = "sensitive" }
            [method]
            name = "upc"
            [method.upc]
            s = 50
            [output]
            compression = "snappy"
            file-rows = 1000
        "#;
        let job = Job::parse(text, Path::new("job.toml")).unwrap();
        assert_eq!(job.privacy.range_diversity.len(), 2);
        assert_eq!(job.privacy.l_diversity[0].kind, Diversity::Recursive);
        let again = toml::to_string(&job).unwrap();
        assert_eq!(Job::parse(&again, Path::new("again.toml")).unwrap(), job, "{again}");
    }

    #[test]
    fn every_form_of_hierarchy() {
        assert_eq!(column("\"a.csv\"").unwrap().hierarchy, Some(HierarchySpec::File("a.csv".to_owned())));
        let mask = HierarchySpec::Mask { mask: Side::Left, fill: '*', keep: None };
        assert_eq!(column("{ mask = \"left\" }").unwrap().hierarchy, Some(mask));
        let Some(HierarchySpec::Tree { tree }) = column("{ tree = { A = [1, 2], B = \"x\" } }").unwrap().hierarchy
        else {
            panic!("a tree")
        };
        let leaf = |label: &str| InlineTree::Leaf(label.to_owned());
        assert_eq!(tree[0], InlineTree::Node("A".to_owned(), vec![leaf("1"), leaf("2")]));
        assert_eq!(tree[1], InlineTree::Node("B".to_owned(), vec![leaf("x")]));
        let message = |hierarchy: &str| without_line(&column(hierarchy).unwrap_err());
        assert_eq!(
            message("{ char = \"*\" }"),
            "columns.x.hierarchy: a hierarchy table needs one of `mask`, `widths`, `bounds`, `quantiles`, \
             `calendar`, `tree`"
        );
        assert!(message("{ mask = \"left\", widths = [1] }").contains("only one of"));
        assert!(
            message("{ widths = [1], keep = [2] }").contains("`char` and `keep` belong to a hierarchy with `mask`")
        );
        assert!(message("{ mask = \"left\", origin = 2 }").contains("`origin` belongs to a hierarchy with `widths`"));
        assert_eq!(
            message("{ widht = [1] }"),
            "columns.x.hierarchy.widht: unknown key `widht` in [columns.x.hierarchy]\n  help: did you mean `widths`?"
        );
        assert_eq!(
            message("{ calendar = [\"mnth\"] }"),
            "columns.x.hierarchy.calendar: `mnth` is not a known value\n  help: did you mean `month`?"
        );
        assert_eq!(
            message("7"),
            "columns.x.hierarchy: wrong type: the number `7`, expected the path of a level CSV file, or a table \
             such as \
             { widths = [5, 10] }"
        );
    }

    #[test]
    fn every_form_of_ranges() {
        let ranges = |ranges: &str| {
            let text = format!("{JOB}[privacy.range-diversity]\ncolumn = \"x\"\np = 0.5\nranges = {ranges}\n");
            Job::parse(&text, Path::new("job.toml")).map(|mut job| job.privacy.range_diversity.remove(0).ranges)
        };
        assert_eq!(ranges("\"identity\"").unwrap(), Ranges::Identity);
        assert_eq!(ranges("{ level = 2 }").unwrap(), Ranges::Level(2));
        assert_eq!(ranges("{ interval = 10 }").unwrap(), Ranges::Interval(10.0));
        let listed = ListedRange { values: Values::Listed(vec!["a".to_owned()]), range: RangeOf::Node("n".to_owned()) };
        assert_eq!(ranges("[{ values = [\"a\"], range = \"n\" }]").unwrap(), Ranges::Listed(vec![listed]));
        let message = |text: &str| {
            let message = without_line(&ranges(text).unwrap_err());
            message.strip_prefix("privacy.range-diversity.ranges: ").map_or(message.clone(), str::to_owned)
        };
        assert_eq!(message("{}"), "ranges need exactly one of `level` and `interval`");
        assert_eq!(message("\"idntity\""), "`idntity` is not a known value\n  help: did you mean `identity`?");
        assert_eq!(
            message("[{ values = [1, 2, 3], range = [0, 4] }]"),
            "privacy.range-diversity.ranges.values: expected two numbers, [lowest, highest], or a list of texts"
        );
    }

    #[test]
    fn unknown_keys_and_values_come_with_a_suggestion_and_all_at_once() {
        let text =
            JOB.replace("k = 10", "k = 10\nmax-supression = 0.1").replace("quasi", "quasy").replace("[sink]", "[snik]");
        assert_eq!(
            errors(&text).lines().collect::<Vec<_>>(),
            [
                "job.toml:5: snik: unknown key `snik` in the job file",
                "  help: did you mean `sink`?",
                "job.toml:9: privacy.max-supression: unknown key `max-supression` in [privacy]",
                "  help: did you mean `max-suppression`?",
                "job.toml:11: columns.age.role: `quasy` is not a known value",
                "  help: did you mean `quasi`?",
                "job.toml: sink: is missing",
            ]
        );
        // A table with a missing key does not hide the problems of the others.
        let text = "version = 1\nprivacy = { k = -1, l-diversity = { l = 2 } }\n[columns]\na = { rule = 1 }\nb \
         = { role = 2 }\n";
        assert_eq!(
            errors(text).lines().filter(|line| !line.starts_with("  help")).collect::<Vec<_>>(),
            [
                "job.toml:2: privacy.k: invalid value: the number `-1`, expected a whole number of 0 or more",
                "job.toml:2: privacy.l-diversity.column: is missing",
                "job.toml:4: columns.a.rule: unknown key `rule` in [columns.a]",
                "job.toml:4: columns.a.role: is missing",
                "job.toml:5: columns.b.role: wrong type: expected one of the known values",
                "job.toml: source: is missing",
                "job.toml: sink: is missing",
            ]
        );
    }

    #[test]
    fn wrong_types_and_missing_keys() {
        assert_eq!(
            errors(&JOB.replace("k = 10", "k = \"ten\"")),
            "job.toml:8: privacy.k: wrong type: the text \"ten\", expected a whole number of 0 or more"
        );
        assert_eq!(
            errors(&JOB.replace("k = 10", "k = -1")),
            "job.toml:8: privacy.k: invalid value: the number `-1`, expected a whole number of 0 or more"
        );
        assert_eq!(
            errors(&JOB.replace("k = 10", "k = 99999999999")),
            "job.toml:8: privacy.k: invalid value: the number `99999999999`, expected a whole number of at most 4294967295"
        );
        assert_eq!(errors(&JOB.replace("k = 10", "")), "job.toml:7: privacy.k: is missing");
        assert_eq!(
            errors(&JOB.replace("[source]\nurl = \"in\"", "source = \"in\"")),
            "job.toml:3: source: wrong type: the text \"in\", expected a table"
        );
        assert_eq!(errors(&JOB.replace("version = 1", "")), "job.toml: version: is missing");
    }

    #[test]
    fn broken_toml_names_the_line() {
        let message = errors(&JOB.replace("k = 10", "k = "));
        assert!(message.starts_with("job.toml:8: "), "{message}");
        assert!(errors(&format!("{JOB}\n[privacy]\nk = 3\n")).starts_with("job.toml:12: duplicate key"));
    }

    #[test]
    fn settings_are_laid_over_the_file() {
        let set = |settings: &[(&str, &str)]| Job::parse_with(JOB, Path::new("job.toml"), settings);
        let job = set(&[
            ("privacy.k", "5"),
            ("method.name", "mondrian"),
            ("columns.age.publish", "label"),
            ("columns.\"a b\".role", "kept"),
            ("sink.url", "s3://bucket/x y"),
            ("privacy.l-diversity", "{ column = \"a\", l = 2 }"),
        ])
        .unwrap();
        assert_eq!((job.privacy.k, job.method.name), (5, MethodName::new("mondrian").unwrap()));
        assert_eq!(job.columns["age"].publish, Some(Publish::Label));
        assert_eq!(job.columns["age"].role, Role::Quasi);
        assert_eq!(job.columns["a b"].role, Role::Kept);
        assert_eq!(job.sink.url, "s3://bucket/x y");
        assert_eq!(job.privacy.l_diversity.len(), 1);
        assert_eq!(
            set(&[("privacy.k", "many")]).unwrap_err().to_string(),
            "job.toml: privacy.k: wrong type: the text \"many\", expected a whole number of 0 or more"
        );
        assert!(set(&[("privcy.k", "3")]).unwrap_err().to_string().contains("help: did you mean `privacy`?"));
        for key in ["a = b", "", "a = { b", "privacy.", "a]"] {
            assert!(set(&[(key, "3")]).unwrap_err().to_string().contains("is not a key of a job file"), "{key}");
        }
    }

    #[test]
    fn a_table_is_replaced_as_a_whole() {
        let text = format!(
            "{}\n[method]\nname = \"auto\"\nseed = 7\nauto.effort = \"fast\"\n",
            JOB.replace("k = 10", "k = 10\nl-diversity = { column = \"a\", l = 3, kind = \"entropy\" }")
        );
        let set = |settings: &[(&str, &str)]| Job::parse_with(&text, Path::new("job.toml"), settings).unwrap();
        let rule = |job: &Job| format!("{:?}", job.privacy.l_diversity);
        let replaced = set(&[("privacy.l-diversity", "{ column = \"a\", l = 2 }")]);
        let plain = set(&[("privacy.l-diversity", "{ column = \"a\", l = 2, kind = \"distinct\" }")]);
        assert_eq!(rule(&replaced), rule(&plain), "nothing is left of the entropy");
        let job = set(&[("method", "{ name = \"mondrian\" }"), ("method.seed", "3"), ("privacy.k", "4")]);
        assert_eq!((job.method.name, job.method.seed), (MethodName::new("mondrian").unwrap(), Some(3)));
        assert_eq!((job.method.options.len(), job.privacy.k), (0, 4));
        assert_eq!(set(&[("method.name", "mondrian")]).method.options.len(), 1, "one key leaves the others");
    }
}
