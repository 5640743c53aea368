//! Faults that the project's own tests plant to check that verification catches them.
//!
//! Every fault stands at one place in the code that makes a release, as a mistake might. The one that the environment
//! variable `THRONG_TEST_FAULT` names is active in the whole process. Only builds with the feature `fault-injection` and
//! with debug assertions read it; in all others no fault is ever planted, and the compiler leaves the branch out.

use std::sync::OnceLock;

macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $fault:ident = $name:literal,)+) => {
        /// A mistake that can be planted.
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub enum Fault {
            $($(#[doc = $doc])+ $fault,)+
        }

        impl Fault {
            /// Every fault.
            pub const ALL: &[Self] = &[$(Self::$fault,)+];

            /// The name by which it is planted.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$fault => $name,)+
                }
            }
        }
    };
}

faults! {
    /// Rules: groups of k - 1 rows are large enough.
    SmallGroups = "small-groups",
    /// Rules: a person more is counted in every group than it holds.
    OnePersonMore = "one-person-more",
    /// Rules: distinct l-diversity is content with l - 1 values.
    OneValueLess = "one-value-less",
    /// Rules: any distribution is close to that of the table.
    AnyDistribution = "any-distribution",
    /// Rules: no group loses too much.
    AnyLoss = "any-loss",
    /// Grouping: rows that found no group become one.
    LeftOverGroup = "left-over-group",
    /// Encode: the domain of a column is that of an earlier table, four times as wide.
    StaleDomain = "stale-domain",
    /// Encode: sensitive numbers that floating point cannot distinguish are one value.
    SensitiveAsFloat = "sensitive-as-float",
    /// Encode: the hash of a row leaves out its last column.
    RowHashColumn = "row-hash-column",
    /// Encode: the hash of a class leaves out its last column.
    ClassHashColumn = "class-hash-column",
    /// Encode: rows with a null that the policy drops are kept.
    NullsKept = "nulls-kept",
    /// Source: columns are read by their statistics, which leave NaN out.
    TrustedStatistics = "trusted-statistics",
    /// Operator: two quasi-identifiers of one type change places.
    SwappedColumns = "swapped-columns",
    /// Operator: kept columns come from the row beside.
    NeighbourRow = "neighbour-row",
    /// Operator: kept columns and sensitive ones come from the row beside, all alike.
    NeighbourValues = "neighbour-values",
    /// Operator: kept whole numbers go through floating point.
    KeptAsFloat = "kept-as-float",
    /// Operator: a row is counted that is not published.
    OneRowMore = "one-row-more",
    /// Operator: a suppressed row is not counted.
    UncountedSuppression = "uncounted-suppression",
    /// Recode: rows carry the generalised value of another group.
    StaleLabel = "stale-label",
    /// Recode: the largest value of a group is left out of its range.
    ShortRange = "short-range",
    /// Recode: nulls are left out of the range of a group that has values, too.
    NullInRange = "null-in-range",
    /// Recode: the node of a group covers its first leaf only.
    LowNode = "low-node",
    /// Recode: the mask of a group covers its first value only.
    ThinMask = "thin-mask",
    /// Recode: the step of a ladder covers the smallest value of a group only.
    LowStep = "low-step",
    /// Recode: the set of a group leaves out its last value.
    ShortSet = "short-set",
    /// Recode: groups of numbered forms are numbered one after the other.
    CountedGroups = "counted-groups",
    /// Recode: values of permuted forms stay where they are.
    NoPermutation = "no-permutation",
    /// Recode: identifiers that should be replaced are published.
    RawIdentifier = "raw-identifier",
    /// Recode: pseudonyms are made without the key.
    UnkeyedPseudonym = "unkeyed-pseudonym",
    /// Writer: rows of a class stand in the order of the grouping.
    GroupingOrder = "grouping-order",
    /// Writer: classes stand in the order of the grouping.
    ClassOrder = "class-order",
    /// Writer: the rows of a class are spread over partitions.
    SpreadClass = "spread-class",
    /// Writer: the first row of a batch is lost.
    LostRow = "lost-row",
    /// Writer: the first row of a batch is written in the place of the second.
    RepeatedRow = "repeated-row",
    /// Writer: files note of which type columns were in the source.
    SourceMetadata = "source-metadata",
    /// Writer: a file counts a row that it does not hold.
    FileCount = "file-count",
}

/// Whether faults can be planted: in builds for tests alone, with the feature and with debug assertions.
pub const ENABLED: bool = cfg!(all(feature = "fault-injection", debug_assertions));

impl Fault {
    /// Whether this process runs with the fault.
    #[inline]
    pub fn is_planted(self) -> bool {
        ENABLED && planted() == Some(self.name())
    }
}

/// The name of the fault that this process was started with. No other build reads the variable.
pub fn planted() -> Option<&'static str> {
    static PLANTED: OnceLock<Option<String>> = OnceLock::new();
    if !ENABLED {
        return None;
    }
    PLANTED.get_or_init(|| std::env::var("THRONG_TEST_FAULT").ok()).as_deref()
}
