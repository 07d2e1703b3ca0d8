//! Changes of stored buckets as one changeset under the epoch, with their index entries; and folds.

pub mod bucket_changes;
pub mod fold;
pub mod index_checks;
