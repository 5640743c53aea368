//! Rows that never end: they gather in windows, and whole classes leave.
//!
//! ```text
//! AnonymizeWindowsExec               one window and the rows that wait in memory at a time
//!   CoalescePartitionsExec           inserted by DataFusion, because the node wants one partition
//!     <input, bounded or not>
//! ```
//!
//! A window is a small table of its own. Its rows, and those that wait from earlier windows, go the way of a cell: encoded,
//! grouped, settled, recoded. What finds no class that meets the rules waits for the next window; what has waited for as
//! many windows as it may is settled into the best class there is, or suppressed. Every row is published once or counted.
//!
//! Every class meets the rules by itself, so classes of two windows with the same label meet them together, too: rules that
//! this does not hold for are refused by the policy.

mod book;
mod exec;
mod repeats;
mod stream;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use exec::AnonymizeWindowsExec;

use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::policy::{Constant, Window};
use crate::survey::Survey;
use crate::survey::file::decode_survey;
use crate::survey::window::ensure_domains;

/// What every window is treated by. Immutable.
#[derive(Debug)]
pub(super) struct Plan {
    /// The window of the policy.
    window: Window,
    /// The time after which a window is closed.
    time: Option<Duration>,
    /// Places of the columns that tell subjects apart.
    subject: Vec<usize>,
    /// What rows must meet that may wait no longer.
    plain: Arc<BoundPolicy>,
    /// What all others must meet: the same, and `window.max-loss`.
    demanding: Arc<BoundPolicy>,
    /// What is known of the columns beforehand.
    known: Option<Survey>,
}

impl Plan {
    /// Prepares the windows of a bound policy; refuses columns that nothing is known of.
    pub(super) fn new(bound_policy: &BoundPolicy) -> Result<Self> {
        let policy = &bound_policy.policy;
        let Some(window) = policy.window.clone() else { return Err(Error::internal("the policy has no window")) };
        let known = policy.survey.as_ref().map(|bytes| decode_survey(&bytes.0, bound_policy));
        let known = known.transpose().map_err(|error| error.context("window.survey"))?;
        ensure_domains(bound_policy, known.is_some())?;
        let place = |name: &String| {
            let missing = || Error::job(format!("window.subject: there is no column `{name}`"));
            bound_policy.input.index_of(name).map_err(|_| missing())
        };
        let subject = window.subject.iter().map(place).collect::<Result<Vec<_>>>()?;
        let time = window.duration().map_err(|message| Error::job(format!("window.time: {message}")))?;
        let mut plain = bound_policy.clone();
        // One value in all rows of a window is no sign of a broken source.
        plain.quasi.iter_mut().for_each(|column| column.constant = Constant::Allow);
        let mut demanding = plain.clone();
        if window.max_loss.is_some() {
            let mut policy = policy.as_ref().clone();
            policy.privacy.max_loss = window.max_loss;
            demanding.policy = Arc::new(policy);
        }
        Ok(Self { window, time, subject, plain: Arc::new(plain), demanding: Arc::new(demanding), known })
    }

    /// One line about the windows, for plans.
    fn summary(&self) -> String {
        let mut text = format!("window={}", self.window.row_count());
        if let Some(time) = &self.window.time {
            text += &format!("|{time}");
        }
        text += &format!(", max-wait={}", self.window.max_wait);
        if let Some(loss) = self.window.max_loss {
            text += &format!(", window-max-loss={loss}");
        }
        if !self.window.subject.is_empty() {
            text += &format!(", subject=[{}]", self.window.subject.join(", "));
        }
        text
    }
}
