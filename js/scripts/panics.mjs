// Cuts down the code that composes the message of a panic, which nobody can read.
//
// A panic of Rust composes a message, writes it to a standard error that this target does not have, and ends in `unreachable`. What
// stays is the trap. So the functions that do this become a trap from the start: the page sees the same, the code behind them is
// unreachable, and wasm-opt drops it and what was handed to it. With a precompiled standard library there is no other way.

const IMPORT = 2;
const CODE = 10;
const DATA = 11;
const CUSTOM = 0;
/** No locals, `unreachable`, `end`. */
const TRAP = [0, 0x00, 0x0b];

/** Functions of Rust's own libraries that do not return; names are mangled in either of the two ways. */
const PANICS = [
  /(4core|5alloc|3std)9panicking/,
  /4core4cell\d+panic_|4core4cell4lazy\d+panic_/,
  /4core6option13(unwrap|expect)_failed/,
  /4core6result13unwrap_failed/,
  /4core5slice5index\d+slice_\w*fail/,
  /4core5slice\w*len_mismatch_fail/,
  /4core5slice4sort\w*panic_on_ord_violation/,
  /4core3str\d+slice_error_fail/,
  /5alloc5alloc18handle_alloc_error/,
  /5alloc7raw_vec(17capacity_overflow|12handle_error)/,
  /5alloc3vec\w*13assert_failed/,
  /17rust_begin_unwind|26___rust_alloc_error_handler/,
];

/** A position in `bytes` that reads LEB128 numbers and names. */
class Reader {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  number() {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = this.bytes[this.at++];
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }

  name() {
    const length = this.number();
    return Buffer.from(this.bytes.buffer, this.bytes.byteOffset + (this.at += length) - length, length).toString();
  }
}

const leb = (number) => (number < 0x80 ? [number] : [(number & 0x7f) | 0x80, ...leb(Math.floor(number / 0x80))]);

/** The sections of `bytes` as `{ id, start, end }` of what they hold. */
function sectionsOf(bytes) {
  const reader = new Reader(bytes, 8);
  const sections = [];
  while (reader.at < bytes.length) {
    const id = bytes[reader.at++];
    const size = reader.number();
    sections.push({ id, start: reader.at, end: (reader.at += size) });
  }
  return sections;
}

/** How many functions come from outside: they are numbered before those of the module. */
function importedFunctions(bytes, section) {
  const reader = new Reader(bytes, section.start);
  const limits = () => {
    const flags = reader.number();
    reader.number();
    if (flags & 1) reader.number();
  };
  let functions = 0;
  for (let left = reader.number(); left > 0; left--) {
    reader.name();
    reader.name();
    const kind = bytes[reader.at++];
    if (kind === 0) {
      functions++;
      reader.number();
    } else if (kind === 1) {
      reader.at++;
      limits();
    } else if (kind === 2) limits();
    else reader.at += 2;
  }
  return functions;
}

/** The names of functions by their number. */
function functionNames(bytes, sections) {
  const names = new Map();
  for (const { id, start, end } of sections) {
    const reader = new Reader(bytes, start);
    if (id !== CUSTOM || reader.name() !== "name") continue;
    while (reader.at < end) {
      const kind = bytes[reader.at++];
      const behind = reader.number() + reader.at;
      if (kind === 1) for (let left = reader.number(); left > 0; left--) names.set(reader.number(), reader.name());
      reader.at = behind;
    }
  }
  return names;
}

/** The bytes of every data segment with their address in memory. */
function segmentsOf(bytes, section) {
  const reader = new Reader(bytes, section.start);
  const segments = [];
  for (let left = reader.number(); left > 0; left--) {
    // Memory 0, `i32.const` address, `end`: what the linker writes for memory that nobody shares.
    if (reader.number() !== 0 || bytes[reader.at++] !== 0x41) throw new Error("a data segment of another kind");
    const address = reader.number();
    reader.at++;
    const length = reader.number();
    segments.push({ address, bytes: bytes.subarray(reader.at, (reader.at += length)) });
  }
  return segments;
}

/** Blanks in `bytes` every place in the source, `{ file, length, line, column }`, and its file name: panics name them, nobody else. */
function blankLocations(bytes, section) {
  const segments = segmentsOf(bytes, section);
  const at = (address, length) => {
    const segment = segments.find((one) => one.address <= address && address + length <= one.address + one.bytes.length);
    return segment?.bytes.subarray(address - segment.address, address - segment.address + length);
  };
  const files = new Map();
  for (const { address, bytes: data } of segments) {
    const view = new DataView(data.buffer, data.byteOffset, data.length);
    for (let offset = (4 - (address % 4)) % 4; offset + 16 <= data.length; offset += 4) {
      const [file, length, line, column] = [0, 4, 8, 12].map((behind) => view.getUint32(offset + behind, true));
      if (length < 5 || length > 300 || line === 0 || line > 1e5 || column === 0 || column > 1e3) continue;
      const name = at(file, length);
      if (!name || !/^[\w/.@+-]+\.rs$/.test(Buffer.from(name).toString("latin1"))) continue;
      files.set(file, name);
      data.fill(0, offset, offset + 16);
    }
  }
  for (const name of files.values()) name.fill(0);
}

/**
 * The module with a trap in place of every function that panics, without the places they would have named, and how many functions
 * there were. `bytes` must still have the names of functions.
 */
export function trapPanics(bytes) {
  const sections = sectionsOf(bytes);
  const names = functionNames(bytes, sections);
  const imports = sections.find(({ id }) => id === IMPORT);
  const code = sections.find(({ id }) => id === CODE);
  const data = sections.find(({ id }) => id === DATA);
  let at = imports ? importedFunctions(bytes, imports) : 0;
  const reader = new Reader(bytes, code.start);
  const count = reader.number();
  const bodies = [Buffer.from(leb(count))];
  let trapped = 0;
  for (let left = count; left > 0; left--, at++) {
    const size = reader.number();
    const body = bytes.subarray(reader.at, (reader.at += size));
    const name = names.get(at) ?? "";
    // What does not return ends in `unreachable`, `end`. A function that does return is none of these, whatever its name.
    const panics = body.at(-2) === 0x00 && PANICS.some((pattern) => pattern.test(name));
    if (panics) trapped++;
    const kept = panics ? TRAP : body;
    bodies.push(Buffer.from(leb(kept.length)), Buffer.from(kept));
  }
  const contents = Buffer.concat(bodies);
  const head = bytes.subarray(0, code.start - sectionHead(bytes, code));
  const tail = Buffer.from(bytes.subarray(code.end));
  if (data) blankLocations(tail, { start: data.start - code.end });
  const module = Buffer.concat([head, Buffer.from([CODE, ...leb(contents.length)]), contents, tail]);
  return { module, trapped };
}

/** Bytes of a section's id and size. The size may be padded, so it is read and not computed. */
function sectionHead(bytes, { start, end }) {
  for (let length = 2; length <= 6; length++) {
    const reader = new Reader(bytes, start - length + 1);
    if (bytes[start - length] === CODE && reader.number() === end - start && reader.at === start) return length;
  }
  throw new Error("a code section without a head");
}
