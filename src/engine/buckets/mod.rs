//! Changes of stored buckets: one changeset, guarded by the epoch, for the buckets and their index entries. And folds.

pub mod bucket_changes;
pub mod fold;
pub mod fold_windows;
pub mod index_checks;
