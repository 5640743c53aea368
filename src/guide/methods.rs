//! The methods and where they come from.
//!
//! All methods share one frame: the table is cut by medians into cells, a cell into subspaces, and a method groups the
//! rows of a subspace. What breaks a rule afterwards is merged, carved up or suppressed. So any method works with any
//! rule, and differs in what it loses and how long it takes.
//!
//! | name | idea | source |
//! |---|---|---|
//! | `auto` | splits by gain, grows groups, then searches locally by swaps, moves and dissolving | ours |
//! | `toc` | clusters up to a threshold on loss and disclosure together | Loukides (2008), chapter 3 |
//! | `upc` | clusters under hard bounds on loss (U) and range diversity (P) | Loukides (2008), chapter 5 |
//! | `mondrian` | halves the widest column until groups would be too small | LeFevre, DeWitt, Ramakrishnan (2006) |
//! | `k-members` | grows clusters of k, each row where it costs least | Byun, Kamra, Bertino, Li (2007) |
//! | `mpalm`, `spalm` | hide who is in the data among the rows of a public table | Nergiz, Atzori, Clifton (2007) |
//! | `combined` | generalises groups as little as permuting their columns allows | Toth (2015), algorithm 6 |
//! | `slicing` | halves groups whose columns are permuted in slices | Li, Li, Zhang, Molloy (2012) |
//!
//! # Measures
//!
//! | measure | what it is | source |
//! |---|---|---|
//! | GCP, NCP | share of a domain that a published value covers, mean over all values | Xu et al. (2006), Ghinita et al. (2007) |
//! | UM, WGU | the same by group: mean and worst | Loukides (2008) |
//! | DM | sum of squared class sizes | Bayardo, Agrawal (2005) |
//! | C_AVG | mean class size in units of k | LeFevre et al. (2006) |
//! | MPM, WGP | how alike sensitive values of a group are; how surely a range is disclosed | Loukides (2008) |
//!
//! # Comparing them
//!
//! `throng sweep` runs several over several k. Whether two differ by more than chance is asked by Wilcoxon's
//! signed-rank test over the same settings; five settings cannot say more than p = 0.0625, whatever the methods do:
//!
//! ```
//! use throng::measure::wilcoxon::signed_rank;
//!
//! let losses = [(0.01, 0.02), (0.04, 0.06), (0.07, 0.11), (0.12, 0.19), (0.16, 0.28)];
//! let test = signed_rank(&losses).unwrap();
//! assert_eq!((test.w_plus, test.p), (0.0, 0.0625));
//! ```
