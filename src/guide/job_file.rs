//! The job file: columns, roles and published forms.
//!
//! A job is one TOML file. Unknown keys are rejected with a suggestion, relative paths start at the folder of the job file,
//! and credentials never stand in it. `throng check job.toml` lists everything that is wrong before any data is read;
//! `throng schema` prints a JSON schema for editors that complete and validate.
//!
//! ```toml
//! version = 1
//!
//! [source]
//! url = "data/people.parquet"         # a file, a folder or a glob
//!
//! [sink]
//! url = "out/people"                  # a folder that holds releases and nothing else
//!
//! [privacy]
//! k = 10
//! l-diversity = { column = "diagnosis", l = 3 }
//! max-suppression = 0.01              # fail rather than suppress more than one row in a hundred
//!
//! [columns]
//! name       = { role = "identifier" }
//! age        = { role = "quasi", priority = 2 }
//! postcode   = { role = "quasi", hierarchy = { mask = "right" } }
//! occupation = { role = "quasi", hierarchy = "hierarchies/occupation.csv" }
//! diagnosis  = { role = "sensitive" }
//! tags       = { role = "kept" }
//!
//! [method]
//! name = "auto"
//!
//! [method.auto]                       # options of a method stand in the table of its name
//! effort = "balanced"
//! ```
//!
//! `--set privacy.k=20` overrides any key for one call.
//!
//! # Roles
//!
//! Every column of the source has a role. A forgotten column is an error, unless `[defaults] role = "..."` covers it.
//!
//! | role | published |
//! |---|---|
//! | `identifier` | not at all, or replaced as `treat` says |
//! | `quasi` | generalised as far as the rules require, and no further |
//! | `sensitive` | unchanged, guarded by the rules |
//! | `kept` | unchanged |
//!
//! # Identifiers
//!
//! | `treat` | published |
//! |---|---|
//! | `"drop"` | nothing (default) |
//! | `{ pseudonym = { key-env = "NAME" } }` or `{ pseudonym = { key-file = "path" } }` | HMAC-SHA-256 of the value as 64 hexadecimal digits, or 43 characters with `encoding = "base64url"`; null stays null |
//! | `{ constant = "text" }` | that text in every row |
//!
//! The key of a pseudonym has at least 16 bytes and is never part of the job. Each column has its own pseudonyms, so equal
//! values in two columns do not show. Another key makes another policy and another run; with the same key, rows of two
//! releases can be joined, and `throng check` warns about it. Identifiers are replaced before rows are sorted, exchanged or
//! spilled. Pseudonyms are not anonymity: rows of one person stay linked. Drop identifiers unless somebody has to join.
//!
//! # Published forms
//!
//! How a quasi-identifier is generalised is its `hierarchy` (see [`hierarchies`](super::hierarchies)); how the result is
//! written is its `publish`:
//!
//! | `publish` | column | for |
//! |---|---|---|
//! | `label` | text: the name of a node, `[30, 40]`, or a set | everything; default for text and for columns with a hierarchy |
//! | `range` | `struct<min, max>` of the original type | numbers and dates without a hierarchy; their default |
//! | `bounds` | two columns of the original type, `x_min` and `x_max` | numbers and dates without a hierarchy |
//! | `centroid` | one value of the original type, the mean of the class | numbers and dates without a hierarchy |
//!
//! A centroid represents the original values without covering them; all other forms contain them.
//!
//! # Nulls, unknown values, constant columns
//!
//! Null is a value of its own and matches nothing else. A class of nulls is published as null; a class that mixes nulls and
//! values is published as the top of the domain (`*`, or a range with both ends open). That is `nulls = "category"`, the
//! default. `nulls = "drop"` leaves such rows out, and they count as suppressed; `nulls = "reject"` ends the run with exit
//! code 4. Set it in `[defaults]` or for a column.
//!
//! A value that a hierarchy file does not list stops the run before anything is written, unless the column has
//! `unknown = "top"`. So does a quasi-identifier with the same value in every row, unless it has `constant = "allow"`.
//!
//! # Functional dependencies
//!
//! ```toml
//! [[dependencies]]
//! from = ["postcode"]                 # rows with the same postcode have the same county
//! to = ["county"]
//! tolerance = 0.001                   # except for one row in a thousand; defaults to none
//! ```
//!
//! Dependencies are checked on the source first; one that more rows violate than it tolerates ends the run with exit code 4.
//! The manifest reports how many rows violate each, and how much of it the release preserves.
//!
//! Dependencies also help a reader: when a published diagnosis determines the medication, one row that shows the medication
//! reveals it in all rows that hide it. Every run and every `throng verify` follows the dependencies through the published
//! rows, in both directions, until nothing more can be inferred, and applies all rules to the rows that still fit each
//! other. Everybody is on one row: three people whom a dependency makes equal are the only three equal rows of their class.
//! Where classes overlap so much that this takes too long, `undecided_rows` in the manifest, the summary and the log say for
//! how many rows this remained undecided; dependencies with a `tolerance` are followed without counting.
//! `privacy.inference` decides what happens if a rule is violated that way:
//!
//! | `inference` | |
//! |---|---|
//! | `warn` | publish; the log, the summary and the manifest say so, and `throng verify` and `throng report` exit with 5 (default) |
//! | `reject` | publish nothing, exit code 5 |
//! | `repair` | group rows so that dependencies reveal nothing; where that fails, withhold the columns concerned |
//!
//! `withhold = true` withholds a quasi-identifier by hand: its column stays, every value in it is the top of its domain.
//! Knowledge from elsewhere, such as which medication is usual for a diagnosis, is outside of this analysis.
//!
//! # Output
//!
//! | key in `[output]` | default | |
//! |---|---|---|
//! | `file-size`, `file-rows` | `"512MB"`, 10000000 | a new file starts after this many bytes or rows (at least 100) |
//! | `row-group-rows` | 250000 | rows of a Parquet row group |
//! | `compression`, `level` | `"zstd"` | or `snappy`, `gzip`, `lz4`, `none` |
//! | `partition-by` | `[]` | kept columns whose values become folders `column=value` |
//!
//! # Measures
//!
//! Loss (GCP, UM, WGU, NCP, LM, DM, C_AVG), protection (MPM, WGP, range diversity by row) and risk are always in the manifest,
//! as measured in the published files. What takes time, or follows from original values (`source`, `information`, `queries` and
//! `population`), is measured on request; see [`threats`](super::threats) for what the latter reveals:
//!
//! | key in `[measures]` | measures |
//! |---|---|
//! | `class = "column"` | CM: rows that do not belong to the majority of their class |
//! | `source = true` | parameters found from a sample, cells, how dependencies hold, steps in hierarchies (ILoss, GENC, precision, distortion), classes counted in people |
//! | `information = true` | non-uniform entropy, entropy, KL divergence by value, by published range and joint, the chance to reconstruct a row |
//! | `queries = { count, dimensions, selectivity, seed }` | relative error of COUNT queries, answered by DataFusion from the files of source and release; `sweep` and `recommend` ask 24 queries over two columns of a job without any |
//! | `unprotected = 0.5` | share of rows whose range diversity exceeds this |
//! | `population = 1000000` | estimated number of unique people in a population of that size (Pitman, Zayatz, SNB) |
//!
//! # Windows
//!
//! `[window]` is for queries over rows that never end, which are anonymised a window at a time: see
//! [`streams`](super::streams). `throng run` sees the whole table, and does not look at it.
//!
//! # The same from Rust
//!
//! A program needs no TOML: every part of a policy has a type, and the same checks are run.
//!
//! ```
//! use throng::{Column, HierarchySpec, LDiversity, Policy};
//!
//! let policy = Policy::builder(10)
//!     .rule(LDiversity::distinct("diagnosis", 3))
//!     .max_suppression(0.01)
//!     .column("name", Column::identifier())
//!     .column("age", Column::quasi().with_priority(2.0))
//!     .column("postcode", Column::quasi().with_hierarchy(HierarchySpec::mask_right()))
//!     .column("diagnosis", Column::sensitive())
//!     .column("tags", Column::kept())
//!     .build()?;
//! let job = policy.to_job("data/people.parquet", "out/people");
//! # drop(job);
//! # Ok::<(), throng::Error>(())
//! ```
