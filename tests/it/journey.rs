//! From an unknown Parquet folder to a published, verified release and its report: three commands, nothing edited.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::{Desk, manifest, throng};

/// Profiles, runs and reports, and looks at what has come of it.
fn travel(desk: &Desk, data: &str) {
    let (job, page) = (desk.name("job.toml"), desk.name("report.html"));
    let profiled = throng(&["profile", data, "--write", &job]).ok();
    assert!(profiled.out.contains("rows are unique in"), "{}", profiled.out);
    assert!(profiled.err.contains("hold values of the data"), "{}", profiled.err);
    let drafted = fs::read_to_string(&job).unwrap();
    fs::write(&job, format!("{drafted}\n[measures]\nqueries.count = 24\n")).unwrap();
    throng(&["run", &job]).ok();
    throng(&["report", &job, "-o", &page]).ok();

    let verified = throng(&["verify", &job]).ok();
    assert!(verified.out.contains("against the source"), "{verified:?}");
    assert!(throng(&["check", &job]).ok().out.contains("fine"));
    let manifest = manifest(&desk.path("release"));
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("The release keeps its promises"));
    let gcp = format!("<dd id=\"gcp\">{:.4}</dd>", manifest["scores"]["gcp"].as_f64().unwrap());
    assert!(html.contains(&gcp), "{gcp}");
    let queries = &manifest["scores"]["queries"];
    assert!(queries["count"].as_u64().unwrap() > 10, "{queries}");
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    for (id, figure) in [("q-median", "median"), ("q-mean", "mean"), ("q-worst", "worst")] {
        let cell = format!("id=\"{id}\">{}<", percent(queries[figure].as_f64().unwrap()));
        assert!(html.contains(&cell), "{cell}");
    }
    for column in manifest["class_columns"].as_array().unwrap() {
        assert!(html.contains(&format!("<h3>{}</h3>", column.as_str().unwrap())), "{column}");
    }
    assert!(html.contains("compared row by row with the source"));
    assert!(!html.contains("<script") && !html.contains("http"), "the page stands alone");
}

fn roles(job: &str) -> Vec<(String, String)> {
    let job: toml::Table = fs::read_to_string(job).unwrap().parse().unwrap();
    let columns = job["columns"].as_table().unwrap();
    columns.iter().map(|(name, column)| (name.clone(), column["role"].as_str().unwrap().to_owned())).collect()
}

#[test]
fn the_generated_census() {
    let desk = Desk::new();
    throng(&["generate", "--rows", "3000", "--files", "2", &desk.name("people")]).ok();
    travel(&desk, &desk.name("people"));
    let found = roles(&desk.name("job.toml"));
    let role = |name: &str| found.iter().find(|(column, _)| column == name).unwrap().1.as_str();
    for name in ["person_id", "name", "updated_at"] {
        assert_eq!(role(name), "identifier", "{name}");
    }
    for name in ["age", "sex", "region", "postcode", "education", "occupation", "marital_status", "arrival"] {
        assert_eq!(role(name), "quasi", "{name}");
    }
    for name in ["diagnosis", "income"] {
        assert_eq!(role(name), "sensitive", "{name}");
    }
    for file in fs::read_dir(desk.path("hierarchies")).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "hierarchies hold values of the data");
    }
}

#[test]
fn uci_adult() {
    let desk = Desk::new();
    fs::create_dir(desk.path("adult")).unwrap();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines/data/adult.parquet");
    fs::copy(data, desk.path("adult/part-0.parquet")).unwrap();
    travel(&desk, &desk.name("adult"));
    let mine: toml::Table =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines/adult.toml")).unwrap().parse().unwrap();
    let found = roles(&desk.name("job.toml"));
    let right = |(name, role): &&(String, String)| mine["columns"][name.as_str()]["role"].as_str() == Some(role);
    let wrong: Vec<_> = found.iter().filter(|pair| pair.0 != "id" && !right(pair)).collect();
    assert!(found.len() == 10 && wrong.len() <= 1, "{wrong:?}");
}

#[test]
fn a_profile_shows_values_on_demand_only() {
    let desk = Desk::new();
    throng(&["generate", "--rows", "500", &desk.name("people.parquet")]).ok();
    let data = desk.name("people.parquet");
    let plain: Value = serde_json::from_str(&throng(&["profile", &data, "--json"]).ok().out).unwrap();
    assert_eq!(plain["rows"], 500);
    let columns = plain["columns"].as_array().unwrap();
    assert!(columns.iter().all(|column| column.get("values").is_none()));
    let named = |columns: &[Value], name: &str| columns.iter().find(|column| column["name"] == name).unwrap().clone();
    assert_eq!(named(columns, "person_id")["uniqueness"], 1.0);
    assert!(plain["exposure"]["unique"].as_f64().unwrap() > 0.9);
    assert!(!plain["exposure"]["singling"].as_array().unwrap().is_empty());
    let shown: Value = serde_json::from_str(&throng(&["profile", &data, "--json", "--show-values"]).ok().out).unwrap();
    let sex = named(shown["columns"].as_array().unwrap(), "sex");
    assert!(sex["values"]["commonest"].to_string().contains("female"));
}

#[test]
fn a_profile_says_what_it_has_estimated_and_does_not_depend_on_partitions() {
    let desk = Desk::new();
    throng(&["generate", "--rows", "70000", "--files", "3", &desk.name("people")]).ok();
    let data = desk.name("people");
    let reported = |partitions: &str| throng(&["profile", &data, "--json", "--partitions", partitions]).ok().out;
    let one = reported("1");
    assert_eq!(one, reported("3"));
    let profile: Value = serde_json::from_str(&one).unwrap();
    let column = |name: &str| {
        profile["columns"].as_array().unwrap().iter().find(|column| column["name"] == name).unwrap().clone()
    };
    let (id, age) = (column("person_id"), column("age"));
    assert_eq!((&id["estimated"], &age["estimated"]), (&true.into(), &false.into()));
    let distinct = id["distinct"].as_f64().unwrap();
    assert!((distinct / 70_000.0 - 1.0).abs() < 0.02, "about {distinct} of 70,000");
    assert_eq!(profile["exposure"]["estimated_from"], 65_536);
    let shown = throng(&["profile", &data]).ok().out;
    assert!(shown.contains("All 70,000 rows were read. Estimated (~"), "{shown}");
}

#[test]
fn nothing_is_overwritten_unless_asked_for() {
    let desk = Desk::new();
    throng(&["generate", "--rows", "500", &desk.name("people.parquet")]).ok();
    desk.write("job.toml", "mine");
    let (data, job) = (desk.name("people.parquet"), desk.name("job.toml"));
    throng(&["profile", &data, "--write", &job]).refused(7, &["job.toml", "--force"]);
    assert_eq!(fs::read_to_string(&job).unwrap(), "mine");
    throng(&["profile", &data, "--write", &job, "--force"]).ok();
    throng(&["check", &job]).ok();
}
