//! The definition of a policy: the part of a job that an embedder can use without files.
//!
//! A [`Policy`] is opaque: it is made from the tables of a job file, all of which are checked, and cannot be changed
//! afterwards. What is sent to other machines is written from the policy as it is, and its identity is checked where it
//! is read again: a hash of everything that decides what a release looks like, and of nothing else.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::identifier::IdentifierAction;
use super::model::{Column, Defaults, HierarchySpec, Job, MethodSpec, Output, Privacy, Ranges, Role, Sink, Source};
use super::window::{SurveyBytes, Window, read_survey};
use super::{Dependency, MeasureSpec, check, identifier, load};
use crate::error::{Error, Result, io_reason};
use crate::hierarchy::Hierarchy;
use crate::secret::{Key, RunKey};
use crate::storage::bounded::read_job_text;

/// Rules, columns and method of a job, with its hierarchies loaded.
///
/// ```compile_fail
/// # let policy: throng::Policy = unimplemented!();
/// policy.privacy.k = 25; // A policy is as it was checked: make another one instead.
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// What the release must satisfy.
    pub(crate) privacy: Privacy,
    /// Defaults of the columns.
    pub(crate) defaults: Option<Defaults>,
    /// Columns by name.
    pub(crate) columns: BTreeMap<String, Column>,
    /// Functional dependencies between columns.
    pub(crate) dependencies: Vec<Dependency>,
    /// How rows are grouped.
    pub(crate) method: MethodSpec,
    /// Optional measures.
    pub(crate) measures: MeasureSpec,
    /// How rows that never end are gathered. Not a part of the policy's identity: it changes no rule.
    pub(crate) window: Option<Window>,
    /// The survey that the window names.
    pub(crate) survey: Option<SurveyBytes>,
    /// How files are written: a part of the policy's identity.
    output: Output,
    /// Hierarchies by column name.
    pub(crate) hierarchies: BTreeMap<String, Arc<Hierarchy>>,
    /// Contents of the hierarchy files, by the path that the columns name them by.
    pub(crate) files: BTreeMap<String, String>,
    /// Keys of pseudonyms by column name.
    pub(crate) keys: BTreeMap<String, Key>,
    /// The key of every random choice, where the policy fixes it; drawn for every run otherwise.
    fixed_key: Option<RunKey>,
    /// Identity of the policy: changes with any rule, column, method parameter, line of a hierarchy
    /// or key.
    pub(crate) hash: String,
}

impl Policy {
    /// Returns the checked policy of a job; hierarchy files are read relative to `base`.
    pub fn of(job: &Job, base: &Path) -> Result<Self> {
        let problems: Vec<String> = check::check(job, base)
            .into_iter()
            .filter(|problem| {
                let places = ["source", "sink", "series", "privacy.presence.public"];
                problem.is_error() && !places.iter().any(|place| problem.key.starts_with(place))
            })
            .map(|problem| problem.to_string())
            .collect();
        if problems.is_empty() { Self::of_checked(job, base) } else { Err(Error::job(problems.join("\n"))) }
    }

    /// The policy of a job that has been checked.
    pub(crate) fn of_checked(job: &Job, base: &Path) -> Result<Self> {
        let fixed_key = job.method.fixed_key().map_err(|message| Error::job(format!("method: {message}")))?;
        let policy =
            Self::from_loaded(job, load::open_hierarchies(job, base)?, identifier::read_keys(job, base)?, fixed_key)?;
        Ok(Self { survey: read_survey(job, base)?, ..policy })
    }

    fn from_loaded(
        job: &Job,
        loaded: load::Loaded,
        keys: BTreeMap<String, Key>,
        fixed_key: Option<RunKey>,
    ) -> Result<Self> {
        let fingerprints = keys.iter().map(|(column, key)| (column.clone(), key.fingerprint())).collect();
        Ok(Self {
            hash: job.policy_hash(&loaded.contents, &fingerprints),
            privacy: job.privacy.clone(),
            defaults: job.defaults.clone(),
            columns: job.columns.clone(),
            dependencies: job.dependencies.clone(),
            method: job.method.clone(),
            measures: job.measures.clone(),
            window: job.window.clone(),
            survey: None,
            output: job.output.clone(),
            hierarchies: loaded.hierarchies,
            files: loaded.contents,
            keys,
            fixed_key,
        })
    }

