//! The identity of a policy: a hash of everything that decides what a release looks like, and of nothing else.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::identifier::IdentifierAction;
use super::model::{HierarchySpec, Job};

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
    use std::path::Path;

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
