//! Buckets of rows that all differ in one sensitive value: what Anatomy, g-anatomy and kl-redInfo begin with.
//!
//! Rows are queued by sensitive value. As long as at least `width` queues hold rows, one row is taken from each of the
//! `width` longest; what remains then is left over. This reaches the most buckets that the counts of the values allow,
//! g* = max { g : sum over values of min(count, g) >= width * g }, so [`Feasibility`] knows everything beforehand.
//!
//! Queues of equal length are ranked by the place of their first row, or ([`Ties::Loss`]) so that the bucket loses
//! least; and from each chosen queue the first row is taken, or ([`Draw::Nearest`]) the one nearest to the first of the
//! bucket.

use std::collections::BinaryHeap;

use crate::model::{Cover, Table};

/// What the counts of a sensitive column allow, before any row is grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feasibility {
    /// Rows.
    pub rows: u64,
    /// Different values: the largest l that a group can have.
    pub values: u64,
    /// The largest l for which every value can be at most 1/l of its group (Anatomy's eligibility).
    pub eligible: u64,
    /// Different values asked of every group.
    pub width: u64,
    /// The maximum number of groups of that many different values.
    pub groups: u64,
    /// Rows that stand in none of them at first.
    pub left_over: u64,
    /// Discernibility (the sum of squared group sizes) that no grouping can go below.
    pub least_dm: u64,
}

impl Feasibility {
    /// From how often each value occurs, and how many different ones every group must hold.
    pub fn new(counts: &[u64], width: u64) -> Self {
        let rows: u64 = counts.iter().sum();
        let width = width.max(1);
        let enough = |groups: u64| counts.iter().map(|&count| count.min(groups)).sum::<u64>() >= width * groups;
        let (mut groups, mut beyond) = (0, rows / width + 1);
        while beyond - groups > 1 {
            let middle = groups + (beyond - groups) / 2;
            if enough(middle) { groups = middle } else { beyond = middle }
        }
        Self {
            rows,
            values: counts.iter().filter(|&&count| count > 0).count() as u64,
            eligible: counts.iter().max().map_or(0, |&most| rows.checked_div(most).unwrap_or(0)),
            width,
            groups,
            left_over: rows - width * groups,
            least_dm: (u128::from(rows) * u128::from(rows)).checked_div(u128::from(groups)).unwrap_or(0) as u64,
        }
    }
}

/// Which of equally long queues come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// Those whose first row comes first.
    #[default]
    Place,
    /// Those with which the bucket loses least.
    Loss,
}

/// Which row of a queue is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Draw {
    /// The first.
    #[default]
    First,
    /// The one that loses least together with the first row of the bucket.
    Nearest,
}

/// Queues of equal length that are tried as the first of a bucket, and beside it, under [`Ties::Loss`].
const TRIED: usize = 32;

/// Fills buckets of `width` rows with different values from `rows`, in their order. Returns the buckets and the rows
/// left over, those of longer queues first.
pub(crate) fn fill_buckets(
    cell: &Table,
    codes: &[u32],
    rows: &[u32],
    width: usize,
    ties: Ties,
    draw: Draw,
) -> (Vec<Vec<u32>>, Vec<u32>) {
    let mut queues = Queues::new(cell, codes, rows, draw);
    let mut buckets = Vec::with_capacity(rows.len() / width.max(1));
    while width > 0 && queues.lengths.len() >= width {
        let chosen = match ties {
            Ties::Place => queues.longest_queues(width),
            Ties::Loss => queues.longest_with_least_loss(width),
        };
        buckets.push(queues.draw_rows(&chosen));
    }
    (buckets, queues.remaining_rows())
}

/// Rows by sensitive value.
struct Queues<'a> {
    cell: &'a Table,
    /// Rows in the order they are taken; places in it stand in the queues.
    rows: &'a [u32],
    /// Places still to be taken, by value; the next one last.
    queues: Vec<Vec<u32>>,
    /// Length, place of the first row (less comes first) and number of every queue that holds rows.
    lengths: BinaryHeap<(usize, std::cmp::Reverse<u32>, usize)>,
    draw: Draw,
}

impl<'a> Queues<'a> {
    fn new(cell: &'a Table, codes: &[u32], rows: &'a [u32], draw: Draw) -> Self {
        let code = |place: u32| codes[rows[place as usize] as usize];
        let mut places: Vec<u32> = (0..rows.len() as u32).rev().collect();
        places.sort_by_key(|&place| code(place));
        let queues: Vec<Vec<u32>> = places.chunk_by(|&a, &b| code(a) == code(b)).map(<[u32]>::to_vec).collect();
        let mut queued = Self { cell, rows, queues, lengths: BinaryHeap::new(), draw };
        (0..queued.queues.len()).for_each(|queue| queued.enlist_queue(queue));
        queued
    }

