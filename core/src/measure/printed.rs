//! Errata of chapter 6 of Tinabo's thesis: what its own formulas say of the scores that it prints.
//!
//! Rows are k = l = 2 to 14; columns are l-mondrian, g-anatomy, and kl-redInfo without its modifications, with systematic
//! incorporation, with buckets and cells, with sorting, and with all three. Where two tables print different scores, it is
//! the later one, but for one that is ten times too large.

use super::wilcoxon::signed_rank;

type Printed = [[u32; 7]; 13];

/// Rows of the generated patients, and of Adult.
const PATIENTS: u32 = 30_200;
const ADULT: u32 = 30_162;

const DP_OF_PATIENTS: Printed = [
    [91_473, 86_659, 84_252, 72_216, 78_956, 80_641, 62_587],
    [114_821, 108_778, 105_756, 90_648, 99_108, 101_223, 78_562],
    [141_843, 132_199, 128_527, 110_166, 120_448, 123_019, 95_477],
    [216_855, 165_302, 157_932, 121_085, 141_720, 146_878, 151_607],
    [275_847, 210_993, 202_354, 159_161, 193_349, 189_396, 184_606],
    [537_525, 387_133, 376_379, 322_611, 352_721, 360_249, 279_596],
    [653_152, 455_699, 443_040, 379_749, 415_192, 424_053, 329_116],
    [725_257, 506_214, 492_152, 421_845, 461_217, 471_060, 365_599],
    [761_364, 513_259, 499_002, 427_716, 467_636, 477_616, 370_687],
    [786_277, 539_672, 524_681, 449_727, 491_702, 502_195, 389_763],
    [789_857, 811_271, 788_735, 676_059, 749_157, 754_932, 585_918],
    [1_083_205, 948_312, 921_970, 790_260, 864_018, 882_457, 684_892],
    [1_083_205, 948_312, 921_970, 790_260, 864_018, 882_457, 684_892],
];
const NCP_OF_PATIENTS: Printed = [
    [20_341, 19_371, 19_070, 17_735, 17_800, 17_893, 17_482],
    [25_533, 24_323, 23_937, 22_262, 22_344, 22_460, 21_944],
    [31_542, 29_560, 29_091, 27_055, 27_155, 27_297, 26_669],
    [50_461, 49_321, 48_382, 44_295, 44_496, 44_780, 43_521],
    [83_579, 69_538, 68_436, 63_646, 63_882, 64_214, 62_738],
    [119_532, 86_563, 95_191, 79_229, 79_522, 89_935, 78_099],
    [145_244, 101_894, 100_280, 93_261, 93_606, 94_093, 91_931],
    [161_279, 113_189, 111_396, 103_599, 103_982, 104_523, 102_121],
    [169_307, 114_765, 112_946, 105_041, 105_429, 105_978, 103_543],
    [174_848, 120_671, 128_759, 110_446, 120_855, 121_432, 108_871],
    [175_644, 181_400, 178_526, 166_030, 166_644, 167_511, 163_662],
    [240_877, 212_042, 208_683, 194_076, 194_794, 195_808, 191_308],
    [240_877, 212_042, 208_683, 194_076, 194_794, 195_808, 191_308],
];
const DP_OF_ADULT: Printed = [
    [136_183, 119_160, 107_812, 85_114, 96_463, 102_137, 68_092],
    [155_527, 136_086, 123_126, 97_204, 110_165, 116_645, 77_764],
    [171_242, 149_837, 128_567, 107_026, 121_297, 125_432, 100_621],
    [181_186, 158_537, 135_439, 113_241, 128_340, 133_889, 105_593],
    [188_753, 165_159, 149_429, 117_970, 133_700, 141_565, 116_376],
    [215_012, 180_635, 164_384, 141_882, 158_133, 156_259, 127_506],
    [227_067, 181_184, 173_928, 159_417, 166_673, 165_300, 129_534],
    [231_156, 202_261, 182_998, 164_472, 173_735, 173_367, 135_578],
    [285_732, 250_015, 226_204, 178_582, 202_393, 214_299, 142_866],
    [343_044, 300_478, 271_861, 214_627, 243_244, 257_553, 171_702],
    [455_246, 424_591, 384_153, 303_279, 343_716, 363_935, 242_623],
    [552_877, 523_767, 464_361, 345_548, 404_954, 434_658, 356_438],
    [586_458, 558_150, 485_946, 441_536, 431_741, 449_843, 433_229],
];
const NCP_OF_ADULT: Printed = [
    [35_464, 29_865, 27_020, 21_824, 23_643, 25_792, 19_567],
    [40_502, 34_107, 30_859, 24_924, 27_001, 29_456, 22_346],
    [44_594, 37_553, 33_977, 27_443, 29_730, 32_432, 24_604],
    [47_184, 39_734, 35_950, 29_036, 31_456, 34_315, 25_032],
    [49_154, 41_393, 36_451, 30_249, 32_770, 35_749, 29_120],
    [60_784, 52_766, 49_693, 41_252, 43_856, 46_934, 36_019],
    [63_924, 55_409, 52_085, 43_184, 45_949, 49_217, 39_751],
    [70_197, 60_692, 55_864, 47_044, 50_131, 53_780, 43_212],
    [74_409, 62_661, 56_693, 49_790, 54_606, 54_116, 51_053],
    [89_428, 65_308, 68_136, 55_033, 59_619, 65_039, 64_340],
    [126_366, 106_414, 96_279, 77_764, 94_244, 91_903, 79_719],
    [155_645, 146_333, 141_444, 114_243, 133_763, 135_015, 102_425],
    [195_640, 180_013, 171_916, 138_855, 150_427, 164_102, 124_491],
];

