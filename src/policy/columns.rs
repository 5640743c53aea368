//! Checks of the columns: what each option needs, without data, and what the types of the source allow.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use datafusion::arrow::datatypes::{DataType, Schema};

use super::identifier::IdentifierAction;
use super::model::{Column, Defaults, HierarchySpec, Job, Privacy, Publish, Ranges, Role, Values};
use super::output;
use super::rules::Trees;
use crate::error::Problem;
use crate::error::problem::nearest_word;
use crate::hierarchy::Hierarchy;

/// Opens every hierarchy; reports those that cannot be used and returns the level trees.
pub(crate) fn open_hierarchies(job: &Job, base: &Path, problems: &mut Vec<Problem>) -> Trees {
    let mut trees = BTreeMap::new();
    for (name, column) in &job.columns {
        let Some(spec) = &column.hierarchy else { continue };
        match spec.open_hierarchy(base) {
            Ok(Some(Hierarchy::Levels(tree))) => {
                trees.insert(name.clone(), tree);
            }
            Ok(_) => {}
            Err(error) => problems.push(Problem::error(format!("columns.{name}.hierarchy"), error.to_string())),
        }
    }
    trees
}

/// Checks what shows without knowing the source.
pub(crate) fn check_options(job: &Job, problems: &mut Vec<Problem>) {
    let quasi_by_default = job.defaults.as_ref().is_some_and(|defaults| defaults.role == Some(Role::Quasi));
    if !quasi_by_default && !job.columns.values().any(|column| column.role == Role::Quasi) {
        problems.push(
            Problem::error("columns", "no column is a quasi-identifier: there is nothing to anonymise")
                .help("give the columns that could name a person together the role \"quasi\""),
        );
    }
    for (name, column) in &job.columns {
        check_column(&format!("columns.{name}"), column, problems);
    }
    let published = job.columns.iter().map(|(name, column)| (name.as_str(), column.role));
    problems.extend(find_clashes(&job.columns, published));
}

fn check_column(key: &str, column: &Column, problems: &mut Vec<Problem>) {
    let options: [(&str, bool, &[Role]); 9] = [
        ("hierarchy", column.hierarchy.is_some(), &[Role::Quasi, Role::Sensitive]),
        ("unknown", column.unknown.is_some(), &[Role::Quasi, Role::Sensitive]),
        ("constant", column.constant.is_some(), &[Role::Quasi]),
        ("nulls", column.nulls.is_some(), &[Role::Quasi]),
        ("publish", column.publish.is_some(), &[Role::Quasi]),
        ("priority", column.priority.is_some(), &[Role::Quasi]),
        ("withhold", column.withhold, &[Role::Quasi]),
        ("domain", column.domain.is_some(), &[Role::Quasi, Role::Sensitive]),
        ("treat", column.treat.is_some(), &[Role::Identifier]),
    ];
    for (option, set, roles) in options {
        if set && !roles.contains(&column.role) {
            let owners: Vec<&str> = roles.iter().map(|role| role_name(*role)).collect();
            let message =
                format!("is an option of {} columns, but this one is {}", owners.join(" and "), role_name(column.role));
            problems.push(Problem::error(format!("{key}.{option}"), message));
        }
    }
    if let Some(priority) = column.priority
        && !(priority.is_finite() && priority > 0.0)
    {
        problems.push(Problem::error(format!("{key}.priority"), format!("must be above 0, got {priority}")));
    }
    if let Some([min, max]) = column.domain
        && !(min.is_finite() && max.is_finite() && min < max)
    {
        problems
            .push(Problem::error(format!("{key}.domain"), format!("must be [smallest, largest], got [{min}, {max}]")));
    }
    let by_levels = matches!(column.hierarchy, Some(HierarchySpec::File(_) | HierarchySpec::Tree { .. }));
    if column.unknown.is_some() && !by_levels {
        let message = "is about values that a hierarchy file or tree does not list, but the column has neither";
        problems.push(Problem::error(format!("{key}.unknown"), message));
    }
    if column.role == Role::Sensitive && column.hierarchy.is_some() && !by_levels {
        let message = "a sensitive column takes a hierarchy file or a tree; it is never generalised itself";
        problems.push(Problem::error(format!("{key}.hierarchy"), message));
    }
    if column.domain.is_some() && by_levels {
        problems.push(Problem::error(format!("{key}.domain"), "is for numbers, but the hierarchy lists all values"));
    }
    match (column.publish, &column.hierarchy) {
        (Some(publish @ (Publish::Range | Publish::Bounds)), Some(HierarchySpec::Mask { .. })) => {
            problems.push(unfit_form(key, publish, "masked text has no smallest and largest value"));
        }
        (Some(publish @ (Publish::Range | Publish::Bounds)), Some(_)) if by_levels => {
            problems.push(unfit_form(key, publish, "the nodes of a tree have no smallest and largest value"));
        }
        (Some(publish @ (Publish::Range | Publish::Bounds)), Some(_)) => {
            problems.push(unfit_form(key, publish, "the intervals of a hierarchy are published by name"));
        }
        (Some(publish @ Publish::Centroid), Some(_)) => {
            problems.push(unfit_form(key, publish, "it does not use a hierarchy"));
        }
        _ => {}
    }
}

