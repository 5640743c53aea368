//! What was staged, read back and checked, and the manifest that tells of it.

use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::DataFrame;

use super::{Observer, Run, public_input};
use crate::audit::judge::classification;
use crate::audit::{PopulationRisk, presence};
use crate::error::{Error, Result};
use crate::measure::Groups;
use crate::operator::Blueprint;
use crate::release::agreement::{REENACTABLE, check_coherence, check_files, roles, rule_names};
use crate::release::anatomy::Tables;
use crate::release::engine::Verifier;
use crate::release::manifest::{CellRows, FORMAT, Manifest, OutputFile, PeopleCounts, Scores, Verification};
use crate::release::phase::Phase;
use crate::release::verify;
use crate::source::Source;
use crate::source::public::Public;
use crate::storage::Location;
use crate::treatment::Treatment;
use crate::verify::{Finding, Found, Look, check_max_loss, check_order, footers, verify_people, verify_rows};
use crate::write::{Written, stored_schema};

impl Run {
    #[expect(clippy::too_many_arguments, reason = "the manifest gathers what every phase has found")]
    pub(super) async fn verify(
        &self,
        sink: &Location,
        run: &str,
        data: String,
        read: (&Source, Option<&Public>),
        input: &LogicalPlan,
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
        let watch = |plan: &Arc<dyn ExecutionPlan>| observer(Phase::Verify, Some(plan), rows);
        let plans = Verifier { engine: self.engine.as_ref(), rows, watch: &watch };
        let (form, output) = (treatment.form(), Some(treatment.output.as_ref()));
        let columns = verify::check_types(&self.context, sink, &files, treatment).await?;
        Finding::refuse(&columns.findings)?;
        let (table, links) = verify::readable(&plans, &self.context, sink, &files, form, output).await?;
        let mut found = verify_rows(&plans, &table, treatment, &blueprint.slices, rows, Look::Guarded).await?;
        found.findings.extend(links);
        let published = verify::published_files(sink, &files);
        found.findings.extend(check_order(&plans, &self.context, &published, &treatment.class_columns()).await?);
        let input = DataFrame::new(self.context.state(), input.clone());
        found.findings.extend(check_max_loss(&plans, &table, &input, treatment).await?);
        let tables = Tables::of(&self.context, sink, &files, form).await?;
        let shown = tables.as_ref().map_or(&table, Tables::quasi);
        found.findings.extend(verify::check_raw(&plans, shown, &input, treatment, suppressed).await?);
        let mut population = PopulationRisk::default();
        if let Some(public) = read.1 {
            let (findings, linkage) = presence::verify(&table, public, &self.context, treatment).await?;
            found.findings.extend(findings);
            population.link(&linkage);
        }
        if let Some(people) = &measures.people {
            let counts = PeopleCounts::from(people);
            let (columns, k) = (treatment.class_columns(), treatment.policy.privacy.k);
            let (counted, digest) = (&counts.classes.by_size, &counts.digest);
            found.findings.extend(verify_people(&plans, &table, &columns, counted, digest, k).await?);
        } else if treatment.person.is_some() {
            let message = "the people of the published classes were not counted".to_owned();
            found.findings.push(Finding { rule: "person".into(), count: 1, message });
        }
        if let Some(suppressed) = measures.suppressed_told().filter(|rows| *rows > 0) {
            found.findings.iter_mut().for_each(|finding| explain_shift(treatment, suppressed, finding));
        }
        Finding::refuse(&found.findings)?;
        let cm = match &treatment.policy.measures.class {
            Some(label) => classification(&table, treatment, label, measures.suppressed_told().unwrap_or(0)).await?,
            None => None,
        };
        if let Some(people) = treatment.policy.measures.population {
            let (scanned, _) = read.0.scan(&self.context).await?;
            let source = DataFrame::new(self.context.state(), scanned);
            let before = verify::count_classes(&source, &treatment.quasi_names()).await?;
            population.estimate(people, &before, &found.classes);
        }
        let mut manifest = self.manifest(run, data, read, blueprint, files, measures, found, cells)?;
        let mut disagreements = check_coherence(&manifest);
        disagreements.extend(check_files(&manifest, &manifest.files, &footers(&published).await?));
        Finding::refuse(&disagreements)?;
        manifest.scores.cm = cm;
        manifest.population = population.known();
        if treatment.policy.privacy.presence.is_some() {
            manifest.round_unpublished();
        }
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
            seed: self.policy.method.seed,
            warnings: self.policy.method.seed.map(|_| REENACTABLE.to_owned()).into_iter().collect(),
            earlier_releases: None,
            form: Some(treatment.form()).filter(|form| form.is_numbered()),
            slices: if treatment.form().is_numbered() { treatment.named(&blueprint.slices) } else { Vec::new() },
            tuned: delta.into_iter().chain(s).collect(),
            input: source.input().to_vec(),
            snapshot: self.identity(source),
            public: public_input(public).to_vec(),
            public_snapshot: public.map(|public| self.identity(&public.source)).unwrap_or_default(),
            data,
            files,
            schema: schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect(),
            class_columns: treatment.class_columns(),
            roles: roles(treatment),
            rows_read: blueprint.survey.source_rows(),
            rows: measures.loss.rows(),
            suppressed: measures.loss.suppressed(),
            dropped: blueprint.survey.dropped,
            rounded: false,
            cells,
            cell_rows: CellRows::of(measures.cells),
            scores: Scores::new(measures, classes, k, &columns),
            dependencies: Vec::new(),
            population: None,
            verification: Verification {
                rules: rule_names(treatment, &blueprint.rules),
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
