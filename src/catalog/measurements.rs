//! The rows of a batch as buckets measure them.

use crate::block::Block;
use crate::value::{digits, hash};

use super::options::CatalogOptions;
use super::series::BatchSeries;

/// Memory of a path that a bucket knows, apart from its name and value: what the server's own count for it is.
pub const SCHEMA_ELEMENT_BYTES: usize = 110;

/// Rows without their metadata column.
pub struct Measurements<'a> {
    pub block: &'a Block,
    pub times_ms: &'a [i64],
    /// Rows by series.
    pub order: &'a [u32],
    pub facts: Facts,
}

/// What is found out once about a whole block, so that most runs of rows need not be looked at cell by cell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Stands for the names of the columns: a bucket that knew all of them once need not be asked again. Never 0.
    shape: u64,
    /// Stands for the names and the types of the columns, if they have one: what fits a bucket once fits it always.
    pub types: Option<u64>,
    /// Whether any cell may be a large one.
    any_large: bool,
}

/// What one row adds to a bucket, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Addition {
    /// Of names and summaries: certain.
    pub verified: usize,
    /// Of large cells: until the commit tells what they take when compressed.
    pub estimate: usize,
    /// Of memory.
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

impl<'a> Measurements<'a> {
    /// The rows of a series that have no bucket yet, by time.
    pub fn left(&self, series: &BatchSeries) -> &'a [u32] {
        self.order.get(series.next..series.rows.end).unwrap_or_default()
    }

    /// Time of the first of them.
    pub fn next_ms(&self, series: &BatchSeries) -> i64 {
        self.left(series).first().map_or(0, |row| self.time_ms(*row))
    }

    /// Time of a row.
    pub fn time_ms(&self, row: u32) -> i64 {
        self.times_ms.get(row as usize).copied().unwrap_or_default()
    }

    /// What each of `rows` adds to a bucket of `count` measurements, names that it does not know included; nothing if no
    /// row adds anything.
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

    /// The shape that stands for all columns, where `knows` knows them all.
    pub fn shape_if_known(&self, knows: &dyn Fn(&str) -> bool) -> u64 {
        if self.block.columns().iter().all(|(name, _)| knows(name)) { self.facts.shape } else { 0 }
    }
}
