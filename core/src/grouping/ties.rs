//! The option `ties`, which methods share by name: each has words of its own for it.

use super::entry::{Remark, Setting};
use super::options::{Key, Kind};

/// Which of equals a method takes.
pub(crate) const TIES: Key = Key::new(
    "ties",
    "How ties are broken: between equally frequent sensitive values for a bucket of `kl-redinfo`, `loss` (default) \
     or `place`; between equally good mergers of `pair-enum`, `complete` (default) or `first`.",
    Kind::Word(&[
        ("place", "Those whose next row comes first: cheap."),
        ("loss", "Those with which the bucket loses least."),
        ("complete", "The merger that preserves more instances completely, then the first."),
        ("first", "The first merger, as the thesis prints it."),
    ]),
);

/// Refuses a word that another method has for it.
pub(crate) fn check_ties(setting: &Setting<'_>, words: [&str; 2]) -> Option<Remark> {
    let word = setting.options.text(&TIES).filter(|word| !words.contains(word))?;
    let message = format!("`{word}` belongs to another method");
    let [usual, other] = words;
    Some(Remark::error("method.ties", message, format!("expected `{usual}` or `{other}`")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::options::{Options, Value};
    use crate::methods::{kl_redinfo, pair_enum};

    #[test]
    fn methods_refuse_each_others_words() {
        for (word, of_pairs) in [("complete", true), ("first", true), ("place", false), ("loss", false)] {
            let options = Options::default().with_option(&TIES, Value::Text(word.into()));
            let mut setting = Setting::new(&options, 2);
            setting.sensitive = Some(vec!["s".into()]);
            assert_eq!((pair_enum::ENTRY.check)(&setting).is_empty(), of_pairs, "{word}");
            assert_eq!((kl_redinfo::ENTRY.check)(&setting).is_empty(), !of_pairs, "{word}");
        }
    }
}
