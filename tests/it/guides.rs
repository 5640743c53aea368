//! The commands of the guides work as they stand: every guide's are run one after another in an empty folder.

use std::fs;
use std::path::Path;

use crate::support::shell;

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
