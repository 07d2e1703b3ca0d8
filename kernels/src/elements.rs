//! Elements of BSON arrays: a type byte, the number of the element in decimal digits, a NUL, and the value.

use super::kinds::{ARRAY, DOUBLE, NULL};

/// Most bytes in front of a value.
const HEAD_LEN_MAX: usize = 16;

/// What stands in front of the next element.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    bytes: [u8; HEAD_LEN_MAX],
    len: usize,
}

impl Default for Head {
    fn default() -> Head {
        let mut bytes = [0; HEAD_LEN_MAX];
        bytes[1] = b'0';
        Head { bytes, len: 3 }
    }
}

/// Appends an element of the type `kind`, and counts on.
#[inline(never)]
pub fn push(out: &mut Vec<u8>, head: &mut Head, kind: u8, value: &[u8]) {
    put(out, head, kind, value);
}

/// Appends elements of the type `kind`, whose values are `len` bytes each.
#[inline(never)]
pub fn push_all(out: &mut Vec<u8>, head: &mut Head, kind: u8, values: &[u8], len: usize) {
    out.reserve(values.len() / len.max(1) * (head.len + len));
    // With a length that the compiler knows, a value is one store.
    match len {
        8 => values.as_chunks::<8>().0.iter().for_each(|value| put(out, head, kind, value)),
        _ => values.chunks_exact(len.max(1)).for_each(|value| put(out, head, kind, value)),
    }
}

/// Of the first of `elements`: where its name ends, which begins behind its type byte, and where its value ends.
#[inline(never)]
pub fn first(elements: &[u8]) -> Option<(usize, usize)> {
    element(elements)
}

/// Where the element behind so many others begins; at the end if there are no more.
#[inline(never)]
pub fn behind(elements: &[u8], count: usize) -> usize {
    let mut at = 0;
    for _ in 0..count {
        let Some((_, end)) = elements.get(at..).and_then(element) else { break };
        at += end;
    }
    at
}

/// The type and the value of the first of `elements` with that name.
#[inline(never)]
pub fn named<'a>(mut elements: &'a [u8], name: &[u8]) -> Option<(u8, &'a [u8])> {
    loop {
        let (name_end, end) = element(elements)?;
        let (element, rest) = elements.split_at_checked(end)?;
        if element.get(1..name_end) == Some(name) {
            return Some((*element.first()?, element.get(name_end + 1..)?));
        }
        elements = rest;
    }
}

/// All elements of arrays, each as a type byte and a value, back to back: where these begin and end, their bytes, and for
/// each array the number of the element behind its last one. Arrays are a type byte and a value, too; a missing one has no
/// bytes. `None` if one of them is no array, or malformed.
#[inline(never)]
pub fn of_arrays(offsets: &[u32], bytes: &[u8]) -> Option<(Vec<u32>, Vec<u8>, Vec<u32>)> {
    let tails = offsets.get(1..).unwrap_or_default();
    let (mut starts, mut out, mut ends) = (vec![0], Vec::with_capacity(bytes.len()), Vec::with_capacity(tails.len()));
    for (start, end) in offsets.iter().zip(tails) {
        if let Some((kind, array)) = bytes.get(*start as usize..*end as usize)?.split_first() {
            let mut rest = array.get(4..).filter(|_| *kind == ARRAY)?;
            while let Some((name_end, end)) = first(rest) {
                out.push(*rest.first()?);
                out.extend_from_slice(rest.get(name_end + 1..end)?);
                starts.push(out.len() as u32);
                rest = rest.get(end..)?;
            }
            // Only the last byte is left, unless the array is malformed.
            if rest.len() > 1 {
                return None;
            }
        }
        ends.push(starts.len() as u32 - 1);
    }
    Some((starts, out, ends))
}

