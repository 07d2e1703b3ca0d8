//! A running `$group`, which combines rows with equal keys.
//!
//! Source: mongodb/mongo src/mongo/db/exec/agg/group_base_stage.cpp. Keys are computed as columns, and all rows of a block
//! get the numbers of their groups. Each accumulator then takes the numbers and the columns of its input.

use std::ops::Range;
use std::rc::Rc;

use kernels::gather;

use super::cells::{KeyCells, KeyEntries};
use super::ids::Ids;
use super::keys::GroupKeys;
use super::spec::GroupSpec;
use crate::block::{Block, Column, ColumnBuilder, ColumnData};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::listed::IntoList;
use crate::query::exec::{Flow, Numbers};
use crate::query::stage::accumulator::{Accumulation, Accumulator, Inputs, Times};
use crate::query::stage::running::Stage;
use crate::value::{Kind, Value, append_key};

/// With fewer rows than this, groups are not returned before the end, because each release costs as much as some rows.
const GIVEN_ROWS_MIN: usize = 1024;

/// The ids of so many groups are written even if their parts are read: columns do not pay for few.
const WRITTEN_IDS_MAX: usize = if cfg!(test) { 3 } else { 64 };

/// The weights of rows as numbers of that type, which are added up in place of ones.
fn ones(weights: &[u32], kind: Kind) -> Column {
    let data = match kind {
        Kind::Double => ColumnData::F64(weights.iter().map(|weight| f64::from(*weight)).collect()),
        Kind::Int64 => ColumnData::I64(weights.iter().map(|weight| i64::from(*weight)).collect()),
        _ => ColumnData::I32(weights.iter().map(|weight| i32::try_from(*weight).unwrap_or(i32::MAX)).collect()),
    };
    Column::new(data, None)
}

/// What an accumulator takes of rows, and of which rows if not of all: most do without those that have no value.
type GroupInputs<'a> = (Inputs<'a>, Option<Vec<u32>>);

fn inputs_of<'a>(field: &'a Accumulation, rows: &'a Block) -> Result<GroupInputs<'a>> {
    match (rows.weights(), field.counts_as()) {
        (Some(weights), Some(kind)) => Ok((Inputs::of(ones(weights, kind)), None)),
        _ if field.skips_null() => Ok(field.inputs(rows, false)?.without_null()),
        _ => Ok((field.inputs(rows, false)?, None)),
    }
}

/// Adds rows, of which `numbers` are the groups, to an accumulator.
fn accumulate(
    accumulator: &mut dyn Accumulator,
    numbers: &Numbers,
    inputs: &Inputs<'_>,
    rows: Range<usize>,
    times: Option<&Times<'_>>,
) -> Result<()> {
    match numbers {
        _ if rows.is_empty() => Ok(()),
        Numbers::Each(numbers) => accumulator.add_each(numbers, inputs, rows, times),
        runs => runs.for_each_run(rows, &mut |group, run| accumulator.add(group as usize, inputs, run, times)),
    }
}

/// A running `$group`.
pub struct Group {
    spec: Rc<GroupSpec>,
    groups: GroupKeys,
    entries: KeyEntries,
    ids: Ids,
    /// True if accumulators read the ids of their groups.
    reads_ids: bool,
    /// The place of each group's first row, if rows come out of order; its id is shown.
    places: Vec<i64>,
    accumulators: Vec<Box<dyn Accumulator>>,
    /// Bytes of the ids; accumulators count their own.
    size_bytes: usize,
    /// The ordered parts of the last row's key.
    last: Vec<u8>,
    /// The rows of groups not yet returned, if keys come in order.
    rows: usize,
    made: Vec<Block>,
}

impl Group {
    pub fn new(spec: Rc<GroupSpec>) -> Group {
        Group {
            groups: GroupKeys::new(spec.key.parts().len(), &spec.collation),
            entries: KeyEntries::default(),
            ids: Ids::default(),
            reads_ids: spec.fields.iter().any(Accumulation::reads_id),
            places: Vec::new(),
            accumulators: spec.fields.iter().map(Accumulation::start).collect(),
            size_bytes: 0,
            last: Vec::new(),
            rows: 0,
            made: Vec::new(),
            spec,
        }
    }

