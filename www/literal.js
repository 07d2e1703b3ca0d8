// Parses values in the syntax of JavaScript or JSON, without running anything: objects, arrays, strings, numbers and sums of them,
// regular expressions, dates, and the types of BSON with the names of the shell.

import { MAKERS } from "./makers.js";

const WORDS = new Map([["true", true], ["false", false], ["null", null], ["undefined", undefined], ["NaN", NaN], ["Infinity", Infinity]]);
const ESCAPES = new Map([["n", "\n"], ["t", "\t"], ["r", "\r"], ["b", "\b"], ["f", "\f"], ["v", "\v"], ["0", "\0"]]);
const NUMBER = /0[xX][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?/y;
const SPACE = /(?:\s|\/\/[^\n]*|\/\*[^]*?\*\/)*/y;
const NAME = /[\p{L}_$][\p{L}\p{N}_$]*/uy;
const PATTERN = /\/((?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([a-z]*)/y;

/** A position in a text. Each method reads what its name says and moves on, or throws a `SyntaxError` with line and column. */
export class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  fail(message, at = this.at) {
    const lines = this.text.slice(0, at).split("\n");
    throw new SyntaxError(`line ${lines.length}, column ${lines.at(-1).length + 1}: ${message}`);
  }

  /** The match of the sticky `pattern` at this position, or `undefined`. */
  match(pattern) {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (match) this.at = pattern.lastIndex;
    return match ?? undefined;
  }

  /** The next character that is not a space. */
  peek() {
    this.match(SPACE);
    return this.text[this.at] ?? "";
  }

  /** Reads `token` if it comes next; returns whether it did. */
  takes(token) {
    this.peek();
    if (!this.text.startsWith(token, this.at)) return false;
    this.at += token.length;
    return true;
  }

  expect(token) {
    if (!this.takes(token)) this.fail(`expected “${token}”${this.found()}`);
  }

  found() {
    return this.at < this.text.length ? ` and found “${this.text.slice(this.at).split(/\s/)[0].slice(0, 20)}”` : " and the text ends";
  }

  name() {
    this.peek();
    return this.match(NAME)?.[0];
  }

  end() {
    while (this.takes(";"));
    if (this.peek() !== "") this.fail(`expected the end${this.found()}`);
  }

  /** A value, or a sum or product of numbers. */
  value() {
    let sum = this.product();
    for (;;) {
      const at = this.at;
      if (this.takes("+")) sum = this.calculate(sum, this.product(), at, (a, b) => a + b);
      else if (this.takes("-")) sum = this.calculate(sum, this.product(), at, (a, b) => a - b);
      else return sum;
    }
  }

  product() {
    let product = this.single();
    for (;;) {
      const at = this.at;
      if (this.takes("*")) product = this.calculate(product, this.single(), at, (a, b) => a * b);
      else if (this.takes("/")) product = this.calculate(product, this.single(), at, (a, b) => a / b);
      else return product;
    }
  }

  calculate(a, b, at, operation) {
    if (typeof a !== "number" || typeof b !== "number") this.fail("only numbers can be calculated with", at);
    return operation(a, b);
  }

  single() {
    const next = this.peek();
    if (next === "{") return this.object();
    if (next === "[") return this.list("[", "]");
    if (next === '"' || next === "'" || next === "`") return this.string();
    if (next === "/") return this.pattern();
    if (next === "(") {
      this.at++;
      const value = this.value();
      this.expect(")");
      return value;
    }
    if (next === "-" || next === "+") {
      this.at++;
      const value = this.single();
      return this.calculate(0, value, this.at, (zero, number) => (next === "-" ? -number : zero + number));
    }
    const number = this.match(NUMBER);
    return number ? Number(number[0].replaceAll("_", "")) : this.word();
  }

  object() {
    const entries = [];
    this.expect("{");
    while (!this.takes("}")) {
      const at = this.at;
      const quoted = `"'`.includes(this.peek());
      const key = quoted ? this.string() : (this.name() ?? this.match(NUMBER)?.[0]);
      if (key === undefined) this.fail(`expected the name of a field${this.found()}`, at);
      this.expect(":");
      entries.push([key, this.value()]);
      if (!this.takes(",")) {
        this.expect("}");
        break;
      }
    }
    return Object.fromEntries(entries); // This creates own fields for all names, also for `__proto__`.
  }

  /** Values between two brackets. */
  list(open, close) {
    const values = [];
    this.expect(open);
    while (!this.takes(close)) {
      values.push(this.value());
      if (!this.takes(",")) {
        this.expect(close);
        break;
      }
    }
    return values;
  }

  string() {
    const start = this.at;
    const quote = this.text[this.at++];
    let text = "";
    for (;;) {
      const character = this.text[this.at++];
      if (character === undefined || (character === "\n" && quote !== "`")) this.fail("a string has no end", start);
      if (character === quote) return text;
      text += character === "\\" ? this.escape() : character;
    }
  }

  escape() {
    const code = this.match(/u([\da-fA-F]{4})|x([\da-fA-F]{2})|u\{([\da-fA-F]{1,5})\}/y);
    if (code) return String.fromCodePoint(Number.parseInt(code[1] ?? code[2] ?? code[3], 16));
    const character = this.text[this.at++] ?? "";
    return ESCAPES.get(character) ?? character;
  }

  pattern() {
    const start = this.at;
    const [, source, flags] = this.match(PATTERN) ?? this.fail("a pattern has no end");
    return this.make(() => new RegExp(source, flags), start);
  }

  word() {
    const start = this.at;
    let word = this.name() ?? this.fail(`expected a value${this.found()}`);
    const isNew = word === "new";
    if (isNew) word = this.name() ?? this.fail("expected a name behind “new”");
    if (!isNew && WORDS.has(word)) return WORDS.get(word);
    if (word === "Date" && this.takes(".")) {
      this.expect("now");
      this.expect("(");
      this.expect(")");
      return Date.now();
    }
    if (!Object.hasOwn(MAKERS, word)) this.fail(`“${word}” is not known here`, start);
    const values = this.list("(", ")");
    return this.make(() => MAKERS[word](...values), start);
  }

  make(maker, at) {
    try {
      return maker();
    } catch (error) {
      return this.fail(error.message, at);
    }
  }
}
