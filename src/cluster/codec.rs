//! Encodes our nodes beside Ballista's own. A leading byte says whose a node is.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::not_impl_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use super::guard::{Border, GuardExec};
use super::survey::SurveyExec;
use crate::binding::BoundPolicy;
use crate::codec::{AnonymizeCodec, decode_bound_policy, encode_bound_policy};
use crate::error::Error;
use crate::operator::{ASSIGN_CELL, AnonymizeExec};
use crate::storage::Uploads;
use crate::verify::{Sent, is_function, receive_aggregate, receive_function, receive_node, send_function, send_node};
use crate::write::{CollapseExec, PublishedOrder, Target, WriteExec};

/// Writes and reads every node of our plans.
#[derive(Debug, Default)]
pub(crate) struct ClusterCodec {
    ballista: BallistaPhysicalExtensionCodec,
    anonymize: AnonymizeCodec,
}

/// The owner of a node. Numbers are only ever added.
const BALLISTA: u8 = 0;
const ANONYMIZE: u8 = 1;
const SURVEY: u8 = 2;
const WRITE: u8 = 3;
const GUARD: u8 = 4;
const COLLAPSE: u8 = 5;
const VERIFY: u8 = 6;

/// Writes a part of a verification: the length of its bytes, these, and the policy if it needs one.
fn write_part(sent: Sent<'_>, buffer: &mut Vec<u8>) -> Result<()> {
    buffer.extend((sent.bytes.len() as u32).to_le_bytes());
    buffer.extend(sent.bytes);
    sent.bound_policy.map_or(Ok(()), |bound_policy| encode_bound_policy(bound_policy, buffer))
}

/// Reads what [`write_part`] has written.
fn split_part(buffer: &[u8]) -> Result<(&[u8], Option<BoundPolicy>)> {
    let parts = buffer.split_first_chunk().and_then(|(length, rest)| {
        let length = u32::from_le_bytes(*length) as usize;
        rest.split_at_checked(length)
    });
    let (bytes, policy) =
        parts.ok_or_else(|| malformed_plan("a part of a verification is truncated").into_datafusion())?;
    let bound_policy = if policy.is_empty() { None } else { Some(decode_bound_policy(policy)?) };
    Ok((bytes, bound_policy))
}

fn malformed_plan(what: impl std::fmt::Display) -> Error {
    Error::internal(format!("a plan cannot be read: {what}; run the same version of throng everywhere"))
}

fn single_input(inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Arc<dyn ExecutionPlan>> {
    inputs.first().cloned().ok_or_else(|| malformed_plan("a node has no input").into_datafusion())
}

impl PhysicalExtensionCodec for ClusterCodec {
    fn try_decode(
        &self,
        buffer: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some((kind, buffer)) = buffer.split_first() else {
            return Err(malformed_plan("a node is empty").into_datafusion());
        };
        match *kind {
            BALLISTA => self.ballista.try_decode(buffer, inputs, context, converter),
            ANONYMIZE => PhysicalExtensionCodec::try_decode(&self.anonymize, buffer, inputs, context, converter),
            SURVEY => {
                let Some((ceiling, buffer)) = buffer.split_first_chunk() else {
                    return Err(malformed_plan("a survey has no ceiling").into_datafusion());
                };
                let bound_policy = Arc::new(decode_bound_policy(buffer)?);
                Ok(Arc::new(SurveyExec::new(single_input(inputs)?, bound_policy, u64::from_le_bytes(*ceiling))))
            }
            WRITE => {
                let target: Target =
                    serde_json::from_slice(buffer).map_err(|error| malformed_plan(error).into_datafusion())?;
                Ok(Arc::new(WriteExec::new(single_input(inputs)?, target, Uploads::default())))
            }
            GUARD => {
                let border = if buffer.is_empty() { Border::End } else { Border::Start };
                Ok(Arc::new(GuardExec::new(single_input(inputs)?, border)))
            }
            COLLAPSE => {
                let order: PublishedOrder =
                    serde_json::from_slice(buffer).map_err(|error| malformed_plan(error).into_datafusion())?;
                let collapse = CollapseExec::try_new(single_input(inputs)?, order).map_err(Error::into_datafusion)?;
                Ok(Arc::new(collapse))
            }
            VERIFY => {
                let (bytes, bound_policy) = split_part(buffer)?;
                receive_node(bytes, single_input(inputs)?, bound_policy).map_err(Error::into_datafusion)
            }
            other => Err(malformed_plan(format!("node {other} is not known")).into_datafusion()),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buffer: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if node.is::<AnonymizeExec>() {
            buffer.push(ANONYMIZE);
            PhysicalExtensionCodec::try_encode(&self.anonymize, node, buffer, converter)
        } else if let Some(survey) = node.downcast_ref::<SurveyExec>() {
            buffer.push(SURVEY);
            buffer.extend(survey.ceiling().to_le_bytes());
            encode_bound_policy(survey.bound_policy(), buffer)
        } else if let Some(write) = node.downcast_ref::<WriteExec>() {
            buffer.push(WRITE);
            serde_json::to_writer(buffer, write.target()).map_err(|error| malformed_plan(error).into_datafusion())
        } else if let Some(collapse) = node.downcast_ref::<CollapseExec>() {
            buffer.push(COLLAPSE);
            serde_json::to_writer(buffer, collapse.order()).map_err(|error| malformed_plan(error).into_datafusion())
        } else if let Some(sent) = send_node(&node) {
            buffer.push(VERIFY);
            write_part(sent.map_err(Error::into_datafusion)?, buffer)
        } else if let Some(guard) = node.downcast_ref::<GuardExec>() {
            buffer.push(GUARD);
            if guard.border() == Border::Start {
                buffer.push(1);
            }
            Ok(())
        } else {
            buffer.push(BALLISTA);
            let name = node.name().to_owned();
            match self.ballista.try_encode(node, buffer, converter) {
                Err(_) => not_impl_err!(
                    "a part of the source ({name}) cannot be sent to a cluster; run this job on one machine"
                ),
                done => done,
            }
        }
    }

    fn try_decode_udf(&self, name: &str, buffer: &[u8]) -> Result<Arc<ScalarUDF>> {
        match name {
            ASSIGN_CELL => self.anonymize.try_decode_udf(name, buffer),
            _ if is_function(name) => {
                let (bytes, bound_policy) = split_part(buffer)?;
                receive_function(bytes, bound_policy).map(Arc::new).map_err(Error::into_datafusion)
            }
            _ => self.ballista.try_decode_udf(name, buffer),
        }
    }

    fn try_encode_udf(&self, function: &ScalarUDF, buffer: &mut Vec<u8>) -> Result<()> {
        if let Some(sent) = send_function(function) {
            return write_part(sent.map_err(Error::into_datafusion)?, buffer);
        }
        // It rejects pseudonyms, and leaves functions alone that every session knows by name.
        self.anonymize.try_encode_udf(function, buffer)
    }

    fn try_decode_udaf(&self, name: &str, buffer: &[u8]) -> Result<Arc<AggregateUDF>> {
        match receive_aggregate(name) {
            Some(function) => Ok(Arc::new(function)),
            None => self.ballista.try_decode_udaf(name, buffer),
        }
    }
}
