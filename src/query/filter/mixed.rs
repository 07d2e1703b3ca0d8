//! Evaluates a test on a BSON column by columns of one type that are made of it.

use ::kernels::tagged::{self, NumbersApart};

use super::bounds;
use super::lists::element;
use super::tree::Test;
use crate::block::{Bitmap, Column, ColumnData, kernels, of_kind};
use crate::listed::IntoList;
use crate::query::expr::{CompareOp, reached};
use crate::value::{Component, Kind, Number, Value, sort_by};

impl Test {
    /// Leaves the rows in which a path reaches a value that passes, in a BSON column, if columns of one type can be made of
    /// it. False if it must be tested row by row. What it says of absent cells means nothing.
    // Loaded later.
    #[inline(never)]
    pub(super) fn narrow_mixed_if_loaded(&self, column: &Column, rest: &[Component], passing: &mut Bitmap) -> bool {
        if !rest.is_empty() {
            if let [number] = rest
                && self.takes_positions()
                && let Some(element) = element(column, number)
            {
                self.narrow_column(&element, &[], passing);
                return true;
            }
            if let Some(selected) = self.select_below(column, rest) {
                *passing = selected;
                return true;
            }
            let reached = reached_again(column, rest);
            let reached = reached.or_else(|| column.reached_by(&rest.iter().map(Component::name).listed()));
            return reached.map(|reached| self.narrow_column(&reached, &[], passing)).is_some();
        }
        let selected = self.select_decimals(column).or_else(|| self.select_arrays(column));
        let selected = selected.or_else(|| self.select_binary(column));
        selected.map(|selected| *passing = selected).is_some()
    }

    /// Leaves the numbers that pass, in a BSON column of doubles, integers and nulls. False if it is another one, or if the test is no
    /// comparison with a number.
    // Loaded later.
    #[inline(never)]
    pub(super) fn narrow_numbers_if_loaded(&self, column: &Column, rows: &mut Bitmap) -> bool {
        self.select_numbers_apart(column).map(|passing| rows.and(&passing)).is_some()
    }

    fn select_numbers_apart(&self, column: &Column) -> Option<Bitmap> {
        let (ColumnData::Bson(cells), Test::Compare(compare)) = (column.data(), self) else { return None };
        if !compare.value().kind().is_number() {
            return None;
        }
        let (kinds, words) = cells.to_words();
        let NumbersApart { doubles, integers, .. } = tagged::numbers_apart(&kinds, &words)?;
        // Where a value has the other type, its cell is zero.
        let mut passing = compare.select(&Column::new(ColumnData::F64(doubles), None))?;
        passing.and(&of_kind(&kinds, Kind::Double.byte()));
        let mut others = compare.select(&Column::new(ColumnData::I64(integers), None))?;
        let mut are_integers = of_kind(&kinds, Kind::Int32.byte());
        are_integers.or(&of_kind(&kinds, Kind::Int64.byte()));
        others.and(&are_integers);
        passing.or(&others);
        Some(passing)
    }

    /// The values that are, or are among, some binary data, such as UUIDs, if the first value is binary data.
    fn select_binary(&self, column: &Column) -> Option<Bitmap> {
        let ColumnData::Bson(cells) = column.data() else { return None };
        let is_binary = |tagged: &[u8]| tagged.first() == Some(&Kind::Binary.byte());
        let mut wanted: Vec<Vec<u8>> = Vec::new();
        let mut add = |value: Value<'_>| {
            let mut tagged = Vec::new();
            value.append_tagged(&mut tagged);
            if is_binary(&tagged) {
                wanted.push(tagged);
            }
        };
        match self {
            _ if !is_binary(&cells.bytes) => return None,
            Test::Compare(compare) if compare.op() == CompareOp::Eq => add(compare.value()),
            Test::In(set) => set.values().iter().for_each(|value| add(value.view())),
            _ => return None,
        }
        sort_by(&mut wanted, Ord::cmp);
        let mut scratch = Vec::new();
        Some(Bitmap::from_fn(column.len(), |row| match cells.get(row) {
            cell if is_binary(cell) => wanted.binary_search_by(|known| known.as_slice().cmp(cell)).is_ok(),
            _ => self.matches_below(column.value(row, &mut scratch), &[]),
        }))
    }

    /// The decimals that pass, if all of them have one exponent.
    fn select_decimals(&self, column: &Column) -> Option<Bitmap> {
        let Test::Compare(compare) = self else { return None };
        let operand = Number::of(compare.value())?;
        let (cells, exponent) = column.decimals(0..column.len())?;
        let bounds = bounds::decimals(compare.op(), operand, exponent);
        Some(
            bounds
                .map_or_else(|| Bitmap::filled(cells.len(), false), |(low, high)| kernels::between(&cells, low, high)),
        )
    }
}

