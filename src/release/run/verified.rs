//! Verified: what was staged has been read back and checked, and is described by a manifest.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::DataFrame;

use super::committed::Verified;
use super::prepared::Work;
use super::staged::Staged;
use crate::agreement::Tables;
use crate::agreement::files;
use crate::agreement::manifest::{REENACTABLE, check_coherence, check_files, column_roles, rule_records};
use crate::audit::judge::classification_metric;
use crate::audit::{PopulationRisk, dependencies, presence};
use crate::binding::BoundPolicy;
use crate::engine::Phase;
use crate::engine::Verifier;
use crate::error::{Error, Result};
use crate::ledger::manifest::{
    CellRows, FORMAT, Manifest, OutputFile, PeopleCounts, QueryScores, Scores, Verification,
};
use crate::measure::Groups;
use crate::operator::AnonymizeParams;
use crate::policy::Form;
use crate::release::queries;
use crate::verify::{
    Finding, Found, Look, check_max_loss, check_order, measure_classes, read_footers, shown_losses, verify_people,
    verify_rows,
};
use crate::write::stored_schema;

impl<'a> Staged<'a> {
    /// Reads back what was written; fails if it breaks a promise.
    pub(super) async fn verify(self) -> Result<Verified<'a>> {
        let phase = Phase::Verify.begin();
        (self.work.observer)(Phase::Verify, None, self.params.shown_rows());
        let files = self.output_files().await?;
        let Checked { found, table, population } = self.check_files(&files).await?;
        let bound_policy = &self.params.bound_policy;
        let cm = match &bound_policy.policy.measures.class {
            Some(label) => {
                classification_metric(&table, bound_policy, label, self.measures.shown_suppressed().unwrap_or(0))
                    .await?
            }
            None => None,
        };
        let population = self.estimate_population(population, &found).await?;
        let classes = self.measure_classes(&table).await?;
        let mut manifest = self.build_manifest(files, found, classes.as_ref());
        manifest.record_attained();
        self.check_manifest(&manifest).await?;
        manifest.scores.cm = cm;
        manifest.population = population.if_known();
        if bound_policy.policy.privacy.presence.is_some() {
            manifest.round_unpublished();
        }
        manifest.scores.queries = self.answer_queries(&manifest).await?;
        let Self { mut work, held, measures, inferred, .. } = self;
        manifest.dependencies = dependencies::score_preserved(held, &measures.dependencies);
        manifest.verification.inference = inferred;
        phase.record_count("rows", manifest.rows);
        phase.record_count("classes", manifest.verification.classes.count);
        phase.record_count("smallest_class", manifest.verification.classes.smallest);
        work.times.push(phase.finish_phase());
        Ok(Verified { work, manifest })
    }

    /// The files with their checksums, as they are in the sink.
    async fn output_files(&self) -> Result<Vec<OutputFile>> {
        let mut files = Vec::new();
        for file in &self.files {
            let path = files::released_path(&self.work.sink, self.folder.name(), file);
            let blake3 = files::file_checksum(&self.work.sink, &path).await?;
            let blake3 = blake3.ok_or_else(|| Error::retry(format!("`{path}` was written but is missing")))?;
            files.push(OutputFile { path, rows: file.rows, size: file.size, blake3 });
        }
        Ok(files)
    }

    /// Checks all promises on the files.
    async fn check_files(&self, files: &[OutputFile]) -> Result<Checked> {
        let Self { work, params, measures, .. } = self;
        let (context, sink) = (&work.run.context, &work.sink);
        let bound_policy = &params.bound_policy;
        let rows = params.survey.source_rows().saturating_sub(measures.loss.suppressed());
        let watch = |plan: &Arc<dyn ExecutionPlan>| (work.observer)(Phase::Verify, Some(plan), rows);
        let plans = Verifier { engine: work.run.engine.as_ref(), rows, watch: &watch };
        let (form, output) = (bound_policy.form(), Some(bound_policy.output.as_ref()));
        let columns = files::check_types(context, sink, files, bound_policy).await?;
        Finding::ensure_none(&columns.findings)?;
        let (table, links) = files::open_readable(&plans, context, sink, files, form, output).await?;
        let mut found = verify_rows(&plans, &table, bound_policy, &params.slices, rows, Look::Guarded).await?;
        found.findings.extend(links);
        let published = files::published_files(sink, files);
        found.findings.extend(check_order(&plans, context, &published, &bound_policy.class_columns()).await?);
        let input = work.data_frame(&work.opened.input);
        found.findings.extend(check_max_loss(&plans, &table, &input, bound_policy).await?);
        let tables = Tables::open_tables(context, sink, files, form).await?;
        let shown = tables.as_ref().map_or(&table, Tables::quasi);
        let suppressed = measures.loss.suppressed();
        found.findings.extend(files::check_raw(&plans, shown, &input, bound_policy, suppressed).await?);
        let mut population = PopulationRisk::default();
        if let Some(public) = &work.opened.public {
            let (findings, linkage) = presence::verify_presence(&table, public, context, bound_policy).await?;
            found.findings.extend(findings);
            population.add_linkage(&linkage);
        }
        found.findings.extend(self.check_people(&plans, &table).await?);
        if let Some(suppressed) = measures.shown_suppressed().filter(|rows| *rows > 0) {
            found.findings.iter_mut().for_each(|finding| explain_shift(bound_policy, suppressed, finding));
        }
        Finding::ensure_none(&found.findings)?;
        Ok(Checked { found, table, population })
    }

    /// What the classes of a release that generalises lose and how well they protect, by its published rows alone. Groups in
    /// forms with numbers are published as they are, and were measured while they were made.
    async fn measure_classes(&self, table: &DataFrame) -> Result<Option<Groups>> {
        let Self { work, params, measures, .. } = self;
        if params.bound_policy.form() != Form::Generalise {
            return Ok(None);
        }
        let rows = measures.loss.rows();
        let watch = |plan: &Arc<dyn ExecutionPlan>| (work.observer)(Phase::Verify, Some(plan), rows);
        let plans = Verifier { engine: work.run.engine.as_ref(), rows, watch: &watch };
        let mut classes = measure_classes(&plans, table, &params.bound_policy, params.range_diversity_bound()).await?;
        classes.loss.add_suppressed(measures.shown_suppressed().unwrap_or(0));
        Ok(Some(classes))
    }

    /// Checks that the manifest agrees with itself and with the files.
    async fn check_manifest(&self, manifest: &Manifest) -> Result<()> {
        let mut disagreements = check_coherence(manifest);
        let footers = read_footers(&files::published_files(&self.work.sink, &manifest.files)).await?;
        disagreements.extend(check_files(manifest, &manifest.files, &footers));
        Finding::ensure_none(&disagreements)
    }

    /// Checks that classes hold enough people, where a row is not a person.
    async fn check_people(&self, plans: &Verifier<'_>, table: &DataFrame) -> Result<Vec<Finding>> {
        let bound_policy = &self.params.bound_policy;
        let Some(people) = &self.measures.people else {
            let message = "the people of the published classes were not counted".to_owned();
            let uncounted = bound_policy.person.is_some().then(|| Finding { rule: "person".into(), count: 1, message });
            return Ok(uncounted.into_iter().collect());
        };
        let counts = PeopleCounts::from(people);
        let (columns, k) = (bound_policy.class_columns(), bound_policy.policy.privacy.k);
        let found = verify_people(plans, table, &columns, &counts.classes.by_size, &counts.digest, k).await?;
        Ok(found.into_iter().collect())
    }

    /// Estimates the risk in a population of which the source is a sample, if the job gives its size.
    async fn estimate_population(&self, mut population: PopulationRisk, found: &Found) -> Result<PopulationRisk> {
        let bound_policy = &self.params.bound_policy;
        if let Some(people) = bound_policy.policy.measures.population {
            let source = self.work.data_frame(&self.work.opened.scanned);
            let before = files::count_classes(&source, &bound_policy.quasi_names()).await?;
            population.add_estimates(people, &before, &found.classes);
        }
        Ok(population)
    }

    /// Answers the queries that the job asks for from the files. They are drawn over the domain of the source, which not
    /// even a log may tell when rows of it were left out.
    async fn answer_queries(&self, manifest: &Manifest) -> Result<Option<QueryScores>> {
        let Work { run, sink, opened, .. } = &self.work;
        if run.policy.measures.queries.is_none() || !self.measures.is_whole() {
            return Ok(manifest.scores.queries.clone());
        }
        // Of two tables, the one with the quasi-identifiers.
        let published = match Tables::open_tables(&run.context, sink, &manifest.files, manifest.form()).await? {
            Some(tables) => tables.quasi().clone(),
            None => {
                let output = Some(self.params.bound_policy.output.as_ref());
                files::open_published(&run.context, sink, &manifest.files, output).await?
            }
        };
        let error = queries::answer_queries(&self.work.data_frame(&opened.rows), &published, &self.params).await?;
        Ok(error.map(QueryScores::from))
    }

    fn build_manifest(&self, files: Vec<OutputFile>, found: Found, measured: Option<&Groups>) -> Manifest {
        let Work { run, source, opened, .. } = &self.work;
        let (params, measures, policy): (&AnonymizeParams, _, _) = (&self.params, &self.measures, &run.policy);
        let bound_policy = &params.bound_policy;
        let public = opened.public.as_ref();
        let tuned = &params.survey.tuned;
        let delta = tuned.delta.map(|delta| ("delta".to_owned(), delta));
        let s = tuned.s.map(|s| ("s".to_owned(), s as f64));
        let columns: Vec<String> = bound_policy.quasi.iter().map(|column| column.name.clone()).collect();
        let k = policy.privacy.k;
        let classes = &found.classes;
        let schema = stored_schema(&bound_policy.output);
        let mut scores = Scores::new(measures, classes, k, &columns);
        if let Some(measured) = measured {
            scores = scores.of_classes(measured, &columns, &shown_losses(bound_policy), policy.measures.source);
        }
        Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            run: self.work.id.clone(),
            committed: jiff::Timestamp::now().to_string(),
            policy: policy.hash.clone(),
            k,
            method: policy.method.name.as_str().to_owned(),
            seed: policy.method.seed,
            warnings: policy.method.seed.map(|_| REENACTABLE.to_owned()).into_iter().collect(),
            earlier_releases: None,
            series: None,
            form: Some(bound_policy.form()).filter(|form| form.is_numbered()),
            slices: if bound_policy.form().is_numbered() {
                bound_policy.slice_names(&params.slices)
            } else {
                Vec::new()
            },
            tuned: delta.into_iter().chain(s).collect(),
            input: source.input().to_vec(),
            snapshot: run.source_identity(source),
            public: public.map(|public| public.source.input().to_vec()).unwrap_or_default(),
            public_snapshot: self.work.public_identity().unwrap_or_default(),
            data: self.folder.name().to_owned(),
            files,
            schema: schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect(),
            class_columns: bound_policy.class_columns(),
            roles: column_roles(bound_policy),
            rows_read: params.survey.source_rows(),
            rows: measures.loss.rows(),
            suppressed: measures.loss.suppressed(),
            dropped: params.survey.dropped,
            rounded: false,
            cells: params.survey.tree.cell_count(),
            cell_rows: CellRows::from_cells(measures.cells),
            scores,
            dependencies: Vec::new(),
            population: None,
            verification: Verification {
                rules: rule_records(bound_policy, &params.rules),
                classes: classes.into(),
                inference: None,
                people: measures.people.as_ref().map(PeopleCounts::from),
                attained: found.figures,
            },
        }
    }
}