    /// Adds rows with known keys.
    ///
    /// Errors: those of accumulators and of their inputs, and 292.
    pub fn add(&mut self, rows: &Block, keys: &[KeyCells]) -> Result<()> {
        let spec = Rc::clone(&self.spec);
        let inputs = spec.fields.iter().map(|field| inputs_of(field, rows)).try_listed()?;
        let sorting = spec.unsorted_by.as_ref();
        let times = sorting.and_then(|(name, ascending)| match rows.column(name)?.data() {
            ColumnData::Date(ms) => Some(Times { ms, ascending: *ascending }),
            _ => None,
        });
        if sorting.is_some() && times.is_none() && rows.rows() > 0 {
            return Err(Error::internal("Unsorted rows have no date column as their time field"));
        }
        let mut start = 0;
        if !spec.in_order.is_empty() {
            let cells = |place: &usize| match keys.get(*place)? {
                KeyCells::Rows(cells) => Some(cells),
                KeyCells::Runs(..) => None,
            };
            let ordered: Vec<&Column> = spec.in_order.iter().filter_map(cells).listed();
            let mut ends = vec![0; ordered.len()];
            let mut row = 0;
            while row < rows.rows() {
                for (end, key) in ends.iter_mut().zip(&ordered).filter(|(end, _)| **end <= row) {
                    *end = run_end(key, row);
                }
                let mut cells = Vec::new();
                for key in &ordered {
                    append_key(&mut cells, key.value(row, &mut Vec::new()).unwrap_or(Value::NULL));
                }
                if cells != self.last {
                    if self.rows + (row - start) >= GIVEN_ROWS_MIN {
                        self.add_range(keys, &inputs, start..row, times.as_ref())?;
                        self.give();
                        start = row;
                    }
                    self.last = cells;
                }
                row = ends.iter().copied().min().unwrap_or(rows.rows());
            }
        }
        self.add_range(keys, &inputs, start..rows.rows(), times.as_ref())?;
        if self.size_bytes() > STAGE_SIZE_BYTES_MAX {
            return Err(Error::new(
                ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
                "Exceeded memory limit for $group, and there is no disk to spill to",
            ));
        }
        Ok(())
    }

