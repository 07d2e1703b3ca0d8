//! Changes of stored buckets as one changeset under the epoch, with their index entries; and folds.

pub mod bucket_changes;
pub mod fold;
pub mod fold_windows;
pub mod index_checks;