fn unfit_form(key: &str, publish: Publish, reason: &str) -> Problem {
    let form = match publish {
        Publish::Label => "label",
        Publish::Range => "range",
        Publish::Bounds => "bounds",
        Publish::Centroid => "centroid",
    };
    Problem::error(format!("{key}.publish"), format!("`{form}` does not fit: {reason}")).help("use \"label\"")
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Identifier => "identifier",
        Role::Quasi => "quasi",
        Role::Sensitive => "sensitive",
        Role::Kept => "kept",
    }
}

/// Columns that `bounds` would write twice.
fn find_clashes<'a>(
    columns: &BTreeMap<String, Column>,
    published: impl Iterator<Item = (&'a str, Role)>,
) -> Vec<Problem> {
    let dropped = |name: &str, role: Role| {
        let treat = columns.get(name).and_then(|column| column.treat.as_ref());
        role == Role::Identifier && treat.is_none_or(|treat| *treat == IdentifierAction::Drop)
    };
    let published: BTreeSet<&str> =
        published.filter(|(name, role)| !dropped(name, *role)).map(|(name, _)| name).collect();
    let mut problems = Vec::new();
    for (name, column) in columns {
        if column.role != Role::Quasi || column.publish != Some(Publish::Bounds) {
            continue;
        }
        for bound in [format!("{name}_min"), format!("{name}_max")] {
            if published.contains(bound.as_str()) {
                let message = format!("`bounds` would write a column `{bound}`, but the source has one");
                problems.push(Problem::error(format!("columns.{name}.publish"), message).help("use \"range\""));
            }
        }
    }
    problems
}

/// How the anonymisation treats a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Real,
    /// Dates and timestamps.
    Moment,
    /// Times of day.
    Time,
    Boolean,
    Text,
    /// Lists, structs, binary and other types without a useful order.
    Other,
}

impl Kind {
    fn of_type(data_type: &DataType) -> Self {
        match data_type {
            DataType::Dictionary(_, values) if Self::of_type(values) == Self::Text => Self::Text,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            DataType::Boolean => Self::Boolean,
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => Self::Moment,
            DataType::Time32(_) | DataType::Time64(_) => Self::Time,
            integer if integer.is_integer() => Self::Integer,
            real if real.is_floating() || real.is_decimal() => Self::Real,
            _ => Self::Other,
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Real)
    }

    fn is_ordered(self) -> bool {
        self.is_number() || matches!(self, Self::Moment | Self::Time)
    }

    fn allows_hierarchy(self, hierarchy: &HierarchySpec) -> Result<(), &'static str> {
        let (fits, needs) = match hierarchy {
            HierarchySpec::File(_) | HierarchySpec::Tree { .. } => (
                matches!(self, Self::Integer | Self::Boolean | Self::Text | Self::Moment),
                "a tree lists values: it is for text, whole numbers, booleans and dates",
            ),
            HierarchySpec::Mask { .. } => {
                (matches!(self, Self::Integer | Self::Text), "a mask is for text and whole-number codes")
            }
            HierarchySpec::Widths { .. } | HierarchySpec::Bounds { .. } | HierarchySpec::Quantiles { .. } => {
                (self.is_number(), "widths, bounds and quantiles are for numbers")
            }
            HierarchySpec::Calendar { .. } => (self == Self::Moment, "a calendar is for dates and timestamps"),
        };
        if fits { Ok(()) } else { Err(needs) }
    }
}

