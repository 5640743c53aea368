//! A survey in a file: what one table looks like, for streams and runs over others like it.
//!
//! The file holds values of columns (ends, words, how often sensitive values occur) and no rows. It is as private as the
//! table: only its owner may read it. It names the policy and the columns that it was made for, and is refused for others.

use std::io::Write;
use std::path::Path;

use datafusion::arrow::datatypes::DataType;
use prost::Message;

use super::wire::SurveyMessage;
use super::{Survey, choices};
use crate::binding::BoundPolicy;
use crate::encode::ColumnStats;
use crate::error::{Error, Result, io_reason, unwritable_file};
use crate::policy::{Nulls, Unknown};

/// What a survey file begins with, its version last.
const MAGIC: &[u8] = b"throng survey 1\n";

/// The part of [`MAGIC`] that every version begins with.
const KIND: &[u8] = b"throng survey ";

#[derive(Clone, PartialEq, Message)]
struct SurveyFile {
    /// Identity of the policy.
    #[prost(string, tag = "1")]
    policy: String,
    /// Names and types of the columns that were surveyed.
    #[prost(string, repeated, tag = "2")]
    columns: Vec<String>,
    #[prost(message, optional, tag = "3")]
    survey: Option<SurveyMessage>,
}

/// A survey as the bytes of a file.
pub(crate) fn encode_survey(survey: &Survey, bound_policy: &BoundPolicy) -> Vec<u8> {
    let message = SurveyFile {
        policy: bound_policy.policy.hash.clone(),
        columns: surveyed_columns(bound_policy),
        survey: Some(SurveyMessage::from(survey)),
    };
    let body = message.encode_to_vec();
    [MAGIC, blake3::hash(&body).as_bytes(), &body].concat()
}

/// The survey of a file, if it was made for this policy and these columns.
pub(crate) fn decode_survey(bytes: &[u8], bound_policy: &BoundPolicy) -> Result<Survey> {
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return Err(Error::input(match bytes.starts_with(KIND) {
            true => "the survey is of another version of throng; take it again with this one",
            false => "the survey file is not one that `throng survey` has written",
        }));
    };
    let damaged = || Error::input("the survey file is damaged; take the survey again");
    let (hash, body) = rest.split_at_checked(blake3::OUT_LEN).ok_or_else(damaged)?;
    if blake3::hash(body).as_bytes().as_slice() != hash {
        return Err(damaged());
    }
    let file = SurveyFile::decode(body).map_err(|_| damaged())?;
    if file.policy != bound_policy.policy.hash {
        return Err(Error::job(
            "the survey was taken under another policy (rules, columns, method or a hierarchy have changed since); take it \
             again with `throng survey`",
        ));
    }
    if file.columns != surveyed_columns(bound_policy) {
        return Err(Error::input(
            "the survey is of a table whose columns have other names or types; take it again with `throng survey`",
        ));
    }
    let survey = Survey::try_from(file.survey.ok_or_else(damaged)?).map_err(|_| damaged())?;
    let (quasi, sensitive) = (bound_policy.quasi.len(), bound_policy.sensitive.len());
    let fits = survey.stats.len() == quasi && survey.sensitive.len() == sensitive;
    let cuts = survey.tree.nodes.iter().all(|cut| (cut.axis as usize) < quasi);
    if fits && cuts { Ok(survey) } else { Err(damaged()) }
}

/// Names and types of the columns that a survey reads. The order of a table's columns makes no difference to what is found,
/// but to where it stands.
fn surveyed_columns(bound_policy: &BoundPolicy) -> Vec<String> {
    let quasi = bound_policy.quasi.iter().map(|column| (&column.name, &column.data_type));
    let sensitive = bound_policy.sensitive.iter().map(|column| (&column.name, &column.data_type));
    quasi.chain(sensitive).map(|(name, data_type)| format!("{name}: {}", plain_type(data_type))).collect()
}

/// A type without the way in which its values are held: text of a file and text of a stream are the same.
fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::Utf8 | DataType::LargeUtf8 => &DataType::Utf8View,
        other => other,
    }
}

/// Writes a survey file that only its owner may read; it is there whole, or not at all.
pub(crate) fn write_survey(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = create_private(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&part, path)
    });
    written.map_err(|error| {
        // A part that is left behind is no survey, and holds no more than one.
        let _ = std::fs::remove_file(&part);
        unwritable_file(path, &error)
    })
}

