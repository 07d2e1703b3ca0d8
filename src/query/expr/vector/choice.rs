//! `$cond`, `$switch`, `$ifNull`: each row has the value of one of several branches.

use std::rc::Rc;

use ::kernels::{Operand, classes, gather};

use super::cells::{Cells, Int32s, Scratch, Vector};
use super::mask::Mask;
use super::numbers::{Operand as Typed, operand};
use super::truth::truths;
use crate::block::{Bitmap, Column, ColumnBuilder, kernels};
use crate::listed::IntoList;
use crate::value::{Kind, OwnedValue, Value};

/// Arguments: a test, the value if it is true, the value if not.
pub fn cond<'a>(vectors: &[Rc<Vector<'a>>], rows: usize) -> Vector<'a> {
    let [test, then, otherwise] = vectors else { return Vector::nothing(rows) };
    let test = test.flat();
    let truth = truths(&test, rows);
    let falsehood = without(&Bitmap::filled(rows, true), &truth);
    picked(&[truth, falsehood], &[Rc::clone(then), Rc::clone(otherwise)], test.left.clone(), rows)
}

/// Arguments: pairs of a case and its value, then the default, if there is one. Rows without a branch are left out.
pub fn switch<'a>(vectors: &[Rc<Vector<'a>>], rows: usize) -> Vector<'a> {
    let mut open = Bitmap::filled(rows, true);
    let mut left = Mask::NONE;
    let (mut taken, mut branches) = (Vec::new(), Vec::new());
    for branch in vectors.chunks(2) {
        let mut takes = open.clone();
        if let [case, _] = branch {
            let case = case.flat();
            left.add(&case.left.within(&open));
            takes.and(&truths(&case, rows));
        }
        open = without(&open, &takes);
        taken.push(takes);
        branches.extend(branch.last().cloned());
    }
    left.add(&Mask::of(open));
    picked(&taken, &branches, left, rows)
}

/// The first argument that is not null, or else the last one.
pub fn if_null<'a>(vectors: &[Rc<Vector<'a>>], rows: usize) -> Vector<'a> {
    let mut open = Bitmap::filled(rows, true);
    let mut left = Mask::NONE;
    let mut taken = Vec::with_capacity(vectors.len());
    for (number, vector) in (1..).zip(vectors) {
        let vector = match &vector.cells {
            Cells::Indexed(_, entries) if entries.rows().is_some() => Rc::clone(vector),
            _ => vector.flat(),
        };
        left.add(&vector.all_left().within(&open));
        let mut passed = Bitmap::filled(rows, false);
        if number < vectors.len() {
            passed = nullish(&vector, rows);
            passed.and(&open);
        }
        taken.push(without(&open, &passed));
        open = passed;
    }
    picked(&taken, vectors, left, rows)
}

/// The rows that are not in `others`.
fn without(rows: &Bitmap, others: &Bitmap) -> Bitmap {
    let mut left = others.clone();
    left.invert();
    left.and(rows);
    left
}

/// The rows whose value is null, undefined or missing.
pub fn nullish(vector: &Vector<'_>, rows: usize) -> Bitmap {
    let is_nullish =
        |value: Option<Value<'_>>| value.is_none_or(|value| matches!(value.kind(), Kind::Null | Kind::Undefined));
    match &vector.cells {
        Cells::Constant(value) => Bitmap::filled(rows, is_nullish(value.as_ref().map(OwnedValue::view))),
        Cells::Indexed(index, entries) => {
            let hits = nullish(entries, entries.rows().unwrap_or(rows));
            let mut found = if entries.rows().is_some() { kernels::entries(index, &hits) } else { hits };
            vector.absent().rows().into_iter().for_each(|absent| found.or(absent));
            found
        }
        Cells::Any(column) if column.kind().is_none() => {
            let mut scratch = Scratch::default();
            Bitmap::from_fn(rows, |row| !vector.left.has(row) && is_nullish(vector.value(row, &mut scratch)))
        }
        _ => vector.absent().rows().cloned().unwrap_or_else(|| Bitmap::filled(rows, false)),
    }
}

