// Parses the names that rustc gives to functions (its mangling "v0"), to find the function in the source and its file.
//
// The name of each method contains the path of its impl block, so a method is found in the file of that block, wherever its type is.

/**
 * The function of this crate's source that the function `symbol` comes from, as `{ module, name }`: `engine::keep` and `Engine::keep`.
 * Closures, and the state machine of an async function, belong to the function around them. Undefined for code of other crates,
 * including their generic functions over types of this crate.
 */
export function ownerOf(symbol) {
  if (!symbol?.startsWith("_R")) return undefined;
  return ownerAt(new Symbol(symbol).path());
}

/** The function, as `ownerOf` names it, whose closure or future `symbol` drops. Undefined if `symbol` is no such drop glue. */
export function droppedBy(symbol) {
  if (!symbol?.startsWith("_RINv")) return undefined;
  const parser = new Symbol(symbol);
  parser.at = "_RI".length;
  const { crate, names } = parser.path();
  // NC: a closure.
  if (crate !== "core" || names.at(-1) !== "drop_in_place" || !symbol.startsWith("NC", parser.at)) return undefined;
  return ownerAt(parser.path());
}

function ownerAt(path) {
  if (path.crate !== "timepail") return undefined;
  const module = path.names.slice(1, path.modules);
  const [name] = path.names.slice(path.modules);
  return { module: module.join("::"), name: [path.type, name].filter(Boolean).join("::") };
}

class Symbol {
  constructor(text) {
    this.text = text;
    this.at = 2;
  }

  /** `{ crate, names, modules, type }`. The first `modules` of `names` are the crate and its modules, the others are functions and closures. */
  path() {
    const tag = this.text[this.at++];
    if (tag === "C") {
      const crate = this.#name();
      return { crate, names: [crate], modules: 1, last: crate };
    }
    if (tag === "N") {
      const space = this.text[this.at++];
      const inner = this.path();
      const last = this.#name();
      // Types share a namespace with modules, but no path continues below a type: its functions are in impl blocks.
      const isModule = space === "t" && inner.modules === inner.names.length && inner.type === undefined;
      return { ...inner, names: [...inner.names, last], modules: inner.modules + (isModule ? 1 : 0), last };
    }
    if (tag === "M" || tag === "X") {
      this.#disambiguator();
      const where = this.path();
      const type = this.#type();
      if (tag === "X") this.path();
      return { ...where, type };
    }
    if (tag === "Y") {
      // A default method of a trait, for one type. The call of a closure is named in this way too.
      const of = this.#type(true);
      this.path();
      return of;
    }
    if (tag === "I") {
      const path = this.path();
      while (this.text[this.at] !== "E") this.#argument();
      this.at++;
      return path;
    }
    if (tag === "B") return this.#back(() => this.path());
    throw new Error(`${this.text}: no path begins with ${tag}`);
  }

  /** The last name of a type, or its path if `whole`. Empty for a type that has no path. */
  #type(whole = false) {
    const tag = this.text[this.at++];
    const none = whole ? { names: [], modules: 0 } : "";
    if (/[a-z]/.test(tag)) return none;
    if (tag === "R" || tag === "Q") {
      if (this.text[this.at] === "L") this.#argument();
      return this.#type(whole);
    }
    if (tag === "P" || tag === "O" || tag === "S") return this.#type(whole);
    if (tag === "A") {
      const type = this.#type(whole);
      this.#constant();
      return type;
    }
    if (tag === "T") return this.#types(none);
    if (tag === "F") {
      this.#binder();
      if (this.text[this.at] === "U") this.at++;
      if (this.text[this.at] === "K") {
        this.at++;
        if (this.text[this.at] === "C") this.at++;
        else this.#name();
      }
      this.#types(none);
      this.#type();
      return none;
    }
    if (tag === "D") {
      this.#binder();
      while (this.text[this.at] !== "E") {
        this.path();
        while (this.text[this.at] === "p") {
          this.at++;
          this.#name();
          this.#type();
        }
      }
      this.at++;
      this.#argument();
      return none;
    }
    if (tag === "B") return this.#back(() => this.#type(whole));
    this.at--;
    const path = this.path();
    return whole ? path : path.last;
  }

  #types(result) {
    while (this.text[this.at] !== "E") this.#type();
    this.at++;
    return result;
  }

  /** A lifetime, a constant or a type. */
  #argument() {
    const tag = this.text[this.at];
    if (tag === "L" || tag === "K") this.at++;
    if (tag === "L") this.#number();
    else if (tag === "K") this.#constant();
    else this.#type();
  }

  #constant() {
    if (this.text[this.at] === "p") this.at++;
    else if (this.text[this.at] === "B") {
      this.at++;
      this.#number();
    } else this.at = this.text.indexOf("_", this.at) + 1;
  }

  #binder() {
    if (this.text[this.at] !== "G") return;
    this.at++;
    this.#number();
  }

  #back(read) {
    const from = this.#number();
    const then = this.at;
    // Positions are counted from the end of the prefix `_R`.
    this.at = from + 2;
    const result = read();
    this.at = then;
    return result;
  }

  /** A number in base 62 that ends with `_`. No digits mean 0. */
  #number() {
    const end = this.text.indexOf("_", this.at);
    const digits = this.text.slice(this.at, end);
    this.at = end + 1;
    const value = (digit) => "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".indexOf(digit);
    return digits === "" ? 0 : [...digits].reduce((number, digit) => number * 62 + value(digit), 0) + 1;
  }

  #disambiguator() {
    if (this.text[this.at] !== "s") return;
    this.at++;
    this.#number();
  }

  #name() {
    this.#disambiguator();
    const [head, digits] = /^u?(0|[1-9]\d*)_?/.exec(this.text.slice(this.at));
    const start = this.at + head.length;
    this.at = start + Number(digits);
    return this.text.slice(start, this.at);
  }
}
