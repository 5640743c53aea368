//! A release that has been made: verified again, and attacked.

use std::collections::BTreeMap;
use std::path::Path as LocalPath;

use datafusion::prelude::DataFrame;
use object_store::ObjectStoreExt;

use super::{Opened, Run, reads};
use crate::attack::overlap::Effort;
use crate::error::{Error, Result};
use crate::job::Form;
use crate::measure::Classes;
use crate::privacy::Figures;
use crate::release::anatomy::Tables;
use crate::release::attack::{self, Attack, Membership, Risks};
use crate::release::buckets::{self, Buckets, Shown};
use crate::release::commit;
use crate::release::inference;
use crate::release::judge::{Look, classes_beside};
use crate::release::ledger;
use crate::release::location::Location;
use crate::release::manifest::{Manifest, OutputFile};
use crate::release::presence;
use crate::release::source::Source;
use crate::release::verify::{self, Finding};

impl Run {
    /// The newest release of the job's sink, checked against its manifest, the policy and the source.
    pub async fn verify_latest(&self, release: Option<&str>) -> Result<Verified> {
        let sink = self.sink()?;
        let manifest = find_release(&sink, release).await?;
        let (classes, mut findings) = verify::verify_release(&self.context, &sink, &manifest).await?;
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let Opened { treatment, public, rows, .. } = self.open(&source).await?;
        let present = existing(&sink, &manifest.files).await?;
        // Files that are gone or cannot be read have been found to be.
        if present.is_empty() || classes.rows() == 0 && !findings.is_empty() {
            return Ok(Verified { manifest, classes, findings, attained: BTreeMap::new() });
        }
        // What the files do not hold any more has been found missing.
        let (published, _) =
            verify::readable(&self.context, &sink, &present, manifest.form(), Some(&treatment.output)).await?;
        if manifest.policy != self.policy.hash {
            findings.push(Finding {
                rule: "policy".into(),
                count: 1,
                message: "the release was made under another policy than this job's".into(),
            });
        }
        let slices = treatment.slices(&manifest.slices);
        let found =
            verify::verify_rows(&published, &treatment, &slices, None, manifest.rows, Look::All, &|_| {}).await?;
        let known: Vec<Finding> = findings.clone();
        findings.extend(found.findings.into_iter().filter(|finding| !known.contains(finding)));
        if let Some(chased) = inference::chase(&published, &treatment).await? {
            findings.extend(inference::judge(&inference::report(&chased, &treatment), &treatment));
        }
        if treatment.person.is_some() && manifest.verification.people.is_none() {
            let message = "nobody has counted the people of this release".to_owned();
            findings.push(Finding { rule: "person".into(), count: 1, message });
        }
        if let Some(public) = &public {
            findings.extend(presence::verify(&published, public, &self.context, &treatment).await?.0);
        }
        if reads(&manifest, &source) {
            let source = DataFrame::new(self.context.state(), rows);
            let suppressed = manifest.suppressed;
            findings.extend(
                match (Tables::of(&self.context, &sink, &present, manifest.form()).await?, manifest.form()) {
                    (Some(tables), Form::Anatomy) => tables.check_source(&source, &treatment, suppressed).await?,
                    (None, Form::Generalise) => {
                        verify::verify_against_source(&published, &source, &treatment, suppressed).await?
                    }
                    (tables, _) => {
                        let shown = tables.map_or_else(|| Shown::One(published.clone()), Shown::Two);
                        let buckets = Buckets::read(&shown, &treatment, &slices, buckets::Look::All, &source).await?;
                        buckets.check_source(&buckets.fit(&source).await?, suppressed)
                    }
                },
            );
        } else {
            findings.push(Finding {
                rule: "source".into(),
                count: 1,
                message: "the source has changed since the release, so its rows cannot be compared".into(),
            });
        }
        Ok(Verified { manifest, classes, findings, attained: found.figures })
    }

