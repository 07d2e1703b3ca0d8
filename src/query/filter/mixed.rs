//! Evaluates a test on a BSON column by columns of one type that are made of it.

use ::kernels::parts;
use ::kernels::tagged::{self, NumbersApart};

use super::arrays::ElemMatch;
use super::bounds;
use super::tree::{Filter, Test};
use crate::block::{ArrayElements, Bitmap, Column, ColumnData, Objects, kernels, of_kind};
use crate::listed::IntoList;
use crate::query::expr::reached;
use crate::value::{Component, Doc, Kind, Number, OwnedValue, Value};

impl Test {
    /// Leaves the rows in which a path reaches a value that passes, in a BSON column, if columns of one type can be made of
    /// it. False if it must be tested row by row. What it says of absent cells means nothing.
    // Loaded later.
    #[inline(never)]
    pub(super) fn narrow_mixed_if_loaded(&self, column: &Column, rest: &[Component], passing: &mut Bitmap) -> bool {
        if !rest.is_empty() {
            if let [number] = rest
                && let Some(element) = element(column, number)
            {
                self.narrow_column(&element, &[], passing);
                return true;
            }
            let reached = reached_again(column, rest);
            let reached = reached.or_else(|| column.reached_by(&rest.iter().map(Component::name).listed()));
            return reached.map(|reached| self.narrow_column(&reached, &[], passing)).is_some();
        }
        let selected = self.select_decimals(column).or_else(|| self.select_arrays(column));
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

    /// Leaves the rows in which a path leads to an array in objects that passes, or to an element by its number. False if it leads elsewhere,
    /// or if rows must be tested one by one.
    // Loaded later.
    #[inline(never)]
    pub(super) fn narrow_arrays_if_loaded(&self, objects: &Objects, rest: &[Component], rows: &mut Bitmap) -> bool {
        let names = |rest| <[Component]>::iter(rest).map(Component::name);
        if let Some((last, path)) = rest.split_last()
            && let Some(element) = last.index().and_then(|number| objects.element(names(path), number))
        {
            self.narrow_column(element, &[], rows);
            return true;
        }
        let Some((list, present)) = objects.arrays(names(rest)) else { return false };
        let Some(mut passing) = self.select_lists(&list) else { return false };
        passing.and(&present);
        if self.matches(None) {
            let mut absent = present;
            absent.invert();
            passing.or(&absent);
        }
        rows.and(&passing);
        true
    }

    /// The arrays that pass, if all values are arrays, and if these pass only by one of their elements.
    fn select_arrays(&self, column: &Column) -> Option<Bitmap> {
        column.elements().and_then(|list| self.select_lists(&list))
    }

    fn select_lists(&self, list: &ArrayElements) -> Option<Bitmap> {
        if let Test::Size(size) = self {
            return Some(Bitmap::from_fn(list.ends.len(), |row| list.range(row).len() == *size));
        }
        let is_array = |value: Value<'_>| value.kind() == Kind::Array;
        let tests = match self {
            Test::ElemMatch(ElemMatch::Value(tests)) => Some(&**tests),
            _ => None,
        };
        let may_be = match self {
            Test::Compare(compare) => !is_array(compare.value()),
            Test::In(set) => !set.values().iter().map(OwnedValue::view).any(is_array),
            // A place may be an array of two numbers.
            _ => tests.is_some() || matches!(self, Test::Regex(_) | Test::Mod(_)),
        };
        if !may_be || self.matches(Some(Value::new_checked(Kind::Array, Doc::EMPTY.as_bytes()))) {
            return None;
        }
        let (index, values) = match list.values.data() {
            ColumnData::Dictionary(index, values) => (Some(index), &**values),
            _ => (None, &list.values),
        };
        let selected = match tests {
            Some(tests) => tests.select_elements(values),
            None => self.select(values),
        };
        let mut scratch = Vec::new();
        let mut passing = selected.unwrap_or_else(|| {
            // An array in an array is one of its elements, as it is.
            Bitmap::from_fn(values.len(), |row| {
                let value = values.value(row, &mut scratch);
                tests.map_or_else(|| self.matches(value), |tests| value.is_some_and(|value| tests.passes(value)))
            })
        });
        if let Some(index) = index {
            passing = kernels::entries(index, &passing);
        }
        Some(Bitmap::from_fn(list.ends.len(), |row| list.range(row).any(|at| passing.get(at))))
    }
}

impl Filter {
    /// The elements that pass tests of one path, as in `Filter::passes`; `None` if a test has no kernel for them.
    fn select_elements(&self, elements: &Column) -> Option<Bitmap> {
        let any = |children: &[Filter]| {
            let mut passing = Bitmap::filled(elements.len(), false);
            for child in children {
                passing.or(&child.select_elements(elements)?);
            }
            Some(passing)
        };
        match self {
            Filter::And(children) => {
                let mut passing = Bitmap::filled(elements.len(), true);
                for child in children {
                    passing.and(&child.select_elements(elements)?);
                }
                Some(passing)
            }
            Filter::Or(children) => any(children),
            Filter::Nor(children) => any(children).map(inverted),
            Filter::Not(child) => child.select_elements(elements).map(inverted),
            Filter::Field(_, test) => test.select(elements),
            _ => None,
        }
    }
}

fn inverted(mut rows: Bitmap) -> Bitmap {
    rows.invert();
    rows
}

/// The element with a number in each array. `None` if there may be objects among the elements, to whose fields it may lead as well.
fn element(column: &Column, number: &Component) -> Option<Column> {
    let number = number.index().filter(|_| column.begins_with_array())?;
    let list = column.elements()?;
    list.values.kind()?;
    list.at(&parts::places(&list.ends, i64::try_from(number).ok()?))
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
    use super::super::samples::{filter, owned};
    use crate::block::samples::column_of;
    use crate::block::{Block, Column, Objects, ShapePart, TextNumbers};
    use crate::value::{DocWriter, Kind};
    use bson::{RawBson, RawDocumentBuf, cstr, rawbson};

    /// All filters, over the values alone and over the same values with numbers, give what they give for each row.
    #[track_caller]
    fn check(values: &[RawBson], filters: &[RawBson]) {
        check_below("v", values, filters);
    }

    #[track_caller]
    fn check_below(path: &str, values: &[RawBson], filters: &[RawBson]) {
        let cell = |row: usize| (row % 9 != 4).then(|| owned(values[row * row % values.len()].clone()));
        let column = column_of(&(0..200).map(cell).collect::<Vec<_>>());
        for column in [Some(column.clone()), TextNumbers::of(&column)].into_iter().flatten() {
            let mut block = Block::new(column.len());
            block.set_column("v", column);
            for operators in filters {
                let mut doc = RawDocumentBuf::new();
                doc.append(bson::raw::CString::try_from(path).unwrap(), operators.clone());
                let filter = filter(&doc);
                let selected = filter.select(&block).unwrap();
                for row in 0..block.rows() {
                    let mut writer = DocWriter::new();
                    block.write_row(row, &mut writer);
                    let matches = filter.matches_doc(writer.finish().view()).unwrap();
                    assert_eq!(selected.get(row), matches, "{doc:?} {}", row * row % values.len());
                }
            }
        }
    }

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
    fn arrays_in_objects_that_are_columns_pass_as_they_do_row_by_row() {
        let scalar = |values: [Option<RawBson>; 6]| column_of(&values.map(|value| value.map(owned)));
        let double = |x: f64| Some(RawBson::Double(x));
        let xs = scalar([double(1.0), double(2.0), double(0.5), None, double(1.0), double(9.0)]);
        let ys = scalar([double(4.0), None, double(1.0), None, Some(rawbson!(3)), double(2.0)]);
        let names = scalar([0, 1, 2, 3, 4, 5].map(|n| Some(rawbson!(["a", "b"][n % 2]))));
        let parts = [
            ShapePart::Scalar("n".into()),
            ShapePart::Open(Kind::Array, "p".into()),
            ShapePart::Scalar("0".into()),
            ShapePart::Scalar("1".into()),
            ShapePart::Close(false),
        ];
        let mut block = Block::new(6);
        block.set_column("o", Column::of_objects(Objects::new(parts.into(), vec![names, xs, ys])));
        for test in [
            rawbson!(1.0),
            rawbson!({ "$gt": 1 }),
            rawbson!({ "$gt": 1, "$lt": 3 }),
            rawbson!({ "$not": { "$gt": 1 } }),
            rawbson!({ "$in": [9, null] }),
            rawbson!({ "$elemMatch": { "$gt": 1, "$lt": 3 } }),
            rawbson!({ "$elemMatch": { "$not": { "$gte": 2 } } }),
            rawbson!({ "$elemMatch": { "$nin": [1, 4] } }),
            rawbson!({ "$elemMatch": { "x": 1 } }),
            rawbson!({ "$size": 2 }),
            rawbson!({ "$size": 0 }),
            rawbson!({ "$exists": false }),
            rawbson!({ "$type": "array" }),
            rawbson!({ "$type": "int" }),
            rawbson!(null),
            rawbson!([1.0, 4.0]),
            rawbson!({ "$geoWithin": { "$box": [[0, 0], [2, 2]] } }),
            rawbson!({ "$mod": [2, 0] }),
        ] {
            for path in ["o.p", "o.p.0", "o.p.1", "o.p.2", "o.p.x", "o.p.1.0", "o.n.0"] {
                let mut doc = RawDocumentBuf::new();
                doc.append(bson::raw::CString::try_from(path).unwrap(), test.clone());
                let filter = filter(&doc);
                let selected = filter.select(&block).unwrap();
                for row in 0..block.rows() {
                    let mut writer = DocWriter::new();
                    block.write_row(row, &mut writer);
                    let matches = filter.matches_doc(writer.finish().view()).unwrap();
                    assert_eq!(selected.get(row), matches, "{doc:?} {row}");
                }
            }
        }
    }
}
