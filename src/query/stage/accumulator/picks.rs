//! Which rows of a window an accumulator shows, if it shows values of rows.

/// Which rows of a window are shown.
pub enum Picks {
    /// All rows with a value.
    Present,
    /// The first `n` rows.
    First,
    /// The last `n` rows.
    Last,
    /// The first row of each number; rows without a value have none (`NOTHING`).
    Distinct(Vec<u32>),
    /// The first `n` rows by rank.
    Ranked(RankedRows),
}

/// Rows by rank.
pub struct RankedRows {
    /// The rows, the first one to pick in front. Rows that do not count are left out.
    pub rows: Vec<u32>,
    /// The order in which picked rows are shown, if it is another one.
    pub shown: Option<Vec<u32>>,
    /// True if the one row that is picked is shown by itself, not in an array.
    pub is_single: bool,
}
