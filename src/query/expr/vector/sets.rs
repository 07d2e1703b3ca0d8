//! Operators on sets: the elements of all arguments become words that are equal and sort as they do, and kernels compare these.

// Loaded later.

use std::rc::Rc;

use kernels::sets::{self, Make, Parts};
use kernels::sortable;

use super::cells::{Cells, Vector};
use super::lists::Arrays;
use super::mask::Mask;
use super::run::VectorArguments;
use super::truth;
use crate::block::{ArrayElements, Bitmap, Column, ColumnData};
use crate::listed::IntoList;
use crate::query::expr::operators::Operator;
use crate::value::{Collation, Interner, Value, sort_by};

/// Where more values differ than one in so many elements, to sort them takes longer than what a row costs.
const ELEMENTS_A_VALUE: usize = 4;
/// Fewer values are sorted in any case.
const FEW_VALUES: usize = 64;

/// `None` for other operators, and for arguments that must be looked at row by row.
pub fn of_sets<'a>(
    operator: &Operator,
    arguments: &VectorArguments<'_, 'a>,
    collation: &Collation,
) -> Option<Vector<'a>> {
    let name = operator.name();
    if !name.starts_with("$set") {
        return None;
    }
    let make = match name {
        "$setUnion" => Some(Make::Union),
        "$setIntersection" => Some(Make::Intersection),
        "$setDifference" => Some(Make::Difference),
        "$setEquals" | "$setIsSubset" => None,
        _ => return None,
    };
    let arrays = Arrays::of(arguments.vectors, arguments.rows)?;
    let words = words_of(&arrays.elements, collation)?;
    let parts = arrays.parts.iter().map(|(places, list)| Parts {
        first: places.start as u32,
        ends: list.as_ref().map(|list| list.ends.as_slice()),
        count: places.len() as u32,
    });
    let parts = parts.listed();
    if let Some(make) = make {
        let (places, ends) = sets::made(make, &words, &parts, arguments.rows)?;
        let list = ArrayElements { values: arrays.elements.gather(&places), ends };
        return Some(Cells::Lists(Rc::new(list)).with(Mask::NONE, arrays.absent, arrays.left));
    }
    if !arrays.absent.is_none() {
        return None;
    }
    let found = sets::within(&words, &parts, arguments.rows, name == "$setEquals")?;
    Some(truth::of_bitmap(Bitmap::from_words(found, arguments.rows), arrays.left))
}

/// A word for each element: words are equal and sort as the elements do. `None` if too many of them differ.
fn words_of(elements: &Column, collation: &Collation) -> Option<Vec<u64>> {
    let mut words = Vec::with_capacity(elements.len());
    match (elements.data(), elements.presence()) {
        (_, Some(_)) => return None,
        (ColumnData::F64(cells), _) => sortable::push_doubles(&mut words, cells),
        (ColumnData::I32(cells), _) => {
            sortable::push_doubles(&mut words, &kernels::convert::doubles_of_int32s(cells));
        }
        (ColumnData::Dictionary(index, entries), _) => {
            let ranks = ranks_of(entries, collation)?;
            words.extend(index.iter().map(|entry| ranks.get(*entry as usize).copied().unwrap_or_default()));
        }
        _ => words = ranks_of(elements, collation)?,
    }
    Some(words)
}

/// The place of each value in the order of those that differ.
fn ranks_of(values: &Column, collation: &Collation) -> Option<Vec<u64>> {
    let (mut known, mut scratch, mut tagged) = (Interner::default(), Vec::new(), Vec::new());
    let (mut firsts, mut numbers) = (Vec::new(), Vec::with_capacity(values.len()));
    let most = FEW_VALUES.max(values.len() / ELEMENTS_A_VALUE);
    for at in 0..values.len() {
        tagged.clear();
        values.value(at, &mut scratch)?.append_tagged(&mut tagged);
        let (number, is_new) = known.add(&tagged);
        if is_new {
            firsts.push(values.value(at, &mut scratch)?.to_owned());
        }
        if firsts.len() > most {
            return None;
        }
        numbers.push(number);
    }
    let compare = |a: usize, b: usize| {
        let value = |number: usize| firsts.get(number).map_or(Value::NULL, |value| value.view());
        collation.compare(value(a), value(b))
    };
    let mut order = (0..firsts.len()).listed();
    sort_by(&mut order, |a: &usize, b: &usize| compare(*a, *b));
    let (mut ranks, mut rank, mut before) = (vec![0_u64; firsts.len()], 0, None);
    for number in order {
        rank += u64::from(before.is_some_and(|before| compare(before, number).is_ne()));
        ranks.iter_mut().skip(number).take(1).for_each(|of_it| *of_it = rank);
        before = Some(number);
    }
    Some(numbers.iter().map(|number| ranks.get(*number).copied().unwrap_or_default()).listed())
}

#[cfg(test)]
mod tests {
    use bson::{Bson, RawDocumentBuf, bson, doc, rawdoc};

    use super::*;
    use crate::block::{Block, ColumnBuilder};
    use crate::env::fixed::FixedEnv;
    use crate::query::expr::samples::globals;
    use crate::query::expr::{BoundExpr, Expr, Globals};
    use crate::value::Doc;

    #[test]
    fn texts_that_a_collation_takes_for_equal_are_one_element() {
        let options = rawdoc! { "locale": "en", "strength": 1 };
        let collation = Collation::parse(Doc::parse(options.as_bytes()).unwrap(), &FixedEnv::default()).unwrap();
        let mut column = ColumnBuilder::new();
        for row in 0..60 {
            let list = [["b", "A", "a"], ["B", "c", "b"], ["a", "á", "C"]][row % 3];
            let list = RawDocumentBuf::try_from(&doc! { "l": list.as_slice() }).unwrap();
            column.push(Doc::parse(list.as_bytes()).unwrap().get("l").unwrap());
        }
        let mut block = Block::new(60);
        block.set_column("l", column.finish());
        let size = |case: &Bson, globals: &Globals| {
            let case = RawDocumentBuf::try_from(&doc! { "": case.clone() }).unwrap();
            let case = Expr::parse(Doc::parse(case.as_bytes()).unwrap().get("").unwrap(), globals).unwrap();
            let expr = BoundExpr::new(case, globals.clone());
            let (found, expected) = (expr.column(&block).unwrap(), expr.one_by_one(&block).unwrap());
            let shown = |column: &Column| {
                (0..60).map(|row| column.value(row, &mut Vec::new()).map(|value| value.to_owned())).collect::<Vec<_>>()
            };
            assert_eq!(shown(&found), shown(&expected));
            found.value(0, &mut Vec::new()).map(|value| value.elements().count())
        };
        let (by_case, plain) = (globals().with_collation(&collation), globals());
        for (case, collated, exact) in [
            (bson!({ "$setUnion": ["$l", ["a", "d"]] }), 3, 4),
            (bson!({ "$setIntersection": ["$l", ["a"]] }), 1, 1),
            (bson!({ "$setDifference": ["$l", ["a"]] }), 1, 2),
        ] {
            assert_eq!((size(&case, &by_case), size(&case, &plain)), (Some(collated), Some(exact)), "{case}");
        }
        for name in ["$setEquals", "$setIsSubset"] {
            size(&bson!({ name: ["$l", ["A", "B"]] }), &by_case);
        }
    }
}
