//! The options of methods that cut a cell into subspaces before they cluster it.

use super::entry::{Remark, Setting};
use super::options::{Key, Kind, Options};
use crate::grouping::split::Cut;
use crate::grouping::split::widest::{Ties, Widest, Width};

/// Rows per subspace.
pub(crate) const S: Key = Key::new(
    "s",
    "Rows per subspace: between s and 2s-1. By default, `toc` and `upc` find it from a sample, the others use what \
     keeps them quick.",
    Kind::Count { least: 1 },
);

/// How subspaces are split.
pub(crate) const SPLIT: Key = Key::new(
    "split",
    "How subspaces are split. Defaults to `widest`. `auto` always splits by gain.",
    Kind::Word(&[
        ("widest", "The widest attribute at its rank median; ties are divided."),
        ("widest-boundary", "The widest attribute at the value boundary nearest to its median."),
        ("gain", "The attribute and boundary that lower the mean pairwise loss most."),
    ]),
);

/// The unit in which widths compare.
pub(crate) const WIDTH: Key = Key::new(
    "width",
    "How the width of an attribute is measured when splitting. Defaults to `normalised`.",
    Kind::Word(&[("normalised", "As a share of the attribute's domain."), ("raw", "In the attribute's own unit.")]),
);

/// What happens to rows that no group took in its subspace.
pub(crate) const LEFT_OVER: Key = Key::new(
    "left-over",
    "Where rows go that no cluster took in its subspace. Defaults to `increment` for `toc`, to `resulting` for `upc`.",
    Kind::Word(&[
        ("increment", "To the cluster whose score grows least."),
        ("resulting", "To the cluster whose score with the row is least."),
        ("suppress", "Nowhere: they are suppressed, and no repair places them."),
    ]),
);

/// Rows of the sample on which parameters are tuned.
const TUNING_ROWS: Key = Key::new(
    "tuning-rows",
    "Rows that parameters are tuned on, drawn with replacement from the sample of the survey. Defaults to the sample itself.",
    Kind::Count { least: 1 },
);
const TUNING_ROUNDS: Key = Key::new(
    "tuning-rounds",
    "Rounds of tuning: delta is tried at 2 + 4 + ... + 2^rounds points, s at so many sizes. At most 10; defaults to 3.",
    Kind::Count { least: 1 },
);
const TUNING_EPSILON: Key = Key::new(
    "tuning-epsilon",
    "By how much the score may change when s is doubled for the last time. Defaults to 0.01.",
    Kind::Number { least: 0.0 },
);

/// Most rounds of tuning: the last tries some 1,000 values.
const MAX_ROUNDS: usize = 10;

/// The options of methods that are tuned on a sample.
pub(crate) const TUNING: [Key; 3] = [TUNING_ROWS, TUNING_ROUNDS, TUNING_EPSILON];

/// How hard a job asks to search.
pub(crate) fn tuning_from_options(options: &Options) -> Tuning {
    let usual = Tuning::default();
    Tuning {
        rows: options.count(&TUNING_ROWS),
        max_iterations: options.count(&TUNING_ROUNDS).map_or(usual.max_iterations, |n| n.min(MAX_ROUNDS) as u32),
        epsilon: options.number(&TUNING_EPSILON).unwrap_or(usual.epsilon),
    }
}

/// How hard to search for parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// Rows drawn with replacement from the sample; none: the sample itself.
    pub rows: Option<usize>,
    /// Levels of the search: delta is tried at 2 + 4 + ... + 2^levels points, s at k, 2k, 4k, ... so many times.
    pub max_iterations: u32,
    /// s has converged when a doubling changes the score by less.
    pub epsilon: f64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { rows: None, max_iterations: 3, epsilon: 0.01 }
    }
}

/// The split that a job asks for.
pub(crate) fn split_from_options(options: &Options) -> Cut {
    let width = if options.text(&WIDTH) == Some("raw") { Width::Raw } else { Width::Normalised };
    match options.text(&SPLIT) {
        Some("gain") => Cut::Gain,
        split => {
            let boundary = split == Some("widest-boundary");
            Cut::Widest(Widest { width, ties: if boundary { Ties::Boundary } else { Ties::Divide }, next: boundary })
        }
    }
}

/// Rows per subspace: as the job says, as the sample says, or four groups.
pub(crate) fn tuned_least(setting: &Setting<'_>) -> usize {
    setting.options.count(&S).or(setting.tuned.s).unwrap_or(4 * setting.k)
}

/// Rows per subspace: as the job says, or `usual`, but never fewer than two groups.
pub(crate) fn min_subspace_rows(setting: &Setting<'_>, usual: usize) -> usize {
    setting.options.count(&S).unwrap_or_else(|| usual.max(2 * setting.k))
}

/// What is wrong with the options of cutting.
pub(crate) fn check_options(setting: &Setting<'_>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if let Some(s) = setting.options.count(&S)
        && s < setting.k
    {
        let message = format!("a subspace of {s} rows cannot hold a group of k = {}", setting.k);
        remarks.push(Remark::error("method.s", message, "s is usually 4 to 32 times k; omit it to have it chosen"));
    }
    if setting.options.has(&WIDTH) && setting.options.text(&SPLIT) == Some("gain") {
        let message = "is an option of widest splits, but the split is `gain`";
        remarks.push(Remark::error("method.width", message, ""));
    }
    if setting.options.count(&TUNING_ROUNDS).is_some_and(|rounds| rounds > MAX_ROUNDS) {
        let message = format!("more than {MAX_ROUNDS} rounds would try thousands of values");
        remarks.push(Remark::error("method.tuning-rounds", message, "6 find the optimum of the thesis"));
    }
    if setting.presence.is_some() && setting.options.text(&LEFT_OVER) == Some("suppress") {
        let message = "`suppress` would make members stand out among the public rows around them";
        remarks.push(Remark::error("method.left-over", message, "use `increment` or `resulting`"));
    }
    remarks
}
