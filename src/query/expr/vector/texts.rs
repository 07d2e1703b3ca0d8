//! Operators on columns of texts: `$concat`, `$substrCP`, `$substrBytes`, `$substr`, `$toLower`, `$toUpper`, `$strLenCP`,
//! `$strLenBytes`, `$indexOfCP`, `$indexOfBytes`.

use std::borrow::Cow;
use std::ops::Range;

use kernels::texts::{self, NewTexts, Part, Texts};

use super::cells::{Cells, Int32s, Vector};
use super::distinct::ROWS_A_VALUE_MIN;
use super::mask::Mask;
use super::numbers::{Operand, finished, operand};
use super::run::VectorArguments;
use crate::block::{Bitmap, Column, ColumnData, VarData};
use crate::query::expr::operators::Operator;
use crate::query::expr::string::count;
use crate::value::Kind;

/// If more than one of so many rows differs, computing the texts of all takes less time than finding these and computing theirs.
const ROWS_A_TEXT_MIN: usize = 16;

/// So few of `rows` differ that an operator is computed for these alone: one with a form for all texts, if fewer do.
pub fn are_few(operator: &Operator, differing: usize, rows: usize) -> bool {
    let has_form =
        matches!(operator.name(), "$concat" | "$substrCP" | "$substrBytes" | "$substr" | "$toLower" | "$toUpper");
    differing <= rows / if has_form { ROWS_A_TEXT_MIN } else { ROWS_A_VALUE_MIN }
}

/// The results of an operator on texts. `flat` has the same arguments without an index. `None` for other operators and other
/// values, and where few rows differ: it is faster then to compute the results of those alone.
pub fn of_texts<'a>(
    operator: &Operator,
    arguments: &VectorArguments<'_, 'a>,
    flat: &VectorArguments<'_, 'a>,
) -> Option<Vector<'a>> {
    let entries = |vector: &Vector<'_>| match &vector.cells {
        Cells::Constant(_) => 1,
        Cells::Indexed(_, entries) => entries.rows().unwrap_or(1),
        _ => usize::MAX,
    };
    let values = arguments.vectors.iter().fold(1, |all: usize, vector| all.saturating_mul(entries(vector)));
    if values <= arguments.rows / ROWS_A_TEXT_MIN {
        return None;
    }
    let name = operator.name();
    if name == "$concat" {
        return joined(flat);
    }
    let vector = flat.at(0)?;
    let cells = texts_of(vector)?;
    let absent = vector.absent();
    if let "$strLenCP" | "$strLenBytes" = name {
        let lens = match name {
            "$strLenCP" if !texts::is_ascii(cells.bytes) => cells.iter().map(|text| count(text) as f64).collect(),
            _ => texts::lengths(cells),
        };
        // A value that is missing has no length.
        return Some(finished(Cells::Numbers(lens.into(), Int32s::All), Mask::NONE, vector.left.clone(), absent));
    }
    if let "$indexOfCP" | "$indexOfBytes" = name {
        // From the beginning, and to the end.
        if arguments.vectors.len() > 2 {
            return None;
        }
        let Cells::Constant(Some(wanted)) = &flat.at(1)?.cells else { return None };
        let wanted = wanted.view().as_str()?.as_bytes();
        let has_characters = name == "$indexOfCP" && !texts::is_ascii(cells.bytes);
        let place = |text: &[u8]| {
            let Some(at) = texts::find(text, wanted, 0, false) else { return -1.0 };
            (if has_characters { count(text.get(..at).unwrap_or_default()) } else { at }) as f64
        };
        let places: Vec<f64> = cells.iter().map(place).collect();
        return Some(finished(Cells::Numbers(places.into(), Int32s::All), absent, vector.left.clone(), Mask::NONE));
    }
    let holes = column_of(vector)?.presence().map_or(Mask::NONE, Mask::outside);
    if absent != holes {
        return None;
    }
    // Of a missing value, all parts are empty, as its place is.
    let (made, left) = match name {
        "$toLower" | "$toUpper" => {
            let bytes = texts::in_case(cells.bytes, name == "$toUpper");
            ((cells.offsets.to_vec(), bytes), Mask::NONE)
        }
        "$substrCP" => {
            let is_place = |x: &f64| x.fract() == 0.0 && PLACES.contains(x);
            cut(cells, flat, &is_place, &is_place)?
        }
        // The bytes of these are characters, and a negative number of them means all.
        "$substrBytes" | "$substr" if texts::is_ascii(cells.bytes) => {
            cut(cells, flat, &|start| PLACES.contains(&start.trunc()), &|count| count.abs() < PLACES.end)?
        }
        _ => return None,
    };
    Some(finished(of_new(made, None), Mask::NONE, vector.left.clone().with(&left), Mask::NONE))
}

/// Places of characters.
const PLACES: Range<f64> = 0.0..2_147_483_648.0;

/// Parts of texts from the second argument on, as long as the third says, and the rows for which one of these is not as it has to
/// be.
fn cut(
    cells: Texts<'_>,
    arguments: &VectorArguments<'_, '_>,
    is_start: &dyn Fn(&f64) -> bool,
    is_count: &dyn Fn(&f64) -> bool,
) -> Option<(NewTexts, Mask)> {
    let mut left = Mask::NONE;
    let mut numbers = |at: usize, is: &dyn Fn(&f64) -> bool| {
        let vector = arguments.at(at)?;
        let Operand::Numbers(numbers, _) = operand(vector)? else { return None };
        let numbers = numbers.cells(arguments.rows);
        left.add(&vector.left);
        left.add(&vector.absent());
        if !numbers.iter().all(is) {
            left.add(&Mask::from_fn(arguments.rows, |row| !numbers.get(row).is_some_and(is)));
        }
        Some(numbers)
    };
    let (starts, counts) = (numbers(1, is_start)?, numbers(2, is_count)?);
    Some((texts::characters(cells, &starts, &counts), left))
}

fn column_of<'v>(vector: &'v Vector<'_>) -> Option<&'v Column> {
    let Cells::Any(column) = &vector.cells else { return None };
    Some(column)
}

/// The texts of a vector; `None` if it has other values.
pub(super) fn texts_of<'v>(vector: &'v Vector<'_>) -> Option<Texts<'v>> {
    let ColumnData::String(VarData { offsets, bytes }) = column_of(vector)?.data() else { return None };
    Some(Texts { offsets, bytes })
}

/// New texts, of which some may be missing, as far as masks say so.
pub(super) fn of_new<'a>((offsets, bytes): NewTexts, present: Option<Bitmap>) -> Cells<'a> {
    Cells::Any(Cow::Owned(Column::new(ColumnData::String(VarData { offsets, bytes }), present)))
}

/// `$concat` of texts and constant ones. Null gives null.
fn joined<'a>(arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let (mut null, mut left) = (Mask::NONE, Mask::NONE);
    let mut parts = Vec::with_capacity(arguments.vectors.len());
    for vector in arguments.vectors {
        null.add(&vector.absent());
        left.add(&vector.left);
        parts.push(match &vector.cells {
            Cells::Constant(Some(value)) if value.view().kind() == Kind::String => {
                Part::Same(value.view().text_bytes())
            }
            _ => Part::Each(texts_of(vector)?),
        });
    }
    Some(finished(of_new(texts::joined(&parts, arguments.rows), None), null, left, Mask::NONE))
}
