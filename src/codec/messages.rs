//! The messages of the codec: parameters as the parts from which they can be rebuilt.
//!
//! Written by hand, so that no compiler for protocol buffers is needed. Fields are only ever added; a change that older
//! readers must not miss raises [`FORMAT`].

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion_proto::protobuf;
use prost::Message;
use zeroize::Zeroize;

use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::operator::AnonymizeParams;
use crate::policy::Policy;
use crate::secret::RunKey;
use crate::survey::{Survey, SurveyMessage};

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
        let survey = message.survey.take().ok_or_else(|| malformed_plan("it lacks a survey"))?;
        let survey = Survey::try_from(survey).map_err(malformed_plan)?;
        let (quasi, sensitive) = (bound_policy.quasi.len(), bound_policy.sensitive.len());
        let fits = survey.stats.len() == quasi && survey.sensitive.len() == sensitive;
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
