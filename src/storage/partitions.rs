//! Columns that are folder names: `year=2024/region=north/part-0.parquet`.
//!
//! Their values are data like all others. So where a path is shown (in the manifest, in a plan, in an error)
//! values of columns that are not published as they are, are left out of it.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use object_store::path::Path;

use crate::error::{Error, Result};

/// What Hive writes for null.
pub(crate) const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The folder columns of a set of files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Partitions {
    /// The columns, outermost folder first.
    pub(crate) fields: Vec<FieldRef>,
    /// The values of every file.
    pub(crate) values: Vec<Vec<ScalarValue>>,
}

impl Partitions {
    /// Finds the folder columns of files, given the names of the folders each lies in and what to call it. All files
    /// must have the same columns; their types are the declared ones, or follow from the values.
    pub(crate) fn from_folders(
        folders: &[Vec<String>],
        name: impl Fn(usize) -> String,
        declared: impl Fn(&str) -> Option<DataType>,
    ) -> Result<Self> {
        let pairs = Self::folder_texts(folders);
        let columns = |file: usize| pairs[file].iter().map(|(column, _)| column.as_str()).collect::<Vec<_>>();
        let first = if pairs.is_empty() { Vec::new() } else { columns(0) };
        if let Some(other) = (1..pairs.len()).find(|file| columns(*file) != first) {
            let said = |columns: Vec<&str>| if columns.is_empty() { "none".to_owned() } else { columns.join(", ") };
            return Err(Error::input(format!(
                "the folders of `{}` name other columns ({}) than those of `{}` ({}); all files of a source need the same",
                name(other),
                said(columns(other)),
                name(0),
                said(first),
            )));
        }
        let mut found = Self { fields: Vec::new(), values: vec![Vec::new(); pairs.len()] };
        for (place, column) in first.iter().enumerate() {
            let texts: Vec<Option<&str>> = pairs.iter().map(|pairs| pairs[place].1.as_deref()).collect();
            let data_type = declared(column).unwrap_or_else(|| infer_type(&texts));
            for (file, text) in texts.iter().enumerate() {
                let value = match text {
                    None => ScalarValue::try_new_null(&data_type),
                    Some(text) => ScalarValue::try_from_string((*text).to_owned(), &data_type),
                };
                let value = value.map_err(|_| {
                    Error::input(format!("a folder of `{}` holds no {data_type} for column `{column}`", name(file)))
                })?;
                found.values[file].push(value);
            }
            found.fields.push(Arc::new(Field::new(*column, data_type, true)));
        }
        Ok(found)
    }

    /// The folder columns of every file and their values as text; null is none.
    pub(crate) fn folder_texts(folders: &[Vec<String>]) -> Vec<Vec<(String, Option<String>)>> {
        folders.iter().map(|folders| folders.iter().filter_map(|folder| split_folder(folder)).collect()).collect()
    }
}

/// Column and value of a folder `column=value`; no value for null.
fn split_folder(folder: &str) -> Option<(String, Option<String>)> {
    let (column, value) = folder.split_once('=').filter(|(column, _)| !column.is_empty())?;
    Some((column.to_owned(), (value != NULL).then(|| decode_percent(value))))
}

/// The folder of a value. A text that would be read back as another one cannot name a folder.
pub(crate) fn folder_name(column: &str, value: Option<&str>) -> Result<String> {
    let unfit = match value {
        Some("") => "an empty text",
        Some(NULL) => "the text that stands for null in folder names",
        _ => return Ok(format!("{column}={}", value.unwrap_or(NULL))),
    };
    Err(Error::input(format!(
        "output.partition-by: column `{column}` holds {unfit}, which cannot name a folder; make it null in source.sql, or \
         choose another column"
    )))
}

/// Numbers when all values are written as numbers are, dates when all are dates, else text.
fn infer_type(texts: &[Option<&str>]) -> DataType {
    let all = |is: fn(&str) -> bool| texts.iter().flatten().all(|text| is(text)) && texts.iter().any(Option::is_some);
    // A zero in front belongs to a code, and would be lost.
    let is_number = |text: &str| text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
    if all(is_number) {
        DataType::Int64
    } else if all(|text| text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()) {
        DataType::Date32
    } else {
        DataType::Utf8
    }
}

