//! A survey as a message: what plans carry to other machines, and what a survey file holds.
//!
//! Written by hand, so that no compiler for protocol buffers is needed. Fields are only ever added.

use prost::{Message, Oneof};

use super::Survey;
use crate::encode::{ColumnStats, Reference, SensitiveDomain};
use crate::grouping::entry::Tuned;
use crate::grouping::split::{Branch, CellNode, CellTree};

/// A survey on its way. What is wrong with one that does not fit is reported as text.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SurveyMessage {
    #[prost(uint64, tag = "1")]
    rows: u64,
    #[prost(message, repeated, tag = "2")]
    stats: Vec<ColumnStatsMessage>,
    #[prost(message, repeated, tag = "3")]
    sensitive: Vec<DomainMessage>,
    #[prost(message, repeated, tag = "4")]
    cuts: Vec<CutMessage>,
    #[prost(double, optional, tag = "5")]
    delta: Option<f64>,
    #[prost(uint64, optional, tag = "6")]
    s: Option<u64>,
    /// How often each code occurs, per quasi-identifier; empty without dependencies.
    #[prost(message, repeated, tag = "7")]
    frequencies: Vec<CountsMessage>,
    #[prost(uint64, optional, tag = "8")]
    members: Option<u64>,
    /// Columns that stay together; empty when the policy does not leave them open.
    #[prost(message, repeated, tag = "9")]
    slices: Vec<NamesMessage>,
    #[prost(uint64, tag = "10")]
    dropped: u64,
}

