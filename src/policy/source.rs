//! The `[source]` table: its keys, and their checks before a file is opened.
//!
//! A source is one location, or a query over several: each table of the query is a source of its own.

use std::collections::BTreeMap;
use std::fmt;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::model::{Sink, Source};
use crate::error::Problem;
use crate::error::problem::nearest_word;
use crate::storage::StoreOptions;

/// What the files of a source are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    /// Parquet files.
    Parquet,
    /// CSV files; `schema` gives the types of their columns.
    Csv,
    /// A Delta Lake table.
    Delta,
}

/// How releases are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SinkFormat {
    /// Parquet files beside a manifest, and a pointer to the newest release.
    Files,
    /// A Delta Lake table: every release replaces the one before it, as a new version.
    Delta,
}

/// How a release relates to earlier ones in the same sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SinkReleases {
    /// Each is anonymous only by itself: for people who do not overlap, or if the owner accepts the risk.
    Independent,
}

/// How the address of a Delta table may begin.
const DELTA: &str = "delta://";

impl Source {
    /// A source at a location.
    pub(crate) fn at_url(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            options: StoreOptions::default(),
            sql: None,
            tables: BTreeMap::new(),
            format: None,
            schema: BTreeMap::new(),
            names: Vec::new(),
            header: None,
            delimiter: None,
            null: None,
            version: None,
        }
    }

    /// The location without what says that it is a Delta table.
    pub(crate) fn location(&self) -> &str {
        self.url.strip_prefix(DELTA).unwrap_or(&self.url)
    }

    /// What the files are, as far as the job says.
    pub(crate) fn declared_format(&self) -> Option<Format> {
        if self.url.starts_with(DELTA) { Some(Format::Delta) } else { self.format }
    }

    /// The sources that have a location, with their keys: the source itself, or the tables of its query.
    pub(crate) fn located_sources(&self) -> Vec<(String, &Self)> {
        if self.sql.is_none() {
            return vec![("source".to_owned(), self)];
        }
        self.tables.iter().map(|(name, table)| (format!("source.tables.{name}"), table)).collect()
    }

    /// Everything that decides which rows there are, but for where the files lie: part of what a run is. Empty for a
    /// plain location.
    pub(crate) fn describe_reading(&self) -> String {
        let mut reading = self.clone();
        reading.url = String::new();
        reading.tables.values_mut().for_each(|table| table.url = String::new());
        if reading == Self::at_url("") { String::new() } else { serde_json::json!(reading).to_string() }
    }
}

impl Sink {
    /// Whether releases are versions of a Delta table.
    pub(crate) fn is_delta(&self) -> bool {
        self.format == Some(SinkFormat::Delta)
    }

    /// Whether several releases are allowed regardless of what they reveal together.
    pub(crate) fn is_independent(&self) -> bool {
        self.releases == Some(SinkReleases::Independent)
    }
}

/// Reads the tables of a query: each a location, or a table of keys.
pub(crate) fn parse_tables<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Source>, D::Error> {
    struct Table(Source);
    impl<'de> Deserialize<'de> for Table {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            from.deserialize_any(OneTable).map(Table)
        }
    }
    struct OneTable;
    impl<'de> Visitor<'de> for OneTable {
        type Value = Source;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a location, or a table such as { url = \"people.csv\", format = \"csv\" }")
        }
        fn visit_str<E: Error>(self, url: &str) -> Result<Source, E> {
            Ok(Source::at_url(url))
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Source, A::Error> {
            Source::deserialize(MapAccessDeserializer::new(map))
        }
    }
    let tables = BTreeMap::<String, Table>::deserialize(from)?;
    Ok(tables.into_iter().map(|(name, Table(table))| (name, table)).collect())
}

/// Schema of what [`parse_tables`] reads.
pub(crate) fn tables_schema(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<Source>();
    json_schema!({ "type": "object", "additionalProperties": { "anyOf": [{ "type": "string" }, table] } })
}

/// The names that [`data_type`] knows, for people.
const TYPES: [&str; 17] = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "boolean",
    "text",
    "date",
    "time",
    "timestamp",
    "timestamp(s)",
    "decimal(10, 2)",
];

