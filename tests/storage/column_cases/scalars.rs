//! Values of every scalar type, and series of them.

use super::random::Random;

/// The types to draw from; common types of measurements occur more often.
const KINDS: [u8; 32] = [
    0x01, 0x01, 0x01, 0x01, 0x01, 0x09, 0x09, 0x09, 0x10, 0x10, 0x12, 0x12, 0x07, 0x07, 0x02, 0x02, 0x02, 0x05, 0x05,
    0x08, 0x08, 0x11, 0x0D, 0x13, 0x06, 0x0A, 0x0B, 0x0C, 0x0E, 0x0F, 0x7F, 0xFF,
];

const DOUBLES: [f64; 16] = [
    0.0,
    -0.0,
    1.0,
    0.5,
    -3.0,
    254.03,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    5e-324,
    9_007_199_254_740_992.0,
    9_007_199_254_740_994.0,
    -9_007_199_254_740_991.0,
    90_071_992.547_409_92,
    0.1 + 0.2,
];

const TEXTS: [&str; 12] =
    ["", "a", "b", "ab", "\0", "\0ab", "a\0", "on", "off", "0123456789abcdef", "0123456789abcdefg", "späte Nacht"];

pub fn is_scalar(element: &[u8]) -> bool {
    !matches!(element[0], 0x03 | 0x04)
}

/// A value of the type selected by a byte.
pub fn fresh(kind: u8, random: &mut Random) -> Vec<u8> {
    let kind = KINDS[usize::from(kind) % KINDS.len()];
    let value: Vec<u8> = match kind {
        0x01 if random.chance(40) => DOUBLES[random.below(DOUBLES.len())].to_le_bytes().into(),
        0x01 => decimal(random.signed(20), random.below(10)).to_le_bytes().into(),
        0x02 | 0x0D | 0x0E => text(TEXTS[random.below(TEXTS.len())].as_bytes()),
        0x05 => {
            let length = [0, 1, 4, 8, 15, 16, 17, 20][random.below(8)];
            let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            binary([0, 0, 2, 4, 5, 0x80][random.below(6)], &bytes)
        }
        0x07 => (0..12).map(|_| random.next() as u8).collect(),
        0x08 => vec![u8::from(random.chance(50))],
        0x09 => (1_700_000_000_000 + random.signed(40)).to_le_bytes().into(),
        0x0B => [TEXTS[random.below(4)].as_bytes(), &[0], [&b""[..], b"i", b"mx"][random.below(3)], &[0]].concat(),
        0x0C => [text(TEXTS[random.below(4)].as_bytes()), vec![random.next() as u8; 12]].concat(),
        0x0F => {
            let scope = [&[5, 0, 0, 0, 0][..], &[8, 0, 0, 0, 0x0A, b'x', 0, 0]][random.below(2)];
            let code = text(TEXTS[random.below(4)].as_bytes());
            [&((4 + code.len() + scope.len()) as i32).to_le_bytes()[..], &code, scope].concat()
        }
        0x10 if random.chance(20) => [i32::MIN, i32::MAX][random.below(2)].to_le_bytes().into(),
        0x10 => (random.signed(16) as i32).to_le_bytes().into(),
        0x11 => (random.next() >> random.below(40)).to_le_bytes().into(),
        0x12 if random.chance(20) => [i64::MIN, i64::MAX, 0][random.below(3)].to_le_bytes().into(),
        0x12 => random.signed(24).to_le_bytes().into(),
        0x13 => (0x3040_u128 << 112 | u128::from(random.next() >> 40)).to_le_bytes().into(),
        _ => Vec::new(),
    };
    [vec![kind], value].concat()
}

/// `length` values starting at `from`. `moves` sets the step size and how often a value repeats.
pub fn track(from: Vec<u8>, length: usize, moves: u8, random: &mut Random) -> Vec<Vec<u8>> {
    if moves % 7 == 3 && matches!(from[0], 0x09 | 0x10 | 0x11 | 0x12) {
        return curve(from, length, random);
    }
    let still_percent = [0, 0, 30, 90][usize::from(moves & 3)];
    let mut value = from;
    let mut list = vec![value.clone()];
    while list.len() < length {
        if !random.chance(still_percent) {
            value = step(&value, moves >> 2, random);
        }
        list.push(value.clone());
    }
    list
}

/// Integers whose delta grows or falls evenly and passes through zero.
fn curve(from: Vec<u8>, length: usize, random: &mut Random) -> Vec<Vec<u8>> {
    let (mut slope, bend) = (random.signed(8), random.signed(3));
    let mut value = from;
    let mut list = Vec::new();
    while list.len() < length {
        list.push(value.clone());
        slope += bend;
        let moved = match value[1..].try_into() {
            Ok(bytes) => i64::from_le_bytes(bytes).wrapping_add(slope).to_le_bytes().to_vec(),
            Err(_) => {
                i32::from_le_bytes(value[1..].try_into().unwrap()).wrapping_add(slope as i32).to_le_bytes().into()
            }
        };
        value = [&value[..1], &moved].concat();
    }
    list
}

