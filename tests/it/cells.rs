//! Cells are alike in size, whatever the rows look like: none is more than twice as large as another, unless rows that
//! no cut divides make it so.

use serde_json::Value;

use crate::skew::{JOB, Skew, write};
use crate::support::{Desk, manifest, throng};

/// Rows of the table.
const ROWS: usize = 240_000;

/// Runs the job on skewed rows with cells of about so many rows, and returns the rows of the smallest and of the largest.
fn sizes(skew: Skew, rows: usize, wanted: usize) -> (Desk, u64, u64) {
    let desk = Desk::new();
    write(skew, rows, 3, &desk.path("in.parquet"));
    desk.job(&format!("measures.source = true\n{JOB}\n[method]\nauto.effort = \"fast\""));
    let ran = desk.run(&["--json", "--cell-rows", &wanted.to_string()]).ok();
    let reported: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(reported["cell_rows"], manifest(&desk.path("out"))["cell_rows"]);
    let of = |key: &str| reported["cell_rows"][key].as_u64().unwrap();
    let (cells, smallest, largest) = (reported["cells"].as_u64().unwrap(), of("smallest"), of("largest"));
    assert!(cells > 1, "the test is about several cells");
    assert!(smallest * cells <= rows as u64 && rows as u64 <= largest * cells, "{smallest} {cells} {largest}");
    (desk, smallest, largest)
}

/// More distinct rows than the survey keeps, so sizes are those of a sample.
#[test]
fn none_is_twice_as_large_as_another() {
    for skew in [Skew::Zipf, Skew::Town] {
        for cells in [8, 60] {
            let (_, smallest, largest) = sizes(skew, ROWS, ROWS / cells);
            assert!(largest <= 2 * smallest, "{skew:?}, {cells} cells: {smallest} to {largest} rows");
        }
    }
}

/// Copies weigh what they are, and a cell may hold several of the frequent ones.
#[test]
fn copies_are_counted() {
    let rows = ROWS / 2;
    let (_, smallest, largest) = sizes(Skew::Copies, rows, rows / 10);
    assert!(largest <= 2 * smallest, "{smallest} to {largest} rows");
}

/// What cannot be cut is a cell with little beside it, and the others are as large as they should be.
#[test]
fn what_cannot_be_cut_does_not_spoil_the_rest() {
    let (rows, wanted) = (ROWS / 2, ROWS / 40);
    let (_, smallest, largest) = sizes(Skew::Same, rows, wanted);
    let same = rows as u64 * 3 / 10;
    assert!(largest <= same * 101 / 100 + wanted as u64, "{largest} rows, of which {same} are the same");
    assert!(smallest >= wanted as u64 * 6 / 10, "{smallest} rows instead of {wanted}");
}

/// What cutting costs: the loss of many cells against that of one.
#[test]
fn many_cells_lose_hardly_more_than_one() {
    let desk = Desk::new();
    throng(&["generate", &desk.name("in.parquet"), "--rows", "60000", "--quiet"]).ok();
    desk.job(
        "measures.source = true\nprivacy.k = 10\ndefaults.role = \"identifier\"\n[columns]\nage.role = \"quasi\"\nsex.role = \"quasi\"\n\
         postcode = { role = \"quasi\", hierarchy.mask = \"right\" }\n\
         arrival = { role = \"quasi\", hierarchy.calendar = [\"month\", \"year\", \"decade\"] }\nincome.role = \"sensitive\"",
    );
    let loss = |cells: usize, seed: u64| {
        let set = format!("sink.url={}", desk.name(&format!("out{cells}-{seed}")));
        let (rows, seed) = ((60_000 / cells).to_string(), format!("method.seed={seed}"));
        let ran = desk.run(&["--json", "--set", &set, "--set", &seed, "--cell-rows", &rows]).ok();
        let reported: Value = serde_json::from_str(&ran.out).unwrap();
        assert!(reported["cells"].as_u64().unwrap() as usize * 2 >= cells, "{}", reported["cells"]);
        reported["scores"]["gcp"].as_f64().unwrap()
    };
    // The loss of one cell differs by 1 % from seed to seed.
    let mean = |cells: usize| (1..=3).map(|seed| loss(cells, seed)).sum::<f64>() / 3.0;
    let (one, many) = (mean(1), mean(16));
    assert!(many < one * 1.03, "{one} with one cell, {many} with many");
}
