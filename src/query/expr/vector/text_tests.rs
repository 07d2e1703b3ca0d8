//! Random texts: what is computed of a column of texts equals what is computed row by row.

use bson::{Bson, doc};
use proptest::prelude::*;

use super::samples::column;
use super::tests::bound;
use crate::block::{Block, Column};
use crate::error::Result;
use crate::value::{Kind, OwnedValue};

const ROWS: usize = 60;

fn text() -> impl Strategy<Value = String> {
    let date =
        (1999..2002_i32, 0..14_u8, 0..33_u8, 0..25_u8, prop::sample::select(vec!["", "Z", ".5", ".123Z", ".123"]));
    prop_oneof![
        2 => "[-ab ]{0,14}",
        1 => "[ ä€\u{a0}\u{2003}aB]{0,6}",
        1 => (-1000..1000_i64, 0..4_usize).prop_map(|(n, places)| format!("{:.places$}", n as f64 / 16.0)),
        1 => any::<i64>().prop_map(|n| n.to_string()),
        1 => any::<f64>().prop_map(|x| x.to_string()),
        1 => date.clone().prop_map(|(year, month, day, hour, end)| format!("{year}-{month:02}-{day:02}T{hour:02}:05:06{end}")),
        1 => date.prop_map(|(year, month, day, ..)| format!("{year}-{month:02}-{day:02}")),
    ]
}

/// Most rows have texts of one kind, so that these are not left to be read one by one.
fn texts() -> impl Strategy<Value = Vec<Option<String>>> {
    let number = (any::<i32>(), 0..5_usize).prop_map(|(n, places)| format!("{:.places$}", f64::from(n) / 64.0));
    let date = (0..4_000_000_000_000_i64, 0..3_u8).prop_map(|(ms, form)| {
        let text = bson::DateTime::from_millis(ms - ms % 1000).try_to_rfc3339_string().unwrap();
        match form {
            0 => text,
            1 => text.replace('T', " ").replace('Z', ""),
            _ => text[..10].to_owned(),
        }
    });
    let of = |text: BoxedStrategy<String>| {
        let text = prop_oneof![12 => text.prop_map(Some), 1 => self::text().prop_map(Some), 1 => Just(None)];
        prop::collection::vec(text, ROWS)
    };
    let integer = prop_oneof![any::<i32>().prop_map(|n| n.to_string()), any::<i64>().prop_map(|n| n.to_string())];
    prop_oneof![of(text().boxed()), of(number.boxed()), of(integer.boxed()), of(date.boxed())]
}

fn expression() -> impl Strategy<Value = Bson> {
    let part = prop::sample::select(vec!["a", "-", " ", "ab", "ä", "€", "aa", "", "b-"]);
    let input = prop::sample::select(vec![Bson::from("$s"), bson::bson!({ "$concat": ["$s", "$u"] })]);
    let number = prop::sample::select(vec!["$toDouble", "$toInt", "$toLong", "$toDate", "$toBool", "$toDecimal"]);
    let index = prop::sample::select(vec!["$indexOfCP", "$indexOfBytes"]);
    let trim = prop::sample::select(vec!["$trim", "$ltrim", "$rtrim"]);
    let replace = prop::sample::select(vec!["$replaceOne", "$replaceAll"]);
    let format = prop::sample::select(vec![
        None,
        Some("%Y-%m-%d"),
        Some("%Y-%m-%d %H:%M:%S"),
        Some("%d%m"),
        Some("%Y-%m-%dT%H:%M:%S.%L%z"),
    ]);
    let instead = || prop::sample::select(vec![None, Some(Bson::Null), Some(Bson::from("$s")), Some(Bson::from(7))]);
    prop_oneof![
        (number, input.clone()).prop_map(|(name, text)| bson::bson!({ name: text })),
        (input.clone(), prop::sample::select(vec!["double", "int", "long", "date"]), instead(), instead()).prop_map(
            |(text, to, on_error, on_null)| {
                let mut all = doc! { "input": text, "to": to };
                on_error.into_iter().for_each(|value| _ = all.insert("onError", value));
                on_null.into_iter().for_each(|value| _ = all.insert("onNull", value));
                bson::bson!({ "$convert": all })
            }
        ),
        (input.clone(), format, instead(), instead()).prop_map(|(text, format, on_error, on_null)| {
            let mut all = doc! { "dateString": text };
            format.into_iter().for_each(|format| _ = all.insert("format", format));
            on_error.into_iter().for_each(|value| _ = all.insert("onError", value));
            on_null.into_iter().for_each(|value| _ = all.insert("onNull", value));
            bson::bson!({ "$dateFromString": all })
        }),
        (index, input.clone(), part.clone(), prop::collection::vec(0..7_i32, 0..3)).prop_map(
            |(name, text, part, range)| {
                let mut all = vec![text, part.into()];
                all.extend(range.into_iter().map(Bson::from));
                bson::bson!({ name: all })
            }
        ),
        (trim, input.clone(), prop::option::of(part.clone())).prop_map(|(name, text, chars)| {
            let mut all = doc! { "input": text };
            chars.into_iter().for_each(|chars| _ = all.insert("chars", chars));
            bson::bson!({ name: all })
        }),
        (replace, input.clone(), part.clone(), prop::sample::select(vec![Bson::from("x"), "".into(), "ab€".into(), Bson::Null, "$u".into()]))
            .prop_map(|(name, text, find, new)| bson::bson!({ name: { "input": text, "find": find, "replacement": new } })),
        (input.clone(), part.clone()).prop_map(|(text, part)| bson::bson!({ "$split": [text, part] })),
        (input.clone(), part.clone()).prop_map(|(text, part)| bson::bson!({ "$size": { "$split": [text, part] } })),
        (input.clone(), part.clone())
            .prop_map(|(text, part)| bson::bson!({ "$map": { "input": { "$split": [text, part] }, "in": { "$strLenCP": "$$this" } } })),
        (input.clone(), prop::sample::select(vec![Bson::from("$u"), "$s".into(), "A-b".into(), 7.into()]))
            .prop_map(|(a, b)| bson::bson!({ "$strcasecmp": [a, b] })),
        input.prop_map(|text| bson::bson!({ "$toString": { "$toDouble": text } })),
    ]
}

/// The values of a column; the code of an error.
type Shown = std::result::Result<Vec<Option<(Kind, Vec<u8>)>>, i32>;

fn shown(column: Result<Column>) -> Shown {
    let column = column.map_err(|error| error.code as i32)?;
    let cell = |row| column.value(row, &mut Vec::new()).map(|value| (value.kind(), value.bytes().to_vec()));
    Ok((0..ROWS).map(cell).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2 * ProptestConfig::default().cases))]
    #[test]
    fn vectorised_texts_equal_those_evaluated_by_row(expression in expression(), s in texts(), u in texts()) {
        let Some(expr) = bound(&expression) else { return Ok(()) };
        let mut block = Block::new(ROWS);
        for (name, texts) in [("s", &s), ("u", &u)] {
            block.set_column(name, column(&texts.iter().map(|text| text.as_deref().map(OwnedValue::string)).collect::<Vec<_>>()));
        }
        prop_assert_eq!(shown(expr.column(&block)), shown(expr.one_by_one(&block)), "{}", expression);
    }
}
