//! How released files are laid out: folders, sizes, order, statistics.

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::parquet::file::reader::FileReader;
use datafusion::parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};

use crate::support::{Desk, NULL, batch, lines, manifest, read_parquet, released_files, texts, throng, write_parquet};
use crate::tables::{JOB, people, words};

/// People of three wards, one of them with a name that needs care, and some of none.
fn wards(rows: usize) -> Vec<(&'static str, ArrayRef)> {
    let mut columns = people(rows);
    let wards = ["A/1 ü", "B", "C%20"];
    let ward = |row: usize| (row % 4 < 3).then(|| wards[row % 4]);
    columns.push(("ward", Arc::new(StringArray::from_iter((0..rows).map(ward)))));
    columns.push(("day", Arc::new(BooleanArray::from_iter((0..rows).map(|row| Some(row % 3 == 0))))));
    columns
}

const KEPT: &str = "ward.role = \"kept\"\nday.role = \"kept\"\n";

#[test]
fn kept_columns_become_folders() {
    let desk = Desk::with(wards(400), &format!("{JOB}{KEPT}[output]\npartition-by = [\"ward\", \"day\"]\n"));
    desk.throng("check", &[]).ok();
    desk.run(&["--partitions", "4"]).ok();
    let files = released_files(&desk.path("out"));
    assert_eq!(files.len(), 8, "one file for each of eight folders: {files:?}");
    let mut rows = 0;
    for file in &files {
        let path = file.to_str().unwrap();
        let part = read_parquet(file);
        assert!(part.column_by_name("ward").is_none() && part.column_by_name("day").is_none());
        assert!(path.contains("/day=true/") || path.contains("/day=false/"), "{path}");
        rows += part.num_rows();
    }
    assert_eq!(rows, 400);
    let text = format!("{files:?}");
    for folder in ["ward=A%2F1 %C3%BC/", "ward=B/", "ward=C%2520/", "ward=__HIVE_DEFAULT_PARTITION__/"] {
        assert!(text.contains(folder), "{folder} is not in {text}");
    }
    desk.throng("verify", &[]).ok();
    throng(&["verify", &desk.name("out")]).ok();
    assert!(manifest(&desk.path("out"))["schema"]["ward"].is_string());

    // What was written can be read again by its folders.
    let data = manifest(&desk.path("out"))["data"].as_str().unwrap().to_owned();
    let again = format!(
        "version = 1\nsource.url = \"out/{data}\"\nsink.url = \"again\"\nprivacy.k = 2\ndefaults.role = \"kept\"\n\
         columns.town = {{ role = \"quasi\" }}\n"
    );
    desk.write("again.toml", &again);
    throng(&["run", &desk.name("again.toml")]).ok();
    let again = crate::support::released(&desk.path("again"));
    let count = |ward: &str| texts(&again, "ward").iter().filter(|other| *other == ward).count();
    assert_eq!((count("A/1 ü"), count("B"), count("C%20"), count(NULL)), (100, 100, 100, 100));
}

#[test]
fn only_kept_columns_name_folders() {
    for (column, why) in [("town", "quasi-identifier"), ("ill", "sensitive"), ("nobody", "no role")] {
        let desk = Desk::with(people(50), &format!("{JOB}[output]\npartition-by = [\"{column}\"]\n"));
        for command in ["check", "run"] {
            desk.throng(command, &[]).refused(3, &["output.partition-by", &format!("`{column}`"), why]);
        }
    }
    let empty: ArrayRef = words(50, &[""], 1);
    let mut columns = people(50);
    columns.push(("ward", empty));
    let desk = Desk::with(columns, &format!("{JOB}ward.role = \"kept\"\n[output]\npartition-by = [\"ward\"]\n"));
    desk.run(&[]).refused(4, &["output.partition-by", "`ward`", "empty text"]);
    assert!(desk.sink_files().is_empty());
}

#[test]
fn files_end_at_their_size() {
    let desk = Desk::with(people(4000), &format!("{JOB}[output]\nfile-size = \"6kB\"\nrow-group-rows = 500\n"));
    desk.run(&["--partitions", "1", "--batch-rows", "256"]).ok();
    let files = released_files(&desk.path("out"));
    assert!(files.len() > 1, "{files:?}");
    for (at, file) in files.iter().enumerate() {
        let size = std::fs::metadata(file).unwrap().len();
        assert!(size < 20_000, "file {at} has {size} bytes");
    }
    Desk::with(people(50), &format!("{JOB}[output]\nfile-size = \"big\"\n"))
        .run(&[])
        .refused(3, &["output.file-size", "256MB"]);
}

/// The released rows in the order of the files.
fn sequence(desk: &Desk) -> Vec<String> {
    let names = ["id", "age", "town", "ill"].map(str::to_owned);
    released_files(&desk.path("out")).iter().flat_map(|file| lines(&read_parquet(file), &names)).collect()
}

#[test]
fn the_order_of_rows_tells_nothing_of_the_input() {
    let rows = batch(people(3000));
    let released = |rows: &RecordBatch| {
        let desk = Desk::new();
        write_parquet(&desk.path("in.parquet"), rows);
        desk.job(JOB);
        desk.run(&["--partitions", "2"]).ok();
        sequence(&desk)
    };
    let first = released(&rows);
    let mut order: Vec<u32> = (0..3000).collect();
    fastrand::Rng::with_seed(7).shuffle(&mut order);
    let shuffled = take_record_batch(&rows, &UInt32Array::from(order)).unwrap();
    assert_eq!(released(&shuffled), first, "the same rows in another order are written in the same order");
}

#[test]
fn files_carry_dictionaries_and_page_statistics() {
    let desk = Desk::with(people(2000), JOB);
    desk.run(&[]).ok();
    for file in released_files(&desk.path("out")) {
        let options = ReadOptionsBuilder::new().with_page_index().build();
        let reader = SerializedFileReader::new_with_options(File::open(&file).unwrap(), options).unwrap();
        let metadata = reader.metadata();
        assert!(metadata.column_index().is_some() && metadata.offset_index().is_some(), "page statistics");
        for group in metadata.row_groups() {
            for column in group.columns() {
                assert!(column.statistics().is_some(), "{}", column.column_path());
                if column.column_path().string() == "town" {
                    assert!(column.dictionary_page_offset().is_some());
                }
            }
        }
    }
}
