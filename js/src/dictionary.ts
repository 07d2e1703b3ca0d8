// Finding equal values quickly: strings, and small nested objects by their structure.

import { bsonType, isPlain } from "./bson.js";

const ROWS_MIN = 8;
const NESTING_MAX = 8;
const OPEN = Symbol();
const CLOSE = Symbol();

/** Whether a column of `rows` rows is long enough to try a dictionary. */
export function mayRepeat(rows: number): boolean {
  return rows >= ROWS_MIN;
}

/** Whether a dictionary no longer pays off: more than half of all rows are distinct, or nearly every row so far. */
export function isTooDistinct(distinct: number, row: number, rows: number): boolean {
  return distinct * 2 > rows || (row >= 256 && distinct * 8 > row * 7);
}

/** Whether `Object.prototype` has no enumerable properties, so that `for in` yields only own keys of plain objects. */
export function isPrototypeClean(): boolean {
  for (const _ in {}) return false;
  return true;
}

/**
 * A step in a tree of values: from the root, one step per key and per value. Objects with equal keys, order and scalars end on the same step,
 * without conversion to text or bytes.
 */
export class Step {
  /** Number of the value that ends here; -1 before there is one. */
  index = -1;
  #key: unknown = OPEN;
  #next: Step | undefined;
  #more: Map<unknown, Step> | undefined;

  /** The step of `value`; `undefined` when it holds something that has to be compared as BSON. */
  find(value: unknown, depth = 0): Step | undefined {
    switch (typeof value) {
      case "number":
        // Map and === treat -0 as 0.
        return value === 0 && 1 / value < 0 ? undefined : this.#to(value);
      case "string":
      case "boolean":
      case "bigint":
        return this.#to(value);
      case "object":
        break;
      default:
        return undefined;
    }
    if (value === null) return this.#to(null);
    if (depth > NESTING_MAX || !isPlain(value) || bsonType(value) !== undefined || "toBSON" in value) return undefined;
    let step: Step | undefined = this.#to(OPEN);
    for (const key in value) {
      const inner = (value as Record<string, unknown>)[key];
      step = step.#to(key).find(inner, depth + 1);
      if (step === undefined) return undefined;
    }
    return step.#to(CLOSE);
  }

  #to(key: unknown): Step {
    if (this.#key === key && this.#next) return this.#next;
    // Most steps after a key's name have one successor; a map is made for the second.
    if (!this.#next) {
      this.#key = key;
      return (this.#next = new Step());
    }
    this.#more ??= new Map();
    let step = this.#more.get(key);
    if (!step) this.#more.set(key, (step = new Step()));
    return step;
  }
}
