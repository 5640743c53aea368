//! Several releases of the same people, attacked together.

use std::path::Path as LocalPath;

use datafusion::logical_expr::{Expr, cast, ident};
use datafusion::prelude::DataFrame;

use super::{Opened, Run};
use crate::agreement::files;
use crate::audit::SeriesAttack;
use crate::audit::series::{self, Night};
use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::ledger;
use crate::policy::Form;
use crate::source::Source;
use crate::source::public::Public;

/// What an attack on several releases knows.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeriesKnowledge {
    /// Folders of Parquet, each a release; the releases of the job's sink, oldest first, when there is none.
    pub releases: Vec<String>,
    /// Tables of people with their quasi-identifiers: one for all releases, or one for each.
    pub public: Vec<String>,
    /// Columns that identify people.
    pub subject: Vec<String>,
    /// Columns of the one public table that say who was there, one for each release; everybody always was without them.
    pub present: Vec<String>,
}

impl Run {
    /// Computes what an adversary learns who compares several releases and knows who was there for each.
    pub(crate) async fn attack_series(&self, knows: &SeriesKnowledge) -> Result<SeriesAttack> {
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let Opened { bound_policy, .. } = self.open_source(&source).await?;
        ensure_attackable(&bound_policy)?;
        let releases = self.series_releases(knows, &bound_policy).await?;
        ensure_one_for_each("--public", knows.public.len(), releases.len(), &[1])?;
        ensure_one_for_each("--present-column", knows.present.len(), releases.len(), &[0])?;
        let mut nights = Vec::new();
        for (at, (name, published)) in releases.into_iter().enumerate() {
            let url = knows.public.get(at).or(knows.public.first()).map_or("", String::as_str);
            let public = self.open_public(LocalPath::new("."), url).await?;
            let people = self.people_present(&public, knows, knows.present.get(at), &bound_policy)?;
            nights.push(Night { name, published, people });
        }
        series::attack_releases(&nights, &bound_policy).await
    }

    /// The releases to compare, each with its name.
    async fn series_releases(
        &self,
        knows: &SeriesKnowledge,
        bound_policy: &BoundPolicy,
    ) -> Result<Vec<(String, DataFrame)>> {
        let mut found = Vec::new();
        for url in &knows.releases {
            let folder = Source::at_url(&self.options.stores, LocalPath::new("."), url).await?;
            let (plan, _) = folder.scan(&self.context).await?;
            let rows = DataFrame::new(self.context.state(), plan);
            found.push((url.clone(), published_columns(rows, url, bound_policy)?));
        }
        if !found.is_empty() {
            return Ok(found);
        }
        let sink = self.sink()?;
        for manifest in ledger::readable_releases(&sink).await? {
            if manifest.form() != Form::Generalise {
                return Err(unattackable_form(manifest.form()));
            }
            let rows = files::open_published(&self.context, &sink, &manifest.files, None).await?;
            let rows = published_columns(rows, &manifest.run, bound_policy)?;
            found.push((manifest.run, rows));
        }
        if found.is_empty() {
            return Err(Error::input(format!("`{}` holds no release; `throng run` makes one", sink.name)));
        }
        Ok(found)
    }

    /// Everybody who was there for a release: quasi-identifiers, then subjects.
    fn people_present(
        &self,
        public: &Public,
        knows: &SeriesKnowledge,
        present: Option<&String>,
        bound_policy: &BoundPolicy,
    ) -> Result<DataFrame> {
        let mut people = public.frame(&self.context);
        let quasi = bound_policy.quasi.iter().map(|column| (column.name.clone(), column.data_type.clone()));
        let mut columns = public.quasi_exprs(&quasi.collect::<Vec<_>>())?;
        for name in knows.subject.iter().chain(present) {
            if people.schema().field_with_unqualified_name(name).is_err() {
                return Err(Error::input(format!("the public table has no column `{name}`")));
            }
        }
        if let Some(present) = present {
            people = people.filter(ident(present).is_true())?;
        }
        let subject = |(at, name): (usize, &String)| ident(name).alias(format!("__subject_{at}"));
        columns.extend(knows.subject.iter().enumerate().map(subject));
        Ok(people.select(columns)?)
    }
}

