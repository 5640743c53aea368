//! The methods and measures, and where they come from. Rules are in [`rules`](super::rules).
//!
//! All methods share one frame: the table is cut by medians into cells, a cell into subspaces, and a method groups the
//! rows of a subspace. Groups that violate a rule are then merged, split or suppressed. So any method works with any
//! rule; methods differ in loss and run time.
//!
//! # Five for everyday use
//!
//! | name | idea | source |
//! |---|---|---|
//! | `auto` | covers subspaces with the cheapest boxes of the hierarchy lattice, or grows groups where columns have no hierarchy, then searches locally; efforts `fast`, `balanced`, `thorough`, `best` | ours |
//! | `mondrian` | halves the widest column until groups would be too small | LeFevre, DeWitt, Ramakrishnan (2006) |
//! | `full-domain` | raises every column to one level, the cheapest combination of levels that meets the rules | Samarati (2001); LeFevre, DeWitt, Ramakrishnan (2005), Incognito |
//! | `anatomy` | the same buckets, published as two linked tables | Xiao, Tao (2006) |
//! | `mpalm` | cuts a public table as long as nobody's chance to be in the source leaves its bounds | Nergiz, Atzori, Clifton (2007); Toth (2015) |
//!
//! Take `auto` unless you know better. `mondrian` is quick and makes no random choice; `full-domain` gives every value of a
//! column the same level; `anatomy` leaves quasi-identifiers as they are; `mpalm` goes with the rule `presence`.
//!
//! # Methods for research
//!
//! The methods of the literature, to be compared with or for the questions of one paper. They meet the same rules and are
//! verified in the same way, but most lose more or take longer. Catalogue, JSON schema and help mark them as research.
//!
//! | name | idea | source |
//! |---|---|---|
//! | `toc` | clusters up to a threshold on loss and disclosure together | Loukides (2008), chapter 3 |
//! | `upc` | clusters under hard bounds on loss (U) and range diversity (P) | Loukides (2008), chapter 5 |
//! | `l-mondrian` | the same, cutting only where sensitive values stay diverse | Tinabo (2013), after LeFevre et al. |
//! | `k-members` | grows clusters of k, each row where it costs least | Byun, Kamra, Bertino, Li (2007) |
//! | `k-members-p` | the same for protection alone: how safe groups could be at best | Loukides (2008), 4.1 and 6.4 |
//! | `top-down` | halves by two rows far apart, down to groups of k | Xu, Wang, Pei, Wang, Shi, Fu (2006) |
//! | `density` | the densest row becomes a centre and takes its nearest (DBCA) | Sun, Wang, Li |
//! | `density-cm` | the same, with rows of one class together where that is cheap | Sun, Wang, Li |
//! | `pair-enum` | merges clusters two by two so that dependencies between columns survive | Gorla (2019), algorithm 1, repaired |
//! | `k-assemble` | neighbours of random seeds, chosen so that dependencies survive | Gorla (2019), algorithm 2, repaired |
//! | `kl-redinfo` | buckets of different sensitive values; left-over rows go where they cost least | Tinabo (2013) |
//! | `g-anatomy` | the same buckets, left-over rows in turn, generalised | Tinabo (2013), algorithm 4 |
//! | `spalm` | the cheapest generalisation of whole columns within the same bounds | Nergiz, Atzori, Clifton (2007) |
//! | `combined` | generalises groups as little as permuting their columns allows | Toth (2015), algorithm 6 |
//! | `slicing` | halves groups whose columns are permuted in slices | Li, Li, Zhang, Molloy (2012) |
//! | `incognito` | `full-domain` by the name under which the works compare with it | LeFevre, DeWitt, Ramakrishnan (2005) |
//! | `samarati` | the lowest generalisation of whole columns with little suppression | Samarati (2001) |
//! | `datafly` | raises the column with most values until few rows are left to suppress | Sweeney (1998) |
//! | `oka` | one pass of k-means, and clusters made equal | Lin, Wei (2008) |
//!
//! Some suppress rows of their own accord, and no repair publishes these: `toc` and `upc` with `left-over = "suppress"`,
//! `samarati`, `datafly`, and `anatomy` where a value is too common for every bucket to keep its share of 1/l.
//! `throng sweep` says how many rows were placed by the method, as left-over rows, and by repair.
//!
//! # Options
//!
//! Options of a method stand in the table of its name. Tables of other methods may stand beside it: they count when that
//! method is named, in the job or for a trial of `throng sweep`; `throng check` warns of those that are not used.
//!
//! ```toml
//! [method]
//! name = "toc"
//!
//! [method.toc]
//! delta = 0.4
//! s = 40
//! ```
//!
//! The same from Rust; a wrong name or value is an error that says what there is:
//!
//! ```
//! use throng::{Effort, MethodSpec};
//!
//! let toc = MethodSpec::named("toc")?.with_option("delta", 0.4)?.with_option("s", 40_u32)?;
//! assert_eq!(toc.name(), "toc");
//! let wrong = MethodSpec::auto(Effort::Fast).with_option("delta", 0.4).unwrap_err();
//! assert!(wrong.to_string().contains("no option `delta`; its options: effort"));
//! # Ok::<(), throng::Error>(())
//! ```
//!
//! Methods whose paper compares every row with every other (`k-members`, `density`, `pair-enum`, `k-assemble`, ...) do so
//! inside subspaces; each says in its own documentation what that changes. The list is [`METHODS`], with the options of
//! each:
//!
//! ```
//! use throng_core::methods::METHODS;
//!
//! let upc = METHODS.iter().find(|method| method.name == "upc").unwrap();
//! println!("{}", upc.about);
//! for option in upc.options {
//!     println!("  {}: {}", option.name, option.about);
//! }
//! assert_eq!(METHODS[0].name, "auto", "the first is the default");
//! assert!(upc.research && METHODS.iter().filter(|method| !method.research).count() == 5);
//! ```
//!
//! # Measures
//!
//! | measure | what it is | source |
//! |---|---|---|
//! | GCP, NCP | share of a domain that a published value covers, mean over all values, or their sum | Xu et al. (2006), Ghinita et al. (2007) |
//! | UM, WGU | the same by group: mean and worst | Loukides (2008) |
//! | LM, GENC, Precision, distortion | steps up the hierarchies, counted in four ways | Iyengar (2002), Samarati (2001), Sweeney (2002) |
//! | weighted distortion | the same in shares of the hierarchies' heights, times the priorities of the columns | Sun, Wang, Li (2008) |
//! | ILoss | leaves below a published value over all leaves: NCP as Tinabo's thesis has it | Xiao, Tao (2006), Tinabo (2013) |
//! | dependency loss | distance of the instances of dependencies to the nearest published row; of several cells a bound | Gorla (2019) |
//! | DM | sum of squared class sizes | Bayardo, Agrawal (2005) |
//! | C_AVG | mean class size in units of k | LeFevre et al. (2006) |
//! | MPM, WGP | how alike sensitive values of a group are; how surely a range is disclosed | Loukides (2008) |
//! | CM | rows outside the majority of their class | Iyengar (2002) |
//! | entropy, KL | bits that are lost; divergence of published from original values | Gionis, Tassa (2009); Kifer, Gehrke (2006) |
//! | query error | relative error of COUNT queries whose answers are read from classes | LeFevre et al. (2006), Loukides (2008) |
//! | risk | prosecutor, journalist and marketer; unique people of a population by Pitman, Zayatz, SNB | Dankar, El Emam et al. (2012) |
//!
//! # Comparing them
//!
//! `throng sweep` runs several over several k. Whether two differ by more than chance is decided by Wilcoxon's
//! signed-rank test over the same settings; five settings cannot say more than p = 0.0625, whatever the methods do:
//!
//! ```
//! use throng_core::measure::wilcoxon::signed_rank;
//!
//! let losses = [(0.01, 0.02), (0.04, 0.06), (0.07, 0.11), (0.12, 0.19), (0.16, 0.28)];
//! let test = signed_rank(&losses).unwrap();
//! assert_eq!((test.w_plus, test.p), (0.0, 0.0625));
//! ```
//!
//! [`METHODS`]: throng_core::methods::METHODS
