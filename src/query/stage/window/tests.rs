//! Window functions over vectors against the same functions value by value.

use std::ops::Range;

use bson::rawdoc;
use proptest::prelude::*;
use proptest::sample::select;

use super::bounds::Window;
use super::cells::part_of;
use super::function::{Partition, WindowFunction};
use super::kernel::{Kernel, accumulated};
use super::slide::over_windows;
use crate::block::samples::column_of as column;
use crate::block::{Bitmap, Block, Column, ColumnBuilder, ColumnData};
use crate::error::ErrorCode;
use crate::query::expr::samples::globals;
use crate::query::sort::SortSpec;
use crate::query::stage::accumulator::{Accumulation, Inputs};
use crate::query::stage::model::Others;
use crate::query::stage::parse::PipelineParser;
use crate::query::stage::spec::Step;
use crate::value::{Collation, Decimal, Doc, DocBuf, DocWriter, Kind, OwnedValue, Value};

type Cells = Vec<Option<OwnedValue>>;

/// The same cells, as a dictionary if there is one present in each row.
fn dictionary(column: &Column) -> Column {
    match column.presence() {
        Some(_) => column.clone(),
        None => {
            let index = (0..u32::try_from(column.len()).unwrap()).collect();
            Column::new(ColumnData::Dictionary(index, Box::new(column.clone())), None)
        }
    }
}

/// Cells as texts in which zeros differ by sign and all NaNs are the same.
fn shown(column: &Column) -> Vec<String> {
    let mut scratch = Vec::new();
    (0..column.len())
        .map(|row| match column.value(row, &mut scratch) {
            None => "missing".to_owned(),
            Some(value) if value.kind() == Kind::Double => format!("{:?}", value.as_f64().unwrap()),
            Some(value) => format!("{:?} {:?}", value.kind(), value.bytes()),
        })
        .collect()
}

/// Sums of all but infinities are exact before they are rounded, so their order does not matter.
fn double() -> impl Strategy<Value = f64> + Clone {
    double_or(&[f64::INFINITY, f64::NEG_INFINITY])
}

/// Sums of these overflow. What comes then to an infinity of the other sign depends on the order, so there is none.
fn great_double() -> impl Strategy<Value = f64> + Clone {
    double_or(&[1e308, 1e308, f64::INFINITY])
}

fn double_or(others: &[f64]) -> impl Strategy<Value = f64> + Clone + use<> {
    let hostile = [&[0.0, -0.0, 0.1, -0.3, 1.0, 1e16, -1e16], others].concat();
    prop_oneof![
        8 => (-50..50_i32).prop_map(|n| f64::from(n) / 4.0),
        3 => -1e3..1e3,
        2 => select(hostile),
        1 => Just(f64::NAN),
    ]
}

fn decimal(text: &str) -> OwnedValue {
    Value::parse(Kind::Decimal128, &text.parse::<bson::Decimal128>().unwrap().bytes()).unwrap().to_owned()
}

/// Columns of one type, with gaps or without, and of several types.
fn cells(length: Range<usize>) -> impl Strategy<Value = Cells> {
    let int = prop_oneof![4 => -9..9_i32, 1 => select(vec![i32::MAX, i32::MIN])];
    let long = prop_oneof![4 => -9..9_i64, 1 => select(vec![i64::MAX, i64::MIN, 1 << 53])];
    let numbers = prop_oneof![
        4 => double().prop_map(OwnedValue::double).boxed(),
        2 => int.prop_map(OwnedValue::int32).boxed(),
        2 => long.clone().prop_map(OwnedValue::int64).boxed(),
        1 => (-9..9_i64).prop_map(OwnedValue::date).boxed(),
    ];
    // A generator of one type for the whole column.
    let kinds: Vec<BoxedStrategy<OwnedValue>> = vec![
        double().prop_map(OwnedValue::double).boxed(),
        great_double().prop_map(OwnedValue::double).boxed(),
        prop_oneof![4 => -9..9_i32, 1 => select(vec![i32::MAX, i32::MIN])].prop_map(OwnedValue::int32).boxed(),
        long.prop_map(OwnedValue::int64).boxed(),
        (-9..9_i64).prop_map(OwnedValue::date).boxed(),
        numbers.boxed(),
        prop_oneof![double().prop_map(OwnedValue::double), (-9..9_i32).prop_map(OwnedValue::int32)].boxed(),
        prop_oneof![Just(OwnedValue::string("x")), Just(OwnedValue::bool(true)), Just(OwnedValue::int32(2))].boxed(),
        "[a-c]{0,2}".prop_map(|text| OwnedValue::string(&text)).boxed(),
        any::<bool>().prop_map(OwnedValue::bool).boxed(),
        select(vec!["1", "1.0", "-2.50", "-2.5", "NaN", "3E+1"]).prop_map(decimal).boxed(),
    ];
    (select(kinds), 0..4_u32, 0..4_u32).prop_flat_map(move |(value, missing, null)| {
        let cell = prop_oneof![
            8 => value.prop_map(Some),
            missing => Just(None),
            null => Just(Some(OwnedValue::null())),
        ];
        proptest::collection::vec(cell, length.clone())
    })
}

