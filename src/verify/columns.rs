//! The columns of published files: whether they are those of the release, and of the types that it promises.
//!
//! It is asked before anything is read, because everything that reads rows takes the types of columns for granted. Types
//! are compared as a reader sees them: whether text is held by views or offsets, or coded by a dictionary, is not visible to
//! them, nor are the names that lists give to their items. A type that Parquet does not have comes back as another, so
//! what is promised goes through Parquet first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::parquet::arrow::{
    ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, encode_arrow_schema, parquet_to_arrow_schema,
};
use datafusion::parquet::file::metadata::KeyValue;

use super::Finding;
use crate::published::read::{PublishedFile, folder_names};

/// The type that a column shall have.
#[derive(Debug, Clone)]
pub(crate) enum PromisedType {
    /// As the job has it.
    Known(DataType),
    /// As the manifest writes it.
    Written(String),
}

/// What was found of the columns of some files.
#[derive(Debug, Default)]
pub(crate) struct ColumnCheck {
    /// What is wrong with them.
    pub(crate) findings: Vec<Finding>,
    /// Whether rows can be read: every column is there, and of its type.
    pub(crate) readable: bool,
}

/// Compares the columns of files with those that are promised by name.
pub(crate) fn check_columns(
    files: &[PublishedFile],
    schemas: &[SchemaRef],
    promised: &BTreeMap<String, PromisedType>,
) -> ColumnCheck {
    let in_folders: BTreeSet<String> = files
        .iter()
        .flat_map(|file| folder_names(&file.name))
        .filter_map(|folder| Some(folder.split_once('=')?.0.to_owned()))
        .collect();
    let mut unlisted: BTreeSet<&str> = BTreeSet::new();
    let mut present: BTreeSet<&str> = in_folders.iter().map(String::as_str).collect();
    let mut mistyped: Vec<(&str, &str)> = Vec::new();
    for (file, schema) in files.iter().zip(schemas) {
        for field in schema.fields() {
            present.insert(field.name());
            match promised.get(field.name()) {
                None => _ = unlisted.insert(field.name()),
                Some(promised) if !promised.is_met(field.data_type()) => mistyped.push((field.name(), &file.name)),
                Some(_) => {}
            }
        }
    }
    let missing: Vec<&String> = promised.keys().filter(|name| !present.contains(name.as_str())).collect();
    let mut findings = Vec::new();
    findings.extend(Finding::if_any("columns", unlisted.len() as u64, |count| {
        format!("{count} columns of the published files are not part of the release")
    }));
    if let Some((column, file)) = mistyped.first() {
        let count = mistyped.iter().map(|(column, _)| column).collect::<BTreeSet<_>>().len();
        let message = format!(
            "{count} columns have another type than the release promises, starting with `{column}` of `{file}`"
        );
        findings.push(Finding::new("columns", count as u64, message));
    }
    if let Some(column) = missing.first() {
        let count = missing.len();
        let message = format!("{count} columns of the release are in no published file, starting with `{column}`");
        findings.push(Finding::new("columns", count as u64, message));
    }
    ColumnCheck { findings, readable: mistyped.is_empty() && missing.is_empty() }
}

impl PromisedType {
    /// Whether a column of this type is what was promised.
    pub(crate) fn is_met(&self, found: &DataType) -> bool {
        let found = as_read(&through_parquet(found));
        match self {
            Self::Known(data_type) => as_read(&through_parquet(data_type)) == found,
            Self::Written(text) => match text.parse::<DataType>() {
                Ok(data_type) => as_read(&through_parquet(&data_type)) == found,
                Err(_) => *text == found.to_string(),
            },
        }
    }
}

/// The type that a column has once it was written to Parquet and read again.
fn through_parquet(data_type: &DataType) -> DataType {
    let schema = Schema::new(vec![Field::new("column", data_type.clone(), true)]);
    let hint = vec![KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&schema))];
    let read =
        ArrowSchemaConverter::new().convert(&schema).and_then(|stored| parquet_to_arrow_schema(&stored, Some(&hint)));
    read.map_or_else(|_| data_type.clone(), |read| read.field(0).data_type().clone())
}

