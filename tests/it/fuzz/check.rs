//! What must hold of a release, by the definitions, on values read from its files: counted by brute force.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::case::{Case, Published, Quasi, Rule};
use crate::adversary::publication::{Piece, Publication};
use crate::adversary::values::{Value, column};

/// The columns of a table, by name.
type Columns = HashMap<String, Vec<Value>>;

/// Rows of some files as columns; partition folders are none.
fn columns(pieces: &[&Piece]) -> Columns {
    let mut all = Columns::new();
    for piece in pieces {
        for (field, array) in piece.rows.schema().fields().iter().zip(piece.rows.columns()) {
            all.entry(field.name().clone()).or_default().extend(column(array.as_ref()));
        }
    }
    all
}

fn sorted(mut values: Vec<Value>) -> Vec<Value> {
    values.sort();
    values
}

/// A release beside its source.
struct Checker<'a> {
    case: &'a Case,
    source: Columns,
    faults: Vec<String>,
}

/// Everything that is wrong with the release of a case; nothing if all is well.
pub fn faults(case: &Case, sink: &Path) -> Vec<String> {
    let publication = Publication::open(sink);
    let schema = case.table.schema();
    let names = schema.fields().iter().map(|field| field.name().clone());
    let source = names.zip(case.table.columns().iter().map(|array| column(array.as_ref())));
    let mut checker = Checker { case, source: source.collect(), faults: Vec::new() };
    checker.check(&publication);
    let disorder = publication.disorder();
    if let Some(first) = disorder.first() {
        checker.faults.push(format!("order: {} faults, such as {first}", disorder.len()));
    }
    checker.faults
}

impl Checker<'_> {
    fn fault(&mut self, text: impl Into<String>) {
        self.faults.push(text.into());
    }

    fn check(&mut self, publication: &Publication) {
        let linked = self.case.form.starts_with("anatomy");
        let of = |name: &str| publication.pieces.iter().filter(|piece| piece.folder == name).collect::<Vec<_>>();
        let table = columns(&of(if linked { "qit" } else { "" }));
        let values = if linked { expanded(&columns(&of("st")), &self.case.sensitive) } else { None };
        let rows = table.values().next().map_or(0, Vec::len);
        self.count_rows(publication, rows);
        if rows == 0 {
            return;
        }
        let class_columns = publication.class_columns();
        let mut classes: BTreeMap<Vec<Value>, Vec<usize>> = BTreeMap::new();
        for row in 0..rows {
            let class: Option<Vec<Value>> =
                class_columns.iter().map(|name| table.get(name).map(|column| column[row].clone())).collect();
            let Some(class) = class else { return self.fault("a class column is not published") };
            classes.entry(class).or_default().push(row);
        }
        self.check_classes(&classes, &table, values.as_ref());
        self.check_values(&classes, &table, values.as_ref());
    }

    fn count_rows(&mut self, publication: &Publication, rows: usize) {
        let said = |name: &str| publication.manifest[name].as_u64().unwrap_or(u64::MAX) as usize;
        let read = self.case.table.num_rows();
        if said("rows") != rows || said("suppressed") != read - rows.min(read) {
            let (told, left) = (said("rows"), said("suppressed"));
            self.fault(format!("{rows} rows of {read} are published; the manifest says {told}, and {left} suppressed"));
        }
        let allowed = self.case.max_suppression * read as f64;
        if (read - rows.min(read)) as f64 > allowed + 1e-9 {
            self.fault(format!("{} of {read} rows are suppressed, {allowed} allowed", read - rows));
        }
    }

    fn check_classes(
        &mut self,
        classes: &BTreeMap<Vec<Value>, Vec<usize>>,
        table: &Columns,
        linked: Option<&HashMap<Value, Columns>>,
    ) {
        let smallest = classes.values().map(Vec::len).min().unwrap_or(0);
        if smallest < self.case.k {
            self.fault(format!("a class holds {smallest} rows, k is {}", self.case.k));
        }
        for (name, rule) in &self.case.rules {
            let of_class = |class: &Vec<Value>, rows: &[usize]| -> Vec<Value> {
                match linked {
                    Some(values) => values.get(&class[0]).map(|columns| columns[name].clone()).unwrap_or_default(),
                    None => rows.iter().map(|&row| table[name][row].clone()).collect(),
                }
            };
            let all: Vec<Value> = classes.iter().flat_map(|(class, rows)| of_class(class, rows)).collect();
            let broken = classes.iter().filter(|(class, rows)| !rule.holds(&of_class(class, rows), &all)).count();
            if broken > 0 {
                self.faults.push(format!("{rule:?} of {name} does not hold in {broken} of {} classes", classes.len()));
            }
        }
    }

    /// Published values against those of the source: row by row where the tag says whose they are, else as multisets.
    fn check_values(
        &mut self,
        classes: &BTreeMap<Vec<Value>, Vec<usize>>,
        table: &Columns,
        linked: Option<&HashMap<Value, Columns>>,
    ) {
        let case = self.case;
        let exact = case.form != "generalise";
        let quasi = case.quasi.iter().map(|quasi| &quasi.name).filter(|_| exact);
        let shown: Vec<&String> = case.sensitive.iter().chain(&case.kept).chain(quasi).collect();
        for name in shown.iter().filter(|name| linked.is_none() || !case.sensitive.contains(name)) {
            let Some(published) = table.get(name.as_str()) else {
                self.fault(format!("{name} is not published"));
                continue;
            };
            if !is_part(&sorted(published.clone()), &sorted(self.source[name.as_str()].clone())) {
                self.fault(format!("{name}: published values are not those of the source"));
            }
        }
        if !case.tagged || !self.faults.is_empty() {
            return;
        }
        let row_of: HashMap<&Value, usize> = self.source["tag"].iter().zip(0..).collect();
        let mut faults = Vec::new();
        for (class, rows) in classes {
            let people: Vec<usize> = rows.iter().map(|&row| row_of[&table["tag"][row]]).collect();
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
                if exact {
                    truth.sort();
                    values.sort();
                }
                if truth != values {
                    faults.push(format!("{name}: values of a class are not those of its people"));
                }
            }
            for quasi in case.quasi.iter().filter(|_| !exact) {
                for (&row, &person) in rows.iter().zip(&people) {
                    if !covers(quasi, table, row, &self.source[&quasi.name][person]) {
                        faults.push(format!(
                            "{} ({:?}): a published value does not cover the original",
                            quasi.name, quasi.published
                        ));
                    }
                }
            }
        }
        faults.sort();
        faults.dedup();
        self.faults.extend(faults);
    }
}

