//! A job drafted from a profile: a commented job file, and the hierarchy files that it names.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::propose::to_level_csv;
use super::{Column, Profile, Proposal};
use crate::error::{Error, Result, unwritable_file};
use crate::policy::{CalendarUnit, Role};
use crate::storage::is_url;

/// A job file and its hierarchies, not written yet.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    /// Text of the job file.
    pub job: String,
    /// Hierarchy files: path below the job's folder, and content. They hold values of the data.
    pub hierarchies: Vec<(String, Vec<u8>)>,
    path: PathBuf,
}

/// Folder of proposed hierarchies beside the job file.
const FOLDER: &str = "hierarchies";

/// Characters up to which remarks stand below each other.
const WIDEST: usize = 80;

/// Most values that a sensitive column must show in every class.
const MAX_DIVERSE: usize = 3;

impl Draft {
    /// Drafts the job at `path` for the dataset at `source` (as written on the command line).
    pub(crate) fn new(profile: &Profile, source: &str, path: &Path) -> Result<Self> {
        let k = match profile.rows {
            0..100 => 2,
            100..1000 => 5,
            _ => 10,
        };
        let (source, sink) = relative_locations(source, path)?;
        let mut hierarchies = Vec::new();
        let mut job = format!(
            "# Drafted by `throng profile`. Roles are guesses from names and content: check every line before you publish.\n\
             #\n#     throng check {name}\n#     throng run {name}\n\
             version = 1\n\n\
             [source]\nurl = {source}\n\n\
             [sink]\n{sink:<37} # a folder that holds releases and nothing else\n\n\
             [privacy]\n\
             k = {k:<34}# every combination of published quasi-identifiers occurs {k} times or more\n",
            name =
                path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned()),
            source = toml_string(&source),
            sink = format!("url = {}", toml_string(&sink)),
        );
        job += &draft_rules(profile, k);
        job +=
            "max-suppression = 0.05                # the run fails rather than leave out more than one row in twenty\n";
        job += "\n# Every column of the source needs a role: a forgotten one could leak data.\n[columns]\n";
        let parts: [(Role, &str); 4] = [
            (Role::Identifier, "Identifiers point at one person on their own, or are best left out: dropped."),
            (
                Role::Quasi,
                "Quasi-identifiers point at one person together: published as coarsely as needed, and no more.",
            ),
            (Role::Sensitive, "Sensitive columns are published unchanged, and guarded by the rules above."),
            (Role::Kept, "Kept columns are published unchanged."),
        ];
        for (role, title) in parts {
            let columns: Vec<&Column> = profile.columns.iter().filter(|column| column.role == role).collect();
            if columns.is_empty() {
                continue;
            }
            job += &format!("# {title}\n");
            let lines =
                columns.into_iter().map(|column| column_line(column, &mut hierarchies)).collect::<Result<Vec<_>>>()?;
            let widest = lines.iter().map(|(setting, _)| setting.chars().count()).max().unwrap_or(0).min(WIDEST);
            lines.iter().for_each(|(setting, remark)| job += &format!("{setting:<widest$}   # {remark}\n"));
            job += "\n";
        }
        job += "[method]\nname = \"auto\"                         # the least loss for most tables\n\
                # auto = { effort = \"balanced\" }      # fast, balanced, thorough, best\n\
                # key-env = \"THRONG_KEY\"              # names a secret: same rows, policy and secret, same release\n";
        Ok(Self { job, hierarchies, path: path.to_owned() })
    }

    /// Refuses to overwrite existing files.
    pub(crate) fn ensure_absent(path: &Path) -> Result<()> {
        if !path.exists() {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "{} already exists; move it, write elsewhere, or overwrite it with --force",
            path.display()
        )))
    }

    /// Writes the files; those with values of the data can be read by their owner only. Nothing is overwritten unless
    /// `force` says so.
    pub(crate) fn write_files(&self, force: bool) -> Result<()> {
        let base = parent_folder(&self.path);
        let targets = [self.path.clone()].into_iter().chain(self.hierarchies.iter().map(|(name, _)| base.join(name)));
        if !force {
            targets.into_iter().try_for_each(|path| Self::ensure_absent(&path))?;
        }
        for (name, content) in &self.hierarchies {
            write_file(&base.join(name), content, true)?;
        }
        write_file(&self.path, self.job.as_bytes(), false)
    }
}

fn parent_folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn write_file(path: &Path, content: &[u8], private: bool) -> Result<()> {
    let failed = |error: std::io::Error| unwritable_file(path, &error);
    fs::create_dir_all(parent_folder(path)).map_err(failed)?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    if private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = private;
    options.open(path).and_then(|mut file| file.write_all(content)).map_err(failed)
}

/// Source and sink as the job writes them: relative paths start at its folder, and the sink lies outside the source.
fn relative_locations(source: &str, path: &Path) -> Result<(String, String)> {
    if is_url(source) {
        return Ok((source.to_owned(), "release".into()));
    }
    let base = std::path::absolute(parent_folder(path))?;
    let base = base.canonicalize().unwrap_or(base);
    let data = std::path::absolute(source)?;
    let data = data.canonicalize().unwrap_or(data);
    let sink = match base.starts_with(&data) {
        // The job lies inside the source, so what stands beside the job would be read as input.
        true => format!("{}-release", data.display()),
        false => "release".into(),
    };
    let near = data.strip_prefix(&base).ok().filter(|near| !near.as_os_str().is_empty());
    Ok((near.unwrap_or(&data).display().to_string(), sink))
}

