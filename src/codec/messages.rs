//! The messages of the codec: parameters as the parts from which they can be rebuilt.
//!
//! Written by hand, so that no compiler for protocol buffers is needed. Fields are only ever added; a change that older
//! readers must not miss raises [`FORMAT`].

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion_proto::protobuf;
use prost::{Message, Oneof};
use zeroize::Zeroize;

use crate::binding::BoundPolicy;
use crate::encode::{ColumnStats, Reference, SensitiveDomain};
use crate::error::{Error, Result};
use crate::grouping::entry::Tuned;
use crate::grouping::split::{Branch, CellNode, CellTree};
use crate::operator::AnonymizeParams;
use crate::policy::Policy;
use crate::secret::RunKey;
use crate::survey::Survey;

/// Version of the messages.
pub(super) const FORMAT: u32 = 2;

/// Parameters of pass 2.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AnonymizeParamsMessage {
    #[prost(uint32, tag = "1")]
    format: u32,
    /// The policy, as the text of a job file.
    #[prost(string, tag = "2")]
    policy: String,
    /// Contents of its hierarchy files.
    #[prost(btree_map = "string, string", tag = "3")]
    files: BTreeMap<String, String>,
    /// Identity of the policy, so that nothing of it gets lost on the way.
    #[prost(string, tag = "4")]
    hash: String,
    /// Schema of the rows that are anonymised.
    #[prost(message, optional, tag = "5")]
    input: Option<protobuf::Schema>,
    #[prost(message, optional, tag = "6")]
    survey: Option<SurveyMessage>,
    /// Whether the operator is one of several that share the cells.
    #[prost(bool, tag = "7")]
    pub(super) part: bool,
    /// What every random choice of the run comes from.
    #[prost(bytes = "vec", tag = "8")]
    key: Vec<u8>,
}