    fn enlist_queue(&mut self, queue: usize) {
        if let Some(&first) = self.queues[queue].last() {
            self.lengths.push((self.queues[queue].len(), std::cmp::Reverse(first), queue));
        }
    }

    fn longest_queues(&mut self, width: usize) -> Vec<usize> {
        (0..width).filter_map(|_| self.lengths.pop()).map(|(_, _, queue)| queue).collect()
    }

    /// The longest queues; where several are as long as the shortest of them, those with which the bucket loses least:
    /// each is tried as the first of its kind, and the others join one by one.
    fn longest_with_least_loss(&mut self, width: usize) -> Vec<usize> {
        let mut chosen = Vec::with_capacity(width);
        let mut tied = Vec::new();
        while let Some((length, _, queue)) = self.lengths.pop() {
            chosen.push((length, queue));
            let next = self.lengths.peek().map_or(0, |next| next.0);
            if chosen.len() >= width && (next < length || tied.len() >= TRIED) {
                break;
            }
            if chosen.len() >= width {
                tied.push(queue);
            }
        }
        let shortest = chosen.last().map_or(0, |last| last.0);
        let (forced, equal): (Vec<_>, Vec<_>) = chosen.into_iter().partition(|&(length, _)| length > shortest);
        let forced: Vec<usize> = forced.into_iter().map(|(_, queue)| queue).collect();
        let equal: Vec<usize> = equal.into_iter().map(|(_, queue)| queue).collect();
        let head = |queue: usize| self.queues[queue].last().map(|&place| self.cell.row(self.rows[place as usize]));
        let cover_of =
            |queues: &[usize]| Cover::from_rows(&self.cell.axes, queues.iter().filter_map(|&queue| head(queue)));
        let mut best: Option<(f64, Vec<usize>)> = None;
        for &first in equal.iter().take(TRIED) {
            let mut tried = forced.clone();
            let mut cover = cover_of(&tried);
            let mut open: Vec<usize> = equal.iter().copied().filter(|&queue| queue != first).collect();
            let mut next = Some(first);
            while let Some(queue) = next.filter(|_| tried.len() < width) {
                tried.push(queue);
                head(queue).into_iter().for_each(|row| cover.add_row(&self.cell.axes, row));
                let cost = |queue: usize| head(queue).map_or(0.0, |row| cover.cost_with(&self.cell.axes, row));
                let costs = open.iter().map(|&queue| cost(queue));
                let least = costs.enumerate().min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
                next = least.map(|(at, _)| open.remove(at));
            }
            let cost = cover.cost(&self.cell.axes);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, tried));
            }
        }
        let taken = best.map_or(forced, |(_, tried)| tried);
        equal.iter().filter(|queue| !taken.contains(queue)).for_each(|&queue| self.enlist_queue(queue));
        taken
    }

    /// Takes a row from each of some queues.
    fn draw_rows(&mut self, chosen: &[usize]) -> Vec<u32> {
        let mut bucket: Vec<u32> = Vec::with_capacity(chosen.len());
        for &queue in chosen {
            let at = match (self.draw, bucket.first()) {
                (Draw::Nearest, Some(&first)) => self.nearest_row(queue, first),
                _ => self.queues[queue].len() - 1,
            };
            let place = self.queues[queue].remove(at);
            bucket.push(self.rows[place as usize]);
            self.enlist_queue(queue);
        }
        bucket
    }

    fn nearest_row(&self, queue: usize, first: u32) -> usize {
        let axes = &self.cell.axes;
        let seed = Cover::from_rows(axes, [self.cell.row(first)]);
        let cost = |place: u32| seed.cost_with(axes, self.cell.row(self.rows[place as usize]));
        let places = self.queues[queue].iter().enumerate().rev();
        let nearest =
            places.map(|(at, &place)| (cost(place), at)).reduce(|best, next| if next.0 < best.0 { next } else { best });
        nearest.map_or(0, |(_, at)| at)
    }

    /// All rows that are still queued: those of longer queues first, then in order.
    fn remaining_rows(self) -> Vec<u32> {
        let mut rest: Vec<(usize, u32)> =
            self.queues.iter().flat_map(|queue| queue.iter().map(|&place| (queue.len(), place))).collect();
        rest.sort_unstable_by_key(|&(length, place)| (std::cmp::Reverse(length), place));
        rest.into_iter().map(|(_, place)| self.rows[place as usize]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axis, Shape};

    /// How often each occupation occurs in UCI Adult without missing values (section 6 of our notes on Tinabo).
    const OCCUPATIONS: [u64; 14] = [9, 143, 644, 912, 989, 1350, 1572, 1966, 3212, 3584, 3721, 3992, 4030, 4038];

    #[test]
    fn tinabo_adult_buckets_left_overs_and_bounds() {
        let expected = [
            (2, 15081, 0, 60324),
            (3, 10054, 0, 90486),
            (4, 7540, 2, 120656),
            (5, 6032, 2, 150820),
            (6, 5027, 0, 180972),
            (7, 4308, 6, 211176),
            (8, 3595, 1402, 253058),
            (9, 2528, 7410, 359867),
            (10, 1873, 11432, 485716),
            (11, 1348, 15334, 674885),
            (12, 796, 20610, 1142897),
            (13, 152, 28186, 5985172),
            (14, 9, 30036, 101082916),
        ];
        for (l, groups, left_over, least_dm) in expected {
            let found = Feasibility::new(&OCCUPATIONS, l);
            assert_eq!((found.groups, found.left_over, found.least_dm), (groups, left_over, least_dm), "l = {l}");
            assert_eq!((found.rows, found.values, found.eligible), (30162, 14, 7));
        }
        assert_eq!(Feasibility::new(&OCCUPATIONS, 15).groups, 0);
        assert_eq!(Feasibility::new(&[], 2).groups, 0);
    }

    /// Section 3.6.1: of 1000 patients five are HIV-positive, so at most five groups can hold both answers.
    #[test]
    fn tinabo_five_of_a_thousand_patients_allow_five_diverse_groups() {
        let found = Feasibility::new(&[995, 5], 2);
        assert_eq!((found.groups, found.left_over, found.eligible), (5, 990, 1));
    }

    /// Errata: the discernibility printed for kl-redInfo on Adult (tables G.3 and H.3) is below what any grouping can reach
    /// from l = 3 on, and the NCP printed for k = l = 10 is more than there are rows, which no weights that add up to 1 allow.
    #[test]
    fn tinabo_printed_scores_of_adult_are_out_of_bounds() {
        let printed = [
            68_092, 77_764, 100_621, 105_593, 116_376, 127_506, 129_534, 135_578, 142_866, 171_702, 242_623, 356_438,
            433_229,
        ];
        for (l, dm) in (2..).zip(printed) {
            assert_eq!(dm < Feasibility::new(&OCCUPATIONS, l).least_dm, l > 2, "l = {l}");
        }
        let ncp_of_kl_redinfo_at_10 = 51_053;
        assert!(ncp_of_kl_redinfo_at_10 > OCCUPATIONS.iter().sum::<u64>());
    }

    /// The greedy filling reaches the most buckets that the counts allow.
    #[test]
    fn tinabo_greedy_buckets_are_as_many_as_possible() {
        let codes: Vec<u32> = (0..14).zip(OCCUPATIONS).flat_map(|(code, n)| (0..n).map(move |_| code)).collect();
        let table = Table::new([Axis::new("x", Shape::Line { span: 1 })], vec![0; codes.len()]);
        let rows: Vec<u32> = (0..codes.len() as u32).collect();
        for l in [2, 7, 8, 11, 14] {
            let (buckets, left_over) = fill_buckets(&table, &codes, &rows, l, Ties::Place, Draw::First);
            let feasible = Feasibility::new(&OCCUPATIONS, l as u64);
            assert_eq!((buckets.len() as u64, left_over.len() as u64), (feasible.groups, feasible.left_over));
            for bucket in buckets {
                let mut values: Vec<u32> = bucket.iter().map(|&row| codes[row as usize]).collect();
                values.sort_unstable();
                values.dedup();
                assert_eq!(values.len(), l);
            }
        }
    }

    #[test]
    fn queues_are_taken_by_length_and_then_by_place() {
        let table = Table::new([Axis::new("x", Shape::Line { span: 9 })], vec![0, 9, 8, 1, 0, 9]);
        let codes = [0, 1, 1, 2, 1, 0];
        let filled = |draw| fill_buckets(&table, &codes, &[0, 1, 2, 3, 4, 5], 2, Ties::Place, draw);
        assert_eq!(filled(Draw::First), (vec![vec![1, 0], vec![2, 3], vec![4, 5]], vec![]));
        assert_eq!(filled(Draw::Nearest), (vec![vec![1, 5], vec![2, 0], vec![3, 4]], vec![]));
    }
}
