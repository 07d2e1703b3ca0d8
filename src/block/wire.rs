//! The binary form of a block. `docs/internals/block-format.md` is its specification.

use super::bitmap::Bitmap;
use super::column::{Column, ColumnData, VarData};
use super::nested::nested_if_loaded;
#[cfg(not(target_arch = "wasm32"))]
use super::nested::{arrays_of, objects_of};
use super::table::Block;
use crate::error::{Error, Result};
use crate::limits::{BLOCK_COLUMNS_MAX, BLOCK_ROWS_MAX, JS_DATE_MS_MAX};
use crate::value::{DisplayDouble, Interner, Value};

const MAGIC: &[u8; 4] = b"TPB1";
const HEADER_LEN: usize = 16;
const ENTRY_LEN: usize = 32;
const FLAG_DICTIONARY: u32 = 1;

const TYPE_F64: u32 = 1;
const TYPE_I32: u32 = 2;
const TYPE_I64: u32 = 3;
const TYPE_DATE: u32 = 4;
const TYPE_BOOL: u32 = 5;
const TYPE_STRING: u32 = 6;
const TYPE_OBJECT_ID: u32 = 7;
const TYPE_BSON: u32 = 8;
const TYPE_DATE_F64: u32 = 9;
const TYPE_OBJECTS: u32 = 10;
const TYPE_ARRAYS: u32 = 11;
/// Of what is nested more deeply, the values stay BSON: each level is copied into the one above it.
const LEVELS_MAX: usize = 4;

fn malformed(what: impl std::fmt::Display) -> Error {
    Error::bad_value(format!("Malformed block: {what}"))
}

fn u32_of(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The block's bytes.
pub fn encode(block: &Block) -> Vec<u8> {
    encode_within(block, LEVELS_MAX)
}

/// As `encode`; objects and arrays of so many levels become columns.
fn encode_within(block: &Block, levels: usize) -> Vec<u8> {
    let columns = block.columns();
    let mut out = Vec::with_capacity(HEADER_LEN + columns.len() * 48 + block.size_bytes());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&u32_of(block.rows()).to_le_bytes());
    out.extend_from_slice(&u32_of(columns.len()).to_le_bytes());
    out.resize(HEADER_LEN + columns.len() * ENTRY_LEN, 0);
    for (at, (name, column)) in columns.iter().enumerate() {
        pad8(&mut out);
        let name_at = out.len();
        out.extend_from_slice(name.as_bytes());
        let presence_at = column.presence().map_or(0, |p| section(&mut out, &p.to_bytes()).0);
        let (type_and_flags, data, aux) = encode_data(&mut out, column, levels);
        let entry = [u32_of(name_at), u32_of(name.len()), type_and_flags, presence_at, data.0, data.1, aux.0, aux.1];
        let start = HEADER_LEN + at * ENTRY_LEN;
        if let Some(slot) = out.get_mut(start..start + ENTRY_LEN) {
            slot.copy_from_slice(bytemuck::cast_slice(&entry.map(u32::to_le)));
        }
    }
    pad8(&mut out);
    let len = u32_of(out.len());
    if let Some(slot) = out.get_mut(12..16) {
        slot.copy_from_slice(&len.to_le_bytes());
    }
    out
}

fn pad8(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(8), 0);
}

/// Appends a section at the next multiple of eight; returns its offset and length.
fn section(out: &mut Vec<u8>, bytes: &[u8]) -> (u32, u32) {
    pad8(out);
    let at = out.len();
    out.extend_from_slice(bytes);
    (u32_of(at), u32_of(bytes.len()))
}

type SectionSpan = (u32, u32);

