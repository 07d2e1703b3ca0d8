//! A fixed-width key for each row and sort key: numbers and dates directly, everything else by rank.
//!
//! A smaller key sorts first and equal keys tie, so that sorting never reads the columns again.

use std::borrow::Cow;

use kernels::sortable;

use super::arrays::least_keys;
use super::spec::{SortPart, SortSpec};
use crate::block::{Block, Column, ColumnData};
use crate::error::Result;
use crate::listed::IntoList;
use crate::value::{
    Collation, Component, Interner, Kind, Number, Path, Value, canonical_class, sort_by, sort_key, sort_rows,
};

/// The keys of every row of `blocks`, one vector per part.
///
/// Errors: `BadValue` if two parts meet different arrays in one row.
pub(super) fn keys_of_rows(spec: &SortSpec, blocks: &[Block]) -> Result<Vec<Vec<u64>>> {
    let mut keys: Vec<_> = spec.parts().iter().map(|part| fixed_keys(part, blocks)).collect();
    let ranked: Vec<&SortPart> = spec.parts().iter().zip(&keys).filter(|(_, k)| k.is_none()).map(|(p, _)| p).listed();
    let mut pools: Vec<Pool> = ranked.iter().map(|_| Pool::new()).collect();
    for block in blocks {
        fill_pools(&mut pools, &ranked, block)?;
    }
    let mut ranks = pools.into_iter().zip(&ranked).map(|(pool, part)| pool.into_ranks(part));
    for slot in keys.iter_mut().filter(|slot| slot.is_none()) {
        *slot = ranks.next();
    }
    Ok(keys.into_iter().flatten().listed())
}

/// The keys of all rows of two blocks by the first part alone, if they are fixed ones, and if the other parts cannot meet different
/// arrays in one row. Texts have keys if the first block is one row: those of the others say how they stand to it.
pub(super) fn first_keys(spec: &SortSpec, blocks: &[Block; 2]) -> Option<Vec<u64>> {
    let (first, others) = spec.parts().split_first()?;
    let may_fail = |block: &Block| {
        let columns = others.iter().filter_map(|part| block.column(part.path.first()));
        columns.filter(|column| may_hold_arrays(column)).count() > 1
    };
    if others.len() > 1 && blocks.iter().any(may_fail) {
        return None;
    }
    fixed_keys(first, blocks).or_else(|| text_keys(first, blocks))
}

/// The key 1 for the only row of the first block, and for each row of the other one 0, 1 or 2: in front of it, equal or behind, by
/// texts at a path. `None` if there are other values.
fn text_keys(part: &SortPart, [only, others]: &[Block; 2]) -> Option<Vec<u64>> {
    let column_of = |block| match column_at(&part.path, block) {
        Some(Some(column)) if column.kind() != Some(Kind::String) => None,
        found => found,
    };
    let (column, mut scratch) = (column_of(only)?, Vec::new());
    let text = column.and_then(|column| column.value(0, &mut scratch)).map(Value::text_bytes);
    let key = |other: Option<&[u8]>| {
        let order = match (other, text) {
            (Some(other), Some(text)) => part.collation.compare_texts(other, text),
            _ => other.is_some().cmp(&text.is_some()),
        };
        (if part.ascending { order } else { order.reverse() } as i8 + 1).unsigned_abs().into()
    };
    let mut keys = vec![1];
    let Some(column) = column_of(others)? else {
        keys.resize(1 + others.rows(), key(None));
        return Some(keys);
    };
    let (index, texts) = match column.data() {
        ColumnData::Dictionary(index, values) => (Some(index), values.data()),
        texts => (None, texts),
    };
    let ColumnData::String(texts) = texts else { return None };
    let known = (0..texts.len()).map(|row| key(Some(texts.get(row)))).listed();
    match index {
        Some(index) => keys.extend(index.iter().map(|at| known.get(*at as usize).copied().unwrap_or_default())),
        None => keys.extend(known),
    }
    if let Some(presence) = column.presence() {
        let absent = key(None);
        keys.iter_mut().skip(1).enumerate().filter(|(row, _)| !presence.get(*row)).for_each(|(_, key)| *key = absent);
    }
    Some(keys)
}

