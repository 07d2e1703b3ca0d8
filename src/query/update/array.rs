//! `$push`, `$addToSet`, `$pull`, `$pullAll`: the elements and operands that they read.

use super::operators::{shown, unfit};
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::query::expr::Globals;
use crate::query::filter::Filter;
use crate::query::sort::SortSpec;
use crate::value::{Collation, Doc, DocWriter, Kind, Number, OwnedValue, Value, sort_by, sort_key};

/// An array with these elements.
pub(super) fn array_of(elements: Vec<Value<'_>>) -> OwnedValue {
    let mut writer = DocWriter::new();
    for (at, element) in elements.into_iter().enumerate() {
        writer.value(&at.to_string(), element);
    }
    let doc = writer.finish();
    Value::new_checked(Kind::Array, doc.view().as_bytes()).to_owned()
}

/// The elements of an array.
pub(super) fn elements(array: Doc<'_>) -> Vec<Value<'_>> {
    array.iter().map(|(_, element)| element).listed()
}

/// The elements of an operand.
fn list(value: Value<'_>) -> Result<Vec<Value<'_>>> {
    value.as_array().map(elements).ok_or_else(|| unfit(value, "The list of elements must be an array, not"))
}

/// The elements with others added; `operand` is one, or specifies which ones, where, in which order, and how many are
/// kept.
pub(super) fn push<'a>(mut all: Vec<Value<'a>>, operand: Value<'a>, collation: &Collation) -> Result<Vec<Value<'a>>> {
    let modifiers = operand.as_doc().filter(|doc| doc.get("$each").is_some());
    let (mut each, mut position, mut slice, mut sort) = (vec![operand], i64::MAX, None, None);
    for (name, value) in modifiers.unwrap_or(Doc::EMPTY) {
        let integer = || Number::of(value).and_then(Number::whole).ok_or_else(|| unfit(value, "Not an integer:"));
        match name {
            "$each" => each = list(value)?,
            "$position" => position = integer()?,
            "$slice" => slice = Some(integer()?),
            "$sort" => sort = Some(order(value, collation)?),
            _ => return Err(unfit(operand, "Unrecognized clause in $push:")),
        }
    }
    let behind = all.split_off(place(position, all.len()));
    all.extend(each);
    all.extend(behind);
    if let Some((spec, is_whole)) = sort {
        sort_by(&mut all, |a, b| {
            let orders = spec.parts().iter().map(|part| {
                // To sort elements by themselves, each is treated as a field of a document.
                let key = |element: &Value<'a>| {
                    if is_whole {
                        return Some(*element);
                    }
                    let field = element.as_doc().and_then(|doc| doc.get(part.path.first()));
                    sort_key(field, part.path.rest(), part.ascending, collation)
                };
                let null = Value::NULL;
                let order = collation.compare(key(a).unwrap_or(null), key(b).unwrap_or(null));
                if part.ascending { order } else { order.reverse() }
            });
            orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
    }
    if let Some(slice) = slice {
        let at = place(slice, all.len());
        if slice < 0 {
            all.drain(..at);
        } else {
            all.truncate(at);
        }
    }
    Ok(all)
}

/// The order of `$sort`, and whether it compares whole elements.
fn order(value: Value<'_>, collation: &Collation) -> Result<(SortSpec, bool)> {
    let mut whole = DocWriter::new();
    whole.value("e", value);
    let whole = whole.finish();
    let by = if value.kind().is_number() { whole.view().as_value() } else { value };
    let spec = SortSpec::parse(by, collation).map_err(|error| Error::bad_value(error.into_message()))?;
    Ok((spec, value.kind().is_number()))
}

/// An index of a list; negative ones count from the end; limited to the list.
fn place(at: i64, len: usize) -> usize {
    let distance = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
    if at < 0 { len.saturating_sub(distance) } else { distance.min(len) }
}

/// The elements, with those of the operand that are not among them.
pub(super) fn add_to_set<'a>(
    mut all: Vec<Value<'a>>,
    operand: Value<'a>,
    collation: &Collation,
) -> Result<Vec<Value<'a>>> {
    let each = match operand.as_doc().and_then(|doc| doc.iter().next()) {
        Some(("$each", each)) if operand.as_doc().is_some_and(|doc| doc.iter().count() == 1) => list(each)?,
        Some(("$each", _)) => return Err(unfit(operand, "Unexpected fields beside $each:")),
        _ => vec![operand],
    };
    for element in each {
        if !all.iter().any(|known| collation.equal(*known, element)) {
            all.push(element);
        }
    }
    Ok(all)
}

/// The elements without the last one, or the first.
pub(super) fn pop<'a>(mut all: Vec<Value<'a>>, operand: Value<'_>) -> Result<Vec<Value<'a>>> {
    match operand.as_integer() {
        Some(1) => drop(all.pop()),
        Some(-1) if all.is_empty() => {}
        Some(-1) => drop(all.remove(0)),
        _ => return Err(shown(ErrorCode::FailedToParse, "$pop expects 1 or -1, not", operand)),
    }
    Ok(all)
}

/// The elements without those in a list, or those that equal or match the operand.
pub(super) fn pull<'a>(
    all: Vec<Value<'a>>,
    operand: Value<'_>,
    is_list: bool,
    globals: &Globals,
) -> Result<Vec<Value<'a>>> {
    let objects = operand.as_doc().filter(|_| !is_list);
    let is_test = match objects {
        Some(doc) => doc.iter().next().is_some_and(|(name, _)| name.starts_with('$')),
        None => !is_list && operand.kind() == Kind::Regex,
    };
    // A test of an element is a filter on a document whose fields all are that element.
    let mut tested = DocWriter::new();
    tested.value("", operand);
    let tested = tested.finish();
    let filter = if is_test { Some(tested.view()) } else { objects };
    let filter = filter.map(|doc| Filter::parse(doc, globals)).transpose()?;
    let equal = if is_list { list(operand)? } else { vec![operand] };
    let mut kept = Vec::new();
    for element in all {
        let goes = match &filter {
            Some(filter) if is_test => filter.matches_value(Some(element))?,
            Some(filter) => element.as_doc().map_or(Ok(false), |doc| filter.matches_doc(doc))?,
            None => equal.iter().any(|other| globals.collation().equal(*other, element)),
        };
        if !goes {
            kept.push(element);
        }
    }
    Ok(kept)
}
