// Divides a module into two halves: one that every page needs, and one that is loaded by the first command that needs it.
//
// Both halves share memory, tables and globals. Each keeps the function indexes of the whole module, so that instructions need not be changed.
// If a half calls a function that only the other half has, a call through a slot of the function table replaces the function, and the other half fills the slot.
// The first half does so for functions that are loaded later, the second half for long functions of the first. At first, both halves have all other
// functions; wasm-opt then removes from each what it does not reach. Each half fills the slots of the function table that only it refers to.
// Constants that only the second half reads move to it (data.mjs).

import { dividedData } from "./data.mjs";
import { CODE, CUSTOM, DATA, DATA_COUNT, ELEMENT, EXPORT, IMPORT, Reader, bodiesOf, importedFunctions, leb, namesOf, prefixed, sectionsOf } from "./wasm.mjs";

const [TYPE, FUNCTION, TABLE, MEMORY, GLOBAL, START] = [1, 3, 4, 5, 6, 8];
/** The name of the module from which the second half imports the shared parts. */
export const SHARED = "shared";
/** A module, parsed as far as the split needs it. */
export class Whole {
  constructor(bytes) {
    this.bytes = bytes;
    this.sections = sectionsOf(bytes);
    this.imported = importedFunctions(bytes, this.sections);
    this.bodies = bodiesOf(bytes, this.sections);
    this.types = this.#list(TYPE, (reader) => {
      reader.at++;
      const params = reader.number();
      reader.at += params;
      const results = reader.number();
      reader.at += results;
      return { params, results };
    });
    this.typeOf = this.#list(FUNCTION, (reader) => reader.number());
    this.tables = this.#list(TABLE, (reader) => {
      const kind = bytes[reader.at++];
      const flags = reader.number();
      const min = reader.number();
      return { kind, min, max: flags & 1 ? reader.number() : undefined };
    });
    this.globals = this.#list(GLOBAL, (reader) => {
      const type = bytes.subarray(reader.at, (reader.at += 2));
      // The initial value: one instruction, whose operand is a number or another global, and the end marker.
      while (bytes[reader.at] !== 0x0b) {
        const opcode = bytes[reader.at++];
        if (opcode === 0x43) reader.at += 4;
        else if (opcode === 0x44) reader.at += 8;
        else reader.number();
      }
      reader.at++;
      return type;
    });
    this.functions = this.tables.findIndex(({ kind }) => kind === 0x70);
  }

  /** The entries of a section. */
  #list(id, read) {
    const section = this.sections.find((section) => section.id === id);
    if (!section) return [];
    const reader = new Reader(this.bytes, section.start);
    return Array.from({ length: reader.number() }, () => read(reader));
  }

  /** The content of a section, without its header. */
  raw(id) {
    const section = this.sections.find((section) => section.id === id);
    return section ? this.bytes.subarray(section.start, section.end) : undefined;
  }

  /** The names of functions, by number, imported ones first. */
  names() {
    return namesOf(this.bytes, this.sections);
  }

  /** The initial content of the function table: pairs of a slot and a function. */
  filled() {
    const pairs = this.#list(ELEMENT, (reader) => {
      const flags = reader.number();
      const table = flags === 2 ? reader.number() : 0;
      if ((flags !== 0 && flags !== 2) || table !== this.functions || this.bytes[reader.at++] !== 0x41) throw new Error("a segment of functions has no constant place");
      const place = reader.signed();
      reader.at++;
      if (flags === 2) reader.at++;
      return Array.from({ length: reader.number() }, (_, at) => [place + at, reader.number() - this.imported]);
    });
    return pairs.flat();
  }

  /** A body that calls the function in a slot of the table. With `ifLoaded`, it returns 0, or nothing, as long as the slot is empty. */
  call(own, place, ifLoaded) {
    const type = this.typeOf[own];
    const { params: count, results } = this.types[type];
    const params = Array.from({ length: count }, (_, at) => Buffer.concat([Buffer.from([0x20]), leb(at)]));
    const call = Buffer.concat([...params, constant(place), Buffer.from([0x11]), leb(type), leb(this.functions)]);
    // table.get, ref.is_null, if, i32.const 0, else
    const otherwise = results > 0 ? [0xd1, 0x04, 0x7f, 0x41, 0x00, 0x05] : [0xd1, 0x04, 0x40, 0x05];
    const isThere = Buffer.concat([constant(place), Buffer.from([0x25]), leb(this.functions), Buffer.from(otherwise)]);
    const body = ifLoaded ? [isThere, call, Buffer.from([0x0b])] : [call];
    return Buffer.concat([Buffer.from([0]), ...body, Buffer.from([0x0b])]);
  }
}

/** `i32.const`. */
function constant(value) {
  const bytes = [0x41];
  for (;;) {
    const byte = value & 0x7f;
    value >>= 7;
    if (value === 0 && !(byte & 0x40)) return Buffer.from([...bytes, byte]);
    bytes.push(byte | 0x80);
  }
}

const section = (id, content) => Buffer.concat([Buffer.from([id]), prefixed(content)]);
const list = (entries) => Buffer.concat([leb(entries.length), ...entries]);
const name = (text) => prefixed(Buffer.from(text));

/** Pairs of a slot of the table and a function, as segments. */
function segments(whole, pairs) {
  const runs = [];
  for (const [place, own] of pairs.toSorted(([a], [b]) => a - b)) {
    const last = runs.at(-1);
    if (last && last.place + last.functions.length === place) last.functions.push(own);
    else runs.push({ place, functions: [own] });
  }
  return runs.map(({ place, functions }) => segment(whole, place, functions));
}

