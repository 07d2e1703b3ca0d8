// The commits of deno-kv.ts as plain data: their final steps, what goes into parts, and what fits one atomic operation.

import { compareBytes } from "./bytes.js";
import type { StorageChange } from "./storage.js";

/** Maximum size of one value in bytes. */
export const PART_BYTES = 64_000;
/** Maximum size of a value inside a plan, so that several fit a piece. */
export const PLANNED_BYTES = 16_000;
/** Limits of one atomic operation: bytes of values, bytes of keys, and mutations. They leave room for what is not counted. */
export const ATOMIC_BYTES = 700_000;
export const ATOMIC_KEY_BYTES = 60_000;
export const ATOMIC_MUTATIONS = 900;
/** What a value and a key add to a piece of a plan besides themselves. A value of at most this size stays inline. */
export const REFERENCE_BYTES = 200;

/** Parts `first` to `first + count - 1` of `id` form a value of `size` bytes. */
export interface Reference {
  id: string;
  first: number;
  count: number;
  size: number;
}

/** What is stored under a key: the bytes, or where they are. */
export type Stored = Uint8Array | Reference;

/** A write whose order no longer matters. */
export type Change = ["put", Uint8Array, Uint8Array] | ["delete", Uint8Array] | ["deleteRange", Uint8Array, Uint8Array];

/** A step of a plan. Each step is idempotent. A range is removed except for the keys that the plan puts. */
export type Step = ["put", Uint8Array, Stored] | ["delete", Uint8Array] | ["deleteRange", Uint8Array, Uint8Array];

/** The parts of one commit that are written before it. */
export class Draft {
  readonly id = crypto.randomUUID();
  readonly parts: unknown[] = [];

  /** Stores a value as parts, outside of the entry. */
  keep(value: Uint8Array): Reference {
    const first = this.parts.length;
    for (let at = 0; at < value.length; at += PART_BYTES) this.parts.push(value.slice(at, at + PART_BYTES));
    return { id: this.id, first, count: this.parts.length - first, size: value.length };
  }

  /** Stores the steps themselves as parts, in pieces that each fit one operation. */
  plan(steps: Step[]): { first: number; count: number } {
    const first = this.parts.length;
    let piece: Step[] = [];
    let size = 0;
    for (const step of steps) {
      const more = step[1].length + REFERENCE_BYTES + (step.length === 3 && !isReference(step[2]) ? step[2].length : 0);
      if (piece.length > 0 && (size + more > PART_BYTES - 2000 || piece.length === ATOMIC_MUTATIONS / 3)) {
        this.parts.push(piece);
        [piece, size] = [[], 0];
      }
      // Copy views, because a view would bring its whole buffer.
      piece.push(step.map((part) => (part instanceof Uint8Array ? part.slice() : part)) as Step);
      size += more;
    }
    this.parts.push(piece);
    return { first, count: this.parts.length - first };
  }
}

/** The steps with references in place of values of more than `most` bytes. */
export function withPartsOutside(steps: Change[], draft: Draft, most: number): Step[] {
  return steps.map((step) => (step[0] === "put" && step[2].length > most ? ["put", step[1], draft.keep(step[2])] : step));
}

/** The size up to which values stay inline, so that all of these fit one operation. */
export function largest(steps: Change[]): number {
  const sizes = steps.map((step) => (step[0] === "put" ? step[2].length : 0)).sort((a, b) => b - a);
  let total = sizes.reduce((sum, size) => sum + size, 0);
  let most = PART_BYTES;
  for (const size of sizes) {
    if (total <= ATOMIC_BYTES / 2) break;
    total -= size;
    most = Math.min(most, size - 1);
  }
  // A reference is not much shorter than a small value.
  return Math.max(most, REFERENCE_BYTES);
}

/** Whether steps and what they remove go into one atomic operation. */
export function fits(steps: Change[], removed: Uint8Array[]): boolean {
  const keys = [...steps.map(([, key]) => key), ...removed];
  const keyBytes = keys.reduce((sum, key) => sum + key.length + 40, 0);
  return keys.length <= ATOMIC_MUTATIONS / 2 && keyBytes <= ATOMIC_KEY_BYTES;
}

/** The changes without guards, and without those that a later one undoes. Their order no longer matters. */
export function finalSteps(changes: StorageChange[]): Change[] {
  const last = new Map<string, Change>();
  const ranges: Change[] = [];
  for (const change of changes) {
    if (change[0] === "deleteRange") {
      const [, start, end] = change;
      if (compareBytes(start, end) >= 0) continue;
      ranges.push(["deleteRange", start, end]);
      for (const [name, [kind, key]] of last) {
        if (kind === "put" && compareBytes(start, key) <= 0 && compareBytes(key, end) < 0) last.set(name, ["delete", key]);
      }
    } else if (change[0] === "delete") last.set(String(change[1]), ["delete", change[1]]);
    else if (change[0] === "put" || change[0] === "insert") last.set(String(change[1]), ["put", change[1], change[2]]);
  }
  return [...ranges, ...last.values()];
}

export function putKeys(steps: (Step | Change)[]): Set<string> {
  return new Set(steps.filter(([kind]) => kind === "put").map(([, key]) => String(key)));
}

export function isReference(value: unknown): value is Reference {
  return value !== null && typeof value === "object" && !(value instanceof Uint8Array);
}