/// Each row has the value that its branch has there: that of a branch in `taken`, which no two branches share. Rows in `left` are left out, and those that their
/// branch leaves out.
pub fn picked<'a>(taken: &[Bitmap], branches: &[Rc<Vector<'a>>], mut left: Mask, rows: usize) -> Vector<'a> {
    if let Some(vector) = indexed(taken, branches, &left, rows) {
        return vector;
    }
    let (mut rows_of, mut flat) = (Vec::with_capacity(taken.len()), Vec::with_capacity(taken.len()));
    for (taken, branch) in taken.iter().zip(branches) {
        let branch = branch.flat();
        left.add(&branch.left.within(taken));
        let Cells::Either(first, ..) = &branch.cells else {
            rows_of.push(taken.clone());
            flat.push(branch);
            continue;
        };
        let mut of_first = first.clone();
        of_first.and(taken);
        rows_of.push(of_first);
        rows_of.push(without(taken, first));
        flat.extend(parts_of(&branch).into_iter().flatten());
    }
    let taken = &rows_of[..];
    if let Some(vector) = numbers(taken, &flat, &left, rows) {
        return vector;
    }
    let chosen = numbers_of(taken, rows);
    if flat.iter().all(|branch| is_constant(branch)) {
        let mut entries = ColumnBuilder::with_capacity(flat.len());
        for branch in &flat {
            match &branch.cells {
                Cells::Constant(Some(value)) => entries.push(value.view()),
                _ => entries.push_absent(1),
            }
        }
        let entries = Rc::new(Vector::made(entries.finish(), Mask::NONE));
        return Cells::Indexed(chosen.into(), entries).with(Mask::NONE, Mask::NONE, left);
    }
    if let Some(vector) = of_types(taken, &flat, &left, rows) {
        return vector;
    }
    joined(&flat, chosen, rows).map_or(Vector::nothing(rows), |column| Vector::made(column, left))
}

/// The number of the branch of each row. A row without a branch is left out, so that any will do.
fn numbers_of(taken: &[Bitmap], rows: usize) -> Vec<u32> {
    let mut chosen = vec![0_u32; rows];
    (0..).zip(taken).for_each(|(number, taken)| classes::set(&mut chosen, taken.words(), number));
    chosen
}

/// The same for branches of repeated texts, and of constants: these stay repeated. `None` for others.
fn indexed<'a>(taken: &[Bitmap], branches: &[Rc<Vector<'a>>], left: &Mask, rows: usize) -> Option<Vector<'a>> {
    let (mut all, mut sources) = (ColumnBuilder::new(), Vec::with_capacity(branches.len()));
    let (mut missing, mut null) = (Mask::NONE, Mask::NONE);
    for (branch, taken) in branches.iter().zip(taken) {
        let start = all.len() as u32;
        let is_whole = branch.all_left().is_none();
        missing.add(&branch.missing.within(taken));
        null.add(&branch.null.within(taken));
        sources.push((
            start,
            match &branch.cells {
                Cells::Constant(Some(value)) if is_whole => {
                    all.push(value.view());
                    None
                }
                Cells::Constant(None) if is_whole => {
                    all.push_absent(1);
                    None
                }
                Cells::Indexed(index, entries) if is_whole && matches!(entries.cells, Cells::Any(_)) => {
                    let count = entries.rows()?;
                    all.extend(&Vector::clone(entries).into_column(count)?, 0..count);
                    Some(index)
                }
                _ => return None,
            },
        ));
    }
    if sources.iter().all(|(_, index)| index.is_none()) || all.len() > rows {
        return None;
    }
    let mut chosen = numbers_of(taken, rows);
    for (row, slot) in chosen.iter_mut().enumerate() {
        let (start, index) = sources.get(*slot as usize)?;
        *slot = start + index.and_then(|index| index.get(row)).copied().unwrap_or_default();
    }
    let entries = Rc::new(Vector::made(all.finish(), Mask::NONE));
    Some(Cells::Indexed(chosen.into(), entries).with(missing, null, left.clone()))
}

/// The parts of which a vector without an index has one or the other in each row, each with the masks of the whole; `None` for others.
pub fn parts_of<'a>(vector: &Vector<'a>) -> Option<[Rc<Vector<'a>>; 2]> {
    let Cells::Either(_, a, b) = &vector.cells else { return None };
    let of = |part: &Rc<Vector<'a>>| Rc::new(Vector { cells: part.cells.clone(), ..vector.masks() });
    Some([of(a), of(b)])
}

