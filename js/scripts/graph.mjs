// The graph of references between the functions and constants of a module, from the relocations that the linker has recorded.
//
// A relocation is a place that refers to a function or an address. So instructions are not analysed here, and functions to which only a method table
// refers (the methods of a `dyn` type) count as reached if something refers to the table.

import { CODE, CUSTOM, DATA, EXPORT, Reader, bodiesOf, importedFunctions, namesOf, sectionsOf, segmentsOf } from "./wasm.mjs";

const SYMBOL_TABLE = 8;
const SEGMENT_INFO = 5;
/** Relocations of calls. */
const CALLS = new Set([0]);
/** Relocations that refer to a function by its slot in the function table: in code, and in constants. */
const PLACES = new Set([1, 2]);
/** Relocations that refer to an address. */
const ADDRESSES = new Set([3, 4, 5]);
/** Relocations with an addend. */
const WITH_ADDEND = new Set([3, 4, 5, 8, 9, 11, 14, 15, 16, 17, 21, 22, 23, 25, 27]);

/** The references of one function or constant: called functions, functions by their slot in the table, constants. */
class Named {
  calls = new Set();
  places = new Set();
  constants = new Set();
}

/** A module as written by the linker. Functions have their index in the module, imports first; constants have the index of their symbol. */
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

  /** The exported functions, by name. */
  exports() {
    const reader = new Reader(this.bytes, this.sections.find(({ id }) => id === EXPORT).start);
    const all = Array.from({ length: reader.number() }, () => [reader.name(), this.bytes[reader.at++], reader.number()]);
    return new Map(all.filter(([, kind]) => kind === 0).map(([name, , at]) => [name, at]));
  }

  /** Everything that is reached from these functions, themselves included, without going through the functions in `closed`. */
  reach(roots, closed = new Set()) {
    const found = { functions: new Set(roots), constants: new Set(), calls: new Set(), places: new Set() };
    const follow = (named) => {
      for (const at of named?.calls ?? []) found.calls.add(at) && found.functions.add(at);
      for (const at of named?.places ?? []) found.places.add(at) && found.functions.add(at);
      for (const at of named?.constants ?? []) found.constants.add(at);
    };
    // Iterating over a set includes elements that are added meanwhile.
    for (let before = -1; before < found.functions.size + found.constants.size; ) {
      before = found.functions.size + found.constants.size;
      for (const at of found.functions) if (!closed.has(at)) follow(this.functions.get(at));
      for (const at of found.constants) follow(this.constants.get(at));
    }
    return found;
  }

  /** The content of the custom section with that name. */
  #custom(name) {
    for (const { id, start, end } of this.sections) {
      if (id !== CUSTOM) continue;
      const reader = new Reader(this.bytes, start);
      if (reader.name() === name) return { reader, end };
    }
    throw new Error(`the linker wrote no ${name}`);
  }

  /** `symbols` by their index; those of constants have their address, their length, and whether they are read-only. */
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

  /** Calls `see` with each relocation: its position in the file, its type, and its symbol. */
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
    // Sorted by address, like relocations.
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
