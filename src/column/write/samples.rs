//! Random columns for property tests: walks, runs, holes, changes of type, objects of drifting shape.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

pub(super) use crate::block::samples::column_of;
use crate::value::{DocWriter, Kind, OwnedValue, Value};

/// Cells of a column; `None` is a missing element.
pub(super) type Cells = Vec<Option<OwnedValue>>;

/// A stretch of similar cells.
#[derive(Clone, Debug)]
enum Stretch {
    Missing,
    Same(OwnedValue),
    Doubles { decimals: i32, step: i64 },
    Dates { step: i64 },
    Ints { wide: bool, step: i64 },
    Bools,
    ObjectIds { processes: u8 },
    Texts { longest: usize },
    Wide { kind: Kind, high: bool },
    Objects { fields: u8 },
}

fn any_stretch() -> impl Strategy<Value = Stretch> {
    let step = prop_oneof![Just(0), 1..100_i64, Just(1_i64 << 20), Just(1 << 50), Just(i64::MAX)];
    let constant = prop_oneof![
        any::<f64>().prop_map(OwnedValue::double),
        Just(OwnedValue::double(0.5)),
        any::<i64>().prop_map(OwnedValue::date),
        Just(OwnedValue::string("")),
        "[a-z\0]{1,20}".prop_map(|s| OwnedValue::string(&s)),
        Just(OwnedValue::null()),
        Just(Value::MAX_KEY.to_owned()),
        Just(OwnedValue::doc(crate::value::Doc::EMPTY)),
    ];
    prop_oneof![
        Just(Stretch::Missing),
        constant.prop_map(Stretch::Same),
        (0..9_i32, step.clone()).prop_map(|(decimals, step)| Stretch::Doubles { decimals, step }),
        step.clone().prop_map(|step| Stretch::Dates { step }),
        (any::<bool>(), step).prop_map(|(wide, step)| Stretch::Ints { wide, step }),
        Just(Stretch::Bools),
        (1..3_u8).prop_map(|processes| Stretch::ObjectIds { processes }),
        (0..19_usize).prop_map(|longest| Stretch::Texts { longest }),
        (prop_oneof![Just(Kind::Binary), Just(Kind::Decimal128)], any::<bool>())
            .prop_map(|(kind, high)| Stretch::Wide { kind, high }),
        (1..6_u8).prop_map(|fields| Stretch::Objects { fields }),
    ]
}

/// Cells in stretches with holes; some lengths are those at which runs begin and end.
pub(super) fn any_cells() -> impl Strategy<Value = Cells> {
    let length = prop_oneof![1..30_usize, 59..62_usize, 119..122_usize, Just(180_usize)];
    let holes = prop_oneof![Just(0_u8), Just(3), Just(30)];
    vec((any_stretch(), length, holes, any::<u64>()), 0..5).prop_map(|stretches| {
        let mut cells = Cells::new();
        for (stretch, length, holes, seed) in stretches {
            let mut random = Random(seed | 1);
            let mut walk = 1000;
            for i in 0..length {
                let hole = random.below(100) < u64::from(holes);
                cells.push(cell(&stretch, i as i64, &mut walk, &mut random).filter(|_| !hole));
            }
        }
        cells
    })
}

fn cell(stretch: &Stretch, i: i64, walk: &mut i64, random: &mut Random) -> Option<OwnedValue> {
    let mut walked = |step: i64, random: &mut Random| {
        let change = (random.next().cast_signed() >> 1) % step.saturating_add(1).max(1);
        *walk = walk.wrapping_add(change);
        *walk
    };
    Some(match stretch {
        Stretch::Missing => return None,
        Stretch::Same(value) => value.clone(),
        Stretch::Doubles { decimals, step } => {
            OwnedValue::double(walked(*step, random) as f64 / 10_f64.powi(*decimals))
        }
        Stretch::Dates { step } => OwnedValue::date((1000 * i).wrapping_add(walked(*step, random))),
        Stretch::Ints { wide: true, step } => OwnedValue::int64(walked(*step, random)),
        Stretch::Ints { wide: false, step } => OwnedValue::int32(walked(*step, random) as i32),
        Stretch::Bools => OwnedValue::bool(random.below(2) == 0),
        Stretch::ObjectIds { processes } => {
            let [.., t2, t3] = i.to_be_bytes();
            let process = random.below(u64::from(*processes)) as u8;
            OwnedValue::object_id([1, 2, t2, t3, process, 5, 6, 7, 8, 9, t2, t3])
        }
        Stretch::Texts { longest } => {
            let text: String = (0..random.below(*longest as u64 + 1)).map(|_| random.letter()).collect();
            OwnedValue::string(&text)
        }
        Stretch::Wide { kind, high } => {
            let integer = u128::from(random.below(1000)) << if *high { 100 } else { 7 };
            let len = random.below(4).max(1) as u32;
            let head = [&[16_u8, 0, 0, 0][..], &[len.cast_signed() as u8]].concat();
            let bytes = if *kind == Kind::Binary { &head[..] } else { &[] };
            OwnedValue::from_tagged_checked([&[kind.byte()], bytes, &integer.to_le_bytes()].concat())
        }
        Stretch::Objects { fields } => object(*fields, random),
    })
}

/// Mostly the same fields in the same order; sometimes nested, absent, empty or moved.
fn object(fields: u8, random: &mut Random) -> OwnedValue {
    let mut out = DocWriter::new();
    let mut names: Vec<u8> = (0..fields).filter(|_| random.below(8) > 0).collect();
    if random.below(30) == 0 {
        names.reverse();
    }
    for name in names {
        let text = char::from(b'a' + name).to_string();
        match (name, random.below(40)) {
            (1, 1) => {
                out.begin_doc(&text).end();
            }
            (1, 2) => {
                out.value(&text, Value::NULL);
            }
            (1, _) => {
                out.begin_doc(&text).double("x", random.below(50) as f64 / 4.0);
                if random.below(3) > 0 {
                    out.begin_array("y").int32("0", random.below(9) as i32).end();
                }
                out.end();
            }
            (2, _) => {
                out.string(&text, &random.letter().to_string());
            }
            (_, 3) => {
                out.string(&text, "a text that is too long for a difference");
            }
            (4, _) => {
                out.begin_doc(&text).end();
            }
            _ => {
                out.date(&text, random.below(20) as i64);
            }
        }
    }
    out.finish().view().as_value().to_owned()
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 20) % end
    }
    fn letter(&mut self) -> char {
        char::from(b"abcd\0"[self.below(5) as usize])
    }
}

/// Ascending positions within `len`, from random ones.
pub(super) fn cuts(picks: &[Index], len: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> = picks.iter().map(|pick| pick.index(len + 1)).chain([0, len]).collect();
    cuts.sort_unstable();
    cuts
}
