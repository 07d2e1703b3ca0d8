//! Builds a column cell by cell: typed as long as all values have one type, BSON from the first that differs.

use std::ops::Range;

use super::bitmap::Bitmap;
use super::column::{Column, ColumnData, VarData};
use crate::value::{Kind, Value};

/// Collects cells. The first value fixes the type; a value of another type turns the column into a BSON column.
#[derive(Debug)]
pub struct ColumnBuilder {
    /// `None` until the first value.
    data: Option<ColumnData>,
    presence: Option<Bitmap>,
    len: usize,
    capacity: usize,
}

impl Default for ColumnBuilder {
    fn default() -> Self {
        ColumnBuilder::new()
    }
}

impl ColumnBuilder {
    /// A builder without cells.
    pub fn new() -> ColumnBuilder {
        ColumnBuilder::with_capacity(0)
    }

    /// A builder that expects about `rows` cells.
    pub fn with_capacity(rows: usize) -> ColumnBuilder {
        ColumnBuilder { data: None, presence: None, len: 0, capacity: rows }
    }

    /// A builder that takes over the cells of a column and appends to them.
    pub fn resume(column: Column) -> ColumnBuilder {
        let len = column.len();
        if column.present_count() == 0 {
            // The first value that comes fixes its type.
            let mut builder = ColumnBuilder::new();
            builder.push_absent(len);
            return builder;
        }
        let (data, presence) = column.into_plain().into_parts();
        ColumnBuilder { data: Some(data), presence, len, capacity: len }
    }

    /// Cells so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True before the first cell.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends `count` absent cells.
    pub fn push_absent(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let len = self.len;
        self.presence.get_or_insert_with(|| Bitmap::filled(len, true)).push_many(false, count);
        self.len += count;
        if let Some(data) = &mut self.data {
            pad(data, count);
        }
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: Value<'_>) {
        let len = self.len;
        let capacity = self.capacity.max(len + 1);
        let data = self.data.get_or_insert_with(|| {
            let mut data = empty(value.kind(), capacity);
            pad(&mut data, len);
            data
        });
        let fits = match (&mut *data, value.kind()) {
            (ColumnData::F64(v), Kind::Double) => value.as_f64().map(|x| v.push(x)),
            (ColumnData::Date(v), Kind::Date) => value.as_date_ms().map(|x| v.push(x)),
            (ColumnData::I32(v), Kind::Int32) => value.as_i32().map(|x| v.push(x)),
            (ColumnData::I64(v), Kind::Int64) => value.as_i64().map(|x| v.push(x)),
            (ColumnData::Bool(v), Kind::Bool) => value.as_bool().map(|x| v.push(u8::from(x))),
            (ColumnData::String(v), Kind::String) => {
                v.push(value.text_bytes());
                Some(())
            }
            (ColumnData::ObjectId(v), Kind::ObjectId) => value.as_object_id().map(|x| v.push(x)),
            (ColumnData::Bson(v), _) => {
                push_tagged(v, value);
                Some(())
            }
            _ => None,
        };
        if fits.is_none() {
            let mut mixed = self.take_as_bson();
            push_tagged(&mut mixed, value);
            self.data = Some(ColumnData::Bson(mixed));
        }
        if let Some(presence) = &mut self.presence {
            presence.push(true);
        }
        self.len += 1;
    }

    /// Appends rows `range` of `column`.
    pub fn extend(&mut self, column: &Column, range: Range<usize>) {
        if matches!(column.data(), ColumnData::Dictionary(..)) {
            let rows = range.len();
            return self.extend(&column.slice(range).into_plain(), 0..rows);
        }
        if column.presence().is_none_or(|present| range.clone().any(|row| present.get(row)))
            && (self.extend_cells(column.data(), &range) || self.extend_as_bson(column, &range))
        {
            let len = self.len;
            self.len += range.len();
            match (&mut self.presence, column.presence()) {
                (None, None) => {}
                (Some(presence), None) => presence.push_many(true, range.len()),
                (_, Some(more)) => self.presence.get_or_insert_with(|| Bitmap::filled(len, true)).extend(more, range),
            }
            return;
        }
        let mut scratch = Vec::new();
        for row in range {
            match column.value(row, &mut scratch) {
                Some(value) => self.push(value),
                None => self.push_absent(1),
            }
        }
    }