/// Windows of rows: most of them sliding or growing, some that jump.
fn windows(rows: usize) -> BoxedStrategy<Vec<Range<usize>>> {
    let clamp = move |n: i64| usize::try_from(n.clamp(0, rows as i64)).unwrap();
    let sliding = (-8..8_i64, 0..9_i64).prop_map(move |(low, length)| {
        (0..rows as i64)
            .map(|row| {
                let end = clamp(row + low + length);
                clamp(row + low).min(end)..end
            })
            .collect()
    });
    let growing = (-3..4_i64).prop_map(move |high| (0..rows as i64).map(|row| 0..clamp(row + high)).collect());
    let shrinking = (-3..4_i64).prop_map(move |low| (0..rows as i64).map(|row| clamp(row + low)..rows).collect());
    let any = proptest::collection::vec((0..=rows, 0..=rows), rows)
        .prop_map(|pairs| pairs.into_iter().map(|(a, b)| a.min(b)..a.max(b)).collect());
    prop_oneof![4 => sliding, 1 => growing, 1 => shrinking, 2 => any].boxed()
}

fn accumulation(operator: &str) -> (Option<Kernel>, Accumulation) {
    let argument = match operator {
        "$count" => rawdoc! { "x": {} },
        "$median" => rawdoc! { "x": { "input": "$v", "method": "continuous" } },
        "$percentile" => rawdoc! { "x": { "input": "$v", "p": [0.0, 0.3, 1.0], "method": "discrete" } },
        "$firstN" | "$lastN" | "$minN" | "$maxN" => rawdoc! { "x": { "input": "$v", "n": 2 } },
        "$top" | "$bottom" => rawdoc! { "x": { "output": "$v", "sortBy": { "a": 1, "b": -1 } } },
        "$topN" | "$bottomN" => rawdoc! { "x": { "output": "$v", "sortBy": { "a": -1, "b": 1 }, "n": 3 } },
        _ => rawdoc! { "x": "$v" },
    };
    let argument = Doc::parse(argument.as_bytes()).unwrap().get("x").unwrap();
    let kernel = Kernel::of(operator, argument, &globals()).unwrap();
    (kernel, Accumulation::parse("x", operator, argument, &globals()).unwrap())
}

/// Each window by itself, row by row.
fn one_by_one(spec: &Accumulation, inputs: &Inputs<'_>, windows: &[Range<usize>]) -> Column {
    let mut values = ColumnBuilder::new();
    for window in windows {
        let mut accumulator = spec.start();
        accumulator.grow(spec.count(&|| None).unwrap());
        for row in window.clone() {
            accumulator.add(0, inputs, row..row + 1, None).unwrap();
        }
        values.push(accumulator.value(0).view());
    }
    values.finish()
}

/// A window over a sort by `t`.
fn window(spec: &bson::RawDocumentBuf) -> Window {
    let (globals, sort) = (globals(), rawdoc! { "t": 1 });
    let sort = SortSpec::parse(Doc::parse(sort.as_bytes()).unwrap().as_value(), &Collation::default()).unwrap();
    let spec = Doc::parse(spec.as_bytes()).unwrap().as_value();
    Window::parse(spec, Some(&sort), &PipelineParser::new(&globals)).unwrap()
}