/// Keys of a path whose columns are all numbers of one exact form, or all dates, or all booleans; otherwise
/// `None`.
fn fixed_keys(part: &SortPart, blocks: &[Block]) -> Option<Vec<u64>> {
    let found = blocks.iter().map(|block| column_at(&part.path, block)).listed_if_all();
    let found = found?;
    let mut typed: Vec<Option<Column>> = Vec::new();
    if !coefficients_if_loaded(&found, &mut typed) {
        typed = found.iter().map(|column| (*column)?.to_doubles()).collect();
    }
    let columns = found.into_iter().zip(&typed).map(|(column, typed)| typed.as_ref().or(column));
    let columns: Vec<_> = blocks.iter().map(Block::rows).zip(columns).collect();
    let columns = || columns.iter().copied();
    let mut kinds = columns().filter_map(|(_, column)| column).map(|column| column.kind());
    // An int32 is exact both as a double and as an int64; double and int64 have no common exact form of eight bytes.
    let doubles = columns().any(|(_, column)| column.is_some_and(|c| c.kind() == Some(Kind::Double)));
    let one_family = match doubles {
        true => kinds.all(|k| matches!(k, Some(Kind::Double | Kind::Int32))),
        false => {
            let first = kinds.next();
            let family = |k: Option<Kind>| match k {
                Some(Kind::Int32 | Kind::Int64) => Some(Kind::Int64),
                Some(Kind::Date | Kind::Bool) => k,
                _ => None,
            };
            first.is_none_or(|first| family(first).is_some() && kinds.all(|k| family(k) == family(first)))
        }
    };
    if !one_family {
        return None;
    }
    let mut keys = Vec::with_capacity(columns().map(|(rows, _)| rows).sum());
    for (rows, column) in columns() {
        match column {
            Some(column) => push_keys(&mut keys, column, doubles)?,
            None => keys.resize(keys.len() + rows, MISSING),
        }
    }
    // The smallest int64 or date would tie with missing rows, which is wrong.
    let missing = columns().any(|(_, column)| column.is_none_or(|c| c.presence().is_some()));
    let present = |(_, column): (usize, Option<&Column>)| column.map_or(0, Column::present_count);
    if missing && keys.iter().filter(|key| **key != MISSING).count() != columns().map(present).sum::<usize>() {
        return None;
    }
    if !part.ascending {
        keys.iter_mut().for_each(|key| *key = !*key);
    }
    Some(keys)
}

/// Columns of decimals as integers; false unless all decimals in them have one exponent.
// Loaded later.
#[inline(never)]
fn coefficients_if_loaded(columns: &[Option<&Column>], typed: &mut Vec<Option<Column>>) -> bool {
    let mut known = None;
    let coefficients = columns.iter().map(|column| {
        let Some(column) = column else { return Some(None) };
        let (cells, exponent) = column.decimals(0..column.len())?;
        let is_same = *known.get_or_insert(exponent) == exponent;
        is_same.then(|| Some(Column::new(ColumnData::I64(cells), column.presence().cloned())))
    });
    coefficients.listed_if_all().map(|all| *typed = all).is_some()
}

/// The values of a path; the inner `None` if no row has it, the outer one if it is not a column.
pub fn column_at<'a>(path: &Path, block: &'a Block) -> Option<Option<&'a Column>> {
    let Some(column) = block.column(path.first()) else { return Some(None) };
    match column.data() {
        _ if path.is_top_level() => Some(Some(column)),
        // Loaded by now: only `column::read::objects`, which is loaded later, makes such columns.
        ColumnData::Objects(objects) => match objects.reach(&path.rest().iter().map(Component::name).listed())? {
            Some(Cow::Borrowed(scalar)) => Some(Some(scalar)),
            Some(Cow::Owned(_)) => None,
            None => Some(None),
        },
        _ => None,
    }
}

/// The key of a missing value, which ties with null and sorts below numbers, dates and booleans.
const MISSING: u64 = 0;

