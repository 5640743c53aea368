//! What must hold of a release, by the definitions, on values read from its files: counted by brute force.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::case::{Case, Treat};
use super::presence;
use super::quasi::Columns;
use crate::adversary::publication::{Piece, Publication};
use crate::adversary::values::{Value, column};

/// Rows of some files as columns, those that folders are named by as text.
fn columns(pieces: &[&Piece]) -> Columns {
    let mut all = Columns::new();
    for piece in pieces {
        for (field, array) in piece.rows.schema().fields().iter().zip(piece.rows.columns()) {
            all.entry(field.name().clone()).or_default().extend(column(array.as_ref()));
        }
        for (name, value) in piece.folder.split('/').filter_map(|folder| folder.split_once('=')) {
            let value = match value {
                "__HIVE_DEFAULT_PARTITION__" => Value::Null,
                other => Value::text(other),
            };
            all.entry(name.to_owned()).or_default().extend(std::iter::repeat_n(value, piece.rows.num_rows()));
        }
    }
    all
}

/// A value as a folder is named by it: those of folder columns are words, small numbers, truth values and dates.
fn as_folder(value: &Value) -> Value {
    match value {
        Value::Bool(value) => Value::text(&value.to_string()),
        Value::Int(value) => Value::text(&value.to_string()),
        other => other.clone(),
    }
}

fn sorted(mut values: Vec<Value>) -> Vec<Value> {
    values.sort();
    values
}

/// Classes, each by what it publishes, with its rows.
pub type Classes = BTreeMap<Vec<Value>, Vec<usize>>;

/// A release beside its source.
struct Checker<'a> {
    case: &'a Case,
    source: Columns,
    faults: Vec<String>,
}

/// Everything that is wrong with the release of a case; nothing if all is well.
pub fn faults(case: &Case, sink: &Path) -> Vec<String> {
    let publication = Publication::open(sink);
    let mut checker = Checker { case, source: case.source(), faults: Vec::new() };
    checker.name_folders();
    checker.check(&publication);
    let disorder = publication.disorder();
    if let Some(first) = disorder.first() {
        checker.fault(format!("order: {} faults, such as {first}", disorder.len()));
    }
    checker.faults.sort();
    checker.faults.dedup();
    checker.faults
}