    /// What an adversary learns from a release of the job's sink, with a public table (the job's when none is given) and
    /// the number of people in the whole population, as far as they are known.
    pub async fn attack(&self, release: Option<&str>, public: Option<&str>, population: Option<u64>) -> Result<Attack> {
        let sink = self.sink()?;
        let manifest = find_release(&sink, release).await?;
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let Opened { treatment, public: of_job, rows, .. } = self.open(&source).await?;
        if manifest.form() != treatment.form() {
            return Err(Error::Job(format!(
                "method.form: the release has the form `{}`, and the job would publish `{}`; attack it with the job that \
                 made it",
                manifest.form().as_str(),
                treatment.form().as_str()
            )));
        }
        let public = match public {
            Some(url) => Some(self.public(LocalPath::new("."), url).await?),
            None => of_job,
        };
        let tables = Tables::of(&self.context, &sink, &manifest.files, manifest.form()).await?;
        let published = match &tables {
            Some(tables) => tables.rows()?,
            None => verify::open(&self.context, &sink, &manifest.files, Some(&treatment.output)).await?,
        };
        let classes = verify::count_classes(&published, &treatment.class_columns(), &|_| {}).await?;
        let slices = treatment.slices(&manifest.slices);
        let known = match &public {
            Some(public) if manifest.form().is_numbered() => {
                let people = presence::people(public, &self.context, &treatment)?;
                let shown = tables.map_or_else(|| Shown::One(published.clone()), Shown::Two);
                let buckets = Buckets::read(&shown, &treatment, &slices, buckets::Look::Quasi, &people).await?;
                let fits = buckets.fit(&people).await?;
                Some((buckets.tally(&fits, Effort::default()), buckets.linkage(&fits)))
            }
            Some(public) => {
                let matching = presence::matching(&published, public, &self.context, &treatment).await?;
                Some((matching.tally(), matching.linkage()))
            }
            None => None,
        };
        let chased = inference::chase(&published, &treatment).await?;
        let mut sensitive = BTreeMap::new();
        for column in &treatment.sensitive {
            let by = classes_beside(&treatment, &slices, column);
            sensitive.insert(column.name.clone(), attack::disclosure(&published, &by, column).await?);
        }
        let population = match population {
            Some(people) => {
                let source = DataFrame::new(self.context.state(), rows);
                Some(attack::population(people, &source, &classes, &treatment).await?)
            }
            None => None,
        };
        let (tally, linkage) = known.unzip();
        Ok(Attack {
            run: manifest.run,
            form: manifest.form,
            rows: classes.rows(),
            classes: classes.classes(),
            membership: tally.map(Membership::new),
            linkage: Risks::new(&classes, linkage.as_ref()),
            inference: chased.map(|chased| inference::report(&chased, &treatment)),
            sensitive,
            population,
        })
    }
}

/// What `verify` has found of a release.
#[derive(Debug, Clone)]
pub struct Verified {
    /// The manifest of the release.
    pub manifest: Manifest,
    /// Its classes, counted in the files.
    pub classes: Classes,
    /// What does not hold.
    pub findings: Vec<Finding>,
    /// How well each sensitive column is protected, by every rule.
    pub attained: BTreeMap<String, Figures>,
}

/// A release of a sink by run id, or the newest one.
pub(crate) async fn find_release(sink: &Location, run: Option<&str>) -> Result<Manifest> {
    let run = match run {
        Some(run) => run.to_owned(),
        None => match ledger::latest_run(sink).await? {
            Some(run) => run,
            None => return Err(Error::Input(format!("`{}` holds no release; `throng run` makes one", sink.name))),
        },
    };
    let found = ledger::committed(sink, &run).await?;
    found.ok_or_else(|| commit::no_such_run(sink, &run))
}

async fn existing(sink: &Location, files: &[OutputFile]) -> Result<Vec<OutputFile>> {
    let mut present = Vec::new();
    for file in files {
        match sink.store.head(&sink.at(&file.path)).await {
            Ok(_) => present.push(file.clone()),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(present)
}