fn push_keys(keys: &mut Vec<u64>, column: &Column, doubles: bool) -> Option<()> {
    let start = keys.len();
    match column.data() {
        ColumnData::F64(v) => sortable::push_doubles(keys, v),
        ColumnData::I32(v) if doubles => keys.extend(v.iter().map(|n| key_of_double(f64::from(*n)))),
        ColumnData::I32(v) => keys.extend(v.iter().map(|n| key_of_int(i64::from(*n)))),
        ColumnData::I64(v) | ColumnData::Date(v) => keys.extend(v.iter().map(|n| key_of_int(*n))),
        ColumnData::Bool(v) => keys.extend(v.iter().map(|b| u64::from(*b) + 1)),
        ColumnData::Dictionary(index, values) => {
            let mut inner = Vec::with_capacity(values.len());
            push_keys(&mut inner, values, doubles)?;
            keys.extend(index.iter().map(|at| inner.get(*at as usize).copied().unwrap_or(MISSING)));
        }
        ColumnData::String(_) | ColumnData::ObjectId(_) | ColumnData::Bson(_) | ColumnData::Objects(_) => return None,
    }
    if let Some(presence) = column.presence() {
        let added = keys.get_mut(start..).unwrap_or_default();
        added.iter_mut().enumerate().filter(|(row, _)| !presence.get(*row)).for_each(|(_, key)| *key = MISSING);
    }
    Some(())
}

/// Order-preserving, never `MISSING`: NaN is 1, minus infinity is far above it.
pub fn key_of_double(x: f64) -> u64 {
    sortable::double(x)
}

/// Order-preserving; `MISSING` for the smallest integer.
pub fn key_of_int(n: i64) -> u64 {
    n.cast_unsigned() ^ 1 << 63
}

/// The distinct values that rows sort by, and which of them each row has.
struct Pool {
    /// The values by their slots: type bytes and bytes. Most fields sorted by rank repeat their values.
    known: Interner,
    slots: Vec<u32>,
    scratch: Vec<u8>,
}

impl Pool {
    fn new() -> Pool {
        let mut pool = Pool { known: Interner::default(), slots: Vec::new(), scratch: Vec::new() };
        pool.add(Some(Value::NULL));
        pool
    }

    /// The slot of a value. Missing ties with null, which is in slot 0.
    fn add(&mut self, value: Option<Value<'_>>) -> u32 {
        let Some(value) = value else { return 0 };
        self.scratch.clear();
        value.append_tagged(&mut self.scratch);
        u32::try_from(self.known.add(&self.scratch).0).unwrap_or(u32::MAX)
    }

    fn push(&mut self, value: Option<Value<'_>>) {
        let slot = self.add(value);
        self.slots.push(slot);
    }

    /// Adds what the values of a column have at the path `rest`.
    fn push_column(&mut self, part: &SortPart, column: &Column, rest: &[Component]) {
        let mut scratch = Vec::new();
        let mut add = |pool: &mut Pool, column: &Column, row| {
            pool.add(sort_key(column.value(row, &mut scratch), rest, part.ascending, &part.collation))
        };
        // Few rows may have a dictionary of many.
        if let ColumnData::Dictionary(index, values) = column.data()
            && values.len() <= index.len()
        {
            let slots: Vec<u32> = (0..values.len()).map(|row| add(self, values, row)).collect();
            let slot_of = |(row, at): (usize, &u32)| match column.is_present(row) {
                true => slots.get(*at as usize).copied().unwrap_or_default(),
                false => 0,
            };
            self.slots.extend(index.iter().enumerate().map(slot_of));
            return;
        }
        for row in 0..column.len() {
            let slot = add(self, column, row);
            self.slots.push(slot);
        }
    }

    fn value(&self, slot: u32) -> Value<'_> {
        Value::tagged_checked(self.known.key(slot as usize))
    }

    fn into_ranks(self, part: &SortPart) -> Vec<u64> {
        let SortPart { ascending, collation, .. } = part;
        let slots = 0..u32::try_from(self.known.count()).unwrap_or(u32::MAX);
        let mut sorted: Vec<(u64, u32)> = slots.map(|slot| (prefix(self.value(slot), collation), slot)).collect();
        sort_rows(&mut sorted);
        for same in sorted.chunk_by_mut(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
            sort_by(same, |a, b| collation.compare(self.value(a.1), self.value(b.1)));
        }
        let mut ranks = vec![0; sorted.len()];
        let mut rank = 0_u64;
        let mut last: Option<(u64, u32)> = None;
        for entry in sorted {
            if last.is_some_and(|l| l.0 != entry.0 || collation.compare(self.value(l.1), self.value(entry.1)).is_ne()) {
                rank += 1;
            }
            last = Some(entry);
            if let Some(slot) = ranks.get_mut(entry.1 as usize) {
                *slot = if *ascending { rank } else { !rank };
            }
        }
        self.slots.iter().map(|slot| ranks.get(*slot as usize).copied().unwrap_or_default()).collect()
    }
}

