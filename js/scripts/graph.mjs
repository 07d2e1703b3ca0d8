// Says what in a module reaches what: functions and constants, as the linker has recorded them beside the module it wrote.
//
// The linker writes down each place that names a function or an address (its relocations). So no instruction is read here, and what only a
// table of functions names (the methods of a `dyn`) counts where something names the table.

import { CODE, CUSTOM, DATA, EXPORT, Reader, bodiesOf, importedFunctions, namesOf, sectionsOf, segmentsOf } from "./wasm.mjs";

const SYMBOL_TABLE = 8;
const SEGMENT_INFO = 5;
/** Relocations that name a function to call it. */
const CALLS = new Set([0]);
/** Relocations that name a function by its place in the function table: those of code, and of constants. */
const PLACES = new Set([1, 2]);
/** Relocations that name an address. */
const ADDRESSES = new Set([3, 4, 5]);
/** Relocations that have a number behind their symbol. */
const WITH_ADDEND = new Set([3, 4, 5, 8, 9, 11, 14, 15, 16, 17, 21, 22, 23, 25, 27]);

/** What is named in one place: functions that are called, functions whose place in the table is known, constants. */
class Named {
  calls = new Set();
  places = new Set();
  constants = new Set();
}

/** A module as the linker has written it. Functions are numbered as in the module, imported ones first, constants as the linker's symbols. */
export class Graph {
  constructor(bytes) {
    this.bytes = bytes;
    this.sections = sectionsOf(bytes);
    this.imported = importedFunctions(bytes, this.sections);
    this.names = namesOf(bytes, this.sections);
    this.segments = segmentsOf(bytes);
    this.#readSymbols();
    const bodies = bodiesOf(bytes, this.sections);
    this.functions = new Map(bodies.map((_, own) => [this.imported + own, new Named()]));
    this.#readCode(bodies);
    this.#readData();
  }

  /** The functions that the module gives away, by name. */
  exports() {
    const reader = new Reader(this.bytes, this.sections.find(({ id }) => id === EXPORT).start);
    const all = Array.from({ length: reader.number() }, () => [reader.name(), this.bytes[reader.at++], reader.number()]);
    return new Map(all.filter(([, kind]) => kind === 0).map(([name, , at]) => [name, at]));
  }

  /** All that is reached from functions, which are reached too: nothing is reached through one of `closed`. */
  reach(roots, closed = new Set()) {
    const found = { functions: new Set(roots), constants: new Set(), calls: new Set(), places: new Set() };
    const follow = (named) => {
      for (const at of named?.calls ?? []) found.calls.add(at) && found.functions.add(at);
      for (const at of named?.places ?? []) found.places.add(at) && found.functions.add(at);
      for (const at of named?.constants ?? []) found.constants.add(at);
    };
    // A set shows what is added to it while it is gone through.
    for (let before = -1; before < found.functions.size + found.constants.size; ) {
      before = found.functions.size + found.constants.size;
      for (const at of found.functions) if (!closed.has(at)) follow(this.functions.get(at));
      for (const at of found.constants) follow(this.constants.get(at));
    }
    return found;
  }

  /** The section of that name, behind the name. */
  #custom(name) {
    for (const { id, start, end } of this.sections) {
      if (id !== CUSTOM) continue;
      const reader = new Reader(this.bytes, start);
      if (reader.name() === name) return { reader, end };
    }
    throw new Error(`the linker wrote no ${name}`);
  }

  /** `symbols` by their numbers; those of constants say where they begin in memory, how long they are, and whether they are never written to. */
  #readSymbols() {
    const { reader, end } = this.#custom("linking");
    const names = [];
    this.symbols = [];
    reader.number();
    while (reader.at < end) {
      const type = this.bytes[reader.at++];
      const next = reader.number() + reader.at;
      if (type === SEGMENT_INFO) {
        for (let left = reader.number(); left > 0; left--) {
          names.push(reader.name());
          reader.number();
          reader.number();
        }
      } else if (type === SYMBOL_TABLE) {
        for (let left = reader.number(); left > 0; left--) this.symbols.push(this.#symbol(reader));
      }
      reader.at = next;
    }
    for (const symbol of this.symbols) symbol.isConstant = names[symbol.segment] === ".rodata";
  }

  #symbol(reader) {
    const kind = this.bytes[reader.at++];
    const flags = reader.number();
    const isUndefined = (flags & 0x10) !== 0;
    if (kind !== 1) {
      const at = reader.number();
      if (kind !== 3 && (!isUndefined || flags & 0x40)) reader.name();
      return { function: kind === 0 ? at : undefined };
    }
    reader.name();
    if (isUndefined) return {};
    const segment = reader.number();
    return { segment, start: this.segments[segment].address + reader.number(), length: reader.number() };
  }

  /** Shows `see` what each relocation is of: where in the file it stands, its type, and its symbol. */
  #relocations(name, section, see) {
    const { start } = this.sections.find(({ id }) => id === section);
    const { reader } = this.#custom(name);
    reader.number();
    for (let left = reader.number(); left > 0; left--) {
      const type = this.bytes[reader.at++];
      const at = start + reader.number();
      const symbol = reader.number();
      if (WITH_ADDEND.has(type)) reader.signed();
      see(at, type, symbol);
    }
  }

  #note(named, type, symbol) {
    if (CALLS.has(type)) named.calls.add(this.symbols[symbol].function);
    else if (PLACES.has(type)) named.places.add(this.symbols[symbol].function);
    else if (ADDRESSES.has(type)) named.constants.add(symbol);
  }

  #readCode(bodies) {
    // In the order of their addresses, as relocations are.
    const ends = bodies.map((body) => body.byteOffset - this.bytes.byteOffset + body.length);
    let own = 0;
    this.#relocations("reloc.CODE", CODE, (at, type, symbol) => {
      while (ends[own] <= at) own++;
      this.#note(this.functions.get(this.imported + own), type, symbol);
    });
  }

  #readData() {
    this.constants = new Map();
    this.#relocations("reloc.DATA", DATA, (at, type, symbol) => {
      const segment = this.segments.find(({ start, length }) => start <= at && at < start + length);
      const address = segment.address + at - segment.start;
      this.symbols.forEach(({ start, length }, holder) => {
        if (!(start <= address && address < start + length)) return;
        if (!this.constants.has(holder)) this.constants.set(holder, new Named());
        this.#note(this.constants.get(holder), type, symbol);
      });
    });
  }
}
