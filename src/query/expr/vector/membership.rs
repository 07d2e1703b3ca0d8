//! What a value is, and whether it is one of several: `$type`, also compared with a name, and `$in` a constant array.

use std::rc::Rc;

use super::cells::{Cells, Int32s, Vector};
use super::mask::Mask;
use super::run::VectorArguments;
use crate::block::{Bitmap, ColumnBuilder, ColumnData};
use crate::listed::IntoList;
use crate::query::expr::operators::{Evaluation, Function, Operator};
use crate::value::{Collation, Kind, Number, OwnedValue, Value, sort_by};

/// The type of a missing value.
const MISSING: &str = "missing";

/// `$type` of a column of one type, or of numbers of two.
pub fn types<'a>(arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let [vector] = arguments.vectors else { return None };
    let kinds = match &vector.cells {
        Cells::Numbers(..) => [Kind::Double, Kind::Int32],
        Cells::Longs(_) => [Kind::Int64; 2],
        Cells::Dates(_) => [Kind::Date; 2],
        Cells::Truths(_) => [Kind::Bool; 2],
        Cells::Lists(_) => [Kind::Array; 2],
        Cells::Any(column) => match column.data() {
            ColumnData::Objects(_) => [Kind::Object; 2],
            _ => [column.kind()?; 2],
        },
        Cells::Constant(_) | Cells::Indexed(..) | Cells::Either(..) => return None,
    };
    let mut names = ColumnBuilder::new();
    for name in [kinds.first()?.alias(), kinds.last()?.alias(), Kind::Null.alias(), MISSING] {
        names.push(OwnedValue::string(name).view());
    }
    let of_row = |row: usize| match &vector.cells {
        _ if vector.missing.has(row) => 3,
        _ if vector.null.has(row) => 2,
        Cells::Numbers(_, int32s) => u32::from(int32s.has(row)),
        _ => 0,
    };
    let index: Rc<[u32]> = (0..arguments.rows).map(of_row).collect();
    let names = Rc::new(Vector::made(names.finish(), Mask::NONE));
    Some(Cells::Indexed(index, names).with(Mask::NONE, Mask::NONE, vector.left.clone()))
}

/// Whether each value has the type with this name, as `$type` returns it. `None` if that takes a look at each value.
pub fn of_type<'a>(vector: &Vector<'_>, name: &str, rows: usize) -> Option<Vector<'a>> {
    of_kinds(vector, &|kind| kind.alias() == name, name == MISSING, rows)
}

/// Whether each value is of a type that counts, or is missing, if that counts. `None` as for `of_type`.
pub fn of_kinds<'a>(
    vector: &Vector<'_>,
    is: &dyn Fn(Kind) -> bool,
    counts_missing: bool,
    rows: usize,
) -> Option<Vector<'a>> {
    let all = |kind: Kind| Bitmap::filled(rows, is(kind));
    let mut found = match &vector.cells {
        Cells::Numbers(_, Int32s::None) => all(Kind::Double),
        Cells::Numbers(_, Int32s::All) => all(Kind::Int32),
        Cells::Numbers(_, Int32s::Some(int32s)) => match (is(Kind::Int32), is(Kind::Double)) {
            (true, true) => Bitmap::filled(rows, true),
            (true, false) => int32s.clone(),
            (_, is_double) => {
                let mut doubles = int32s.clone();
                doubles.invert();
                if is_double { doubles } else { Bitmap::filled(rows, false) }
            }
        },
        Cells::Longs(_) => all(Kind::Int64),
        Cells::Dates(_) => all(Kind::Date),
        Cells::Truths(_) => all(Kind::Bool),
        Cells::Lists(_) => all(Kind::Array),
        Cells::Any(column) => match column.data() {
            ColumnData::Bson(cells) => {
                let byte = |row: usize| Some(*cells.get(row).first()?);
                Bitmap::from_fn(rows, |row| byte(row).and_then(Kind::from_byte).is_some_and(is))
            }
            ColumnData::Objects(_) => all(Kind::Object),
            _ => all(column.kind()?),
        },
        Cells::Indexed(index, entries) => {
            let among = of_kinds(entries, is, counts_missing, entries.rows()?)?;
            let Cells::Truths(among) = among.cells else { return None };
            Bitmap::from_slice(index, |entry| among.get(*entry as usize))
        }
        Cells::Constant(_) | Cells::Either(..) => return None,
    };
    for (rows, is) in [(&vector.null, is(Kind::Null)), (&vector.missing, counts_missing)] {
        rows.iter().for_each(|row| found.set(row, is));
    }
    Some(Cells::Truths(found).with(Mask::NONE, Mask::NONE, vector.all_left()))
}

/// `$in` a constant array, for numbers and strings.
pub fn contained<'a>(
    operator: &Operator,
    arguments: &VectorArguments<'_, 'a>,
    collation: &Collation,
) -> Option<Vector<'a>> {
    let [vector, array] = arguments.vectors else { return None };
    let Cells::Constant(Some(array)) = &array.cells else { return None };
    let elements = array.view().as_array()?;
    let mut is_among = match &vector.cells {
        Cells::Numbers(cells, _) => {
            let mut wanted = Vec::new();
            for (_, element) in elements.iter().filter(|(_, element)| element.kind().is_number()) {
                match Number::of(element)? {
                    Number::Integer(n) if i32::try_from(n).is_ok() => wanted.push(Number::Integer(n).near_double()),
                    Number::Double(x) if !x.is_nan() => wanted.push(x),
                    _ => return None,
                }
            }
            among(cells, &mut wanted)
        }
        Cells::Any(column) if collation.is_simple() => {
            let ColumnData::String(cells) = column.data() else { return None };
            let mut wanted: Vec<&[u8]> =
                elements.iter().filter_map(|(_, element)| element.as_str().map(str::as_bytes)).listed();
            sort_by(&mut wanted, Ord::cmp);
            Bitmap::from_fn(cells.len(), |row| wanted.binary_search(&cells.get(row)).is_ok())
        }
        _ => return None,
    };
    // What holds for one null, or one missing value, holds for all.
    for (rows, value) in [(&vector.null, Some(Value::NULL)), (&vector.missing, None)] {
        let Some(rows) = rows.rows() else { continue };
        let Evaluation::Eager { run: Function::Comparing(run), .. } = &operator.run else { return None };
        let found = run(operator, &[value, Some(array.view())], collation).ok()?;
        let found = found.view().is_some_and(Value::is_true);
        rows.iter().for_each(|row| is_among.set(row, found));
    }
    Some(Cells::Truths(is_among).with(Mask::NONE, Mask::NONE, vector.left.clone()))
}

fn among(cells: &[f64], wanted: &mut [f64]) -> Bitmap {
    wanted.sort_unstable_by(f64::total_cmp);
    // Zeros of both signs are equal, but sort next to each other.
    let is_among = |x: &f64| {
        let at = wanted.partition_point(|known| known < x);
        wanted.get(at) == Some(x)
    };
    Bitmap::from_slice(cells, is_among)
}
