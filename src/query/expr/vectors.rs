//! Arithmetic and comparisons of doubles, a column at a time. The results equal those of the operators on single
//! values.

// Loaded later.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::operators::Op;
use super::tree::{Expr, Variable};
use crate::block::{Block, ColumnData};
use crate::value::Number;

/// Doubles represent every integer below this.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The operands of a step, one per row.
struct Operand<'a> {
    values: Cow<'a, [f64]>,
    kind: OperandKind,
}

#[derive(Clone, Copy, PartialEq)]
enum OperandKind {
    Double,
    /// Integers. Two of them do not give a double.
    Integer,
    /// 0 or 1.
    Truth,
}

/// The values of an expression for all rows of a block, if it combines only doubles and integers that all rows have,
/// every step gives doubles or truths, and the last one gives doubles. False if values must be evaluated one by one, or
/// if the second half of the module is not loaded.
#[inline(never)]
pub fn doubles_if_loaded(expr: &Expr, block: &Block, result: &mut Vec<f64>) -> bool {
    match operand(expr, block) {
        Some(Operand { values: Cow::Owned(values), kind: OperandKind::Double }) => {
            *result = values;
            true
        }
        _ => false,
    }
}

#[allow(clippy::cast_precision_loss)]
fn operand<'a>(expr: &Expr, block: &'a Block) -> Option<Operand<'a>> {
    match expr {
        Expr::Constant(Some(value)) => {
            let number = Number::of(value.view()).filter(|number| !matches!(number, Number::Decimal(_)))?;
            let kind = if matches!(number, Number::Double(_)) { OperandKind::Double } else { OperandKind::Integer };
            Some(Operand { values: vec![number.near_double(); block.rows()].into(), kind })
        }
        Expr::Field(Variable::Root, path) => {
            let [name] = path.as_slice() else { return None };
            let column = block.column(name).filter(|column| column.presence().is_none())?;
            let (values, kind) = match column.data() {
                ColumnData::F64(values) => (Cow::Borrowed(values.as_slice()), OperandKind::Double),
                ColumnData::I32(values) => (values.iter().map(|n| f64::from(*n)).collect(), OperandKind::Integer),
                ColumnData::I64(values) => (values.iter().map(|n| *n as f64).collect(), OperandKind::Integer),
                _ => return None,
            };
            Some(Operand { values, kind })
        }
        Expr::Call(operator, arguments) => {
            let mut operands = arguments.iter().map(|argument| operand(argument, block));
            let first = operands.next()??;
            let op = operator.op;
            match op {
                Op::Add | Op::Subtract | Op::Multiply | Op::Divide | Op::Mod if arguments.len() > 1 => {
                    operands.try_fold(first, |sum, operand| step(op, sum, operand?))
                }
                Op::And | Op::Or => {
                    let first = Some(first).filter(|first| first.kind == OperandKind::Truth)?;
                    operands.try_fold(first, |all, operand| {
                        let operand = operand.filter(|operand| operand.kind == OperandKind::Truth)?;
                        pairs(all, operand, OperandKind::Truth, if op == Op::And { f64::min } else { f64::max })
                    })
                }
                Op::Not if first.kind == OperandKind::Truth => each(first, |x| 1.0 - x),
                Op::Abs if first.kind == OperandKind::Double => each(first, f64::abs),
                Op::Ceil if first.kind == OperandKind::Double => each(first, f64::ceil),
                Op::Floor if first.kind == OperandKind::Double => each(first, f64::floor),
                // Negative numbers have no square root.
                Op::Sqrt if first.kind == OperandKind::Double && !first.values.iter().any(|x| *x < 0.0) => {
                    each(first, f64::sqrt)
                }
                Op::Cond if first.kind == OperandKind::Truth => {
                    let (then, otherwise) = (operands.next()??, operands.next()??);
                    if then.kind != otherwise.kind || then.kind == OperandKind::Integer {
                        return None;
                    }
                    let kind = then.kind;
                    let mut values = otherwise.values.into_owned();
                    let chosen = values.iter_mut().zip(&*then.values).zip(&*first.values);
                    chosen.filter(|(_, test)| **test != 0.0).for_each(|((x, then), _)| *x = *then);
                    Some(Operand { values: values.into(), kind })
                }
                _ => {
                    let comparison = operator.comparison()?;
                    let second = operands.next()??;
                    if [&first, &second].iter().any(|operand| !is_exact(operand)) {
                        return None;
                    }
                    Some(Operand {
                        values: first
                            .values
                            .iter()
                            .zip(&*second.values)
                            .map(|(x, y)| f64::from(u8::from(comparison.holds(order(*x, *y)))))
                            .collect(),
                        kind: OperandKind::Truth,
                    })
                }
            }
        }
        _ => None,
    }
}