/** A segment that puts functions into consecutive slots of the table, beginning at `place`. */
function segment(whole, place, functions) {
  const offset = Buffer.concat([constant(place), Buffer.from([0x0b])]);
  const head = whole.functions === 0 ? [Buffer.from([0]), offset] : [Buffer.from([2]), leb(whole.functions), offset, Buffer.from([0])];
  return Buffer.concat([...head, list(functions.map((own) => leb(whole.imported + own)))]);
}

/** A section that names each function by its number, so that `left` can tell which functions are left in a half. */
function numbered(whole) {
  const names = Array.from({ length: whole.imported + whole.bodies.length }, (_, at) => Buffer.concat([leb(at), name(String(at - whole.imported))]));
  return section(CUSTOM, Buffer.concat([name("name"), Buffer.from([1]), prefixed(list(names))]));
}

/**
 * The two halves. `entered` are the numbers of functions of the second half that the first calls. `lent` are those that the second takes from
 * the first. `ranges` are the parts of memory that only the second fills. `careful` are those of `entered` that may be called before the second
 * half is loaded, and return 0 until then. `fills` says which half fills the slot of a function in the table: 0, 1, or none.
 */
export function halves(whole, { entered, lent = [], ranges = [], careful = new Set(), fills }) {
  const { imported, tables, globals, functions } = whole;
  const base = tables[functions].min;
  const places = new Map([...entered, ...lent].map((own, at) => [own, base + at]));
  const end = base + places.size;
  const filled = (half, extra) => segments(whole, [...whole.filled().filter(([, own]) => fills(own) === half), ...extra.map((own) => [places.get(own), own])]);
  const code = (stubs) => section(CODE, list(whole.bodies.map((body, own) => prefixed(stubs.has(own) ? whole.call(own, places.get(own), careful.has(own)) : body))));
  const kept = ({ id, start }) => id !== CUSTOM || new Reader(whole.bytes, start).name() === "target_features";
  const limits = ({ kind, min, max }, at) => {
    const more = at === functions ? end - base : 0;
    return Buffer.concat([Buffer.from([kind, max === undefined ? 0 : 1]), leb(min + more), ...(max === undefined ? [] : [leb(max + more)])]);
  };

  const add = (id, extra) => {
    const raw = whole.raw(id);
    const reader = new Reader(raw ?? Buffer.from([0]), 0);
    const count = reader.number();
    return section(id, Buffer.concat([leb(count + extra.length), reader.bytes.subarray(reader.at), ...extra]));
  };
  const exported = (text, kind, at) => Buffer.concat([name(text), Buffer.from([kind]), leb(at)]);
  const [firstData, secondData] = dividedData(whole.bytes, ranges);
  const first = [];
  for (const part of whole.sections) {
    if (part.id === DATA) first.push(firstData);
    else if (part.id === TABLE) first.push(section(TABLE, list(tables.map(limits))));
    else if (part.id === EXPORT) {
      first.push(add(EXPORT, [...tables.map((_, at) => exported(`table${at}`, 1, at)), ...globals.map((_, at) => exported(`global${at}`, 3, at))]));
    } else if (part.id === ELEMENT) first.push(section(ELEMENT, list(filled(0, lent))));
    else if (part.id === CODE) first.push(code(new Set(entered)));
    else if (kept(part)) first.push(whole.bytes.subarray(part.head, part.end));
  }

  const memory = new Reader(whole.raw(MEMORY), 1);
  memory.number();
  const from = (text, kind, type) => Buffer.concat([name(SHARED), name(text), Buffer.from([kind]), type]);
  const shared = [
    from("memory", 2, Buffer.concat([Buffer.from([0]), leb(memory.number())])),
    ...tables.map(({ kind, min }, at) => from(`table${at}`, 1, Buffer.concat([Buffer.from([kind, 0]), leb(at === functions ? end : min)]))),
    ...globals.map((type, at) => from(`global${at}`, 3, type)),
  ];
  const second = [];
  for (const part of whole.sections) {
    if (part.id === IMPORT) second.push(add(IMPORT, shared));
    else if (part.id === EXPORT) second.push(section(ELEMENT, list(filled(1, entered))));
    else if (part.id === CODE) second.push(code(new Set(lent)));
    else if (part.id === DATA) second.push(secondData);
    else if (![TABLE, MEMORY, GLOBAL, START, ELEMENT, DATA_COUNT].includes(part.id) && kept(part)) {
      second.push(whole.bytes.subarray(part.head, part.end));
    }
  }
  const head = whole.bytes.subarray(0, 8);
  return [first, second].map((parts) => Buffer.concat([head, ...parts, numbered(whole)]));
}

/** The numbers of the functions that are left in a half. */
export function left(bytes) {
  return new Set([...new Whole(bytes).names().values()].map(Number).filter((own) => own >= 0));
}

/** `bytes` with imports under other names: `nameOf` is given the name and the module, and returns the module and the name. */
export function renamed(bytes, nameOf) {
  const part = sectionsOf(bytes).find(({ id }) => id === IMPORT);
  const reader = new Reader(bytes, part.start);
  const entries = Array.from({ length: reader.number() }, () => {
    const [from, text] = [reader.name(), reader.name()];
    const start = reader.at;
    const kind = bytes[reader.at++];
    if (kind === 0) reader.number();
    else if (kind === 3) reader.at += 2;
    else {
      if (kind === 1) reader.at++;
      const flags = reader.number();
      reader.number();
      if (flags & 1) reader.number();
    }
    const type = bytes.subarray(start, reader.at);
    return Buffer.concat([...nameOf(text, from).map(name), type]);
  });
  return Buffer.concat([bytes.subarray(0, part.head), section(IMPORT, list(entries)), bytes.subarray(part.end)]);
}