/// Whether a sorted list is part of another, values counted.
fn is_part(part: &[Value], whole: &[Value]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|value| rest.by_ref().any(|other| other == value))
}

/// The sensitive values of every group, each as often as it is counted; none when several columns are counted together.
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

/// Whether what a row publishes of a quasi-identifier covers a value.
fn covers(quasi: &Quasi, table: &Columns, row: usize, value: &Value) -> bool {
    let published = |name: &str| table.get(name).map(|column| column[row].clone());
    let between = |least: &Value, most: &Value| match value {
        // A null is covered by nothing but a null or the whole domain.
        Value::Null => *least == Value::Null && *most == Value::Null,
        value => {
            let (value, least, most) = (plain_zero(value), plain_zero(least), plain_zero(most));
            (least == Value::Null || least <= value) && (most == Value::Null || value <= most)
        }
    };
    match &quasi.published {
        Published::Bounds => {
            let ends = published(&format!("{}_min", quasi.name)).zip(published(&format!("{}_max", quasi.name)));
            ends.is_some_and(|(least, most)| between(&least, &most))
        }
        of => match (of, published(&quasi.name)) {
            (_, None) => false,
            (Published::Unknown | Published::Centroid, _) => true,
            (Published::Range, Some(Value::Struct(ends))) => between(&ends[0], &ends[1]),
            (_, Some(Value::Null)) => *value == Value::Null,
            (_, Some(label)) => label.as_text().is_some_and(|label| label == "*" || covers_label(of, label, value)),
        },
    }
}

fn covers_label(of: &Published, label: &str, value: &Value) -> bool {
    match (of, value) {
        (Published::Interval, Value::Int(value)) => {
            let inside = label.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            let (least, most) = inside.and_then(|ends| ends.split_once(", ")).unwrap_or((label, label));
            let ends = least.parse::<i128>().ok().zip(most.parse::<i128>().ok());
            ends.is_some_and(|(least, most)| least <= *value && *value <= most)
        }
        (Published::Set, value) => value.as_text().is_some_and(|value| {
            let inside = label.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            inside.map_or(label == value, |set| set.split(", ").any(|one| one == value))
        }),
        (Published::Tree(of), value) => {
            value.as_text().and_then(|value| of.get(value)).is_some_and(|labels| labels.iter().any(|one| one == label))
        }
        (Published::Mask, value) => value.as_text().is_some_and(|value| value.starts_with(label.trim_end_matches('*'))),
        _ => false,
    }
}

/// Zero without its sign: a range from 0.0 holds -0.0.
fn plain_zero(value: &Value) -> Value {
    if value.as_f64() == Some(0.0) { Value::float(0.0) } else { value.clone() }
}

/// Whether one class of all rows that take part keeps every rule, so that a refusal is false.
pub fn one_class_would_do(case: &Case) -> bool {
    let rows = case.taking_part();
    let dropped = case.table.num_rows() - rows.len();
    if rows.len() < case.k || dropped as f64 > case.max_suppression * case.table.num_rows() as f64 {
        return false;
    }
    // In slices, rules are asked of parts of a group.
    if case.form == "slice" && !case.rules.is_empty() {
        return false;
    }
    case.rules.iter().all(|(name, rule): &(String, Rule)| {
        let values = column(case.table.column_by_name(name).unwrap().as_ref());
        let values: Vec<Value> = rows.iter().map(|&row| values[row].clone()).collect();
        rule.holds(&values, &values)
    })
}
