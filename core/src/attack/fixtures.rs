//! The tables of the thesis of Toth.

use super::Fraction;

/// Fig. 2.2 and 2.1: zip and age of ten people (Elizabeth, Clara, Julie, Ada, Sara, Bob, Taylor, Ashley, Amanda,
/// Jesper), and of those in the private table (all but the first and the last).
pub(crate) fn p1_t1() -> (Vec<[u32; 2]>, Vec<[u32; 2]>) {
    let rows = [
        [5370, 25],
        [5370, 25],
        [5370, 25],
        [5370, 27],
        [5371, 27],
        [5371, 27],
        [5372, 25],
        [5372, 25],
        [5373, 25],
        [5372, 27],
    ];
    (rows.to_vec(), rows[1..9].to_vec())
}

/// Fig. 2.6 and 2.5: zip and age of Julie, Ada, Sara, James, Mary, Barbara, and of Julie, Sara, James, Barbara.
pub(crate) fn p2_t2() -> (Vec<[u32; 2]>, Vec<[u32; 2]>) {
    let rows = [[5370, 21], [5370, 27], [5371, 27], [5372, 32], [5376, 38], [5376, 39]];
    (rows.to_vec(), [0, 2, 3, 5].map(|row| rows[row]).to_vec())
}

pub(crate) fn shares(list: &[(u64, u64)]) -> Vec<Fraction> {
    list.iter().map(|&share| share.into()).collect()
}