/// Numbers, int64s and dates, of which the values of branches are one or two: a vector for each of them.
fn of_types<'a>(taken: &[Bitmap], branches: &[Rc<Vector<'a>>], left: &Mask, rows: usize) -> Option<Vector<'a>> {
    let class = |branch: &Rc<Vector<'a>>| match operand(branch) {
        Some(Typed::Numbers(..)) => Some(0),
        Some(Typed::Longs(_)) => Some(1),
        Some(Typed::Dates(_)) => Some(2),
        None => branch.typed_nothing(rows).map(|_| 3),
    };
    let classes = branches.iter().map(class).listed_if_all()?;
    let first = *classes.iter().min()?;
    let second = classes.iter().copied().filter(|class| *class < 3).max().filter(|second| *second != first);
    let made = |wanted: usize, with_nothing: bool| {
        let (mut rows_of, mut some) = (Vec::new(), Vec::new());
        for ((taken, branch), class) in taken.iter().zip(branches).zip(&classes) {
            if *class == wanted || with_nothing && *class == 3 {
                rows_of.push(taken.clone());
                some.push(Rc::clone(branch));
            }
        }
        let vector =
            if wanted == 0 { numbers(&rows_of, &some, left, rows) } else { words(&rows_of, &some, rows, wanted == 2) };
        Some((rows_of, vector?))
    };
    let (rows_of, mut a) = made(first, true)?;
    a.left = left.clone();
    let Some(second) = second else { return Some(a) };
    let (others, b) = made(second, false)?;
    // Between them could be a third one.
    if rows_of.len() + others.len() < branches.len() {
        return None;
    }
    let mut of_first = Bitmap::filled(rows, false);
    rows_of.iter().for_each(|taken| of_first.or(taken));
    let (missing, null) = (a.missing.clone().with(&b.missing), a.null.clone().with(&b.null));
    Some(Cells::Either(of_first, a.into(), b.into()).with(missing, null, left.clone()))
}

/// The same for branches of int64s, or of dates, beside nulls and missing values.
fn words<'a>(taken: &[Bitmap], branches: &[Rc<Vector<'a>>], rows: usize, are_dates: bool) -> Option<Vector<'a>> {
    let mut cells = vec![0; rows];
    let (mut missing, mut null) = (Mask::NONE, Mask::NONE);
    for (branch, taken) in branches.iter().zip(taken) {
        let nothing = branch.typed_nothing(rows);
        let branch = nothing.as_ref().unwrap_or(branch);
        missing.add(&branch.missing.within(taken));
        null.add(&branch.null.within(taken));
        if let Typed::Longs(values) | Typed::Dates(values) = operand(branch)? {
            gather::blend_int64s(&mut cells, taken.words(), values.side());
        }
    }
    let cells = if are_dates { Cells::Dates(cells.into()) } else { Cells::Longs(cells.into()) };
    Some(cells.with(missing, null, Mask::NONE))
}

/// True if all rows have the same value.
fn is_constant(branch: &Vector<'_>) -> bool {
    matches!(branch.cells, Cells::Constant(_)) && branch.absent().is_none()
}

/// The values of rows, each from the branch with the number that `chosen` has for it: they are picked out of the values of all branches.
fn joined(branches: &[Rc<Vector<'_>>], mut chosen: Vec<u32>, rows: usize) -> Option<Column> {
    let mut all = ColumnBuilder::with_capacity(rows);
    let mut starts = Vec::with_capacity(branches.len());
    for branch in branches {
        starts.push((all.len() as u32, !is_constant(branch)));
        match &branch.cells {
            Cells::Constant(Some(value)) if is_constant(branch) => all.push(value.view()),
            Cells::Constant(None) if is_constant(branch) => all.push_absent(1),
            // Rows that are left out may have any value.
            _ => all.extend(&Vector { left: Mask::NONE, ..(**branch).clone() }.into_column(rows)?, 0..rows),
        }
    }
    for (slot, row) in chosen.iter_mut().zip(0..) {
        let (start, is_each) = starts.get(*slot as usize).copied()?;
        *slot = if is_each { start + row } else { start };
    }
    Some(all.finish().gather(&chosen))
}

/// Where the numbers of a branch come from.
enum BranchNumbers<'v> {
    Cells(&'v [f64], &'v Int32s),
    Constant(f64, bool),
    Null,
    Missing,
}

