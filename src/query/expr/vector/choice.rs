//! `$cond`, `$switch`, `$ifNull`: each row has the value of one of several branches.

use std::rc::Rc;

use super::cells::{Cells, Int32s, Scratch, Vector};
use super::mask::Mask;
use super::truth::truths;
use crate::block::{Bitmap, ColumnBuilder};
use crate::value::{Kind, OwnedValue, Value};

/// Arguments: a test, the value if it is true, the value if not.
pub fn cond<'a>(vectors: &[Rc<Vector<'a>>], rows: usize) -> Vector<'a> {
    let [test, then, otherwise] = vectors else { return Vector::nothing(rows) };
    let test = test.flat();
    let truth = truths(&test, rows);
    let chosen: Vec<u32> = (0..rows).map(|row| u32::from(!truth.get(row))).collect();
    picked(&chosen, &[Rc::clone(then), Rc::clone(otherwise)], test.left.clone())
}

/// Arguments: pairs of a case and its value, then the default, if there is one. Rows without a branch are left out.
pub fn switch<'a>(vectors: &[Rc<Vector<'a>>], rows: usize) -> Vector<'a> {
    let mut chosen = vec![u32::MAX; rows];
    let mut open = Bitmap::filled(rows, true);
    let mut left = Mask::NONE;
    let mut branches = Vec::new();
    for branch in vectors.chunks(2) {
        let number = u32::try_from(branches.len()).unwrap_or(u32::MAX);
        let mut taken = open.clone();
        match branch {
            [case, then] => {
                let case = case.flat();
                left.add(&case.left.within(&open));
                taken.and(&truths(&case, rows));
                branches.push(Rc::clone(then));
            }
            [default] => branches.push(Rc::clone(default)),
            _ => {}
        }
        choose(&mut chosen, &taken, number);
        taken.invert();
        open.and(&taken);
    }
    left.add(&Mask::of(open));
    picked(&chosen, &branches, left)
}

/// The first argument that is not null, or else the last one.
pub fn if_null<'a>(vectors: &[Rc<Vector<'a>>], rows: usize) -> Vector<'a> {
    let mut chosen = vec![0; rows];
    let mut open = Bitmap::filled(rows, true);
    let mut left = Mask::NONE;
    for (number, vector) in (0..).zip(vectors) {
        let vector = vector.flat();
        choose(&mut chosen, &open, number);
        left.add(&vector.left.within(&open));
        open.and(&nullish(&vector, rows));
    }
    picked(&chosen, vectors, left)
}

fn choose(chosen: &mut [u32], rows: &Bitmap, number: u32) {
    rows.iter().for_each(|row| {
        if let Some(slot) = chosen.get_mut(row) {
            *slot = number;
        }
    });
}

/// The rows whose value is null, undefined or missing, of a vector without an index.
pub fn nullish(vector: &Vector<'_>, rows: usize) -> Bitmap {
    let is_nullish =
        |value: Option<Value<'_>>| value.is_none_or(|value| matches!(value.kind(), Kind::Null | Kind::Undefined));
    match &vector.cells {
        Cells::Constant(value) => Bitmap::filled(rows, is_nullish(value.as_ref().map(OwnedValue::view))),
        Cells::Any(_) | Cells::Indexed(..) => {
            let mut scratch = Scratch::default();
            Bitmap::from_fn(rows, |row| !vector.left.has(row) && is_nullish(vector.value(row, &mut scratch)))
        }
        _ => vector.absent().rows().cloned().unwrap_or_else(|| Bitmap::filled(rows, false)),
    }
}

