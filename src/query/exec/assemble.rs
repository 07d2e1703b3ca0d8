//! Assembles one block from pieces of many.

use std::ops::Range;

use kernels::{gather, runs};

use crate::block::{Bitmap, Block, Bytes12, Column, ColumnBuilder, ColumnData, VarData, common_order, joined_weights};
use crate::listed::IntoList;
use crate::value::{Interner, Value};

/// Consecutive rows of one of several blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowRun {
    /// The index of the block.
    pub block: usize,
    /// Its rows.
    pub rows: Range<usize>,
}

/// All rows of `blocks`, one after another. Dictionaries stay dictionaries.
pub fn join_blocks(mut blocks: Vec<Block>) -> Block {
    if blocks.len() == 1 {
        return blocks.pop().unwrap_or_default();
    }
    let runs: Vec<RowRun> =
        blocks.iter().enumerate().map(|(block, rows)| RowRun { block, rows: 0..rows.rows() }).collect();
    assemble(&blocks, &runs)
}

/// The rows of the first of two blocks among those of the second: for each part, how many rows come next, and whether they are of the
/// first.
pub fn among(first: Block, second: Block, parts: &mut dyn Iterator<Item = (bool, usize)>) -> Block {
    let (mut runs, mut taken) = (Vec::<RowRun>::new(), [0; 2]);
    for (is_first, rows) in parts {
        let block = usize::from(!is_first);
        let [of_first, of_second] = &mut taken;
        let start = if is_first { of_first } else { of_second };
        let rows = *start..*start + rows;
        *start = rows.end;
        match runs.last_mut().filter(|run| run.block == block) {
            Some(run) => run.rows.end = rows.end,
            None => runs.push(RowRun { block, rows }),
        }
    }
    assemble(&[first, second], &runs)
}

/// The rows of `runs`, one after another.
///
/// The order of columns agrees with that of each block, as far as the blocks agree. Dictionaries stay dictionaries;
/// they hold each value once, and no unused values.
pub(super) fn assemble(blocks: &[Block], runs: &[RowRun]) -> Block {
    let mut used: Vec<&Block> = Vec::new();
    let mut slots: Vec<Option<usize>> = vec![None; blocks.len()];
    let mut pieces = Vec::with_capacity(runs.len());
    for run in runs {
        let (Some(block), Some(slot)) = (blocks.get(run.block), slots.get_mut(run.block)) else { continue };
        let slot = *slot.get_or_insert_with(|| {
            used.push(block);
            used.len() - 1
        });
        pieces.push(Piece { slot, rows: run.rows.clone() });
    }
    let rows = pieces.iter().map(|piece| piece.rows.len()).sum();
    let names = common_order(&mut used.iter().copied()).unwrap_or_else(|| {
        let mut names = Vec::new();
        used.iter().for_each(|block| _ = block.add_names(&mut names));
        names
    });
    let mut places = Interner::default();
    names.iter().for_each(|name| {
        places.add(name.as_bytes());
    });
    let mut table: Vec<Vec<Option<&Column>>> = vec![vec![None; used.len()]; names.len()];
    for (slot, block) in used.iter().enumerate() {
        for (name, column) in block.columns() {
            let cell = places.get(name.as_bytes()).and_then(|at| table.get_mut(at)?.get_mut(slot));
            if let Some(cell) = cell {
                *cell = Some(column);
            }
        }
    }
    let mut joined = Block::new(rows);
    for (name, sources) in names.iter().zip(&table) {
        if let Some(column) = (Join { sources, pieces: &pieces, rows }).column() {
            joined.push_new_column(name, column);
        }
    }
    if used.iter().any(|block| block.weights().is_some()) {
        let part = |piece: &Piece| used.get(piece.slot).map(|block| (*block, piece.rows.clone()));
        joined.set_weights(joined_weights(&pieces.iter().filter_map(part).listed()));
    }
    joined
}

/// True if all rows have the same value, as in the metadata of a bucket.
fn is_same(column: Option<&Column>) -> bool {
    column.is_some_and(|column| {
        column.presence().is_none() && matches!(column.data(), ColumnData::Dictionary(_, values) if values.len() == 1)
    })
}