    /// Opens a policy file: a job file, whose source and sink may be missing and are ignored.
    ///
    /// An error about a file that is not a job file names the line, never what stands in it.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display();
        let unreadable = |error: &std::io::Error| Error::job(format!("{name} cannot be read: {}", io_reason(error)));
        let text = read_job_text(path).map_err(|error| unreadable(&error))?;
        let table = text.parse::<toml::Table>().map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = 1 + text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count();
            Error::job(format!("{name}:{line}: the line is not TOML, so this is not a job file"))
        })?;
        let base = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self::from_table(table, base).map_err(|error| error.context(name))
    }

    /// Creates a policy from tables of a job file; `source`, `sink` and `version` may be missing. Hierarchy files are read
    /// relative to `base`.
    pub fn from_table(table: toml::Table, base: &Path) -> Result<Self> {
        Self::of(&job_of(table)?, base)
    }

    /// A policy that was checked before, from its text and the contents of its hierarchy files. Keys are not sent: they
    /// are read where the policy is opened.
    pub(crate) fn reopen(text: &str, files: &BTreeMap<String, String>) -> Result<Self> {
        let job = job_of(toml::from_str(text).map_err(|error| Error::job(error.to_string()))?)?;
        // The key of the run comes beside the policy.
        Self::from_loaded(
            &job,
            load::hierarchies_from(&job, files)?,
            identifier::read_keys(&job, Path::new("."))?,
            None,
        )
    }

    /// The policy as the text of a job file without source and sink, from which [`reopen`](Self::reopen) makes it again.
    pub(crate) fn to_text(&self) -> Result<String> {
        let mut table =
            toml::Table::try_from(self.unplaced_job()).map_err(|error| Error::internal(error.to_string()))?;
        table.retain(|key, _| key != "source" && key != "sink");
        toml::to_string(&table).map_err(|error| Error::internal(error.to_string()))
    }

    /// A job with this policy and placeholder source and sink.
    fn unplaced_job(&self) -> Job {
        let (privacy, defaults, columns) = (self.privacy.clone(), self.defaults.clone(), self.columns.clone());
        let job = policy_job(privacy, defaults, columns, self.dependencies.clone(), self.method.clone());
        let (output, measures, window) = (self.output.clone(), self.measures.clone(), self.window.clone());
        Job { output, measures, window, ..job }
    }

    /// The same policy with some more quasi-identifiers withheld. Its identity is another one.
    pub(crate) fn withholding<'a>(&self, columns: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let mut job = self.unplaced_job();
        for column in columns {
            let column = job.columns.entry(column.to_owned()).or_insert_with(|| Column::new(Role::Quasi));
            column.withhold = true;
        }
        let hierarchies = load::hierarchies_from(&job, &self.files)?;
        let policy = Self::from_loaded(&job, hierarchies, self.keys.clone(), self.fixed_key.clone())?;
        Ok(Self { survey: self.survey.clone(), ..policy })
    }

    /// The key of a new run: the one that the policy fixes, or one from the operating system.
    pub(crate) fn new_run_key(&self) -> Result<RunKey> {
        self.fixed_key.clone().map_or_else(RunKey::random, Ok)
    }

    /// Whether the policy fixes the key of its runs.
    pub(crate) fn fixes_key(&self) -> bool {
        self.fixed_key.is_some()
    }

    /// The key that whoever owns the source keeps from one run to the next: that of `key-env`. A seed is none, for
    /// everybody may know it.
    pub(crate) fn lasting_key(&self) -> Option<&RunKey> {
        self.fixed_key.as_ref().filter(|_| self.method.key_env.is_some())
    }

    /// The sensitive-range policy of a column, when a rule names one.
    pub(crate) fn column_ranges(&self, column: &str) -> Ranges {
        self.privacy
            .range_diversity
            .iter()
            .find(|rule| rule.column == column)
            .map(|rule| rule.ranges.clone())
            .unwrap_or_default()
    }

    /// The smallest class that may be published.
    pub fn k(&self) -> u32 {
        self.privacy.k
    }

    /// Rules about sensitive columns in words, such as `3-diversity of diagnosis`.
    pub fn rules(&self) -> Vec<String> {
        self.privacy.rules().into_iter().map(|rule| rule.record.to_string()).collect()
    }

    /// A job that publishes a source under this policy: both are a path or the URL of an object store.
    pub fn to_job(&self, source: impl AsRef<str>, sink: impl Into<String>) -> Job {
        let job = self.unplaced_job();
        Job { source: Source::at_url(source.as_ref()), sink: Sink { url: sink.into(), ..job.sink }, ..job }
    }

    /// Returns the columns by name, as the policy defines them.
    pub fn columns(&self) -> &BTreeMap<String, Column> {
        &self.columns
    }

    /// How rows are grouped.
    pub fn method(&self) -> &MethodSpec {
        &self.method
    }

    /// Identity of the policy: changes with any rule, column, method parameter, line of a hierarchy or key.
    pub fn hash(&self) -> &str {
        &self.hash
    }
}

