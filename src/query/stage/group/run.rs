//! A `$group` at work: rows of equal keys become one.
//!
//! Rule: mongodb/mongo src/mongo/db/exec/agg/group_base_stage.cpp. Keys are computed as columns; rows that follow each other with the
//! same cells are a run, for which the group is looked up once, and which goes to the accumulators as a range of their columns.

use std::ops::Range;

use super::spec::{GroupSpec, Key};
use crate::block::{Block, Column, ColumnBuilder, ColumnData};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::query::exec::{Flow, KnownValues};
use crate::query::stage::accumulator::{Accumulation, Accumulator, Times};
use crate::query::stage::running::Stage;
use crate::value::{DocWriter, Kind, OwnedValue, Value, append_key, append_missing_key};

/// Of fewer rows groups are not given before the end: each time takes as long as some rows.
const GIVEN_ROWS_MIN: usize = 1024;

/// The weights of rows as numbers of that type, which are added up in place of ones.
fn ones(weights: &[u32], kind: Kind) -> Column {
    let data = match kind {
        Kind::Double => ColumnData::F64(weights.iter().map(|weight| f64::from(*weight)).collect()),
        Kind::Int64 => ColumnData::I64(weights.iter().map(|weight| i64::from(*weight)).collect()),
        _ => ColumnData::I32(weights.iter().map(|weight| i32::try_from(*weight).unwrap_or(i32::MAX)).collect()),
    };
    Column::new(data, None)
}

/// A `$group` at work.
pub struct Group {
    spec: GroupSpec,
    /// The ids, by the keys of their parts.
    groups: KnownValues,
    /// Where the first row of each stands, where rows come out of their order: its id is shown.
    places: Vec<i64>,
    accumulators: Vec<Box<dyn Accumulator>>,
    /// What ids take; accumulators know of themselves.
    size_bytes: usize,
    /// Of the last row, the parts of the key that come in order.
    last: Vec<u8>,
    /// The rows of groups that were not given, where keys come in order.
    rows: usize,
    made: Vec<Block>,
}

impl Group {
    pub fn new(spec: GroupSpec) -> Group {
        let accumulators = spec.fields.iter().map(Accumulation::start).collect();
        let groups = KnownValues::new(spec.collation.clone());
        Group {
            spec,
            groups,
            places: Vec::new(),
            accumulators,
            size_bytes: 0,
            last: Vec::new(),
            rows: 0,
            made: Vec::new(),
        }
    }

    /// Adds rows whose keys are known.
    ///
    /// Errors: those of accumulators and of their inputs, and 292.
    pub fn add(&mut self, rows: &Block, keys: &[Column]) -> Result<()> {
        let input = |field: &Accumulation| match (rows.weights(), field.counts_as()) {
            (Some(weights), Some(kind)) => Ok(ones(weights, kind)),
            _ => field.input.column(rows),
        };
        let inputs = self.spec.fields.iter().map(input).collect::<Result<Vec<_>>>()?;
        let sorting = self.spec.unsorted_by.clone();
        let times = sorting.as_ref().and_then(|(name, ascending)| match rows.column(name)?.data() {
            ColumnData::Date(ms) => Some(Times { ms, ascending: *ascending }),
            _ => None,
        });
        if sorting.is_some() && times.is_none() && rows.rows() > 0 {
            return Err(Error::internal("Rows that were not sorted have no date column for the time field"));
        }
        let mut scratch = vec![Vec::new(); keys.len()];
        let mut start = 0;
        while start < rows.rows() {
            let run = start..keys.iter().map(|key| run_end(key, start)).min().unwrap_or(rows.rows());
            if !self.spec.in_order.is_empty() {
                let mut cells = Vec::new();
                for key in self.spec.in_order.iter().filter_map(|place| keys.get(*place)) {
                    append_key(&mut cells, key.value(start, &mut Vec::new()).unwrap_or(Value::NULL));
                }
                if cells != self.last {
                    if self.rows >= GIVEN_ROWS_MIN {
                        self.give();
                    }
                    self.last = cells;
                }
                self.rows += run.len();
            }
            let place = times.as_ref().and_then(|times| run.clone().map(|row| times.place(row)).min());
            let group = self.group_of(keys, start, place, &mut scratch)?;
            for (accumulator, input) in self.accumulators.iter_mut().zip(&inputs) {
                accumulator.add(group, input, run.clone(), times.as_ref())?;
            }
            start = run.end;
        }
        let size_bytes = self.accumulators.iter().map(|a| a.size_bytes()).sum::<usize>() + self.size_bytes;
        if size_bytes > STAGE_SIZE_BYTES_MAX {
            return Err(Error::new(
                ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
                "Exceeded memory limit for $group, and there is no disk to spill to",
            ));
        }
        Ok(())
    }

    /// Makes rows of all groups, which are done, and forgets them.
    fn give(&mut self) {
        let groups = std::mem::replace(&mut self.groups, KnownValues::new(self.spec.collation.clone()));
        let accumulators = self.spec.fields.iter().map(Accumulation::start).collect();
        let accumulators = std::mem::replace(&mut self.accumulators, accumulators);
        (self.size_bytes, self.rows) = (0, 0);
        self.places.clear();
        let ids = groups.values();
        if ids.is_empty() {
            return;
        }
        let mut block = Block::new(ids.len());
        let mut column = ColumnBuilder::with_capacity(ids.len());
        ids.iter().for_each(|id| column.push(id.view()));
        block.set_column("_id", column.finish());
        for (field, accumulator) in self.spec.fields.iter().zip(&accumulators) {
            let mut column = ColumnBuilder::with_capacity(ids.len());
            (0..ids.len()).for_each(|group| column.push(accumulator.value(group).view()));
            block.set_column(&field.name, column.finish());
        }
        self.made.push(block);
    }