/// A rule for every sensitive column that can have one.
fn draft_rules(profile: &Profile, k: u32) -> String {
    let mut text = String::new();
    let mut rules = Vec::new();
    for column in profile.columns.iter().filter(|column| column.role == Role::Sensitive) {
        match feasible_diversity(column, k) {
            Some(l) => rules.push(format!("{{ column = {}, l = {l} }}", toml_string(&column.name))),
            None => {
                let name = comment_text(&column.name);
                text += &format!(
                    "# `{name}`: one value is so common that no class is sure to hold another; guard it in some other way\n"
                );
            }
        }
    }
    match rules.len() {
        0 => {}
        1 => text += &format!("l-diversity = {}   # at least this many values in every class\n", rules[0]),
        _ => {
            text +=
                "l-diversity = [                       # at least this many values of these columns in every class\n";
            rules.iter().for_each(|rule| text += &format!("    {rule},\n"));
            text += "]\n";
        }
    }
    text
}

/// The most values, up to three, that every class of k rows can be expected to hold.
fn feasible_diversity(column: &Column, k: u32) -> Option<usize> {
    let stats = &column.stats;
    let values = (stats.rows - stats.nulls).max(1) as f64;
    let enough = |l: &usize| {
        let commonest: u64 = stats.counts.iter().take(l - 1).map(|(count, _)| count).sum();
        let counted = !stats.counts.is_empty();
        stats.distinct >= *l as u64 && (!counted || 1.0 - commonest as f64 / values >= 2.0 / f64::from(k))
    };
    (2..=MAX_DIVERSE).rev().find(enough)
}

/// The line of a column, and the remark behind it.
fn column_line(column: &Column, hierarchies: &mut Vec<(String, Vec<u8>)>) -> Result<(String, String)> {
    let role = match column.role {
        Role::Identifier => "identifier",
        Role::Quasi => "quasi",
        Role::Sensitive => "sensitive",
        Role::Kept => "kept",
    };
    let mut options = format!("role = \"{role}\"");
    let mut remark = column.reason.clone();
    match column.propose_hierarchy() {
        _ if column.role != Role::Quasi => {}
        Proposal::Levels(lines, by_beginning) => {
            let taken: BTreeSet<&String> = hierarchies.iter().map(|(name, _)| name).collect();
            let name = file_name(&column.name, &taken);
            options += &format!(", hierarchy = {}", toml_string(&name));
            remark += if by_beginning {
                "; groups by common beginnings and frequency, edit them"
            } else {
                "; groups by frequency, edit them"
            };
            hierarchies.push((name, level_csv(&lines)?));
        }
        other => options += &inline_hierarchy(&other).map(|table| format!(", hierarchy = {table}")).unwrap_or_default(),
    }
    Ok((format!("{} = {{ {options} }}", toml_key(&column.name)), comment_text(&remark)))
}

/// A proposal as written in a job file; `None` for one that needs a file, or nothing.
pub(crate) fn inline_hierarchy(proposal: &Proposal) -> Option<String> {
    match proposal {
        Proposal::None | Proposal::Levels(..) => None,
        Proposal::Widths(widths) => {
            let widths: Vec<String> = widths.iter().map(ToString::to_string).collect();
            Some(format!("{{ widths = [{}] }}", widths.join(", ")))
        }
        Proposal::Calendar(units) => {
            let units: Vec<String> = units.iter().map(|unit| format!("\"{}\"", unit_name(*unit))).collect();
            Some(format!("{{ calendar = [{}] }}", units.join(", ")))
        }
        Proposal::Mask => Some("{ mask = \"right\" }".into()),
    }
}

/// Lines as a level file.
pub(crate) fn level_csv(lines: &[Vec<String>]) -> Result<Vec<u8>> {
    to_level_csv(lines).map_err(|error| Error::internal(error.to_string()))
}

fn unit_name(unit: CalendarUnit) -> &'static str {
    match unit {
        CalendarUnit::Day => "day",
        CalendarUnit::Month => "month",
        CalendarUnit::Quarter => "quarter",
        CalendarUnit::Year => "year",
        CalendarUnit::Decade => "decade",
    }
}

/// A file for a column's hierarchy, whatever the column is called.
fn file_name(column: &str, taken: &BTreeSet<&String>) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' };
    let stem: String = column.chars().map(safe).collect();
    let numbered = |number: usize| match number {
        1 => format!("{FOLDER}/{stem}.csv"),
        _ => format!("{FOLDER}/{stem}-{number}.csv"),
    };
    (1..).map(numbered).find(|name| !taken.contains(name)).unwrap_or_default()
}

/// A TOML key: bare where it may be.
fn toml_key(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if bare { name.to_owned() } else { toml_string(name) }
}

/// A basic string: what JSON escapes, TOML reads, also as a key.
fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Text that stays on the line of a comment.
fn comment_text(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_files_of_any_name() {
        assert_eq!(toml_key("native-country"), "native-country");
        assert_eq!(
            toml::from_str::<toml::Table>(&format!("{} = 1", toml_key("a \"b\"\n.c"))).unwrap().keys().next().unwrap(),
            "a \"b\"\n.c"
        );
        let (first, second) = ("hierarchies/a_b.csv".to_owned(), "hierarchies/a_b-2.csv".to_owned());
        assert_eq!(file_name("a/b", &BTreeSet::new()), first);
        assert_eq!(file_name("a b", &BTreeSet::from([&first])), second);
    }

    #[test]
    fn the_sink_is_never_inside_the_source() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let (source, sink) = relative_locations(data.to_str().unwrap(), &folder.path().join("job.toml")).unwrap();
        assert_eq!((source.as_str(), sink.as_str()), ("data", "release"));
        let (source, sink) = relative_locations(data.to_str().unwrap(), &data.join("job.toml")).unwrap();
        assert!(sink.ends_with("data-release") && !Path::new(&sink).starts_with(&source));
    }
}
