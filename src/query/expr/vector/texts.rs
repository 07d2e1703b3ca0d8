//! Operators on columns of texts: `$concat`, `$substrCP`, `$substrBytes`, `$substr`, `$toLower`, `$toUpper`, `$strLenCP`,
//! `$strLenBytes`, `$indexOfCP`, `$indexOfBytes`, `$trim`, `$ltrim`, `$rtrim`, `$replaceOne`, `$replaceAll`, `$split`, `$strcasecmp`, `$binarySize`.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use kernels::edits::{self, Trimmed};
use kernels::texts::{self, NewTexts, Part, Texts};

use super::cells::{Cells, Int32s, Vector};
use super::comparison;
use super::distinct::ROWS_A_VALUE_MIN;
use super::mask::Mask;
use super::numbers::{Operand, finished, operand};
use super::run::VectorArguments;
use crate::block::{ArrayElements, Bitmap, Column, ColumnData, VarData};
use crate::query::expr::operators::Operator;
use crate::query::expr::string::{SPACES, count, first_of};
use crate::value::{Collation, Kind, Number, OwnedValue};

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
    match name {
        "$concat" => return joined(flat),
        "$strcasecmp" => return compared(flat),
        "$indexOfCP" | "$indexOfBytes" => return places(name, flat),
        _ => {}
    }
    let vector = flat.at(0)?;
    let cells = texts_of(vector)?;
    let absent = vector.absent();
    if let "$strLenCP" | "$strLenBytes" | "$binarySize" = name {
        let lens = match name {
            "$strLenCP" if !texts::is_ascii(cells.bytes) => cells.iter().map(|text| count(text) as f64).collect(),
            _ => texts::lengths(cells),
        };
        // A value that is missing has no length; its size is null.
        let (null, beyond) = if name == "$binarySize" { (absent, Mask::NONE) } else { (Mask::NONE, absent) };
        return Some(finished(Cells::Numbers(lens.into(), Int32s::All), null, vector.left.clone(), beyond));
    }
    if let "$trim" | "$ltrim" | "$rtrim" | "$replaceOne" | "$replaceAll" | "$split" = name {
        return edited(name, cells, flat);
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

/// The text in an argument that all rows share.
fn same_text<'v>(arguments: &'v VectorArguments<'_, '_>, at: usize) -> Option<&'v str> {
    let Cells::Constant(Some(text)) = &arguments.vectors.get(at)?.cells else { return None };
    text.view().as_str()
}

/// Texts without their ends, with parts replaced, or split. The other arguments are the same for all rows.
fn edited<'a>(name: &str, cells: Texts<'_>, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let vector = arguments.at(0)?;
    let of = |cells: Cells<'a>| Some(finished(cells, vector.absent(), vector.left.clone(), Mask::NONE));
    let made = match name {
        "$split" => {
            let separator = same_text(arguments, 1).filter(|separator| !separator.is_empty())?;
            let ((offsets, bytes), ends) = edits::split(cells, separator.as_bytes());
            let values = Column::new(ColumnData::String(VarData { offsets, bytes }), None);
            return of(Cells::Lists(Rc::new(ArrayElements { values, ends })));
        }
        "$replaceOne" | "$replaceAll" => {
            let wanted = same_text(arguments, 1)?;
            edits::replaced(cells, wanted.as_bytes(), same_text(arguments, 2)?.as_bytes(), name == "$replaceAll")
        }
        _ => {
            let chars = if arguments.is_given(1) { same_text(arguments, 1)? } else { SPACES };
            edits::trimmed(cells, &Trimmed { chars, start: name != "$rtrim", end: name != "$ltrim" })
        }
    };
    of(of_new(made, None))
}

/// `$indexOfCP` and `$indexOfBytes` of a text that all rows share, between places that they share.
fn places<'a>(name: &str, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let (vector, wanted) = (arguments.at(0)?, same_text(arguments, 1)?);
    let mut range = [0, usize::MAX];
    for (at, (place, vector)) in range.iter_mut().zip(arguments.vectors.get(2..)?).enumerate() {
        let Cells::Constant(value) = &vector.cells else { return None };
        match value {
            Some(value) => *place = usize::try_from(Number::of(value.view())?.whole()?).ok()?,
            // The end may be omitted.
            None if arguments.is_given(at + 2) => return None,
            None => {}
        }
    }
    let cells = texts_of(vector)?;
    let has_characters = name == "$indexOfCP" && !texts::is_ascii(cells.bytes);
    let places: Vec<f64> =
        cells.iter().map(|text| f64::from(first_of(text, wanted.as_bytes(), range, has_characters))).collect();
    Some(finished(Cells::Numbers(places.into(), Int32s::All), vector.absent(), vector.left.clone(), Mask::NONE))
}

/// `$strcasecmp` of texts: the order of the texts in upper case.
fn compared<'a>(arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let in_case = |vector: &Rc<Vector<'a>>| {
        if !vector.absent().is_none() {
            return None;
        }
        let cells = match &vector.cells {
            Cells::Constant(Some(text)) => {
                Cells::Constant(Some(OwnedValue::string(&text.view().as_str()?.to_ascii_uppercase())))
            }
            _ => {
                let cells = texts_of(vector)?;
                of_new((cells.offsets.to_vec(), texts::in_case(cells.bytes, true)), None)
            }
        };
        Some(cells.with(Mask::NONE, Mask::NONE, vector.left.clone()))
    };
    let [a, b] = arguments.vectors else { return None };
    let (a, b) = (in_case(a)?, in_case(b)?);
    let orders = comparison::orders(&a, &b, arguments.rows, &Collation::default())?;
    Some(Cells::Numbers(orders.into(), Int32s::All).with(Mask::NONE, Mask::NONE, a.left.with(&b.left)))
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
