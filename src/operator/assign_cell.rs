//! `assign_cell(quasi...)`: which cell a row belongs to, as its label. A scalar function that holds the survey's tree.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, UInt32Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use tokio::sync::OnceCell;

use super::AnonymizeParams;
use crate::encode::rows_present;
use crate::error::Error;
use crate::model::Code;
use crate::policy::Nulls;

/// Name of the function.
pub(crate) const ASSIGN_CELL: &str = "assign_cell";

/// The function; its parameters are filled in once the survey has run, which is before its first row arrives.
#[derive(Debug)]
pub(crate) struct AssignCell {
    signature: Signature,
    params: Arc<OnceCell<Arc<AnonymizeParams>>>,
}

impl AssignCell {
    pub(crate) fn new(params: Arc<OnceCell<Arc<AnonymizeParams>>>) -> Self {
        Self { signature: Signature::variadic_any(Volatility::Immutable), params }
    }

    /// The function over a table that has been surveyed.
    pub(crate) fn surveyed(params: Arc<AnonymizeParams>) -> Self {
        Self::new(Arc::new(OnceCell::new_with(Some(params))))
    }

    /// The parameters, once the survey has run.
    pub(crate) fn params(&self) -> Option<&Arc<AnonymizeParams>> {
        self.params.get()
    }
}

impl PartialEq for AssignCell {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.params, &other.params)
    }
}

impl Eq for AssignCell {}

impl Hash for AssignCell {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.params).hash(state);
    }
}

impl ScalarUDFImpl for AssignCell {
    fn name(&self) -> &str {
        ASSIGN_CELL
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt32)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let params =
            self.params.get().ok_or_else(|| Error::internal("rows arrived before the survey").into_datafusion())?;
        let tree = &params.survey.tree;
        // Rows that are to be dropped are the same to every cell, so they are spread over all of them.
        let dropping = params.bound_policy.quasi.iter().zip(&args.args).filter(|(quasi, _)| quasi.nulls == Nulls::Drop);
        let dropping = dropping.map(|(_, array)| array.to_array(args.number_rows)).collect::<Result<Vec<_>>>()?;
        let present = rows_present(&dropping);
        let mut codes: Vec<Vec<Code>> = vec![Vec::new(); params.encoders.len()];
        for axis in tree.axes_used() {
            let array: ArrayRef = args.args[axis].to_array(args.number_rows)?;
            let column = &mut codes[axis];
            column.resize(args.number_rows, 0);
            let encoder = &params.encoders[axis];
            let put = |row: usize, code| column[row] = code;
            encoder.encode_present(&array, present.as_ref(), put).map_err(Error::into_datafusion)?;
        }
        let cell = |row: usize| match &present {
            Some(present) if present.is_null(row) => (row % tree.cell_count()) as u32,
            _ => tree.assign_by(|axis| codes[axis][row]),
        };
        let cells = UInt32Array::from_iter_values((0..args.number_rows).map(|row| params.labels.label_of(cell(row))));
        Ok(ColumnarValue::Array(Arc::new(cells)))
    }
}