/// False for truths, and if integers may have been rounded.
fn is_exact(operand: &Operand<'_>) -> bool {
    match operand.kind {
        OperandKind::Double => true,
        OperandKind::Integer => operand.values.iter().all(|n| n.abs() < EXACT_MAX),
        OperandKind::Truth => false,
    }
}

/// The order of all doubles: NaN sorts below the others.
fn order(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y).unwrap_or_else(|| y.is_nan().cmp(&x.is_nan()))
}

fn each(operand: Operand<'_>, function: fn(f64) -> f64) -> Option<Operand<'_>> {
    let mut values = operand.values.into_owned();
    values.iter_mut().for_each(|x| *x = function(*x));
    Some(Operand { values: values.into(), kind: operand.kind })
}

fn pairs<'a>(
    left: Operand<'a>,
    right: Operand<'_>,
    kind: OperandKind,
    function: fn(f64, f64) -> f64,
) -> Option<Operand<'a>> {
    let mut values = left.values.into_owned();
    values.iter_mut().zip(&*right.values).for_each(|(x, y)| *x = function(*x, *y));
    Some(Operand { values: values.into(), kind })
}

/// `None` if the result is not a double, or missing.
fn step<'a>(op: Op, left: Operand<'a>, right: Operand<'_>) -> Option<Operand<'a>> {
    let kinds = [left.kind, right.kind];
    let divides = matches!(op, Op::Divide | Op::Mod);
    if !kinds.contains(&OperandKind::Double)
        || kinds.contains(&OperandKind::Truth)
        || divides && right.values.contains(&0.0)
    {
        return None;
    }
    let function: fn(f64, f64) -> f64 = match op {
        Op::Add => |x, y| x + y,
        Op::Subtract => |x, y| x - y,
        Op::Multiply => |x, y| x * y,
        Op::Divide => |x, y| x / y,
        _ => |x, y| x % y,
    };
    pairs(left, right, OperandKind::Double, function)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Bitmap, Column, ColumnBuilder};
    use crate::query::expr::BoundExpr;
    use crate::query::expr::samples::globals;
    use crate::value::{Doc, OwnedValue, Value};
    use bson::{Bson, Document, RawDocumentBuf, doc};
    use proptest::prelude::*;

    fn bound(expr: &Bson) -> BoundExpr {
        let expr = RawDocumentBuf::try_from(&doc! { "": expr }).unwrap();
        let expr = Expr::parse(Doc::parse(expr.as_bytes()).unwrap().get("").unwrap(), &globals()).unwrap();
        BoundExpr::new(expr, globals())
    }

    fn number() -> impl Strategy<Value = f64> {
        let special = [0.0, -0.0, 1.0, -2.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 5e-324];
        prop_oneof![prop::sample::select(special.to_vec()), -9.0..9.0_f64, (-3..4_i32).prop_map(f64::from)]
    }

    fn expression() -> impl Strategy<Value = Bson> {
        let leaf = prop_oneof![
            prop::sample::select(vec!["$a", "$b", "$i", "$l", "$h", "$s", "$none"]).prop_map(Bson::from),
            number().prop_map(Bson::from),
            (-3..4_i32).prop_map(Bson::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            let call = |name: &str, arguments: Vec<Bson>| {
                Bson::Document(Document::from_iter([(name.to_owned(), arguments.into())]))
            };
            prop_oneof![
                (prop::sample::select(vec!["$add", "$multiply"]), prop::collection::vec(inner.clone(), 1..4))
                    .prop_map(move |(name, arguments)| call(name, arguments)),
                (prop::sample::select(vec!["$subtract", "$divide", "$mod"]), inner.clone(), inner.clone())
                    .prop_map(move |(name, a, b)| call(name, vec![a, b])),
                (prop::sample::select(vec!["$abs", "$ceil", "$floor", "$sqrt", "$not"]), inner.clone())
                    .prop_map(move |(name, a)| call(name, vec![a])),
                (
                    prop::sample::select(vec!["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp"]),
                    inner.clone(),
                    inner.clone()
                )
                    .prop_map(move |(name, a, b)| call(name, vec![a, b])),
                (
                    prop::sample::select(vec!["$gt", "$lte"]),
                    [inner.clone(), inner.clone(), inner.clone(), inner.clone()]
                )
                    .prop_map(move |(name, [a, b, x, y])| call("$cond", vec![call(name, vec![a, b]), x, y])),
                (prop::sample::select(vec!["$and", "$or"]), [inner.clone(), inner.clone(), inner.clone(), inner])
                    .prop_map(move |(name, [a, b, x, y])| call(
                        "$cond",
                        vec![call(name, vec![call("$gt", vec![a.clone(), b]), call("$lt", vec![a, x.clone()])]), x, y]
                    )),
            ]
        })
    }

    /// The exact bits of a value.
    fn bits(value: Option<Value<'_>>) -> String {
        match value.and_then(Value::as_f64) {
            Some(x) if !x.is_nan() => format!("{:x}", x.to_bits()),
            _ => format!("{value:?}"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn columns_come_to_the_same_as_their_values_one_by_one(
            expr in expression(),
            (a, b) in (prop::collection::vec(number(), 5), prop::collection::vec(number(), 5)),
            (i, l) in (prop::collection::vec(-3..4_i32, 5), prop::collection::vec(prop_oneof![-3..4_i64, (1_i64 << 60)..i64::MAX], 5)),
        ) {
            // Errors of constants occur when they are parsed.
            let doc = RawDocumentBuf::try_from(&doc! { "": &expr }).unwrap();
            let Ok(expr) = Expr::parse(Doc::parse(doc.as_bytes()).unwrap().get("").unwrap(), &globals()) else { return Ok(()) };
            let expr = BoundExpr::new(expr, globals());
            let mut block = Block::new(5);
            let mut mixed = ColumnBuilder::new();
            let one = OwnedValue::double(1.0);
            (0..5).for_each(|row| mixed.push(if row == 3 { Value::NULL } else { one.view() }));
            block.set_column("h", Column::new(ColumnData::F64(a.clone()), Some(Bitmap::from_fn(5, |row| row != 2))));
            for (name, data) in [("a", ColumnData::F64(a)), ("b", ColumnData::F64(b)), ("i", ColumnData::I32(i)), ("l", ColumnData::I64(l))] {
                block.set_column(name, Column::new(data, None));
            }
            block.set_column("s", mixed.finish());
            let mut expected = Vec::new();
            let one_by_one = expr.for_each_row(&block, &mut (0..5), &mut |_, value| expected.push(bits(value)));
            match expr.column(&block) {
                Ok(column) => {
                    prop_assert!(one_by_one.is_ok());
                    let found: Vec<String> = (0..5).map(|row| bits(column.value(row, &mut Vec::new()))).collect();
                    prop_assert_eq!(found, expected);
                }
                Err(error) => prop_assert_eq!(error.code, one_by_one.unwrap_err().code),
            }
        }
    }

    #[test]
    fn doubles_are_computed_a_column_at_a_time_and_what_can_fail_is_not() {
        let mut block = Block::new(2);
        block.set_column("a", Column::new(ColumnData::F64(vec![1.5, 0.0]), None));
        block.set_column("i", Column::new(ColumnData::I32(vec![2, -3]), None));
        let computed = |expr: Bson| {
            let mut result = Vec::new();
            doubles_if_loaded(bound(&expr).expr(), &block, &mut result).then_some(result)
        };
        assert_eq!(computed(doc! { "$add": ["$a", 1, "$i"] }.into()), Some(vec![4.5, -2.0]));
        assert_eq!(
            computed(doc! { "$divide": [{ "$abs": { "$multiply": ["$a", -2] } }, "$i"] }.into()),
            Some(vec![1.5, 0.0])
        );
        let hot = doc! { "$and": [{ "$gt": ["$a", 1] }, { "$not": { "$lt": ["$i", 0] } }] };
        assert_eq!(computed(doc! { "$cond": [hot, "$a", 7.0] }.into()), Some(vec![1.5, 7.0]));
        for expr in [
            doc! { "$cond": [{ "$gt": ["$a", 1] }, 1, 0] },
            doc! { "$cond": ["$a", 1.0, 0.0] },
            doc! { "$add": [1.0, { "$gt": ["$a", 1] }] },
            doc! { "$gt": ["$a", 1] },
            doc! { "$divide": ["$i", "$a"] },
            doc! { "$add": ["$i", 1] },
            doc! { "$add": ["$a", "$none"] },
            doc! { "$sqrt": { "$subtract": ["$a", 9] } },
            doc! { "$abs": "$i" },
            doc! { "$add": "$a" },
        ] {
            assert_eq!(computed(expr.clone().into()), None, "{expr}");
        }
    }
}
