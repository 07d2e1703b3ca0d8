//! The rows of a batch, measured as buckets count them.

use crate::block::Block;
use crate::value::{digits, hash};

use super::options::CatalogOptions;
use super::series::BatchSeries;

/// Memory of a path known to a bucket, besides its name and value; the figure is the server's.
pub const SCHEMA_ELEMENT_BYTES: usize = 110;

/// Rows without their metadata column.
pub struct BatchRows<'a> {
    pub block: &'a Block,
    pub times_ms: &'a [i64],
    /// Row numbers grouped by series.
    pub order: &'a [u32],
    pub facts: Facts,
}

/// Facts about a whole block, so that most runs of rows need not be examined cell by cell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// A hash of the names of the columns: a bucket that once knew all of them need not be asked again. Never 0.
    shape: u64,
    /// A hash of the names and types of the columns, if each has one type: a bucket that such a block once fitted
    /// always fits.
    pub types: Option<u64>,
    /// True if there may be a large cell.
    any_large: bool,
}

/// The bytes that one row adds to a bucket.
#[derive(Clone, Copy, Debug, Default)]
pub struct Addition {
    /// Names and summaries: exact.
    pub verified: usize,
    /// Large cells: an estimate until the commit says how large they are when compressed.
    pub estimate: usize,
    /// Memory.
    pub memory: usize,
}

impl Facts {
    pub fn of(block: &Block, options: &CatalogOptions) -> Facts {
        let mut shape = 0;
        let mut any_large = false;
        let name_bytes_max = digits(options.bucket_count_max);
        for (name, column) in block.columns() {
            shape = hash(shape ^ name.len() as u64, name.as_bytes());
            any_large |= 2 + column.value_bytes_max() + name_bytes_max > options.large_measurement_bytes;
        }
        Facts { shape: shape | 1, types: block.types(), any_large }
    }
}

impl<'a> BatchRows<'a> {
    /// The rows of a series that have no bucket yet, by time.
    pub fn left(&self, series: &BatchSeries) -> &'a [u32] {
        self.order.get(series.next..series.rows.end).unwrap_or_default()
    }

    /// Time of the first of these rows.
    pub fn next_ms(&self, series: &BatchSeries) -> i64 {
        self.left(series).first().map_or(0, |row| self.time_ms(*row))
    }

    /// Time of a row.
    pub fn time_ms(&self, row: u32) -> i64 {
        self.times_ms.get(row as usize).copied().unwrap_or_default()
    }

    /// What each of `rows` adds to a bucket of `count` measurements, including names new to the bucket; empty if no row
    /// adds anything.
    pub fn additions(
        &self,
        rows: &[u32],
        count: usize,
        known_shape: u64,
        knows: &dyn Fn(&str) -> bool,
        options: &CatalogOptions,
    ) -> Vec<Addition> {
        let all_known = known_shape == self.facts.shape;
        if all_known && !self.facts.any_large {
            return Vec::new();
        }
        let mut additions = vec![Addition::default(); rows.len()];
        for (name, column) in self.block.columns() {
            let mut is_new = !all_known && !knows(name);
            if !is_new && !self.facts.any_large {
                continue;
            }
            for (at, (row, addition)) in rows.iter().zip(&mut additions).enumerate() {
                let row = *row as usize;
                if !column.is_present(row) {
                    continue;
                }
                let value = column.value_bytes(row);
                if std::mem::take(&mut is_new) {
                    addition.verified += 12 + name.len() + 2 * (2 + name.len() + value);
                    addition.memory += SCHEMA_ELEMENT_BYTES + name.len() + value;
                }
                let cell = 2 + value + digits(count + at);
                if cell > options.large_measurement_bytes {
                    addition.estimate += cell;
                }
                if !is_new && !self.facts.any_large {
                    break;
                }
            }
        }
        additions
    }

    /// The hash of all column names, if `knows` is true for each of them; otherwise 0.
    pub fn shape_if_known(&self, knows: &dyn Fn(&str) -> bool) -> u64 {
        if self.block.columns().iter().all(|(name, _)| knows(name)) { self.facts.shape } else { 0 }
    }
}
