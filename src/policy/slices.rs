//! Published forms beside generalising: what a job with such a form may say.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::model::{Form, Job, Role};
use crate::error::Problem;

/// The slices of the form `slice`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SliceSpec {
    /// A number of slices, of columns that depend on each other in a sample.
    Count(u32),
    /// The listed slices.
    Listed(Vec<Vec<String>>),
}

impl<'de> Deserialize<'de> for SliceSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = SliceSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of slices, or a list of lists of columns")
            }
            fn visit_i64<E: Error>(self, count: i64) -> Result<SliceSpec, E> {
                let count = u32::try_from(count).ok().filter(|count| *count > 0);
                count.map(SliceSpec::Count).ok_or_else(|| E::custom("there must be at least one slice"))
            }
            fn visit_u64<E: Error>(self, count: u64) -> Result<SliceSpec, E> {
                self.visit_i64(i64::try_from(count).unwrap_or(0))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<SliceSpec, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(SliceSpec::Listed)
            }
        }
        from.deserialize_any(Form)
    }
}

/// Checks the published form of a job and adds notes.
pub(crate) fn check_form(job: &Job, sensitive: Option<&[String]>, problems: &mut Vec<Problem>) {
    let form = job.method.form();
    check_slices(job, form, problems);
    if form == Form::Generalise {
        return;
    }
    let name = form.as_str();
    if matches!(form, Form::Anatomy | Form::AnatomyPermuted | Form::Bucketise)
        && sensitive.is_some_and(<[String]>::is_empty)
    {
        let message = format!("`{name}` separates sensitive values, but no column is sensitive");
        problems.push(Problem::error("method.form", message).help("give a column the role \"sensitive\""));
    }
    if form.is_exact() {
        let message = format!(
            "`{name}` publishes {}: it hides which sensitive value is whose within a group of k, not who is in the table",
            if form.is_permuted() && form != Form::Bucketise {
                "values as they are"
            } else {
                "quasi-identifiers exactly"
            }
        );
        problems.push(Problem::warning("method.form", message));
    } else if job.privacy.presence.is_none() && job.method.name.as_str() != "combined" {
        let message = "`combined` hides who is in the source, and needs privacy.presence to define how well";
        let help = "add presence = { public = \"...\", min = 0.05, max = 0.9 }, or choose another form";
        problems.push(Problem::error("method.form", message).help(help));
    }
    if job.method.name.as_str() == "combined" && form != Form::Combined {
        let message = format!("the method `combined` finds what its own form publishes, not `{name}`");
        problems.push(Problem::error("method.form", message).help("remove it, or choose another method"));
    }
    if !job.output.partition_by.is_empty() {
        let message = format!("has no meaning in the form `{name}`");
        problems.push(Problem::error("output.partition-by", message).help("remove it"));
    }
    if form.is_two_tables() && job.sink.format == Some(super::SinkFormat::Delta) {
        let message = format!("a Delta table cannot hold the two tables of the form `{name}`");
        problems.push(Problem::error("sink.format", message).help("leave it out, or choose another method.form"));
    }
    if form.is_permuted() && (job.measures.information || job.measures.queries.is_some()) {
        let message = format!("information and queries are measured on rows that stay whole, not in the form `{name}`");
        problems.push(Problem::error("measures", message).help("remove them"));
    }
    for (name_of_column, _) in job.columns.iter().filter(|(_, column)| column.publish.is_some() && form.is_exact()) {
        let message = format!("has no meaning in the form `{name}`");
        let problem = Problem::error(format!("columns.{name_of_column}.publish"), message);
        problems.push(problem.help("remove it: quasi-identifiers are published as they are"));
    }
    for (name_of_column, _) in job.columns.iter().filter(|(_, column)| column.withhold) {
        let message = format!("cannot be kept in the form `{name}`");
        let problem = Problem::error(format!("columns.{name_of_column}.withhold"), message);
        problems.push(problem.help("quasi-identifiers are published as they are: give it another role"));
    }
}

fn check_slices(job: &Job, form: Form, problems: &mut Vec<Problem>) {
    let Some(slices) = &job.method.slices else { return };
    if form != Form::Slice {
        let message = format!("belong to the form `slice`, but this is `{}`", form.as_str());
        problems.push(Problem::error("method.slices", message).help("remove them, or set method.form = \"slice\""));
    }
    let SliceSpec::Listed(listed) = slices else { return };
    let mut named: Vec<&String> = Vec::new();
    for name in listed.iter().flatten() {
        let role = job.columns.get(name).map(|column| column.role).or(job.defaults.as_ref().and_then(|open| open.role));
        let message = match role {
            _ if named.contains(&name) => Some(format!("names `{name}` twice")),
            Some(Role::Identifier) => Some(format!("names `{name}`, an identifier")),
            None => Some(format!("names `{name}`, which is not a column")),
            _ => None,
        };
        problems.extend(message.map(|message| Problem::error("method.slices", message)));
        named.push(name);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn errors(method: &str) -> Vec<String> {
        let text = format!(
            "version = 1\nsource.url = \"s3://a/in\"\nsink.url = \"s3://a/out\"\nprivacy.k = 5\n[method]\n{method}\n\
             [columns]\nage.role = \"quasi\"\ntown.role = \"quasi\"\nill.role = \"sensitive\"\nid.role = \"identifier\"\n"
        );
        let job = Job::parse(&text, Path::new("job.toml")).unwrap();
        let problems = super::super::check(&job, Path::new("."));
        problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string).collect()
    }

    #[test]
    fn slices_are_a_number_or_a_list() {
        assert_eq!(errors("form = \"slice\"\nslices = 2"), [""; 0]);
        assert_eq!(errors("form = \"slice\"\nslices = [[\"age\", \"ill\"]]"), [""; 0]);
        assert!(errors("form = \"permute\"\nslices = 2")[0].starts_with("method.slices: belong to the form `slice`"));
        let twice = errors("form = \"slice\"\nslices = [[\"age\"], [\"age\", \"id\", \"x\"]]");
        assert_eq!(twice.len(), 3, "{twice:?}");
        let spec: super::super::MethodSpec = toml::from_str("form = \"slice\"\nslices = [[\"a\"], [\"b\"]]").unwrap();
        assert_eq!(toml::from_str::<super::super::MethodSpec>(&toml::to_string(&spec).unwrap()).unwrap(), spec);
        assert!(toml::from_str::<super::super::MethodSpec>("slices = 0").is_err());
    }

    #[test]
    fn forms_fit_the_method_and_the_rules() {
        assert!(errors("form = \"combined\"")[0].contains("needs privacy.presence"));
        assert!(
            errors("name = \"combined\"").iter().any(|problem| problem.starts_with("privacy.presence: is missing"))
        );
        assert_eq!(errors("form = \"bucketise\""), [""; 0]);
        assert_eq!(errors("name = \"anatomy\"\nform = \"anatomy-permuted\""), [""; 0]);
    }
}