/// The type of a name in `source.schema`.
pub(crate) fn data_type(name: &str) -> Option<DataType> {
    let name = name.trim().to_ascii_lowercase();
    let (base, inside) = match name.split_once('(') {
        Some((base, rest)) => (base.trim(), Some(rest.strip_suffix(')')?.trim())),
        None => (name.as_str(), None),
    };
    Some(match (base, inside) {
        ("int8", None) => DataType::Int8,
        ("int16", None) => DataType::Int16,
        ("int32", None) => DataType::Int32,
        ("int64", None) => DataType::Int64,
        ("uint8", None) => DataType::UInt8,
        ("uint16", None) => DataType::UInt16,
        ("uint32", None) => DataType::UInt32,
        ("uint64", None) => DataType::UInt64,
        ("float32", None) => DataType::Float32,
        ("float64", None) => DataType::Float64,
        ("boolean" | "bool", None) => DataType::Boolean,
        ("text" | "string" | "utf8", None) => DataType::Utf8,
        ("date" | "date32", None) => DataType::Date32,
        ("time", None) => DataType::Time64(TimeUnit::Microsecond),
        ("timestamp", unit) => {
            let unit = match unit.unwrap_or("us") {
                "s" => TimeUnit::Second,
                "ms" => TimeUnit::Millisecond,
                "us" => TimeUnit::Microsecond,
                "ns" => TimeUnit::Nanosecond,
                _ => return None,
            };
            DataType::Timestamp(unit, None)
        }
        ("decimal", Some(inside)) => {
            let (precision, scale) = inside.split_once(',')?;
            let (precision, scale) = (precision.trim().parse::<u8>().ok()?, scale.trim().parse::<i8>().ok()?);
            let fits = (1..=38).contains(&precision) && scale >= 0 && scale.unsigned_abs() <= precision;
            if !fits {
                return None;
            }
            DataType::Decimal128(precision, scale)
        }
        _ => return None,
    })
}

/// Checks the keys of a source; where its files lie is checked with the sink's location.
pub(crate) fn check_source(source: &Source, problems: &mut Vec<Problem>) {
    match (&source.sql, source.url.is_empty()) {
        (Some(_), false) => problems.push(
            Problem::error("source.sql", "conflicts with source.url: give only one of them")
                .help("name the location in [source.tables], and query it by that name"),
        ),
        (Some(sql), true) if sql.trim().is_empty() => problems.push(Problem::error("source.sql", "is empty")),
        (Some(_), true) if source.tables.is_empty() => problems.push(
            Problem::error("source.tables", "is missing: the query has nothing to read")
                .help("add [source.tables] with lines such as people = \"data/people/\""),
        ),
        (None, _) if !source.tables.is_empty() => problems.push(
            Problem::error("source.tables", "is for source.sql, which is missing")
                .help("add sql = \"SELECT ...\", or name one location as source.url"),
        ),
        _ => {}
    }
    for (name, table) in &source.tables {
        let nested = table.sql.is_some() || !table.tables.is_empty();
        if nested {
            let key = format!("source.tables.{name}");
            problems.push(Problem::error(key, "must be a location; only the source itself can be a query"));
        }
    }
    if source.sql.is_some() && source.describe_reading() != query_alone(source).describe_reading() {
        let message = "file options conflict with source.sql; they belong to the tables of the query";
        problems
            .push(Problem::error("source", message).help("write people = { url = \"...\", format = \"csv\", ... }"));
    }
    for (key, table) in source.located_sources() {
        check_files(&key, table, problems);
    }
}

/// A source with its query and nothing about files.
fn query_alone(source: &Source) -> Source {
    Source { sql: source.sql.clone(), tables: source.tables.clone(), ..Source::at_url("") }
}

fn check_files(key: &str, source: &Source, problems: &mut Vec<Problem>) {
    let format = source.declared_format();
    if source.url.starts_with("delta://") && source.format.is_some_and(|format| format != Format::Delta) {
        problems.push(Problem::error(format!("{key}.format"), "does not fit a location that begins with delta://"));
    }
    let csv = format == Some(Format::Csv);
    let only_csv = [
        ("names", !source.names.is_empty()),
        ("header", source.header.is_some()),
        ("delimiter", source.delimiter.is_some()),
        ("null", source.null.is_some()),
    ];
    for (option, _) in only_csv.into_iter().filter(|(_, set)| *set && !csv) {
        let problem = Problem::error(format!("{key}.{option}"), "is an option of CSV files");
        problems.push(problem.help("add format = \"csv\", or remove it"));
    }
    if source.version.is_some() && matches!(format, Some(Format::Csv | Format::Parquet)) {
        problems.push(Problem::error(format!("{key}.version"), "is an option of Delta tables"));
    }
    for (column, name) in &source.schema {
        if data_type(name).is_none() {
            let problem = Problem::error(format!("{key}.schema.{column}"), format!("`{name}` is not a known type"));
            problems.push(match nearest_word(name, TYPES) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(format!("expected one of {}", TYPES.join(", "))),
            });
        }
    }
    if !csv {
        return;
    }
    if source.schema.is_empty() {
        problems.push(
            Problem::error(format!("{key}.schema"), "is missing: CSV files do not say what their columns are")
                .help("add a line such as age = \"int32\" for every column"),
        );
    }
    if source.delimiter.is_some_and(|delimiter| !delimiter.is_ascii() || delimiter == '"' || delimiter == '\n') {
        problems.push(Problem::error(format!("{key}.delimiter"), "must be one ASCII character other than a quote"));
    }
    match source.header {
        Some(false) if source.names.is_empty() => problems.push(
            Problem::error(format!("{key}.names"), "is missing: without a header it gives the order of the columns")
                .help("add names = [\"first column\", \"second column\", ...]"),
        ),
        Some(false) => {
            let mut named: Vec<&String> = source.names.iter().collect();
            named.sort_unstable();
            let twice = named.windows(2).any(|pair| pair[0] == pair[1]);
            if twice || !named.into_iter().eq(source.schema.keys()) && !source.schema.is_empty() {
                let message = "must name every column of the schema once, in the order of the files";
                problems.push(Problem::error(format!("{key}.names"), message));
            }
        }
        _ if !source.names.is_empty() => problems.push(
            Problem::error(format!("{key}.names"), "is for files without a header")
                .help("set header = false, or remove it"),
        ),
        _ => {}
    }
}

