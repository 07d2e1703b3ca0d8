//! A part of texts that are split, without the array of all parts.

use kernels::texts;

use super::cells::Vector;
use super::mask::Mask;
use super::texts::{of_new, texts_of};
use crate::block::Bitmap;
use crate::query::expr::operators::Operator;
use crate::query::expr::tree::Expr;
use crate::value::Number;

/// The text and the separator of a `$split` of which an operator takes a part, and the number of the part; from the end if it is
/// negative.
pub fn of_split<'e>(operator: &Operator, arguments: &'e [Expr]) -> Option<(&'e Expr, &'e str, i32)> {
    let (array, number) = match (operator.name(), arguments) {
        ("$first", [array]) => (array, 0),
        ("$last", [array]) => (array, -1),
        ("$arrayElemAt", [array, Expr::Constant(Some(number))]) => {
            (array, i32::try_from(Number::of(number.view())?.whole()?).ok()?)
        }
        _ => return None,
    };
    let Expr::Call(split, arguments) = array else { return None };
    let ("$split", [text, Expr::Constant(Some(separator))]) = (split.name(), arguments.as_slice()) else { return None };
    let separator = separator.view().as_str().filter(|separator| !separator.is_empty())?;
    Some((text, separator, number))
}

/// The parts with this number: null where the text is null or missing, and nothing where it has fewer parts. `None` for other values than
/// a column of texts.
pub fn part<'a>(vector: &Vector<'_>, separator: &str, number: i32, rows: usize) -> Option<Vector<'a>> {
    let (made, words) = texts::parts(texts_of(vector)?, separator.as_bytes(), number);
    let null = vector.absent();
    let mut missing = Mask::outside(&Bitmap::from_words(words, rows));
    missing.remove(&null);
    // A column says for itself which cells are absent.
    let absent = missing.clone().with(&null);
    let present = absent.rows().map(|absent| {
        let mut present = absent.clone();
        present.invert();
        present
    });
    Some(of_new(made, present).with(missing, null, vector.left.clone()))
}