    /// Appends cells as values with their type bytes, if some differ in type from the builder's. False if nothing was
    /// appended: the builder has no type yet, the cells fit its type, or they have a form without a fixed width.
    fn extend_as_bson(&mut self, column: &Column, range: &Range<usize>) -> bool {
        let kind = match &self.data {
            None => return false,
            Some(_) if range.is_empty() => return false,
            Some(ColumnData::Bson(_)) => None,
            Some(data) => data.kind(),
        };
        let differs = match (kind, column.data()) {
            (None, _) => true,
            (Some(kind), ColumnData::Bson(cells)) => {
                range.clone().any(|row| cells.get(row).first().is_some_and(|byte| *byte != kind.byte()))
            }
            (Some(kind), cells) => cells.cell_bytes().is_some() && cells.kind() != Some(kind),
        };
        if !differs {
            return false;
        }
        if kind.is_some() {
            self.data = Some(ColumnData::Bson(self.take_as_bson()));
        }
        match &mut self.data {
            Some(ColumnData::Bson(to)) => to.extend_tagged(column, range),
            _ => false,
        }
    }

    /// Appends cells of the builder's type; false if they have another type.
    fn extend_cells(&mut self, cells: &ColumnData, range: &Range<usize>) -> bool {
        use ColumnData as D;
        if self.data.is_none() && !range.is_empty() {
            let kind = cells.kind().filter(|_| !matches!(cells, D::Objects(_)));
            self.data = kind.map(|kind| empty(kind, self.capacity));
            self.data.iter_mut().for_each(|data| pad(data, self.len));
        }
        match (&mut self.data, cells) {
            (Some(D::F64(v)), D::F64(cells)) => copy_cells(v, cells, range),
            (Some(D::I32(v)), D::I32(cells)) => copy_cells(v, cells, range),
            (Some(D::I64(v)), D::I64(cells)) | (Some(D::Date(v)), D::Date(cells)) => copy_cells(v, cells, range),
            (Some(D::Bool(v)), D::Bool(cells)) => copy_cells(v, cells, range),
            (Some(D::ObjectId(v)), D::ObjectId(cells)) => copy_cells(v, cells, range),
            (Some(D::String(v)), D::String(cells)) | (Some(D::Bson(v)), D::Bson(cells)) => {
                v.extend(cells, range.clone());
                true
            }
            _ => false,
        }
    }

    fn take_as_bson(&mut self) -> VarData {
        let Some(data) = self.data.take() else { return VarData::default() };
        Column::new(data, self.presence.clone()).tagged()
    }

    /// The column. If no cell is present, it is a BSON column.
    pub fn finish(self) -> Column {
        let data = self.data.unwrap_or_else(|| {
            let mut data = ColumnData::Bson(VarData::default());
            pad(&mut data, self.len);
            data
        });
        Column::new(data, self.presence)
    }
}

/// Appends the cells of a range; false if it lies beyond them.
fn copy_cells<T: Copy>(to: &mut Vec<T>, cells: &[T], range: &Range<usize>) -> bool {
    match cells.get(range.clone()) {
        // A commit with one row for each of many series makes sections this short.
        Some([cell]) => to.push(*cell),
        Some(cells) => to.extend_from_slice(cells),
        None => return false,
    }
    true
}

/// Appends type byte and value bytes.
pub(crate) fn push_tagged(to: &mut VarData, value: Value<'_>) {
    value.append_tagged(&mut to.bytes);
    to.seal();
}

fn empty(kind: Kind, capacity: usize) -> ColumnData {
    match kind {
        Kind::Double => ColumnData::F64(Vec::with_capacity(capacity)),
        Kind::Int32 => ColumnData::I32(Vec::with_capacity(capacity)),
        Kind::Int64 => ColumnData::I64(Vec::with_capacity(capacity)),
        Kind::Date => ColumnData::Date(Vec::with_capacity(capacity)),
        Kind::Bool => ColumnData::Bool(Vec::with_capacity(capacity)),
        Kind::String => ColumnData::String(VarData::default()),
        Kind::ObjectId => ColumnData::ObjectId(Vec::with_capacity(capacity)),
        _ => ColumnData::Bson(VarData::default()),
    }
}