/// Sort keys in order: dates, doubles or integers, with ties.
fn keys(rows: usize) -> impl Strategy<Value = (Column, bool)> {
    let day = 86_400_000_i64;
    let steps = proptest::collection::vec(0..4_i64, rows);
    (steps, 0..4_u8, select(vec![1, 1000, day / 2, 9 * day]), any::<bool>()).prop_map(
        move |(steps, kind, scale, is_distinct)| {
            let mut place = 1_700_000_000_000 / scale;
            let cells: Vec<i64> = steps
                .iter()
                .map(|step| {
                    place += step + i64::from(is_distinct);
                    place * scale
                })
                .collect();
            let data = match kind {
                0 => ColumnData::F64(cells.iter().map(|cell| *cell as f64 / 8.0).collect()),
                1 => ColumnData::I32(cells.iter().map(|cell| (*cell / scale % 1_000_000) as i32).collect()),
                2 => ColumnData::I64(cells),
                _ => ColumnData::Date(cells),
            };
            (Column::new(data, None), kind == 3)
        },
    )
}

#[test]
fn a_part_of_a_block_holds_only_the_entries_that_it_uses() {
    let values = column(&(0..5).map(|n| Some(OwnedValue::int32(n))).collect::<Vec<_>>());
    let present = Bitmap::from_fn(6, |row| row != 4);
    let mut block = Block::new(6);
    block.set_column("d", Column::new(ColumnData::Dictionary(vec![4, 1, 1, 3, 0, 3], Box::new(values)), Some(present)));
    block.set_column("n", column(&(0..6).map(|n| Some(OwnedValue::int64(n))).collect::<Vec<_>>()));
    block.set_weights(Some(vec![1, 2, 3, 4, 5, 6]));
    for (range, entries) in [(1..4, 2), (4..6, 2), (0..6, 5), (0..1, 1), (2..2, 0)] {
        let (found, wanted) = (part_of(&block, range.clone()), block.slice(range));
        let shown = |block: &Block, name| shown(block.column(name).unwrap());
        assert_eq!((found.rows(), found.weights()), (wanted.rows(), wanted.weights()));
        assert_eq!((shown(&found, "d"), shown(&found, "n")), (shown(&wanted, "d"), shown(&wanted, "n")));
        let Some(ColumnData::Dictionary(_, values)) = found.column("d").map(Column::data) else { panic!() };
        assert_eq!(values.len(), entries);
    }
}

#[test]
fn large_values_that_many_windows_show_exceed_the_memory_limit() {
    let large = OwnedValue::string(&"x".repeat(4 << 20));
    let input =
        column(&(0..40).map(|row| Some(if row == 0 { large.clone() } else { OwnedValue::null() })).collect::<Vec<_>>());
    let windows: Vec<Range<usize>> = (0..40).map(|row| 0..row + 1).collect();
    let (kernel, spec) = accumulation("$first");
    let refused = accumulated(kernel.as_ref(), &spec, &Inputs::of(input), &windows).unwrap_err();
    assert_eq!(refused.code, ErrorCode::ExceededMemoryLimit);
}

/// The rows that a `$setWindowFields` makes of sorted rows which come in these blocks.
fn rows_with_windows(
    spec: &bson::RawDocumentBuf,
    blocks: impl Iterator<Item = Block>,
) -> Result<Vec<DocBuf>, ErrorCode> {
    let globals = globals();
    let mut parser = PipelineParser::new(&globals);
    parser.begin_find();
    parser.windows(Doc::parse(spec.as_bytes()).unwrap().as_value()).unwrap();
    let is_window = |step: &&Step| matches!(step, Step::Other(_));
    let mut stage = parser.steps.iter().map(|(step, _)| step).find(is_window).unwrap().start(&Others::default());
    let mut rows = Vec::new();
    let mut take = |made: Option<Block>| {
        let made = made?;
        rows.extend((0..made.rows()).map(|row| {
            let mut writer = DocWriter::new();
            made.write_row(row, &mut writer);
            writer.finish()
        }));
        Some(())
    };
    for block in blocks {
        let _ = stage.push(block).map_err(|e| e.code)?;
        while take(stage.take().unwrap()).is_some() {}
    }
    stage.finish().map_err(|e| e.code)?;
    while take(stage.take().unwrap()).is_some() {}
    Ok(rows)
}

