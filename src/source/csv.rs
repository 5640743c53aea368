//! CSV files: DataFusion reads them; this module determines their columns and locates rows that cannot be read.
//!
//! DataFusion's own message quotes the row, and counts lines from somewhere in the file. So when reading fails, the
//! files are read once more, row by row, until the fault is found: it is named by file, line and column, without the
//! value. Quoted values may hold line breaks, so a file is always read as one piece.

use std::io::Read;
use std::sync::Arc;

use datafusion::arrow::csv::ReaderBuilder;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::runtime::SpawnedTask;
use datafusion::config::CsvOptions;
use datafusion::datasource::ViewTable;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::functions::core::expr_fn::nullif;
use datafusion::logical_expr::{cast, ident, lit};
use datafusion::prelude::SessionContext;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStoreExt;
use tokio::sync::mpsc;

use super::files::{FILES_AT_ONCE, Files};
use crate::error::{Error, Result};
use crate::policy::{self, Format};

/// How CSV files are read.
#[derive(Debug, Clone)]
pub(super) struct Csv {
    /// Types by column.
    types: Vec<(String, DataType)>,
    /// Order of the columns; `None` if the files have headers.
    names: Option<Vec<String>>,
    delimiter: u8,
    null: String,
}

impl Csv {
    /// How a source's files are read, if they are CSV.
    pub(super) fn of_source(spec: &policy::Source) -> Option<Self> {
        if spec.declared_format() != Some(Format::Csv) {
            return None;
        }
        let types = spec.schema.iter().filter_map(|(column, name)| Some((column.clone(), policy::data_type(name)?)));
        Some(Self {
            types: types.collect(),
            names: (spec.header == Some(false)).then(|| spec.names.clone()),
            delimiter: spec.delimiter.and_then(|delimiter| u8::try_from(delimiter).ok()).unwrap_or(b','),
            null: spec.null.clone().unwrap_or_default(),
        })
    }

    /// The reader.
    pub(super) fn format(&self) -> CsvFormat {
        CsvFormat::default().with_options(CsvOptions {
            has_header: Some(self.names.is_none()),
            delimiter: self.delimiter,
            newlines_in_values: Some(true),
            ..CsvOptions::default()
        })
    }

    /// The columns as they are read: as text when a text stands for null, for DataFusion's reader knows no such text.
    pub(super) fn read_schema(&self, schema: &SchemaRef) -> SchemaRef {
        if self.null.is_empty() {
            return Arc::clone(schema);
        }
        let texts = schema.fields().iter().map(|field| Field::new(field.name(), DataType::Utf8, true));
        Arc::new(Schema::new(texts.collect::<Vec<_>>()))
    }

    /// The table with its nulls and types, over one whose columns may have been read as text.
    pub(super) fn with_types(
        &self,
        context: &SessionContext,
        table: Arc<dyn TableProvider>,
        schema: &SchemaRef,
    ) -> Result<Arc<dyn TableProvider>> {
        if self.null.is_empty() {
            return Ok(table);
        }
        let columns = table.schema();
        let typed = columns.fields().iter().map(|field| match schema.field_with_name(field.name()) {
            Ok(wanted) => {
                let value = nullif(ident(field.name()), lit(self.null.as_str()));
                cast(value, wanted.data_type().clone()).alias(field.name())
            }
            // A folder column has its type already.
            Err(_) => ident(field.name()),
        });
        let rows = context.read_table(table)?.select(typed.collect::<Vec<_>>())?;
        Ok(Arc::new(ViewTable::new(rows.into_unoptimized_plan(), None)))
    }

    /// The columns in the order of the files, whose headers must agree with each other and with the declared types.
    pub(super) async fn infer_schema(&self, files: &Files, folders: &[FieldRef]) -> Result<SchemaRef> {
        let names = match &self.names {
            Some(names) => names.clone(),
            None => {
                let read = |file: usize| self.read_header(files, file);
                let headers: Vec<Vec<String>> =
                    stream::iter(0..files.found.len()).map(read).buffered(FILES_AT_ONCE).try_collect().await?;
                if let Some(other) = (1..headers.len()).find(|file| headers[*file] != headers[0]) {
                    return Err(Error::input(format!(
                        "the headers of `{}` and `{}` differ; all CSV files of a source need the same",
                        files.file_name(other),
                        files.file_name(0)
                    )));
                }
                headers.into_iter().next().unwrap_or_default()
            }
        };
        let folder = |column: &str| folders.iter().any(|field| field.name() == column);
        let wrong = |text: String| Error::input(format!("`{}` {text}", files.file_name(0)));
        self.header_fields(&names, folder).map(|fields| Arc::new(Schema::new(fields))).map_err(wrong)
    }