/// What was found in the files.
struct Checked {
    found: Found,
    /// The published rows.
    table: DataFrame,
    population: PopulationRisk,
}

/// Suppressed rows are part of the table that groups were compared with, and not of the one that is published.
fn explain_shift(bound_policy: &BoundPolicy, suppressed: u64, finding: &mut Finding) {
    let rules = bound_policy.policy.privacy.rules();
    if rules.iter().any(|listed| listed.name == finding.rule && listed.rule.needs().table) {
        finding.message += &format!(
            "; {suppressed} rows were suppressed, which changes the table that groups are compared with: allow none \
             (privacy.max-suppression = 0), or a wider bound"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use datafusion::arrow::datatypes::{DataType, Field, Schema};

    use super::*;
    use crate::policy::Policy;

    /// Only rules that compare a class with the whole table change when rows of the table are left out.
    #[test]
    fn a_shift_of_the_table_is_explained_where_a_rule_looks_at_it() {
        let text = "[privacy]\nk = 2\nl-diversity = { column = \"ill\", l = 2 }\n\
                    t-closeness = { column = \"ill\", t = 0.3 }\n[columns]\nage.role = \"quasi\"\nill.role = \"sensitive\"";
        let policy = Policy::from_table(toml::from_str(text).unwrap(), Path::new(".")).unwrap();
        let fields = vec![Field::new("age", DataType::Int32, true), Field::new("ill", DataType::Utf8, true)];
        let bound_policy = BoundPolicy::new(Arc::new(policy), Arc::new(Schema::new(fields))).unwrap();
        let explained = |rule: &str| {
            let mut finding = Finding::new(rule, 2, "2 classes break it");
            explain_shift(&bound_policy, 5, &mut finding);
            finding.message
        };
        assert_eq!(explained("l-diversity"), "2 classes break it");
        assert_eq!(explained("k"), "2 classes break it");
        let said = explained("t-closeness");
        assert!(said.starts_with("2 classes break it; 5 rows were suppressed"), "{said}");
        assert!(said.contains("privacy.max-suppression = 0"), "{said}");
    }
}
