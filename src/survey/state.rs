//! What one partition has contributed to the survey, on its way to where all of it is merged.
//!
//! A state goes in pieces, so that none is too large for a message: first what is known of the columns, then the sample,
//! a slice at a time. Pieces can be merged in any order, of any partition.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use prost::{Message, Oneof};

use super::collector::{Collector, SensitiveCollector};
use super::sample::{Sampler, raise_ceiling};
use super::sketch::{HashSketch, WordSketch};
use super::{Survey, Surveyor};
use crate::binding::BoundPolicy;
use crate::error::{Error, Result};

/// Rows of the sample in one piece.
const SLICE: usize = 1 << 14;

/// A piece of a state.
#[derive(Clone, PartialEq, Message)]
struct Piece {
    #[prost(message, optional, tag = "1")]
    columns: Option<Columns>,
    /// Rows at or above this hash were passed over.
    #[prost(fixed64, tag = "2")]
    ceiling: u64,
    /// Rows of the sample, with their hashes and counts in the last two columns, as an Arrow stream.
    #[prost(bytes = "vec", tag = "3")]
    sample: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Columns {
    #[prost(uint64, tag = "1")]
    rows: u64,
    #[prost(uint64, tag = "2")]
    members: u64,
    #[prost(message, repeated, tag = "3")]
    quasi: Vec<Quasi>,
    #[prost(message, repeated, tag = "4")]
    sensitive: Vec<Sensitive>,
    #[prost(uint64, tag = "5")]
    dropped: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Quasi {
    #[prost(uint64, tag = "1")]
    nulls: u64,
    #[prost(oneof = "Kind", tags = "2, 3, 4")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Kind {
    #[prost(message, tag = "2")]
    Line(Line),
    #[prost(message, tag = "3")]
    Leaves(Leaves),
    #[prost(message, tag = "4")]
    Words(Words),
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(double, tag = "1")]
    min: f64,
    #[prost(double, tag = "2")]
    max: f64,
    #[prost(bool, tag = "3")]
    whole: bool,
    #[prost(bytes = "vec", repeated, tag = "4")]
    values: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Leaves {
    #[prost(uint64, tag = "1")]
    unknown: u64,
    #[prost(uint32, repeated, tag = "2")]
    leaves: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct Words {
    #[prost(fixed64, tag = "1")]
    ceiling: u64,
    #[prost(btree_map = "fixed64, string", tag = "2")]
    kept: BTreeMap<u64, String>,
}

#[derive(Clone, PartialEq, Message)]
struct Sensitive {
    #[prost(double, tag = "1")]
    min: f64,
    #[prost(double, tag = "2")]
    max: f64,
    #[prost(fixed64, tag = "3")]
    ceiling: u64,
    #[prost(fixed64, repeated, tag = "4")]
    hashes: Vec<u64>,
    #[prost(message, optional, tag = "5")]
    reference: Option<Counts>,
}

#[derive(Clone, PartialEq, Message)]
struct Counts {
    #[prost(bytes = "vec", repeated, tag = "1")]
    keys: Vec<Vec<u8>>,
    #[prost(uint64, repeated, tag = "2")]
    counts: Vec<u64>,
}

impl Surveyor {
    /// The pieces of this state.
    pub(crate) fn into_pieces(self) -> Result<Vec<Vec<u8>>> {
        let columns = Columns {
            rows: self.rows,
            members: self.members,
            quasi: self.quasi.into_iter().map(Quasi::from).collect(),
            sensitive: self.sensitive.into_iter().map(Sensitive::from).collect(),
            dropped: self.dropped,
        };
        let (ceiling, parts) = self.sampler.into_parts()?;
        let mut pieces = vec![Piece { columns: Some(columns), ceiling, sample: Vec::new() }.encode_to_vec()];
        for (rows, hashes, counts) in parts {
            for from in (0..rows.num_rows()).step_by(SLICE) {
                let to = rows.num_rows().min(from + SLICE);
                let sample = write_sample(&rows.slice(from, to - from), &hashes[from..to], &counts[from..to])?;
                pieces.push(Piece { columns: None, ceiling, sample }.encode_to_vec());
            }
        }
        Ok(pieces)
    }

    /// Adds a piece of the state of another partition.
    fn add_piece(&mut self, bound_policy: &BoundPolicy, piece: &[u8]) -> Result<()> {
        let piece = Piece::decode(piece).map_err(|error| malformed_state(error.to_string()))?;
        let mut other = Self::new(bound_policy, Arc::clone(&self.schema));
        if let Some(columns) = piece.columns {
            if columns.quasi.len() != other.quasi.len() || columns.sensitive.len() != other.sensitive.len() {
                return Err(malformed_state("it is of other columns"));
            }
            (other.rows, other.members, other.dropped) = (columns.rows, columns.members, columns.dropped);
            other.quasi = columns.quasi.into_iter().map(Collector::try_from).collect::<Result<_>>()?;
            other.sensitive = columns.sensitive.into_iter().map(SensitiveCollector::from).collect();
        }
        let part = if piece.sample.is_empty() { None } else { read_part(&piece.sample)? };
        other.sampler = Sampler::of_part(Arc::clone(&self.schema), self.sampler.seed(), piece.ceiling, part)?;
        self.merge(other)
    }
}

/// What the pieces of a survey give together.
#[derive(Debug)]
pub(crate) enum Merged {
    /// All that is to be known.
    Survey(Box<Survey>),
    /// Too few rows lie below the ceiling of the sample. The hash to take instead.
    Short(u64),
}

/// Merges the pieces of all partitions of a plan over `schema` to a survey.
pub(crate) async fn merge_pieces<'a>(
    bound_policy: Arc<BoundPolicy>,
    schema: SchemaRef,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    cell_rows: usize,
) -> Result<Merged> {
    let mut whole = Surveyor::new(&bound_policy, schema);
    pieces.into_iter().try_for_each(|piece| whole.add_piece(&bound_policy, piece))?;
    Ok(match whole.sampler.find_shortfall()? {
        Some((ceiling, found)) => Merged::Short(raise_ceiling(ceiling, found)),
        None => Merged::Survey(Box::new(whole.finish_on_thread(bound_policy, cell_rows).await?)),
    })
}

fn malformed_state(what: impl AsRef<str>) -> Error {
    Error::internal(format!("a part of the survey cannot be read: {}", what.as_ref()))
}

/// Names of the columns that carry hashes and counts.
const TALLY: [&str; 2] = ["__throng_hash", "__throng_count"];

fn write_sample(rows: &RecordBatch, hashes: &[u64], counts: &[u64]) -> Result<Vec<u8>> {
    let mut fields: Vec<Field> = rows.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    fields.extend(TALLY.map(|name| Field::new(name, DataType::UInt64, false)));
    let mut columns = crate::encode::compact_batch(rows)?.columns().to_vec();
    columns.extend([hashes, counts].map(|numbers| Arc::new(UInt64Array::from(numbers.to_vec())) as ArrayRef));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}

type Part = (RecordBatch, Vec<u64>, Vec<u64>);

fn read_part(bytes: &[u8]) -> Result<Option<Part>> {
    let Some(batch) = StreamReader::try_new(Cursor::new(bytes), None)?.next().transpose()? else { return Ok(None) };
    let width =
        batch.num_columns().checked_sub(TALLY.len()).ok_or_else(|| malformed_state("its sample has no hashes"))?;
    let numbers = |column: usize| {
        let column = batch.column(column).as_primitive_opt::<UInt64Type>();
        column.map(|column| column.values().to_vec()).ok_or_else(|| malformed_state("its sample has no hashes"))
    };
    let (hashes, counts) = (numbers(width)?, numbers(width + 1)?);
    Ok(Some((batch.project(&(0..width).collect::<Vec<_>>())?, hashes, counts)))
}

impl From<Collector> for Quasi {
    fn from(collector: Collector) -> Self {
        let (nulls, kind) = match collector {
            Collector::Line { min, max, whole, nulls, values } => {
                (nulls, Kind::Line(Line { min, max, whole, values: values.into_iter().collect() }))
            }
            Collector::Leaves { unknown, nulls, leaves } => {
                (nulls, Kind::Leaves(Leaves { unknown, leaves: leaves.into_iter().map(u32::from).collect() }))
            }
            Collector::Words { sketch, nulls } => {
                let (ceiling, kept) = sketch.into_parts();
                (nulls, Kind::Words(Words { ceiling, kept }))
            }
        };
        Self { nulls, kind: Some(kind) }
    }
}

impl TryFrom<Quasi> for Collector {
    type Error = Error;

    fn try_from(Quasi { nulls, kind }: Quasi) -> Result<Self> {
        Ok(match kind.ok_or_else(|| malformed_state("a column is missing"))? {
            Kind::Line(Line { min, max, whole, values }) => {
                Self::Line { min, max, whole, nulls, values: values.into_iter().collect() }
            }
            Kind::Leaves(Leaves { unknown, leaves }) => {
                let leaves =
                    leaves.into_iter().map(|leaf| leaf.try_into().map_err(|_| malformed_state("a leaf is unknown")));
                Self::Leaves { unknown, nulls, leaves: leaves.collect::<Result<_>>()? }
            }
            Kind::Words(Words { ceiling, kept }) => {
                Self::Words { sketch: WordSketch::from_parts(ceiling, kept), nulls }
            }
        })
    }
}

impl From<SensitiveCollector> for Sensitive {
    fn from(collector: SensitiveCollector) -> Self {
        let (ceiling, hashes) = collector.hashes.into_parts();
        let reference = collector.reference.map(|reference| {
            let (keys, counts) = reference.counts().map(|(key, count)| (key.to_vec(), count)).unzip();
            Counts { keys, counts }
        });
        Self { min: collector.min, max: collector.max, ceiling, hashes, reference }
    }
}

impl From<Sensitive> for SensitiveCollector {
    fn from(message: Sensitive) -> Self {
        Self {
            min: message.min,
            max: message.max,
            hashes: HashSketch::from_parts(message.ceiling, message.hashes),
            reference: message.reference.map(|counts| counts.keys.into_iter().zip(counts.counts).collect()),
        }
    }
}
