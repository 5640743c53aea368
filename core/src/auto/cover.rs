//! The cover of a space: of the boxes around many seeds, the cheapest first; each takes all free rows inside.
//!
//! Boxes wait in a queue by cost. When rows are taken, boxes of other seeds may hold too few; such a box is looked for
//! again only when its turn comes. Free rows only become fewer, so boxes of trees only become dearer, and what stands first
//! in the queue is the cheapest. Windows of lines and sets without a hierarchy shrink with their free values, so with them
//! the order is only nearly that of cost. Tuples with enough rows are boxes without loss. Not every row is a seed from the
//! start: seeds are fed one by one, in the (random) order of the rows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Judge;
use super::chain::Side;
use super::lattice::Finder;
use super::pool::Pool;
use super::space::{Ruler, Space};
use crate::grouping::cancel::checkpoint;

/// Boxes around one seed about which the rules are asked.
const ASKS: usize = 8;

/// How a cover is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seeds {
    /// Seeds in the queue, as a multiple of the groups that there can be.
    pub share: f64,
    /// Fewest seeds.
    pub least: usize,
    /// Boxes around one seed beyond which lines are looked at less closely.
    pub boxes: usize,
    /// By how much the cost of a box may seem higher than it is.
    pub noise: f64,
}

/// What is covered: rows of a space, how their widths are measured, and who says whether they may be a group.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub ruler: &'a Ruler,
    pub space: &'a Space,
    pub judge: &'a Judge<'a>,
}

/// Makes covers, one space after the other.
#[derive(Debug, Default)]
pub(super) struct Coverer {
    pool: Pool,
    finder: Finder,
    queue: BinaryHeap<Reverse<(u32, u32)>>,
    /// Seed and box by number in the queue.
    seeds: Vec<u32>,
    boxes: Vec<Side>,
    sides: Vec<Side>,
    tuples: Vec<u32>,
    group: Vec<u32>,
    queued: Vec<bool>,
}

/// Place of the next seed among the rows.
struct Feed {
    next: usize,
    /// Cost of the box accepted last.
    last: u32,
}

impl Coverer {
    /// Covers some rows of a space. Every group is handed to `finish`; rows that are in none are returned.
    pub fn cover_rows(
        &mut self,
        scene: Scene<'_>,
        rows: &[u32],
        seeds: Seeds,
        rng: &mut fastrand::Rng,
        mut finish: impl FnMut(&[u32]),
    ) -> Vec<u32> {
        let Scene { ruler, space, judge } = scene;
        self.pool.load_rows(ruler, space, rows);
        self.finder.largest = seeds.boxes;
        self.queue.clear();
        self.seeds.clear();
        self.boxes.clear();
        self.queued.clear();
        self.queued.resize(self.pool.len(), false);
        let mut feed = Feed { next: 0, last: ruler.mean_unit() * 3 / 13 };
        if judge.plain {
            self.take_heavy(judge.k, &mut finish);
        }
        let start = seeds.least.max((seeds.share * self.pool.free as f64 / judge.k as f64) as usize);
        for _ in 0..start {
            if !self.feed_seed(scene, &mut feed, seeds.noise, rng) {
                break;
            }
        }
        while self.pool.free >= judge.k {
            let Some(Reverse((cost, number))) = self.queue.pop() else {
                if self.feed_seed(scene, &mut feed, seeds.noise, rng) {
                    continue;
                }
                break;
            };
            let seed = self.seeds[number as usize];
            if !self.pool.is_free(seed) {
                self.feed_seed(scene, &mut feed, seeds.noise, rng);
                continue;
            }
            let width = ruler.lanes.len();
            self.sides.clear();
            self.sides.extend_from_slice(&self.boxes[number as usize * width..][..width]);
            let inside = self.pool.tuples_inside(&self.sides, &mut self.finder.found, &mut self.tuples);
            self.collect_group();
            if inside < judge.k || !self.is_allowed(space, judge) {
                // Its box is not what it was.
                self.enqueue_seed(scene, number, cost.max(feed.last), seeds.noise, rng);
                continue;
            }
            checkpoint();
            feed.last = cost;
            finish(&self.group);
            self.tuples.iter().for_each(|&tuple| self.pool.take_tuple(tuple));
            self.pool.drop_taken();
            self.feed_seed(scene, &mut feed, seeds.noise, rng);
        }
        let free = |tuple: &u32| self.pool.is_free(*tuple);
        (0..self.pool.len() as u32).filter(free).flat_map(|tuple| self.pool.rows_of(tuple)).copied().collect()
    }

    fn collect_group(&mut self) {
        self.group.clear();
        for &tuple in &self.tuples {
            self.group.extend_from_slice(self.pool.rows_of(tuple));
        }
    }

    fn is_allowed(&self, space: &Space, judge: &Judge<'_>) -> bool {
        judge.plain || {
            let rows: Vec<u32> = self.group.iter().map(|&row| space.rows[row as usize]).collect();
            judge.allows_group(&rows)
        }
    }

    /// Makes groups of the tuples that are large enough.
    fn take_heavy(&mut self, k: usize, finish: &mut impl FnMut(&[u32])) {
        for tuple in 0..self.pool.len() as u32 {
            let rows = self.pool.rows_of(tuple);
            if rows.len() >= k {
                finish(rows);
                self.pool.take_tuple(tuple);
            }
        }
        self.pool.drop_taken();
    }

    /// Puts one more seed into the queue; false when there is none.
    fn feed_seed(&mut self, scene: Scene<'_>, feed: &mut Feed, noise: f64, rng: &mut fastrand::Rng) -> bool {
        while let Some(&seed) = self.pool.tuple_of.get(feed.next) {
            feed.next += 1;
            if std::mem::replace(&mut self.queued[seed as usize], true) || !self.pool.is_free(seed) {
                continue;
            }
            let number = self.seeds.len() as u32;
            self.seeds.push(seed);
            self.boxes.resize(self.seeds.len() * scene.ruler.lanes.len(), Side::default());
            self.enqueue_seed(scene, number, feed.last, noise, rng);
            return true;
        }
        false
    }

    /// Finds the box of a seed and puts it into the queue. A seed without one is abandoned.
    fn enqueue_seed(&mut self, scene: Scene<'_>, number: u32, guess: u32, noise: f64, rng: &mut fastrand::Rng) {
        let Scene { ruler, space, judge } = scene;
        let seed = self.seeds[number as usize];
        let (mut need, mut beta) = (judge.expected, guess * 13 / 10 + 1);
        for _ in 0..ASKS {
            let Some(cost) = self.finder.find_best_box(ruler, &mut self.pool, seed, need, beta) else { return };
            self.finder.box_sides(&mut self.sides);
            if !judge.plain {
                // The rules may want more than rows: then the cheapest box with more of them is asked about.
                let inside = self.pool.tuples_inside(&self.sides, &mut self.finder.found, &mut self.tuples);
                self.collect_group();
                if !self.is_allowed(space, judge) {
                    need = (inside + 1).max(inside * 5 / 4);
                    beta = cost * 13 / 10 + 1;
                    if need > judge.growth_limit() {
                        return;
                    }
                    continue;
                }
            }
            let width = ruler.lanes.len();
            self.boxes[number as usize * width..][..width].copy_from_slice(&self.sides);
            let seeming = if noise > 0.0 { (f64::from(cost) * (1.0 + noise * rng.f64())) as u32 } else { cost };
            self.queue.push(Reverse((seeming, number)));
            return;
        }
    }
}
