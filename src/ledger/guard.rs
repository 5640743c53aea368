//! Guards against two releases of the same people: a second release into a sink is rejected unless its owner has declared
//! releases independent.
//!
//! Each release may keep k and every rule; together they do not. A person who is one of ten in each of two releases may be
//! the only one who fits both.

use super::Ledger;
use super::manifest::Manifest;
use crate::error::{Error, Result};
use crate::policy::Sink;
use crate::storage::Location;

/// Rejects a sink that holds a release of another run, unless its releases are declared independent. For a run that has
/// not been released itself.
pub(crate) async fn ensure_first_release(ledger: &Ledger, sink: &Location, declared: &Sink) -> Result<()> {
    if declared.is_independent() {
        return Ok(());
    }
    match ledger.count_others(sink, "").await? {
        0 => Ok(()),
        earlier => Err(second_release(sink, earlier)),
    }
}

/// Records in the manifest of an independent release how many there are before it, and what that means.
pub(crate) async fn record_earlier(
    ledger: &Ledger,
    sink: &Location,
    declared: &Sink,
    manifest: &mut Manifest,
) -> Result<()> {
    if !declared.is_independent() {
        return Ok(());
    }
    let earlier = ledger.count_others(sink, &manifest.run).await?;
    manifest.earlier_releases = Some(earlier);
    if earlier > 0 {
        manifest.warnings.push(warning(earlier));
    }
    Ok(())
}

/// What readers of an independent release must know.
fn warning(earlier: u64) -> String {
    let (releases, stand) = if earlier == 1 { ("release", "stands") } else { ("releases", "stand") };
    format!(
        "{earlier} earlier {releases} {stand} in the sink, independent of this one: k and the rules hold for each alone, and \
         not for somebody who compares them"
    )
}

/// The error of a second release, with the alternatives.
pub(crate) fn second_release(sink: &Location, earlier: u64) -> Error {
    let holds = if earlier == 1 { "a release".to_owned() } else { format!("{earlier} releases") };
    Error::conflict(format!(
        "the sink `{}` holds {holds} of another run already; whoever compares releases of the same people learns more about them \
         than k and the rules allow; add [series] to the job and publish into an empty sink, so that releases stay safe \
         together, or set releases = \"independent\" in [sink] if no people are in both or you accept that",
        sink.name
    ))
}

/// The error of a run whose release appeared at the same moment as another's.
pub(crate) fn raced(sink: &Location) -> Error {
    Error::retry(format!(
        "another run has published into `{}` at the same moment; this one has withdrawn its release, run again",
        sink.name
    ))
}

/// The error of a run that another one of the same series was faster than.
pub(crate) fn overtaken(sink: &Location) -> Error {
    Error::retry(format!(
        "another run has published the next release of the series into `{}` at the same moment; nothing of this one stays, \
         run again",
        sink.name
    ))
}
