//! Anonymising plans on the wire: the node, the operator and `assign_cell`, each with its parameters inside.
//!
//! Only a surveyed plan can be sent: the survey must see the whole table, and a piece of a plan on another machine does
//! not. A receiver binds the same policy and survey to the same schema and so makes the same parameters.

mod messages;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{TableReference, not_impl_err};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Extension, LogicalPlan, ScalarUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use prost::Message;

#[cfg(feature = "cluster")]
use crate::binding::BoundPolicy;
use crate::error::Error;
use crate::extension::AnonymizedTable;
use crate::operator::assign_cell::{ASSIGN_CELL, AssignCell};
use crate::operator::{Anonymize, AnonymizeExec, AnonymizeParams};
use crate::recode::identifiers::PSEUDONYM;
use messages::{AnonymizeParamsMessage, malformed_plan};

/// Writes and reads `Anonymize` and `AnonymizeExec`.
///
/// It handles nothing else: compose it with the codecs of the other nodes of a plan.
#[derive(Debug, Clone, Default)]
pub struct AnonymizeCodec;

fn encode_params(params: &AnonymizeParams, part: bool, buffer: &mut Vec<u8>) -> Result<()> {
    let mut message = AnonymizeParamsMessage::try_from(params).map_err(Error::into_datafusion)?;
    message.part = part;
    write_message(&message, buffer)
}

/// Appends a message to a buffer that has room for all of it: one that grows leaves copies of the key behind.
fn write_message(message: &AnonymizeParamsMessage, buffer: &mut Vec<u8>) -> Result<()> {
    buffer.reserve(message.encoded_len());
    message.encode(buffer).map_err(|error| malformed_plan(error.to_string()).into_datafusion())
}

fn decode_params(buffer: &[u8]) -> Result<Arc<AnonymizeParams>> {
    AnonymizeParams::try_from(read_message(buffer)?).map(Arc::new).map_err(Error::into_datafusion)
}

fn read_message(buffer: &[u8]) -> Result<AnonymizeParamsMessage> {
    AnonymizeParamsMessage::decode(buffer).map_err(|error| malformed_plan(error.to_string()).into_datafusion())
}

/// Writes what happens to every column, for nodes that need no more.
#[cfg(feature = "cluster")]
pub(crate) fn encode_bound_policy(bound_policy: &BoundPolicy, buffer: &mut Vec<u8>) -> Result<()> {
    let message = AnonymizeParamsMessage::try_from(bound_policy).map_err(Error::into_datafusion)?;
    write_message(&message, buffer)
}

/// Reads what [`encode_bound_policy`] has written.
#[cfg(feature = "cluster")]
pub(crate) fn decode_bound_policy(buffer: &[u8]) -> Result<BoundPolicy> {
    BoundPolicy::try_from(&read_message(buffer)?).map_err(Error::into_datafusion)
}

fn ensure_surveyed(params: Option<&Arc<AnonymizeParams>>) -> Result<&Arc<AnonymizeParams>> {
    let unsurveyed = || Error::internal("an anonymising plan can only be sent once its input has been surveyed");
    params.ok_or_else(|| unsurveyed().into_datafusion())
}

fn single_input<T: Clone>(inputs: &[T]) -> Result<T> {
    inputs.first().cloned().ok_or_else(|| malformed_plan("it has no input").into_datafusion())
}

impl LogicalExtensionCodec for AnonymizeCodec {
    fn try_decode(&self, buffer: &[u8], inputs: &[LogicalPlan], _context: &TaskContext) -> Result<Extension> {
        Ok(Extension { node: Arc::new(Anonymize::surveyed(single_input(inputs)?, decode_params(buffer)?)?) })
    }

    fn try_encode(&self, node: &Extension, buffer: &mut Vec<u8>) -> Result<()> {
        match node.node.as_any().downcast_ref::<Anonymize>() {
            Some(node) => encode_params(ensure_surveyed(node.params())?, false, buffer),
            None => not_impl_err!("AnonymizeCodec cannot write {}", node.node.name()),
        }
    }

    fn try_decode_table_provider(
        &self,
        _buffer: &[u8],
        table: &TableReference,
        _schema: SchemaRef,
        _context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        not_impl_err!("AnonymizeCodec cannot read the table {table}")
    }

    fn try_encode_table_provider(
        &self,
        table: &TableReference,
        provider: Arc<dyn TableProvider>,
        _buffer: &mut Vec<u8>,
    ) -> Result<()> {
        let provider: &dyn Any = provider.as_ref();
        if provider.is::<AnonymizedTable>() {
            ensure_surveyed(None)?;
        }
        not_impl_err!("AnonymizeCodec cannot write the table {table}")
    }
}

impl PhysicalExtensionCodec for AnonymizeCodec {
    fn try_decode(
        &self,
        buffer: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        _context: &TaskContext,
        _converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let message = read_message(buffer)?;
        let whole = !message.part;
        let params = AnonymizeParams::try_from(message).map(Arc::new).map_err(Error::into_datafusion)?;
        Ok(Arc::new(AnonymizeExec::surveyed(single_input(inputs)?, params, whole)))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buffer: &mut Vec<u8>,
        _converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match node.downcast_ref::<AnonymizeExec>() {
            Some(node) => encode_params(ensure_surveyed(node.params())?, !node.is_whole(), buffer),
            None => not_impl_err!("AnonymizeCodec cannot write {}", node.name()),
        }
    }

    fn try_decode_udf(&self, name: &str, buffer: &[u8]) -> Result<Arc<ScalarUDF>> {
        match name {
            ASSIGN_CELL => Ok(Arc::new(AssignCell::surveyed(decode_params(buffer)?).into())),
            _ => not_impl_err!("AnonymizeCodec cannot read the function {name}"),
        }
    }

    fn try_encode_udf(&self, function: &ScalarUDF, buffer: &mut Vec<u8>) -> Result<()> {
        match (function.inner().as_ref() as &dyn Any).downcast_ref::<AssignCell>() {
            Some(function) => encode_params(ensure_surveyed(function.params())?, false, buffer),
            None if function.name() == PSEUDONYM => {
                not_impl_err!("a plan that makes pseudonyms cannot be sent: the key stays where it is")
            }
            // Functions that a session knows by name need no message.
            None => Ok(()),
        }
    }
}