/// Placeholder for source and sink of a policy without a job.
const NOWHERE: &str = ".";

/// A job with placeholder source and sink.
pub(crate) fn policy_job(
    privacy: Privacy,
    defaults: Option<Defaults>,
    columns: BTreeMap<String, Column>,
    dependencies: Vec<Dependency>,
    method: MethodSpec,
) -> Job {
    let sink = Sink { url: NOWHERE.into(), options: Default::default(), format: None, releases: None };
    let (output, measures) = (Output::default(), MeasureSpec::default());
    let source = Source::at_url(NOWHERE);
    Job {
        version: 1,
        source,
        sink,
        privacy,
        defaults,
        columns,
        dependencies,
        method,
        output,
        measures,
        series: None,
        window: None,
    }
}

/// A job with the policy of a table and placeholder source and sink.
fn job_of(mut table: toml::Table) -> Result<Job> {
    let nowhere = || toml::Value::Table(toml::Table::from_iter([("url".to_owned(), toml::Value::from(NOWHERE))]));
    table.insert("source".to_owned(), nowhere());
    table.insert("sink".to_owned(), nowhere());
    table.entry("version").or_insert(toml::Value::Integer(1));
    let text = toml::to_string(&table).map_err(|error| Error::job(error.to_string()))?;
    Job::parse(&text, Path::new("policy"))
}

impl Job {
    /// Hash of privacy rules, columns, method, output and the contents of the hierarchy files; not of where rows come
    /// from or go to, nor of what the files are called.
    ///
    /// `hierarchies` holds the contents of each file by its path as the job writes it, `keys` the fingerprint of each pseudonym's key by column: another key
    /// is another policy, wherever it is kept.
    pub(crate) fn policy_hash(
        &self,
        hierarchies: &BTreeMap<String, String>,
        keys: &BTreeMap<String, String>,
    ) -> String {
        let mut columns = json!(self.columns);
        for (name, column) in &self.columns {
            if let Some(HierarchySpec::File(path)) = &column.hierarchy {
                let contents = hierarchies.get(path).map(|text| blake3::hash(text.as_bytes()).to_hex().to_string());
                columns[name.as_str()]["hierarchy"] = json!({ "contents": contents });
            }
            if let Some(IdentifierAction::Pseudonym(pseudonym)) = column.identifier_action() {
                let key = json!({ "key": keys.get(name), "encoding": pseudonym.encoding });
                columns[name.as_str()]["treat"] = json!({ "pseudonym": key });
            }
        }
        let mut policy: Value = json!({
            "version": self.version,
            "privacy": self.privacy,
            "defaults": self.defaults,
            "columns": columns,
            "method": self.method.without_unused(),
            "output": self.output,
        });
        if !self.dependencies.is_empty() {
            policy["dependencies"] = json!(self.dependencies);
        }
        blake3::hash(policy.to_string().as_bytes()).to_hex().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "privacy.k = 5\nprivacy.l-diversity = { column = \"ill\", l = 2 }\n[columns]\n\
                          age = { role = \"quasi\", hierarchy.widths = [5, 10] }\nill.role = \"sensitive\"\n\
                          [output]\nlevel = 3\n[method]\nname = \"mondrian\"\n";

    #[test]
    fn what_is_sent_is_the_policy_as_it_is() {
        let policy = Policy::from_table(toml::from_str(POLICY).unwrap(), Path::new(".")).unwrap();
        let again = Policy::reopen(&policy.to_text().unwrap(), &policy.files).unwrap();
        assert_eq!(again, policy);
        let stricter = policy.withholding(["age"]).unwrap();
        assert!(Policy::reopen(&stricter.to_text().unwrap(), &stricter.files).unwrap().columns["age"].withhold);
        assert_ne!(stricter.hash(), policy.hash());
    }

    #[test]
    fn a_job_is_checked_before_it_is_a_policy() {
        let mut job = job_of(toml::from_str(POLICY).unwrap()).unwrap();
        job.privacy.k = 1;
        let refused = Policy::of(&job, Path::new(".")).unwrap_err().to_string();
        assert!(refused.contains("privacy.k"), "{refused}");
    }

    #[test]
    fn files_that_are_no_job_are_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets");
        std::fs::write(&path, "root:x:0:0\nhunter2:y:1:1\n").unwrap();
        let refused = Policy::open(&path).unwrap_err().to_string();
        assert!(refused.contains("secrets:1: the line is not TOML"), "{refused}");
        assert!(!refused.contains("root") && !refused.contains("hunter2"), "{refused}");
    }