/// What a path reaches in each value, if somebody has asked before, and if no array is on the path: a filter passes if any of its
/// elements does.
fn reached_again(column: &Column, rest: &[Component]) -> Option<Column> {
    let names: Vec<Box<str>> = rest.iter().map(|component| component.name().into()).listed();
    let reached = column.reached_again(&names, || reached(column, &names))?;
    let values = match reached.data() {
        ColumnData::Dictionary(_, values) => values.data(),
        data => data,
    };
    // The path of an expression leads through arrays to arrays.
    let array = [Kind::Array.byte()];
    let has_arrays =
        matches!(values, ColumnData::Bson(cells) if (0..cells.len()).any(|at| cells.get(at).starts_with(&array)));
    (!has_arrays).then_some(reached)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{check, check_below};
    use bson::{RawBson, RawDocumentBuf, cstr, rawbson};

    #[test]
    fn numbers_of_all_types_are_compared_exactly() {
        let near = 9_007_199_254_740_992_i64;
        let values = [
            rawbson!(near),
            rawbson!(near + 1),
            rawbson!(near as f64),
            rawbson!(i64::MAX),
            rawbson!(3),
            rawbson!(2.5),
            RawBson::Null,
            rawbson!(f64::NAN),
            rawbson!(-7_i64),
            rawbson!(0),
            rawbson!(-0.0),
            rawbson!(f64::INFINITY),
        ];
        let operands = [
            rawbson!(near + 1),
            rawbson!(near as f64),
            rawbson!(2.5),
            rawbson!(0),
            rawbson!(f64::NAN),
            rawbson!(3_i64),
        ];
        for operator in ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"] {
            let filters = operands.clone().map(|operand| {
                let mut doc = RawDocumentBuf::new();
                doc.append(bson::raw::CString::try_from(operator).unwrap(), operand);
                RawBson::Document(doc)
            });
            check(&values, &filters);
        }
    }

    /// Filters on texts, numbers and arrays.
    fn filters() -> Vec<RawBson> {
        let like = RawBson::RegularExpression(bson::Regex { pattern: cstr!("^a").into(), options: cstr!("").into() });
        vec![
            rawbson!("a"),
            rawbson!({ "$ne": "b" }),
            rawbson!({ "$all": ["a", "b"] }),
            rawbson!({ "$in": ["c", 2, null] }),
            rawbson!({ "$in": ["c", ["a"]] }),
            rawbson!({ "$nin": ["a", []] }),
            rawbson!(["a"]),
            rawbson!({ "$gte": "b" }),
            rawbson!({ "$gt": 1 }),
            rawbson!({ "$lt": [2] }),
            rawbson!(null),
            rawbson!({ "$gt": (RawBson::MinKey) }),
            rawbson!({ "$lte": (RawBson::MaxKey) }),
            like,
            rawbson!({ "$mod": [2, 0] }),
            rawbson!({ "$type": "array" }),
            rawbson!({ "$type": "string" }),
            rawbson!({ "$size": 2 }),
            rawbson!({ "$exists": true }),
            rawbson!({ "$elemMatch": { "$gt": "a" } }),
            rawbson!({ "$geoWithin": { "$box": [[0, 0], [2, 2]] } }),
        ]
    }

    #[test]
    fn arrays_pass_by_their_elements_and_some_tests_by_the_whole_array() {
        let filters = filters();
        check(&[rawbson!(["a", "b"]), rawbson!([]), rawbson!(["b"]), rawbson!(["abc", "a", "c"])], &filters);
        check(&[rawbson!([1, 1]), rawbson!([2.5]), rawbson!([3, 1]), rawbson!([1.5, 0.5])], &filters);
        check(&[rawbson!(["a", 1, ["a"]]), rawbson!([null]), rawbson!([[]]), rawbson!([2_i64, ["a", "b"]])], &filters);
        check(&[rawbson!(["a"]), rawbson!("a"), rawbson!(null), rawbson!({ "a": 1 })], &filters);
    }

    /// Some of these filters ask a column for the first time, and the others again.
    #[test]
    fn filters_on_paths_pass_what_they_pass_in_each_row_whenever_they_are_asked() {
        let with = |x: RawBson| rawbson!({ "x": x, "y": 1 });
        let below = |x: RawBson| rawbson!({ "x": { "y": x } });
        let texts = ["a", "b", "abc", "c"].map(RawBson::from);
        let mixed = [rawbson!("a"), rawbson!(2), rawbson!(null), rawbson!({ "a": 1 }), rawbson!(true)];
        let arrays = [rawbson!(["a", "b"]), rawbson!("a"), rawbson!([["a"]]), rawbson!([])];
        let lists = [
            rawbson!([{ "x": "a", "y": "b" }, { "x": 2 }]),
            rawbson!({ "x": [{ "y": "a" }, 1] }),
            rawbson!([[{ "x": "a" }]]),
        ];
        let others = [rawbson!({}), rawbson!("a"), rawbson!({ "y": 1 }), rawbson!({ "x": null })];
        for values in [texts.as_slice(), &mixed, &arrays] {
            let inner = |make: &dyn Fn(RawBson) -> RawBson| values.iter().cloned().map(make).collect::<Vec<_>>();
            for (path, mut all) in [("v.x", inner(&with)), ("v.x.y", inner(&below))] {
                check_below(path, &all, &filters());
                all.extend(others.clone());
                check_below(path, &all, &filters());
                all.extend(lists.clone());
                check_below(path, &all, &filters());
            }
        }
        check_below("v.0", &[rawbson!(["a"]), rawbson!({ "0": "a" }), rawbson!([{ "0": "b" }])], &filters());
    }

    #[test]
    fn decimals_of_one_exponent_are_compared_with_numbers_of_all_types() {
        let decimal = |text: &str| RawBson::Decimal128(text.parse().unwrap());
        let long = "92233720368547758.08";
        let operands = [
            rawbson!(5),
            rawbson!(5_i64),
            rawbson!(0.1),
            rawbson!(0.0),
            rawbson!(f64::NAN),
            rawbson!(f64::INFINITY),
            rawbson!(-1e300),
            rawbson!("5"),
            rawbson!(null),
            decimal("0.1"),
            decimal("-0"),
            decimal("5.000"),
            decimal("5.0001"),
            decimal(long),
            decimal("NaN"),
            decimal("-Infinity"),
        ];
        let mut filters = Vec::new();
        for operand in operands {
            for name in ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"] {
                let mut operators = RawDocumentBuf::new();
                operators.append(bson::raw::CString::try_from(name).unwrap(), operand.clone());
                filters.push(RawBson::Document(operators));
            }
        }
        filters.push(rawbson!({ "$in": [5, (decimal("0.1"))] }));
        let values = |texts: &[&str]| texts.iter().map(|text| decimal(text)).collect::<Vec<_>>();
        check(&values(&["5.00", "0.10", "-0.10", "0.00", "92233720368547758.07", "-92233720368547758.07"]), &filters);
        check(&values(&["5.00", "0.10", "5", "0.1", "-0.00", "NaN", "Infinity"]), &filters);
        check(&values(&["5.00", "0.10", long, "-0.10", "1E+6000"]), &filters);
        check(&[decimal("5.00"), rawbson!(5), rawbson!(0.1), decimal("0.10")], &filters);
    }

    #[test]
    fn binary_data_is_looked_up_by_its_bytes() {
        let data = |subtype: u8, bytes: &[u8]| {
            RawBson::Binary(bson::Binary { subtype: subtype.into(), bytes: bytes.to_vec() })
        };
        let values =
            [data(4, &[1; 16]), data(4, &[2; 16]), data(0, &[1; 16]), data(0, &[1; 3]), rawbson!(null), rawbson!(7)];
        let mut array = bson::RawArrayBuf::new();
        array.push(data(4, &[1; 16]));
        let of = |list: &[RawBson]| {
            let mut doc = RawDocumentBuf::new();
            doc.append(cstr!("$in"), bson::RawArrayBuf::from_iter(list.iter().cloned()));
            RawBson::Document(doc)
        };
        let filters = [
            values[0].clone(),
            values[2].clone(),
            of(&values[..2]),
            of(&values[2..]),
            of(&[values[3].clone(), rawbson!(7)]),
        ];
        check(&values, &filters);
        check(&[&values[..], &[RawBson::Array(array)]].concat(), &filters);
    }
}
