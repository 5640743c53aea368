//! The classification metric CM: how many rows of a class column a classifier must get wrong that knows only the
//! published classes (Iyengar; Loukides, def. 2.1.6; Sun, 2; Gorla, 2.1).
//!
//! A row is penalised when its label is not the commonest of its class, or when it is suppressed. Loukides and Sun divide
//! by the rows of the table, which is what is reported here; Gorla does not.

/// Rows that are not of their class's majority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Minority {
    rows: u64,
    minority: u64,
}

impl Minority {
    /// Adds a class in which the labels occur so often.
    pub fn add_class(&mut self, labels: impl IntoIterator<Item = u64>) {
        let (rows, most) = labels.into_iter().fold((0, 0), |(rows, most), count| (rows + count, count.max(most)));
        self.add_majority(rows, most);
    }

    /// Adds a class by its rows and those that have its commonest label.
    pub fn add_majority(&mut self, rows: u64, most: u64) {
        self.rows += rows;
        self.minority += rows - most;
    }

    /// CM, given the number of suppressed rows; `None` without rows.
    pub fn cm(&self, suppressed: u64) -> Option<f64> {
        let rows = self.rows + suppressed;
        (rows > 0).then(|| (self.minority + suppressed) as f64 / rows as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cm(classes: &[&[u64]], suppressed: u64) -> Option<f64> {
        let mut minority = Minority::default();
        classes.iter().for_each(|labels| minority.add_class(labels.iter().copied()));
        minority.cm(suppressed)
    }

    #[test]
    fn loukides_g4_cm_of_table_2_4() {
        assert_eq!(cm(&[&[1, 1], &[1, 1], &[2, 2]], 0), Some(0.5));
        assert_eq!(cm(&[&[2], &[2], &[2], &[2]], 0), Some(0.0));
        assert_eq!(cm(&[], 0), None);
    }

    #[test]
    fn sun_suppressed_rows_are_penalised() {
        assert_eq!(cm(&[&[3, 1]], 1), Some(0.4));
    }
}
