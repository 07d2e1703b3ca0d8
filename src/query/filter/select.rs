//! Evaluates a filter on a block, a whole column at a time.

use super::lists::select_points;
use super::tree::{Filter, Test};
use crate::block::{Bitmap, Block, Column, ColumnData, kernels};
use crate::error::Result;
use crate::listed::IntoList;
use crate::value::{Component, Doc, DocWriter, Kind, Number, Path, Value};

impl Filter {
    /// The rows of `block` that pass. Columns are the top-level fields of its rows.
    ///
    /// Errors: those of expressions.
    pub fn select(&self, block: &Block) -> Result<Bitmap> {
        let mut rows = Bitmap::filled(block.rows(), true);
        self.narrow(block, &mut rows)?;
        Ok(rows)
    }

    /// Removes from `rows` those that do not pass. Skips rows outside of `rows` if evaluating them is expensive.
    ///
    /// Errors: those of expressions.
    pub fn narrow(&self, block: &Block, rows: &mut Bitmap) -> Result<()> {
        match self {
            Filter::AlwaysTrue => {}
            Filter::AlwaysFalse => clear(rows),
            Filter::And(children) => {
                for child in children {
                    if rows.none() {
                        break;
                    }
                    child.narrow(block, rows)?;
                }
            }
            Filter::Or(children) => *rows = any_of(children, block, rows)?,
            Filter::Nor(children) => subtract(rows, any_of(children, block, rows)?),
            Filter::Not(child) => subtract(rows, any_of(std::slice::from_ref(child), block, rows)?),
            Filter::Field(path, test) => test.narrow(path, block, rows),
            Filter::Expr(condition) => condition.narrow(block, rows)?,
            // Loaded by now: `filter::schema` and `filter::geo` have made these.
            Filter::Schema(schema) => keep_documents(block, rows, &|doc| schema.holds(doc.as_value())),
            Filter::Bucket(bucket) => keep_documents(block, rows, &|doc| bucket.holds(doc)),
        }
        Ok(())
    }
}

