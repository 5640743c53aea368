//! The methods, rules and measures, and where they come from.
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
//! | `l-mondrian` | the same, cutting only where sensitive values stay diverse | Tinabo (2013), after LeFevre et al. |
//! | `k-members` | grows clusters of k, each row where it costs least | Byun, Kamra, Bertino, Li (2007) |
//! | `k-members-p` | the same for protection alone: how safe groups could be at best | Loukides (2008), 4.1 and 6.4 |
//! | `top-down` | halves by two rows far apart, down to groups of k | Xu, Wang, Pei, Wang, Shi, Fu (2006) |
//! | `full-domain` | raises every column to one level, the cheapest combination of levels that meets the rules | Samarati (2001); LeFevre, DeWitt, Ramakrishnan (2005), Incognito |
//! | `density` | the densest row becomes a centre and takes its nearest (DBCA) | Sun, Wang, Li |
//! | `density-cm` | the same, with rows of one class together where that is cheap | Sun, Wang, Li |
//! | `pair-enum` | merges clusters two by two so that dependencies between columns survive | Gorla (2019), algorithm 1, repaired |
//! | `k-assemble` | neighbours of random seeds, chosen so that dependencies survive | Gorla (2019), algorithm 2, repaired |
//! | `kl-redinfo` | buckets of different sensitive values; left-over rows go where they cost least | Tinabo (2013) |
//! | `g-anatomy` | the same buckets, left-over rows in turn, generalised | Tinabo (2013), algorithm 4 |
//! | `anatomy` | the same buckets, published as two linked tables | Xiao, Tao (2006) |
//! | `mpalm` | cuts a public table as long as nobody's chance to be in the source leaves its bounds | Nergiz, Atzori, Clifton (2007); Toth (2015) |
//! | `spalm` | the cheapest generalisation of whole columns within the same bounds | Nergiz, Atzori, Clifton (2007) |
//! | `combined` | generalises groups as little as permuting their columns allows | Toth (2015), algorithm 6 |
//! | `slicing` | halves groups whose columns are permuted in slices | Li, Li, Zhang, Molloy (2012) |
//!
//! Methods whose paper compares every row with every other (`k-members`, `density`, `pair-enum`, `k-assemble`, ...) do so
//! inside subspaces; each says in its own documentation what that changes. The list is [`METHODS`], with the options of
//! each:
//!
//! ```
//! use throng::method::catalogue::METHODS;
//!
//! let upc = METHODS.iter().find(|method| method.name == "upc").unwrap();
//! println!("{}", upc.about);
//! for option in upc.options {
//!     println!("  {}: {}", option.name, option.about);
//! }
//! assert_eq!(METHODS[0].name, "auto", "the first is the default");
//! ```
//!
//! # Rules
//!
//! | key of `[privacy]` | what every class must satisfy | source |
//! |---|---|---|
//! | `k` | at least k rows, or people with `person` | Samarati, Sweeney (1998) |
//! | `l-diversity` | l different values, counted, by entropy or by (c, l) | Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam (2007) |
//! | `t-closeness` | values distributed as in the table, within t | Li, Li, Venkatasubramanian (2007) |
//! | `alpha-k` | no value in more than a share of alpha | Wong, Li, Fu, Wang (2006) |
//! | `p-sensitive` | p different values | Truta, Vinay (2006) |
//! | `k-e` | k different numbers that span e | Zhang, Koudas, Srivastava, Yu (2007) |
//! | `range-diversity` | no range of values told more surely than P | Loukides (2008) |
//! | `delta-disclosure` | no value told more or less of than e to the delta times the table does | Brickell, Shmatikov (2008) |
//! | `beta-likeness` | no value more common than beta times over the table | Cao, Karras (2012) |
//! | `guarding` | below a node of the hierarchy few values only | Xiao, Tao (2006), personalised privacy |
//! | `max-loss` | no more loss than U | Loukides (2008) |
//! | `presence` | everybody's chance to be in the source within bounds | Nergiz, Atzori, Clifton (2007) |
//! | `presence.people` | so many people of the public table: k-map, weak k-anonymity | Sweeney (2001); Atzori (2006) |
//! | `presence.diversity` | no value for more than one in l people of the public table: weak l-diversity | Atzori (2006) |
//! | `inference` | k also to a reader who knows the dependencies | Gorla (2019) |
//!
//! `k` counts published rows. To have it counted on the public table instead, set `k = 2`, the least there is, and
//! `presence.people` to the k that is meant; `l-diversity` and `presence.diversity` differ in the same way. Counted on the
//! public table, both rely on a reader who does not know who is in the source.
//!
//! # Measures
//!
//! | measure | what it is | source |
//! |---|---|---|
//! | GCP, NCP | share of a domain that a published value covers, mean over all values, or their sum | Xu et al. (2006), Ghinita et al. (2007) |
//! | UM, WGU | the same by group: mean and worst | Loukides (2008) |
//! | LM, GENC, Precision, distortion | steps up the hierarchies, counted in four ways | Iyengar (2002), Samarati (2001), Sweeney (2002) |
//! | DM | sum of squared class sizes | Bayardo, Agrawal (2005) |
//! | C_AVG | mean class size in units of k | LeFevre et al. (2006) |
//! | MPM, WGP | how alike sensitive values of a group are; how surely a range is disclosed | Loukides (2008) |
//! | CM | rows that are not of their class's majority | Iyengar (2002) |
//! | entropy, KL | bits that are lost; divergence of published from original values | Gionis, Tassa (2009); Kifer, Gehrke (2006) |
//! | query error | relative error of COUNT queries whose answers are read from classes | LeFevre et al. (2006), Loukides (2008) |
//! | risk | prosecutor, journalist and marketer; unique people of a population by Pitman, Zayatz, SNB | Dankar, El Emam et al. (2012) |
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
//!
//! [`METHODS`]: crate::method::catalogue::METHODS
