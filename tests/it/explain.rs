//! `throng plan`: the shape of the plan, pinned, and that it reads no data.

use std::fs;

use crate::support::{Desk, throng};
use crate::tables::{JOB, people};

/// The plan with the machine's folder taken out.
fn plan(desk: &Desk, more: &[&str]) -> String {
    let ran = desk.throng("plan", more).ok();
    let folder = desk.name("");
    ran.out.replace(folder.trim_start_matches('/'), "")
}

#[test]
fn shape_of_the_plan() {
    let desk = Desk::new();
    throng(&["generate", &desk.name("in.parquet"), "--rows", "4000", "--files", "3", "--quiet"]).ok();
    desk.job(
        "privacy.k = 5\ndefaults.role = \"identifier\"\n[columns]\nage.role = \"quasi\"\nsex.role = \"quasi\"\n\
         tags.role = \"kept\"\nincome.role = \"sensitive\"",
    );
    insta::assert_snapshot!(plan(&desk, &["--partitions", "4"]), @r"
    source: in.parquet (local files)
    sink: out (local files)
    AnonymizeExec: k=5, method=auto, quasi=[age, sex], sensitive=[income]
      SortExec: expr=[__throng_cell@4 ASC], preserve_partitioning=[true]
        RepartitionExec: partitioning=Hash([__throng_cell@4], 4), input_partitions=3
          DataSourceExec: file_groups={3 groups: [[in.parquet/part-00000.parquet], [in.parquet/part-00001.parquet], [in.parquet/part-00002.parquet]]}, projection=[age, sex, income, tags, assign_cell(age@2, sex@3) as __throng_cell], file_type=parquet
      DataSourceExec: file_groups={3 groups: [[in.parquet/part-00000.parquet], [in.parquet/part-00001.parquet], [in.parquet/part-00002.parquet]]}, projection=[age, sex, income], file_type=parquet
    ");
    assert!(desk.sink_files().is_empty(), "a plan writes nothing");
}

#[test]
fn one_partition_needs_no_exchange() {
    let desk = Desk::with(people(100), JOB);
    insta::assert_snapshot!(plan(&desk, &["--partitions", "1"]), @r"
    source: in.parquet (local files)
    sink: out (local files)
    AnonymizeExec: k=5, method=auto, quasi=[age, town], sensitive=[ill]
      SortExec: expr=[__throng_cell@4 ASC], preserve_partitioning=[false]
        DataSourceExec: file_groups={1 group: [[in.parquet]]}, projection=[id, age, town, ill, assign_cell(age@1, town@2) as __throng_cell], file_type=parquet
      DataSourceExec: file_groups={1 group: [[in.parquet]]}, projection=[age, town, ill], file_type=parquet
    ");
}

#[test]
fn plan_reads_no_data() {
    let desk = Desk::with(people(500), JOB);
    let mut bytes = fs::read(desk.path("in.parquet")).unwrap();
    let before = plan(&desk, &[]);
    let pages = bytes.len() / 4;
    bytes[4..pages].fill(0xff);
    fs::write(desk.path("in.parquet"), &bytes).unwrap();
    assert_eq!(plan(&desk, &[]), before, "the plan needs the footer only");
    desk.throng("check", &[]).ok();
    desk.run(&[]).refused(4, &[]);
}
