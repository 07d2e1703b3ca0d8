//! Operators on columns of texts: `$concat`, `$substrCP`, `$substrBytes`, `$substr`, `$toLower`, `$toUpper`, `$strLenCP`,
//! `$strLenBytes`.

use std::borrow::Cow;

use kernels::texts::{self, NewTexts, Part, Texts};

use super::cells::{Cells, Int32s, Vector};
use super::distinct::ROWS_A_VALUE_MIN;
use super::mask::Mask;
use super::numbers::finished;
use super::run::VectorArguments;
use crate::block::{Column, ColumnData, VarData};
use crate::query::expr::operators::Operator;
use crate::query::expr::string::count;
use crate::value::{Kind, Number};

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
    if values <= arguments.rows / ROWS_A_VALUE_MIN {
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
    let holes = column_of(vector)?.presence().map_or(Mask::NONE, Mask::outside);
    if absent != holes {
        return None;
    }
    // Of a missing value, all parts are empty, as its place is.
    let made = match name {
        "$toLower" | "$toUpper" => (cells.offsets.to_vec(), texts::in_case(cells.bytes, name == "$toUpper")),
        "$substrCP" => {
            let [start, count] = [1, 2].map(|at| natural(number(flat, at)?.whole()));
            texts::characters(cells, start?, count?)
        }
        // The bytes of these are characters.
        "$substrBytes" | "$substr" if texts::is_ascii(cells.bytes) => {
            let [start, count] = [1, 2].map(|at| number(flat, at)?.truncated());
            let all = count.filter(|count| *count < 0).map(|_| usize::MAX);
            texts::characters(cells, natural(start)?, all.or_else(|| natural(count))?)
        }
        _ => return None,
    };
    Some(finished(of_new(made), Mask::NONE, vector.left.clone(), Mask::NONE))
}

fn column_of<'v>(vector: &'v Vector<'_>) -> Option<&'v Column> {
    let Cells::Any(column) = &vector.cells else { return None };
    Some(column)
}

fn texts_of<'v>(vector: &'v Vector<'_>) -> Option<Texts<'v>> {
    let ColumnData::String(VarData { offsets, bytes }) = column_of(vector)?.data() else { return None };
    Some(Texts { offsets, bytes })
}

fn of_new<'a>((offsets, bytes): NewTexts) -> Cells<'a> {
    Cells::Any(Cow::Owned(Column::new(ColumnData::String(VarData { offsets, bytes }), None)))
}

/// A constant number behind the first argument.
fn number(arguments: &VectorArguments<'_, '_>, at: usize) -> Option<Number> {
    Number::of((*arguments.constants(1)?.get(at)?)?)
}

/// A place or a number of characters.
fn natural(n: Option<i64>) -> Option<usize> {
    n.and_then(|n| usize::try_from(n).ok())
}

/// `$concat` of texts and constant ones. Null gives null.
fn joined<'a>(arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let (mut null, mut left) = (Mask::NONE, Mask::NONE);
    let mut parts = Vec::with_capacity(arguments.vectors.len());
    for vector in arguments.vectors {
        null.add(&vector.absent());
        left.add(&vector.left);
        parts.push(match &vector.cells {
            Cells::Constant(Some(value)) if value.view().kind() == Kind::String => Part::Same(value.view().text_bytes()),
            _ => Part::Each(texts_of(vector)?),
        });
    }
    Some(finished(of_new(texts::joined(&parts, arguments.rows)), null, left, Mask::NONE))
}