/// As `of_arrays` for arrays of doubles, whose elements are cells. `None` as well if an element is no double.
#[inline(never)]
pub fn doubles_of_arrays(offsets: &[u32], bytes: &[u8]) -> Option<(Vec<f64>, Vec<u32>)> {
    let tails = offsets.get(1..).unwrap_or_default();
    let (mut cells, mut ends) = (Vec::new(), Vec::with_capacity(tails.len()));
    for (start, end) in offsets.iter().zip(tails) {
        if let Some((kind, array)) = bytes.get(*start as usize..*end as usize)?.split_first() {
            let mut rest = array.get(4..).filter(|_| *kind == ARRAY)?;
            while let [kind, named @ ..] = rest
                && !named.is_empty()
            {
                let value = named.get(text_len(named)? + 1..).filter(|_| *kind == DOUBLE)?;
                cells.push(f64::from_le_bytes(*value.first_chunk()?));
                rest = value.get(8..)?;
            }
        }
        ends.push(cells.len() as u32);
    }
    Some((cells, ends))
}

/// The first cell of each part, then the second one of each, and so on.
#[inline(never)]
pub fn interleaved(parts: &[&[f64]]) -> Vec<f64> {
    let rows = parts.iter().map(|part| part.len()).min().unwrap_or_default();
    let mut cells = Vec::with_capacity(rows * parts.len());
    match parts {
        // Places on a map.
        [xs, ys] => xs.iter().zip(*ys).for_each(|(x, y)| cells.extend_from_slice(&[*x, *y])),
        _ => (0..rows).for_each(|row| cells.extend(parts.iter().filter_map(|part| part.get(row)))),
    }
    cells
}

/// As `of_arrays`, without the elements.
#[inline(never)]
pub fn ends_of_arrays(offsets: &[u32], bytes: &[u8]) -> Option<Vec<u32>> {
    let tails = offsets.get(1..).unwrap_or_default();
    let (mut count, mut ends) = (0, Vec::with_capacity(tails.len()));
    for (start, end) in offsets.iter().zip(tails) {
        if let Some((kind, array)) = bytes.get(*start as usize..*end as usize)?.split_first() {
            let mut rest = array.get(4..).filter(|_| *kind == ARRAY)?;
            while let Some((_, end)) = element(rest) {
                count += 1;
                rest = rest.get(end..)?;
            }
            if rest.len() > 1 {
                return None;
            }
        }
        ends.push(count);
    }
    Some(ends)
}

/// Arrays of doubles as values with type bytes, back to back: where these begin and end, and their bytes. For each array, `ends` has whether it is
/// there, and the number of the cell behind its last one; one that is not there is null.
#[inline(never)]
pub fn arrays_of_doubles(cells: &[f64], ends: &[(bool, usize)]) -> (Vec<u32>, Vec<u8>) {
    arrays(ends, |out, head, at| {
        if let Some(x) = cells.get(at) {
            put(out, head, DOUBLE, &x.to_le_bytes());
        }
    })
}

/// The same of values with type bytes.
#[inline(never)]
pub fn arrays_of_values((offsets, bytes): (&[u32], &[u8]), ends: &[(bool, usize)]) -> (Vec<u32>, Vec<u8>) {
    arrays(ends, |out, head, at| {
        if let (Some(start), Some(end)) = (offsets.get(at), offsets.get(at + 1))
            && let Some((kind, value)) = bytes.get(*start as usize..*end as usize).and_then(<[u8]>::split_first)
        {
            put(out, head, *kind, value);
        }
    })
}

#[inline(always)]
fn arrays(ends: &[(bool, usize)], put: impl Fn(&mut Vec<u8>, &mut Head, usize)) -> (Vec<u32>, Vec<u8>) {
    let (mut offsets, mut out, mut start) = (Vec::with_capacity(ends.len() + 1), Vec::new(), 0);
    offsets.push(0);
    for (is_there, end) in ends {
        let begin = out.len();
        if *is_there {
            out.extend_from_slice(&[ARRAY, 0, 0, 0, 0]);
            let mut head = Head::default();
            (start..*end).for_each(|at| put(&mut out, &mut head, at));
            out.push(0);
            let len = (out.len() - begin - 1) as u32;
            if let Some(prefix) = out.get_mut(begin + 1..begin + 5) {
                prefix.copy_from_slice(&len.to_le_bytes());
            }
        } else {
            out.push(NULL);
        }
        start = *end;
        offsets.push(out.len() as u32);
    }
    (offsets, out)
}