    #[test]
    #[cfg(unix)]
    fn endless_devices_end() {
        let refused = Policy::open(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(refused.contains("more than 16 megabytes"), "{refused}");
    }

    const JOB: &str = "version = 1\nsource = { url = \"in\" }\nsink = { url = \"out\" }\nprivacy = { k = 3 }\n\
                       columns = { a = { role = \"quasi\", hierarchy = \"a.csv\" } }\n";

    fn hash(text: &str, contents: &str) -> String {
        let files = [("a.csv", contents), ("b.csv", contents)];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        Job::parse(text, Path::new("job.toml")).unwrap().policy_hash(&files, &BTreeMap::new())
    }

    #[test]
    fn follows_the_policy_and_nothing_else() {
        let plain = hash(JOB, "x;*\ny;*\n");
        assert_eq!(plain.len(), 64);
        assert_eq!(
            plain,
            hash(&JOB.replace("\"in\"", "\"s3://other/\"").replace("\"out\"", "\"there\""), "x;*\ny;*\n")
        );
        assert_eq!(plain, hash(&JOB.replace("a.csv", "b.csv"), "x;*\ny;*\n"));
        assert_eq!(plain, hash(&JOB.replace("k = 3", "k = 3, max-suppression = 0.05"), "x;*\ny;*\n"));
        let unused = format!("{JOB}method.toc = {{ s = 40 }}\n");
        assert_eq!(plain, hash(&unused, "x;*\ny;*\n"), "options of another method");
        for other in [
            hash(JOB, "x;*\nz;*\n"),
            hash(&JOB.replace("k = 3", "k = 4"), "x;*\ny;*\n"),
            hash(&JOB.replace("quasi", "sensitive"), "x;*\ny;*\n"),
            hash(&format!("{JOB}method = {{ seed = 7 }}\n"), "x;*\ny;*\n"),
            hash(&format!("{JOB}method.auto = {{ effort = \"fast\" }}\n"), "x;*\ny;*\n"),
            hash(&format!("{JOB}output = {{ level = 7 }}\n"), "x;*\ny;*\n"),
            hash(&format!("{JOB}dependencies = [{{ from = [\"a\"], to = [\"b\"] }}]\n"), "x;*\ny;*\n"),
        ] {
            assert_ne!(plain, other);
        }
    }

    #[test]
    fn follows_the_key_and_not_its_place() {
        let of = |place: &str, key: &str| {
            let text = format!("{JOB}[columns.n]\nrole = \"identifier\"\ntreat.pseudonym.{place}\n");
            let keys = [("n".to_owned(), key.to_owned())].into();
            let text = text.replace("columns = { a = { role = \"quasi\", hierarchy = \"a.csv\" } }\n", "");
            Job::parse(&text, Path::new("job.toml")).unwrap().policy_hash(&BTreeMap::new(), &keys)
        };
        assert_eq!(of("key-env = \"A\"", "1"), of("key-file = \"b\"", "1"));
        assert_ne!(of("key-env = \"A\"", "1"), of("key-env = \"A\"", "2"));
    }
}