/// The value after `element`, of the same type: close for small `size`, anywhere for the largest.
pub fn step(element: &[u8], size: u8, random: &mut Random) -> Vec<u8> {
    let (kind, value) = element.split_first().unwrap();
    let bits = [0, 1, 2, 3, 5, 8, 12, 14, 20, 24, 31, 40, 51, 52, 60, 64][usize::from(size % 16)];
    // Deltas with trailing zeros use special words.
    let zeros = [0, 0, 0, 1, 4, 13, 15, 16, 20, 32, 56, 60, 64, 80, 120, 124][random.below(16)];
    let zeros = if size < 32 { 0 } else { zeros };
    let moved = random.signed(bits).wrapping_shl(zeros);
    let value: Vec<u8> = match kind {
        0x01 => double_step(f64::from_le_bytes(value.try_into().unwrap()), size, random).to_le_bytes().into(),
        0x09 | 0x11 | 0x12 => i64::from_le_bytes(value.try_into().unwrap()).wrapping_add(moved).to_le_bytes().into(),
        0x10 => i32::from_le_bytes(value.try_into().unwrap()).wrapping_add(moved as i32).to_le_bytes().into(),
        0x08 => vec![u8::from(random.chance(50))],
        0x07 => object_id_step(value, bits, random),
        0x13 => wide_step(value, moved, zeros).into(),
        0x02 | 0x0D | 0x0E => text(&text_step(&value[4..value.len() - 1], random)),
        0x05 if value.len() == 21 => [&value[..5], &wide_step(&value[5..], moved, zeros)].concat(),
        0x05 if value.len() > 5 && random.chance(90) => {
            let mut value = value.to_vec();
            let at = 5 + random.below(value.len() - 5);
            value[at] = value[at].wrapping_add(random.signed(4) as u8);
            value
        }
        _ => return fresh_like(*kind, random),
    };
    [vec![*kind], value].concat()
}

fn fresh_like(kind: u8, random: &mut Random) -> Vec<u8> {
    let row = KINDS.iter().position(|known| *known == kind).unwrap_or_default();
    fresh(row as u8, random)
}

fn decimal(integer: i64, decimals: usize) -> f64 {
    integer as f64 / 10_f64.powi(decimals as i32)
}

fn double_step(x: f64, size: u8, random: &mut Random) -> f64 {
    // Most steps keep the number of decimals of the track, some change it, a few remove them.
    let decimals = usize::from(size / 16) * 2 + if random.chance(15) { random.below(5) } else { 0 };
    match random.below(20) {
        0 if size % 16 > 8 => DOUBLES[random.below(DOUBLES.len())],
        0 | 1 if size % 16 > 12 => f64::from_bits(random.next()),
        2 if size % 16 > 12 => f64::from_bits(x.to_bits().wrapping_add(random.signed(3) as u64)),
        _ if !x.is_finite() => decimal(random.signed(12), decimals),
        _ => {
            let power = 10_f64.powi(decimals as i32);
            let moved = (x * power).round() + random.signed(u32::from(size % 16) + 1) as f64;
            moved / power
        }
    }
}

fn object_id_step(id: &[u8], bits: u32, random: &mut Random) -> Vec<u8> {
    let mut id = id.to_vec();
    let seconds = u32::from_be_bytes(id[..4].try_into().unwrap());
    let seconds = seconds.wrapping_add((random.signed(bits.min(8)) & 0xFF) as u32);
    id[..4].copy_from_slice(&seconds.to_be_bytes());
    let counter = u32::from_be_bytes([0, id[9], id[10], id[11]]).wrapping_add(1 + random.below(50) as u32);
    id[9..].copy_from_slice(&counter.to_be_bytes()[1..]);
    if random.chance(5) {
        id[4 + random.below(5)] ^= 1;
    }
    id
}

fn wide_step(value: &[u8], moved: i64, zeros: u32) -> [u8; 16] {
    let before = i128::from_le_bytes(value.try_into().unwrap());
    before.wrapping_add(i128::from(moved).wrapping_shl(zeros)).to_le_bytes()
}

fn text_step(text: &[u8], random: &mut Random) -> Vec<u8> {
    let mut next = text.to_vec();
    match random.below(10) {
        0 => next = TEXTS[random.below(TEXTS.len())].into(),
        1 => next.push(b'a' + random.below(26) as u8),
        2 => {
            // Whole characters only: strings are UTF-8.
            let mut characters = String::from_utf8(next).unwrap();
            characters.pop();
            next = characters.into_bytes();
        }
        _ => {
            let at = random.below(next.len().max(1));
            if let Some(byte) = next.get_mut(at).filter(|byte| byte.is_ascii()) {
                *byte = b'a' + random.below(26) as u8;
            }
        }
    }
    next
}

/// Length, text and NUL.
fn text(text: &[u8]) -> Vec<u8> {
    [&(text.len() as i32 + 1).to_le_bytes()[..], text, &[0]].concat()
}

fn binary(subtype: u8, bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as i32).to_le_bytes()[..], &[subtype], bytes].concat()
}