/// The k at which a score of a column is so.
fn settings_where(printed: &Printed, column: usize, so: impl Fn(u32, u32) -> bool) -> Vec<u32> {
    (2..).zip(printed).filter(|(k, scores)| so(*k, scores[column])).map(|(k, _)| k).collect()
}

/// Without suppression every row costs k at least, so DP cannot be less than k times the rows.
#[test]
fn tinabo_printed_dp_is_below_k_times_the_rows() {
    let below = |printed, rows: u32| [0, 1, 2, 3, 4, 5, 6].map(|at| settings_where(printed, at, |k, dp| dp < k * rows));
    let patients: [&[u32]; 7] = [&[], &[], &[], &[4, 5, 6], &[4, 5], &[5], &[3, 4]];
    assert_eq!(below(&DP_OF_PATIENTS, PATIENTS), patients);
    let to = |first: u32, last: u32| (first..=last).collect::<Vec<_>>();
    let adult = [to(8, 10), to(6, 11), to(5, 11), to(4, 13), to(5, 12), to(5, 11), to(3, 13)];
    assert_eq!(below(&DP_OF_ADULT, ADULT), adult);
}

/// Weights that add up to 1 make NCP at most the number of rows; from k = 9 on all scores of both tables are above.
#[test]
fn tinabo_printed_ncp_is_above_the_rows() {
    for (printed, rows) in [(&NCP_OF_PATIENTS, PATIENTS), (&NCP_OF_ADULT, ADULT)] {
        for column in 0..7 {
            let above = settings_where(printed, column, |_, ncp| ncp > rows);
            assert!((2..=9).contains(&above[0]) && above == (above[0]..=14).collect::<Vec<_>>());
        }
    }
    assert_eq!(NCP_OF_PATIENTS[12][0], 240_877);
    assert!(NCP_OF_PATIENTS[12][0] > 7 * PATIENTS, "not even weights of 1 for seven columns allow it");
}

/// At 11 of 13 settings DP of the patients has the same ratios to four digits, which runs of a program would not have.
#[test]
fn tinabo_printed_dp_has_constant_ratios() {
    let pairs = [(3, 2, 0.8571), (5, 2, 0.9571), (6, 2, 0.7429), (2, 1, 0.9722), (6, 1, 0.7222)];
    for (k, scores) in (2..).zip(&DP_OF_PATIENTS) {
        for (one, two, ratio) in pairs {
            let found = f64::from(scores[one]) / f64::from(scores[two]);
            assert_eq!((found - ratio).abs() < 5e-5, k != 5 && k != 6, "k = {k}: {found}");
        }
    }
}

/// The three modifications together are not always better than one alone.
#[test]
fn tinabo_printed_combination_is_not_always_best() {
    let worse = |printed: &Printed| {
        let alone = |scores: &[u32; 7]| scores[3..6].iter().min().copied();
        (2..).zip(printed).filter(|(_, scores)| alone(scores) < Some(scores[6])).map(|(k, _)| k).collect::<Vec<_>>()
    };
    assert_eq!(worse(&DP_OF_PATIENTS), [5, 6]);
    assert_eq!(worse(&DP_OF_ADULT), [13, 14]);
    assert_eq!(DP_OF_PATIENTS[4][0] - DP_OF_PATIENTS[4][6], 91_241, "table 6.13 prints 46,366");
}

/// kl-redInfo is better than both others at all 13 settings, so p is 2/8192 for every pair of columns; the thesis prints
/// 0.00122 to 0.038.
#[test]
fn tinabo_printed_scores_differ_at_all_settings() {
    for printed in [&DP_OF_PATIENTS, &NCP_OF_PATIENTS, &DP_OF_ADULT, &NCP_OF_ADULT] {
        for other in [0, 1, 2] {
            let pairs: Vec<(f64, f64)> = printed.iter().map(|row| (row[other].into(), row[6].into())).collect();
            assert_eq!(signed_rank(&pairs).map(|found| found.p), Some(2.0 / 8192.0));
        }
    }
}
