//! Elements of BSON arrays: a type byte, the number of the element in decimal digits, a NUL, and the value.

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
}