/// Row `i` has the value that branch `chosen[i]` has there. Rows in `left` are left out, and those that their branch leaves
/// out.
fn picked<'a>(chosen: &[u32], branches: &[Rc<Vector<'a>>], mut left: Mask) -> Vector<'a> {
    let rows = chosen.len();
    let is_constant = |branch: &Rc<Vector<'_>>| matches!(branch.cells, Cells::Constant(_));
    let flat: Vec<_> = branches.iter().map(Vector::flat).collect();
    let branch = |row: usize| chosen.get(row).and_then(|number| flat.get(*number as usize));
    if flat.iter().any(|branch| !branch.left.is_none()) {
        left.add(&Mask::from_fn(rows, |row| branch(row).is_some_and(|branch| branch.left.has(row))));
    }
    if let Some(vector) = numbers(chosen, &flat, &left) {
        return vector;
    }
    if flat.iter().all(is_constant) {
        let mut entries = ColumnBuilder::with_capacity(flat.len());
        for branch in &flat {
            match &branch.cells {
                Cells::Constant(Some(value)) => entries.push(value.view()),
                _ => entries.push_absent(1),
            }
        }
        let last = u32::try_from(flat.len()).unwrap_or(u32::MAX).saturating_sub(1);
        let index: Rc<[u32]> = chosen.iter().map(|number| (*number).min(last)).collect();
        let entries = Rc::new(Vector::made(entries.finish(), Mask::NONE));
        return Cells::Indexed(index, entries).with(Mask::NONE, Mask::NONE, left);
    }
    let mut builder = ColumnBuilder::with_capacity(rows);
    let mut scratch = Scratch::default();
    for row in 0..rows {
        match branch(row).filter(|_| !left.has(row)).and_then(|branch| branch.value(row, &mut scratch)) {
            Some(value) => builder.push(value),
            None => builder.push_absent(1),
        }
    }
    Vector::made(builder.finish(), left)
}

/// Where the numbers of a branch come from.
enum BranchNumbers<'v> {
    Cells(&'v [f64], &'v Int32s),
    Constant(f64, bool),
    Null,
    Missing,
}

/// The same for branches of numbers, nulls and missing values.
fn numbers<'a>(chosen: &[u32], branches: &[Rc<Vector<'a>>], left: &Mask) -> Option<Vector<'a>> {
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
    let rows = chosen.len();
    let cells: Vec<f64> = chosen
        .iter()
        .enumerate()
        .map(|(row, number)| match sources.get(*number as usize) {
            Some(BranchNumbers::Cells(cells, _)) => cells.get(row).copied().unwrap_or_default(),
            Some(BranchNumbers::Constant(x, _)) => *x,
            _ => 0.0,
        })
        .collect();
    let source = |row: usize| chosen.get(row).and_then(|number| sources.get(*number as usize));
    let is_all = |wanted: bool| {
        sources.iter().all(|source| match source {
            BranchNumbers::Cells(_, int32s) => **int32s == if wanted { Int32s::All } else { Int32s::None },
            BranchNumbers::Constant(_, is_int32) => *is_int32 == wanted,
            _ => true,
        })
    };
    let int32s = match (is_all(true), is_all(false)) {
        (true, _) => Int32s::All,
        (_, true) => Int32s::None,
        _ => Int32s::Some(Bitmap::from_fn(rows, |row| match source(row) {
            Some(BranchNumbers::Cells(_, int32s)) => int32s.has(row),
            Some(BranchNumbers::Constant(_, is_int32)) => *is_int32,
            _ => false,
        })),
    };
    let branch = |row: usize| chosen.get(row).and_then(|number| branches.get(*number as usize));
    let has = |mask: for<'v> fn(&'v Vector<'_>) -> &'v Mask, is_wanted: fn(&BranchNumbers<'_>) -> bool| {
        if branches.iter().all(|branch| mask(branch).is_none()) && !sources.iter().any(is_wanted) {
            return Mask::NONE;
        }
        Mask::from_fn(rows, |row| {
            source(row).is_some_and(is_wanted) || branch(row).is_some_and(|branch| mask(branch).has(row))
        })
    };
    let missing = has(|vector| &vector.missing, |source| matches!(source, BranchNumbers::Missing));
    let null = has(|vector| &vector.null, |source| matches!(source, BranchNumbers::Null));
    Some(Cells::Numbers(cells.into(), int32s).with(missing, null, left.clone()))
}
