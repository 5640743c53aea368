//! Rows chosen by a hash of their content.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::UInt64Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use crate::encode::row_hashes;
use crate::plan::columns_of;

/// A seeded hash of some columns. Without columns, all rows are alike.
pub(super) fn row_hash(columns: Vec<Expr>, seed: u64) -> Expr {
    let function = ScalarUDF::from(RowHash { signature: Signature::variadic_any(Volatility::Immutable), seed });
    function.call(if columns.is_empty() { vec![lit(0)] } else { columns })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RowHash {
    signature: Signature,
    seed: u64,
}

impl ScalarUDFImpl for RowHash {
    fn name(&self) -> &str {
        "row_hash"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let columns = columns_of(&args)?;
        let hashes = row_hashes(&columns, args.number_rows, self.seed)?;
        Ok(ColumnarValue::Array(Arc::new(UInt64Array::from(hashes))))
    }
}
