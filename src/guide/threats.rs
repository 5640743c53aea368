//! What a release protects against, what its bytes can reveal, and what it does not protect against.
//!
//! # The adversary
//!
//! The adversary has the whole release: every file, byte by byte, the manifest, and the report if you publish it. They know
//! that a person is in it, and know all quasi-identifiers of that person, from a register, a newspaper or acquaintance.
//! They know the policy and have this program, and can run it as often as they like on tables of their own. They want
//! to find out which row is that person's, what its sensitive values are, or who was left out.
//!
//! They do not have the source, the key of the run, the machine that it ran on, or its logs. Whoever operates a run has
//! all of these, and nothing here protects against them.
//!
//! # Countermeasures
//!
//! | they want | what prevents it |
//! |---|---|
//! | the person's row | k: at least k rows fit, so a guess is right with a chance of 1/k at most |
//! | the sensitive value | l-diversity, t-closeness, range diversity: the class holds enough different ones |
//! | what was in the identifiers | they are not there, or were replaced by a keyed pseudonym |
//! | more from order, numbers, file borders | these follow from published values and a secret key (below) |
//! | more from the manifest, the report, metrics | figures describe published rows, and are rounded (below) |
//! | raw values in logs, errors, footers, plans | none are written there |
//!
//! k is counted on the written files, by a query that knows nothing of how groups were made. A survey that was wrong
//! makes a release coarser, not less private:
//!
//! ```
//! use throng_core::measure::{Classes, risk};
//!
//! let mut classes = Classes::default();
//! classes.add_classes(10, 300); // three hundred classes of ten rows
//! classes.add_classes(25, 4);
//! assert_eq!(risk::prosecutor_max(&classes), Some(0.1));
//! assert_eq!(risk::share_above(&classes, 0.1), Some(0.0));
//! ```
//!
//! # What the bytes can reveal
//!
//! A file holds more than a set of rows: an order, borders between files and row groups, statistics, a size. A release is
//! safe only if these reveal nothing that the rows do not. The rule is: **what is published is a function of the published
//! rows and of a secret key, and of nothing else.**
//!
//! - **Order of rows.** Rows stand in an order that is computed from what is published of them: by the columns that make
//!   up a class, then by all others. It does not say how rows stood in the source, nor in which order a group grew.
//!   `throng verify` checks it.
//! - **Rows of a query.** Where the operator is part of a plan or of SQL, rows leave cell by cell: cells in a random order
//!   that comes from the secret key, rows of a cell class by class, by a keyed hash of what is published of them. What shows
//!   is which rows shared a cell; a query that stores its rows for others should sort them (`ORDER BY`) by all columns.
//! - **Group numbers** (forms with two tables, and permuted ones) are random numbers from the secret key. A group that was
//!   made first does not have a smaller number.
//! - **Permutations** inside a group come from the same key, by a cryptographic generator.
//! - **Borders of files and row groups** fall where a number of rows is reached in this order. All rows of a class that lie
//!   in one folder are in the files of one part. How many parts there are follows from the number of rows and from
//!   `--partitions`, not from the files of the source.
//! - **Statistics** in the Parquet footer (smallest and largest value, distinct values, nulls) are those of the published
//!   rows that they stand beside. Footers also hold the version, the run's name, the hash of the policy and k.
//!   Metadata of the source's columns stay behind.
//! - **Sizes and checksums** follow from these bytes. Of the *input* the manifest says where its tables are, as the job
//!   writes it, and not how many files they have, how large these are or what their version tags are: size and tag follow
//!   from all raw rows, so that somebody who knows all of them but one could confirm a guess of that one.
//! - **The identity of the input** (`snapshot`, and the name of a run that has not been given one) must let the next run see that
//!   there is nothing new. A hash of the content would confirm guesses, however it is salted or slowed down. So it is
//!   made of the names of files and the moments when they were last changed, or of the version of a Delta table: it
//!   confirms these moments, and no row. With `key-env` it follows the content too, under that key.
//! - **The identity of the policy** is a hash of the rules and of the contents of hierarchy files. The policy is known to
//!   the adversary anyway. A hierarchy that lists values which nobody but the source knows is not public: whoever guesses
//!   all of its lines but one can confirm the last. `throng profile --write` drafts hierarchies from the source; write into
//!   them what is known of the world, not what the source happens to hold.
//!
//! Attacks on these channels run with the tests (`tests/it/adversary`), against UCI Adult and against pairs of sources that
//! publish the same rows. What they found before rows had such an order, and what they find now:
//!
//! | attack | before | now | chance |
//! |---|---|---|---|
//! | salary class by a hash of guessed rows (`mondrian`, k = 10) | certain and right for 1,075 of 2,880 people | 0.2 points above the class alone, 0.6 standard errors | the class alone |
//! | right row by the growth of its class (`auto`, fast and balanced, k = 10) | 24.8 % and 17.5 % | 7.9 % and 8.0 % | 8.1 % and 8.5 % |
//! | sensitive value by the group's number (`anatomy`, l = 6) | 98 % | 16.2 % | 16.7 % |
//! | one value inside its class by query errors (40 pairs of sources) | 17 told apart | 0 | 0 |
//! | one value below its mask, or at the end of a ladder, by losses and steps (18 pairs of sources) | 17 told apart | 0 | 0 |
//! | files of the source by the parts of the release (20 pairs of sources) | 8 told apart | parts follow from the number of rows | 0 |
//!
//! # Known seeds
//!
//! Grouping and permuting make random choices. Whoever knows where these come from can run the program on guesses of the
//! source and keep the guesses that give your release: the run is *re-enacted*. Therefore the key of a run is 32 bytes from
//! the operating system, drawn for this run, held in memory and written nowhere. Two runs of one job then differ in their
//! groups.
//!
//! - `[method] key-env = "NAME"` takes the key from an environment variable, for those who must be able to reproduce a
//!   release. Whoever holds it can re-enact the run: keep it as you keep the source.
//! - `[method] seed = N` makes a run repeatable for anybody. It is for tests and experiments. `throng check`, `throng run`, the
//!   manifest and the report say so; do not publish such a release.
//!
//! # Minimality
//!
//! A method generalises no further than the rules ask. So a class that is wider than its neighbours reveals that something
//! made it so: perhaps a narrower one would have held one diagnosis only. Somebody who knows the method and all
//! quasi-identifiers can reason backwards from this (the minimality attack). It is strongest against optimal methods with
//! deterministic choices and weakest where choices are random and local. The secret key takes away the replay
//! that the attack needs wherever a method makes random choices: `auto`, `toc`, `upc`, `k-members` and others that start from
//! random seeds choose among many nearly equal groupings. `mondrian`, `l-mondrian`, `density`, `kl-redinfo` and `full-domain`
//! draw nothing: they publish the same rows under every key, and whoever guesses the source can re-enact them. That makes the
//! attack hard; no theorem says that it is impossible. Where it worries you, choose a rule with a margin (an l of 4 where you need 3): what a class could have
//! been then still meets your need.
//!
//! # Measures
//!
//! The manifest says how much was lost and how well people are protected: GCP, UM, MPM, class sizes. Such
//! figures are shares of a domain. If the domain were that of the source, one suppressed centenarian could be solved
//! for from the published ranges and their printed loss. So:
//!
//! - losses and protection are measured in the published files, class by class, after they have been written: a loss is a share
//!   of the domain that published values show, or of one that the job or a hierarchy declares, and a mask loses the
//!   characters that it hides. Whoever has the files finds the same, and so learns nothing from the manifest. Of values that
//!   stand for others (`publish = "centroid"`) nobody can tell what they cover, so such a column has no loss, and
//!   its release no mean;
//! - what rules attain (l, t, alpha, ...) is computed from the published files likewise;
//! - what follows from original values is left out unless the job asks for it. `[measures] source = true` gives the parameters
//!   that were tuned on a sample, the number of cells and their sizes, how dependencies hold and are preserved, steps in
//!   hierarchies (precision, GENC, distortion, ILoss), and how many people classes hold (else: at least k); `information`, `queries`
//!   and `population` give what their names say. Somebody who knows all original values but one can try those that the
//!   class allows, and keep the ones that give your figure: ask for them in trials (`throng sweep`), or leave the manifest of such
//!   a release with those who may read the source. `throng check`, the manifest, the summary and the report have a warning;
//! - even then, what compares with all rows of the source is left out when a row was suppressed or dropped, whichever row it
//!   was;
//! - every figure is rounded to four significant digits. Counts of rows are exact; with a `presence` rule, where who is in
//!   the source is the secret, the number of rows that were left out is given as a bound only.
//!
//! The table in the documentation of the manifest says for each figure what it is a function of. The summary, `--json`,
//! metrics and the report hold the same figures. The report shows histograms of published rows; nothing of the source is
//! drawn beside them, because a bar of the source is a count of the source.
//!
//! # Suppressed rows
//!
//! The number of suppressed and of dropped rows is published. It says how many people did not fit, and suppressed rows
//! are the unusual ones: somebody who knows that a person is in the source, and finds no class that covers this person,
//! knows that the person was suppressed and hence is unusual among the others. Their values stay unknown. A ladder by
//! `quantiles` has borders near quantiles of the source, suppressed rows included, and its labels show them. So they are
//! round numbers near ranks that the secret key has moved: they reveal about how many rows lie below a border, and one row
//! more or less of r moves one of c borders with a chance of about 8 c / r. Where even that matters, write the ladder
//! yourself. `max-loss` is a share of the domain of the source, suppressed rows included, unless the job declares one: the
//! widest class shows how wide that domain is at least, so declare `domain` where somebody may stand far outside. If being
//! unusual must not show, allow no suppression (`max-suppression = 0`): the run then fails where it would have suppressed.
//!
//! # Rejections
//!
//! Whether a run ends well is one bit about the source, and its exit code and message say which rule failed and for how many
//! rows. Somebody who may submit jobs and see how they end can ask many such bits: *is there a group of five with income
//! above a million?* Give the right to run jobs to those only who may read the source, and keep messages and logs with
//! them. The same goes for resource usage, which `--json`, the summary and metrics also report: seconds,
//! bytes spilled and memory follow from all rows. Logs hold no value and no plan at any level, those of a cluster's processes
//! neither. The same holds for `profile`, `sweep`, `recommend` and `attack`, which look at the source and say what they see.
//!
//! # Several releases
//!
//! k holds for one release. The same people, published twice in different classes, can be intersected: a person who is one
//! of ten in each may be the only one who is in both. With a fresh key every run groups differently, so two runs of one job
//! on one table are two such releases. The same goes for next month's table with most of the same people, and for two
//! policies on one table. (Queries of one session of a program are grouped by one key for each policy: the same query gives
//! the same rows. Queries over different parts of a table still overlap; see the guide on embedding.) Therefore a sink takes one
//! release, and refuses those of other runs unless the job says `releases = "independent"`; the manifest and the report of such a
//! release say how many are before it ([`again`](super::again)). That guards against publishing again unawares, and against nothing else:
//!
//! - what releases reveal together is measured by `throng attack --series`; it shows what one adversary finds, not all;
//! - another sink, another program, or a release that was removed from the sink are not seen;
//! - publish a table once, and give everybody the same release;
//! - if it must be published again, withdraw the older release, and assume that somebody has kept it; or publish a **series**.
//!
//! ## A series
//!
//! A series (`[series]`) is made for readers who keep every release and know everybody's quasi-identifiers and on which nights
//! each person was in the source. To them, people who were in the same classes on all nights are a group, and every such group
//! meets k and every rule: by cohorts that never change, and leave only if those who stay and those who go are throngs of their
//! own. Before each release is published, this is counted again from the files and the ledger, by code that does not know how it
//! was achieved.
//!
//! | what a reader sees | why it tells no more than one release |
//! |---|---|
//! | a row that was not there yesterday | it came with a whole new class |
//! | a class that is gone | it left as a whole, or those who stay and those who left meet k and the rules both |
//! | somebody who has left, still in a class | the class is as it was first published; who is gone is not marked |
//! | somebody in the source whom no class can hold | they wait, or are withheld; the manifest counts them and names nobody |
//! | somebody whose values have changed | the old row stays until the class is retired |
//!
//! It is paid for with stale rows, people who wait, and people who are withheld; all are counted in the manifest, and
//! `throng recommend` shows them for a job before it is first published. It rests on the **ledger**, which knows
//! who went where and must be kept as the source is. It holds keyed hashes and no value, except where rows have no identity: then
//! rows that wait are kept in it as they are.
//!
//! What the promise does not cover:
//!
//! - **readers who know sensitive values of others** in a class, as for one release: k - 1 known values tell the last one;
//! - **several sinks from one source**, and releases that were made outside of the series or before it: the ledger knows one sink;
//! - **outside data**: another table that says something about the same people is as telling as it is beside one release;
//! - **kept columns that identify**, such as pseudonyms: whoever knows one follows the row, as in one release;
//! - **subjects that are not people**: rules count subjects. Where a person has several, or where rows have no identity, a
//!   person's rows count as those of several people;
//! - **a horizon**: for readers who kept releases that were removed since, the promise holds within what is still there and
//!   within what was, not across both;
//! - **the ledger and its key in wrong hands**: together they tell which row of one release is which of another, though no value;
//! - **what does not happen**: whether rows wait, and whether a class that is due is split, depends on the values of these rows, as
//!   suppression does in one release, and can be reasoned from (see Minimality). Over nights it adds up: where more than
//!   enough newcomers with the same quasi-identifiers wait, they hold too few values, and who is at last published with them
//!   has another one; where a class is due, both sides are large enough and it stays, one side holds too few. It takes many
//!   people with few values to come to that; a rule with a margin (an l of 4 where you need 3) keeps what is left within your need;
//! - **truth on the day**: stale rows were true when they were published. A reader who takes a release for the table of the day is
//!   wrong about them, and the manifest says about how many.
//!
//! A stream with a `[window]` publishes every row once, and a class never changes: there are no two releases to compare. That
//! holds while subjects come once, or are known again by `window.subject`; and whoever watches the stream learns in which
//! window, and so about when, the rows of a class have come.
//!
//! # Tampering
//!
//! Whoever may write to the sink can change files and manifest. `throng verify` detects that if there is something to
//! compare with:
//!
//! | changed | `verify <sink>` compares with | `verify job.toml` also with |
//! |---|---|---|
//! | a file, or its entry in the manifest | checksum, bytes and rows of the footer | |
//! | rows, their order, classes, the columns and their types | counts and schema of the manifest, `k` | job and source, row by row |
//! | `k`, run, policy, version in the manifest | what the footers note; `k` also its list of rules | the job |
//! | numbers of rows, form, class columns, slices, seed | each other, and the files | job and source |
//! | rules removed or loosened, method, roles | nothing | the job |
//! | what rules attain | nothing | the published files, by the columns of the job |
//! | values put back in their places (permuted forms) | nothing | the source: found where chance gives it less than 1e-9 |
//!
//! Everything else takes a signature. A forger who writes their own files, with matching footers, checksums and manifest,
//! has a consistent release: `verify <sink>` shows that a release is complete and does what it says,
//! not who made it. And only the run itself knows measures of the source (`tuned`, `cells`), the counts of people behind
//! rows whose person is not published, when it was committed, and where its input was. So sign the manifest when you hand
//! a release on; it holds the checksum of every file:
//!
//! ```bash
//! ssh-keygen -Y sign -f ~/.ssh/id_ed25519 -n throng pipelines/out/census/_manifest/*.json
//! ```
//!
//! # What they may still learn
//!
//! - **What a class has in common.** If nine of ten rows have the same diagnosis, they reveal it for everybody
//!   in the class. Rules bound this; they do not rule it out.
//! - **What sensitive columns reveal together.** Rules hold for each column. An income and a rare diagnosis may point
//!   at one row for somebody who knows both: such a column is a quasi-identifier.
//! - **What columns reveal of each other.** Where one column follows from another, a generalised value can be narrowed again
//!   by what it must agree with. Name such dependencies in the job, and the release is checked against this reasoning too.
//! - **Whether somebody is in the data at all**, when being in it is the secret: that needs a `presence` rule.
//!
//! Against somebody with arbitrary knowledge, only differential privacy gives a bound, and it gives statistics,
//! not rows. Where rows are needed, k with rules is what there is; choose both for the readers you expect.
//!
//! # What you decide
//!
//! Roles. A column that identifies people but has the role `kept` is published as it is, and no rule covers it.
//! `throng profile` guesses conservatively, but it only guesses.