/// Checks how releases are kept.
pub(crate) fn check_sink(sink: &Sink, problems: &mut Vec<Problem>) {
    if sink.is_delta() && !cfg!(feature = "delta") {
        problems.push(Problem::error("sink.format", "this build of Throng does not support Delta tables").help(BUILD));
    }
}

/// How to build with Delta support.
pub(crate) const BUILD: &str = "build it with `--features delta`";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::model::Job;
    use super::*;

    fn errors(source: &str) -> Vec<String> {
        let text = format!("version = 1\nsink.url = \"out\"\nprivacy.k = 2\n[source]\n{source}\n");
        let job = Job::parse(&text, Path::new("job.toml")).unwrap();
        let mut problems = Vec::new();
        check_source(&job.source, &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn types_have_names() {
        assert_eq!(data_type("int32"), Some(DataType::Int32));
        assert_eq!(data_type("Decimal(10, 2)"), Some(DataType::Decimal128(10, 2)));
        assert_eq!(data_type("timestamp(ms)"), Some(DataType::Timestamp(TimeUnit::Millisecond, None)));
        for wrong in ["int", "int32(4)", "decimal", "decimal(39, 2)", "decimal(4, 5)", "timestamp(h)", "decimal(4, 2"] {
            assert_eq!(data_type(wrong), None, "{wrong}");
        }
        assert!(TYPES.iter().all(|name| data_type(name).is_some()));
    }

    #[test]
    fn a_source_is_a_location_or_a_query() {
        assert_eq!(errors("url = \"in\""), [""; 0]);
        assert_eq!(errors("sql = \"SELECT 1\"\ntables = { a = \"x\", b = { url = \"y\" } }"), [""; 0]);
        for (source, expected) in [
            ("url = \"in\"\nsql = \"SELECT 1\"", "source.sql: conflicts with source.url"),
            ("sql = \"SELECT 1\"", "source.tables: is missing"),
            ("sql = \" \"\ntables.a = \"x\"", "source.sql: is empty"),
            ("url = \"in\"\ntables.a = \"x\"", "source.tables: is for source.sql"),
            ("sql = \"SELECT 1\"\ntables.a.sql = \"SELECT 1\"", "source.tables.a: must be a location"),
            ("sql = \"SELECT 1\"\ntables.a = \"x\"\nformat = \"csv\"", "file options conflict with source.sql"),
        ] {
            let found = errors(source).join("\n");
            assert!(found.contains(expected), "{source}: {found}");
        }
    }

    #[test]
    fn csv_files_need_a_schema() {
        let csv = "url = \"in\"\nformat = \"csv\"\n";
        assert_eq!(errors(&format!("{csv}schema = {{ a = \"int32\" }}")), [""; 0]);
        assert_eq!(
            errors(&format!("{csv}header = false\nnames = [\"b\", \"a\"]\nschema = {{ a = \"int32\", b = \"text\" }}")),
            [""; 0]
        );
        for (rest, expected) in [
            (csv.to_owned(), "source.schema: is missing"),
            (format!("{csv}schema.a = \"int23\""), "did you mean `int32`?"),
            (format!("{csv}schema.a = \"text\"\ndelimiter = \"ü\""), "source.delimiter: must be one ASCII"),
            (format!("{csv}schema.a = \"text\"\nheader = false"), "source.names: is missing"),
            (format!("{csv}schema.a = \"text\"\nheader = false\nnames = [\"b\"]"), "must name every column"),
            (format!("{csv}schema.a = \"text\"\nnames = [\"a\"]"), "is for files without a header"),
            ("url = \"in\"\ndelimiter = \";\"".to_owned(), "source.delimiter: is an option of CSV files"),
            ("url = \"in\"\nformat = \"parquet\"\nversion = 3".to_owned(), "source.version: is an option of Delta"),
            ("url = \"delta://in\"\nformat = \"csv\"\nschema.a = \"text\"".to_owned(), "begins with delta://"),
        ] {
            let found = errors(&rest).join("\n");
            assert!(found.contains(expected), "{rest}: {found}");
        }
    }

    #[test]
    fn where_files_lie_is_no_part_of_how_they_are_read() {
        assert_eq!(Source::at_url("in").describe_reading(), "");
        let query = |url: &str, sql: &str| Source {
            sql: Some(sql.to_owned()),
            tables: [("a".to_owned(), Source::at_url(url))].into(),
            ..Source::at_url("")
        };
        assert_eq!(query("x", "SELECT 1").describe_reading(), query("y", "SELECT 1").describe_reading());
        assert_ne!(query("x", "SELECT 1").describe_reading(), query("x", "SELECT 2").describe_reading());
    }
}
