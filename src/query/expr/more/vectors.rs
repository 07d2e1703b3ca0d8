//! Arithmetic of doubles a column at a time: what the operators of `arithmetic.rs` do with values one by one.

use std::borrow::Cow;

use super::super::operators::Op;
use super::super::tree::{Expr, Variable};
use crate::block::{Block, ColumnData};
use crate::value::Number;

/// The operands of a step, one for each row.
struct Operand<'a> {
    values: Cow<'a, [f64]>,
    /// False where they are integers, of which two do not come to a double.
    is_double: bool,
}

/// What an expression comes to for all rows of a block where nothing but doubles and integers that all rows have go into it, and doubles
/// come out of each step. False where values have to be looked at one by one, or the second half of the module is not there.
#[inline(never)]
pub fn doubles_if_loaded(expr: &Expr, block: &Block, result: &mut Vec<f64>) -> bool {
    match operand(expr, block) {
        Some(Operand { values: Cow::Owned(values), is_double: true }) => {
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
            let is_double = matches!(number, Number::Double(_));
            Some(Operand { values: vec![number.near_double(); block.rows()].into(), is_double })
        }
        Expr::Field(Variable::Root, path) => {
            let [name] = path.as_slice() else { return None };
            let column = block.column(name).filter(|column| column.presence().is_none())?;
            let (values, is_double) = match column.data() {
                ColumnData::F64(values) => (Cow::Borrowed(values.as_slice()), true),
                ColumnData::I32(values) => (values.iter().map(|n| f64::from(*n)).collect(), false),
                ColumnData::I64(values) => (values.iter().map(|n| *n as f64).collect(), false),
                _ => return None,
            };
            Some(Operand { values, is_double })
        }
        Expr::Call(operator, arguments) => {
            let mut operands = arguments.iter().map(|argument| operand(argument, block));
            let mut sum = operands.next()??;
            match operator.op {
                Op::Add | Op::Subtract | Op::Multiply | Op::Divide | Op::Mod if arguments.len() > 1 => {
                    for operand in operands {
                        sum = step(operator.op, sum, operand?)?;
                    }
                    Some(sum)
                }
                Op::Abs => each(sum, f64::abs),
                Op::Ceil => each(sum, f64::ceil),
                Op::Floor => each(sum, f64::floor),
                // Of what is below zero there is none.
                Op::Sqrt if !sum.values.iter().any(|x| *x < 0.0) => each(sum, f64::sqrt),
                _ => None,
            }
        }
        _ => None,
    }
}

fn each(operand: Operand<'_>, function: fn(f64) -> f64) -> Option<Operand<'_>> {
    let mut values = Some(operand.values).filter(|_| operand.is_double)?.into_owned();
    values.iter_mut().for_each(|x| *x = function(*x));
    Some(Operand { values: values.into(), is_double: true })
}

/// `None` where no double comes of it, or nothing does.
fn step<'a>(op: Op, left: Operand<'a>, right: Operand<'a>) -> Option<Operand<'a>> {
    let divides = matches!(op, Op::Divide | Op::Mod);
    if !(left.is_double || right.is_double) || divides && right.values.contains(&0.0) {
        return None;
    }
    let mut values = left.values.into_owned();
    let pairs = values.iter_mut().zip(&*right.values);
    match op {
        Op::Add => pairs.for_each(|(x, y)| *x += y),
        Op::Subtract => pairs.for_each(|(x, y)| *x -= y),
        Op::Multiply => pairs.for_each(|(x, y)| *x *= y),
        Op::Divide => pairs.for_each(|(x, y)| *x /= y),
        _ => pairs.for_each(|(x, y)| *x %= y),
    }
    Some(Operand { values: values.into(), is_double: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Bitmap, Column, ColumnBuilder};
    use crate::query::expr::BoundExpr;
    use crate::query::filter::samples::globals;
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
                (prop::sample::select(vec!["$abs", "$ceil", "$floor", "$sqrt"]), inner)
                    .prop_map(move |(name, a)| call(name, vec![a])),
            ]
        })
    }

    /// What a value is to the last bit.
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
            // Errors of constants come when they are parsed.
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
        for expr in [
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