/// Finds everything wrong with a job that shows once the columns of the source are known.
pub(crate) fn check_schema(job: &Job, schema: &Schema) -> Vec<Problem> {
    let demands = Demands { privacy: &job.privacy, defaults: job.defaults.as_ref(), columns: &job.columns };
    let mut problems = demands.check_schema(schema);
    problems.extend(super::dependencies::missing_columns(&job.dependencies, schema));
    problems.extend(check_layout(job, schema));
    problems
}

/// Finds everything wrong with the layout of the released files that shows once the columns of the source are known.
pub(crate) fn check_layout(job: &Job, schema: &Schema) -> Vec<Problem> {
    output::check_types(job, schema)
}

/// Prefix of the internal columns that Throng adds to rows.
const RESERVED: &str = "__throng_";

/// The parts of a job or policy that are about columns.
pub(crate) struct Demands<'a> {
    /// The rules.
    pub privacy: &'a Privacy,
    /// Role of columns that are not named.
    pub defaults: Option<&'a Defaults>,
    /// The named columns.
    pub columns: &'a BTreeMap<String, Column>,
}

impl Demands<'_> {
    /// Everything about a schema that does not meet the demands.
    pub(crate) fn check_schema(&self, schema: &Schema) -> Vec<Problem> {
        let mut problems = Vec::new();
        let default = self.defaults.and_then(|defaults| defaults.role);
        for field in schema.fields().iter().filter(|field| field.name().starts_with(RESERVED)) {
            problems.push(
                Problem::error(
                    format!("columns.{}", field.name()),
                    format!("names that begin with `{RESERVED}` are reserved for Throng's internal columns"),
                )
                .help("rename the column, for example in source.sql"),
            );
        }
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        for name in self.columns.keys().filter(|name| !names.contains(&name.as_str())) {
            let problem = Problem::error(format!("columns.{name}"), "the source has no such column");
            problems.push(match nearest_word(name, names.iter().copied()) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(format!("the source has {}", names.join(", "))),
            });
        }
        let mut roles = Vec::new();
        let mut seen = BTreeSet::new();
        for field in schema.fields() {
            let name = field.name().as_str();
            if !seen.insert(name) {
                problems.push(Problem::error(format!("columns.{name}"), "the source has two columns of this name"));
                continue;
            }
            let column = self.columns.get(name);
            match column.map(|column| column.role).or(default) {
                Some(role) => {
                    roles.push((name, role));
                    self.check_type(name, role, column, field.data_type(), &mut problems);
                }
                None => problems.push(
                    Problem::error(
                        format!("columns.{name}"),
                        "the source has this column, but the job gives it no role",
                    )
                    .help(format!(
                        "add {name} = {{ role = \"...\" }} (identifier, quasi, sensitive or kept), or set defaults.role"
                    )),
                ),
            }
        }
        let without_default = self.columns.values().any(|column| column.role == Role::Quasi);
        if !without_default && !roles.iter().any(|(_, role)| *role == Role::Quasi) {
            problems.push(Problem::error("columns", "no column is a quasi-identifier: there is nothing to anonymise"));
        }
        for listed in self.privacy.rules() {
            let column = listed.rule.column();
            if !names.contains(&column) && !self.columns.contains_key(column) {
                problems.push(Problem::error(
                    "privacy",
                    format!("a rule names `{column}`, but the source has no such column"),
                ));
            }
        }
        if let Some(person) = self.privacy.person.as_deref()
            && !names.contains(&person)
        {
            problems.push(Problem::error("privacy.person", format!("the source has no column `{person}`")));
        }
        problems.extend(find_clashes(self.columns, roles.into_iter()));
        problems
    }

    fn check_type(
        &self,
        name: &str,
        role: Role,
        column: Option<&Column>,
        data_type: &DataType,
        problems: &mut Vec<Problem>,
    ) {
        let key = format!("columns.{name}");
        let kind = Kind::of_type(data_type);
        let rules: Vec<_> = self.privacy.rules().into_iter().filter(|listed| listed.rule.column() == name).collect();
        let ruled = !rules.is_empty();
        if kind == Kind::Other && (role == Role::Quasi || ruled) {
            let what = if role == Role::Quasi { "cannot be a quasi-identifier" } else { "cannot be guarded by a rule" };
            problems.push(Problem::error(key, format!("a column of type {data_type} {what}")).help(
                "numbers, decimals, dates, times, booleans and text can; drop this one or extract its parts first",
            ));
            return;
        }
        for listed in rules {
            let needs = listed.rule.needs();
            let (fits, what) = match needs {
                _ if needs.numbers => (kind.is_number(), "needs numbers"),
                _ if needs.order => (kind.is_ordered(), "needs values with an order"),
                _ => (true, ""),
            };
            if !fits {
                let message = format!("{what}; `{name}` is of type {data_type}");
                problems.push(Problem::error(listed.key, message));
            }
        }
        let Some(column) = column else { return };
        if kind == Kind::Other && matches!(column.identifier_action(), Some(IdentifierAction::Pseudonym(_))) {
            let message = format!("a column of type {data_type} has no text form for a pseudonym");
            problems.push(Problem::error(format!("{key}.treat"), message).help("drop it, or set a constant"));
        }
        if !matches!(role, Role::Quasi | Role::Sensitive) {
            return;
        }
        check_published_form(&key, column, kind, data_type, problems);
        let rules = self.privacy.range_diversity.iter().filter(|rule| rule.column == name);
        for rule in rules {
            let numbers = match &rule.ranges {
                Ranges::Identity | Ranges::Level(_) => continue,
                Ranges::Interval(_) => true,
                Ranges::Listed(listed) => listed.iter().any(|range| matches!(range.values, Values::Between(_))),
            };
            if numbers != kind.is_number() && (numbers || column.hierarchy.is_none()) {
                let what = if numbers { "intervals need numbers" } else { "listed texts need text or a hierarchy" };
                let message = format!("{what}; `{name}` is of type {data_type}");
                problems.push(Problem::error("privacy.range-diversity.ranges", message));
            }
        }
    }
}

