//! Hierarchies: how values become coarser.
//!
//! A hierarchy says what may be published in place of a value. Without one, numbers and dates become ranges and text
//! becomes sets; that has the lowest loss, but readers often want the same few groups everywhere.
//!
//! | hierarchy | for | a value, ever coarser |
//! |---|---|---|
//! | `"occupation.csv"` | text | `nurse`, `Health`, `Professional`, `*` |
//! | `{ tree = ... }` | text, in the job file | the same |
//! | `{ mask = "right" }` | codes | `23417`, `2341*`, `234**` |
//! | `{ widths = [5, 10, 20] }` | numbers | `37`, `[35, 40)`, `[30, 40)`, `[20, 40)` |
//! | `{ bounds = [[18, 65]] }` | numbers | `< 18`, `[18, 65)`, `>= 65` |
//! | `{ quantiles = [8, 4, 2] }` | numbers | intervals of about equally many rows, with round borders |
//! | `{ calendar = ["month", "year"] }` | dates | `2024-03-07`, `2024-03`, `2024` |
//!
//! # Level files
//!
//! One line per value: the value, its groups from fine to coarse, and the top. This is the form of ARX; files from
//! there work as they are.
//!
//! ```
//! use throng_core::hierarchy::LevelTree;
//!
//! let tree = LevelTree::from_csv("York;North;*\nLeeds;North;*\nBath;South;*\n")?;
//! assert_eq!(tree.published_name(0, 1), "North");
//! assert!(tree.covers("North", "Leeds") && !tree.covers("South", "Leeds"));
//! println!("{}", tree.outline().to_text(10));
//! # Ok::<(), throng_core::hierarchy::HierarchyError>(())
//! ```
//!
//! Anything but a tree is rejected, every problem with its line:
//!
//! ```
//! let wrong = throng_core::hierarchy::LevelTree::from_csv("York;North;*\nLeeds;North;All\n").unwrap_err();
//! assert!(wrong.to_string().contains("line 2: two roots"));
//! ```
//!
//! # Tools
//!
//! ```sh
//! throng generate --rows 1000 people.parquet
//! throng hierarchy build people.parquet --column occupation -o occupation.csv
//! throng hierarchy check occupation.csv --data people.parquet --column occupation
//! throng hierarchy draw occupation.csv
//! throng hierarchy draw occupation.csv --svg occupation.svg
//! throng hierarchy convert occupation.csv --to toml -o occupation.toml
//! ```
//!
//! `build` groups by common beginnings where values have them (`Married-civ-spouse`, `Married-AF-spouse`) and by
//! frequency where not, so that groups are of about the same size. It knows nothing of meaning: edit the file until every
//! group is something that a reader has a word for. Good groups keep their names in every release.
//!
//! # Advice
//!
//! - Three or four levels are plenty. The method chooses among them class by class.
//! - A level that separates nearly everything again (single days, single villages) costs nothing and helps little.
//! - List values that future data may contain; an unknown value stops the run, unless the column
//!   says `unknown = "top"`.