    /// The columns of a file by the names in its header. The first line of a file without a header is a row of the data, so
    /// a name is quoted only if the line is known to be a header: it holds a name that the job declares.
    fn header_fields(&self, names: &[String], is_folder: impl Fn(&str) -> bool) -> Result<Vec<Field>, String> {
        let mut declared = self.types.iter().filter(|(column, _)| !is_folder(column));
        if let Some((column, _)) = declared.clone().find(|(column, _)| !names.contains(column)) {
            let columns = match (&self.names, names.len()) {
                (Some(_), count) => format!("among the {count} of source.names"),
                (None, count) => format!(
                    "among the {count} of its first line; if the file has no header, set source.header = false and \
                     source.names"
                ),
            };
            return Err(format!("has no column `{column}`, which source.schema names, {columns}"));
        }
        let is_header = self.names.is_some() || declared.next().is_some();
        let described = |at: usize| if is_header { format!("`{}`", names[at]) } else { format!("number {}", at + 1) };
        if let Some(at) = (0..names.len()).find(|at| names[..*at].contains(&names[*at])) {
            return Err(match is_header {
                true => format!("holds two columns named `{}`; give one of them another name", names[at]),
                false => format!("holds the same name twice in its first line, the second time as number {}", at + 1),
            });
        }
        let field = |at: usize| match self.types.iter().find(|(column, _)| *column == names[at]) {
            Some((_, data_type)) => Ok(Field::new(&names[at], data_type.clone(), true)),
            None => Err(format!("has a column {}, but source.schema does not give its type", described(at))),
        };
        (0..names.len()).map(field).collect()
    }

    /// The names in the first line of a file.
    async fn read_header(&self, files: &Files, file: usize) -> Result<Vec<String>> {
        let store = &files.location.store;
        let mut content = store.get(&files.found[file].location).await?.into_stream();
        let mut start = Vec::new();
        // A line break may be part of a quoted name: the reader decides where the header ends.
        loop {
            let next = content.try_next().await?;
            start.extend_from_slice(next.as_deref().unwrap_or_default());
            let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
            let mut reader =
                csv::ReaderBuilder::new().has_headers(false).delimiter(self.delimiter).flexible(true).from_reader(text);
            let mut record = csv::StringRecord::new();
            let read = reader.read_record(&mut record);
            let whole = reader.position().byte() < text.len() as u64;
            match (next, read) {
                (Some(_), _) if !whole => {}
                (_, Ok(true)) => return Ok(record.iter().map(str::to_owned).collect()),
                _ => return Err(Error::input(format!("`{}` has no header that can be read", files.file_name(file)))),
            }
        }
    }

    /// The first fault in a set of files, in words; `None` if every row can be read.
    pub(super) async fn first_fault(&self, files: &Files, schema: &SchemaRef) -> Result<Option<String>> {
        for (number, file) in files.found.iter().enumerate() {
            let mut content = files.location.store.get(&file.location).await?.into_stream();
            let (sender, chunks) = mpsc::channel::<Vec<u8>>(4);
            let (this, schema) = (self.clone(), Arc::clone(schema));
            let search = SpawnedTask::spawn_blocking(move || {
                this.find_bad_row(Chunks { chunks, rest: Vec::new(), at: 0 }, &schema)
            });
            while let Some(chunk) = content.next().await {
                if sender.send(chunk?.to_vec()).await.is_err() {
                    break;
                }
            }
            drop(sender);
            let fault = search.join().await.map_err(|error| Error::internal(error.to_string()))?;
            if let Some(fault) = fault {
                return Ok(Some(format!("`{}`, {fault}", files.file_name(number))));
            }
        }
        Ok(None)
    }

