//! What a release protects against, and what not.
//!
//! # The adversary
//!
//! Somebody who has the whole release, knows that a person is in it, and knows all quasi-identifiers of that person,
//! from a register, a newspaper or acquaintance; who knows the policy and this program; and who wants to know which
//! row is that person's, or what its sensitive values are.
//!
//! # What they learn
//!
//! | they want | what stands in the way |
//! |---|---|
//! | the person's row | k: at least k rows fit, so a guess is right with a chance of 1/k at most |
//! | the sensitive value | l-diversity, range diversity: the class holds enough different ones |
//! | what was in the identifiers | they are not there |
//! | the order of the source | rows leave group by group, in an order that depends on their content alone |
//! | more from logs, manifests, footers, errors, reports | no value of the data is in them; a report shows bins of k rows and more |
//!
//! k is counted on the written files, by a query that knows nothing of how groups were made. A survey that was wrong
//! makes a release coarser, not less private:
//!
//! ```
//! use throng::measure::{Classes, risk};
//!
//! let mut classes = Classes::default();
//! classes.add(10, 300); // three hundred classes of ten rows
//! classes.add(25, 4);
//! assert_eq!(risk::prosecutor_max(&classes), Some(0.1));
//! assert_eq!(risk::share_above(&classes, 0.1), Some(0.0));
//! ```
//!
//! # What they may still learn
//!
//! - **What a class has in common.** If nine of ten rows tell the same diagnosis, that is what they tell of everybody
//!   in the class. Rules bound it; they do not make it nothing.
//! - **What sensitive columns tell together.** Rules hold for each column. An income and a rare diagnosis may point
//!   at one row for somebody who knows both: such a column is a quasi-identifier.
//! - **What two releases tell together.** The same people, published twice in different classes, can be intersected.
//!   k gives no bound for that.
//! - **Whether somebody is in the data at all**, when being in it is the secret.
//! - **How unusual somebody is**, from being left out: suppressed rows are the unusual ones.
//!
//! Against somebody who knows anything whatever, only differential privacy gives a bound, and it gives statistics,
//! not rows. Where rows are needed, k with rules is what there is; choose both for those who will look.
//!
//! # What you decide
//!
//! Roles. A column that points at people and is called `kept` is published as it is, and no rule sees it.
//! `throng profile` guesses towards caution, but it only guesses.
