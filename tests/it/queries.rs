//! COUNT queries on the source and on the release: DataFusion answers them from the files, and gets what the operator adds
//! up from its groups.

use serde_json::Value;

use crate::support::{Desk, manifest, throng};

const HIERARCHIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines/hierarchies");

/// Every way to publish a value that shows a reader what its group covers: ranges, sets, nodes, masks, steps of a ladder and
/// of the calendar; some of them with nulls.
fn census(rest: &str) -> Desk {
    let desk = Desk::new();
    throng(&["generate", &desk.name("in.parquet"), "--rows", "900", "--seed", "5", "--quiet"]).ok();
    desk.job(&format!(
        "privacy = {{ k = 6, max-suppression = 0.5 }}\ndefaults.role = \"identifier\"\n[columns]\nage.role = \"quasi\"\n\
         sex.role = \"quasi\"\nregion = {{ role = \"quasi\", hierarchy = \"{HIERARCHIES}/region.csv\" }}\n\
         postcode = {{ role = \"quasi\", hierarchy.mask = \"right\" }}\n\
         household_size = {{ role = \"quasi\", hierarchy.widths = [2, 4] }}\n\
         arrival = {{ role = \"quasi\", hierarchy.calendar = [\"month\", \"year\", \"decade\"] }}\n\
         diagnosis.role = \"sensitive\"\n{rest}\n"
    ));
    desk
}

fn asked(dimensions: u32, selectivity: f64) -> String {
    format!("[measures]\nqueries = {{ count = 300, dimensions = {dimensions}, selectivity = {selectivity}, seed = 9 }}")
}

fn scores_of_a_trial(desk: &Desk) -> Value {
    let said = desk.throng("sweep", &["--k", "6", "--json", "--quiet"]).ok().out;
    serde_json::from_str::<Vec<Value>>(&said).unwrap()[0]["scores"]["queries"].clone()
}

#[test]
fn files_and_groups_give_the_same_answers() {
    for (dimensions, selectivity) in [(1, 0.1), (3, 0.05)] {
        let desk = census(&asked(dimensions, selectivity));
        desk.run(&["--quiet"]).ok();
        let files = manifest(&desk.path("out"))["scores"]["queries"].clone();
        let groups = scores_of_a_trial(&desk);
        assert!(files["count"].as_u64().unwrap() > 100 && files["mean"].as_f64().unwrap() > 0.001, "{files}");
        assert_eq!((&files["count"], &files["empty"]), (&groups["count"], &groups["empty"]));
        for error in ["mean", "median", "worst"] {
            let (files, groups) = (files[error].as_f64().unwrap(), groups[error].as_f64().unwrap());
            // Both are rounded to four digits, and may be on either side of a half.
            assert!((files - groups).abs() <= 1e-3 * groups, "{error}: {files} and {groups}");
        }
    }
}

/// Who asks for everything gets everything but the suppressed rows; and what is published as it was is counted exactly.
#[test]
fn what_is_published_exactly_is_counted_exactly() {
    let of = |desk: &Desk| {
        desk.run(&["--quiet"]).ok();
        let manifest = manifest(&desk.path("out"));
        (manifest["scores"]["queries"]["worst"].as_f64().unwrap(), manifest["suppressed"].as_u64().unwrap())
    };
    let two_tables = census(&format!("[method]\nname = \"mondrian\"\nform = \"anatomy\"\n{}", asked(2, 0.1)));
    assert_eq!(of(&two_tables), (0.0, 0));
    let mean = census(
        &asked(2, 0.1).replace("[measures]", "[columns.income]\nrole = \"quasi\"\npublish = \"centroid\"\n[measures]"),
    );
    let (worst, _) = of(&mean);
    assert!(worst.is_finite() && worst > 0.0, "a mean is read as a value");
}