fn encode_data(out: &mut Vec<u8>, column: &Column, levels: usize) -> (u32, SectionSpan, SectionSpan) {
    const NO_AUX: SectionSpan = (0, 0);
    let var = |out: &mut Vec<u8>, v: &VarData| {
        let offsets = section(out, bytemuck::cast_slice(&v.offsets));
        (offsets, section(out, &v.bytes))
    };
    match column.data() {
        ColumnData::F64(v) => (TYPE_F64, section(out, bytemuck::cast_slice(v)), NO_AUX),
        ColumnData::I32(v) => (TYPE_I32, section(out, bytemuck::cast_slice(v)), NO_AUX),
        ColumnData::I64(v) => (TYPE_I64, section(out, bytemuck::cast_slice(v)), NO_AUX),
        ColumnData::Date(v) if v.iter().all(|ms| (-JS_DATE_MS_MAX..=JS_DATE_MS_MAX).contains(ms)) => {
            // Exact: the range lies within 2^53.
            #[allow(clippy::cast_precision_loss)]
            let ms: Vec<f64> = v.iter().map(|ms| *ms as f64).collect();
            (TYPE_DATE_F64, section(out, bytemuck::cast_slice(&ms)), NO_AUX)
        }
        ColumnData::Date(v) => (TYPE_DATE, section(out, bytemuck::cast_slice(v)), NO_AUX),
        ColumnData::Bool(v) => (TYPE_BOOL, section(out, v), NO_AUX),
        ColumnData::ObjectId(v) => (TYPE_OBJECT_ID, section(out, bytemuck::cast_slice(v)), NO_AUX),
        ColumnData::String(v) => {
            let (offsets, bytes) = var(out, v);
            (TYPE_STRING, offsets, bytes)
        }
        ColumnData::Bson(_) | ColumnData::Objects(_) => {
            let mut nested = None;
            if levels > 0
                && nested_if_loaded(column, &mut nested)
                && let Some((ends, block)) = nested
            {
                let data = ends.as_deref().map_or(NO_AUX, |ends| section(out, bytemuck::cast_slice(ends)));
                let kind = if ends.is_some() { TYPE_ARRAYS } else { TYPE_OBJECTS };
                return (kind, data, section(out, &encode_within(&block, levels - 1)));
            }
            let values = column.clone().into_values();
            let ColumnData::Bson(v) = values.data() else { return encode_data(out, &values, 0) };
            let (offsets, bytes) = var(out, v);
            (TYPE_BSON, offsets, bytes)
        }
        ColumnData::Dictionary(index, values) => {
            let mut inner = Block::new(values.len());
            inner.set_column("", (**values).clone().into_values());
            // Each row needs an object of its own.
            let inner = encode_within(&inner, 0);
            // The inner block's only directory entry holds the type of the dictionary.
            let kind = read_u32(&inner, HEADER_LEN + 8).unwrap_or(TYPE_BSON) & 0xFF;
            let data = section(out, bytemuck::cast_slice(index));
            (kind | FLAG_DICTIONARY << 8, data, section(out, &inner))
        }
    }
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

/// Reads a block from bytes that may be damaged or hostile (I2).
///
/// Errors: `BadValue` naming the column and the rule that the bytes break.
pub fn decode(bytes: &[u8]) -> Result<Block> {
    decode_at(bytes, true)
}

fn decode_at(bytes: &[u8], dictionary_allowed: bool) -> Result<Block> {
    if bytes.get(..4) != Some(MAGIC) {
        return Err(malformed("it does not start with TPB1"));
    }
    let field = |at| read_u32(bytes, at).map(|n| n as usize).ok_or_else(|| malformed("truncated header"));
    let (rows, count, len) = (field(4)?, field(8)?, field(12)?);
    if rows > BLOCK_ROWS_MAX || count > BLOCK_COLUMNS_MAX {
        return Err(malformed(format_args!("{rows} rows and {count} columns exceed the limits")));
    }
    if len != bytes.len() || HEADER_LEN + count * ENTRY_LEN > len {
        return Err(malformed(format_args!("its length is {len} bytes, but there are {}", bytes.len())));
    }
    let mut block = Block::new(rows);
    let mut names = Interner::default();
    for at in 0..count {
        let mut entry = [0_usize; 8];
        for (i, slot) in entry.iter_mut().enumerate() {
            *slot = field(HEADER_LEN + at * ENTRY_LEN + 4 * i)?;
        }
        let name = bytes
            .get(entry[0]..entry[0].saturating_add(entry[1]))
            .and_then(|b| std::str::from_utf8(b).ok())
            .filter(|name| !name.contains('\0'))
            .ok_or_else(|| malformed(format_args!("column {at} has no readable name")))?;
        if !names.add(name.as_bytes()).1 {
            return Err(malformed(format_args!("column '{name}' occurs twice")));
        }
        let column = decode_column(bytes, rows, &entry, dictionary_allowed)
            .map_err(|what| malformed(format_args!("column '{name}': {what}")))?;
        block.push_new_column(name, column);
    }
    Ok(block)
}

fn decode_column(bytes: &[u8], rows: usize, entry: &[usize; 8], dictionary_allowed: bool) -> Result<Column, String> {
    let [_, _, type_and_flags, presence_at, data_at, data_len, aux_at, aux_len] = *entry;
    let cut = |at: usize, len: usize| -> Result<&[u8], String> {
        if !at.is_multiple_of(8) {
            return Err(format!("a section starts at {at}, which is not a multiple of 8"));
        }
        bytes.get(at..at.saturating_add(len)).ok_or_else(|| "a section lies outside the block".to_owned())
    };
    let presence = match presence_at {
        0 => None,
        at => Some(
            Bitmap::from_bytes(cut(at, rows.div_ceil(8))?, rows)
                .ok_or_else(|| "the presence bitmap has bits after the last row".to_owned())?,
        ),
    };
    let (kind, flags) = (u32_of(type_and_flags & 0xFF), u32_of(type_and_flags >> 8));
    let (data, aux) = (cut(data_at, data_len)?, cut(aux_at, aux_len)?);
    let width = |size: usize| -> Result<(), String> {
        if data.len() == rows * size { Ok(()) } else { Err(format!("{} bytes of data for {rows} rows", data.len())) }
    };
    let is_present = |row: usize| presence.as_ref().is_none_or(|p| p.get(row));
    let decoded = match (kind, flags) {
        (_, FLAG_DICTIONARY) if dictionary_allowed => {
            width(4)?;
            let values = decode_dictionary(aux, kind)?;
            let mut index: Vec<u32> = bytemuck::pod_collect_to_vec(data);
            for (row, slot) in index.iter_mut().enumerate() {
                if *slot as usize >= values.len() {
                    if is_present(row) {
                        return Err(format!("row {row} has no entry in the dictionary"));
                    }
                    *slot = 0;
                }
            }
            if values.is_empty() {
                // Nothing is present, so no value can be pointed at.
                return Ok(absent_column(rows));
            }
            ColumnData::Dictionary(index, Box::new(values))
        }
        (_, flags) if flags != 0 => return Err(format!("unknown flags {flags}")),
        (TYPE_F64, _) => {
            width(8)?;
            ColumnData::F64(bytemuck::pod_collect_to_vec(data))
        }
        (TYPE_I32, _) => {
            width(4)?;
            ColumnData::I32(bytemuck::pod_collect_to_vec(data))
        }
        (TYPE_I64, _) => {
            width(8)?;
            ColumnData::I64(bytemuck::pod_collect_to_vec(data))
        }
        (TYPE_DATE, _) => {
            width(8)?;
            ColumnData::Date(bytemuck::pod_collect_to_vec(data))
        }
        // JavaScript sends none. Tests, which read what the module has written, do not run in WebAssembly.
        #[cfg(not(target_arch = "wasm32"))]
        (TYPE_OBJECTS, _) => return objects_of(&decode(aux).map_err(Error::into_message)?, rows, &is_present),
        #[cfg(not(target_arch = "wasm32"))]
        (TYPE_ARRAYS, _) => {
            width(4)?;
            let elements = decode(aux).map_err(Error::into_message)?;
            return arrays_of(&elements, &bytemuck::pod_collect_to_vec::<u8, u32>(data), &is_present);
        }
        (TYPE_DATE_F64, _) => {
            width(8)?;
            ColumnData::Date(dates_of(&bytemuck::pod_collect_to_vec::<u8, f64>(data), is_present)?)
        }
        (TYPE_BOOL, _) => {
            width(1)?;
            if let Some(row) = data.iter().position(|b| *b > 1) {
                return Err(format!("row {row} is neither 0 nor 1"));
            }
            ColumnData::Bool(data.to_vec())
        }
        (TYPE_OBJECT_ID, _) => {
            width(12)?;
            ColumnData::ObjectId(bytemuck::pod_collect_to_vec(data))
        }
        (TYPE_STRING, _) => {
            let v = var_data(data, aux, rows)?;
            let text = std::str::from_utf8(aux).map_err(|_| "text is not UTF-8".to_owned())?;
            if let Some(row) = v.offsets.iter().position(|o| !text.is_char_boundary(*o as usize)) {
                return Err(format!("row {row} starts inside a character"));
            }
            ColumnData::String(v)
        }
        (TYPE_BSON, _) => {
            let v = var_data(data, aux, rows)?;
            for row in 0..rows {
                match (v.get(row), is_present(row)) {
                    ([], false) => {}
                    (_, false) => return Err(format!("row {row} is absent but has bytes")),
                    (tagged, true) => {
                        Value::parse_tagged(tagged).map_err(|e| format!("row {row}: {}", e.message))?;
                    }
                }
            }
            ColumnData::Bson(v)
        }
        _ => return Err(format!("unknown type {kind}")),
    };
    Ok(Column::new(decoded, presence))
}

fn absent_column(rows: usize) -> Column {
    let mut builder = super::builder::ColumnBuilder::new();
    builder.push_absent(rows);
    builder.finish()
}

fn decode_dictionary(aux: &[u8], kind: u32) -> Result<Column, String> {
    let inner = decode_at(aux, false).map_err(Error::into_message)?;
    let date = |t| t == TYPE_DATE || t == TYPE_DATE_F64;
    let inner_kind = read_u32(aux, HEADER_LEN + 8).unwrap_or_default();
    match inner.columns() {
        [(name, column)] if name.is_empty() && column.presence().is_none() => {
            if inner_kind == kind || (date(inner_kind) && date(kind)) {
                Ok(column.clone())
            } else {
                Err(format!("a dictionary of type {inner_kind} in a column of type {kind}"))
            }
        }
        _ => Err("a dictionary must be one nameless column without absent cells".to_owned()),
    }
}

fn dates_of(ms: &[f64], is_present: impl Fn(usize) -> bool) -> Result<Vec<i64>, String> {
    // As a double, exactly: 8.64e15 is below 2^53.
    #[allow(clippy::cast_precision_loss)]
    const LIMIT: f64 = JS_DATE_MS_MAX as f64;
    let mut out = Vec::with_capacity(ms.len());
    for (row, x) in ms.iter().enumerate() {
        if x.abs() <= LIMIT {
            // Within range. A fraction is cut off, as in `new Date`.
            #[allow(clippy::cast_possible_truncation)]
            out.push(*x as i64);
        } else if is_present(row) {
            return Err(format!("row {row} is not a valid date ({} milliseconds)", DisplayDouble(*x)));
        } else {
            out.push(0);
        }
    }
    Ok(out)
}

fn var_data(data: &[u8], aux: &[u8], rows: usize) -> Result<VarData, String> {
    if data.len() != (rows + 1) * 4 {
        return Err(format!("{} bytes of offsets for {rows} rows", data.len()));
    }
    let offsets: Vec<u32> = bytemuck::pod_collect_to_vec(data);
    let ends = (offsets.first().copied(), offsets.last().map(|o| *o as usize));
    if ends != (Some(0), Some(aux.len())) || !offsets.is_sorted() {
        return Err("offsets must ascend from 0 to the end of the data".to_owned());
    }
    Ok(VarData { offsets, bytes: aux.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{ColumnBuilder, pivot_docs};
    use crate::value::{Doc, OwnedValue};
    use proptest::prelude::*;

    fn sample() -> Block {
        let docs: Vec<_> = (0..9)
            .map(|i| {
                let mut d = bson::rawdoc! {
                    "t": bson::DateTime::from_millis(1_700_000_000_000 + i64::from(i)), "x": f64::from(i) / 3.0, "n": i,
                    "l": i64::from(i) << 40, "b": i % 2 == 0, "s": "é".repeat(i as usize),
                    "id": bson::oid::ObjectId::from_bytes([i as u8; 12]), "any": { "k": [i] },
                };
                if i % 3 == 0 {
                    d.append(bson::cstr!("sparse"), i);
                }
                d
            })
            .collect();
        let mut block = pivot_docs(docs.iter().map(|d| Doc::parse(d.as_bytes()).unwrap())).unwrap();
        block.set_column("m", Column::constant(OwnedValue::string("station 7").view(), 9));
        let mut far = ColumnBuilder::new();
        (0..9).for_each(|i| far.push(OwnedValue::date(i64::MAX - i).view()));
        block.set_column("far", far.finish());
        block
    }

    #[test]
    fn every_type_survives_the_round_trip() {
        let block = sample();
        assert_eq!(decode(&encode(&block)).unwrap(), block);
        assert_eq!(decode(&encode(&Block::new(5))).unwrap().rows(), 5);
    }

    fn of_objects(fields: Vec<(&str, Column)>) -> Block {
        let objects = Column::of_fields(fields).unwrap();
        let mut block = Block::new(objects.len());
        block.set_column("o", objects);
        block
    }

    #[test]
    fn objects_go_out_as_a_block_of_their_fields_if_most_have_most_of_them() {
        let numbers = || Column::new(ColumnData::I32(vec![1, 2, 3]), None);
        let some = |rows: &[usize]| {
            let present = Bitmap::from_fn(3, |row| rows.contains(&row));
            Column::new(ColumnData::I32(vec![4, 5, 6]), Some(present))
        };
        let inner = Column::of_fields(vec![("x", numbers()), ("y", some(&[1]))]).unwrap();
        let block = of_objects(vec![("n", numbers()), ("in", inner), ("m", some(&[0, 2]))]);
        let bytes = encode(&block);
        let word = |at: usize| read_u32(&bytes, HEADER_LEN + 4 * at).unwrap() as usize;
        assert_eq!((word(2), word(4), word(5)), (TYPE_OBJECTS as usize, 0, 0));
        let values = |block: &Block| block.column("o").cloned().unwrap().into_values();
        assert_eq!(decode(&bytes).unwrap().column("o"), Some(&values(&block)));
        let fields = decode(&bytes[word(6)..word(6) + word(7)]).unwrap();
        assert_eq!(fields.column("n"), Some(&numbers()));
        assert_eq!(fields.column("m").and_then(Column::presence), some(&[0, 2]).presence());
        for other in [
            vec![("n", numbers()), ("a", some(&[0])), ("b", some(&[])), ("c", some(&[])), ("d", some(&[2]))],
            vec![("$id", numbers())],
        ] {
            let block = of_objects(other);
            let bytes = encode(&block);
            assert_eq!(read_u32(&bytes, HEADER_LEN + 8), Some(TYPE_BSON));
            assert_eq!(decode(&bytes).unwrap().column("o"), Some(&values(&block)));
        }
    }

    #[test]
    fn every_section_begins_at_a_multiple_of_eight() {
        let bytes = encode(&sample());
        let columns = read_u32(&bytes, 8).unwrap() as usize;
        for at in 0..columns {
            for field in [0, 3, 4, 6] {
                assert_eq!(read_u32(&bytes, HEADER_LEN + at * ENTRY_LEN + field * 4).unwrap() % 8, 0);
            }
        }
        assert_eq!(bytes.len() % 8, 0);
    }

    #[test]
    fn a_truncated_block_is_refused() {
        let bytes = encode(&sample());
        for len in 0..bytes.len() {
            assert_eq!(decode(&bytes[..len]).unwrap_err().code, crate::error::ErrorCode::BadValue, "cut at {len}");
        }
    }

    #[test]
    fn a_time_that_is_not_a_date_is_refused_with_its_row_number() {
        let mut block = Block::new(2);
        block.set_column("t", Column::new(ColumnData::Date(vec![0, 1]), None));
        let bytes = encode(&block);
        for bad in [f64::NAN, f64::INFINITY, 8.64e15 + 2.0] {
            let mut damaged = bytes.clone();
            let at = damaged.len() - 8;
            damaged[at..].copy_from_slice(&bad.to_le_bytes());
            assert!(decode(&damaged).unwrap_err().message.contains("row 1"));
        }
        let mut fraction = bytes.clone();
        let at = fraction.len() - 8;
        fraction[at..].copy_from_slice(&(-1.9_f64).to_le_bytes());
        assert_eq!(decode(&fraction).unwrap().column("t").unwrap().data(), &ColumnData::Date(vec![0, -1]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20 * ProptestConfig::default().cases))]
        #[test]
        fn damaged_bytes_are_refused_or_read_as_a_valid_block(
            hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), words in any::<bool>(),
        ) {
            let mut bytes = encode(&sample());
            for (at, byte) in &hits {
                if words {
                    // Damages whole directory words, so that some damage gets past the first checks.
                    let at = 4 * at.index(bytes.len() / 8);
                    bytes[at..at + 4].copy_from_slice(&u32::from(*byte).to_le_bytes());
                } else {
                    let at = at.index(bytes.len());
                    bytes[at] = *byte;
                }
            }
            if let Ok(block) = decode(&bytes) {
                // Accepted bytes must be usable: every cell is readable, and the block encodes again.
                prop_assert_eq!(decode(&encode(&block)).map(|b| b.rows()), Ok(block.rows()));
                let mut scratch = Vec::new();
                for (_, column) in block.columns() {
                    prop_assert_eq!(column.len(), block.rows());
                    for row in 0..block.rows() {
                        let _ = column.value(row, &mut scratch).map(|v| format!("{v:?}"));
                    }
                }
            }
        }
    }
}