fn create_private(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Reads a survey file for a run over a whole table.
pub(crate) fn open_survey(path: &Path, bound_policy: &BoundPolicy) -> Result<Survey> {
    let named = |error: Error| error.context(path.display());
    let file = std::fs::File::open(path).map_err(|error| named(Error::input(io_reason(&error))))?;
    let bytes = crate::storage::bounded::read_at_most(file, crate::policy::MAX_SURVEY_BYTES, "survey file");
    let bytes = bytes.map_err(|error| named(Error::input(io_reason(&error))))?;
    decode_survey(&bytes, bound_policy).map_err(named)
}

impl Survey {
    /// The survey for a table of `rows` rows that may hold values which the surveyed one did not. They get the codes of
    /// their neighbours, so no code stands for a single value any more; nulls and unknown values get a code where the policy
    /// lets them pass.
    pub(crate) fn loosened(mut self, rows: u64, bound_policy: &BoundPolicy) -> Result<Self> {
        refuse_compared(bound_policy)?;
        let k = bound_policy.policy.privacy.k;
        if rows < u64::from(k) {
            return Err(Error::privacy(format!(
                "the input holds {rows} rows, fewer than k = {k}; lower privacy.k or wait for more rows"
            )));
        }
        for (stats, column) in self.stats.iter_mut().zip(&bound_policy.quasi) {
            let passes = column.nulls == Nulls::Category;
            match stats {
                ColumnStats::Line { whole, nulls, varied, .. } => {
                    (*whole, *varied) = (false, true);
                    *nulls = (*nulls).max(u64::from(passes));
                }
                ColumnStats::Leaves { unknown, nulls, .. } => {
                    *nulls = (*nulls).max(u64::from(passes));
                    *unknown = (*unknown).max(u64::from(column.unknown == Unknown::Top));
                }
                ColumnStats::Words { distinct, nulls, words } => {
                    *nulls = (*nulls).max(u64::from(passes));
                    *distinct = (*distinct).max(words.len() as u64 + 1);
                }
            }
        }
        (self.rows, self.members, self.dropped) = (rows, None, 0);
        Ok(self)
    }
}

/// Refuses policies whose rules are about the very table that is published.
fn refuse_compared(bound_policy: &BoundPolicy) -> Result<()> {
    let privacy = &bound_policy.policy.privacy;
    let compared = privacy.rules().into_iter().find(|listed| listed.rule.needs().table);
    let reason = match compared {
        Some(listed) => format!("{} compares classes with the very table that is published", listed.key),
        None if privacy.max_loss.is_some() => "privacy.max-loss is measured against the very table".to_owned(),
        None if choices::presence_bounds(bound_policy).is_some() => {
            "privacy.presence needs the public rows surveyed".to_owned()
        }
        None if !bound_policy.policy.dependencies.is_empty() => "dependencies are counted in the very table".to_owned(),
        None => return Ok(()),
    };
    Err(Error::job(format!("a survey of another table cannot be used: {reason}; run without --survey")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::{Field, Schema};

    use super::*;
    use crate::encode::SensitiveDomain;
    use crate::grouping::entry::Tuned;
    use crate::grouping::split::CellTree;
    use crate::policy::{Column, Policy};

    fn bound(k: u32, age: DataType) -> BoundPolicy {
        let policy =
            Policy::builder(k).column("age", Column::quasi()).column("ill", Column::sensitive()).build().unwrap();
        let fields = vec![Field::new("age", age, true), Field::new("ill", DataType::Utf8View, true)];
        BoundPolicy::new(Arc::new(policy), Arc::new(Schema::new(fields))).unwrap()
    }

    fn survey() -> Survey {
        let line = ColumnStats::Line { min: 1.0, max: 9.0, whole: true, nulls: 0, varied: true, quantiles: Vec::new() };
        Survey {
            rows: 70,
            members: None,
            dropped: 3,
            stats: vec![line],
            sensitive: vec![SensitiveDomain { min: 0.0, max: 0.0, distinct: 4, reference: None }],
            tree: CellTree::single_cell(),
            tuned: Tuned::default(),
            frequencies: Vec::new(),
            slices: Vec::new(),
        }
    }

    #[test]
    fn a_file_is_read_under_its_own_policy_alone() {
        let bytes = encode_survey(&survey(), &bound(5, DataType::Int32));
        let read = |bytes: &[u8], bound_policy: &BoundPolicy| decode_survey(bytes, bound_policy);
        let again = read(&bytes, &bound(5, DataType::Int32)).unwrap();
        assert_eq!((again.rows, again.dropped, again.stats), (70, 3, survey().stats));
        let refused = |bytes: &[u8], bound_policy: &BoundPolicy| read(bytes, bound_policy).unwrap_err().to_string();
        assert!(refused(&bytes, &bound(6, DataType::Int32)).contains("under another policy"));
        assert!(refused(&bytes, &bound(5, DataType::Int64)).contains("other names or types"));
        assert!(refused(b"PAR1", &bound(5, DataType::Int32)).contains("not one that"));
        let newer = [b"throng survey 2\n", &bytes[MAGIC.len()..]].concat();
        assert!(refused(&newer, &bound(5, DataType::Int32)).contains("another version"));
        for at in MAGIC.len()..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(refused(&damaged, &bound(5, DataType::Int32)).contains("damaged"), "byte {at}");
            assert!(refused(&bytes[..at], &bound(5, DataType::Int32)).contains("damaged"), "cut at {at}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn only_the_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("people.survey");
        for _ in 0..2 {
            write_survey(&path, b"x").unwrap();
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn codes_of_another_table_stand_for_no_single_value() {
        let loose = survey().loosened(9, &bound(5, DataType::Int32)).unwrap();
        assert_eq!((loose.rows, loose.dropped), (9, 0));
        let ColumnStats::Line { whole, nulls, .. } = loose.stats[0] else { panic!("a line") };
        assert!(!whole && nulls == 1);
    }
}
