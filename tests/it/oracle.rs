//! An outside oracle: what `throng verify` says of a release is what pycanon says of the same files.

use std::process::Command;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, StringArray};
use fastrand::Rng;
use serde_json::Value;

use crate::support::Desk;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/figures.py");

/// Policies, each with its method; all guard one or both of the sensitive columns, or neither.
const POLICIES: [(&str, &str); 8] = [
    ("auto", "k = 5"),
    ("auto", "k = 4\nl-diversity = { column = \"ill\", l = 3 }"),
    (
        "mondrian",
        "k = 5\nl-diversity = [{ column = \"ill\", kind = \"entropy\", l = 2.5 }, \
         { column = \"pay\", kind = \"recursive\", c = 2, l = 3 }]",
    ),
    ("auto", "k = 5\nt-closeness = [{ column = \"ill\", t = 0.3 }, { column = \"pay\", t = 0.25 }]"),
    ("k-members", "k = 6\nalpha-k = { column = \"ill\", alpha = 0.5 }\nbeta-likeness = { column = \"pay\", beta = 4 }"),
    ("mondrian", "k = 3\ndelta-disclosure = { column = \"ill\", delta = 1.3 }"),
    ("auto", "k = 5\nbeta-likeness = { column = \"ill\", beta = 1.5, kind = \"enhanced\" }"),
    ("auto", "k = 5\nmax-loss = 0.12\nmax-suppression = 0.9\np-sensitive = { column = \"ill\", p = 2 }"),
];

fn patients() -> Vec<(&'static str, ArrayRef)> {
    let mut rng = Rng::with_seed(11);
    let rows = 400;
    let rare = |rng: &mut Rng, most: usize| rng.usize(0..most).min(rng.usize(0..most));
    let towns = ["Ash", "Birch", "Cedar", "Elm"];
    let ills = ["flu", "gout", "rash", "cold", "mumps"];
    let mut ages = Vec::new();
    let (mut town, mut ill, mut pay) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        ages.push(rng.i32(20..80));
        town.push(towns[rare(&mut rng, 4)]);
        ill.push(ills[rare(&mut rng, 5)]);
        pay.push(10 * rare(&mut rng, 12) as i32);
    }
    vec![
        ("age", Arc::new(Int32Array::from(ages)) as ArrayRef),
        ("town", Arc::new(StringArray::from(town))),
        ("ill", Arc::new(StringArray::from(ill))),
        ("pay", Arc::new(Int32Array::from(pay))),
    ]
}

/// What the script says of the newest release. Without Python the test fails, and names the script.
fn oracle(desk: &Desk) -> Value {
    let output = Command::new("python3").args([SCRIPT, &desk.name("out"), "ill", "pay"]).output();
    let output = output.unwrap_or_else(|error| panic!("{SCRIPT} needs python3: {error}"));
    assert!(output.status.success(), "{SCRIPT} failed: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{SCRIPT} printed no JSON: {error}"))
}

#[test]
fn pycanon_agrees_with_verify() {
    let columns =
        "[columns]\nage.role = \"quasi\"\ntown.role = \"quasi\"\nill.role = \"sensitive\"\npay.role = \"sensitive\"\n";
    for (method, policy) in POLICIES {
        let desk = Desk::with(patients(), &format!("method.name = \"{method}\"\n{columns}[privacy]\n{policy}"));
        desk.run(&["--quiet"]).ok();
        let ours: Value = serde_json::from_str(&desk.throng("verify", &["--json"]).ok().out).unwrap();
        let theirs = oracle(&desk);
        assert_eq!((&ours["rows"], &ours["k"]), (&theirs["rows"], &theirs["k"]), "{policy}");
        for column in ["ill", "pay"] {
            let (ours, theirs) = (&ours["attained"][column], &theirs["attained"][column]);
            let about = format!("{policy}: {column}: {ours} and {theirs}");
            let mine = |figure: &str| ours[figure].as_f64().unwrap_or_else(|| panic!("{figure}: {about}"));
            assert_eq!(ours["l"], theirs["l"], "{about}");
            for figure in ["alpha", "t", "beta", "delta"] {
                assert!((mine(figure) - theirs[figure].as_f64().unwrap()).abs() < 1e-9, "{figure}: {about}");
            }
            // pycanon caps the figure by the rarest value, we leave it out where no beta would do.
            if ours.get("beta_enhanced").is_some() {
                assert!((mine("beta_enhanced") - theirs["beta_enhanced"].as_f64().unwrap()).abs() < 1e-9, "{about}");
            }
            // pycanon cuts entropy l off to a whole number, a last digit too low if need be.
            let whole = theirs["entropy_l"].as_f64().unwrap();
            assert!((whole - 1e-9..whole + 1.0 + 1e-9).contains(&mine("entropy_l")), "entropy l: {about}");
            // The smallest whole c for which (c, l)-diversity holds; for l = 1 it has none.
            match theirs["c"].as_f64() {
                Some(c) => assert!((c - 1.0 - 1e-9..c + 1e-9).contains(&mine("c")), "c: {about}"),
                None => assert_eq!(ours["l"], 1, "{about}"),
            }
            assert_eq!(ours["l"], theirs["l_of_c"], "{about}");
        }
    }
}
