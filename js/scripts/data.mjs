// Finds the constants that only the second half of the module reads, so that the first half need not contain them.
//
// Instructions are not analysed: a constant belongs to the first half if a function of that half refers to it, or a constant that
// belongs to that half does (graph.mjs).

import { DATA, DATA_COUNT, leb, prefixed, sectionsOf, segmentsOf } from "./wasm.mjs";

/** Moving a shorter range costs more in the second half than it saves in the first. */
const RANGE_BYTES_MIN = 24;

/** Fewer zeros between two segments are written: they compress to less than the head of a segment. */
const HOLE_BYTES_MIN = 128;

/** The ranges of memory, as `{ address, length }`, with constants that are not in `read`. `symbols` are those of a `Graph`. */
export function unread(symbols, read) {
  const marks = new Map();
  const mark = (symbol, value) => {
    for (let at = symbol.start; at < symbol.start + symbol.length; at++) marks.set(at, value);
  };
  symbols.forEach((symbol, at) => symbol.isConstant && !read.has(at) && mark(symbol, true));
  symbols.forEach((symbol, at) => symbol.start !== undefined && read.has(at) && mark(symbol, false));
  const ranges = [];
  for (const address of [...marks.keys()].filter((at) => marks.get(at)).sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    // Bytes between constants are padding.
    const gap = last ? address - last.address - last.length : Infinity;
    const isFree = gap < 8 && Array.from({ length: gap }, (_, at) => marks.get(last.address + last.length + at)).every((value) => value !== false);
    if (isFree) last.length += gap + 1;
    else ranges.push({ address, length: 1 });
  }
  return ranges.filter(({ length }) => length >= RANGE_BYTES_MIN);
}

/** A data section with these segments. */
function sectionOf(segments) {
  const entries = segments.map(({ address, bytes }) => Buffer.concat([Buffer.from([0, 0x41]), signed(address), Buffer.from([0x0b]), prefixed(bytes)]));
  return Buffer.concat([Buffer.from([DATA]), prefixed(Buffer.concat([leb(entries.length), ...entries]))]);
}

function signed(value) {
  const bytes = [];
  for (; value >= 0x40; value = Math.floor(value / 0x80)) bytes.push((value % 0x80) | 0x80);
  return Buffer.from([...bytes, value]);
}

/** The data sections of both halves: `ranges` are only in the second, everything else only in the first. */
export function dividedData(bytes, ranges) {
  const first = segmentsOf(bytes).map(({ address, start, length }) => ({ address, bytes: Buffer.from(bytes.subarray(start, start + length)) }));
  const second = ranges.map(({ address, length }) => {
    const segment = first.find((segment) => segment.address <= address && address < segment.address + segment.bytes.length);
    const part = segment.bytes.subarray(address - segment.address, address - segment.address + length);
    const moved = { address, bytes: Buffer.from(part) };
    // Memory is initially zero, so wasm-opt removes zeros.
    part.fill(0);
    return moved;
  });
  return [first, second].map(sectionOf);
}

/** A module without small holes in its data. Nothing else may have filled them. */
export function withoutHoles(bytes) {
  const joined = [];
  for (const { address, start, length } of segmentsOf(bytes)) {
    const part = bytes.subarray(start, start + length);
    const last = joined.at(-1);
    const hole = last ? address - last.address - last.bytes.length : -1;
    if (hole >= 0 && hole < HOLE_BYTES_MIN) last.bytes = Buffer.concat([last.bytes, Buffer.alloc(hole), part]);
    else joined.push({ address, bytes: part });
  }
  // The number of segments, in a section of its own, is for instructions that name one; there is none.
  const parts = sectionsOf(bytes).filter(({ id }) => id !== DATA_COUNT);
  return Buffer.concat([bytes.subarray(0, 8), ...parts.map(({ id, head, end }) => (id === DATA ? sectionOf(joined) : bytes.subarray(head, end)))]);
}
