//! The book of a stream's windows: how many rows are in the open one, when it is ripe, who waits and for how long. It knows
//! rows by their number alone, so that it can be read, and tested, without any.

use std::time::Duration;

/// Who is in the open window and who waits.
#[derive(Debug)]
pub(super) struct Book {
    rows: usize,
    time: Option<Duration>,
    max_wait: u32,
    /// Number of the open window.
    number: u64,
    /// Rows of the open window that have come since the last one.
    fresh: usize,
    /// When the first row that the open window holds came into it.
    opened: Option<Duration>,
    /// For how many windows every waiting row has waited, in the order in which the rows are held.
    ages: Vec<u32>,
}

/// What has become of the rows of a window that are in no class.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Remainder {
    /// Those that wait for the next one, ascending.
    pub(super) waiting: Vec<u32>,
    /// How many others there are: they are suppressed.
    pub(super) suppressed: u64,
}

impl Book {
    /// An empty book for windows of `rows` rows, closed earlier after a time.
    pub(super) fn new(rows: usize, time: Option<Duration>, max_wait: u32) -> Self {
        Self { rows: rows.max(1), time, max_wait, number: 0, fresh: 0, opened: None, ages: Vec::new() }
    }

    /// Rows that the open window still takes: fewer where so many wait that two windows of rows would not hold them.
    pub(super) fn rows_left(&self) -> usize {
        let room = (2 * self.rows).saturating_sub(self.ages.len()).min(self.rows);
        room.saturating_sub(self.fresh)
    }

    /// Rows that wait from earlier windows.
    pub(super) fn waiting_rows(&self) -> usize {
        self.ages.len()
    }

    /// Whether no row is held.
    pub(super) fn is_empty(&self) -> bool {
        self.fresh == 0 && self.ages.is_empty()
    }

    /// Number of the open window.
    pub(super) fn window_number(&self) -> u64 {
        self.number
    }

    /// Takes up to `rows` rows into the open window, and says how many.
    pub(super) fn admit_rows(&mut self, rows: usize, now: Duration) -> usize {
        let taken = rows.min(self.rows_left());
        if taken > 0 {
            self.fresh += taken;
            self.opened.get_or_insert(now);
        }
        taken
    }

    /// When the open window is closed even if it is not full.
    pub(super) fn close_by(&self) -> Option<Duration> {
        Some(self.opened? + self.time?)
    }

    /// Whether the open window is to be closed.
    pub(super) fn is_ripe(&self, now: Duration) -> bool {
        self.rows_left() == 0 || self.close_by().is_some_and(|deadline| deadline <= now)
    }

    /// Which rows of the window may wait no longer: those that wait come first, then the fresh ones. Of the last window all
    /// are. Where as many wait as a window holds, the whole crowd is due.
    pub(super) fn due_rows(&self, is_last: bool) -> Vec<bool> {
        let crowd = self.ages.len() >= self.rows;
        let waiting = self.ages.iter().map(|&age| is_last || crowd || age >= self.max_wait);
        waiting.chain(std::iter::repeat_n(is_last || self.max_wait == 0, self.fresh)).collect()
    }

