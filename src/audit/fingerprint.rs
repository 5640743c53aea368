//! Rows told apart by hashes of their columns: classes are compared and counted without their values.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, UInt64Type};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, ident, lit,
};

use crate::encode::{CLASS_SEEDS, row_hashes};

/// The class of a row whose first two columns are its fingerprint.
pub(crate) fn class(batch: &RecordBatch, row: usize) -> (u64, u64) {
    let part = |index: usize| batch.column(index).as_primitive::<UInt64Type>().value(row);
    (part(0), part(1))
}

/// Two independent 64-bit hashes of some columns: together they tell combinations of values apart.
pub(crate) fn fingerprint(columns: &[String]) -> Vec<Expr> {
    let part = |name: &str, seed: u64| row_hash(columns.iter().map(ident).collect(), seed).alias(name);
    let [a, b] = CLASS_SEEDS;
    vec![part("class_a", a), part("class_b", b)]
}

/// A seeded hash of some columns. Without columns, all rows are alike.
pub(crate) fn row_hash(columns: Vec<Expr>, seed: u64) -> Expr {
    let function = ScalarUDF::from(Fingerprint { signature: Signature::variadic_any(Volatility::Immutable), seed });
    function.call(if columns.is_empty() { vec![lit(0)] } else { columns })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Fingerprint {
    signature: Signature,
    seed: u64,
}

impl ScalarUDFImpl for Fingerprint {
    fn name(&self) -> &str {
        "fingerprint"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let columns = args
            .args
            .iter()
            .map(|value| value.to_array(args.number_rows))
            .collect::<DataFusionResult<Vec<ArrayRef>>>()?;
        let hashes = row_hashes(&columns, args.number_rows, self.seed)?;
        Ok(ColumnarValue::Array(Arc::new(UInt64Array::from(hashes))))
    }
}
