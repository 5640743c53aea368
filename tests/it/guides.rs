//! The commands of the guides work as they stand: every guide's are run one after another in an empty folder.

use std::fs;
use std::path::Path;

use crate::support::{shell, throng};

/// The lines of the `sh` blocks of a guide.
fn commands(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("//!")) {
        let line = line.trim();
        match (line, inside) {
            ("```sh", _) => inside = true,
            ("```", true) => inside = false,
            (_, true) => found.push(line.to_owned()),
            _ => {}
        }
    }
    found
}

#[test]
fn every_command_of_every_guide() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/guide");
    let mut guides = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let commands = commands(&fs::read_to_string(&path).unwrap());
        if commands.is_empty() {
            continue;
        }
        guides += 1;
        let place = tempfile::tempdir().unwrap();
        for command in commands {
            let script = command.replacen("throng ", "\"$THRONG\" ", 1);
            let ran = shell(place.path(), &script);
            assert_eq!(ran.code, Some(0), "{}: {command}\n{}{}", path.display(), ran.out, ran.err);
        }
    }
    assert!(guides >= 4, "{guides} guides with commands");
}

/// Names in the first column of a guide's tables.
fn named(guide: &str) -> Vec<&str> {
    let rows = guide.lines().filter_map(|line| line.strip_prefix("//! | `"));
    rows.filter_map(|row| row.split_once("` |")).map(|(name, _)| name).collect()
}

#[test]
fn the_guides_know_every_method_and_rule() {
    let guide =
        |name: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/guide").join(name)).unwrap();
    let (methods, rules) = (guide("methods.rs"), guide("rules.rs"));
    let (methods, rules) = (named(&methods), named(&rules));
    for method in throng_core::methods::METHODS {
        assert!(methods.contains(&method.name), "src/guide/methods.rs does not list the method `{}`", method.name);
    }
    let schema: serde_json::Value = serde_json::from_str(&throng(&["schema"]).ok().out).unwrap();
    let keys = schema["$defs"]["Privacy"]["properties"].as_object().unwrap();
    for key in keys.keys().filter(|key| !["person", "max-suppression"].contains(&key.as_str())) {
        assert!(rules.contains(&key.as_str()), "src/guide/rules.rs does not list the rule `{key}`");
    }
}