    /// The first row that cannot be read.
    fn find_bad_row(&self, content: impl Read, schema: &SchemaRef) -> Option<String> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(self.names.is_none())
            .delimiter(self.delimiter)
            .flexible(true)
            .from_reader(content);
        let mut rows: Vec<(u64, Vec<String>)> = Vec::new();
        let mut record = csv::ByteRecord::new();
        let width = schema.fields().len();
        loop {
            let more = match reader.read_byte_record(&mut record) {
                Ok(more) => more,
                Err(_) => {
                    return Some(format!("line {}: the rest of the file cannot be read", reader.position().line()));
                }
            };
            if !more || rows.len() == ROWS_AT_ONCE {
                if let Some(fault) = self.find_fault(&rows, schema) {
                    return Some(fault);
                }
                rows.clear();
            }
            if !more {
                return None;
            }
            let line = record.position().map_or(0, csv::Position::line);
            if record.len() != width {
                let earlier = self.find_fault(&rows, schema);
                return earlier.or_else(|| {
                    Some(format!("line {line}: the row has {} values, but the table has {width} columns", record.len()))
                });
            }
            match record.iter().map(|value| String::from_utf8(value.to_vec())).collect() {
                Ok(values) => rows.push((line, values)),
                Err(_) => return Some(format!("line {line}: the row is not UTF-8 text")),
            }
        }
    }

    /// The first of some rows whose values are not of their types.
    fn find_fault(&self, rows: &[(u64, Vec<String>)], schema: &SchemaRef) -> Option<String> {
        if (0..schema.fields().len()).all(|column| self.column_fits(rows, schema, column)) {
            return None;
        }
        for row in rows {
            for (column, field) in schema.fields().iter().enumerate() {
                if !self.column_fits(std::slice::from_ref(row), schema, column) {
                    let name = field.name();
                    return Some(format!("line {}: column `{name}` does not hold a {}", row.0, field.data_type()));
                }
            }
        }
        None
    }

    /// Whether all values of a column are of its type, asked of the reader that DataFusion uses.
    fn column_fits(&self, rows: &[(u64, Vec<String>)], schema: &SchemaRef, column: usize) -> bool {
        let field = schema.field(column);
        if field.data_type() == &DataType::Utf8 {
            return true;
        }
        let mut writer = csv::Writer::from_writer(Vec::new());
        for (_, values) in rows {
            let value = values[column].as_str();
            // The reader below takes nothing for null, whatever stands for it in the file.
            let value = if value == self.null { "" } else { value };
            if writer.write_record([value]).is_err() {
                return false;
            }
        }
        let Ok(text) = writer.into_inner() else { return false };
        let schema = Arc::new(Schema::new(vec![field.clone()]));
        let reader = ReaderBuilder::new(schema).with_batch_size(ROWS_AT_ONCE).build(text.as_slice());
        reader.is_ok_and(|mut batches| batches.all(|batch| batch.is_ok()))
    }
}

/// Rows that are looked at together when a fault is searched.
const ROWS_AT_ONCE: usize = 1024;

/// What comes through a channel, as a reader.
struct Chunks {
    chunks: mpsc::Receiver<Vec<u8>>,
    rest: Vec<u8>,
    at: usize,
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.at == self.rest.len() {
            match self.chunks.blocking_recv() {
                Some(chunk) => (self.rest, self.at) = (chunk, 0),
                None => return Ok(0),
            }
        }
        let length = buffer.len().min(self.rest.len() - self.at);
        buffer[..length].copy_from_slice(&self.rest[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(null: &str) -> Csv {
        Csv { types: Vec::new(), names: None, delimiter: b';', null: null.to_owned() }
    }

    fn search(null: &str, text: &str) -> Option<String> {
        let schema = Arc::new(Schema::new(vec![
            Field::new("name", DataType::Utf8, true),
            Field::new("age", DataType::Int32, true),
        ]));
        csv(null).find_bad_row(text.as_bytes(), &schema)
    }

    /// Seen failing: the first row was quoted where a header was expected.
    #[test]
    fn a_row_is_not_told_for_a_header() {
        let fields = |types: &[&str], names: &[&str]| {
            let types = types.iter().map(|name| ((*name).to_owned(), DataType::Utf8)).collect();
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Csv { types, ..csv("") }.header_fields(&names, |column| column == "year").map(|fields| fields.len())
        };
        assert_eq!(fields(&["name", "age", "year"], &["name", "age"]), Ok(2));
        for (types, described) in [(&["name", "age"][..], "no column `name`"), (&["year"], "column number 1")] {
            let error = fields(types, &["Quuxham", "44"]).unwrap_err();
            assert!(error.contains(described) && !error.contains("Quuxham") && !error.contains("44"), "{error}");
        }
        assert!(!fields(&["year"], &["Quuxham", "Quuxham"]).unwrap_err().contains("Quuxham"));
        assert!(fields(&["name"], &["name", "town"]).unwrap_err().contains("a column `town`"));
        assert!(fields(&["name"], &["name", "name"]).unwrap_err().contains("two columns named `name`"));
    }

    #[test]
    fn the_fault_is_named_by_line_and_column() {
        assert_eq!(search("", "name;age\nAda;36\nBob;\n"), None);
        assert_eq!(
            search("", "name;age\n\"A\nda\";36\nBob;x7\n").as_deref(),
            Some("line 4: column `age` does not hold a Int32"),
            "a quoted line break counts as a line"
        );
        assert_eq!(
            search("", "name;age\nAda;36;1\n").as_deref(),
            Some("line 2: the row has 3 values, but the table has 2 columns")
        );
        assert_eq!(search("NA", "name;age\nAda;NA\n"), None);
        assert_eq!(search("NA", "name;age\nAda;\n"), None, "nothing is null too");
        assert!(search("", "name;age\nAda;NA\n").is_some());
        let many: String = (0..3000).map(|row| format!("A;{row}\n")).collect();
        assert_eq!(
            search("", &format!("name;age\n{many}A;3e9\n")).map(|text| text[..10].to_owned()),
            Some("line 3002:".into())
        );
    }
}
