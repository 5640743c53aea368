//! Plans that go over the wire and come back.

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::file_format::options::ParquetReadOptions;
use datafusion::physical_plan::collect;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion_proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::logical_plan::DefaultLogicalExtensionCodec;
use tempfile::TempDir;

use super::*;
use crate::extension::{AnonymizeExt, register};
use crate::policy::Policy;

/// The codecs of a plan over files: ours for our nodes, DataFusion's for the rest.
#[derive(Debug)]
struct Everything;

impl LogicalExtensionCodec for Everything {
    fn try_decode(&self, buffer: &[u8], inputs: &[LogicalPlan], context: &TaskContext) -> Result<Extension> {
        LogicalExtensionCodec::try_decode(&AnonymizeCodec, buffer, inputs, context)
    }

    fn try_encode(&self, node: &Extension, buffer: &mut Vec<u8>) -> Result<()> {
        LogicalExtensionCodec::try_encode(&AnonymizeCodec, node, buffer)
    }

    fn try_decode_table_provider(
        &self,
        buffer: &[u8],
        table: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        DefaultLogicalExtensionCodec {}.try_decode_table_provider(buffer, table, schema, context)
    }

    fn try_encode_table_provider(
        &self,
        table: &TableReference,
        provider: Arc<dyn TableProvider>,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        LogicalExtensionCodec::try_encode_table_provider(&AnonymizeCodec, table, provider, buffer)
    }
}

/// Rules, hierarchies from a file, inline and by ladder, sets, masks: everything that parameters can hold.
const POLICY: &str = r#"
    privacy.k = 5
    privacy.l-diversity = { column = "illness", kind = "entropy", l = 1.5 }
    privacy.t-closeness = { column = "illness", t = 0.5 }
    method = { name = "toc", seed = 7 }
    [columns]
    id = { role = "identifier" }
    age = { role = "quasi" }
    town = { role = "quasi", hierarchy = "town.csv" }
    code = { role = "quasi", hierarchy = { mask = "right" } }
    trade = { role = "quasi" }
    height = { role = "quasi", hierarchy = { quantiles = [8, 2] } }
    illness = { role = "sensitive" }
"#;

async fn people(folder: &TempDir) -> (SessionContext, DataFrame, Policy) {
    std::fs::write(folder.path().join("town.csv"), "Ely;east;*\nBath;west;*\nWells;west;*\nYork;north;*\n").unwrap();
    std::fs::write(folder.path().join("policy.toml"), POLICY).unwrap();
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(3));
    register(&context).unwrap();
    let path = folder.path().join("people.parquet").display().to_string();
    let made = "SELECT i AS id, 18 + (i * 7919) % 70 AS age,
                  CASE (i * 31) % 4 WHEN 0 THEN 'Ely' WHEN 1 THEN 'Bath' WHEN 2 THEN 'Wells' ELSE 'York' END AS town,
                  concat('AB', CAST((i * 13) % 90 + 10 AS VARCHAR)) AS code,
                  CASE (i * 17) % 3 WHEN 0 THEN 'smith' WHEN 1 THEN 'cook' ELSE 'clerk' END AS trade,
                  150.0 + (i * 37) % 50 AS height,
                  CASE i % 3 WHEN 0 THEN 'flu' WHEN 1 THEN 'gout' ELSE 'mumps' END AS illness
                FROM (SELECT unnest(range(1, 1201)) AS i)";
    let rows = context.sql(made).await.unwrap();
    rows.write_parquet(&path, Default::default(), None).await.unwrap();
    let frame = context.read_parquet(path, ParquetReadOptions::default()).await.unwrap();
    let policy = Policy::open(&folder.path().join("policy.toml")).unwrap();
    (context, frame, policy)
}

fn sorted(batches: &[datafusion::arrow::array::RecordBatch]) -> Vec<String> {
    let mut lines: Vec<String> =
        pretty_format_batches(batches).unwrap().to_string().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn a_surveyed_plan_survives_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let (context, frame, policy) = people(&folder).await;
    let surveyed = frame.anonymize_surveyed(&policy).await.unwrap();
    assert!(!format!("{:?}", surveyed.logical_plan()).contains("smith"), "plans are logged");
    // What is sent must not depend on files of the sender.
    std::fs::remove_file(folder.path().join("town.csv")).unwrap();
    let expected = sorted(&surveyed.clone().collect().await.unwrap());
    assert!(expected.len() > 1200, "all rows are there");

    let (state, logical) = surveyed.into_parts();
    let bytes = logical_plan_to_bytes_with_extension_codec(&logical, &Everything).unwrap();
    let task = context.task_ctx();
    let logical = logical_plan_from_bytes_with_extension_codec(&bytes, &task, &Everything).unwrap();
    let received = DataFrame::new(state, logical);
    assert_eq!(sorted(&received.clone().collect().await.unwrap()), expected);

    let physical = received.create_physical_plan().await.unwrap();
    let bytes = physical_plan_to_bytes_with_extension_codec(physical, &AnonymizeCodec).unwrap();
    let physical = physical_plan_from_bytes_with_extension_codec(&bytes, &task, &AnonymizeCodec).unwrap();
    assert_eq!(sorted(&collect(physical, task).await.unwrap()), expected);
}

#[tokio::test]
async fn an_unsurveyed_plan_is_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let (_, frame, policy) = people(&folder).await;
    let lazy = frame.anonymize(&policy).unwrap();
    let error = logical_plan_to_bytes_with_extension_codec(lazy.logical_plan(), &Everything).unwrap_err();
    assert!(error.to_string().contains("once its input has been surveyed"), "{error}");
    let physical = lazy.create_physical_plan().await.unwrap();
    let error = physical_plan_to_bytes_with_extension_codec(physical, &AnonymizeCodec).unwrap_err();
    assert!(error.to_string().contains("once its input has been surveyed"), "{error}");
}

#[tokio::test]
async fn plans_of_other_versions_and_broken_ones_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_, frame, policy) = people(&folder).await;
    let surveyed = frame.anonymize_surveyed(&policy).await.unwrap();
    let LogicalPlan::Extension(node) = surveyed.logical_plan() else { panic!("the node is on top") };
    let mut bytes = Vec::new();
    LogicalExtensionCodec::try_encode(&AnonymizeCodec, node, &mut bytes).unwrap();
    assert!(decode_params(&bytes).is_ok());
    // The first field is the format: tag 1, a number of one byte.
    assert_eq!(bytes[..2], [8, messages::FORMAT as u8]);
    let refused = |bytes: &[u8]| decode_params(bytes).unwrap_err().to_string();
    let mut newer = bytes.clone();
    newer[1] += 1;
    assert!(refused(&newer).contains("run the same version everywhere"));
    assert!(refused(&bytes[..bytes.len() / 2]).contains("cannot be read"));
    let altered = bytes.windows(5).position(|part| part == b"k = 5").unwrap();
    bytes[altered + 4] = b'4';
    assert!(refused(&bytes).contains("its policy reads differently here"));
}