/// One output for each kind of function; `w` replaces a field.
fn all_functions() -> bson::RawDocumentBuf {
    let near = || rawdoc! { "documents": [-1, 1] };
    let far = || rawdoc! { "documents": ["unbounded", "current"] };
    rawdoc! {
        "sum": { "$sum": "$v", "window": near() }, "mean": { "$avg": "$v", "window": far() },
        "max": { "$max": "$v", "window": { "range": [-2, "current"] } }, "median": { "$median": { "input": "$v", "method": "continuous" } },
        "first": { "$first": "$v", "window": near() }, "all": { "$push": { "a": "$v" }, "window": near() },
        "top": { "$topN": { "n": 2, "sortBy": { "v": -1 }, "output": ["$t", "$v"] } },
        "before": { "$shift": { "output": "$v", "by": -1 } }, "after": { "$shift": { "output": "$v", "by": 2, "default": "none" } },
        "rank": { "$rank": {} }, "dense": { "$denseRank": {} }, "number": { "$documentNumber": {} },
        "moving": { "$expMovingAvg": { "input": "$v", "N": 3 } }, "carried": { "$locf": "$v" },
        "slope": { "$derivative": { "input": "$w" }, "window": near() }, "area": { "$integral": { "input": "$w" }, "window": far() },
        "line": { "$linearFill": "$w" }, "w": { "$min": "$w" },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn new_fields_do_not_depend_on_which_partitions_and_rows_lie_in_one_block(
        (key_kind, lengths, v, w, steps) in (0..4_u8, proptest::collection::vec(1..6_usize, 1..9)).prop_flat_map(|(kind, lengths)| {
            let rows = lengths.iter().sum::<usize>();
            let doubles = proptest::collection::vec(proptest::option::weighted(0.9, -9.0..9.0_f64), rows);
            (Just(kind), Just(lengths), cells(rows..rows + 1), doubles, proptest::collection::vec(1..4_i64, rows))
        }),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..4),
    ) {
        let numbers = lengths.iter().enumerate().flat_map(|(number, length)| std::iter::repeat_n(number as i32, *length));
        let key = |number: i32| match (key_kind, number) {
            (_, 0) if number % 2 == i32::from(key_kind) % 2 => None,
            (0 | 1, _) => Some(OwnedValue::int32(number)),
            (2, _) => Some(OwnedValue::double(f64::from(number))),
            _ => Some(OwnedValue::string(&number.to_string())),
        };
        let mut block = Block::new(v.len());
        block.set_column("k", column(&numbers.map(key).collect::<Vec<_>>()));
        let times: Vec<i64> = steps.iter().scan(0, |time, step| { *time += step; Some(*time) }).collect();
        block.set_column("t", Column::new(ColumnData::I64(times), None));
        block.set_column("w", column(&w.iter().map(|w| w.map(OwnedValue::double)).collect::<Vec<_>>()));
        block.set_column("v", column(&v));
        for (name, output) in all_functions().iter().map(|field| field.unwrap()) {
            let mut one = bson::RawDocumentBuf::new();
            one.append(name, output);
            let spec = rawdoc! { "partitionBy": "$k", "sortBy": { "t": 1 }, "output": one };
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(v.len())).chain([0, v.len()]).collect();
            cuts.sort_unstable();
            let parts = cuts.windows(2).map(|cut| block.slice(cut[0]..cut[1]));
            let rows = (0..v.len()).map(|row| block.slice(row..row + 1));
            let together = rows_with_windows(&spec, std::iter::once(block.clone()));
            prop_assert_eq!(&rows_with_windows(&spec, parts), &together, "{}", name);
            prop_assert_eq!(&rows_with_windows(&spec, rows), &together, "{}", name);
            prop_assert_eq!(together.map(|rows| rows.len()).unwrap_or(v.len()), v.len());
        }
    }

    #[test]
    fn accumulators_over_vectors_equal_those_that_see_value_by_value(
        (cells, windows) in cells(1..40).prop_flat_map(|cells| (Just(cells.clone()), windows(cells.len()))),
        as_dictionary in any::<bool>(),
    ) {
        let plain = column(&cells);
        let input = if as_dictionary { dictionary(&plain) } else { plain.clone() };
        for operator in
            ["$sum", "$avg", "$count", "$stdDevPop", "$stdDevSamp", "$first", "$last", "$median", "$percentile"]
        {
            let (kernel, spec) = accumulation(operator);
            prop_assert!(kernel.is_some());
            let found = accumulated(kernel.as_ref(), &spec, &Inputs::of(input.clone()), &windows).unwrap();
            let wanted = over_windows(&spec, &Inputs::of(plain.clone()), &windows).unwrap();
            prop_assert_eq!(shown(&found), shown(&wanted), "{}", operator);
        }
    }

    #[test]
    fn an_extreme_is_the_first_of_those_that_compare_equal(
        (cells, windows) in cells(1..40).prop_flat_map(|cells| (Just(cells.clone()), windows(cells.len()))),
    ) {
        let inputs = Inputs::of(column(&cells));
        for operator in ["$min", "$max"] {
            let (kernel, spec) = accumulation(operator);
            let found = accumulated(kernel.as_ref(), &spec, &inputs, &windows).unwrap();
            prop_assert_eq!(shown(&found), shown(&one_by_one(&spec, &inputs, &windows)), "{}", operator);
        }
    }

    #[test]
    fn rows_that_windows_show_equal_those_of_each_window(
        (cells, keys, windows) in cells(40..41).prop_flat_map(|cells| (Just(cells), proptest::collection::vec(self::cells(40..41), 2), windows(40))),
        as_dictionary in any::<bool>(),
    ) {
        let plain = column(&cells);
        let mut inputs = Inputs::of(if as_dictionary { dictionary(&plain) } else { plain });
        inputs.keys = keys.iter().map(|cells| column(cells)).collect();
        let lists = ["$push", "$addToSet", "$firstN", "$lastN", "$minN", "$maxN"];
        for operator in lists.into_iter().chain(["$top", "$topN", "$bottom", "$bottomN"]) {
            let (_, spec) = accumulation(operator);
            let found = over_windows(&spec, &inputs, &windows).unwrap();
            prop_assert_eq!(shown(&found), shown(&one_by_one(&spec, &inputs, &windows)), "{}", operator);
        }
    }

    #[test]
    fn sums_over_vectors_equal_sums_of_each_window_up_to_rounding(
        (numbers, windows) in proptest::collection::vec(-1e6..1e6, 1..40)
            .prop_flat_map(|cells: Vec<f64>| (Just(cells.clone()), windows(cells.len()))),
    ) {
        let inputs = Inputs::of(Column::new(ColumnData::F64(numbers), None));
        for operator in ["$sum", "$avg", "$stdDevPop"] {
            let (kernel, spec) = accumulation(operator);
            let found = accumulated(kernel.as_ref(), &spec, &inputs, &windows).unwrap();
            let wanted = one_by_one(&spec, &inputs, &windows);
            let (mut one, mut other) = (Vec::new(), Vec::new());
            for row in 0..windows.len() {
                let number = |value: Option<Value<'_>>| value.and_then(Value::as_f64);
                let pair = (number(found.value(row, &mut one)), number(wanted.value(row, &mut other)));
                let (Some(x), Some(y)) = pair else { prop_assert_eq!(pair.0, pair.1); continue };
                prop_assert!((x - y).abs() <= 1e-8 * y.abs().max(1.0), "{}: {} and {}", operator, x, y);
            }
        }
    }

    #[test]
    fn the_ends_of_ranges_move_along_with_the_rows(
        (key, is_date) in (1..40_usize).prop_flat_map(keys),
        low in -40..40_i64, length in 0..40_i64, fraction in 0..3_i32,
        unit in select(vec!["second", "hour", "day", "week", "month", "year"]),
    ) {
        let window = match is_date {
            true => window(&rawdoc! { "range": [low, low + length], "unit": unit }),
            false if fraction > 0 => {
                window(&rawdoc! { "range": [low as f64 / 4.0, (low + length) as f64 / 4.0] })
            }
            false => window(&rawdoc! { "range": [low, low + length] }),
        };
        let mixed = {
            // The same keys as values of several types.
            let mut builder = ColumnBuilder::new();
            let mut scratch = Vec::new();
            (0..key.len()).for_each(|row| builder.push(key.value(row, &mut scratch).unwrap()));
            builder.push(OwnedValue::string("").view());
            builder.finish().slice(0..key.len())
        };
        prop_assert!(matches!(mixed.data(), ColumnData::Bson(_)));
        let found = window.ranges(key.len(), Some(&key)).unwrap();
        prop_assert_eq!(&found, &window.ranges(key.len(), Some(&mixed)).unwrap());
        // Row by row, where units have one length.
        let place = |row: usize| {
            let mut scratch = Vec::new();
            let value = key.value(row, &mut scratch).unwrap();
            value.as_date_ms().map(|ms| ms as f64).or_else(|| value.as_f64()).or_else(|| value.as_integer().map(|n| n as f64)).unwrap()
        };
        let scale = match (is_date, unit) {
            (true, "month" | "year") => return Ok(()),
            (true, unit) => super::parse_unit(OwnedValue::string(unit).view()).unwrap().length_ms().unwrap() as f64,
            (false, _) => if fraction > 0 { 0.25 } else { 1.0 },
        };
        for (row, range) in found.iter().enumerate() {
            let inside = |other: &usize| {
                let distance = place(*other) - place(row);
                low as f64 * scale <= distance && distance <= (low + length) as f64 * scale
            };
            let rows: Vec<usize> = (0..key.len()).filter(inside).collect();
            prop_assert_eq!(range.clone().collect::<Vec<_>>(), rows);
        }
    }

    #[test]
    fn functions_over_vectors_equal_those_that_see_value_by_value(
        (cells, order) in cells(1..30).prop_flat_map(|cells| (Just(cells.clone()), keys(cells.len()))),
        low in -4..3_i64, length in 0..5_i64, by in -3..4_i64,
    ) {
        let (key, is_date) = order;
        let order = (key, true);
        let window = window(&rawdoc! { "documents": [low, low + length] });
        let collation = Collation::default();
        let partition = Partition {
            rows: cells.len(), order: Some(&order), input: Inputs::of(column(&cells)), window: &window, collation: &collation,
        };
        let texts = |column: crate::error::Result<Column>| column.map(|column| shown(&column)).map_err(|e| e.code);
        let (_, sum) = accumulation("$sum");
        for unit in [None, Some(1000)] {
            prop_assert_eq!(
                texts(partition.derivatives(unit)), texts(partition.derivatives_of_values(unit)), "{}", is_date
            );
            prop_assert_eq!(
                texts(partition.integrals(unit, &sum)), texts(partition.integrals_of_values(unit, &sum)), "{}", is_date
            );
        }
        prop_assert_eq!(texts(partition.interpolated()), texts(partition.values_interpolated()));
        let alpha = Decimal::Finite { negative: false, coefficient: 3, exponent: -1 };
        let averages = partition.compute(&WindowFunction::MovingAverage(alpha));
        prop_assert_eq!(texts(averages), Ok(shown(&partition.averages_of_values(alpha))));

        let null = OwnedValue::null();
        let filled = |value: Option<&Option<OwnedValue>>, default: &OwnedValue| match value {
            Some(value) => Some(value.clone().unwrap_or_else(OwnedValue::null)),
            None => Some(default.clone()),
        };
        for default in [null.clone(), OwnedValue::double(0.5)] {
            let at = |row: usize| usize::try_from(row as i64 + by).ok();
            let wanted: Cells = (0..cells.len())
                .map(|row| filled(at(row).and_then(|row| cells.get(row)), &default))
                .collect();
            let found = partition.compute(&WindowFunction::Shift(by, default));
            prop_assert_eq!(texts(found), Ok(shown(&column(&wanted))));
        }
        let mut last = null.clone();
        let carried = |cell: &Option<OwnedValue>| {
            if let Some(value) = cell.as_ref().filter(|value| value.view().kind() != Kind::Null) {
                last = value.clone();
            }
            Some(last.clone())
        };
        let wanted: Cells = cells.iter().map(carried).collect();
        prop_assert_eq!(texts(partition.compute(&WindowFunction::Carry)), Ok(shown(&column(&wanted))));
    }

    #[test]
    fn ranks_over_vectors_equal_those_that_compare_values(mut numbers in proptest::collection::vec(double(), 1..30)) {
        numbers.sort_by(|a, b| a.partial_cmp(b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan())));
        let plain = Column::new(ColumnData::F64(numbers), None);
        let ranks = |function: &WindowFunction, order: Column| {
            let order = (order, true);
            let partition = Partition {
                rows: plain.len(), order: Some(&order), input: Inputs::of(plain.clone()), window: &Window::WHOLE,
                collation: &Collation::default(),
            };
            shown(&partition.compute(function).unwrap())
        };
        for function in [WindowFunction::Rank, WindowFunction::DenseRank, WindowFunction::Number] {
            prop_assert_eq!(ranks(&function, plain.clone()), ranks(&function, dictionary(&plain)));
        }
    }
}