/// The class of a value and, if bytes compare, the first bytes of a string, or the nearest double of a number: most
/// comparisons are decided by this.
fn prefix(value: Value<'_>, collation: &Collation) -> u64 {
    let number = Number::of(value).map(|number| key_of_double(number.near_double()) >> 8);
    let mut bytes = number.unwrap_or_default().to_be_bytes();
    let text = value.as_text().filter(|_| value.kind() != Kind::Code && collation.is_simple()).unwrap_or_default();
    let text = if value.kind() == Kind::ObjectId { value.bytes() } else { text.as_bytes() };
    bytes.iter_mut().skip(1).zip(text).for_each(|(to, from)| *to = *from);
    // The lowest class is -1.
    bytes[0] = u8::try_from(i16::from(canonical_class(value.kind())) + 1).unwrap_or(u8::MAX);
    u64::from_be_bytes(bytes)
}

/// Adds one value per row of `block` to each pool.
fn fill_pools(pools: &mut [Pool], parts: &[&SortPart], block: &Block) -> Result<()> {
    let found = parts.iter().map(|part| match column_at(&part.path, block) {
        Some(column) => (column, &[][..]),
        None => (block.column(part.path.first()), part.path.rest()),
    });
    let columns: Vec<(Option<&Column>, &[Component])> = found.collect();
    if columns.iter().filter(|(column, _)| column.is_some_and(may_hold_arrays)).count() < 2 {
        for ((pool, part), (column, rest)) in pools.iter_mut().zip(parts).zip(&columns) {
            match column {
                Some(column) => pool.push_column(part, column, rest),
                None => pool.slots.resize(pool.slots.len() + block.rows(), 0),
            }
        }
        return Ok(());
    }
    let columns: Vec<Option<&Column>> = parts.iter().map(|part| block.column(part.path.first())).listed();
    let mut scratch: Vec<Vec<u8>> = vec![Vec::new(); parts.len()];
    for row in 0..block.rows() {
        let values: Vec<_> =
            columns.iter().zip(&mut scratch).map(|(c, room)| c.and_then(|c| c.value(row, room))).collect();
        for (pool, key) in pools.iter_mut().zip(least_keys(parts, &values)?) {
            pool.push(key);
        }
    }
    Ok(())
}

fn may_hold_arrays(column: &Column) -> bool {
    column.kind().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::OwnedValue;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = OwnedValue> {
        let of = |kind, bytes: &[u8]| Value::parse(kind, bytes).unwrap().to_owned();
        let decimal = |text: String| text.parse::<bson::Decimal128>().unwrap().bytes();
        prop_oneof![
            2 => any::<f64>().prop_map(OwnedValue::double),
            1 => prop::sample::select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, 0.1, 5e-324]).prop_map(OwnedValue::double),
            2 => any::<i64>().prop_map(OwnedValue::int64),
            2 => (-3..3_i64).prop_map(|n| OwnedValue::int64((1 << 53) + n)),
            2 => (-9..9_i32).prop_map(|n| OwnedValue::double(f64::from(n) / 10.0)),
            1 => any::<i32>().prop_map(OwnedValue::int32),
            2 => (-9..9_i64, -3..3_i32).prop_map(move |(n, e)| of(Kind::Decimal128, &decimal(format!("{n}E{e}")))),
            2 => (any::<i64>(), -400..400_i32).prop_map(move |(n, e)| of(Kind::Decimal128, &decimal(format!("{n}E{e}")))),
            1 => any::<[u8; 16]>().prop_map(move |bytes| of(Kind::Decimal128, &bytes)),
            1 => any::<[u8; 12]>().prop_map(move |id| of(Kind::ObjectId, &id)),
        ]
    }

    proptest! {
        #[test]
        fn prefixes_of_numbers_and_ids_have_the_order_of_the_values(a in value(), b in value()) {
            let collation = Collation::default();
            let order = prefix(a.view(), &collation).cmp(&prefix(b.view(), &collation));
            prop_assert!(order.is_eq() || order == collation.compare(a.view(), b.view()), "{a:?} {b:?}");
        }
    }
}
