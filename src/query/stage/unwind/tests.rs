//! Columns are unwound as rows are, one by one.

use super::*;
use crate::block::TextNumbers;
use crate::block::samples::{column_of, shown};
use bson::{RawBson, rawbson, rawdoc};

fn value(value: RawBson) -> OwnedValue {
    let mut doc = bson::RawDocumentBuf::new();
    doc.append(bson::cstr!("v"), value);
    DocBuf::parse(doc.into_bytes()).unwrap().view().get("v").unwrap().to_owned()
}

/// The rows that `$unwind` makes.
fn unwound(block: &Block, index: Option<Vec<Box<str>>>) -> Vec<bson::RawDocumentBuf> {
    let spec = UnwindSpec {
        path: vec!["v".into()],
        index,
        keeps_empty: false,
        from: UnwoundFrom::Array,
        names: Filter::all(),
    };
    let mut stage = Unwind { spec: Rc::new(spec), made: None, wanted: WantedNames::default() };
    let _ = stage.push(block.clone()).unwrap();
    shown(&stage.take().unwrap().unwrap_or_default())
}

#[test]
fn arrays_in_objects_that_are_columns_are_unwound_as_those_of_documents() {
    let element = |n: i32| rawbson!({ "id": "e", "q": n, "more": { "x": 0.5 } });
    let lists =
        [rawbson!([element(1), { "id": "f", "q": 2 }]), rawbson!([element(3)]), rawbson!([1.5, 2.5]), rawbson!(["a"])];
    for path in [vec!["v", "l"], vec!["v", "z", "l"], vec!["v", "l", "q"], vec!["v", "none"]] {
        for of in [0..2, 2..3, 3..4] {
            let rows = |read: fn(&crate::block::Column) -> crate::block::Column| {
                let row = |n: usize| {
                    let list = lists[of.clone()][n % of.len()].clone();
                    let mut object = rawdoc! { "first": n as i32, "a": { "b": 1, "c": "text" } };
                    if !n.is_multiple_of(5) {
                        object.append(bson::cstr!("l"), list.clone());
                        object.append(bson::cstr!("last"), 7);
                    }
                    if path.contains(&"z") {
                        object.append(bson::cstr!("z"), rawdoc! { "l": list });
                    }
                    Some(value(RawBson::Document(object)))
                };
                let mut block = Block::new(40);
                block.set_column("v", read(&column_of(&(0..40).map(row).collect::<Vec<_>>())));
                block.set_column("n", column_of(&(0..40).map(|n| Some(value(RawBson::Int32(n)))).collect::<Vec<_>>()));
                block
            };
            let (plain, columns) = (rows(crate::block::Column::clone), rows(crate::column::read_again));
            assert!(matches!(columns.column("v").unwrap().data(), ColumnData::Objects(_)));
            for index in [None, Some(vec!["i".into()])] {
                let made = [plain.clone(), columns.clone()].map(|block| {
                    let spec = UnwindSpec {
                        path: path.iter().map(|name| (*name).into()).collect(),
                        index: index.clone(),
                        keeps_empty: false,
                        from: UnwoundFrom::Array,
                        names: Filter::all(),
                    };
                    let mut stage = Unwind { spec: Rc::new(spec), made: None, wanted: WantedNames::default() };
                    let _ = stage.push(block).unwrap();
                    stage.take().unwrap().unwrap_or_default()
                });
                let is_column =
                    |block: &Block| matches!(block.column("v").map(Column::data), Some(ColumnData::Objects(_)));
                assert_eq!(is_column(&made[1]), path.ends_with(&["l"]), "{path:?}");
                assert_eq!(shown(&made[0]), shown(&made[1]), "{path:?}");
            }
        }
    }
}

/// The same, row by row.
fn expected(rows: &[Option<RawBson>], with_places: bool) -> Vec<bson::RawDocumentBuf> {
    let mut all = Vec::new();
    for (n, row) in rows.iter().enumerate() {
        let mut emit = |element: RawBson, place: Option<i64>| {
            let mut doc = rawdoc! { "v": element, "n": n as i64 };
            if with_places {
                doc.append(bson::cstr!("i"), place.map_or(RawBson::Null, RawBson::Int64));
            }
            all.push(doc);
        };
        match row {
            Some(RawBson::Array(list)) => {
                let elements = list.into_iter().map(|element| element.unwrap().into());
                elements.zip(0..).for_each(|(element, place)| emit(element, Some(place)));
            }
            Some(RawBson::Null) | None => {}
            Some(other) => emit(other.clone(), None),
        }
    }
    all
}

#[test]
fn elements_that_are_taken_at_once_are_those_of_each_row() {
    let texts = [rawbson!(["a", "b"]), rawbson!([]), rawbson!(["b"]), rawbson!(["a", "a", "c"])];
    let mixed = [rawbson!([1, "b", [2]]), rawbson!([]), rawbson!([null, 1.5]), rawbson!([[]])];
    let others = [rawbson!(["a"]), rawbson!("b"), rawbson!(null), rawbson!([1])];
    for entries in [texts, mixed, others] {
        for rows in [5, 100, 1000] {
            for holes in [1000, 7] {
                let cell = |row: usize| (row % holes != 3).then(|| entries[row * row % 4].clone());
                let values: Vec<_> = (0..rows).map(cell).collect();
                let column = column_of(&values.iter().cloned().map(|cell| cell.map(value)).collect::<Vec<_>>());
                let numbered = TextNumbers::of(&column);
                for column in [Some(column), numbered].into_iter().flatten() {
                    let mut block = Block::new(rows);
                    block.set_column("v", column);
                    let numbers = (0..rows).map(|row| Some(OwnedValue::int64(row as i64))).collect::<Vec<_>>();
                    block.set_column("n", column_of(&numbers));
                    // The second time, elements of few arrays are known.
                    for _ in 0..2 {
                        assert_eq!(unwound(&block, None), expected(&values, false));
                        assert_eq!(unwound(&block, Some(vec!["i".into()])), expected(&values, true));
                    }
                }
            }
        }
    }
}