/// The key is wiped where a message ends. Whoever frames messages has bytes of their own.
impl Drop for AnonymizeParamsMessage {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

#[derive(Clone, PartialEq, Message)]
struct SurveyMessage {
    #[prost(uint64, tag = "1")]
    rows: u64,
    #[prost(message, repeated, tag = "2")]
    facts: Vec<FactsMessage>,
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
struct FactsMessage {
    #[prost(oneof = "FactsKind", tags = "1, 2, 3")]
    kind: Option<FactsKind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum FactsKind {
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

impl TryFrom<&AnonymizeParams> for AnonymizeParamsMessage {
    type Error = Error;

    fn try_from(params: &AnonymizeParams) -> Result<Self> {
        let mut message = Self::try_from(params.bound_policy.as_ref())?;
        message.survey = Some(SurveyMessage::from(&params.survey));
        Ok(message)
    }
}

impl TryFrom<&BoundPolicy> for AnonymizeParamsMessage {
    type Error = Error;

    fn try_from(bound_policy: &BoundPolicy) -> Result<Self> {
        let policy = &bound_policy.policy;
        let input = protobuf::Schema::try_from(bound_policy.input.as_ref());
        Ok(Self {
            format: FORMAT,
            policy: policy.to_text()?,
            files: policy.files.clone(),
            hash: policy.hash.clone(),
            input: Some(input.map_err(|error| Error::internal(format!("a schema cannot be sent: {error}")))?),
            survey: None,
            part: false,
            key: bound_policy.key.to_wire(),
        })
    }
}

impl TryFrom<&AnonymizeParamsMessage> for BoundPolicy {
    type Error = Error;

    fn try_from(message: &AnonymizeParamsMessage) -> Result<Self> {
        if message.format != FORMAT {
            return Err(malformed_plan(format!(
                "it has format {}, but this version of throng reads format {FORMAT}; run the same version everywhere",
                message.format
            )));
        }
        let policy = Policy::reopen(&message.policy, &message.files)?;
        if policy.hash != message.hash {
            return Err(malformed_plan("its policy reads differently here; run the same version of throng everywhere"));
        }
        let input = message.input.as_ref().ok_or_else(|| malformed_plan("it lacks a schema"))?;
        let input = Schema::try_from(input).map_err(|error| malformed_plan(error.to_string()))?;
        let key = RunKey::from_wire(&message.key).ok_or_else(|| malformed_plan("it lacks the key of the run"))?;
        Self::bind_schema(Arc::new(policy), Arc::new(input), key)
    }
}

impl TryFrom<AnonymizeParamsMessage> for AnonymizeParams {
    type Error = Error;

    fn try_from(mut message: AnonymizeParamsMessage) -> Result<Self> {
        let bound_policy = BoundPolicy::try_from(&message)?;
        let survey = Survey::try_from(message.survey.take().ok_or_else(|| malformed_plan("it lacks a survey"))?)?;
        let (quasi, sensitive) = (bound_policy.quasi.len(), bound_policy.sensitive.len());
        let fits = survey.facts.len() == quasi && survey.sensitive.len() == sensitive;
        if !fits || survey.tree.nodes.iter().any(|cut| cut.axis as usize >= quasi) {
            return Err(malformed_plan("its survey is of other columns than its policy"));
        }
        Self::new(Arc::new(bound_policy), survey)
    }
}

/// An error about a plan that was received.
pub(super) fn malformed_plan(what: impl AsRef<str>) -> Error {
    Error::internal(format!("an anonymising plan cannot be read: {}", what.as_ref()))
}

impl From<&Survey> for SurveyMessage {
    fn from(survey: &Survey) -> Self {
        Self {
            rows: survey.rows,
            facts: survey.facts.iter().map(FactsMessage::from).collect(),
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
    type Error = Error;

    fn try_from(message: SurveyMessage) -> Result<Self> {
        let nodes: Vec<CellNode> = message.cuts.iter().map(CellNode::try_from).collect::<Result<_>>()?;
        // A tree is walked from parents to children, so a cut that leads back would never end.
        let forwards = nodes.iter().enumerate().all(|(index, node)| {
            [node.left, node.right].iter().all(|side| match side {
                Branch::Node(next) => (index + 1..nodes.len()).contains(&(*next as usize)),
                Branch::Cell(cell) => *cell as usize <= nodes.len(),
            })
        });
        if !forwards {
            return Err(malformed_plan("its cells do not form a tree"));
        }
        let root = if nodes.is_empty() { Branch::Cell(0) } else { Branch::Node(0) };
        Ok(Self {
            rows: message.rows,
            members: message.members,
            dropped: message.dropped,
            facts: message.facts.into_iter().map(ColumnStats::try_from).collect::<Result<_>>()?,
            sensitive: message.sensitive.iter().map(SensitiveDomain::from).collect(),
            tree: CellTree { root, nodes },
            tuned: Tuned { delta: message.delta, s: message.s.map(|s| s as usize) },
            frequencies: message.frequencies.into_iter().map(|message| message.counts).collect(),
            slices: message.slices.into_iter().map(|message| message.names).collect(),
        })
    }
}

impl From<&ColumnStats> for FactsMessage {
    fn from(facts: &ColumnStats) -> Self {
        let kind = match facts.clone() {
            ColumnStats::Line { min, max, whole, nulls, varied, quantiles } => {
                FactsKind::Line(LineMessage { min, max, whole, nulls, quantiles, varied })
            }
            ColumnStats::Leaves { unknown, nulls, varied } => {
                FactsKind::Leaves(LeavesMessage { unknown, nulls, varied })
            }
            ColumnStats::Words { words, distinct, nulls } => FactsKind::Words(WordsMessage { words, distinct, nulls }),
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<FactsMessage> for ColumnStats {
    type Error = Error;

    fn try_from(message: FactsMessage) -> Result<Self> {
        Ok(match message.kind.ok_or_else(|| malformed_plan("a column lacks its facts"))? {
            FactsKind::Line(LineMessage { min, max, whole, nulls, quantiles, varied }) => {
                Self::Line { min, max, whole, nulls, varied, quantiles }
            }
            FactsKind::Leaves(LeavesMessage { unknown, nulls, varied }) => Self::Leaves { unknown, nulls, varied },
            FactsKind::Words(WordsMessage { words, distinct, nulls }) => Self::Words { words, distinct, nulls },
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
    type Error = Error;

    fn try_from(message: &CutMessage) -> Result<Self> {
        let branch = |side: &Option<BranchMessage>| match side.as_ref().and_then(|side| side.kind.as_ref()) {
            Some(BranchKind::Node(node)) => Ok(Branch::Node(*node)),
            Some(BranchKind::Cell(cell)) => Ok(Branch::Cell(*cell)),
            None => Err(malformed_plan("a cut lacks a side")),
        };
        let at = message.at.try_into().map_err(|_| malformed_plan("a cut lies outside its axis"))?;
        Ok(Self { axis: message.axis, at, left: branch(&message.left)?, right: branch(&message.right)? })
    }
}
