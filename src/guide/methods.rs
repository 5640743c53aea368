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
//! | `l-mondrian` | halves, or goes down a hierarchy, as long as every part stays diverse | Tinabo (2013), algorithm 3 |
//! | `k-members` | grows clusters of k, each row where it costs least | Byun, Kamra, Bertino, Li (2007) |
//! | `k-members-p` | the same, each row where it protects best | Loukides (2008), chapter 4 |
//! | `top-down` | halves by two rows far apart | Xu, Wang, Pei, Wang, Shi, Fu (2006) |
//! | `density`, `density-cm` | the densest rows take their nearest; `-cm` those of their class first | Sun, Wang, Li, "Priority Driven K-Anonymisation" |
//! | `kl-redinfo` | buckets of different sensitive values, left-overs where they cost least | Tinabo (2013), algorithm 2 |
//! | `g-anatomy`, `anatomy` | such buckets as they come, generalised or in two linked tables | Tinabo (2013); Xiao, Tao (2006) |
//! | `pair-enum`, `k-assemble` | clusters that preserve functional dependencies | Gorla (2019), algorithms 1 and 2 |
//! | `mpalm`, `spalm` | cuts, or whole columns, that hide who is in the table at all | Nergiz, Atzori, Clifton (2007); Toth (2015) |
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
