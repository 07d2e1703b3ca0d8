//! Encodes and decodes one column repeatedly inside the module, so that JavaScript times only the codec.

use timepail::block::{Column, ColumnData};
use timepail::column;
use wasm_bindgen::prelude::*;

/// Rows of one column: as many as a full bucket has.
const ROWS: usize = 1000;

fn random(state: &mut u32) -> f64 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    f64::from(*state) / 4_294_967_296.0
}

fn cells(name: &str) -> Option<ColumnData> {
    let mut state = 7;
    let mut next = || random(&mut state);
    let mut walk = 20.0;
    let mut step = |width: f64, scale: f64| {
        walk = ((walk + (next() - 0.5) * width) * scale).round() / scale;
        walk
    };
    let start = 1_700_000_000_000_i64;
    let rows = 0..ROWS as i64;
    Some(match name {
        "constant doubles" => ColumnData::F64(vec![21.5; ROWS]),
        "two-decimal walk, ±0.05" => ColumnData::F64(rows.map(|_| step(0.1, 100.0)).collect()),
        "two-decimal walk, ±0.5" => ColumnData::F64(rows.map(|_| step(1.0, 100.0)).collect()),
        "one-decimal walk, ±0.2" => ColumnData::F64(rows.map(|_| step(0.4, 10.0)).collect()),
        "random mantissas" => ColumnData::F64(rows.map(|_| random(&mut state)).collect()),
        "dates, 1 s apart" => ColumnData::Date(rows.map(|row| start + row * 1000).collect()),
        "dates, 1 s ± 5 ms" => ColumnData::Date(rows.map(|row| start + row * 1000 + (next() * 11.0) as i64 - 5).collect()),
        "int64 counter" => ColumnData::I64(rows.collect()),
        "int32 below 100" => ColumnData::I32(rows.map(|_| (next() * 100.0) as i32).collect()),
        "bool, 1 % flips" => {
            let mut on = 0;
            ColumnData::Bool(rows.map(|_| { on ^= u8::from(next() < 0.01); on }).collect())
        }
        _ => return None,
    })
}

/// A column, compressed and uncompressed.
#[wasm_bindgen]
pub struct Case {
    column: Column,
    bytes: Vec<u8>,
}

#[wasm_bindgen]
impl Case {
    /// The column called `name`; throws if there is none.
    #[wasm_bindgen(constructor)]
    pub fn new(name: &str) -> Result<Case, JsError> {
        let cells = cells(name).ok_or_else(|| JsError::new("no such column"))?;
        let column = Column::new(cells, None);
        let bytes = column::encode(&column);
        let back = column::decode(&bytes, ROWS).map_err(|error| JsError::new(&error.to_string()))?;
        if back != column {
            return Err(JsError::new("the column came back changed"));
        }
        Ok(Case { column, bytes })
    }

    /// Bytes of the compressed column.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Encodes `times` times; returns a number that depends on every result.
    pub fn encode(&self, times: usize) -> usize {
        (0..times).map(|_| column::encode(std::hint::black_box(&self.column)).len()).sum()
    }

    /// Decodes `times` times.
    pub fn decode(&self, times: usize) -> usize {
        let once = || column::decode(std::hint::black_box(&self.bytes), ROWS).map_or(0, |column| column.len());
        (0..times).map(|_| once()).sum()
    }

    /// Copies the uncompressed cells `times` times, which is the upper bound of any codec.
    pub fn copy(&self, times: usize) -> usize {
        (0..times).map(|_| std::hint::black_box(&self.column).clone().len()).sum()
    }
}