/// Text with `%2F` and the like turned back into characters.
fn decode_percent(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        let code =
            (*byte == b'%').then(|| after.get(..2)).flatten().and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// A path without the values of folder columns that are not to be shown.
pub(crate) fn mask_path(path: &Path, shown: impl Fn(&str) -> bool) -> String {
    mask_text(path.as_ref(), shown)
}

/// The same for a path or URL as a job writes it.
pub(crate) fn mask_text(path: &str, shown: impl Fn(&str) -> bool) -> String {
    let parts = path.split('/').map(|part| match part.split_once('=') {
        Some((column, _)) if !shown(column) => format!("{column}=*"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy;

    fn find(paths: &[&str], schema: &str) -> Result<Partitions> {
        let declared = policy::Job::parse(
            &format!(
                "version = 1\nsink.url = \"o\"\nprivacy.k = 2\nsource = {{ url = \"i\", schema = {{ {schema} }} }}"
            ),
            std::path::Path::new("job.toml"),
        );
        let folders: Vec<Vec<String>> =
            paths.iter().map(|path| path.split('/').map(str::to_owned).collect::<Vec<_>>()).collect();
        let schema = declared.unwrap().source.schema;
        Partitions::from_folders(
            &folders,
            |file| format!("file {file}"),
            |column| policy::data_type(schema.get(column)?),
        )
    }

    fn types(paths: &[&str]) -> Vec<DataType> {
        find(paths, "").unwrap().fields.iter().map(|field| field.data_type().clone()).collect()
    }

    #[test]
    fn types_follow_from_the_values() {
        assert_eq!(
            types(&["year=2024/day=2024-03-07", "year=2025/day=2025-01-01"]),
            [DataType::Int64, DataType::Date32]
        );
        assert_eq!(types(&["code=012", "code=13"]), [DataType::Utf8], "a zero in front is kept");
        assert_eq!(types(&["a=1/x", "a=__HIVE_DEFAULT_PARTITION__/x"]), [DataType::Int64]);
        assert_eq!(types(&["a=__HIVE_DEFAULT_PARTITION__"]), [DataType::Utf8]);
        assert!(types(&["x", "y/z"]).is_empty());
        let declared = find(&["code=012", "code=13"], "code = \"int16\"").unwrap();
        assert_eq!(declared.values, [[ScalarValue::Int16(Some(12))], [ScalarValue::Int16(Some(13))]]);
    }

    #[test]
    fn folders_are_read_back_as_they_were_written() {
        for value in [None, Some("north"), Some("__hive_default_partition__")] {
            assert_eq!(
                split_folder(&folder_name("a", value).unwrap()).unwrap(),
                ("a".to_owned(), value.map(str::to_owned))
            );
        }
        for (value, expected) in [("", "an empty text"), (NULL, "stands for null")] {
            let error = folder_name("a", Some(value)).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("column `a`") && !error.contains(NULL), "{error}");
        }
    }

    #[test]
    fn values_are_decoded() {
        let found = find(&["town=Jynx%20End%2F", "town=100%"], "").unwrap();
        assert_eq!(found.values, [[ScalarValue::from("Jynx End/")], [ScalarValue::from("100%")]]);
    }

    #[test]
    fn files_agree_on_their_columns() {
        let error = find(&["year=1", "month=1"], "").unwrap_err().to_string();
        assert!(error.contains("`file 1` name other columns (month) than those of `file 0` (year)"), "{error}");
        let error = find(&["year=1", "x"], "").unwrap_err().to_string();
        assert!(error.contains("`file 1` name other columns (none)"), "{error}");
        let error = find(&["year=x1"], "year = \"int32\"").unwrap_err().to_string();
        assert_eq!(error, "a folder of `file 0` holds no Int32 for column `year`");
    }

    #[test]
    fn hidden_values_leave_the_path() {
        let path = Path::from("lake/year=2024/town=Quuxham/part.parquet");
        assert_eq!(mask_path(&path, |column| column == "year"), "lake/year=2024/town=*/part.parquet");
    }
}
