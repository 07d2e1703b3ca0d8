// CRC-32C (Castagnoli), the checksum of OP_MSG.

/** The reversed polynomial. */
const POLYNOMIAL = 0x82f63b78;
/** Eight tables, for eight bytes at once. */
let tables: Uint32Array[] | undefined;

function makeTables(): Uint32Array[] {
  const made = Array.from({ length: 8 }, () => new Uint32Array(256));
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    made[0]![byte] = crc;
  }
  for (let byte = 0; byte < 256; byte++) {
    for (let table = 1; table < 8; table++) {
      const before = made[table - 1]![byte]!;
      made[table]![byte] = (before >>> 8) ^ made[0]![before & 255]!;
    }
  }
  return made;
}

/** The checksum of `bytes`, as an unsigned number. `before` is the checksum of the bytes in front of them. */
export function crc32c(bytes: Uint8Array, before = 0): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = (tables ??= makeTables()) as [Uint32Array, Uint32Array, Uint32Array, Uint32Array, Uint32Array, Uint32Array, Uint32Array, Uint32Array];
  const length = bytes.length;
  let crc = ~before;
  let at = 0;
  for (; at + 8 <= length; at += 8) {
    const low = crc ^ (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24));
    crc =
      t7[low & 255]! ^ t6[(low >>> 8) & 255]! ^ t5[(low >>> 16) & 255]! ^ t4[low >>> 24]! ^
      t3[bytes[at + 4]!]! ^ t2[bytes[at + 5]!]! ^ t1[bytes[at + 6]!]! ^ t0[bytes[at + 7]!]!;
  }
  for (; at < length; at++) crc = (crc >>> 8) ^ t0[(crc ^ bytes[at]!) & 255]!;
  return ~crc >>> 0;
}
