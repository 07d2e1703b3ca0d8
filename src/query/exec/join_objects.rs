//! Joins columns of objects scalar by scalar, also if they differ in their fields, or if some are not read that way yet.

use super::assemble::Join;
use crate::block::{Column, ColumnBuilder, ColumnData, Objects};
use crate::column::{GrowingObjects, aligned};
use crate::listed::IntoList;

impl Join<'_> {
    /// Objects from objects; `None` if the sources have no common shape, or are not all objects.
    pub(super) fn objects(&self) -> Option<Column> {
        // To read whole columns scalar by scalar costs more than to take a few rows as they are.
        let is_whole = |column: &&Column| !matches!(column.data(), ColumnData::Objects(_));
        let whole: usize = self.columns().filter(|column| is_whole(column)).map(|column| column.len()).sum();
        if whole > self.rows {
            return None;
        }
        let mut read = Vec::new();
        for column in self.columns() {
            read.push(match column.data() {
                ColumnData::Objects(objects) => Objects::clone(objects),
                ColumnData::Bson(_) | ColumnData::Dictionary(..) => GrowingObjects::default().extend(column)?,
                _ => return None,
            });
        }
        let (shape, aligned) = aligned(&read)?;
        let mut scalars = Vec::new();
        for place in 0..aligned.first()?.len() {
            let mut columns = aligned.iter();
            let mut column = |source: &Option<&Column>| source.and_then(|_| columns.next())?.get(place)?.as_ref();
            let sources: Vec<Option<&Column>> = self.sources.iter().map(&mut column).listed();
            let join = Join { sources: &sources, pieces: self.pieces, rows: self.rows };
            scalars.push(join.column().unwrap_or_else(|| {
                let mut none = ColumnBuilder::new();
                none.push_absent(self.rows);
                none.finish()
            }));
        }
        Some(Column::new(ColumnData::Objects(Box::new(Objects::new(shape, scalars))), self.presence()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::assemble::join_blocks;
    use super::*;
    use crate::block::samples::row_with_object;
    use crate::block::{Block, pivot_docs};
    use crate::value::{Doc, OwnedValue};
    use bson::{RawDocumentBuf, rawdoc};
    use proptest::prelude::*;

    /// How the objects of a block are held.
    #[derive(Clone, Copy, Debug)]
    enum Form {
        Scalars,
        Whole,
        Numbered,
    }

    fn block(docs: &[RawDocumentBuf], form: Form) -> Block {
        let mut block = pivot_docs(docs.iter().map(|doc| Doc::parse(doc.as_bytes()).unwrap())).unwrap();
        let Some(column) = block.column("o").cloned() else { return block };
        let made = match form {
            Form::Whole => None,
            Form::Scalars => GrowingObjects::default()
                .extend(&column)
                .map(|objects| Column::new(Column::of_objects(objects).data().clone(), column.presence().cloned())),
            Form::Numbered => {
                let index = (0..column.len() as u32).collect();
                let values = Box::new(Column::new(column.data().clone(), None));
                Some(Column::new(ColumnData::Dictionary(index, values), column.presence().cloned()))
            }
        };
        made.into_iter().for_each(|made| block.set_column("o", made));
        block
    }

    fn cells(block: &Block) -> Vec<Option<OwnedValue>> {
        let mut scratch = Vec::new();
        let column = block.column("o");
        (0..block.rows()).map(|row| Some(column?.value(row, &mut scratch)?.to_owned())).collect()
    }

    /// Joins the blocks, and returns whether the objects are columns of scalars.
    fn joined(blocks: &[Block]) -> bool {
        let joined = join_blocks(blocks.to_vec());
        assert_eq!(cells(&joined), blocks.iter().flat_map(cells).collect::<Vec<_>>());
        joined.column("o").is_some_and(|column| matches!(column.data(), ColumnData::Objects(_)))
    }

    #[test]
    fn objects_with_different_fields_stay_columns() {
        let one = || rawdoc! { "o": { "a": 1, "in": { "x": 1 }, "z": "end" } };
        let other = || rawdoc! { "o": { "a": 2.5, "b": true, "in": { "x": 2, "y": [1, 2] } } };
        let none = || rawdoc! { "n": 1 };
        for form in [Form::Scalars, Form::Whole, Form::Numbered] {
            let blocks = [
                block(&[one(), one()], Form::Scalars),
                block(&[none()], form),
                block(&[other(), none(), other()], form),
                block(&[one()], form),
            ];
            assert!(joined(&blocks), "{form:?}");
            let reversed: Vec<Block> = blocks.into_iter().rev().collect();
            assert!(joined(&reversed), "{form:?}");
        }
    }

    #[test]
    fn objects_without_a_common_shape_are_joined_whole() {
        let one = || block(&[rawdoc! { "o": { "a": 1, "b": 2 } }], Form::Scalars);
        for other in [rawdoc! { "o": { "b": 1, "a": 2 } }, rawdoc! { "o": { "a": { "x": 1 } } }, rawdoc! { "o": 5 }] {
            assert!(!joined(&[one(), block(std::slice::from_ref(&other), Form::Whole)]), "{other:?}");
            assert!(!joined(&[block(std::slice::from_ref(&other), Form::Scalars), one()]), "{other:?}");
        }
        let wide = |from: i32| {
            let fields: bson::Document = (from..from + 40).map(|n| (format!("k{n}"), n.into())).collect();
            rawdoc! { "o": RawDocumentBuf::try_from(&fields).unwrap() }
        };
        assert!(joined(&[block(&[wide(0)], Form::Scalars), block(&[wide(0)], Form::Scalars)]));
        assert!(!joined(&[block(&[wide(0)], Form::Scalars), block(&[wide(40)], Form::Scalars)]));
    }

    proptest! {
        #[test]
        fn joined_objects_are_the_same_objects(
            parts in prop::collection::vec((prop::collection::vec(0_u16..512, 1..5), 0..3_u8), 1..6),
        ) {
            let forms = [Form::Scalars, Form::Whole, Form::Numbered];
            let block = |(bits, form): &(Vec<u16>, u8)| {
                block(&bits.iter().copied().map(row_with_object).collect::<Vec<_>>(), forms[usize::from(*form)])
            };
            joined(&parts.iter().map(block).collect::<Vec<_>>());
        }
    }
}
