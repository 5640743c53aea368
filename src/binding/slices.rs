//! Which columns of a table stay together when values change places.

use super::BoundPolicy;
use crate::permutation::Slices;
use crate::policy::model::{Form, Role};
use crate::policy::slices::SliceSpec;

/// Default number of slices.
const DEFAULT_SLICES: usize = 2;

impl BoundPolicy {
    /// Names of the quasi-identifiers in the source.
    pub(crate) fn quasi_names(&self) -> Vec<String> {
        self.quasi.iter().map(|quasi| quasi.name.clone()).collect()
    }

    /// The columns of slices by name.
    pub(crate) fn slice_names(&self, slices: &Slices) -> Vec<Vec<String>> {
        let name = |column: &usize| self.input.field(*column).name().clone();
        slices.columns.iter().map(|slice| slice.iter().map(name).collect()).collect()
    }

    /// Columns by which slices are looked for in a sample, when the job leaves that open: how many there shall be.
    pub(crate) fn open_slices(&self) -> Option<usize> {
        match (&self.policy.method.slices, self.form()) {
            (Some(SliceSpec::Count(count)), Form::Slice) => Some(*count as usize),
            (None, Form::Slice) => Some(DEFAULT_SLICES),
            _ => None,
        }
    }

    /// What stays together inside a group, as places in the input; `found` are the slices found in a sample. Sensitive
    /// columns of a form with two tables are in none: they have a table of their own.
    pub(crate) fn resolve_slices(&self, found: &[Vec<String>]) -> Slices {
        let of = |wanted: &[Role]| -> Vec<usize> {
            (0..self.roles.len()).filter(|&index| wanted.contains(&self.roles[index])).collect()
        };
        let exact = of(&[Role::Quasi, Role::Kept]);
        let published = of(&[Role::Quasi, Role::Kept, Role::Sensitive]);
        let alone = |columns: &[usize]| columns.iter().map(|&column| vec![column]).collect::<Vec<_>>();
        let columns = match self.form() {
            Form::Generalise => vec![published],
            Form::Anatomy => vec![exact],
            Form::AnatomyPermuted => alone(&exact),
            Form::Bucketise => vec![exact, of(&[Role::Sensitive])],
            Form::Permute | Form::Combined => alone(&published),
            Form::Slice => {
                let listed = match &self.policy.method.slices {
                    Some(SliceSpec::Listed(listed)) => listed,
                    _ => found,
                };
                let place = |name: &String| self.input.index_of(name).ok().filter(|index| published.contains(index));
                let mut slices: Vec<Vec<usize>> =
                    listed.iter().map(|names| names.iter().filter_map(place).collect()).collect();
                let named: Vec<usize> = slices.iter().flatten().copied().collect();
                slices.extend(published.iter().filter(|column| !named.contains(column)).map(|&column| vec![column]));
                slices.retain(|slice| !slice.is_empty());
                slices
            }
        };
        Slices { columns, first_stays: self.form() == Form::Bucketise }
    }

    /// The quasi-identifiers (as places among them) that stay with a sensitive column: whoever knows them sees more of it
    /// than the whole group shows.
    pub(crate) fn columns_beside(&self, sensitive: usize, slices: &Slices) -> Vec<usize> {
        if self.form() != Form::Slice {
            return Vec::new();
        }
        let slice = slices.columns.iter().find(|slice| slice.contains(&sensitive));
        let place = |column: &usize| self.quasi.iter().position(|quasi| quasi.index == *column);
        slice.into_iter().flatten().filter_map(place).collect()
    }
}