pub(super) struct Piece {
    slot: usize,
    rows: Range<usize>,
}

/// One column to be joined: its part in each block that has rows, and the runs of rows.
pub(super) struct Join<'a> {
    pub(super) sources: &'a [Option<&'a Column>],
    pub(super) pieces: &'a [Piece],
    pub(super) rows: usize,
}

impl Join<'_> {
    /// The sources that have the column.
    pub(super) fn columns(&self) -> impl Iterator<Item = &Column> {
        self.sources.iter().filter_map(|source| *source)
    }

    /// The column; `None` if no row has a value.
    pub(super) fn column(&self) -> Option<Column> {
        let data = match self.columns().next()?.data() {
            ColumnData::F64(_) => {
                self.slices(|d| if let ColumnData::F64(v) = d { Some(v) } else { None }).map(ColumnData::F64)
            }
            ColumnData::I32(_) => {
                self.slices(|d| if let ColumnData::I32(v) = d { Some(v) } else { None }).map(ColumnData::I32)
            }
            ColumnData::I64(_) => {
                self.slices(|d| if let ColumnData::I64(v) = d { Some(v) } else { None }).map(ColumnData::I64)
            }
            ColumnData::Date(_) => {
                self.slices(|d| if let ColumnData::Date(v) = d { Some(v) } else { None }).map(ColumnData::Date)
            }
            ColumnData::Bool(_) => {
                self.slices(|d| if let ColumnData::Bool(v) = d { Some(v) } else { None }).map(ColumnData::Bool)
            }
            ColumnData::ObjectId(_) => self
                .slices::<Bytes12>(|d| if let ColumnData::ObjectId(v) = d { Some(v) } else { None })
                .map(ColumnData::ObjectId),
            ColumnData::String(_) => {
                self.var(|d| if let ColumnData::String(v) = d { Some(v) } else { None }).map(ColumnData::String)
            }
            ColumnData::Bson(_) => {
                self.var(|d| if let ColumnData::Bson(v) = d { Some(v) } else { None }).map(ColumnData::Bson)
            }
            ColumnData::Objects(_) => None,
            ColumnData::Dictionary(..) => {
                if let Some(joined) = self.dictionary() {
                    return joined;
                }
                None
            }
        };
        let Some(data) = data else {
            let mut joined = None;
            return match self.unlike_if_loaded(&mut joined) {
                true => joined,
                false => Some(self.mixed()),
            };
        };
        Some(Column::new(data, self.presence()))
    }

    /// A column from columns of different forms; false if it must be made cell by cell.
    // Loaded later.
    #[inline(never)]
    fn unlike_if_loaded(&self, joined: &mut Option<Column>) -> bool {
        let is_apart = |column: &Column| matches!(column.data(), ColumnData::Objects(_));
        *joined = if self.columns().any(is_apart) { self.objects() } else { self.few_texts() };
        joined.is_some()
    }

    /// A dictionary from dictionaries and columns of texts, if these have few of the rows: texts of small buckets do not
    /// repeat. `None` if it is anything else.
    fn few_texts(&self) -> Option<Column> {
        let is_text = |column: &Column| matches!(column.data(), ColumnData::String(_));
        let texts: usize = self.columns().filter(|column| is_text(column)).map(|column| column.len()).sum();
        if texts > self.rows / 2 {
            return None;
        }
        let as_dictionary = |column: &Column| match u32::try_from(column.len()) {
            Ok(rows) if is_text(column) => {
                let data = ColumnData::Dictionary((0..rows).collect(), Box::new(column.clone()));
                Column::new(data, column.presence().cloned())
            }
            _ => column.clone(),
        };
        let sources: Vec<Option<Column>> = self.sources.iter().map(|source| source.map(as_dictionary)).listed();
        let sources: Vec<Option<&Column>> = sources.iter().map(Option::as_ref).listed();
        (Join { sources: &sources, pieces: self.pieces, rows: self.rows }).dictionary().flatten()
    }

    /// Presence of all rows; `None` if every source has every row.
    pub(super) fn presence(&self) -> Option<Bitmap> {
        if self.sources.iter().all(|source| source.is_some_and(|column| column.presence().is_none())) {
            return None;
        }
        let mut presence = Bitmap::filled(0, false);
        for piece in self.pieces {
            match self.source(piece).map(Column::presence) {
                None => presence.push_many(false, piece.rows.len()),
                Some(None) => presence.push_many(true, piece.rows.len()),
                Some(Some(some)) => presence.extend(some, piece.rows.clone()),
            }
        }
        Some(presence)
    }

    fn source(&self, piece: &Piece) -> Option<&Column> {
        self.sources.get(piece.slot).copied().flatten()
    }

    /// The cells of fixed width; `None` if the sources differ in type.
    fn slices<T: Copy + Default>(&self, pick: fn(&ColumnData) -> Option<&Vec<T>>) -> Option<Vec<T>> {
        let slices =
            self.sources.iter().map(|source| source.map_or(Some(&[][..]), |c| Some(pick(c.data())?.as_slice())));
        let slices: Vec<&[T]> = slices.listed_if_all()?;
        let mut joined = Vec::with_capacity(self.rows);
        for piece in self.pieces {
            match slices.get(piece.slot).and_then(|slice| slice.get(piece.rows.clone())) {
                // Sorted rows are often scattered, and this is cheaper than copying a slice of one cell.
                Some([cell]) => joined.push(*cell),
                Some(cells) => joined.extend_from_slice(cells),
                None => joined.resize(joined.len() + piece.rows.len(), T::default()),
            }
        }
        Some(joined)
    }

    /// The cells of variable width; `None` if the sources differ in type.
    fn var(&self, pick: fn(&ColumnData) -> Option<&VarData>) -> Option<VarData> {
        let sources = self.sources.iter().map(|source| source.map_or(Some(None), |c| Some(Some(pick(c.data())?))));
        let sources: Vec<Option<&VarData>> = sources.listed_if_all()?;
        let mut joined = VarData::default();
        joined.offsets.reserve(self.rows);
        for piece in self.pieces {
            match sources.get(piece.slot).copied().flatten() {
                Some(source) => joined.extend(source, piece.rows.clone()),
                None => piece.rows.clone().for_each(|_| joined.seal()),
            }
        }
        Some(joined)
    }

    /// A dictionary from dictionaries: the outer `None` if a source is not one, the inner `None` if no row has a value.
    fn dictionary(&self) -> Option<Option<Column>> {
        const UNSEEN: u32 = u32::MAX;
        let parts = self.sources.iter().map(|source| match source.map(Column::data) {
            None => Some(None),
            Some(ColumnData::Dictionary(index, values)) => {
                // Of one value, the number is in `only`.
                let seen = if is_same(*source) { Vec::new() } else { vec![UNSEEN; values.len()] };
                Some(Some((index, &**values, seen, UNSEEN)))
            }
            Some(_) => None,
        });
        let mut parts: Vec<_> = parts.listed_if_all()?;
        let mut known = Interner::default();
        let mut values = ColumnBuilder::new();
        let mut scratch = Vec::new();
        let mut joined: Vec<u32> = Vec::with_capacity(self.rows);
        let mut key = Vec::new();
        let mut number_of = |dictionary: &Column, at: usize| {
            let value = dictionary.value(at, &mut scratch).unwrap_or(Value::NULL);
            key.clear();
            value.append_tagged(&mut key);
            let (number, new) = known.add(&key);
            if new {
                values.push(value);
            }
            u32::try_from(number).unwrap_or(UNSEEN)
        };
        for piece in self.pieces {
            let (Some(column), Some(Some((index, dictionary, seen, only)))) =
                (self.source(piece), parts.get_mut(piece.slot))
            else {
                joined.resize(joined.len() + piece.rows.len(), 0);
                continue;
            };
            if is_same(Some(column)) && !piece.rows.is_empty() {
                if *only == UNSEEN {
                    *only = number_of(dictionary, 0);
                }
                runs::fill_codes(&mut joined, piece.rows.len(), *only);
                continue;
            }
            let mut rows = piece.rows.clone();
            if column.presence().is_none() {
                // All rows whose entries are known by now, and one more.
                while let Some(codes @ [at, ..]) = index.get(rows.clone()) {
                    let at = *at as usize;
                    if let Some(slot) = seen.get_mut(at).filter(|slot| **slot == UNSEEN) {
                        *slot = number_of(dictionary, at);
                    }
                    let known = gather::known_codes(seen, codes, UNSEEN, &mut joined);
                    if known == 0 {
                        joined.push(0);
                    }
                    rows.start += known.max(1);
                }
                continue;
            }
            for row in rows {
                let at = index.get(row).map_or(usize::MAX, |at| *at as usize);
                let Some(slot) = seen.get_mut(at).filter(|_| column.is_present(row)) else {
                    joined.push(0);
                    continue;
                };
                if *slot == UNSEEN {
                    *slot = number_of(dictionary, at);
                }
                joined.push(*slot);
            }
        }
        if values.is_empty() {
            return Some(None);
        }
        let data = ColumnData::Dictionary(joined, Box::new(values.finish()));
        Some(Some(Column::new(data, self.presence())))
    }

    /// Cell by cell: the sources differ in type.
    fn mixed(&self) -> Column {
        let mut builder = ColumnBuilder::with_capacity(self.rows);
        for piece in self.pieces {
            match self.source(piece) {
                Some(column) => builder.extend(column, piece.rows.clone()),
                None => builder.push_absent(piece.rows.len()),
            }
        }
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{decode, encode, pivot_docs};
    use crate::value::{Doc, DocBuf, DocWriter, OwnedValue};
    use bson::{RawBson, RawDocumentBuf, rawdoc};
    use proptest::prelude::*;

    fn block(docs: &[RawDocumentBuf]) -> Block {
        pivot_docs(docs.iter().map(|d| Doc::parse(d.as_bytes()).unwrap())).unwrap()
    }

    fn whole(blocks: &[Block]) -> Block {
        let runs: Vec<_> = blocks.iter().enumerate().map(|(block, b)| RowRun { block, rows: 0..b.rows() }).collect();
        assemble(blocks, &runs)
    }

    fn names(block: &Block) -> Vec<&str> {
        block.columns().iter().map(|(name, _)| &**name).collect()
    }

    #[test]
    fn rows_of_two_blocks_are_put_among_each_other() {
        let rows = |all: &[i32]| block(&all.iter().map(|n| rawdoc! { "n": *n }).collect::<Vec<_>>());
        let parts = [(true, 1), (false, 2), (false, 1), (true, 1), (true, 1)];
        assert_eq!(among(rows(&[1, 5, 6]), rows(&[2, 3, 4]), &mut parts.into_iter()), rows(&[1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn joined_columns_keep_the_order_common_to_the_blocks() {
        let blocks = [
            block(&[rawdoc! { "t": 1, "a": 1, "d": 1 }]),
            block(&[rawdoc! { "t": 1, "m": 1, "a": 1, "b": 1, "d": 1, "e": 1 }]),
            block(&[rawdoc! { "c": 1, "d": 1 }]),
        ];
        assert_eq!(names(&whole(&blocks)), ["t", "m", "a", "b", "c", "d", "e"]);
    }

    #[test]
    fn merged_dictionaries_have_each_used_value_once() {
        let constant = |n: i32, rows| {
            let mut block = Block::new(rows);
            block.set_column("m", Column::constant(OwnedValue::int32(n).view(), rows));
            block
        };
        let blocks = [constant(1, 2), constant(2, 3), constant(1, 1), Block::new(2), constant(3, 1)];
        let joined = whole(&blocks[..4]);
        let ColumnData::Dictionary(index, values) = joined.column("m").unwrap().data() else { panic!() };
        assert_eq!((index.as_slice(), values.data()), (&[0, 0, 1, 1, 1, 0, 0, 0][..], &ColumnData::I32(vec![1, 2])));
        assert_eq!(joined.column("m").unwrap().present_count(), 6);
        let again = assemble(&[joined], &[RowRun { block: 0, rows: 2..4 }]);
        let ColumnData::Dictionary(_, values) = again.column("m").unwrap().data() else { panic!() };
        assert_eq!(values.data(), &ColumnData::I32(vec![2]));
        assert!(assemble(&[Block::new(2)], &[RowRun { block: 0, rows: 0..2 }]).columns().is_empty());
    }

    #[test]
    fn few_texts_among_dictionaries_become_entries() {
        let part = |texts: &[&str], repeated: usize| {
            let mut column = ColumnBuilder::new();
            texts.iter().for_each(|text| column.push(OwnedValue::string(text).view()));
            let column = if repeated > 1 {
                Column::constant(OwnedValue::string(texts[0]).view(), repeated)
            } else {
                column.finish()
            };
            let mut block = Block::new(column.len());
            block.set_column("m", column);
            block
        };
        let blocks = [part(&["x"], 5), part(&["y", "x"], 1), part(&["y"], 3)];
        let joined = whole(&blocks);
        let ColumnData::Dictionary(index, values) = joined.column("m").unwrap().data() else { panic!("{joined:?}") };
        assert_eq!((index.as_slice(), values.len()), (&[0, 0, 0, 0, 0, 1, 0, 1, 1, 1][..], 2));
        let joined = whole(&blocks[1..2].iter().chain(&blocks[1..2]).chain(&blocks[2..]).cloned().collect::<Vec<_>>());
        assert!(matches!(joined.column("m").unwrap().data(), ColumnData::String(_)));
    }

    fn any_doc() -> impl Strategy<Value = DocBuf> {
        let value = prop_oneof![
            3 => (0..3_i32).prop_map(|n| RawBson::Double(f64::from(n))),
            1 => (0..3_i32).prop_map(RawBson::Int32),
            1 => "[a-c]{0,3}".prop_map(RawBson::String),
            1 => (0..3_i32).prop_map(|n| RawBson::Document(rawdoc! { "x": n })),
            1 => any::<bool>().prop_map(RawBson::Boolean),
        ];
        proptest::collection::btree_map("[abc]", value, 0..3).prop_map(|fields| {
            let mut doc = RawDocumentBuf::new();
            for (name, value) in fields {
                doc.append(<&bson::raw::CStr>::try_from(name.as_str()).unwrap(), value);
            }
            DocBuf::parse(doc.into_bytes()).unwrap()
        })
    }

    fn rows_of(block: &Block) -> Vec<std::collections::BTreeMap<String, OwnedValue>> {
        (0..block.rows())
            .map(|row| {
                let mut writer = DocWriter::new();
                block.write_row(row, &mut writer);
                let doc = writer.finish();
                doc.view().iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
            })
            .collect()
    }

    proptest! {
        #[test]
        fn assembled_pieces_have_every_row_in_a_valid_block(
            parts in proptest::collection::vec((proptest::collection::vec(any_doc(), 1..5), 0..4_u8), 1..5),
            picks in proptest::collection::vec((any::<prop::sample::Index>(), 0..5_usize, 0..5_usize), 0..10),
        ) {
            let blocks: Vec<Block> = parts.iter().map(|(docs, kind)| {
                let mut block = pivot_docs(docs.iter().map(DocBuf::view)).unwrap();
                let constant = |value: Value<'_>| Column::constant(value, docs.len());
                match kind {
                    0 => block.set_column("m", constant(docs[0].view().as_value())),
                    1 => block.set_column("m", constant(OwnedValue::string("ab").view())),
                    2 => {
                        let mut texts = ColumnBuilder::new();
                        docs.iter().for_each(|doc| match doc.view().get("a") {
                            Some(_) => texts.push(OwnedValue::string(&"abc"[..doc.view().iter().count()]).view()),
                            None => texts.push_absent(1),
                        });
                        block.set_column("m", texts.finish());
                    }
                    _ => {}
                }
                block
            }).collect();
            let runs: Vec<RowRun> = picks.iter().map(|(block, a, b)| {
                let block = block.index(blocks.len());
                let (a, b) = ((*a).min(blocks[block].rows()), (*b).min(blocks[block].rows()));
                RowRun { block, rows: a.min(b)..a.max(b) }
            }).collect();
            let joined = assemble(&blocks, &runs);
            let expected: Vec<_> =
                runs.iter().flat_map(|run| rows_of(&blocks[run.block])[run.rows.clone()].to_vec()).collect();
            prop_assert_eq!(rows_of(&joined), expected);
            prop_assert_eq!(decode(&encode(&joined)).map(|b| rows_of(&b)), Ok(rows_of(&joined)));
        }
    }
}