/// The columns of a release that the attack reads, with the types that the job would publish.
fn published_columns(rows: DataFrame, name: &str, bound_policy: &BoundPolicy) -> Result<DataFrame> {
    let sensitive = bound_policy.sensitive.iter().map(|column| column.name.clone());
    let mut columns: Vec<Expr> = Vec::new();
    for column in bound_policy.class_columns().into_iter().chain(sensitive) {
        let field = bound_policy.output.field_with_name(&column).map_err(|error| Error::internal(error.to_string()))?;
        let Ok(there) = rows.schema().field_with_unqualified_name(&column) else {
            return Err(Error::input(format!(
                "release `{name}` has no column `{column}`, which this job would publish; name the releases of one policy \
                 with --release"
            )));
        };
        let plain = ident(&column);
        let alike = there.data_type() == field.data_type();
        columns.push(if alike { plain } else { cast(plain, field.data_type().clone()).alias(&column) });
    }
    Ok(rows.select(columns)?)
}

/// Refuses a policy that the attack cannot read the releases of.
fn ensure_attackable(bound_policy: &BoundPolicy) -> Result<()> {
    if bound_policy.form() != Form::Generalise {
        return Err(unattackable_form(bound_policy.form()));
    }
    if bound_policy.sensitive.is_empty() {
        return Err(Error::job(
            "columns: none is sensitive, so there is nothing that several releases could reveal about somebody",
        ));
    }
    Ok(())
}

fn unattackable_form(form: Form) -> Error {
    Error::job(format!(
        "method.form: only releases of the form `generalise` can be attacked together, and these have the form `{}`",
        form.as_str()
    ))
}

/// Refuses a number of arguments that is neither one for each release nor one of `others`.
fn ensure_one_for_each(flag: &str, given: usize, releases: usize, others: &[usize]) -> Result<()> {
    if given == releases || others.contains(&given) {
        return Ok(());
    }
    Err(Error::input(format!(
        "{flag} is given {given} times for {releases} releases; give it once for each, oldest first"
    )))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::error::ErrorKind;
    use crate::policy::Policy;

    const QUASI: &str = "role = \"quasi\"";

    fn bound_policy(age: &str, more: &str) -> BoundPolicy {
        let text = format!("privacy.k = 2\n[columns]\nage = {{ {age} }}\nill.role = \"sensitive\"\n{more}");
        let policy = Policy::from_table(toml::from_str(&text).unwrap(), Path::new(".")).unwrap();
        let fields = vec![Field::new("age", DataType::Int32, true), Field::new("ill", DataType::Utf8, true)];
        BoundPolicy::new(Arc::new(policy), Arc::new(Schema::new(fields))).unwrap()
    }

    fn frame(columns: Vec<(&str, ArrayRef)>) -> DataFrame {
        SessionContext::new().read_batch(RecordBatch::try_from_iter(columns).unwrap()).unwrap()
    }

    #[test]
    fn arguments_are_one_for_all_or_one_for_each() {
        assert!(ensure_one_for_each("--public", 3, 3, &[1]).is_ok());
        assert!(ensure_one_for_each("--public", 1, 3, &[1]).is_ok());
        let error = ensure_one_for_each("--public", 2, 3, &[1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert_eq!(error.message(), "--public is given 2 times for 3 releases; give it once for each, oldest first");
        assert!(ensure_one_for_each("--present-column", 0, 3, &[0]).is_ok());
        assert!(ensure_one_for_each("--present-column", 0, 3, &[1]).is_err());
    }

    #[test]
    fn only_generalised_releases_with_something_to_reveal_can_be_attacked() {
        assert!(ensure_attackable(&bound_policy(QUASI, "")).is_ok());
        let error = ensure_attackable(&bound_policy(QUASI, "[method]\nname = \"anatomy\"\n")).unwrap_err();
        assert!(error.kind() == ErrorKind::Job && error.message().contains("these have the form `anatomy`"), "{error}");
    }

    /// A folder of Parquet may hold more columns than the attack reads, and coded ones, but none too few.
    #[test]
    fn columns_of_a_release_are_those_that_the_job_would_publish() {
        let text = |value: &str| -> ArrayRef { Arc::new(StringArray::from(vec![value])) };
        let number: ArrayRef = Arc::new(Int32Array::from(vec![7]));
        let bound_policy = bound_policy("role = \"quasi\", publish = \"label\"", "");
        let rows = frame(vec![("more", Arc::clone(&number)), ("ill", number), ("age", text("[20-30]"))]);
        let read = published_columns(rows, "monday", &bound_policy).unwrap();
        let columns: Vec<(&str, &DataType)> =
            read.schema().fields().iter().map(|field| (field.name().as_str(), field.data_type())).collect();
        assert_eq!(columns.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["age", "ill"]);
        for (name, data_type) in columns {
            assert_eq!(bound_policy.output.field_with_name(name).unwrap().data_type(), data_type, "{name}");
        }
        let error = published_columns(frame(vec![("age", text("a"))]), "monday", &bound_policy).unwrap_err();
        assert!(error.message().starts_with("release `monday` has no column `ill`, which this job"), "{error}");
    }
}