/// As `first`.
#[inline(always)]
pub(crate) fn element(elements: &[u8]) -> Option<(usize, usize)> {
    let (kind, rest) = elements.split_first()?;
    let name_len = text_len(rest)?;
    let len = value_len(*kind, rest.get(name_len + 1..)?)?;
    Some((1 + name_len, 2 + name_len + len))
}

/// The number of bytes before the first NUL. Names are short, but most have more than four bytes, so eight are tested at once.
#[inline(always)]
pub(crate) fn text_len(bytes: &[u8]) -> Option<usize> {
    const LOW_BITS: u64 = u64::from_ne_bytes([1; 8]);
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest of these bits belongs to the first NUL; higher ones may not.
        let nuls = word.wrapping_sub(LOW_BITS) & !word & (LOW_BITS << 7);
        if nuls != 0 {
            return Some(8 * at + nuls.trailing_zeros() as usize / 8);
        }
    }
    rest.iter().position(|byte| *byte == 0).map(|at| bytes.len() - rest.len() + at)
}

/// The length of the value of the type `kind` at the start of `bytes`. It looks only at length prefixes and NULs. `None` if the value does not fit, or for an
/// unknown type.
#[inline(never)]
pub fn value_len(kind: u8, bytes: &[u8]) -> Option<usize> {
    let prefix = |more: usize| {
        let len = usize::try_from(i32::from_le_bytes(*bytes.first_chunk()?)).ok()?;
        len.checked_add(more)
    };
    let text = |from: usize| Some(from + bytes.get(from..)?.iter().position(|byte| *byte == 0)? + 1);
    let len = match kind {
        0x01 | 0x09 | 0x11 | 0x12 => 8,
        0x10 => 4,
        0x13 => 16,
        0x07 => 12,
        0x08 => 1,
        0x06 | 0x0A | 0x7F | 0xFF => 0,
        0x02 | 0x0D | 0x0E => prefix(4)?,
        0x03 | 0x04 | 0x0F => prefix(0)?,
        0x05 => prefix(5)?,
        0x0B => text(text(0)?)?,
        0x0C => prefix(16)?,
        _ => return None,
    };
    (len <= bytes.len()).then_some(len)
}

/// Appends an element that has a name instead of a number.
#[inline(never)]
pub fn push_named(out: &mut Vec<u8>, kind: u8, name: &[u8], value: &[u8]) {
    out.push(kind);
    append(out, name);
    out.push(0);
    append(out, value);
}

/// Appends a type byte and a value.
#[inline(never)]
pub fn push_tagged(out: &mut Vec<u8>, kind: u8, value: &[u8]) {
    out.push(kind);
    append(out, value);
}

/// Appends the value of a string.
#[inline(never)]
pub fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    out.reserve(text.len() + 5);
    // A document is at most 16 MiB, so the length fits.
    out.extend_from_slice(&u32::try_from(text.len() + 1).unwrap_or(u32::MAX).to_le_bytes());
    append(out, text);
    out.push(0);
}

/// Appends bytes that are often few: copies of a length that the compiler knows are a few stores, others a call.
#[inline(always)]
fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    let end = out.len() + bytes.len();
    if let (8..=16, Some(first), Some(last)) = (bytes.len(), bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        out.extend_from_slice(first);
        out.truncate(end - 8);
        out.extend_from_slice(last);
    } else if let (4..8, Some(first), Some(last)) = (bytes.len(), bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        out.extend_from_slice(first);
        out.truncate(end - 4);
        out.extend_from_slice(last);
    } else {
        out.extend_from_slice(bytes);
    }
}

