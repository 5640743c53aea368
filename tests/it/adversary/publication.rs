//! A release as a reader finds it, and whether its rows stand in the order that is defined for them.
//!
//! The definition: within every file rows are non-decreasing by the class columns (in schema order) and then by all other
//! columns (in schema order); files `part-<part>-<number>.parquet` of one part and folder continue each other; and all
//! rows of one class that lie in one folder lie in files of one part. An order like that is a function of the published
//! multiset of rows, so it cannot reveal more than the multiset does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use datafusion::arrow::array::RecordBatch;
use serde_json::Value as Json;

use super::values::{Value, rows};
use crate::support::{manifest, read_parquet};

/// One published file.
pub struct Piece {
    /// Folder below the release, such as `qit` or `year=2024`; empty for the release itself.
    pub folder: String,
    /// What stands first in its name: files of one part continue each other.
    pub part: String,
    /// The number at the end of its name.
    pub number: u64,
    /// Its rows, in their order.
    pub rows: RecordBatch,
}

/// The newest release of a sink.
pub struct Publication {
    /// What its manifest says.
    pub manifest: Json,
    /// Its files by folder, part and number.
    pub pieces: Vec<Piece>,
}

impl Publication {
    /// Reads the newest release of a sink.
    pub fn open(sink: &Path) -> Self {
        let manifest = manifest(sink);
        let mut pieces: Vec<Piece> = manifest["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| {
                let path = PathBuf::from(file["path"].as_str().unwrap());
                let folder = path.parent().unwrap().iter().skip(2).map(|part| part.to_str().unwrap());
                let folder = folder.collect::<Vec<_>>().join("/");
                let numbers = path.file_name().unwrap().to_str().unwrap();
                let numbers = numbers.strip_prefix("part-").and_then(|rest| rest.strip_suffix(".parquet"));
                let (part, number) =
                    numbers.and_then(|both| both.rsplit_once('-')).expect("part-<part>-<number>.parquet");
                let (part, number) = (part.to_owned(), number.parse().unwrap());
                Piece { folder, part, number, rows: read_parquet(&sink.join(path)) }
            })
            .collect();
        pieces.sort_by(|a, b| (&a.folder, &a.part, a.number).cmp(&(&b.folder, &b.part, b.number)));
        Self { manifest, pieces }
    }

    /// The columns that make up a class.
    pub fn class_columns(&self) -> Vec<String> {
        let names = self.manifest["class_columns"].as_array().expect("class_columns of the manifest");
        names.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    }

    /// In what the release departs from the defined order; nothing when it is in order.
    pub fn disorder(&self) -> Vec<String> {
        let class = self.class_columns();
        let mut found = Vec::new();
        let mut parts: BTreeMap<(&str, Vec<Value>), &str> = BTreeMap::new();
        let mut last: Option<(&str, &str, Vec<Value>)> = None;
        for piece in &self.pieces {
            let schema = piece.rows.schema();
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            let is_class = |at: &usize| class.iter().any(|name| name == names[*at]);
            let (mut columns, others): (Vec<usize>, Vec<usize>) = (0..names.len()).partition(is_class);
            let width = columns.len();
            columns.extend(others);
            let rows = rows(&piece.rows, &columns);
            let name = format!("{}/part-{}-{}", piece.folder, piece.part, piece.number);
            for (row, pair) in rows.windows(2).enumerate() {
                if pair[0] > pair[1] {
                    found.push(format!("{name}: row {} stands before row {row}", row + 1));
                }
            }
            if let (Some((folder, part, before)), Some(first)) = (&last, rows.first())
                && (*folder, *part) == (piece.folder.as_str(), piece.part.as_str())
                && before > first
            {
                found.push(format!("{name}: begins before the file before it ends"));
            }
            for row in &rows {
                let part = *parts.entry((piece.folder.as_str(), row[..width].to_vec())).or_insert(&piece.part);
                if part != piece.part {
                    found.push(format!("{name}: a class lies in part {part} too"));
                    break;
                }
            }
            if let Some(row) = rows.into_iter().next_back() {
                last = Some((&piece.folder, &piece.part, row));
            }
        }
        found
    }
}
