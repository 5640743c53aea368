//! The job file: what to read, what each column is, what the release must satisfy, how to group and where to write.
//!
//! The way of a job: [`Job::parse`] turns TOML into the plain [`model`] (unknown keys refused with a suggestion),
//! [`check`] finds every problem that shows without reading data, [`check_schema`] every problem that shows once the
//! columns of the source are known. A [`BoundPolicy`](crate::binding::BoundPolicy) is the checked policy bound to those columns. [`json_schema`]
//! describes the file for editors, and [`Job::policy_hash`] names the policy that a release was made under.

mod builder;
pub(crate) mod check;
mod columns;
pub(crate) mod definition;
mod dependencies;
mod forms;
pub(crate) mod identifier;
mod load;
mod measures;
pub(crate) mod method;
pub(crate) mod model;
mod output;
mod parse;
mod privacy;
mod rules;
mod series;
pub(crate) mod slices;
mod source;
mod window;

pub use crate::secret::Encoding;
pub use builder::{MethodOption, PolicyBuilder};
pub use check::check;
pub(crate) use columns::{check_layout, check_schema};
pub use definition::Policy;
pub use dependencies::{Dependency, Inference};
pub use identifier::{IdentifierAction, Pseudonym};
#[cfg(feature = "cli")]
pub(crate) use load::MAX_HIERARCHY_BYTES;
pub(crate) use measures::FROM_SOURCE;
pub use measures::{MeasureSpec, Queries};
pub(crate) use method::{COUNT, GROUP};
pub(crate) use method::{QIT, ST, diversity_rules, presence_rule, qit_width, range_rules};
pub use model::*;
pub use privacy::{Presence, PrivacyRule};
pub(crate) use series::Series;
pub use series::SeriesMode;
pub use slices::SliceSpec;
pub(crate) use source::BUILD;
pub(crate) use source::{Format, SinkFormat, data_type};
pub(crate) use window::MAX_SURVEY_BYTES;
pub use window::Window;

/// Returns the JSON schema of the job file, for editors that complete and check TOML.
#[cfg(any(feature = "cli", test))]
pub(crate) fn json_schema() -> serde_json::Value {
    schemars::schema_for!(Job).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_every_key() {
        let schema = json_schema();
        assert_eq!(schema["title"], "Job");
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["required"], serde_json::json!(["version", "source", "sink", "privacy"]));
        let mut described = 0;
        for object in std::iter::once(&schema).chain(schema["$defs"].as_object().unwrap().values()) {
            for (key, property) in object["properties"].as_object().into_iter().flatten() {
                assert!(property["description"].is_string(), "{key} has no description");
                described += 1;
            }
        }
        assert!(described > 40, "{described}");
        assert_eq!(schema["$defs"]["Output"]["properties"]["file-rows"]["minimum"], 100);
        assert_eq!(schema["$defs"]["Privacy"]["properties"]["k"]["minimum"], 2);
        assert!(schema["$defs"]["MethodName"].to_string().contains("k-members"));
    }
}
