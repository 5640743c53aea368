//! Whether a policy may follow another one in a series: only if it asks for at least as much.

use std::collections::BTreeMap;

use serde_json::Value;
use throng_core::series::terms::{Bound, Terms, find_loosened};

use crate::error::{Error, Result};
use crate::policy::Privacy;

/// Numbers of rules, and whether a larger one asks more.
const BOUNDS: [(&str, bool); 7] =
    [("l", true), ("k", true), ("e", true), ("p", true), ("c", false), ("alpha", false), ("t", false)];

/// Refuses rules that ask less than those of the release before.
pub(crate) fn ensure_stricter(before: &Value, now: &Privacy) -> Result<()> {
    let unreadable = |error: serde_json::Error| Error::internal(format!("the rules of the series: {error}"));
    let before: Privacy = serde_json::from_value(before.clone()).map_err(unreadable)?;
    let looser = find_loosened(&policy_terms(&before)?, &policy_terms(now)?);
    if looser.is_empty() {
        return Ok(());
    }
    let looser: Vec<String> = looser.iter().map(ToString::to_string).collect();
    Err(Error::conflict(format!(
        "privacy: a series may only become stricter, and {}; put it back, or begin a new series in an empty sink and an empty \
         state",
        looser.join(", and ")
    )))
}

/// What a policy asks: every rule by its kind, its column and everything else that is no number.
fn policy_terms(privacy: &Privacy) -> Result<Terms> {
    let unreadable = |error: serde_json::Error| Error::internal(format!("the rules of the series: {error}"));
    let Value::Object(keys) = serde_json::to_value(privacy).map_err(unreadable)? else {
        return Err(Error::internal("rules are no table"));
    };
    let kinds: Vec<String> = privacy.rules().into_iter().map(|listed| listed.name).collect();
    let mut rules: BTreeMap<String, Vec<Bound>> = BTreeMap::new();
    for (kind, value) in keys.into_iter().filter(|(kind, _)| kinds.contains(kind)) {
        let listed = match value {
            Value::Array(listed) => listed,
            one => vec![one],
        };
        for rule in listed {
            let Value::Object(parameters) = rule else { continue };
            // In guarding, p bounds a share from above.
            let rises = |key: &str| {
                let known = BOUNDS.iter().find(|(known, _)| *known == key);
                known.map(|(key, rises)| if *key == "p" && kind == "guarding" { false } else { *rises })
            };
            let (mut bounds, mut name) = (Vec::new(), kind.clone());
            for (key, value) in parameters {
                match (rises(&key), value.as_f64()) {
                    (Some(rises), Some(value)) => bounds.push(Bound { key, value, rises }),
                    _ => name += &format!(" {key}={value}"),
                }
            }
            rules.entry(name.replace('"', "")).or_default().extend(bounds);
        }
    }
    Ok(Terms { k: privacy.k, rules })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn privacy(text: &str) -> Privacy {
        toml::from_str(text).unwrap()
    }

    fn refused(before: &str, now: &str) -> String {
        let before = serde_json::to_value(privacy(before)).unwrap();
        ensure_stricter(&before, &privacy(now)).map_or_else(|error| error.to_string(), |()| String::new())
    }

    const RULES: &str = "k = 5\nl-diversity = { column = \"ill\", l = 3 }\nalpha-k = { column = \"ill\", alpha = 0.5 }";

    #[test]
    fn rules_may_become_stricter() {
        assert_eq!(refused(RULES, RULES), "");
        assert_eq!(refused(RULES, &RULES.replace("k = 5", "k = 6")), "");
        assert_eq!(refused(RULES, &RULES.replace("l = 3", "l = 4").replace("0.5", "0.4")), "");
        assert_eq!(refused("k = 5", RULES), "");
        assert_eq!(refused(RULES, &format!("{RULES}\nmax-suppression = 0.5")), "");
    }

    #[test]
    fn rules_may_not_be_loosened() {
        for (now, expected) in [
            (RULES.replace("k = 5", "k = 4"), "k was 5 and is 4"),
            (RULES.replace("l = 3", "l = 2"), "l of l-diversity"),
            (RULES.replace("0.5", "0.6"), "alpha of alpha-k"),
            (RULES.replace("alpha-k = { column = \"ill\", alpha = 0.5 }", ""), "is asked no more"),
            (RULES.replace("l = 3", "l = 3, kind = \"entropy\""), "is asked no more"),
        ] {
            let found = refused(RULES, &now);
            assert!(found.contains("only become stricter") && found.contains(expected), "{now}: {found}");
        }
    }
}