fn pad(data: &mut ColumnData, count: usize) {
    fn zeros<T: Clone + Default>(v: &mut Vec<T>, count: usize) {
        v.resize(v.len() + count, T::default());
    }
    match data {
        ColumnData::F64(v) => zeros(v, count),
        ColumnData::I32(v) => zeros(v, count),
        ColumnData::I64(v) | ColumnData::Date(v) => zeros(v, count),
        ColumnData::Bool(v) => zeros(v, count),
        ColumnData::ObjectId(v) => zeros(v, count),
        ColumnData::Dictionary(v, _) => zeros(v, count),
        ColumnData::String(v) | ColumnData::Bson(v) => (0..count).for_each(|_| v.seal()),
        // No builder has any: `resume` makes values of them.
        ColumnData::Objects(_) => {}
    }
}

impl Column {
    /// The same cells, with objects of one shape as BSON values.
    pub fn into_values(self) -> Column {
        let ColumnData::Objects(objects) = self.data() else { return self };
        let mut builder = ColumnBuilder::with_capacity(objects.rows());
        let mut scratch = Vec::new();
        for row in 0..objects.rows() {
            match self.value(row, &mut scratch) {
                Some(value) => builder.push(value),
                None => builder.push_absent(1),
            }
        }
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Block;
    use crate::block::samples::column_of;
    use crate::value::OwnedValue;
    use proptest::prelude::*;

    /// Values of one type each.
    fn types() -> [BoxedStrategy<OwnedValue>; 8] {
        [
            any::<f64>().prop_map(OwnedValue::double).boxed(),
            any::<i32>().prop_map(OwnedValue::int32).boxed(),
            any::<i64>().prop_map(OwnedValue::int64).boxed(),
            any::<i64>().prop_map(OwnedValue::date).boxed(),
            any::<bool>().prop_map(OwnedValue::bool).boxed(),
            any::<[u8; 12]>().prop_map(OwnedValue::object_id).boxed(),
            ".{0,8}".prop_map(|s| OwnedValue::string(&s)).boxed(),
            Just(OwnedValue::null()).boxed(),
        ]
    }

    pub(crate) fn any_value() -> impl Strategy<Value = OwnedValue> {
        proptest::strategy::Union::new(types())
    }

    /// Cells of one type with holes, or of any types.
    fn any_cells() -> impl Strategy<Value = Vec<Option<OwnedValue>>> {
        let one_type = types().map(|value| proptest::collection::vec(proptest::option::weighted(0.8, value), 0..20));
        let one_type = proptest::strategy::Union::new(one_type);
        prop_oneof![
            proptest::collection::vec(proptest::option::of(any_value()), 0..40),
            proptest::collection::vec(any::<f64>().prop_map(|x| Some(OwnedValue::double(x))), 0..40),
            one_type,
        ]
    }

    fn read(column: &Column) -> Vec<Option<OwnedValue>> {
        let mut scratch = Vec::new();
        (0..column.len()).map(|row| column.value(row, &mut scratch).map(Value::to_owned)).collect()
    }

    #[test]
    fn a_builder_continues_an_existing_column() {
        let mut absent = ColumnBuilder::new();
        absent.push_absent(2);
        let mut resumed = ColumnBuilder::resume(absent.finish());
        resumed.push(OwnedValue::double(1.5).view());
        let column = resumed.finish();
        assert_eq!((column.kind(), column.present_count(), column.len()), (Some(Kind::Double), 1, 3));
        let mut resumed = ColumnBuilder::resume(column);
        resumed.push(OwnedValue::string("x").view());
        let column = resumed.finish();
        assert_eq!((column.kind(), column.present_count(), column.len()), (None, 2, 4));
    }

    #[test]
    fn number_columns_grow_in_place_until_a_value_has_another_type() {
        let block = |t: i64, x: ColumnData| {
            let mut block = Block::new(2);
            block.set_column("t", Column::new(ColumnData::Date(vec![t, t + 1]), None));
            block.set_column("x", Column::new(x, None));
            block
        };
        let doubles = |x: f64| ColumnData::F64(vec![x, x + 0.5]);
        // A double after doubles, then an int32 and what follows it.
        let int32s = ColumnData::I32(vec![4, 5]);
        let blocks = [block(1, doubles(0.0)), block(5, doubles(7.0)), block(3, int32s), block(9, doubles(1.0))];
        for ranges in [[0..2, 0..2, 0..2, 0..2], [1..2, 0..1, 0..0, 1..2], [0..2, 1..2, 1..2, 0..0]] {
            let parts: Vec<_> = blocks.iter().zip(ranges).collect();
            for count in 0..=parts.len() {
                let mut grown = Block::new(0);
                parts.iter().take(count).for_each(|part| grown.append_slices(std::slice::from_ref(part)));
                assert_eq!(grown, Block::concat_slices(&parts[..count]));
            }
        }
    }

    proptest! {
        #[test]
        fn a_block_that_grows_in_place_equals_the_concatenation_of_its_parts(
            parts in proptest::collection::vec((any_cells(), any_cells(), any::<bool>()), 0..6), at in 0_usize..6,
        ) {
            let column = |cells: &[Option<OwnedValue>], rows: usize| {
                let mut builder = ColumnBuilder::new();
                (0..rows).for_each(|row| match cells.get(row).and_then(Option::as_ref) {
                    Some(value) => builder.push(value.view()),
                    None => builder.push_absent(1),
                });
                builder.finish()
            };
            let blocks: Vec<Block> = parts
                .iter()
                .map(|(a, b, swapped)| {
                    let rows = a.len();
                    let mut block = Block::new(rows);
                    block.set_column(if *swapped { "y" } else { "x" }, column(a, rows));
                    if *swapped || b.len() % 2 == 0 {
                        block.set_column(if *swapped { "x" } else { "y" }, column(b, rows));
                    }
                    block
                })
                .collect();
            let slices: Vec<(&Block, Range<usize>)> = blocks.iter().map(|b| (b, 0..b.rows())).collect();
            let (front, back) = slices.split_at(at.min(slices.len()));
            let mut grown = Block::new(0);
            grown.append_slices(front);
            grown.append_slices(back);
            prop_assert_eq!(grown, Block::concat_slices(&slices));
        }

        #[test]
        fn columns_of_any_forms_extend_a_column_as_their_cells_do(
            parts in proptest::collection::vec((any_cells(), proptest::option::of(any_value()), any::<prop::sample::Index>()), 0..5),
        ) {
            let (mut builder, mut by_cell) = (ColumnBuilder::new(), ColumnBuilder::new());
            for (cells, constant, at) in &parts {
                let mut columns = vec![column_of(cells)];
                columns.extend(constant.as_ref().map(|value| Column::constant(value.view(), cells.len())));
                for column in columns {
                    let range = at.index(cells.len() + 1)..cells.len();
                    builder.extend(&column, range.clone());
                    for cell in &read(&column)[range] {
                        match cell {
                            Some(value) => by_cell.push(value.view()),
                            None => by_cell.push_absent(1),
                        }
                    }
                }
            }
            prop_assert_eq!(builder.finish(), by_cell.finish());
        }

        #[test]
        fn a_column_returns_the_cells_it_was_built_from(cells in any_cells()) {
            prop_assert_eq!(read(&column_of(&cells)), cells);
        }

        #[test]
        fn slicing_gathering_extending_and_narrowing_agree_with_a_vector(
            cells in any_cells(), more in any_cells(), picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..30),
        ) {
            let column = column_of(&cells);
            let half = cells.len() / 2;
            prop_assert_eq!(read(&column.slice(half..cells.len())), &cells[half..]);
            if !cells.is_empty() {
                let rows: Vec<u32> = picks.iter().map(|p| p.index(cells.len()) as u32).collect();
                let picked: Vec<_> = rows.iter().map(|r| cells[*r as usize].clone()).collect();
                prop_assert_eq!(read(&column.gather(&rows)), picked);
            }
            let mut builder = ColumnBuilder::new();
            builder.extend(&column, 0..half);
            builder.extend(&column_of(&more), 0..more.len());
            let joined: Vec<_> = cells[..half].iter().chain(&more).cloned().collect();
            prop_assert_eq!(read(&builder.finish()), joined);
            prop_assert_eq!(read(&column.clone().narrowed()), cells);
        }
    }

    #[test]
    fn one_type_stays_typed_and_mixed_types_become_bson() {
        let doubles = column_of(&[Some(OwnedValue::double(1.0)), None, Some(OwnedValue::double(2.0))]);
        assert_eq!(doubles.kind(), Some(Kind::Double));
        assert_eq!(doubles.present_count(), 2);
        let mixed = column_of(&[Some(OwnedValue::double(1.0)), Some(OwnedValue::int32(1))]);
        assert_eq!(mixed.kind(), None);
        assert_eq!(mixed.slice(1..2).narrowed().kind(), Some(Kind::Int32));
    }
}
