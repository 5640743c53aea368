//! The JSON schema of the job file, for editors that complete and check TOML.

use serde_json::Value;

use super::model::Job;

/// The JSON schema of the job file.
pub fn json_schema() -> Value {
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
        assert_eq!(schema["$defs"]["Privacy"]["properties"]["k"]["minimum"], 2);
        assert!(schema["$defs"]["MethodName"].to_string().contains("k-members"));
    }
}
