//! Damage to valid columns.

/// `column` changed by `edits`: flipped bits, set bytes, parts removed, duplicated or moved, and words with other selectors.
pub fn damaged(column: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut bytes = column.to_vec();
    for edit in edits.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([edit[1], edit[2]])) % bytes.len().max(1);
        let length = (usize::from(edit[3]) % 24).min(bytes.len() - at);
        match edit[0] % 10 {
            0 | 1 if at < bytes.len() => bytes[at] ^= 1 << (edit[3] & 7),
            2 if at < bytes.len() => bytes[at] = edit[3],
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..at + length)),
            5 => {
                let part = bytes[at..at + length].to_vec();
                bytes.splice(at..at, part);
            }
            6 => bytes.insert(at, edit[3]),
            // The first words follow the first literal; there a byte holds a selector and its extension.
            7 if bytes.len() > 16 => {
                let at = 2 + at % 14;
                bytes[at] = edit[3];
            }
            8 => {
                let word = [0x80 | edit[3] >> 6, 0xF1 | edit[3] << 4, edit[3], edit[3], 0, 0, edit[1], edit[2], 0];
                bytes.splice(at..at, word);
            }
            // An additional control or end.
            _ => bytes.push(if edit[3] < 128 { 0 } else { edit[3] }),
        }
    }
    bytes
}
