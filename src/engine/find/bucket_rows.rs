//! Unpacks neighbouring buckets of few rows together.

// Loaded later.

use std::rc::Rc;

use super::find_cursor::FindCursor;
use super::joined::joined;
use crate::block::{Bitmap, Block, Column, ColumnBuilder, ColumnData, DocPivot, common_order};
use crate::bucket::{BucketDoc, push_single, unpack};
use crate::engine::store::stored_bucket::StoredBucket;
use crate::listed::IntoList;
use crate::query::among;
use crate::value::{FieldSet, Interner, Value};

impl FindCursor {
    /// The rows of stored buckets, with these columns, which include the metadata if that is wanted. None if a bucket is damaged:
    /// whoever takes them one by one reports it.
    pub(super) fn rows_of(&self, buckets: &[Rc<StoredBucket>], columns: &FieldSet, in_any_order: bool) -> Vec<Block> {
        self.together(buckets, columns, in_any_order).unwrap_or_default()
    }

    /// Most buckets may have a single row each, which are put together before they are columns.
    fn together(&self, buckets: &[Rc<StoredBucket>], columns: &FieldSet, in_any_order: bool) -> Option<Vec<Block>> {
        let options = &self.scan.collection().entry().options.timeseries;
        let meta_field = options.meta_field.as_deref().filter(|name| columns.contains(name));
        let (mut singles, mut metas) = (DocPivot::new(), RowMetas::new());
        let (mut others, mut parts) = (Vec::new(), Vec::with_capacity(buckets.len()));
        for stored in buckets {
            let view = stored.view(options).ok()?.without_kept();
            let is_single = push_single(&view, columns, options, &mut singles).ok()?;
            if is_single {
                metas.push(view.meta().filter(|_| meta_field.is_some()));
                parts.push((true, 1));
            } else {
                let rows = self.unpacked(&view, columns)?;
                parts.push((false, rows.rows()));
                others.push(rows);
            }
        }
        if singles.rows() == 0 {
            return Some(joined(others, in_any_order));
        }
        let agree = singles.agrees();
        let mut singles = singles.finish();
        singles.begin_with(&options.time_field, meta_field.zip(metas.finish()));
        let have_order = || agree && common_order(&mut others.iter().chain([&singles])).is_some();
        if !in_any_order && !have_order() {
            let all = buckets.iter().map(|stored| self.unpacked(&stored.view(options).ok()?.without_kept(), columns));
            return Some(joined(all.listed_if_all()?, false));
        }
        if others.is_empty() {
            return Some(vec![singles]);
        }
        // They have a common order, so these are one block.
        let others = joined(others, in_any_order).pop()?;
        Some(vec![among(singles, others, &mut parts.into_iter())])
    }

    /// The rows of one bucket; `None` if it is damaged.
    fn unpacked(&self, view: &BucketDoc<'_>, columns: &FieldSet) -> Option<Block> {
        let options = &self.scan.collection().entry().options.timeseries;
        let mut rows = unpack(view, columns, options).ok()?;
        let meta = options.meta_field.as_deref().filter(|name| columns.contains(name)).zip(view.meta());
        let count = rows.rows();
        rows.begin_with(&options.time_field, meta.map(|(name, meta)| (name, Column::constant(meta, count))));
        Some(rows)
    }
}

/// The metadata of rows.
struct RowMetas {
    known: Interner,
    values: ColumnBuilder,
    numbers: Vec<u32>,
    present: Bitmap,
    scratch: Vec<u8>,
}

impl RowMetas {
    fn new() -> RowMetas {
        let (known, values) = (Interner::default(), ColumnBuilder::default());
        RowMetas { known, values, numbers: Vec::new(), present: Bitmap::filled(0, true), scratch: Vec::new() }
    }

    fn push(&mut self, meta: Option<Value<'_>>) {
        let mut number = 0;
        if let Some(meta) = meta {
            self.scratch.clear();
            meta.append_tagged(&mut self.scratch);
            let (known, is_new) = self.known.add(&self.scratch);
            if is_new {
                self.values.push(meta);
            }
            number = u32::try_from(known).unwrap_or(u32::MAX);
        }
        self.numbers.push(number);
        self.present.push(meta.is_some());
    }

    /// The column; `None` if no row has metadata.
    fn finish(self) -> Option<Column> {
        let presence = (!self.present.all()).then_some(self.present);
        (!self.values.is_empty())
            .then(|| Column::new(ColumnData::Dictionary(self.numbers, self.values.finish().into()), presence))
    }
}