/// Keeps the rows that pass a test of the whole document.
fn keep_documents(block: &Block, rows: &mut Bitmap, test: &dyn Fn(Doc<'_>) -> bool) {
    *rows = Bitmap::from_fn(rows.len(), |row| {
        let mut writer = DocWriter::new();
        rows.get(row) && {
            block.write_row(row, &mut writer);
            test(writer.finish().view())
        }
    });
}

/// The rows of `rows` that pass one of `children`. Each child sees only the rows that earlier ones left.
fn any_of(children: &[Filter], block: &Block, rows: &Bitmap) -> Result<Bitmap> {
    let mut open = rows.clone();
    for child in children {
        if open.none() {
            break;
        }
        let mut passing = open.clone();
        child.narrow(block, &mut passing)?;
        subtract(&mut open, passing);
    }
    let mut found = rows.clone();
    subtract(&mut found, open);
    Ok(found)
}

fn clear(rows: &mut Bitmap) {
    *rows = Bitmap::filled(rows.len(), false);
}

fn subtract(rows: &mut Bitmap, mut others: Bitmap) {
    others.invert();
    rows.and(&others);
}

impl Test {
    pub(super) fn narrow(&self, path: &Path, block: &Block, rows: &mut Bitmap) {
        match block.column(path.first()) {
            Some(column) => self.narrow_column(column, path.rest(), rows),
            None => self.narrow_missing(rows),
        }
    }

    pub(super) fn narrow_column(&self, column: &Column, rest: &[Component], rows: &mut Bitmap) {
        let mut passing = match column.data() {
            // If a dictionary is larger than its column (a slice carries all of it), testing the cells is cheaper.
            ColumnData::Dictionary(index, values) if values.len() <= index.len() => {
                let mut hits = Bitmap::filled(values.len(), true);
                self.narrow_column(values, rest, &mut hits);
                kernels::entries(index, &hits)
            }
            ColumnData::Objects(objects) if !rest.is_empty() => {
                // Loaded by now: only `column::read::objects`, which is loaded later, makes such columns.
                return match objects.reach(&rest.iter().map(Component::name).listed()) {
                    Some(Some(found)) => self.narrow_column(&found, &[], rows),
                    Some(None) => self.narrow_missing(rows),
                    None if self.narrow_arrays(objects, rest, rows) => {}
                    None => self.narrow_each(column, rest, rows),
                };
            }
            ColumnData::Bson(_) if rows.count() * 4 > rows.len() => {
                let mut passing = Bitmap::filled(column.len(), true);
                if !self.narrow_mixed_if_loaded(column, rest, &mut passing) {
                    let doubles = match self {
                        // Neither null nor a missing value passes, so they may look the same.
                        Test::Compare(compare) if rest.is_empty() && compare.value().kind().is_number() => {
                            column.to_doubles()
                        }
                        _ => None,
                    };
                    return match doubles {
                        Some(doubles) => self.narrow_column(&doubles, &[], rows),
                        None if rest.is_empty() && self.narrow_untagged_if_loaded(column, rows) => {}
                        None if rest.is_empty() && self.narrow_numbers_if_loaded(column, rows) => {}
                        None => self.narrow_each(column, rest, rows),
                    };
                }
                passing
            }
            ColumnData::Bson(_) | ColumnData::Dictionary(..) => return self.narrow_each(column, rest, rows),
            ColumnData::Objects(_) => match self.select_objects(column) {
                Some(passing) => passing,
                None => return self.narrow_each(column, rest, rows),
            },
            // Nothing lies below a scalar or an absent cell.
            _ if !rest.is_empty() => return self.narrow_missing(rows),
            _ => match self.select(column) {
                Some(passing) => passing,
                None => return self.narrow_each(column, rest, rows),
            },
        };
        if let Some(presence) = column.presence() {
            passing.and(presence);
            if self.matches(None) {
                let mut absent = presence.clone();
                absent.invert();
                passing.or(&absent);
            }
        }
        rows.and(&passing);
    }

    /// As `narrow_column` of a column of one type and nulls; false if it is another one.
    // Loaded later.
    #[inline(never)]
    fn narrow_untagged_if_loaded(&self, column: &Column, rows: &mut Bitmap) -> bool {
        let Some((typed, mut nulls)) = column.untagged() else { return false };
        nulls.and(rows);
        self.narrow_column(&typed, &[], rows);
        if self.matches_below(Some(Value::NULL), &[]) {
            rows.or(&nulls);
        } else {
            subtract(rows, nulls);
        }
        true
    }

    /// The cells that pass, present or not, by a kernel; `None` if there is none for the column's type.
    pub(super) fn select(&self, column: &Column) -> Option<Bitmap> {
        match self {
            Test::Compare(compare) => compare.select(column),
            Test::In(set) => set.select(column),
            Test::Exists => Some(Bitmap::filled(column.len(), true)),
            Test::Regex(regex) => regex.select(column),
            Test::Type(kinds) => column.kind().map(|kind| Bitmap::filled(column.len(), kinds.contains(kind))),
            Test::Mod(modulo) => select_numbers(column, &|number| modulo.holds(number)),
            Test::Bits(bits) => select_numbers(column, &|number| bits.holds(number)),
            // Cells of typed columns are neither arrays nor objects.
            Test::Size(_) | Test::ElemMatch(_) | Test::Geo(_) => select_numbers(column, &|_| false),
            Test::Whole(compare) => compare.select_whole(column),
        }
    }

    /// The objects that pass, present or not; `None` if that depends on what is in them.
    fn select_objects(&self, column: &Column) -> Option<Bitmap> {
        match self {
            Test::Exists => self.select(column),
            Test::Type(kinds) => Some(Bitmap::filled(column.len(), kinds.contains(Kind::Object))),
            Test::Compare(compare) => compare.select_objects(column),
            // Loaded by now: `filter::geo` has made the region.
            Test::Geo(geo) => select_points(geo, column),
            _ => None,
        }
    }

    fn narrow_missing(&self, rows: &mut Bitmap) {
        if !self.matches(None) {
            clear(rows);
        }
    }

    fn narrow_each(&self, column: &Column, rest: &[Component], rows: &mut Bitmap) {
        let mut passing = Bitmap::filled(rows.len(), false);
        let mut scratch = Vec::new();
        for row in rows.iter() {
            if self.matches_below(column.value(row, &mut scratch), rest) {
                passing.set(row, true);
            }
        }
        *rows = passing;
    }
}

/// The cells with numbers for which `holds` is true, present or not; `None` for columns without a type.
fn select_numbers(column: &Column, holds: &dyn Fn(Number) -> bool) -> Option<Bitmap> {
    column.kind().filter(|_| !matches!(column.data(), ColumnData::Dictionary(..)))?;
    Some(Bitmap::from_fn(column.len(), |row| {
        let number = match column.data() {
            ColumnData::F64(v) => v.get(row).map(|x| Number::Double(*x)),
            ColumnData::I32(v) => v.get(row).map(|n| Number::Integer((*n).into())),
            ColumnData::I64(v) => v.get(row).map(|n| Number::Integer(*n)),
            _ => None,
        };
        number.is_some_and(holds)
    }))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{any_block, any_collation, any_filter_doc, any_value, filter, filter_by};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn selected_rows_are_those_whose_documents_match(
            block in any_block(), doc in any_filter_doc(any_value()), collation in any_collation(),
        ) {
            let filter = filter_by(&doc, &collation);
            let selected = filter.select(&block).unwrap();
            for row in 0..block.rows() {
                let mut writer = DocWriter::new();
                block.write_row(row, &mut writer);
                let document = writer.finish();
                prop_assert_eq!(selected.get(row), filter.matches_doc(document.view()).unwrap(), "row {}: {:?}", row, document);
            }
        }
    }

    #[test]
    fn narrowing_never_adds_rows() {
        let block = Block::new(3);
        let mut rows = Bitmap::from_fn(3, |row| row == 1);
        Filter::all().narrow(&block, &mut rows).unwrap();
        filter(&bson::rawdoc! { "$nor": [{ "a": 1 }], "b": null }).narrow(&block, &mut rows).unwrap();
        assert_eq!(rows.to_rows(), [1]);
        filter(&bson::rawdoc! { "$or": [{ "a": 1 }, { "b": 2 }] }).narrow(&block, &mut rows).unwrap();
        assert!(rows.none());
    }
}
