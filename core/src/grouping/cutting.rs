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
    remarks
}