#[derive(Clone, PartialEq, Message)]
struct NamesMessage {
    #[prost(string, repeated, tag = "1")]
    names: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct CountsMessage {
    #[prost(uint64, repeated, tag = "1")]
    counts: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct ColumnStatsMessage {
    #[prost(oneof = "ColumnStatsKind", tags = "1, 2, 3")]
    kind: Option<ColumnStatsKind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum ColumnStatsKind {
    #[prost(message, tag = "1")]
    Line(LineMessage),
    #[prost(message, tag = "2")]
    Leaves(LeavesMessage),
    #[prost(message, tag = "3")]
    Words(WordsMessage),
}

#[derive(Clone, PartialEq, Message)]
struct LineMessage {
    #[prost(double, tag = "1")]
    min: f64,
    #[prost(double, tag = "2")]
    max: f64,
    #[prost(bool, tag = "3")]
    whole: bool,
    #[prost(uint64, tag = "4")]
    nulls: u64,
    #[prost(double, repeated, tag = "5")]
    quantiles: Vec<f64>,
    #[prost(bool, tag = "6")]
    varied: bool,
}

#[derive(Clone, PartialEq, Message)]
struct LeavesMessage {
    #[prost(uint64, tag = "1")]
    unknown: u64,
    #[prost(uint64, tag = "2")]
    nulls: u64,
    #[prost(bool, tag = "3")]
    varied: bool,
}

#[derive(Clone, PartialEq, Message)]
struct WordsMessage {
    #[prost(string, repeated, tag = "1")]
    words: Vec<String>,
    #[prost(uint64, tag = "2")]
    distinct: u64,
    #[prost(uint64, tag = "3")]
    nulls: u64,
}

#[derive(Clone, PartialEq, Message)]
struct DomainMessage {
    #[prost(double, tag = "1")]
    min: f64,
    #[prost(double, tag = "2")]
    max: f64,
    #[prost(uint64, tag = "3")]
    distinct: u64,
    #[prost(message, optional, tag = "4")]
    reference: Option<ReferenceMessage>,
}

/// How often each value of a sensitive column occurs, by its key.
#[derive(Clone, PartialEq, Message)]
struct ReferenceMessage {
    #[prost(bytes = "vec", repeated, tag = "1")]
    keys: Vec<Vec<u8>>,
    #[prost(uint64, repeated, tag = "2")]
    counts: Vec<u64>,
}

/// A cut of the cell tree; the first one is the root. Its sides lead to the cut of that index, or, where that is
/// missing, to a cell.
#[derive(Clone, PartialEq, Message)]
struct CutMessage {
    #[prost(uint32, tag = "1")]
    axis: u32,
    #[prost(uint32, tag = "2")]
    at: u32,
    #[prost(message, optional, tag = "3")]
    left: Option<BranchMessage>,
    #[prost(message, optional, tag = "4")]
    right: Option<BranchMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct BranchMessage {
    #[prost(oneof = "BranchKind", tags = "1, 2")]
    kind: Option<BranchKind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum BranchKind {
    #[prost(uint32, tag = "1")]
    Node(u32),
    #[prost(uint32, tag = "2")]
    Cell(u32),
}

impl From<&Survey> for SurveyMessage {
    fn from(survey: &Survey) -> Self {
        Self {
            rows: survey.rows,
            stats: survey.stats.iter().map(ColumnStatsMessage::from).collect(),
            sensitive: survey.sensitive.iter().map(DomainMessage::from).collect(),
            cuts: survey.tree.nodes.iter().map(CutMessage::from).collect(),
            delta: survey.tuned.delta,
            s: survey.tuned.s.map(|s| s as u64),
            frequencies: survey.frequencies.iter().map(|counts| CountsMessage { counts: counts.clone() }).collect(),
            members: survey.members,
            dropped: survey.dropped,
            slices: survey.slices.iter().map(|names| NamesMessage { names: names.clone() }).collect(),
        }
    }
}

impl TryFrom<SurveyMessage> for Survey {
    type Error = &'static str;

    fn try_from(message: SurveyMessage) -> Result<Self, Self::Error> {
        let nodes: Vec<CellNode> = message.cuts.iter().map(CellNode::try_from).collect::<Result<_, _>>()?;
        // A tree is walked from parents to children, so a cut that leads back would never end.
        let forwards = nodes.iter().enumerate().all(|(index, node)| {
            [node.left, node.right].iter().all(|side| match side {
                Branch::Node(next) => (index + 1..nodes.len()).contains(&(*next as usize)),
                Branch::Cell(cell) => *cell as usize <= nodes.len(),
            })
        });
        if !forwards {
            return Err("its cells do not form a tree");
        }
        let root = if nodes.is_empty() { Branch::Cell(0) } else { Branch::Node(0) };
        Ok(Self {
            rows: message.rows,
            members: message.members,
            dropped: message.dropped,
            stats: message.stats.into_iter().map(ColumnStats::try_from).collect::<Result<_, _>>()?,
            sensitive: message.sensitive.iter().map(SensitiveDomain::from).collect(),
            tree: CellTree { root, nodes },
            tuned: Tuned { delta: message.delta, s: message.s.map(|s| s as usize) },
            frequencies: message.frequencies.into_iter().map(|message| message.counts).collect(),
            slices: message.slices.into_iter().map(|message| message.names).collect(),
        })
    }
}

impl From<&ColumnStats> for ColumnStatsMessage {
    fn from(stats: &ColumnStats) -> Self {
        let kind = match stats.clone() {
            ColumnStats::Line { min, max, whole, nulls, varied, quantiles } => {
                ColumnStatsKind::Line(LineMessage { min, max, whole, nulls, quantiles, varied })
            }
            ColumnStats::Leaves { unknown, nulls, varied } => {
                ColumnStatsKind::Leaves(LeavesMessage { unknown, nulls, varied })
            }
            ColumnStats::Words { words, distinct, nulls } => {
                ColumnStatsKind::Words(WordsMessage { words, distinct, nulls })
            }
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<ColumnStatsMessage> for ColumnStats {
    type Error = &'static str;

    fn try_from(message: ColumnStatsMessage) -> Result<Self, Self::Error> {
        Ok(match message.kind.ok_or("a column lacks its statistics")? {
            ColumnStatsKind::Line(LineMessage { min, max, whole, nulls, quantiles, varied }) => {
                Self::Line { min, max, whole, nulls, varied, quantiles }
            }
            ColumnStatsKind::Leaves(LeavesMessage { unknown, nulls, varied }) => {
                Self::Leaves { unknown, nulls, varied }
            }
            ColumnStatsKind::Words(WordsMessage { words, distinct, nulls }) => Self::Words { words, distinct, nulls },
        })
    }
}

impl From<&SensitiveDomain> for DomainMessage {
    fn from(domain: &SensitiveDomain) -> Self {
        let message = |reference: &Reference| {
            let (keys, counts) = reference.counts().map(|(key, count)| (key.to_vec(), count)).unzip();
            ReferenceMessage { keys, counts }
        };
        let reference = domain.reference.as_ref().map(message);
        Self { min: domain.min, max: domain.max, distinct: domain.distinct, reference }
    }
}

impl From<&DomainMessage> for SensitiveDomain {
    fn from(message: &DomainMessage) -> Self {
        let counts =
            |message: &ReferenceMessage| message.keys.iter().cloned().zip(message.counts.iter().copied()).collect();
        let reference = message.reference.as_ref().map(counts);
        Self { min: message.min, max: message.max, distinct: message.distinct, reference }
    }
}

impl From<&CellNode> for CutMessage {
    fn from(node: &CellNode) -> Self {
        let branch = |branch| {
            let kind = match branch {
                Branch::Node(node) => BranchKind::Node(node),
                Branch::Cell(cell) => BranchKind::Cell(cell),
            };
            Some(BranchMessage { kind: Some(kind) })
        };
        Self { axis: node.axis, at: u32::from(node.at), left: branch(node.left), right: branch(node.right) }
    }
}

impl TryFrom<&CutMessage> for CellNode {
    type Error = &'static str;

    fn try_from(message: &CutMessage) -> Result<Self, Self::Error> {
        let branch = |side: &Option<BranchMessage>| match side.as_ref().and_then(|side| side.kind.as_ref()) {
            Some(BranchKind::Node(node)) => Ok(Branch::Node(*node)),
            Some(BranchKind::Cell(cell)) => Ok(Branch::Cell(*cell)),
            None => Err("a cut lacks a side"),
        };
        let at = message.at.try_into().map_err(|_| "a cut lies outside its axis")?;
        Ok(Self { axis: message.axis, at, left: branch(&message.left)?, right: branch(&message.right)? })
    }
}