#[inline(always)]
fn put(out: &mut Vec<u8>, head: &mut Head, kind: u8, value: &[u8]) {
    const VALUE_LEN: usize = 8;
    head.bytes[0] = kind;
    // Copies of a length that the compiler knows are a few stores, others a call.
    let mut element = [0; HEAD_LEN_MAX + VALUE_LEN];
    element[..HEAD_LEN_MAX].copy_from_slice(&head.bytes);
    let small: Option<[u8; VALUE_LEN]> = match value.len() {
        8 => value.try_into().ok(),
        4 => value.try_into().ok().map(|four: [u8; 4]| u64::from(u32::from_le_bytes(four)).to_le_bytes()),
        0 | 1 => Some(u64::from(value.first().copied().unwrap_or_default()).to_le_bytes()),
        _ => None,
    };
    if let (Some(small), Some(place)) = (small, element.get_mut(head.len..head.len + VALUE_LEN)) {
        place.copy_from_slice(&small);
    }
    let end = out.len() + head.len;
    out.extend_from_slice(&element);
    if small.is_some() {
        out.truncate(end + value.len());
    } else {
        out.truncate(end);
        out.extend_from_slice(value);
    }
    head.count_up();
}

impl Head {
    #[inline(always)]
    fn count_up(&mut self) {
        let end = self.len - 1;
        for digit in self.bytes.get_mut(1..end).unwrap_or_default().iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
        // All were nines. Memory ends before the digits have no room.
        if let Some([end, _, ..]) = self.bytes.get_mut(end..) {
            *end = b'0';
            self.bytes[1] = b'1';
            self.len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_numbered_in_decimal_digits_and_keep_their_bytes() {
        let values: [&[u8]; 6] = [&[1, 2, 3, 4, 5, 6, 7, 8], &[9, 8, 7, 6], &[1], &[], &[5; 3], &[7; 30]];
        let (mut out, mut head, mut expected) = (vec![42], Head::default(), vec![42]);
        for n in 0..12_345_usize {
            let value = values[n % values.len()];
            push(&mut out, &mut head, n as u8, value);
            expected.push(n as u8);
            expected.extend_from_slice(n.to_string().as_bytes());
            expected.push(0);
            expected.extend_from_slice(value);
        }
        assert!(out == expected);
    }

    #[test]
    fn elements_pushed_at_once_are_those_pushed_one_by_one() {
        let bytes: Vec<u8> = (0..=255).cycle().take(8 * 1200).collect();
        for len in [4, 8, 12] {
            let (mut out, mut head) = (Vec::new(), Head::default());
            let (mut expected, mut each) = (Vec::new(), Head::default());
            push_all(&mut out, &mut head, 7, &bytes, len);
            bytes.chunks_exact(len).for_each(|value| push(&mut expected, &mut each, 7, value));
            assert!(out == expected && head.bytes == each.bytes);
        }
    }

    #[test]
    fn elements_of_arrays_are_listed_with_their_types() {
        let array = |elements: &[(u8, &[u8])]| {
            let mut out = vec![ARRAY, 0, 0, 0, 0];
            elements.iter().enumerate().for_each(|(at, (kind, value))| {
                push_named(&mut out, *kind, at.to_string().as_bytes(), value);
            });
            out.push(0);
            out
        };
        let list = |arrays: &[Vec<u8>]| {
            let mut offsets = vec![0];
            arrays.iter().for_each(|array| offsets.push(offsets.last().unwrap() + array.len() as u32));
            of_arrays(&offsets, &arrays.concat())
        };
        let arrays = [array(&[(0x10, &[1, 0, 0, 0]), (0x08, &[1])]), vec![], array(&[]), array(&[(0x0A, &[])])];
        let expected = (vec![0, 5, 7, 8], vec![0x10, 1, 0, 0, 0, 0x08, 1, 0x0A], vec![2, 2, 2, 3]);
        assert_eq!((list(&arrays), list(&[])), (Some(expected), Some((vec![0], vec![], vec![]))));
        assert_eq!(list(&[array(&[]), vec![0x10, 1, 0, 0, 0]]), None);
    }

    #[test]
    fn elements_with_names_are_found_again() {
        for name_len in 0..20 {
            for (kind, len) in [(0x10, 4), (0x12, 8), (0x13, 16), (0x08, 1), (0x0A, 0), (0x07, 12)] {
                let (name, value) = (vec![b'n'; name_len], (0..len).collect::<Vec<u8>>());
                let mut out = Vec::new();
                push_named(&mut out, kind, &name, &value);
                assert_eq!(out, [&[kind], &name[..], &[0], &value[..]].concat());
                assert_eq!(first(&out), Some((1 + name_len, out.len())));
                assert!(len == 0 || first(&out[..out.len() - 1]).is_none());
            }
        }
        assert_eq!([first(&[]), first(&[0]), first(&[9, b'n']), first(&[0x55, 0, 1])], [None; 4]);
    }

    #[test]
    fn the_first_element_of_a_name_is_found_however_long_names_are() {
        for name_len in 0..20 {
            let name = vec![b'n'; name_len];
            let mut out = Vec::new();
            // Bytes next to 0 and 128 may be taken for NULs where eight are tested at once.
            for other in [0x01, 0x7F, 0x80, 0x81, 0xFF] {
                push_named(&mut out, 0x10, &[&name[..], &[other]].concat(), &[0; 4]);
            }
            assert_eq!(named(&out, &name), None);
            push_named(&mut out, 0x02, &name, &[2, 0, 0, 0, b'a', 0]);
            push_named(&mut out, 0x10, &name, &[0; 4]);
            assert_eq!(named(&out, &name), Some((0x02, &[2, 0, 0, 0, b'a', 0][..])));
        }
        assert_eq!([named(&[], &[]), named(&[0x10, b'n', 0, 1], b"n"), named(&[0x10, b'n'], b"n")], [None; 3]);
    }

    #[test]
    fn lengths_come_from_types_prefixes_and_nuls() {
        assert_eq!(value_len(0x02, &[2, 0, 0, 0, b'a', 0, 7]), Some(6));
        assert_eq!(value_len(0x05, &[1, 0, 0, 0, 0, 9]), Some(6));
        assert_eq!(value_len(0x0B, b"ab\0i\0rest"), Some(5));
        assert_eq!(value_len(0x0B, b"ab\0i"), None);
        assert_eq!(value_len(0x03, &[9, 0, 0, 0, 0]), None);
        assert_eq!(value_len(0x04, &[0xFF; 9]), None);
        assert_eq!(value_len(0x02, &[0xFF, 0xFF, 0xFF, 0x7F]), None);
    }

    #[test]
    fn parts_are_interleaved() {
        assert_eq!(interleaved(&[&[1.0, 3.0], &[2.0, 4.0]]), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(interleaved(&[&[1.0, 3.0], &[2.0, 4.0], &[0.5]]), [1.0, 2.0, 0.5]);
    }

    #[test]
    fn arrays_of_cells_have_these_as_elements() {
        let cells = [0.5, -1.0, 2.0, 3.0];
        let ends = [(true, 1), (true, 1), (false, 1), (true, 4)];
        let (offsets, bytes) = arrays_of_doubles(&cells, &ends);
        let (mut values, mut places) = (Vec::new(), vec![0]);
        for x in &cells {
            push_tagged(&mut values, DOUBLE, &x.to_le_bytes());
            places.push(values.len() as u32);
        }
        assert_eq!(arrays_of_values((&places, &values), &ends), (offsets.clone(), bytes.clone()));
        assert_eq!(bytes.get(offsets[2] as usize..offsets[3] as usize), Some([NULL].as_slice()));
        // A missing array has no bytes, and no elements.
        let mut without = bytes.clone();
        without.remove(offsets[2] as usize);
        let offsets = [offsets[0], offsets[1], offsets[2], offsets[2], offsets[4] - 1];
        let found = doubles_of_arrays(&offsets, &without).unwrap();
        assert_eq!(ends_of_arrays(&offsets, &without).as_ref(), Some(&found.1));
        let (_, _, all) = of_arrays(&offsets, &without).unwrap();
        assert_eq!(all, found.1);
        assert_eq!(doubles_of_arrays(&[0, bytes.len() as u32], &bytes[..bytes.len() - 1]), None);
        assert_eq!(found, (cells.to_vec(), vec![1, 1, 1, 4]));
        let number = [ARRAY, 12, 0, 0, 0, 0x10, b'0', 0, 1, 0, 0, 0, 0];
        assert_eq!(doubles_of_arrays(&[0, 13], &number), None, "an int32");
        assert_eq!(ends_of_arrays(&[0, 13], &number), Some(vec![1]));
        assert_eq!(ends_of_arrays(&[0, 1], &[NULL]), None, "no array");
    }
}