/// The same for branches of numbers, nulls and missing values.
fn numbers<'a>(taken: &[Bitmap], branches: &[Rc<Vector<'a>>], left: &Mask, rows: usize) -> Option<Vector<'a>> {
    let mut sources = Vec::with_capacity(branches.len());
    for branch in branches {
        sources.push(match &branch.cells {
            Cells::Numbers(cells, int32s) => BranchNumbers::Cells(cells, int32s),
            Cells::Constant(None) => BranchNumbers::Missing,
            Cells::Constant(Some(value)) if value.view().kind() == Kind::Null => BranchNumbers::Null,
            Cells::Constant(_) => branch.constant_number().map(|(x, is_int32)| BranchNumbers::Constant(x, is_int32))?,
            _ => return None,
        });
    }
    if !sources.iter().any(|source| matches!(source, BranchNumbers::Cells(..) | BranchNumbers::Constant(..))) {
        return None;
    }
    let (mut cells, mut some) = (vec![0.0; rows], Bitmap::filled(rows, false));
    let (mut missing, mut null) = (Mask::NONE, Mask::NONE);
    let (mut is_all, mut is_none) = (true, true);
    for ((source, taken), branch) in sources.iter().zip(taken).zip(branches) {
        let mut of_type = |int32s: &Int32s| {
            is_all &= *int32s == Int32s::All;
            is_none &= *int32s == Int32s::None;
            match int32s {
                Int32s::None => {}
                Int32s::All => some.or(taken),
                Int32s::Some(int32s) => {
                    let mut within = int32s.clone();
                    within.and(taken);
                    some.or(&within);
                }
            }
        };
        match source {
            BranchNumbers::Cells(from, int32s) => {
                gather::blend(&mut cells, taken.words(), Operand::Cells(from));
                of_type(int32s);
            }
            BranchNumbers::Constant(x, is_int32) => {
                gather::blend(&mut cells, taken.words(), Operand::Same(*x));
                of_type(if *is_int32 { &Int32s::All } else { &Int32s::None });
            }
            BranchNumbers::Null => null.add(&Mask::of(taken.clone())),
            BranchNumbers::Missing => missing.add(&Mask::of(taken.clone())),
        }
        missing.add(&branch.missing.within(taken));
        null.add(&branch.null.within(taken));
    }
    let int32s = match (is_all, is_none) {
        (true, _) => Int32s::All,
        (_, true) => Int32s::None,
        _ => Int32s::Some(some),
    };
    Some(Cells::Numbers(cells.into(), int32s).with(missing, null, left.clone()))
}

#[cfg(test)]
mod tests {
    use bson::{Bson, RawDocumentBuf, bson, doc};

    use crate::block::samples::column_of;
    use crate::block::{Bitmap, Block, Column, ColumnData};
    use crate::query::expr::samples::globals;
    use crate::query::expr::{BoundExpr, Expr};
    use crate::value::{Doc, Kind, OwnedValue, Value};

    /// Three rows: `t` is "x", "y" and nothing; `m` has objects without a field `none`; `a` is 1, 2, 3.
    fn found(expression: Bson) -> Column {
        let dictionary = |values: Vec<OwnedValue>, index: Vec<u32>, present: u64| {
            let entries = column_of(&values.into_iter().map(Some).collect::<Vec<_>>());
            let presence = Bitmap::from_words(vec![present], index.len());
            Column::new(ColumnData::Dictionary(index, Box::new(entries)), Some(presence))
        };
        let object = |text: &str| {
            let object = RawDocumentBuf::try_from(&doc! { "o": text }).unwrap();
            Value::new_checked(Kind::Object, object.as_bytes()).to_owned()
        };
        let mut block = Block::new(3);
        let texts = ["x", "y"].map(OwnedValue::string).to_vec();
        block.set_column("t", dictionary(texts, vec![0, 1, 0], 0b011));
        block.set_column("m", dictionary(vec![object("x"), object("y")], vec![0, 1, 1], 0b111));
        block.set_column("a", column_of(&[1.0, 2.0, 3.0].map(|x| Some(OwnedValue::double(x)))));
        let expression = RawDocumentBuf::try_from(&doc! { "": expression }).unwrap();
        let expr = Expr::parse(Doc::parse(expression.as_bytes()).unwrap().get("").unwrap(), &globals()).unwrap();
        BoundExpr::new(expr, globals()).column(&block).unwrap()
    }

    fn shown(column: &Column) -> Vec<Option<String>> {
        let text = |row| column.value(row, &mut Vec::new()).map(|value| format!("{value:?}"));
        (0..column.len()).map(text).collect()
    }

    #[test]
    fn choices_among_repeated_texts_and_constants_stay_repeated() {
        let texts = |texts: [Option<&str>; 3]| texts.map(|text| text.map(|text| format!("{text:?}"))).to_vec();
        let chosen = found(bson!({ "$ifNull": ["$t", "none"] }));
        assert!(matches!(chosen.data(), ColumnData::Dictionary(..)), "{chosen:?}");
        assert_eq!(shown(&chosen), texts([Some("x"), Some("y"), Some("none")]));
        let chosen = found(bson!({ "$cond": [{ "$gt": ["$a", 1] }, "$t", "$m.o"] }));
        assert_eq!(shown(&chosen), texts([Some("x"), Some("y"), None]));
    }

    #[test]
    fn a_path_that_no_repeated_object_has_is_null_in_every_row() {
        let numbers = found(bson!({ "$ifNull": ["$m.none", "$a"] }));
        assert_eq!(shown(&numbers), shown(&found(bson!("$a"))));
    }
}
