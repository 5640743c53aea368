//! Privacy rules: what every published class has to satisfy.
//!
//! An **equivalence class** is the set of rows that share one combination of published quasi-identifiers. Rules are checked
//! on the written files before a release becomes visible, and again by `throng verify`.
//!
//! | key in `[privacy]` | every class | source |
//! |---|---|---|
//! | `k` | holds at least k rows; with `person = "column"` at least k people, however many rows each has | Samarati, Sweeney (1998) |
//! | `l-diversity` | `{ column, kind, l }`: enough variety of a sensitive column: `distinct` values, `entropy`, or `recursive` with `c` | Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam (2007) |
//! | `p-sensitive` | `{ column, p }`: at least p different values | Truta, Vinay (2006) |
//! | `alpha-k` | `{ column, alpha }`: no value in more than a share of alpha | Wong, Li, Fu, Wang (2006) |
//! | `k-e` | `{ column, k, e }`: at least k different numbers that span e or more | Zhang, Koudas, Srivastava, Yu (2007) |
//! | `range-diversity` | `{ column, p, ranges }`: no sensitive range is known more surely than p | Loukides (2008) |
//! | `guarding` | `{ column, nodes, p }`: values below a guarded node of the hierarchy make up a share of at most p | Xiao, Tao (2006), personalised privacy |
//! | `t-closeness` | `{ column, t, distance }`: distributed no further than t from the whole table, by `equal`, `ordered` or `hierarchical` distance | Li, Li, Venkatasubramanian (2007) |
//! | `delta-disclosure` | `{ column, delta }`: no value less than e^-delta or more than e^delta times as frequent as in the table | Brickell, Shmatikov (2008) |
//! | `beta-likeness` | `{ column, beta, kind }`: no value more than beta times more frequent than in the table; `enhanced` bounds common values closer | Cao, Karras (2012) |
//! | `max-loss` | loses no more than this share of detail (U) | Loukides (2008) |
//! | `presence` | `{ public, min, max, people, diversity, key }`: against a public table of people, nobody's probability of being in the source is below `min` or above `max` | Nergiz, Atzori, Clifton (2007) |
//! | `presence.people` | fits at least this many people of the public table: k-map, weak k-anonymity | Sweeney (2001); Atzori (2006) |
//! | `presence.diversity` | publishes no value for more than one in l of the public people who fit: weak l-diversity | Atzori (2006) |
//! | `inference` | meets k and the other rules even for a reader who knows the dependencies | Gorla (2019) |
//!
//! `max-suppression` bounds the whole run: no more than this share of rows is left out. Defaults to 0.05.
//!
//! Each rule may be a list of rules, on several sensitive columns. Every method works with every rule: groups that violate
//! one are merged, split up or suppressed. If too many rows would be suppressed, the run ends with exit code 5, says what to
//! relax, and publishes nothing.
//!
//! # Rules that compare with the table
//!
//! `t-closeness`, `delta-disclosure` and `beta-likeness` compare a class with the whole table. Groups are built against all
//! rows of the source, with a fiftieth of the bound in reserve, and verified against the published rows, because those are
//! what an adversary sees; the two differ by what is suppressed. `throng verify --json` reports, for every sensitive column,
//! the parameters with which each rule would just hold.
//!
//! `delta-disclosure` looks at the values that a class holds, as ARX and pycanon do, and passes over those that it lacks.
//! The definition of its authors asks for every value of the table, and no class with fewer can meet it. Combine it with
//! `l-diversity`, or use `t-closeness`, if a class of one value must be ruled out.
//!
//! # Rows or people
//!
//! `k` counts rows. When one person may have several rows, name the column that identifies people: `person = "patient_id"`.
//! It may be an identifier that is dropped. People are then counted in the rows that are about to be published, class by
//! class; the manifest keeps the counts with a digest of the classes, and what is read back must give the same digest.
//!
//! `k` counts on the published table. To count on the public table instead, set `k = 2`, the smallest value there is, and
//! `presence.people` to the k that is meant; `l-diversity` and `presence.diversity` differ in the same way. Both then rely on
//! a reader who does not know who is in the source.
//!
//! # Presence
//!
//! The public table must hold everybody once, or chances are counted too low. `presence.key` names the columns that identify
//! people: somebody who is in it twice then ends the run with exit code 4. Without a key, equal quasi-identifiers are
//! different people, as half of UCI Adult are; a run warns of rows that repeat another in every column of a public table
//! which has more than quasi-identifiers.
//!
//! Use the method `mpalm` with `presence`: it cuts with the public table in mind. Other methods work and lose more.
//! `throng attack` reports what a reader with the public table achieves, for releases of every form.
//!
//! ```
//! use throng::{Column, LDiversity, Policy};
//!
//! let policy = Policy::builder(10)
//!     .column("age", Column::quasi())
//!     .column("diagnosis", Column::sensitive())
//!     .rule(LDiversity::distinct("diagnosis", 3))
//!     .rule(LDiversity::entropy("diagnosis", 2.5))
//!     .build()?;
//! assert_eq!(policy.rules().len(), 2);
//! # Ok::<(), throng::Error>(())
//! ```