    fn add_range(
        &mut self,
        keys: &[KeyCells],
        inputs: &[GroupInputs<'_>],
        rows: Range<usize>,
        times: Option<&Times<'_>>,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.rows += rows.len();
        let start = u32::try_from(rows.start).unwrap_or(u32::MAX);
        let numbers = self.groups.numbers(keys, &rows);
        if self.writes_ids() {
            // Those of earlier groups had one form each.
            self.ids.write_all(&self.spec.key, &self.groups);
        }
        self.note_groups(keys, &numbers, &rows)?;
        if let Some(times) = times {
            self.note_places(keys, &numbers, &rows, times);
        }
        for (accumulator, (inputs, taken)) in self.accumulators.iter_mut().zip(inputs) {
            let Some(taken) = taken else {
                accumulate(&mut **accumulator, &numbers, inputs, rows.clone(), times)?;
                continue;
            };
            let place = |end: usize| taken.partition_point(|row| (*row as usize) < end);
            let part = place(rows.start)..place(rows.end);
            let from: Vec<u32> = taken.get(part.clone()).unwrap_or_default().iter().map(|row| row - start).collect();
            let ms = times.map(|times| gather::int64s(times.ms, taken));
            let times = times.zip(ms.as_deref()).map(|(times, ms)| Times { ms, ascending: times.ascending });
            accumulate(&mut **accumulator, &numbers.of_rows(&from), inputs, part, times.as_ref())?;
        }
        Ok(())
    }

    /// True if the ids of groups are written when their first rows come.
    fn writes_ids(&self) -> bool {
        let takes_columns = self.spec.shows_parts && self.ids.len() >= WRITTEN_IDS_MAX && !self.groups.has_aliases();
        self.reads_ids || self.spec.shows_id && !takes_columns
    }

    /// Makes room for groups that are new, whose numbers follow those of the known ones in the order of rows.
    ///
    /// Errors: an `n` that is not a positive integer.
    fn note_groups(&mut self, keys: &[KeyCells], numbers: &Numbers, rows: &Range<usize>) -> Result<()> {
        let new = self.groups.count() - self.ids.len();
        if new == 0 {
            return Ok(());
        }
        self.size_bytes += 2 * self.groups.key_lens(self.ids.len()) + 64 * new;
        if !self.writes_ids() {
            // Nothing is read of their rows.
            self.ids.add_unwritten(new);
            for (field, accumulator) in self.spec.fields.iter().zip(&mut self.accumulators) {
                let n = field.count(&|| None)?;
                (0..new).for_each(|_| accumulator.grow(n));
            }
            return Ok(());
        }
        match numbers {
            Numbers::Each(numbers) => {
                for (row, group) in rows.clone().zip(numbers) {
                    if *group as usize >= self.ids.len() {
                        self.note_group(keys, *group, row)?;
                    }
                }
                Ok(())
            }
            runs => runs.for_each_run(rows.clone(), &mut |group, run| {
                if group as usize >= self.ids.len() { self.note_group(keys, group, run.start) } else { Ok(()) }
            }),
        }
    }

    #[cold]
    fn note_group(&mut self, keys: &[KeyCells], group: u32, row: usize) -> Result<()> {
        match self.writes_ids() {
            true => self.ids.add(&self.spec.key, keys, row),
            false => self.ids.add_unwritten(1),
        }
        let id = || if self.reads_ids { self.ids.id(group as usize).as_doc() } else { None };
        for (field, accumulator) in self.spec.fields.iter().zip(&mut self.accumulators) {
            accumulator.grow(field.count(&id)?);
        }
        Ok(())
    }

    /// Shows the id of each group's first row by time.
    fn note_places(&mut self, keys: &[KeyCells], numbers: &Numbers, rows: &Range<usize>, times: &Times<'_>) {
        self.places.resize(self.ids.len(), i64::MAX);
        let may_differ = self.writes_ids() && self.groups.has_aliases();
        let Group { spec, ids, places, .. } = self;
        let mut note = |group: u32, row: usize| {
            let place = times.place(row);
            if let Some(first) = places.get_mut(group as usize).filter(|first| place < **first) {
                *first = place;
                if may_differ {
                    ids.replace(group as usize, &spec.key, keys, row);
                }
            }
        };
        match numbers {
            Numbers::Each(numbers) => rows.clone().zip(numbers).for_each(|(row, group)| note(*group, row)),
            runs => {
                let see = &mut |group, run: Range<usize>| {
                    if let Some(first) = run.min_by_key(|row| times.place(*row)) {
                        note(group, first);
                    }
                    Ok::<(), Error>(())
                };
                // Nothing here can fail.
                let _ = runs.for_each_run(rows.clone(), see);
            }
        }
    }

    /// The rows of all groups, from what was added so far.
    pub fn shown(&self) -> Block {
        let ids = &self.ids;
        if ids.len() == 0 {
            return Block::new(0);
        }
        let mut block = Block::new(ids.len());
        if self.spec.shows_id {
            block.set_column("_id", ids.column(&self.spec.key, &self.groups));
        }
        for (field, accumulator) in self.spec.fields.iter().zip(&self.accumulators) {
            let each = || {
                let mut column = ColumnBuilder::with_capacity(ids.len());
                (0..ids.len()).for_each(|group| accumulator.show(group, &mut |value| column.push(value)));
                column.finish()
            };
            block.set_column(&field.name, accumulator.column().unwrap_or_else(each));
        }
        block
    }

    /// Bytes of all groups.
    pub fn size_bytes(&self) -> usize {
        self.accumulators.iter().map(|a| a.size_bytes()).sum::<usize>() + self.size_bytes
    }

    /// Returns the rows of all groups, which are complete, and drops the groups.
    fn give(&mut self) {
        let block = self.shown();
        self.groups = GroupKeys::new(self.spec.key.parts().len(), &self.spec.collation);
        self.accumulators = self.spec.fields.iter().map(Accumulation::start).collect();
        (self.size_bytes, self.rows) = (0, 0);
        self.places.clear();
        self.ids = Ids::default();
        if block.rows() > 0 {
            self.made.push(block);
        }
    }
}

impl Stage for Group {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        if self.entries.begin() {
            self.groups.forget_entries();
        }
        let keys = self.entries.cells(&self.spec.key.parts(), &self.spec.in_order, &rows)?;
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

/// The end of the run of rows that have the same cell as row `start`.
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
        // Zeros of both signs compare equal but are not the same.
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
        ColumnData::String(_) | ColumnData::Bson(_) | ColumnData::Objects(_) => by_value(start..column.len()),
    }
}
