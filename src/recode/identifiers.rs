//! Replaces identifiers below everything else: what is sorted, spilled and exchanged already holds pseudonyms, and what
//! is dropped is not read at all.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};

use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::faults::Fault;
use crate::policy::{IdentifierAction, Policy};
use crate::secret::{Pseudonymiser, RunKey};

/// Name of the function that makes pseudonyms.
pub(crate) const PSEUDONYM: &str = "pseudonym";

/// Binds a policy to the rows of a plan: returns the rows with their identifiers replaced, and the bound policy.
pub(crate) fn replace_identifiers(rows: LogicalPlan, policy: Arc<Policy>) -> Result<(LogicalPlan, BoundPolicy)> {
    let key = policy.new_run_key()?;
    replace_with_key(rows, policy, key)
}

/// The same with the key that random choices are to come from.
pub(crate) fn replace_with_key(
    rows: LogicalPlan,
    policy: Arc<Policy>,
    key: RunKey,
) -> Result<(LogicalPlan, BoundPolicy)> {
    BoundPolicy::ensure_columns_fit(&policy, rows.schema().as_arrow())?;
    let rows = replace_columns(rows, &policy)?;
    let schema = Arc::new(rows.schema().as_arrow().clone());
    Ok((rows, BoundPolicy::bind_schema(policy, schema, key)?))
}

/// The rows with pseudonyms and constants in the place of identifiers; those that are dropped stay for the optimiser
/// to leave out.
pub(crate) fn replace_columns(rows: LogicalPlan, policy: &Policy) -> Result<LogicalPlan> {
    let mut replaced = false;
    let mut columns = Vec::new();
    for (qualifier, field) in rows.schema().iter() {
        let name = field.name();
        let column = Expr::from((qualifier, field));
        let treat = policy.columns.get(name).and_then(|column| column.identifier_action());
        let treat = treat.filter(|_| !Fault::RawIdentifier.is_planted());
        let expression = match (treat, policy.keys.get(name)) {
            (Some(IdentifierAction::Constant(text)), _) => lit(text.as_str()),
            (Some(IdentifierAction::Pseudonym(spec)), Some(key)) => {
                let pseudonymiser = Pseudonymiser::new(key, name, spec.encoding)?;
                ScalarUDF::from(Function::new(pseudonymiser)).call(vec![column])
            }
            (Some(IdentifierAction::Pseudonym(_)), None) => {
                return Err(Error::internal(format!("column `{name}` has no key")));
            }
            _ => {
                columns.push(column);
                continue;
            }
        };
        replaced = true;
        columns.push(expression.alias_qualified(qualifier.cloned(), name));
    }
    if !replaced {
        return Ok(rows);
    }
    Ok(LogicalPlanBuilder::from(rows).project(columns)?.build()?)
}

/// `pseudonym(identifier)`: a scalar function that holds the key of a column.
#[derive(Debug)]
struct Function {
    signature: Signature,
    pseudonymiser: Pseudonymiser,
    fingerprint: (String, crate::secret::Encoding),
}

impl Function {
    fn new(pseudonymiser: Pseudonymiser) -> Self {
        let fingerprint = pseudonymiser.fingerprint();
        Self { signature: Signature::any(1, Volatility::Immutable), pseudonymiser, fingerprint }
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        PSEUDONYM
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let values = args.args[0].to_array(args.number_rows)?;
        let pseudonyms = self.pseudonymiser.pseudonyms(&values).map_err(Error::into_datafusion)?;
        Ok(ColumnarValue::Array(pseudonyms))
    }
}
