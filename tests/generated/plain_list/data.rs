//! Hostile measurements: a few fields whose types change, nest and vanish, in a few series, with standard and extended dates.

use bson::oid::ObjectId;
use bson::raw::CString;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document, Regex, Timestamp, doc};

use crate::support::Random;

/// Names inside values, few enough that paths often reach something.
pub const INNER_NAMES: [&str; 6] = ["a", "b", "0", "1", "c", "x.y"];
/// Strings that are close to each other by some collation.
pub const TEXTS: [&str; 15] = ["", "a", "ab", "b", "é", "abc", "B", "a\0", "a\nb", "A", "É", "e", "a-b", "a10", "a2"];
const MEASURED: [&str; 5] = ["a", "b", "c", "o", "x.y"];
const MINUTE_MS: i64 = 60_000;

/// The kind of values of a field in a stretch of rows.
#[derive(Clone, Copy)]
enum Habit {
    /// Scalars of one type, by its number.
    Typed(u64),
    /// A handful of scalars of any type.
    Scalars,
    /// Objects of one shape, of numbers or texts.
    Shaped(u64),
    Arrays,
    /// Strings, and patterns.
    Texts,
    /// Doubles of which many tie, both zeros among them.
    Zeros,
    Anything,
}

pub fn pick<'a, T>(random: &Random, from: &'a [T]) -> &'a T {
    &from[random.below(from.len() as u64) as usize]
}

/// A collation, or byte order.
pub fn any_collation(random: &Random) -> Document {
    let of = [
        doc! { "locale": "simple" },
        doc! { "locale": "en", "strength": 1 },
        doc! { "locale": "en", "strength": 2 },
        doc! { "locale": "fr", "strength": 1, "caseLevel": true },
        doc! { "locale": "en", "numericOrdering": true },
        doc! { "locale": "en", "caseFirst": "upper" },
        doc! { "locale": "en", "strength": 5, "caseFirst": "lower" },
        doc! { "locale": "en", "alternate": "shifted" },
    ];
    pick(random, &of).clone()
}

/// Measurements with different numbers `n`; `extended` ones also lie outside of 1970 to 2038.
pub fn measurements(random: &Random) -> Vec<Document> {
    let count = match random.below(10) {
        0 => 1 + random.below(4),
        1 => 60 + random.below(140),
        _ => 4 + random.below(40),
    };
    let series = series(random);
    let extended = random.chance(25);
    let base_ms = *pick(random, &[0, 1_700_000_000_000, 1_699_999_200_000, 2_147_483_000_000, 951_782_400_000]);
    let step_ms = *pick(random, &[0, 1, 1000, MINUTE_MS, 20 * MINUTE_MS, 26 * 60 * MINUTE_MS]);
    let shuffled = random.chance(60);
    let mut habits = MEASURED.map(|_| habit(random));
    let missing = MEASURED.map(|_| *pick(random, &[0, 0, 10, 50, 90, 100]));
    let many = count as i64;
    let rows = (0..many).map(|n| {
        if random.chance(5) {
            habits = habits.map(|old| if random.chance(40) { habit(random) } else { old });
        }
        let place = if shuffled { random.below(count) as i64 } else { n };
        let mut ms = base_ms + place * step_ms + if random.chance(20) { random.below(2000) as i64 } else { 0 };
        if extended && random.chance(15) {
            ms = any_time(random);
        }
        let mut row = doc! { "t": DateTime::from_millis(ms), "n": n };
        if let Some(meta) = pick(random, &series) {
            row.insert("m", meta.clone());
        }
        for ((name, habit), missing) in MEASURED.iter().zip(habits).zip(missing) {
            if !random.chance(missing) {
                row.insert(*name, value_of(random, habit));
            }
        }
        if random.chance(10) {
            row.insert("_id", scalar(random, None));
        }
        row
    });
    rows.collect()
}

fn series(random: &Random) -> Vec<Option<Bson>> {
    let one = |_| match random.below(9) {
        0 => None,
        1 => Some(Bson::Null),
        2 => Some(Bson::from(vec![small(random), small(random)])),
        3 => Some(any_value(random, 2)),
        4 | 5 => {
            let mut meta = doc! { "b": small(random), "a": scalar(random, None) };
            if random.chance(50) {
                meta.insert("c", doc! { "b": small(random), "a": "s" });
            }
            Some(Bson::Document(meta))
        }
        6 => Some(small(random)),
        _ => Some(Bson::String(format!("s{}", random.below(3)))),
    };
    (0..1 + random.below(4)).map(one).collect()
}

fn habit(random: &Random) -> Habit {
    match random.below(12) {
        0..=3 => Habit::Typed(random.below(9)),
        4 => Habit::Scalars,
        5..=6 => Habit::Shaped(random.below(9)),
        7 => Habit::Arrays,
        8 => Habit::Texts,
        9 => Habit::Zeros,
        _ => Habit::Anything,
    }
}

fn value_of(random: &Random, habit: Habit) -> Bson {
    match habit {
        Habit::Typed(kind) => scalar(random, Some(kind)),
        Habit::Scalars => scalar(random, None),
        Habit::Shaped(kind) => {
            let mut object = doc! { "a": scalar(random, Some(kind)) };
            if random.chance(60) {
                object.insert("b", doc! { "c": small(random), "0": scalar(random, Some(kind)) });
            }
            if random.chance(30) {
                object.insert("0", small(random));
            }
            Bson::Document(object)
        }
        Habit::Arrays => {
            let item = |_| match random.below(6) {
                0 => any_value(random, 2),
                1 => Bson::Document(doc! { "b": small(random), "a": small(random) }),
                2 => Bson::Document(doc! { "b": small(random) }),
                _ => small(random),
            };
            Bson::Array((0..random.below(4)).map(item).collect())
        }
        Habit::Texts if random.chance(30) => regex(random),
        Habit::Texts => scalar(random, Some(3)),
        Habit::Zeros => Bson::Double(*pick(random, &[0.0, -0.0, 1.0, -1.0, f64::NAN])),
        Habit::Anything => any_value(random, 3),
    }
}