/// A type without what makes no difference to a reader.
fn as_read(data_type: &DataType) -> DataType {
    let renamed = |field: &FieldRef, name: &str| Arc::new(Field::new(name, as_read(field.data_type()), true));
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
        DataType::Dictionary(_, values) => as_read(values),
        DataType::RunEndEncoded(_, values) => as_read(values.data_type()),
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
            DataType::List(renamed(item, "item"))
        }
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(renamed(item, "item"), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| renamed(field, field.name())).collect()),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                let pair = [renamed(&pair[0], "key"), renamed(&pair[1], "value")];
                let entries = Field::new("entries", DataType::Struct(pair.into_iter().collect()), false);
                DataType::Map(Arc::new(entries), false)
            }
            _ => data_type.clone(),
        },
        plain => plain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{Fields, TimeUnit};

    use super::*;

    fn range(end: DataType) -> DataType {
        DataType::Struct(Fields::from(["min", "max"].map(|name| Field::new(name, end.clone(), true)).to_vec()))
    }

    #[test]
    fn types_are_what_a_reader_sees() {
        let list = |name: &str| DataType::List(Arc::new(Field::new(name, DataType::Utf8View, false)));
        let coded = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::LargeUtf8));
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        let alike = [
            (DataType::Utf8, DataType::Utf8View),
            (coded, DataType::Utf8),
            (list("item"), list("element")),
            (seconds.clone(), seconds),
            (DataType::Decimal256(60, 2), DataType::Decimal256(60, 2)),
            (range(DataType::Date64), range(DataType::Date64)),
        ];
        for (promised, found) in alike {
            assert!(PromisedType::Known(promised.clone()).is_met(&found), "{promised} {found}");
            assert!(PromisedType::Written(promised.to_string()).is_met(&found), "{promised} {found}");
        }
        let micros = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        let different = [
            (DataType::Int64, DataType::Int32),
            (DataType::Int64, DataType::Utf8),
            (DataType::Int32, DataType::UInt32),
            (DataType::Date32, micros(None)),
            (DataType::Timestamp(TimeUnit::Millisecond, None), micros(None)),
            (micros(Some("UTC")), micros(None)),
            (DataType::Decimal128(10, 2), DataType::Decimal128(10, 3)),
            (range(DataType::Int32), DataType::Utf8),
            (range(DataType::Int32), range(DataType::Int64)),
        ];
        for (promised, found) in different {
            assert!(!PromisedType::Known(promised.clone()).is_met(&found), "{promised} {found}");
            assert!(!PromisedType::Written(promised.to_string()).is_met(&found), "{promised} {found}");
        }
    }

    #[test]
    fn columns_are_named_with_their_file() {
        let file = |name: &str| PublishedFile { name: name.into(), path: name.into() };
        let files = [file("data/run=1/town=a/part-0-0.parquet"), file("data/run=1/town=b/part-1-0.parquet")];
        let schema = |age: DataType, more: &str| -> SchemaRef {
            Arc::new(Schema::new(vec![Field::new("age", age, true), Field::new(more, DataType::Utf8, true)]))
        };
        let promised = [("age", DataType::Int32), ("ill", DataType::Utf8), ("town", DataType::Utf8)];
        let promised = promised.map(|(name, of)| (name.to_owned(), PromisedType::Known(of))).into();
        let good = check_columns(&files, &[schema(DataType::Int32, "ill"), schema(DataType::Int32, "ill")], &promised);
        assert!(good.readable && good.findings.is_empty());
        let bad = check_columns(&files, &[schema(DataType::Int32, "odd"), schema(DataType::Int64, "odd")], &promised);
        let said: Vec<String> = bad.findings.into_iter().map(|finding| finding.message).collect();
        assert!(!bad.readable && said.len() == 3, "{said:?}");
        assert!(said[1].contains("`age` of `data/run=1/town=b/part-1-0.parquet`") && said[2].contains("`ill`"));
    }
}
