//! How released files are laid out: their size, and the columns that become folders.

use std::fmt;

use datafusion::arrow::datatypes::{DataType, Schema};
use schemars::{JsonSchema, Schema as JsonSchemaOf, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::model::{Job, Role};
use crate::error::Problem;

/// A number of bytes, written as `"256MB"` or as a plain number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileSize(pub u64);

impl Default for FileSize {
    fn default() -> Self {
        Self(512_000_000)
    }
}

impl Serialize for FileSize {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for FileSize {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = FileSize;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"256MB\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<FileSize, E> {
                let size: Result<bytesize::ByteSize, String> = text.parse();
                size.map(|size| FileSize(size.as_u64()))
                    .map_err(|_| E::custom(format!("`{text}` is not a size such as \"256MB\"")))
            }
            fn visit_i64<E: Error>(self, bytes: i64) -> Result<FileSize, E> {
                u64::try_from(bytes).map(FileSize).map_err(|_| E::custom("a size is not below 0"))
            }
            fn visit_u64<E: Error>(self, bytes: u64) -> Result<FileSize, E> {
                Ok(FileSize(bytes))
            }
        }
        from.deserialize_any(Bytes)
    }
}

impl JsonSchema for FileSize {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FileSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> JsonSchemaOf {
        json_schema!({ "anyOf": [{ "type": "string" }, { "type": "integer", "minimum": 1 }] })
    }
}

/// Checks what shows without knowing the source.
pub(crate) fn check_output(job: &Job, problems: &mut Vec<Problem>) {
    if job.output.file_size.0 == 0 {
        problems.push(Problem::error("output.file-size", "must be at least 1 byte, got 0"));
    }
    let default = job.defaults.as_ref().and_then(|defaults| defaults.role);
    for (place, name) in job.output.partition_by.iter().enumerate() {
        if job.output.partition_by[..place].contains(name) {
            problems.push(Problem::error("output.partition-by", format!("names `{name}` twice")));
        }
        let why = match job.columns.get(name).map(|column| column.role).or(default) {
            Some(Role::Kept) => continue,
            None => "the job gives it no role",
            Some(Role::Quasi) => "it is a quasi-identifier: a folder would show what its class hides",
            Some(Role::Sensitive) => "it is sensitive: a folder would sort people by what must not be linked to them",
            Some(Role::Identifier) => "it is an identifier: there would be a folder for every person",
        };
        problems.push(
            Problem::error("output.partition-by", format!("`{name}` cannot name folders: {why}"))
                .help("only columns of role \"kept\" can"),
        );
    }
}

/// Checks the folder columns against the columns of the source.
pub(crate) fn check_types(job: &Job, schema: &Schema) -> Vec<Problem> {
    let mut problems = Vec::new();
    for name in &job.output.partition_by {
        let key = "output.partition-by";
        match schema.field_with_name(name).map(|field| field.data_type()) {
            Err(_) => problems.push(Problem::error(key, format!("the source has no column `{name}`"))),
            Ok(data_type) if !names_folders(data_type) => problems.push(
                Problem::error(key, format!("`{name}` is of type {data_type}, which cannot name folders"))
                    .help("text, whole numbers, booleans and dates can"),
            ),
            Ok(_) => {}
        }
    }
    let named = |field: &str| job.output.partition_by.iter().any(|name| name == field);
    if !schema.fields().is_empty() && schema.fields().iter().all(|field| named(field.name())) {
        problems.push(Problem::error("output.partition-by", "names every column, and leaves none for the files"));
    }
    problems
}

fn names_folders(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(
            data_type,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean | DataType::Date32
        )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use datafusion::arrow::datatypes::Field;

    use super::*;

    fn job(output: &str) -> Job {
        let text = format!(
            "version = 1\nsource.url = \"s3://a/in\"\nsink.url = \"s3://a/out\"\nprivacy.k = 5\n[columns]\n\
             q.role = \"quasi\"\ns.role = \"sensitive\"\ni.role = \"identifier\"\nk.role = \"kept\"\n[output]\n{output}\n"
        );
        Job::parse(&text, Path::new("job.toml")).unwrap()
    }

    fn errors(output: &str) -> String {
        let mut problems = Vec::new();
        check_output(&job(output), &mut problems);
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn sizes_are_written_as_people_do() {
        assert_eq!(job("file-size = \"256MB\"").output.file_size, FileSize(256_000_000));
        assert_eq!(job("file-size = 4096").output.file_size, FileSize(4096));
        assert_eq!(job("").output.file_size, FileSize::default());
        assert!(errors("file-size = 0").contains("at least 1 byte"));
    }

    #[test]
    fn only_kept_columns_name_folders() {
        assert_eq!(errors("partition-by = [\"k\"]"), "");
        for (column, why) in [
            ("q", "would show what its class hides"),
            ("s", "must not be linked"),
            ("i", "a folder for every person"),
            ("x", "no role"),
        ] {
            let found = errors(&format!("partition-by = [\"{column}\"]"));
            assert!(found.contains(&format!("`{column}` cannot name folders")) && found.contains(why), "{found}");
        }
        assert!(errors("partition-by = [\"k\", \"k\"]").contains("twice"));
        let of = |data_type: DataType| {
            let schema = Schema::new(vec![Field::new("k", data_type, true), Field::new("q", DataType::Int32, true)]);
            check_types(&job("partition-by = [\"k\"]"), &schema).len()
        };
        assert_eq!((of(DataType::Utf8View), of(DataType::Date32), of(DataType::Float64)), (0, 0, 1));
    }
}
