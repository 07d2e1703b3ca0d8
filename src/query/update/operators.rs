//! The update operators: the new value that each computes, and what it refuses.

use super::array::{add_to_set, array_of, elements, pop, pull, push};
use super::tree::refused;
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::{Globals, computed};
use crate::value::{Doc, Kind, OwnedValue, Value};

/// How a value changes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum UpdateOperator {
    AddToSet,
    Bit,
    CurrentDate,
    Inc,
    Max,
    Min,
    Mul,
    Pop,
    Pull,
    PullAll,
    Push,
    Rename,
    Set,
    SetOnInsert,
    Unset,
}

static OPERATORS: [(&str, UpdateOperator); 15] = [
    ("$addToSet", UpdateOperator::AddToSet),
    ("$bit", UpdateOperator::Bit),
    ("$currentDate", UpdateOperator::CurrentDate),
    ("$inc", UpdateOperator::Inc),
    ("$max", UpdateOperator::Max),
    ("$min", UpdateOperator::Min),
    ("$mul", UpdateOperator::Mul),
    ("$pop", UpdateOperator::Pop),
    ("$pull", UpdateOperator::Pull),
    ("$pullAll", UpdateOperator::PullAll),
    ("$push", UpdateOperator::Push),
    ("$rename", UpdateOperator::Rename),
    ("$set", UpdateOperator::Set),
    ("$setOnInsert", UpdateOperator::SetOnInsert),
    ("$unset", UpdateOperator::Unset),
];

impl UpdateOperator {
    /// The operator called `name`.
    ///
    /// Errors: `FailedToParse`.
    pub(super) fn of(name: &str) -> Result<UpdateOperator> {
        let known = OPERATORS.iter().find(|(known, _)| *known == name).map(|(_, operator)| *operator);
        known.ok_or_else(|| refused(ErrorCode::FailedToParse, "Unknown modifier", name))
    }

    /// The new value for a value or a missing one; `None` for no value. Does not handle renames.
    ///
    /// Errors: an invalid operand, whatever the value; an operand that does not fit the value.
    pub(super) fn apply(
        self,
        operand: Value<'_>,
        value: Option<Value<'_>>,
        globals: &Globals,
    ) -> Result<Option<OwnedValue>> {
        let collation = globals.collation();
        Ok(Some(match self {
            UpdateOperator::Set => operand.to_owned(),
            UpdateOperator::SetOnInsert | UpdateOperator::Rename => return Ok(value.map(Value::to_owned)),
            UpdateOperator::Unset => return Ok(None),
            UpdateOperator::Inc | UpdateOperator::Mul => compute(self, value, operand)?,
            UpdateOperator::Max | UpdateOperator::Min => {
                let order = value.map(|value| collation.compare(operand, value));
                let wins =
                    order.is_none_or(|order| if self == UpdateOperator::Max { order.is_gt() } else { order.is_lt() });
                if wins { operand } else { value.unwrap_or(operand) }.to_owned()
            }
            UpdateOperator::Bit => bits(value, operand)?,
            UpdateOperator::CurrentDate => now(operand, globals.now_ms())?,
            list => {
                let code = if list == UpdateOperator::Pop { ErrorCode::TypeMismatch } else { ErrorCode::BadValue };
                let array = match value.map(Value::as_array) {
                    Some(None) => return Err(shown(code, "The field must be an array for the operand", operand)),
                    Some(Some(array)) => array,
                    None => Doc::EMPTY,
                };
                let all = elements(array);
                let all = match list {
                    UpdateOperator::Push => push(all, operand, collation)?,
                    UpdateOperator::AddToSet => add_to_set(all, operand, collation)?,
                    UpdateOperator::Pop => pop(all, operand)?,
                    _ => pull(all, operand, list == UpdateOperator::PullAll, globals)?,
                };
                if value.is_none() && !matches!(list, UpdateOperator::Push | UpdateOperator::AddToSet) {
                    return Ok(None);
                }
                array_of(all)
            }
        }))
    }
}

/// `$inc` and `$mul`: types widen as necessary. A missing value counts as zero.
fn compute(operator: UpdateOperator, value: Option<Value<'_>>, by: Value<'_>) -> Result<OwnedValue> {
    let adds = operator == UpdateOperator::Inc;
    let zero = OwnedValue::int32(0);
    if !by.kind().is_number() {
        return Err(shown(ErrorCode::TypeMismatch, "A number is needed, not", by));
    }
    if value.is_none() && adds {
        return Ok(by.to_owned());
    }
    let value = value.unwrap_or(zero.view());
    if !value.kind().is_number() {
        return Err(shown(ErrorCode::TypeMismatch, "A number is needed, not", value));
    }
    let new = computed(if adds { "$add" } else { "$multiply" }, value, by)?;
    let new = new.view().unwrap_or(Value::NULL).to_owned();
    let is_whole = |value: Value<'_>| matches!(value.kind(), Kind::Int32 | Kind::Int64);
    // An overflowing integer is an error and does not become a double.
    if is_whole(value) && is_whole(by) && !is_whole(new.view()) {
        return Err(unfit(value, "The result exceeds an int64 for"));
    }
    Ok(new)
}

/// `$bit`. A missing value counts as zero.
fn bits(value: Option<Value<'_>>, operand: Value<'_>) -> Result<OwnedValue> {
    let zero = OwnedValue::int32(0);
    let value = value.unwrap_or(zero.view());
    let whole = |value: Value<'_>| value.as_integer().filter(|_| value.kind() != Kind::Double);
    let wrong = || unfit(operand, "$bit needs 'and', 'or' or 'xor' with an integer, not");
    let mut narrow = value.kind() == Kind::Int32;
    let mut n = whole(value).ok_or_else(wrong)?;
    let changes = operand.as_doc().filter(|doc| !doc.is_empty()).ok_or_else(wrong)?;
    for (name, by) in changes {
        let m = whole(by).ok_or_else(wrong)?;
        narrow &= by.kind() == Kind::Int32;
        n = match name {
            "and" => n & m,
            "or" => n | m,
            "xor" => n ^ m,
            _ => return Err(wrong()),
        };
    }
    Ok(integer(n, narrow))
}

fn integer(n: i64, narrow: bool) -> OwnedValue {
    match i32::try_from(n) {
        Ok(n) if narrow => OwnedValue::int32(n),
        _ => OwnedValue::int64(n),
    }
}

/// `$currentDate`.
fn now(operand: Value<'_>, now_ms: i64) -> Result<OwnedValue> {
    let only = operand.as_doc().filter(|doc| doc.iter().count() == 1).unwrap_or(Doc::EMPTY);
    match only.get("$type").and_then(Value::as_str) {
        Some("timestamp") => {
            let seconds = u64::try_from(now_ms.div_euclid(1000)).unwrap_or_default();
            Ok(Value::new_checked(Kind::Timestamp, &((seconds << 32) | 1).to_le_bytes()).to_owned())
        }
        None if operand.kind() != Kind::Bool => {
            Err(unfit(operand, "$currentDate needs true or a $type of 'date' or 'timestamp', not"))
        }
        None | Some("date") => Ok(OwnedValue::date(now_ms)),
        Some(_) => Err(unfit(operand, "$currentDate needs true or a $type of 'date' or 'timestamp', not")),
    }
}

/// An error about a value that does not fit.
pub(super) fn unfit(value: Value<'_>, problem: &str) -> Error {
    shown(ErrorCode::BadValue, problem, value)
}

#[cold]
#[inline(never)]
pub(super) fn shown(code: ErrorCode, problem: &str, value: Value<'_>) -> Error {
    Error::new(code, format!("{problem} {value:?}"))
}
