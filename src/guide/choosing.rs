//! Choosing k, the rules, and how much loss to accept.
//!
//! # What k means
//!
//! Somebody who knows a person's quasi-identifiers finds a class of at least k rows, and picks the right one with a
//! chance of 1/k at most. k = 5 is usual inside an organisation, 10 to 20 for researchers under contract, more for the
//! public. It depends on who will look, and on the damage of a correct guess.
//!
//! # What it costs
//!
//! The mean loss of a value (GCP) says: 0 if everything is as it was, 1 if nothing is left. Measure it before you decide:
//!
//! ```sh
//! throng generate --rows 2000 people.parquet
//! throng profile people.parquet --write job.toml
//! throng sweep job.toml --k 5,10,20 --method auto,mondrian --sample 1000 --output sweep.json
//! throng recommend job.toml --max-loss 0.5 --sample 500 --repeats 3
//! throng recommend job.toml --min-k 10 --sample 500 --repeats 3
//! ```
//!
//! `sweep` prints what every setting would lose, and whether two methods differ by more than chance. `recommend`
//! answers with one setting and how far to trust it. Neither publishes anything. A report made with
//! `--sweep sweep.json` shows the curve beside the release.
//!
//! How much of that is due to the method, and how much to the table? `throng bound job.toml --k 10` proves a loss that no release
//! of these rows goes below, whatever the method, and says how many times that the job loses. The proof is a price for every
//! row, such that no k rows cost less together than what publishing them as a class loses; the prices are checked by code that
//! did not make them. The more rounds (`--rounds`), the higher the bound. It is tight for hierarchies and for one or two ranges;
//! with many ranges without hierarchies, or sets of many values, it says little. It is computed from all rows of the source and is
//! for its owner, not for readers: `throng run --bound` prints how near the release comes to the best possible and writes it
//! nowhere, and a report shows it only when given `--bound bound.json`, made by `throng bound --json`.
//!
//! # Why k is not enough
//!
//! k hides which row is whose. If all rows of a class have the same diagnosis, nobody needs to know that. So every
//! sensitive column should have a rule:
//!
//! | the worry | the rule |
//! |---|---|
//! | all rows of a class say the same | `l-diversity = { column = "diagnosis", l = 3 }` |
//! | one value is far more common in a class than others | `kind = "entropy"` or `"recursive"` of the same |
//! | values differ, but mean much the same: a salary of 50,000 or 50,100 | `range-diversity = { column = "salary", p = 0.3, ranges = { interval = 5000 } }` |
//! | some classes become useless | `max-loss = 0.4` |
//! | too many rows are left out, and they are the unusual ones | `max-suppression = 0.01` |
//!
//! Rules are checked with the job, before data is read:
//!
//! ```
//! use std::path::Path;
//! use throng::{Job, check};
//!
//! let text = r#"
//! version = 1
//! source.url = "."
//! sink.url = "../out"
//! [privacy]
//! k = 4
//! l-diversity = { column = "diagnosis", l = 5 }
//! [columns]
//! age = { role = "quasi" }
//! diagnosis = { role = "sensitive" }
//! "#;
//! let job = Job::parse(text, Path::new("job.toml")).unwrap();
//! let problems = check(&job, Path::new("."));
//! assert!(problems.iter().any(|problem| problem.to_string().contains("l-diversity")), "no class of 4 is sure to hold 5 values");
//! ```
//!
//! # When the rules cannot be met
//!
//! The run ends with exit code 5 and publishes nothing. Most often a quasi-identifier is finer than anybody needs (a
//! full date of birth, a street): drop it, or give it a hierarchy whose first level is coarser. Then fewer
//! quasi-identifiers, a smaller k, and only then more suppression.