/// Finds what a column's hierarchy, domain and published form ask of its type that it does not have.
fn check_published_form(key: &str, column: &Column, kind: Kind, data_type: &DataType, problems: &mut Vec<Problem>) {
    if let Some(hierarchy) = &column.hierarchy
        && let Err(needs) = kind.allows_hierarchy(hierarchy)
    {
        problems
            .push(Problem::error(format!("{key}.hierarchy"), format!("{needs}; the column is of type {data_type}")));
    }
    if column.domain.is_some() && !kind.is_number() {
        let message = format!("is for numbers; the column is of type {data_type}");
        problems.push(Problem::error(format!("{key}.domain"), message));
    }
    match column.publish {
        Some(publish @ (Publish::Range | Publish::Bounds)) if !kind.is_ordered() => {
            problems.push(unfit_form(key, publish, &format!("{data_type} is not a number, date or time")));
        }
        Some(publish @ Publish::Centroid) if !kind.is_number() && kind != Kind::Moment => {
            problems.push(unfit_form(key, publish, &format!("{data_type} is not a number or date")));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::{Field, TimeUnit};

    fn job(rest: &str) -> Job {
        let text = format!("version = 1\nsource.url = \"s3://a/in\"\nsink.url = \"s3://a/out\"\n{rest}\n");
        Job::parse(&text, Path::new("job.toml")).unwrap()
    }

    fn errors(columns: &str) -> Vec<String> {
        let problems = crate::policy::check(&job(&format!("privacy.k = 5\n[columns]\n{columns}")), Path::new("."));
        problems.iter().filter(|problem| problem.is_error()).map(Problem::to_string).collect()
    }

    fn against(rest: &str, fields: &[(&str, DataType)]) -> Vec<String> {
        let fields: Vec<Field> = fields.iter().map(|(name, data)| Field::new(*name, data.clone(), true)).collect();
        check_schema(&job(rest), &Schema::new(fields)).iter().map(Problem::to_string).collect()
    }

    /// The one problem that a quasi-identifier `x` of a type has with its options.
    fn typed(options: &str, data_type: DataType) -> String {
        against(&format!("privacy.k = 5\n[columns]\nx = {{ role = \"quasi\", {options} }}"), &[("x", data_type)])
            .join("|")
    }

    #[test]
    fn some_column_is_a_quasi_identifier() {
        let message = "columns: no column is a quasi-identifier: there is nothing to anonymise\n  \
                       help: give the columns that could name a person together the role \"quasi\"";
        assert_eq!(errors("a.role = \"kept\""), [message]);
        assert_eq!(errors(""), [message]);
    }

    #[test]
    fn options_belong_to_their_role() {
        assert_eq!(
            errors("a.role = \"quasi\"\nb = { role = \"kept\", publish = \"label\", priority = 2 }"),
            [
                "columns.b.publish: is an option of quasi columns, but this one is kept",
                "columns.b.priority: is an option of quasi columns, but this one is kept",
            ]
        );
        assert_eq!(
            errors("a = { role = \"quasi\", priority = 0, domain = [5, 5], unknown = \"top\" }"),
            [
                "columns.a.priority: must be above 0, got 0",
                "columns.a.domain: must be [smallest, largest], got [5, 5]",
                "columns.a.unknown: is about values that a hierarchy file or tree does not list, but the column \
                 has neither",
            ]
        );
        assert_eq!(
            errors("a.role = \"quasi\"\ns = { role = \"sensitive\", hierarchy.widths = [5] }"),
            ["columns.s.hierarchy: a sensitive column takes a hierarchy file or a tree; it is never \
                 generalised itself"]
        );
    }

    #[test]
    fn hierarchies_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("roots.csv"), "a;x;*\nb;x;All\n").unwrap();
        std::fs::write(folder.path().join("good.csv"), "a;x;*\nb;x;*\n").unwrap();
        let job = job("privacy.k = 5\n[columns]\na = { role = \"quasi\", hierarchy = \"none.csv\" }\n\
             b = { role = \"quasi\", hierarchy = \"roots.csv\" }\nc = { role = \"quasi\", hierarchy = \"good.csv\" }\n\
             d = { role = \"quasi\", hierarchy.widths = [5, 7] }\ne = { role = \"quasi\", hierarchy.tree = { A \
              = [] } }\n\
             f = { role = \"quasi\", hierarchy.quantiles = [4, 3] }\n\
             g = { role = \"quasi\", hierarchy.calendar = [\"year\", \"month\"] }");
        let problems = crate::policy::check(&job, folder.path());
        let starts = [
            "columns.a.hierarchy: cannot read none.csv: No such file",
            "columns.b.hierarchy: roots.csv: line 2: two roots: one here, another (line 1)",
            "columns.d.hierarchy: widths: each must be a multiple of the one before",
            "columns.e.hierarchy: node `A` has no values below it",
            "columns.f.hierarchy: quantiles: each must be a divisor of the one before",
            "columns.g.hierarchy: calendar: units must ascend",
        ];
        assert_eq!(problems.len(), starts.len(), "{problems:?}");
        for (problem, start) in problems.iter().zip(starts) {
            assert!(problem.to_string().starts_with(start), "{problem}");
        }
    }

    #[test]
    fn published_forms_fit_the_hierarchy() {
        let publish = |form: &str, hierarchy: &str| {
            errors(&format!("a = {{ role = \"quasi\", publish = \"{form}\", hierarchy = {hierarchy} }}")).join("|")
        };
        assert_eq!(
            publish("range", "{ mask = \"right\" }"),
            "columns.a.publish: `range` does not fit: masked text has no smallest and largest value\n  help: \
             use \"label\""
        );
        assert!(publish("bounds", "{ tree = { A = [\"x\", \"y\"] } }").contains("the nodes of a tree"));
        assert!(
            publish("centroid", "{ widths = [5] }").contains("`centroid` does not fit: it does not use a hierarchy")
        );
        assert!(publish("range", "{ widths = [5] }").contains("the intervals of a hierarchy are published by name"));
    }

    #[test]
    fn bounds_do_not_clash() {
        let columns =
            "a = { role = \"quasi\", publish = \"bounds\" }\na_min.role = \"kept\"\na_max.role = \"identifier\"";
        let message =
            "columns.a.publish: `bounds` would write a column `a_min`, but the source has one\n  help: use \"range\"";
        assert_eq!(errors(columns), [message]);
        let by_default =
            "privacy.k = 5\ndefaults.role = \"kept\"\ncolumns.a = { role = \"quasi\", publish = \"bounds\" }";
        assert_eq!(against(by_default, &[("a", DataType::Int32), ("a_min", DataType::Int32)]), [message]);
    }

    #[test]
    fn every_column_has_a_role_and_exists() {
        assert_eq!(
            against(
                "privacy.k = 5\n[columns]\nage.role = \"quasi\"\nzipp.role = \"quasi\"\nqqq.role = \"kept\"",
                &[("age", DataType::Int64), ("zip", DataType::Utf8), ("name", DataType::Utf8)]
            ),
            [
                "columns.qqq: the source has no such column\n  help: the source has age, zip, name",
                "columns.zipp: the source has no such column\n  help: did you mean `zip`?",
                "columns.zip: the source has this column, but the job gives it no role\n  \
                 help: add zip = { role = \"...\" } (identifier, quasi, sensitive or kept), or set defaults.role",
                "columns.name: the source has this column, but the job gives it no role\n  \
                 help: add name = { role = \"...\" } (identifier, quasi, sensitive or kept), or set defaults.role",
            ]
        );
        let by_default = "privacy.k = 5\ndefaults.role = \"identifier\"\ncolumns.age.role = \"quasi\"";
        assert_eq!(against(by_default, &[("age", DataType::Int64), ("name", DataType::Utf8)]), [""; 0]);
        assert_eq!(
            against(by_default, &[("age", DataType::Int64), ("age", DataType::Utf8)]),
            ["columns.age: the source has two columns of this name"]
        );
    }

    #[test]
    fn types_of_quasi_identifiers() {
        let list = DataType::new_list(DataType::Int32, true);
        let message = typed("priority = 1", list.clone());
        assert!(
            message.starts_with("columns.x: a column of type List(")
                && message.contains("cannot be a quasi-identifier"),
            "{message}"
        );
        assert!(!typed("priority = 1", DataType::Binary).is_empty());
        assert!(!typed("priority = 1", DataType::Struct(Default::default())).is_empty());
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        for usable in [
            DataType::Int8,
            DataType::UInt64,
            DataType::Float32,
            DataType::Decimal128(10, 2),
            DataType::Decimal256(40, 2),
            DataType::Date32,
            DataType::Date64,
            DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            DataType::Time64(TimeUnit::Microsecond),
            DataType::Boolean,
            DataType::Utf8,
            DataType::LargeUtf8,
            DataType::Utf8View,
            dictionary,
        ] {
            assert_eq!(typed("priority = 1", usable.clone()), "", "{usable}");
        }
        let kept = "privacy.k = 5\n[columns]\nx.role = \"kept\"\na.role = \"quasi\"";
        assert_eq!(against(kept, &[("x", list), ("a", DataType::Int8)]), [""; 0], "kept columns may be anything");
    }

    #[test]
    fn hierarchies_and_forms_fit_the_type() {
        assert_eq!(
            typed("hierarchy.mask = \"right\"", DataType::Float64),
            "columns.x.hierarchy: a mask is for text and whole-number codes; the column is of type Float64"
        );
        assert_eq!(typed("hierarchy.mask = \"right\"", DataType::Int32), "");
        assert!(
            typed("hierarchy.widths = [5]", DataType::Utf8).contains("are for numbers; the column is of type Utf8")
        );
        assert_eq!(typed("hierarchy.widths = [5]", DataType::Decimal128(9, 2)), "");
        assert!(typed("hierarchy.calendar = [\"year\"]", DataType::Int32).contains("a calendar is for dates"));
        assert_eq!(typed("hierarchy.calendar = [\"year\"]", DataType::Date32), "");
        assert!(typed("hierarchy = \"a.csv\"", DataType::Float64).contains("a tree lists values"));
        assert!(
            typed("publish = \"range\"", DataType::Utf8)
                .contains("`range` does not fit: Utf8 is not a number, date or time")
        );
        assert!(typed("publish = \"centroid\"", DataType::Boolean).contains("`centroid` does not fit"));
        assert_eq!(typed("publish = \"bounds\"", DataType::Date32), "");
        assert!(typed("domain = [0, 9]", DataType::Utf8).contains("columns.x.domain: is for numbers"));
    }

    #[test]
    fn rules_fit_the_type() {
        let job = "privacy = { k = 5, range-diversity = { column = \"s\", p = 0.5, ranges.interval = 3 } }\n[columns]\n\
                   x.role = \"quasi\"\ns.role = \"sensitive\"";
        assert_eq!(
            against(job, &[("x", DataType::Int8), ("s", DataType::Utf8)]),
            ["privacy.range-diversity.ranges: intervals need numbers; `s` is of type Utf8"]
        );
        let texts = job.replace("ranges.interval = 3", "ranges = [{ values = [\"a\"], range = [\"a\", \"b\"] }]");
        assert_eq!(
            against(&texts, &[("x", DataType::Int8), ("s", DataType::Float64)]),
            ["privacy.range-diversity.ranges: listed texts need text or a hierarchy; `s` is of type Float64"]
        );
        assert_eq!(against(&texts, &[("x", DataType::Int8), ("s", DataType::Utf8)]), [""; 0]);
        let list = DataType::new_list(DataType::Int32, true);
        let problems = against(job, &[("x", DataType::Int8), ("s", list)]);
        assert!(problems[0].contains("cannot be guarded by a rule"), "{problems:?}");
    }
}