fn small(random: &Random) -> Bson {
    match random.below(4) {
        0 => Bson::Int64(random.below(4) as i64),
        1 => Bson::Double(random.below(8) as f64 / 2.0),
        _ => Bson::Int32(random.below(4) as i32),
    }
}

/// A value of any type, up to a nesting depth.
pub fn any_value(random: &Random, depth: u64) -> Bson {
    match random.below(if depth == 0 { 5 } else { 8 }) {
        5 => Bson::Array((0..random.below(4)).map(|_| any_value(random, depth - 1)).collect()),
        6 | 7 => {
            let fields = (0..random.below(4)).map(|_| {
                let name = (*pick(random, &INNER_NAMES)).to_owned();
                (name, any_value(random, depth - 1))
            });
            Bson::Document(fields.collect())
        }
        _ => scalar(random, None),
    }
}

/// A scalar of one of nine types, or of any; few enough that two of them are often equal.
pub fn scalar(random: &Random, kind: Option<u64>) -> Bson {
    const TWO_TO_53: i64 = 1 << 53;
    let double = [0.0, -0.0, 1.0, 1.5, -1.0, 2.0, 3.0, 0.1, 9_007_199_254_740_992.0, 1e300, 5e-324, f64::NAN];
    let long = [0, 1, 2, 3, -1, TWO_TO_53, TWO_TO_53 + 1, -TWO_TO_53 - 1, i64::MAX, i64::MIN];
    match kind.unwrap_or_else(|| random.below(19)) {
        0 | 9 => match random.below(12) {
            0 => Bson::Double(*pick(random, &[f64::INFINITY, f64::NEG_INFINITY])),
            1..=4 => Bson::Double(random.below(40) as f64 / 4.0),
            _ => Bson::Double(*pick(random, &double)),
        },
        1 | 10 if random.chance(50) => Bson::Int32(random.below(10) as i32),
        1 | 10 => Bson::Int32(*pick(random, &[0, 1, 2, -1, i32::MAX, i32::MIN])),
        2 | 11 => Bson::Int64(*pick(random, &long)),
        3 | 12 => Bson::String((*pick(random, &TEXTS)).to_owned()),
        4 => Bson::Boolean(random.chance(50)),
        5 => Bson::DateTime(DateTime::from_millis(*pick(random, &[0, 1, -1, 1_700_000_000_000, i64::MAX, i64::MIN]))),
        6 => Bson::ObjectId(ObjectId::from_bytes([*pick(random, &[0, 1, 255]); 12])),
        7 => {
            let text = *pick(random, &["0", "1", "1.5", "0.1", "9007199254740993", "NaN", "-Infinity", "1E+40", "-0"]);
            Bson::Decimal128(text.parse().unwrap())
        }
        8 | 13 => Bson::Null,
        14 => regex(random),
        15 => {
            let bytes = pick(random, &[vec![], vec![1], vec![255, 3]]).clone();
            Bson::Binary(Binary { subtype: *pick(random, &[BinarySubtype::Generic, BinarySubtype::Md5]), bytes })
        }
        16 => Bson::Timestamp(Timestamp { time: 1 + random.below(2) as u32, increment: random.below(2) as u32 }),
        17 => match random.below(6) {
            0 => Bson::MinKey,
            1 => Bson::MaxKey,
            2 => Bson::Symbol("a".to_owned()),
            3 => Bson::JavaScriptCode("a".to_owned()),
            _ => Bson::Document(Document::new()),
        },
        _ => Bson::Array(Vec::new()),
    }
}

/// A pattern, as a value.
pub fn regex(random: &Random) -> Bson {
    let pattern = CString::try_from(*pick(random, &["^a", "^ab?", "^b$", "b", "^$", "é", "^a.", "^B|a", "^\\.|a"]));
    let options = CString::try_from(*pick(random, &["", "", "i", "m", "s"])).unwrap();
    Bson::RegularExpression(Regex { pattern: pattern.unwrap(), options })
}

/// A time at a limit: the epoch, the end of 31-bit and of 32-bit seconds.
pub fn any_time(random: &Random) -> i64 {
    if random.chance(5) {
        return *pick(random, &[i64::MIN, i64::MAX, i64::MIN + 60_000, i64::MAX - 60_000]);
    }
    let base = *pick(random, &[0, -5_000_000_000, 2_147_483_647_000, 4_294_967_295_000, -62_135_596_800_000]);
    base + *pick(random, &[0, 1, -1, 499, 999, 1000, -1000, 59_999, MINUTE_MS, -MINUTE_MS, 60 * MINUTE_MS])
}

/// The measurement as it is stored: the fields of its metadata are sorted by name.
pub fn normalized(row: &Document, meta_field: Option<&str>) -> Document {
    fn sorted(value: &Bson) -> Bson {
        match value {
            Bson::Document(object) => {
                let mut fields: Vec<_> = object.iter().map(|(name, inner)| (name.clone(), sorted(inner))).collect();
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                Bson::Document(fields.into_iter().collect())
            }
            Bson::Array(items) => Bson::Array(items.iter().map(sorted).collect()),
            other => other.clone(),
        }
    }
    let of = |(name, value): (&String, &Bson)| {
        let value = if Some(name.as_str()) == meta_field { sorted(value) } else { value.clone() };
        (name.clone(), value)
    };
    row.iter().map(of).collect()
}
