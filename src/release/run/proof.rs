//! What was staged, read back and checked, and the manifest that tells of it.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::DataFrame;

use super::{Observer, Run, public_files};
use crate::error::{Error, Result};
use crate::job::{MEMBER_COLUMN, Treatment};
use crate::measure::Groups;
use crate::operator::Blueprint;
use crate::release::judge::{Look, classification};
use crate::release::location::Location;
use crate::release::manifest::{CellRows, FORMAT, Manifest, OutputFile, PeopleCounts, Scores, Verification};
use crate::release::phase::Phase;
use crate::release::population::PopulationRisk;
use crate::release::presence;
use crate::release::public::Public;
use crate::release::source::Source;
use crate::release::verify::{self, Finding, Found};
use crate::release::write::{Written, stored_schema};

impl Run {
    #[expect(clippy::too_many_arguments, reason = "the manifest gathers what every phase has found")]
    pub(super) async fn verify(
        &self,
        sink: &Location,
        run: &str,
        data: String,
        read: (&Source, Option<&Public>),
        blueprint: &Blueprint,
        written: Vec<Written>,
        measures: &Groups,
        cells: usize,
        observer: &Observer<'_>,
    ) -> Result<Manifest> {
        let mut files = Vec::new();
        for file in written {
            let path = verify::released_path(sink, &data, &file);
            let blake3 = verify::checksum(sink, &path).await?;
            let blake3 = blake3.ok_or_else(|| Error::Retry(format!("`{path}` was written but is not there")))?;
            files.push(OutputFile { path, rows: file.rows, size: file.size, blake3 });
        }
        let treatment = &blueprint.treatment;
        let suppressed = measures.loss.suppressed();
        let rows = blueprint.survey.source_rows().saturating_sub(suppressed);
        let (table, links) =
            verify::readable(&self.context, sink, &files, treatment.form(), Some(&treatment.output)).await?;
        let domains = Some(blueprint.survey.sensitive.as_slice());
        let watch = |plan: &Arc<dyn ExecutionPlan>| observer(Phase::Verify, Some(plan), rows);
        let slices = &blueprint.slices;
        let mut found = verify::verify_rows(&table, treatment, slices, domains, rows, Look::Guarded, &watch).await?;
        found.findings.extend(links);
        let mut population = PopulationRisk::default();
        if let Some(public) = read.1 {
            let (findings, linkage) = presence::verify(&table, public, &self.context, treatment).await?;
            found.findings.extend(findings);
            population.link(&linkage);
        }
        if let Some(people) = &measures.people {
            let counts = PeopleCounts::from(people);
            let (columns, k) = (treatment.class_columns(), treatment.policy.privacy.k);
            found.findings.extend(verify::verify_people(&table, &columns, &counts.classes, &counts.digest, k).await?);
        } else if treatment.person.is_some() {
            let message = "the people of the published classes were not counted".to_owned();
            found.findings.push(Finding { rule: "person".into(), count: 1, message });
        }
        if suppressed > 0 {
            found.findings.iter_mut().for_each(|finding| explain_shift(treatment, suppressed, finding));
        }
        Finding::refuse(&found.findings)?;
        let cm = match &treatment.policy.measures.class {
            Some(label) => classification(&table, treatment, label, suppressed).await?,
            None => None,
        };
        if let Some(people) = treatment.policy.measures.population {
            let (scanned, _) = read.0.scan(&self.context).await?;
            let source = DataFrame::new(self.context.state(), scanned);
            let before = verify::count_classes(&source, &treatment.quasi_names(), &|_| {}).await?;
            population.estimate(people, &before, &found.classes);
        }
        let mut manifest = self.manifest(run, data, read, blueprint, files, measures, found, cells)?;
        manifest.scores.cm = cm;
        manifest.population = population.known();
        Ok(manifest)
    }

    #[expect(clippy::too_many_arguments, reason = "the manifest gathers what every phase has found")]
    fn manifest(
        &self,
        run: &str,
        data: String,
        (source, public): (&Source, Option<&Public>),
        blueprint: &Blueprint,
        files: Vec<OutputFile>,
        measures: &Groups,
        found: Found,
        cells: usize,
    ) -> Result<Manifest> {
        let treatment = &blueprint.treatment;
        let tuned = &blueprint.survey.tuned;
        let delta = tuned.delta.map(|delta| ("delta".to_owned(), delta));
        let s = tuned.s.map(|s| ("s".to_owned(), s as f64));
        let columns: Vec<String> = treatment.quasi.iter().map(|column| column.name.clone()).collect();
        let k = self.policy.privacy.k;
        let people = if treatment.person.is_some() { " people" } else { "" };
        let rules = blueprint.rules.others.iter().map(|rule| rule.name());
        let classes = &found.classes;
        let schema = stored_schema(&treatment.output);
        Ok(Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            run: run.to_owned(),
            committed: jiff::Timestamp::now().to_string(),
            policy: self.policy.hash.clone(),
            k,
            method: self.policy.method.name.as_str().to_owned(),
            seed: (!treatment.form().is_permuted()).then_some(self.policy.method.seed),
            form: Some(treatment.form()).filter(|form| form.is_numbered()),
            slices: if treatment.form().is_numbered() { treatment.named(&blueprint.slices) } else { Vec::new() },
            tuned: delta.into_iter().chain(s).collect(),
            input: source.files().to_vec(),
            snapshot: source.snapshot(),
            public: public_files(public).to_vec(),
            data,
            files,
            schema: schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect(),
            class_columns: treatment.class_columns(),
            roles: treatment
                .input
                .fields()
                .iter()
                .zip(&treatment.roles)
                .filter(|(field, _)| field.name() != MEMBER_COLUMN)
                .map(|(field, role)| (field.name().clone(), *role))
                .collect(),
            rows_read: blueprint.survey.source_rows(),
            rows: measures.loss.rows(),
            suppressed: measures.loss.suppressed(),
            dropped: blueprint.survey.dropped,
            cells,
            cell_rows: CellRows::of(measures.cells),
            scores: Scores::new(measures, classes, k, &columns),
            dependencies: Vec::new(),
            population: None,
            verification: Verification {
                rules: [format!("k = {k}{people}")].into_iter().chain(rules).collect(),
                classes: classes.into(),
                inference: None,
                people: measures.people.as_ref().map(PeopleCounts::from),
                attained: found.figures,
            },
        })
    }
}

/// Suppressed rows are part of the table that groups were compared with, and not of the one that is published.
fn explain_shift(treatment: &Treatment, suppressed: u64, finding: &mut Finding) {
    let rules = treatment.policy.privacy.rules();
    if rules.iter().any(|listed| listed.name == finding.rule && listed.rule.needs().table) {
        finding.message += &format!(
            "; {suppressed} rows were suppressed, which changes the table that groups are compared with: allow none \
             (privacy.max-suppression = 0), or a wider bound"
        );
    }
}
