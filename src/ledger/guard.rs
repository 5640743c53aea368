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
        manifest.warnings.push(independence_warning(earlier));
    }
    Ok(())
}

/// What readers of an independent release must know.
fn independence_warning(earlier: u64) -> String {
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
pub(crate) fn race_error(sink: &Location) -> Error {
    Error::retry(format!(
        "another run has published into `{}` at the same moment; this one has withdrawn its release, run again",
        sink.name
    ))
}

/// The error of a run that another one of the same series was faster than.
pub(crate) fn overtaken_error(sink: &Location) -> Error {
    Error::retry(format!(
        "another run has published the next release of the series into `{}` at the same moment; nothing of this one stays, \
         run again",
        sink.name
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use object_store::memory::InMemory;
    use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

    use super::super::manifest::tests::small_manifest;
    use super::*;
    use crate::error::ErrorKind;
    use crate::policy::Job;
    use crate::storage::{StoreOptions, Stores};

    /// A sink that holds so many releases.
    async fn sink(releases: usize) -> Location {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let stores = Stores::default().with("s3://lake", store).unwrap();
        let sink = stores.open(Path::new("."), "s3://lake/out", &StoreOptions::default()).unwrap();
        for number in 0..releases {
            let path = sink.at(&format!("_manifest/run-{number}.json"));
            sink.store.put(&path, PutPayload::from_static(b"{}")).await.unwrap();
        }
        sink
    }

    fn declared(releases: &str) -> Sink {
        let text = format!("version = 1\nsource.url = \"a\"\n[sink]\nurl = \"b\"\n{releases}\n[privacy]\nk = 2\n");
        Job::parse(&text, Path::new("job.toml")).unwrap().sink
    }

    #[tokio::test]
    async fn a_second_release_needs_a_word_of_its_owner() {
        let (alone, independent) = (declared(""), declared("releases = \"independent\""));
        assert!(ensure_first_release(&Ledger::Files, &sink(0).await, &alone).await.is_ok());
        assert!(ensure_first_release(&Ledger::Files, &sink(2).await, &independent).await.is_ok());
        for (releases, words) in [(1, "holds a release of another run"), (2, "holds 2 releases of another run")] {
            let error = ensure_first_release(&Ledger::Files, &sink(releases).await, &alone).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict);
            assert!(error.message().starts_with(&format!("the sink `s3://lake/out` {words}")), "{error}");
            assert!(["[series]", "releases = \"independent\""].iter().all(|way| error.message().contains(way)));
        }
    }

    /// The first of independent releases says that there is none before it; the next ones warn their readers.
    #[tokio::test]
    async fn independent_releases_count_those_before_them() {
        let independent = declared("releases = \"independent\"");
        for (releases, warned) in [
            (0, None),
            (1, Some("1 earlier release stands in the sink, independent of this one")),
            (3, Some("3 earlier releases stand in the sink, independent of this one")),
        ] {
            let mut manifest = small_manifest(9, 9);
            record_earlier(&Ledger::Files, &sink(releases).await, &independent, &mut manifest).await.unwrap();
            assert_eq!(manifest.earlier_releases, Some(releases as u64));
            assert_eq!(manifest.warnings.first().map(|text| text.split(':').next().unwrap()), warned);
        }
        let mut manifest = small_manifest(9, 9);
        record_earlier(&Ledger::Files, &sink(3).await, &declared(""), &mut manifest).await.unwrap();
        assert_eq!((manifest.earlier_releases, manifest.warnings.len()), (None, 0), "nothing was declared");
    }

    #[tokio::test]
    async fn whoever_has_lost_a_race_may_run_again() {
        assert!(race_error(&sink(0).await).is_retryable());
        assert!(!second_release(&sink(0).await, 1).is_retryable());
    }
}
