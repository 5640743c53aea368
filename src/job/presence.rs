//! Checks of `privacy.presence`: bounds that can be met, a public table that is there, published forms that can be counted.

use std::path::Path;

use super::check::{check_location, outside_share};
use super::locate::{local_path, names};
use super::model::{Job, Presence, Publish};
use super::problem::Problem;

pub(super) fn check_presence(job: &Job, base: &Path, problems: &mut Vec<Problem>) {
    let Some(Presence { public, min, max, key }) = &job.privacy.presence else { return };
    problems.extend(outside_share("privacy.presence.min", *min));
    problems.extend(outside_share("privacy.presence.max", *max));
    if min > max {
        let message = format!("{min} is above max = {max}, so nothing can lie between them");
        problems.push(Problem::error("privacy.presence.min", message));
    } else if *min <= 0.0 && *max >= 1.0 {
        let message = "0 to 1 allows everything to be told";
        problems.push(Problem::warning("privacy.presence", message).help("lower max, or raise min"));
    }
    problems.extend(check_location("privacy.presence.public", public));
    if let Some(path) = local_path(base, public)
        && !public.contains(['*', '?', '['])
        && !public.trim().is_empty()
        && !path.exists()
    {
        let message = format!("there is no file or folder {}", path.display());
        problems.push(
            Problem::error("privacy.presence.public", message)
                .help("a relative path starts at the folder of the job file"),
        );
    }
    let (from, to) = (names(base, public), names(base, &job.sink.url));
    if from.starts_with(&to) || to.starts_with(&from) {
        problems.push(Problem::error("privacy.presence.public", "and the sink lie inside one another"));
    }
    for (index, name) in key.iter().enumerate().filter(|(index, name)| key[..*index].contains(name)) {
        problems.push(Problem::error(format!("privacy.presence.key[{index}]"), format!("`{name}` is named twice")));
    }
    for (name, column) in &job.columns {
        if column.publish == Some(Publish::Centroid) {
            problems.push(
                Problem::error(format!("columns.{name}.publish"), "a centroid does not say whom it covers")
                    .help("presence needs label, range or bounds"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(presence: &str, columns: &str) -> Vec<String> {
        let text = format!(
            "version = 1\nsource.url = \"s3://a/in\"\nsink.url = \"s3://a/out\"\n[privacy]\nk = 5\npresence = {presence}\n\
             [method]\nname = \"mpalm\"\n[columns]\n{columns}"
        );
        let job = Job::parse(&text, Path::new("job.toml")).unwrap();
        let mut problems = Vec::new();
        check_presence(&job, Path::new("."), &mut problems);
        problems.iter().map(|problem| problem.key.clone()).collect()
    }

    #[test]
    fn bounds_and_places_are_checked() {
        let age = "age = { role = \"quasi\" }";
        assert!(errors("{ public = \"s3://b/voters\", min = 0.1, max = 0.9, key = [\"id\"] }", age).is_empty());
        assert_eq!(errors("{ public = \"s3://b/voters\", min = 0.9, max = 0.1 }", age), ["privacy.presence.min"]);
        assert_eq!(errors("{ public = \"s3://b/voters\", max = 1.5 }", age)[0], "privacy.presence.max");
        assert_eq!(errors("{ public = \"s3://a/out/p\", max = 0.9 }", age), ["privacy.presence.public"]);
        assert_eq!(errors("{ public = \"nowhere\", max = 0.9 }", age), ["privacy.presence.public"]);
        let centroid = "age = { role = \"quasi\", publish = \"centroid\" }";
        assert_eq!(errors("{ public = \"s3://b/v\", max = 0.9 }", centroid), ["columns.age.publish"]);
    }
}
