//! Anonymised tables in sessions of datafusion-python, over DataFusion's foreign function interface.
//!
//! What crosses the interface is a table function and the tables that it returns. A table is planned here as a whole: its rows
//! come from a table of the host, but exchange, sort and groups are planned by a session of this library. The host sees one
//! node without inputs. It must not see more: across the interface a node cannot declare that it wants whole cells, and an
//! optimiser that does not know it would cut them in pieces.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{TableReference, not_impl_err, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext, TaskContextProvider};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, TableType};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{ReplaceChildrenOptions, reset_plan_states};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PhysicalExpr, PlanProperties,
};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion_ffi::execution::FFI_TaskContextProvider;
use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use datafusion_ffi::udtf::FFI_TableFunction;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use throng::AnonymizeExt;
use throng::planning::PolicyRegistry;
use throng::releases::SpillFolder;

use crate::errors::to_exception;
use crate::policy::Policy;
use crate::process::{Owned, runtime};
use crate::session::Limits;

/// The session that plans and runs anonymised tables.
struct Engine {
    context: Arc<SessionContext>,
    policies: Arc<PolicyRegistry>,
    _spill: Owned<SpillFolder>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// The interface asks for the context of whoever decodes what is sent.
    fn context_provider(&self) -> FFI_TaskContextProvider {
        let provider = Arc::clone(&self.context) as Arc<dyn TaskContextProvider>;
        FFI_TaskContextProvider::from(&provider)
    }
}

/// The table function `anonymize('table', 'policy')`, and the policies that it knows.
#[pyclass(frozen, module = "throng._native")]
pub(crate) struct AnonymizeTables {
    engine: Arc<Engine>,
}

#[pymethods]
impl AnonymizeTables {
    #[new]
    fn new(policies: BTreeMap<String, Py<Policy>>, limits: Limits) -> PyResult<Self> {
        let (context, spill) = limits.session_options()?.open().map_err(to_exception)?;
        throng::register(&context).map_err(to_exception)?;
        let registry = PolicyRegistry::of_session(&context).map_err(to_exception)?;
        for (name, policy) in policies {
            registry.insert(name, policy.get().policy.as_ref().clone());
        }
        let engine = Engine { context: Arc::new(context), policies: registry, _spill: Owned::new(spill) };
        Ok(Self { engine: Arc::new(engine) })
    }

    /// Adds a policy, or replaces the one that has the name.
    fn add_policy(&self, name: String, policy: &Policy) {
        self.engine.policies.insert(name, policy.policy.as_ref().clone());
    }

    fn __datafusion_table_function__<'py>(
        &self,
        py: Python<'py>,
        session: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Arguments are names, which need no codec of the host.
        drop(session);
        let runtime = runtime().map_err(to_exception)?.handle().clone();
        let function = Arc::new(AnonymizeFunction { engine: Arc::clone(&self.engine) });
        let function = FFI_TableFunction::new(function, Some(runtime), self.engine.context_provider(), None);
        PyCapsule::new_with_value(py, function, c"datafusion_table_function")
    }

    /// Returns the codec that other planners need to pass anonymised tables on.
    fn codec(&self) -> TableCodec {
        TableCodec { engine: Arc::clone(&self.engine) }
    }
}

/// Names anonymised tables in plans that planners of other libraries read.
#[pyclass(frozen, module = "throng._native")]
pub(crate) struct TableCodec {
    engine: Arc<Engine>,
}

#[pymethods]
impl TableCodec {
    #[classattr]
    fn __datafusion_codec_id__() -> &'static str {
        "throng.anonymized-table.v1"
    }

    #[pyo3(signature = (session=None))]
    fn __datafusion_logical_extension_codec__<'py>(
        &self,
        py: Python<'py>,
        session: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(session);
        let runtime = runtime().map_err(to_exception)?.handle().clone();
        let codec = Arc::new(NameCodec { _engine: Arc::clone(&self.engine) });
        let codec = FFI_LogicalExtensionCodec::new(codec, Some(runtime), self.engine.context_provider());
        PyCapsule::new_with_value(py, codec, c"datafusion_logical_extension_codec")
    }
}

const USAGE: &str = "anonymize takes the name of a table and the name of a policy: anonymize('people', 'policy')";

#[derive(Debug)]
struct AnonymizeFunction {
    engine: Arc<Engine>,
}

impl TableFunctionImpl for AnonymizeFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let [Expr::Literal(table, _), Expr::Literal(policy, _)] = args.exprs() else { return plan_err!("{USAGE}") };
        let (Some(Some(table)), Some(Some(name))) = (table.try_as_str(), policy.try_as_str()) else {
            return plan_err!("{USAGE}");
        };
        let Some(policy) = self.engine.policies.get(name) else {
            return plan_err!("anonymize: no policy is registered as `{name}`");
        };
        let rows = find_table(args.session(), &TableReference::from(table))?;
        let frame = self.engine.context.read_table(rows)?.anonymize(&policy)?;
        let schema = Arc::new(frame.schema().as_arrow().clone());
        let table = Arc::new(AnonymizedSource {
            engine: Arc::clone(&self.engine),
            frame,
            schema,
            number: NEXT_TABLE.fetch_add(1, Ordering::Relaxed),
        });
        let known: Arc<dyn TableProvider> = Arc::clone(&table) as _;
        let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
        tables.retain(|_, table| table.strong_count() > 0);
        tables.insert(table.number, Arc::downgrade(&known));
        Ok(table)
    }
}