    /// The group of a row, and where that stands if rows come out of their order.
    ///
    /// Errors: an `n` that is no positive integer.
    fn group_of(&mut self, keys: &[Column], row: usize, place: Option<i64>, scratch: &mut [Vec<u8>]) -> Result<usize> {
        let mut bytes = Vec::new();
        let values: Vec<Option<Value<'_>>> =
            keys.iter().zip(scratch).map(|(key, scratch)| key.value(row, scratch)).collect();
        for value in &values {
            match value {
                Some(value) => append_key(&mut bytes, *value),
                // As the only part of a key nothing is null; beside others it is left out.
                None if values.len() == 1 => append_key(&mut bytes, Value::NULL),
                None => append_missing_key(&mut bytes),
            }
        }
        let (group, is_new) = self.groups.add(&bytes, &mut || self.spec.key.id(&values));
        if is_new {
            self.size_bytes += 2 * bytes.len() + 64;
            let id = self.groups.values().get(group).and_then(|id| id.view().as_doc());
            for (field, accumulator) in self.spec.fields.iter().zip(&mut self.accumulators) {
                accumulator.grow(field.count(id)?);
            }
            self.places.extend(place);
        } else if let (Some(place), Some(first)) = (place, self.places.get_mut(group))
            && place < *first
        {
            *first = place;
            if !self.groups.values().get(group).is_some_and(|id| self.spec.key.shows(id.view(), &values)) {
                self.groups.replace(group, self.spec.key.id(&values));
            }
        }
        Ok(group)
    }
}

impl Key {
    fn id(&self, values: &[Option<Value<'_>>]) -> OwnedValue {
        match (self, values) {
            (Key::Object(fields), _) => {
                let mut writer = DocWriter::new();
                for ((name, _), value) in fields.iter().zip(values) {
                    match value {
                        Some(value) => {
                            writer.value(name, *value);
                        }
                        // An object of one field has it always.
                        None if fields.len() == 1 => {
                            writer.value(name, Value::NULL);
                        }
                        None => {}
                    }
                }
                OwnedValue::doc(writer.finish().view())
            }
            (Key::One(_), [Some(value)]) => Value::to_owned(*value),
            (Key::One(_), _) => OwnedValue::null(),
        }
    }

    /// True where an id that compares equal to that of these values is the same to the byte.
    fn shows(&self, id: Value<'_>, values: &[Option<Value<'_>>]) -> bool {
        let is_same = |(a, b): (Value<'_>, &Value<'_>)| a.kind() == b.kind() && a.bytes() == b.bytes();
        let mut values = values.iter().flatten();
        match (self, id.as_doc()) {
            (Key::Object(_), Some(id)) => id.iter().map(|(_, part)| part).zip(values).all(is_same),
            _ => values.next().is_none_or(|value| is_same((id, value))),
        }
    }
}

impl Stage for Group {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        let keys = self.spec.key.parts().into_iter().map(|key| key.column(&rows)).collect::<Result<Vec<_>>>()?;
        self.add(&rows, &keys)?;
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        self.give();
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Block>> {
        let made = std::mem::take(&mut self.made);
        Ok(if made.is_empty() { None } else { Some(Block::concat(made)) })
    }
}

/// Behind the last row that has the same cell as the row `start`, without a gap between.
pub fn run_end(column: &Column, start: usize) -> usize {
    fn equal<T: PartialEq>(cells: &[T], start: usize) -> usize {
        let behind = cells.get(start..).unwrap_or_default();
        start + behind.iter().take_while(|cell| Some(*cell) == behind.first()).count()
    }
    let by_value = |range: Range<usize>| {
        let (mut first, mut next) = (Vec::new(), Vec::new());
        let first = column.value(start, &mut first).map(|value| (value.kind(), value.bytes().to_vec()));
        let is_same = |row: &usize| {
            let next = column.value(*row, &mut next);
            next.map(|value| (value.kind(), value.bytes())) == first.as_ref().map(|(kind, bytes)| (*kind, &**bytes))
        };
        start + range.take_while(is_same).count()
    };
    match column.data() {
        _ if column.presence().is_some() => by_value(start..column.len()),
        // Zeros of both signs are equal, and not the same.
        ColumnData::F64(cells) => {
            let behind = cells.get(start..).unwrap_or_default();
            let bits = behind.first().map(|first| first.to_bits());
            start + behind.iter().take_while(|cell| Some(cell.to_bits()) == bits).count()
        }
        ColumnData::I32(cells) => equal(cells, start),
        ColumnData::I64(cells) | ColumnData::Date(cells) => equal(cells, start),
        ColumnData::Bool(cells) => equal(cells, start),
        ColumnData::Dictionary(index, _) => equal(index, start),
        ColumnData::ObjectId(cells) => equal(cells, start),
        ColumnData::String(_) | ColumnData::Bson(_) => by_value(start..column.len()),
    }
}
