//! The functions and nodes of a verification on the wire, so that executors can run its plans.
//!
//! What a part of a plan needs beside its own bytes is the policy; whoever sends it writes that as it writes any other.

use std::any::Any;
use std::sync::Arc;

use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::physical_plan::ExecutionPlan;
use serde::{Deserialize, Serialize};

use super::fold::{Fold, FoldExec};
use super::loss::{Domain, PUBLISHED_LOSS, PublishedLoss};
use super::order_exec::OrderExec;
use super::questions::{AskedOf, Questions, rank_digits};
use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::published::exact::{ALIKE, Alike, CONTENT, Content, EXACT_KEY, Floats, Key, Keys, Leaves, Ranks};
use crate::published::key_counts::{COUNT_KEYS, tally_function};

/// A part of a plan as it is sent.
#[derive(Debug)]
pub(crate) struct Sent<'a> {
    /// What it is made from again.
    pub(crate) bytes: Vec<u8>,
    /// The policy that it needs with that.
    pub(crate) bound_policy: Option<&'a BoundPolicy>,
}

/// A function.
#[derive(Serialize, Deserialize)]
enum FunctionMessage {
    Alike {
        bits: bool,
    },
    Content,
    Line {
        column: String,
    },
    Bytes {
        column: String,
    },
    Leaves {
        column: String,
        labels: Vec<String>,
    },
    Ranks {
        column: String,
        #[serde(with = "rank_digits")]
        ranks: Option<Arc<Ranks>>,
    },
    Loss {
        domains: Vec<Domain>,
    },
}

/// A node.
#[derive(Serialize, Deserialize)]
enum NodeMessage {
    Classes(AskedOf),
    People,
    Order(Vec<String>),
}

fn pack_message<'a>(message: &impl Serialize, bound_policy: Option<&'a BoundPolicy>) -> Result<Sent<'a>> {
    let bytes = serde_json::to_vec(message).map_err(|error| Error::internal(error.to_string()))?;
    Ok(Sent { bytes, bound_policy })
}

fn malformed_message(what: impl std::fmt::Display) -> Error {
    Error::internal(format!(
        "a plan of a verification cannot be read: {what}; run the same version of throng everywhere"
    ))
}

fn ensure_policy(bound_policy: Option<BoundPolicy>) -> Result<Arc<BoundPolicy>> {
    bound_policy.map(Arc::new).ok_or_else(|| malformed_message("it lacks its policy"))
}

/// A function of a verification as it is sent; `None` for any other function.
pub(crate) fn send_function(function: &ScalarUDF) -> Option<Result<Sent<'_>>> {
    let inner = function.inner().as_ref() as &dyn Any;
    if let Some(alike) = inner.downcast_ref::<Alike>() {
        return Some(pack_message(&FunctionMessage::Alike { bits: alike.floats == Floats::Bits }, None));
    }
    if inner.downcast_ref::<Content>().is_some() {
        return Some(pack_message(&FunctionMessage::Content, None));
    }
    if let Some(loss) = inner.downcast_ref::<PublishedLoss>() {
        return Some(pack_message(
            &FunctionMessage::Loss { domains: loss.domains().to_vec() },
            Some(loss.bound_policy()),
        ));
    }
    let key = inner.downcast_ref::<Key>()?;
    let column = key.column.clone();
    let message = match &key.keys {
        Keys::Line => FunctionMessage::Line { column },
        Keys::Bytes => FunctionMessage::Bytes { column },
        Keys::Leaves(leaves) => FunctionMessage::Leaves { column, labels: leaves.labels().to_vec() },
        Keys::Ranks(ranks) => FunctionMessage::Ranks { column, ranks: Some(Arc::clone(ranks)) },
    };
    Some(pack_message(&message, None))
}

/// Whether a function of this name is one of a verification.
pub(crate) fn is_function(name: &str) -> bool {
    [ALIKE, CONTENT, EXACT_KEY, PUBLISHED_LOSS].contains(&name)
}

/// The function that was sent.
pub(crate) fn receive_function(bytes: &[u8], bound_policy: Option<BoundPolicy>) -> Result<ScalarUDF> {
    Ok(match serde_json::from_slice(bytes).map_err(malformed_message)? {
        FunctionMessage::Alike { bits } => Alike::new(if bits { Floats::Bits } else { Floats::Read }).into(),
        FunctionMessage::Content => Content::default().into(),
        FunctionMessage::Line { column } => Key::new(Keys::Line, column).into(),
        FunctionMessage::Bytes { column } => Key::new(Keys::Bytes, column).into(),
        FunctionMessage::Leaves { column, labels } => {
            Key::new(Keys::Leaves(Arc::new(Leaves::new(labels))), column).into()
        }
        FunctionMessage::Ranks { column, ranks } => {
            let ranks = ranks.ok_or_else(|| malformed_message("it lacks its ranks"))?;
            Key::new(Keys::Ranks(ranks), column).into()
        }
        FunctionMessage::Loss { domains } => PublishedLoss::new(ensure_policy(bound_policy)?, domains).into(),
    })
}

/// The aggregate function of a verification that has this name.
pub(crate) fn receive_aggregate(name: &str) -> Option<AggregateUDF> {
    (name == COUNT_KEYS).then(tally_function)
}

/// A node of a verification as it is sent; `None` for any other node.
pub(crate) fn send_node(node: &Arc<dyn ExecutionPlan>) -> Option<Result<Sent<'_>>> {
    if let Some(order) = node.downcast_ref::<OrderExec>() {
        return Some(pack_message(&NodeMessage::Order(order.class_columns().to_vec()), None));
    }
    match node.downcast_ref::<FoldExec>()?.fold() {
        Fold::Classes(questions) => {
            Some(pack_message(&NodeMessage::Classes(questions.asked_of().clone()), Some(questions.bound_policy())))
        }
        Fold::People => Some(pack_message(&NodeMessage::People, None)),
    }
}

/// The node that was sent.
pub(crate) fn receive_node(
    bytes: &[u8],
    input: Arc<dyn ExecutionPlan>,
    bound_policy: Option<BoundPolicy>,
) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(match serde_json::from_slice(bytes).map_err(malformed_message)? {
        NodeMessage::Classes(asked_of) => {
            let questions = Questions::new(ensure_policy(bound_policy)?, asked_of)?;
            Arc::new(FoldExec::new(input, Fold::Classes(Arc::new(questions))))
        }
        NodeMessage::People => Arc::new(FoldExec::new(input, Fold::People)),
        NodeMessage::Order(class_columns) => Arc::new(OrderExec::new(input, class_columns)),
    })
}