    /// Closes the window, whose rows `left` (ascending) are in no class.
    pub(super) fn close_window(&mut self, left: &[u32], is_last: bool, now: Duration) -> Remainder {
        let due = self.due_rows(is_last);
        let waits = |row: &&u32| due.get(**row as usize) == Some(&false);
        let waiting: Vec<u32> = left.iter().filter(waits).copied().collect();
        let suppressed = (left.len() - waiting.len()) as u64;
        let age = |row: &u32| self.ages.get(*row as usize).map_or(1, |age| age.saturating_add(1));
        self.ages = waiting.iter().map(age).collect();
        self.fresh = 0;
        self.number += 1;
        self.opened = (!self.ages.is_empty()).then_some(now);
        Remainder { waiting, suppressed }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn a_window_takes_no_more_rows_than_it_holds() {
        let mut book = Book::new(10, None, 3);
        assert_eq!((book.admit_rows(7, NOW), book.is_ripe(NOW), book.rows_left()), (7, false, 3));
        assert_eq!((book.admit_rows(7, NOW), book.is_ripe(NOW), book.rows_left()), (3, true, 0));
        assert_eq!(book.close_window(&[], false, NOW), Remainder { waiting: vec![], suppressed: 0 });
        assert!(book.is_empty() && book.rows_left() == 10 && book.window_number() == 1 && book.close_by().is_none());
    }

    #[test]
    fn time_closes_a_window_of_few_rows_and_runs_on_for_those_who_wait() {
        let at = Duration::from_secs;
        let mut book = Book::new(10, Some(at(60)), 1);
        assert!(book.close_by().is_none() && !book.is_ripe(at(1000)), "nothing is held");
        book.admit_rows(2, at(5));
        book.admit_rows(2, at(50));
        assert_eq!(book.close_by(), Some(at(65)), "from the first row on");
        assert!(!book.is_ripe(at(64)) && book.is_ripe(at(65)));
        assert_eq!(book.close_window(&[1, 3], false, at(65)).waiting, [1, 3]);
        assert_eq!((book.close_by(), book.waiting_rows()), (Some(at(125)), 2));
        assert_eq!(book.due_rows(false), [true, true], "they have waited for as long as they may");
    }

    #[test]
    fn rows_wait_for_so_many_windows_and_no_longer() {
        let mut book = Book::new(2, None, 2);
        let mut suppressed_in = Vec::new();
        for window in 0..5 {
            book.admit_rows(2, NOW);
            // The first row of the first window never finds a class.
            let left = if suppressed_in.is_empty() { vec![0] } else { vec![] };
            if book.close_window(&left, false, NOW).suppressed > 0 {
                suppressed_in.push(window);
            }
        }
        assert_eq!(suppressed_in, [2], "left over from windows 0 and 1, due in window 2");
        let mut impatient = Book::new(2, None, 0);
        impatient.admit_rows(2, NOW);
        assert_eq!(impatient.close_window(&[0, 1], false, NOW), Remainder { waiting: vec![], suppressed: 2 });
    }

    #[test]
    fn nobody_waits_at_the_end_and_a_crowd_does_not_grow() {
        let mut book = Book::new(3, None, 100);
        book.admit_rows(3, NOW);
        book.close_window(&[0, 1, 2], false, NOW);
        assert_eq!(book.due_rows(false), [true; 3], "as many wait as a window holds");
        book.admit_rows(1, NOW);
        assert_eq!(book.due_rows(false), [true, true, true, false]);
        assert_eq!(book.close_window(&[0, 3], true, NOW), Remainder { waiting: vec![], suppressed: 2 });
        assert!(book.is_empty());
    }

    proptest! {
        #[test]
        fn every_row_is_placed_suppressed_or_waits(
            size in 1_usize..20,
            max_wait in 0_u32..4,
            windows in prop::collection::vec((0_usize..25, any::<u64>()), 1..30),
        ) {
            let mut book = Book::new(size, None, max_wait);
            let (mut came, mut gone) = (0, 0);
            let last = windows.len() - 1;
            for (index, (rows, bits)) in windows.into_iter().enumerate() {
                came += book.admit_rows(rows, NOW);
                let held = book.due_rows(index == last).len();
                prop_assert!(held <= 2 * size, "{held} rows are held");
                let left: Vec<u32> = (0..held as u32).filter(|row| bits >> (row % 64) & 1 == 1).collect();
                let remainder = book.close_window(&left, index == last, NOW);
                gone += held - left.len() + remainder.suppressed as usize;
                prop_assert_eq!(remainder.waiting.len(), book.waiting_rows());
                prop_assert!(book.waiting_rows() <= 2 * size);
                prop_assert_eq!(came, gone + book.waiting_rows());
            }
            prop_assert_eq!(came, gone);
        }
    }
}
