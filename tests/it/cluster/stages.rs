//! `throng plan --cluster`: how a job is cut into stages, pinned. Nothing is asked of a scheduler.

use crate::support::{Desk, throng};

#[test]
fn no_stage_brings_the_table_into_one_task() {
    let desk = Desk::new();
    throng(&["generate", &desk.name("in.parquet"), "--rows", "4000", "--files", "3", "--quiet"]).ok();
    desk.job(
        "privacy.k = 5\ndefaults.role = \"identifier\"\n[columns]\nage.role = \"quasi\"\nsex.role = \"quasi\"\n\
         tags.role = \"kept\"\nincome.role = \"sensitive\"",
    );
    let plan = desk.throng("plan", &["--partitions", "3", "--cluster", "df://scheduler"]).ok().out;
    let folder = desk.name("");
    insta::assert_snapshot!(plan.replace(folder.trim_start_matches('/'), ""), @r"
    source: in.parquet (local files)
    sink: out (local files)
    cluster: df://scheduler:50050
    survey, stage 1: 3 tasks
      ShuffleWriterExec: partitioning: UnknownPartitioning(3)
        GuardExec: end of a stage
          SurveyExec: quasi=2, sensitive=1
            DataSourceExec: file_groups={3 groups: [[in.parquet/part-00000.parquet], [in.parquet/part-00001.parquet], [in.parquet/part-00002.parquet]]}, projection=[age, sex, income], file_type=parquet
    group, stage 1: 3 tasks
      SortShuffleWriterExec: partitioning=Hash([__throng_cell@4], 3)
        GuardExec: end of a stage
          DataSourceExec: file_groups={3 groups: [[in.parquet/part-00000.parquet], [in.parquet/part-00001.parquet], [in.parquet/part-00002.parquet]]}, projection=[age, sex, income, tags, assign_cell(age@2, sex@3) as __throng_cell], file_type=parquet
    group, stage 2: 3 tasks
      SortShuffleWriterExec: partitioning=Hash([part@2], 3)
        GuardExec: end of a stage
          CollapseExec: class=[age, sex]
            AnonymizeExec: k=5, method=auto, quasi=[age, sex], sensitive=[income]
              GuardExec: start of a stage
                SortExec: expr=[__throng_cell@4 ASC], preserve_partitioning=[true]
                  UnresolvedShuffleExec: stage=1, partitioning: Hash([__throng_cell@4], 3)
    group, stage 3: 3 tasks
      ShuffleWriterExec: partitioning: UnknownPartitioning(3)
        GuardExec: end of a stage
          WriteExec: folder=out/data
            SortExec: expr=[key@0 ASC], preserve_partitioning=[true]
              GuardExec: start of a stage
                UnresolvedShuffleExec: stage=2, partitioning: Hash([part@2], 3)
    ");
    assert!(desk.sink_files().is_empty(), "a plan writes nothing");
}
