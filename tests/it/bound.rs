//! `throng bound`: a loss that no release goes below, beside what the job loses.

use serde_json::Value;

use crate::support::Desk;
use crate::tables::{JOB, people};

#[test]
fn a_bound_is_below_what_every_method_loses() {
    let desk = Desk::with(people(300), JOB);
    for method in ["auto", "mondrian"] {
        let set = format!("method.name={method}");
        let said = desk.throng("bound", &["--k", "5,20", "--rounds", "3", "--json", "--set", &set]).ok();
        let found: Vec<Value> = serde_json::from_str(&said.out).unwrap();
        assert_eq!(found.len(), 2);
        for bound in &found {
            let number = |name: &str| bound[name].as_f64().unwrap();
            assert_eq!(bound["rows"], 300);
            assert!(number("gcp") > 0.0 && number("gcp") <= number("lost"), "{bound}");
            assert!((number("times") - number("lost") / number("gcp")).abs() < 0.01, "{bound}");
        }
        // Larger classes cannot lose less.
        assert!(found[0]["gcp"].as_f64() < found[1]["gcp"].as_f64(), "{found:?}");
    }
}
