// Says which constants only the second half of the module reads, so that the first one need not have them.
//
// The linker writes beside the module where each address comes from. Nothing here reads instructions: a constant belongs to the first half
// where a function that is left in it names it, or a constant that belongs to it does.

import { CODE, CUSTOM, DATA, Reader, bodiesOf, importedFunctions, leb, namesOf, prefixed, sectionsOf } from "./wasm.mjs";

const SYMBOL_TABLE = 8;
const SEGMENT_INFO = 5;
/** Relocations that name a constant; those of code, and of constants. */
const ADDRESSES = new Set([3, 4, 5]);
/** Relocations that have a number behind their symbol. */
const WITH_ADDEND = new Set([3, 4, 5, 8, 9, 11, 14, 15, 16, 17, 21, 22, 23, 25, 27]);
/** A range that is shorter costs more where it is put than it saves where it was. */
const RANGE_BYTES_MIN = 24;

/** The custom section of that name, behind the name. */
function custom(bytes, sections, name) {
  for (const { id, start, end } of sections) {
    if (id !== CUSTOM) continue;
    const reader = new Reader(bytes, start);
    if (reader.name() === name) return { reader, end };
  }
  throw new Error(`the linker wrote no ${name}`);
}

/** The segments of the data section: where they go in memory, and where their bytes stand in the module. */
export function segmentsOf(bytes) {
  const section = sectionsOf(bytes).find(({ id }) => id === DATA);
  const reader = new Reader(bytes, section.start);
  return Array.from({ length: reader.number() }, () => {
    if (reader.number() !== 0 || bytes[reader.at++] !== 0x41) throw new Error("a segment of data has no constant address");
    const address = reader.signed();
    reader.at++;
    const length = reader.number();
    const start = reader.at;
    reader.at += length;
    return { address, start, length };
  });
}

/** Symbols by their numbers; of constants where they begin in memory and how long they are. */
function symbolsOf(bytes, sections) {
  const { reader, end } = custom(bytes, sections, "linking");
  const segments = segmentsOf(bytes);
  const names = [];
  const symbols = [];
  reader.number();
  while (reader.at < end) {
    const type = bytes[reader.at++];
    const next = reader.number() + reader.at;
    if (type === SEGMENT_INFO) {
      for (let left = reader.number(); left > 0; left--) {
        names.push(reader.name());
        reader.number();
        reader.number();
      }
    } else if (type === SYMBOL_TABLE) {
      for (let left = reader.number(); left > 0; left--) {
        const kind = bytes[reader.at++];
        const flags = reader.number();
        const isUndefined = (flags & 0x10) !== 0;
        const symbol = {};
        if (kind === 1) {
          reader.name();
          if (!isUndefined) {
            const segment = reader.number();
            Object.assign(symbol, { segment, start: segments[segment].address + reader.number(), length: reader.number() });
          }
        } else {
          reader.number();
          if (kind !== 3 && (!isUndefined || flags & 0x40)) reader.name();
        }
        symbols.push(symbol);
      }
    }
    reader.at = next;
  }
  symbols.forEach((symbol) => (symbol.isConstant = names[symbol.segment] === ".rodata"));
  return { symbols, segments };
}

/** Shows `see` where in a section an address stands, and the number of the symbol that it is of. */
function relocations(bytes, sections, name, see) {
  const { reader } = custom(bytes, sections, name);
  reader.number();
  for (let left = reader.number(); left > 0; left--) {
    const type = bytes[reader.at++];
    const offset = reader.number();
    const symbol = reader.number();
    if (WITH_ADDEND.has(type)) reader.signed();
    if (ADDRESSES.has(type)) see(offset, symbol);
  }
}

/**
 * The parts of memory, as `{ address, length }`, whose constants are read by nothing but functions whose names are in `gone`. `bytes` are
 * the module as the linker has written it, with its own names for functions.
 */
export function unread(bytes, gone) {
  const sections = sectionsOf(bytes);
  const { symbols, segments } = symbolsOf(bytes, sections);
  const names = namesOf(bytes, sections);
  const imported = importedFunctions(bytes, sections);

  // In the order of their addresses, as relocations are.
  const code = sections.find(({ id }) => id === CODE).start;
  const bodies = bodiesOf(bytes, sections);
  const read = new Set();
  let own = 0;
  relocations(bytes, sections, "reloc.CODE", (offset, symbol) => {
    const at = bytes.byteOffset + code + offset;
    while (own < bodies.length && bodies[own].byteOffset + bodies[own].length <= at) own++;
    if (!gone.has(names.get(imported + own))) read.add(symbol);
  });
  const below = new Map();
  const data = sections.find(({ id }) => id === DATA).start;
  relocations(bytes, sections, "reloc.DATA", (offset, symbol) => {
    const segment = segments.find(({ start, length }) => start <= data + offset && data + offset < start + length);
    const address = segment.address + data + offset - segment.start;
    symbols.forEach(({ start, length }, holder) => {
      if (start <= address && address < start + length) below.set(holder, [...(below.get(holder) ?? []), symbol]);
    });
  });
  // A set shows what is added to it while it is gone through.
  for (const symbol of read) for (const next of below.get(symbol) ?? []) read.add(next);

  const marks = new Map();
  const mark = (symbol, value) => {
    for (let at = symbol.start; at < symbol.start + symbol.length; at++) marks.set(at, value);
  };
  symbols.forEach((symbol, at) => symbol.isConstant && !read.has(at) && mark(symbol, true));
  symbols.forEach((symbol, at) => symbol.start !== undefined && read.has(at) && mark(symbol, false));
  const ranges = [];
  for (const address of [...marks.keys()].filter((at) => marks.get(at)).sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    // What lies between is for alignment, and belongs to nobody.
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

/** The data sections of both halves: what lies in `ranges` only the second has, all else only the first. */
export function dividedData(bytes, ranges) {
  const first = segmentsOf(bytes).map(({ address, start, length }) => ({ address, bytes: Buffer.from(bytes.subarray(start, start + length)) }));
  const second = ranges.map(({ address, length }) => {
    const segment = first.find((segment) => segment.address <= address && address < segment.address + segment.bytes.length);
    const part = segment.bytes.subarray(address - segment.address, address - segment.address + length);
    const moved = { address, bytes: Buffer.from(part) };
    // Memory is zeros at first, and wasm-opt leaves these out.
    part.fill(0);
    return moved;
  });
  return [first, second].map(sectionOf);
}
