//! Withheld columns: every value is the top of its domain, in the column's own form.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StructArray, new_null_array};
use datafusion::arrow::datatypes::DataType;

use super::{Groups, TOP, label_array};
use crate::binding::published_fields;
use crate::encode::ColumnEncoder;
use crate::error::Result;
use crate::policy::Publish;

/// The top for every group, which loses everything.
pub(super) fn publish_tops(encoder: &ColumnEncoder, groups: &Groups<'_>) -> Result<(Vec<ArrayRef>, Vec<f64>)> {
    let count = groups.grouping.len();
    let top = encoder.levels().map_or(TOP, |levels| levels.root());
    let mut columns: Vec<ArrayRef> = Vec::new();
    for field in published_fields(encoder.column()) {
        columns.push(match (encoder.column().publish, field.data_type()) {
            (Publish::Label, _) => label_array(std::iter::repeat_n(Some(top), count)),
            (_, DataType::Struct(ends)) => {
                let nulls = ends.iter().map(|end| new_null_array(end.data_type(), count)).collect();
                Arc::new(StructArray::try_new(ends.clone(), nulls, None)?)
            }
            (_, data_type) => new_null_array(data_type, count),
        });
    }
    Ok((columns, vec![1.0; count]))
}