/// A table of the host's session.
fn find_table(session: &dyn Session, name: &TableReference) -> Result<Arc<dyn TableProvider>> {
    let catalogs = &session.config_options().catalog;
    let resolved = name.clone().resolve(&catalogs.default_catalog, &catalogs.default_schema);
    let catalog = session.catalog_list().catalog(&resolved.catalog);
    let schema = catalog.and_then(|catalog| catalog.schema(&resolved.schema));
    let missing = || plan_datafusion_err!("anonymize: there is no table `{name}`");
    futures::executor::block_on(schema.ok_or_else(missing)?.table(&resolved.table))?.ok_or_else(missing)
}

/// A table of the host, anonymised whenever it is scanned.
#[derive(Debug)]
struct AnonymizedSource {
    engine: Arc<Engine>,
    frame: DataFrame,
    schema: SchemaRef,
    /// Its number in [`TABLES`].
    number: u64,
}

#[async_trait]
impl TableProvider for AnonymizedSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut frame = self.frame.clone();
        if let Some(projection) = projection {
            let columns = frame.schema().columns();
            frame = frame.select(projection.iter().map(|&index| Expr::Column(columns[index].clone())))?;
        }
        Ok(Arc::new(SealedExec::new(frame.create_physical_plan().await?, Arc::clone(&self.engine))))
    }
}

/// A plan of this library that the host runs as it is.
#[derive(Debug)]
struct SealedExec {
    plan: Arc<dyn ExecutionPlan>,
    engine: Arc<Engine>,
    /// The anonymising node in words: the interface passes on names alone.
    name: String,
    properties: Arc<PlanProperties>,
}

impl SealedExec {
    fn new(plan: Arc<dyn ExecutionPlan>, engine: Arc<Engine>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(plan.schema()),
            Partitioning::UnknownPartitioning(plan.output_partitioning().partition_count()),
            plan.pipeline_behavior(),
            plan.boundedness(),
        );
        let shown = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
        let node = shown.lines().map(str::trim).find(|line| line.starts_with("AnonymizeExec"));
        let name = node.unwrap_or("AnonymizeExec").to_owned();
        Self { plan, engine, name, properties: Arc::new(properties) }
    }
}

impl DisplayAs for SealedExec {
    fn fmt_as(&self, _form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl ExecutionPlan for SealedExec {
    fn name(&self) -> &str {
        &self.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<datafusion::common::tree_node::TreeNodeRecursion>,
    ) -> Result<datafusion::common::tree_node::TreeNodeRecursion> {
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = reset_plan_states(Arc::clone(&self.plan))?;
        Ok(Arc::new(Self::new(plan, Arc::clone(&self.engine))))
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = reset_plan_states(Arc::clone(&self.plan))?;
        Ok(Arc::new(Self::new(plan, Arc::clone(&self.engine))))
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        // With the limits of this library's session: the host's pool knows nothing of cells.
        self.plan.execute(partition, self.engine.context.task_ctx())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.plan.metrics()
    }
}

static NEXT_TABLE: AtomicU64 = AtomicU64::new(0);

/// Anonymised tables that somebody holds, by number.
static TABLES: LazyLock<Mutex<BTreeMap<u64, Weak<dyn TableProvider>>>> = LazyLock::new(Mutex::default);

/// Encodes an anonymised table as its number: a plan that another library of this process plans refers to it, and cannot be
/// sent to another process.
#[derive(Debug)]
struct NameCodec {
    /// Held because the interface refers to its context weakly.
    _engine: Arc<Engine>,
}

impl LogicalExtensionCodec for NameCodec {
    fn try_decode(&self, _buf: &[u8], _inputs: &[LogicalPlan], _ctx: &TaskContext) -> Result<Extension> {
        not_impl_err!("throng has no nodes in plans of other libraries")
    }

    fn try_encode(&self, _node: &Extension, _buf: &mut Vec<u8>) -> Result<()> {
        not_impl_err!("throng has no nodes in plans of other libraries")
    }

    fn try_decode_table_provider(
        &self,
        buf: &[u8],
        table_ref: &TableReference,
        _schema: SchemaRef,
        _ctx: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        let number = <[u8; 8]>::try_from(buf).map(u64::from_le_bytes);
        let tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
        let table = number.ok().and_then(|number| tables.get(&number)).and_then(Weak::upgrade);
        table.ok_or_else(|| plan_datafusion_err!("`{table_ref}` is no anonymised table of this process"))
    }

    fn try_encode_table_provider(
        &self,
        table_ref: &TableReference,
        node: Arc<dyn TableProvider>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(table) = node.downcast_ref::<AnonymizedSource>() else {
            return not_impl_err!("`{table_ref}` is not an anonymised table");
        };
        buf.extend_from_slice(&table.number.to_le_bytes());
        Ok(())
    }
}
