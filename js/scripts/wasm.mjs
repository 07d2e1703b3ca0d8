// Parses a WebAssembly module as far as the scripts in this folder need it: sections, names and functions, but no instructions.

export const CUSTOM = 0;
export const IMPORT = 2;
export const EXPORT = 7;
export const ELEMENT = 9;
export const CODE = 10;
export const DATA = 11;
export const DATA_COUNT = 12;

/** A position in `bytes` that reads LEB128 numbers and names. */
export class Reader {
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

  /** A signed number. */
  signed() {
    let value = 0;
    for (let shift = 0; ; ) {
      const byte = this.bytes[this.at++];
      value += (byte & 0x7f) * 2 ** shift;
      shift += 7;
      if (byte < 0x80) return byte & 0x40 ? value - 2 ** shift : value;
    }
  }

  /** Bytes that are preceded by their length. */
  prefixed() {
    const length = this.number();
    return this.bytes.subarray(this.at, (this.at += length));
  }

  name() {
    return Buffer.from(this.prefixed()).toString();
  }
}

export function leb(number) {
  const bytes = [];
  for (; number >= 0x80; number = Math.floor(number / 0x80)) bytes.push((number & 0x7f) | 0x80);
  return Buffer.from([...bytes, number]);
}

/** `bytes`, preceded by their length. */
export const prefixed = (bytes) => Buffer.concat([leb(bytes.length), bytes]);

/** The sections of `bytes` as `{ id, head, start, end }`: where the section begins, and where its content begins and ends. */
export function sectionsOf(bytes) {
  const reader = new Reader(bytes, 8);
  const sections = [];
  while (reader.at < bytes.length) {
    const head = reader.at;
    const id = bytes[reader.at++];
    const size = reader.number();
    sections.push({ id, head, start: reader.at, end: (reader.at += size) });
  }
  return sections;
}

/** The number of imported functions, which are numbered before those of the module. */
export function importedFunctions(bytes, sections) {
  const section = sections.find(({ id }) => id === IMPORT);
  if (!section) return 0;
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

/** The bodies of the module's own functions, in order. */
export function bodiesOf(bytes, sections) {
  const reader = new Reader(bytes, sections.find(({ id }) => id === CODE).start);
  return Array.from({ length: reader.number() }, () => reader.prefixed());
}

/** The names of functions, imported ones first. */
export function namesOf(bytes, sections) {
  const names = new Map();
  for (const { start, end } of sections.filter(({ id }) => id === CUSTOM)) {
    const reader = new Reader(bytes, start);
    if (reader.name() !== "name") continue;
    while (reader.at < end) {
      const kind = bytes[reader.at++];
      const next = reader.number() + reader.at;
      if (kind === 1) for (let left = reader.number(); left > 0; left--) names.set(reader.number(), reader.name());
      reader.at = next;
    }
  }
  return names;
}

/** The segments of the data section: their address in memory, and the position of their bytes in the module. */
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

/** The features that the module lists as used. */
export function featuresOf(bytes) {
  for (const { id, start } of sectionsOf(bytes)) {
    const reader = new Reader(bytes, start);
    if (id !== CUSTOM || reader.name() !== "target_features") continue;
    return Array.from({ length: reader.number() }, () => {
      if (bytes[reader.at++] !== 0x2b) throw new Error("a feature of the module is not listed with +");
      return reader.name();
    });
  }
  return [];
}