impl Checker<'_> {
    fn fault(&mut self, text: impl Into<String>) {
        self.faults.push(text.into());
    }

    /// Turns the source's values of folder columns into what folders are called.
    fn name_folders(&mut self) {
        for name in &self.case.folders {
            let dates = self
                .case
                .table
                .column_by_name(name)
                .is_some_and(|array| *array.data_type() == datafusion::arrow::datatypes::DataType::Date32);
            for value in self.source.get_mut(name).into_iter().flatten() {
                *value = match &*value {
                    // Days of January 1970.
                    Value::Int(day) if dates => Value::text(&format!("1970-01-{:02}", *day + 1)),
                    other => as_folder(other),
                };
            }
        }
    }

    fn check(&mut self, publication: &Publication) {
        let case = self.case;
        let linked = case.form.starts_with("anatomy");
        let pieces = publication.pieces.iter();
        let table = columns(&pieces.clone().filter(|piece| !linked || piece.folder == "qit").collect::<Vec<_>>());
        let values = if linked {
            expanded(&columns(&pieces.filter(|piece| piece.folder == "st").collect::<Vec<_>>()), &case.sensitive)
        } else {
            None
        };
        let rows = table.values().next().map_or(0, Vec::len);
        self.count_rows(publication, rows);
        if rows == 0 {
            return self.fault("nothing is published");
        }
        let class_columns: Vec<String> = match case.form {
            "generalise" => case.quasi.iter().flat_map(|quasi| quasi.columns()).collect(),
            _ => vec!["group".to_owned()],
        };
        let reported: BTreeSet<String> = publication.class_columns().into_iter().collect();
        if reported != class_columns.iter().cloned().collect() {
            self.fault("the manifest names other class columns");
        }
        let mut classes = Classes::new();
        for row in 0..rows {
            let class: Option<Vec<Value>> =
                class_columns.iter().map(|name| table.get(name).map(|column| column[row].clone())).collect();
            let Some(class) = class else { return self.fault("a class column is not published") };
            classes.entry(class).or_default().push(row);
        }
        self.check_columns(&table, linked);
        self.check_classes(&classes, &table, values.as_ref());
        self.check_values(&classes, &table, values.as_ref());
        self.check_loss(&classes, &table);
        if let (Some(public), "generalise", true) = (&case.public, case.form, case.tells_who_fits()) {
            self.faults.extend(presence::faults(case, public, &classes, &table));
        }
    }

    fn count_rows(&mut self, publication: &Publication, rows: usize) {
        let said = |name: &str| publication.manifest[name].as_u64().map(|count| count as usize);
        let read = self.case.table.num_rows();
        let left_out = read - rows.min(read);
        // With presence, how many there are in the source is a secret: an upper bound is reported.
        let suppressed = said("suppressed").unwrap_or(0);
        let reported = match self.case.public {
            Some(_) => (left_out + 1..=left_out + 10).contains(&suppressed),
            None => suppressed == left_out,
        };
        if said("rows") != Some(rows) || !reported {
            let (reported, left) = (said("rows"), said("suppressed"));
            self.fault(format!(
                "{rows} rows of {read} are published; the manifest says {reported:?}, and {left:?} suppressed"
            ));
        }
        let allowed = self.case.max_suppression * read as f64;
        if left_out as f64 > allowed + 1e-9 {
            self.fault(format!("{left_out} of {read} rows are suppressed, {allowed} allowed"));
        }
    }

    /// Nothing is published but what has a role to be, and identifiers as they are treated.
    fn check_columns(&mut self, table: &Columns, linked: bool) {
        let case = self.case;
        let mut expected: BTreeSet<String> = case.kept.iter().cloned().collect();
        expected.extend(case.sensitive.iter().filter(|_| !linked).cloned());
        match case.form {
            "generalise" => expected.extend(case.quasi.iter().flat_map(|quasi| quasi.columns())),
            "combined" => {
                expected.extend(case.quasi.iter().flat_map(|quasi| quasi.columns()));
                expected.insert("group".to_owned());
            }
            _ => {
                expected.extend(case.quasi.iter().map(|quasi| quasi.name.clone()));
                expected.insert("group".to_owned());
            }
        }
        let treated = case.identifiers.iter().filter(|(_, treat)| *treat != Treat::Drop);
        expected.extend(treated.map(|(name, _)| name.clone()));
        let found: BTreeSet<String> = table.keys().cloned().collect();
        if found != expected {
            self.fault(format!("published are the columns {found:?}, not {expected:?}"));
        }
        for (name, treat) in &case.identifiers {
            let Some(published) = table.get(name) else { continue };
            let sound = match treat {
                Treat::Drop => false,
                Treat::Constant => published.iter().all(|value| *value == Value::text("somebody")),
                Treat::Pseudonym(hex) => {
                    let length = if *hex { 64 } else { 43 };
                    let is_digit = |byte: u8| {
                        if *hex {
                            byte.is_ascii_hexdigit()
                        } else {
                            byte.is_ascii_alphanumeric() || b"-_".contains(&byte)
                        }
                    };
                    published.iter().all(|value| {
                        *value == Value::Null
                            || value.as_text().is_some_and(|text| text.len() == length && text.bytes().all(is_digit))
                    })
                }
            };
            if !sound {
                self.fault(format!("{name}: is not published as {treat:?} says"));
            }
        }
    }

    /// The row of the source that each published row of a class is of, where a tag says so.
    fn people(&self, rows: &[usize], table: &Columns) -> Option<Vec<usize>> {
        let tags = table.get("tag").filter(|_| self.case.tagged)?;
        let row_of: HashMap<&Value, usize> = self.source["tag"].iter().zip(0..).collect();
        rows.iter().map(|&row| row_of.get(&tags[row]).copied()).collect()
    }

    fn check_classes(&mut self, classes: &Classes, table: &Columns, linked: Option<&HashMap<Value, Columns>>) {
        let size = |rows: &Vec<usize>| match (&self.case.person, self.people(rows, table)) {
            (Some(person), Some(people)) => {
                people.iter().map(|&row| &self.source[person][row]).collect::<BTreeSet<_>>().len()
            }
            _ => rows.len(),
        };
        let smallest = classes.values().map(size).min().unwrap_or(0);
        if smallest < self.case.k {
            self.fault(format!("a class holds {smallest} rows or people, k is {}", self.case.k));
        }
        for (name, rule) in &self.case.rules {
            let of_class = |class: &Vec<Value>, rows: &[usize]| -> Vec<Value> {
                match linked {
                    Some(values) => values.get(&class[0]).map(|columns| columns[name].clone()).unwrap_or_default(),
                    None => rows.iter().filter_map(|&row| table.get(name).map(|column| column[row].clone())).collect(),
                }
            };
            let all: Vec<Value> = classes.iter().flat_map(|(class, rows)| of_class(class, rows)).collect();
            let broken = |class: &Vec<Value>, rows: &[usize]| {
                let values = of_class(class, rows);
                values.len() != rows.len() || !rule.holds(&values, &all)
            };
            let broken = classes.iter().filter(|(class, rows)| broken(class, rows)).count();
            if broken > 0 {
                self.faults.push(format!("{rule:?} of {name} does not hold in {broken} of {} classes", classes.len()));
            }
        }
    }

    /// No row loses more than the policy allows, by what is published of it.
    fn check_loss(&mut self, classes: &Classes, table: &Columns) {
        let case = self.case;
        let Some(bound) = case.max_loss.filter(|_| case.form == "generalise") else { return };
        for rows in classes.values() {
            let of = |quasi: &super::quasi::Quasi| match quasi.withheld {
                true => 0.0,
                false => quasi.loss(table, rows[0], &self.source[&quasi.name]),
            };
            let loss = case.quasi.iter().map(of).sum::<f64>() / case.quasi.len() as f64;
            if loss > bound + 1e-6 {
                return self.fault(format!("a class loses {loss}, max-loss is {bound}"));
            }
        }
    }

    /// Published values against those of the source: row by row where the tag says whose they are, else as multisets.
    fn check_values(&mut self, classes: &Classes, table: &Columns, linked: Option<&HashMap<Value, Columns>>) {
        let case = self.case;
        let (exact, permuted) = (case.is_exact(), case.form != "generalise");
        let quasi = case.quasi.iter().map(|quasi| &quasi.name).filter(|_| exact);
        let shown: Vec<&String> = case.sensitive.iter().chain(&case.kept).chain(quasi).collect();
        for name in shown.iter().filter(|name| linked.is_none() || !case.sensitive.contains(name)) {
            let Some(published) = table.get(name.as_str()) else { continue };
            if !is_part(&sorted(published.clone()), &sorted(self.source[name.as_str()].clone())) {
                self.fault(format!("{name}: published values are not those of the source"));
            }
        }
        if !case.tagged || !self.faults.is_empty() {
            return;
        }
        let mut faults = Vec::new();
        let mut seen = BTreeSet::new();
        for (class, rows) in classes {
            let Some(people) = self.people(rows, table) else {
                faults.push("a published row is of nobody".to_owned());
                break;
            };
            seen.extend(people.iter().copied());
            for name in &shown {
                let mut truth: Vec<Value> =
                    people.iter().map(|&person| self.source[name.as_str()][person].clone()).collect();
                let mut values: Vec<Value> = match linked {
                    Some(values) if case.sensitive.contains(name) => match values.get(&class[0]) {
                        Some(columns) => columns[name.as_str()].clone(),
                        None => Vec::new(),
                    },
                    _ => rows.iter().map(|&row| table[name.as_str()][row].clone()).collect(),
                };
                if permuted {
                    truth.sort();
                    values.sort();
                }
                if truth != values {
                    faults.push(format!("{name}: values of a class are not those of its people"));
                }
            }
            for quasi in case.quasi.iter().filter(|_| !exact) {
                let value = |person: &usize| &self.source[&quasi.name][*person];
                let covered = match permuted {
                    // Some row of the group is this one's, and this row is somebody's.
                    true => {
                        people.iter().all(|person| rows.iter().any(|&row| quasi.covers(table, row, value(person))))
                            && rows
                                .iter()
                                .all(|&row| people.iter().any(|person| quasi.covers(table, row, value(person))))
                    }
                    false => rows.iter().zip(&people).all(|(&row, person)| quasi.covers(table, row, value(person))),
                };
                if !covered {
                    let (name, published) = (&quasi.name, &quasi.published);
                    faults.push(format!("{name} ({published:?}): a published value does not cover the original"));
                }
            }
            faults.extend(self.check_pseudonyms(&people, rows, table).filter(|_| !permuted));
        }
        if seen.len() != table["tag"].len() {
            faults.push("a row is published twice".to_owned());
        }
        self.faults.extend(faults);
    }

    /// Equal identifiers have equal pseudonyms, null has none.
    fn check_pseudonyms(&self, people: &[usize], rows: &[usize], table: &Columns) -> Option<String> {
        for (name, _) in self.case.identifiers.iter().filter(|(_, treat)| matches!(treat, Treat::Pseudonym(_))) {
            let (Some(published), source) = (table.get(name), &self.source[name]) else { continue };
            let mut of: BTreeMap<&Value, &Value> = BTreeMap::new();
            for (&row, &person) in rows.iter().zip(people) {
                let (truth, pseudonym) = (&source[person], &published[row]);
                if (*truth == Value::Null) != (*pseudonym == Value::Null)
                    || *of.entry(truth).or_insert(pseudonym) != pseudonym
                {
                    return Some(format!("{name}: pseudonyms do not stand for values"));
                }
            }
        }
        None
    }
}

/// Whether a sorted list is part of another, values counted.
fn is_part(part: &[Value], whole: &[Value]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|value| rest.by_ref().any(|other| other == value))
}

/// The sensitive values of every group, each as often as it is counted.
fn expanded(values: &Columns, sensitive: &[String]) -> Option<HashMap<Value, Columns>> {
    let mut groups: HashMap<Value, Columns> = HashMap::new();
    let (numbers, counts) = (values.get("group")?, values.get("count")?);
    for (row, (group, count)) in numbers.iter().zip(counts).enumerate() {
        let Value::Int(count) = count else { return None };
        for name in sensitive {
            let of = groups.entry(group.clone()).or_default().entry(name.clone()).or_default();
            of.extend(std::iter::repeat_n(values.get(name)?[row].clone(), *count as usize));
        }
    }
    Some(groups)
}
