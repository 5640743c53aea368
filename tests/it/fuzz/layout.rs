//! How a table lies in files: how many there are, their row groups, pages, encodings and statistics.

use std::fs::File;
use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use fastrand::Rng;

/// The files of a table.
#[derive(Debug, Clone)]
pub struct Layout {
    files: usize,
    row_group: usize,
    page: usize,
    dictionary: bool,
    second_version: bool,
    statistics: EnabledStatistics,
    compression: Compression,
}

impl Layout {
    /// Some layout.
    pub fn random(rng: &mut Rng) -> Self {
        let statistics = [EnabledStatistics::None, EnabledStatistics::Chunk, EnabledStatistics::Page];
        Self {
            files: rng.usize(1..5),
            row_group: rng.usize(1..80),
            page: rng.usize(1..40),
            dictionary: rng.bool(),
            second_version: rng.bool(),
            statistics: *rng.choice(&statistics).unwrap(),
            compression: *rng.choice(&[Compression::UNCOMPRESSED, Compression::SNAPPY]).unwrap(),
        }
    }

    /// Writes a table. Where it has fewer rows than there are files, some hold none.
    pub fn write(&self, folder: &Path, table: &RecordBatch) {
        std::fs::create_dir_all(folder).unwrap();
        let share = table.num_rows().div_ceil(self.files).max(1);
        for number in 0..self.files {
            let from = (number * share).min(table.num_rows());
            let part = table.slice(from, share.min(table.num_rows() - from));
            let file = File::create(folder.join(format!("{number}.parquet"))).unwrap();
            let version = if self.second_version { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
            let properties = WriterProperties::builder()
                .set_max_row_group_row_count(Some(self.row_group))
                .set_data_page_row_count_limit(self.page)
                .set_dictionary_enabled(self.dictionary)
                .set_writer_version(version)
                .set_statistics_enabled(self.statistics)
                .set_compression(self.compression)
                .build();
            let mut writer = ArrowWriter::try_new(file, table.schema(), Some(properties)).unwrap();
            writer.write(&part).unwrap();
            writer.close().unwrap();
        }
    }
}
