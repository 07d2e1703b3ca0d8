// A storage in Deno KV, which has low limits: 64 KiB per value, a thousand mutations and 800 KB per atomic operation.
//
// What does not fit is first written as parts under a fresh id, where no reader looks. A small atomic operation then references the parts, which makes all of
// them visible. If even the references are too many, the operation stores the whole plan and a lock. The commit has then taken place. Any reader or writer that
// finds the lock carries out the plan before anything else. If the author of the plan ends early, others are delayed, but nothing is lost. A leftover record
// lists parts that no entry references. The operation that references the parts deletes the record, so leftovers can be found and removed.

import { compareBytes } from "./bytes.js";
import { ATOMIC_BYTES, ATOMIC_MUTATIONS, Draft, PART_BYTES, PLANNED_BYTES, finalSteps, fits, isReference, largest, putKeys, withPartsOutside, type Change, type Reference, type Step, type Stored } from "./kv-steps.js";
import type { HostStorage, StorageChange, StorageEntry, StoragePage, StorageRange } from "./storage.js";

export type * from "./storage.js";

/** A part of a key in Deno KV. */
export type DenoKvKeyPart = Uint8Array | string | number | bigint | boolean;

interface KvEntry {
  key: readonly DenoKvKeyPart[];
  value: unknown;
  versionstamp: string | null;
}

interface KvCommit {
  ok: boolean;
  versionstamp?: string;
}

interface KvAtomic {
  check(...checks: { key: DenoKvKeyPart[]; versionstamp: string | null }[]): KvAtomic;
  set(key: DenoKvKeyPart[], value: unknown): KvAtomic;
  delete(key: DenoKvKeyPart[]): KvAtomic;
  commit(): Promise<KvCommit>;
}

/** The methods of `Deno.openKv()` that timepail uses. */
export interface DenoKv {
  getMany(keys: any): Promise<any[]>;
  list(selector: any, options?: any): AsyncIterable<any>;
  atomic(): any;
}

/** Options of {@link denoKvStorage}. */
export interface DenoKvOptions {
  /** The prefix of all keys. Use different prefixes for several databases in one store. Default `["timepail"]`. */
  prefix?: readonly DenoKvKeyPart[];
}

/** A storage in Deno KV. */
export interface DenoKvStorage extends HostStorage {
  /** Removes leftovers of interrupted commits and returns how many pieces were removed. The first commit does this too. */
  sweep(): Promise<number>;
}

/** Maximum number of guards in one atomic operation. It leaves room for the checks of this file itself. */
const GUARDS_MAX = 90;
const KEYS_A_READ = 10;
const BATCH = 500;
/** Maximum number of attempts while others keep changing what is read or written. */
const ATTEMPTS_MAX = 200;
/** Maximum wait between two attempts to write a local store that other processes write. */
const PAUSE_MS = 30;
/** Unreferenced parts are removed at this age. The author of younger parts may still be about to reference them. */
const LEFTOVER_MS = 600_000;

/**
 * Creates a storage in Deno KV, local or on Deno Deploy.
 *
 * @example
 * ```ts
 * import { open } from "timepail";
 * import { denoKvStorage } from "timepail/deno-kv";
 *
 * const db = await open("plant", { storage: denoKvStorage(await Deno.openKv("plant.db")) });
 * ```
 */
export function denoKvStorage(kv: DenoKv, options: DenoKvOptions = {}): DenoKvStorage {
  return new Store(kv, options.prefix ?? ["timepail"]);
}

class Store implements DenoKvStorage {
  readonly #kv: DenoKv;
  readonly #prefix: readonly DenoKvKeyPart[];
  #isSwept = false;

  constructor(kv: DenoKv, prefix: readonly DenoKvKeyPart[]) {
    this.#kv = kv;
    this.#prefix = prefix;
  }

  // ---- keys

  #entry(key: Uint8Array): DenoKvKeyPart[] {
    return [...this.#prefix, "e", key];
  }

  #part(id: string, number: number): DenoKvKeyPart[] {
    return [...this.#prefix, "p", id, number];
  }

  /** The record of unreferenced parts: `{ count, at }`. `at` is the time of their writing, or 0 if they will never be referenced. */
  #leftover(id: string, first: number): DenoKvKeyPart[] {
    return [...this.#prefix, "l", id, first];
  }

  /** Changes with every commit. */
  get #version(): DenoKvKeyPart[] {
    return [...this.#prefix, "v"];
  }

  /** References the plan that is being carried out. */
  get #lock(): DenoKvKeyPart[] {
    return [...this.#prefix, "x"];
  }

  // ---- reading

  getMany(keys: Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
    return this.#consistently(async () => {
      const found = await this.#get(keys.map((key) => this.#entry(key)));
      return this.#values(found.map(({ value }) => (value ?? undefined) as Stored | undefined));
    });
  }

  scan(ranges: StorageRange[], { entriesMax, keysOnly }: StoragePage): Promise<StorageEntry[]> {
    return this.#consistently(async () => {
      const keys: Uint8Array[] = [];
      const stored: Stored[] = [];
      for (const [start, end] of ranges) {
        const limit = entriesMax - keys.length;
        if (limit === 0) break;
        if (compareBytes(start, end) >= 0) continue;
        for await (const { key, value } of this.#list(start, end, limit)) {
          keys.push(key.at(-1) as Uint8Array);
          stored.push(value as Stored);
        }
      }
      if (keysOnly) return keys.map((key): StorageEntry => [key]);
      const values = await this.#values(stored);
      return keys.map((key, at): StorageEntry => [key, values[at]!]);
    });
  }

  /** Repeats `read` until no commit takes place during it. Only this makes several requests one snapshot. */
  async #consistently<T>(read: () => Promise<T>): Promise<T> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const [before, lock] = (await this.#get([this.#version, this.#lock])) as [KvEntry, KvEntry];
      if (lock.versionstamp !== null) {
        await this.#carryOut(lock);
        continue;
      }
      const result = await read().catch((error: unknown) => {
        if (error !== MISSING) throw error;
      });
      const [after] = (await this.#get([this.#version])) as [KvEntry];
      if (before.versionstamp === after.versionstamp) {
        if (result === undefined) throw new Error("Parts of a value are missing in Deno KV");
        return result;
      }
    }
    throw new Error("A read from Deno KV was given up, because other commits kept interrupting it");
  }

  async #get(keys: DenoKvKeyPart[][]): Promise<KvEntry[]> {
    const reads = slices(keys, KEYS_A_READ).map((some) => this.#kv.getMany(some) as Promise<KvEntry[]>);
    return (await Promise.all(reads)).flat();
  }

  #list(start: Uint8Array, end: Uint8Array, limit?: number): AsyncIterable<KvEntry> {
    const batchSize = Math.min(limit ?? BATCH, BATCH);
    return this.#kv.list({ start: this.#entry(start), end: this.#entry(end) }, { batchSize, ...(limit !== undefined && { limit }) });
  }

  /** The bytes of stored values. Throws `MISSING` if parts are gone. */
  async #values(stored: (Stored | undefined)[]): Promise<(Uint8Array | undefined)[]> {
    const asked = stored.filter((value) => isReference(value)).flatMap((reference) => this.#partsOf(reference));
    if (asked.length === 0) return stored as (Uint8Array | undefined)[];
    const parts = (await this.#get(asked)).map(({ value }) => value as Uint8Array | null);
    let next = 0;
    return stored.map((value) => {
      if (!isReference(value)) return value;
      const whole = new Uint8Array(value.size);
      for (let at = 0; at < value.size; next++) {
        const part = parts[next];
        if (!part) throw MISSING;
        whole.set(part, at);
        at += part.length;
      }
      return whole;
    });
  }

  #partsOf({ id, first, count }: Pick<Reference, "id" | "first" | "count">): DenoKvKeyPart[][] {
    return Array.from({ length: count }, (_, i) => this.#part(id, first + i));
  }

  // ---- writing

  async commit(changes: StorageChange[]): Promise<boolean> {
    if (!this.#isSwept) {
      this.#isSwept = true;
      this.sweep().catch(() => {});
    }
    const guards = new Map<string, { key: DenoKvKeyPart[]; kinds: Set<string> }>();
    for (const [kind, key] of changes) {
      if (kind !== "insert" && kind !== "require") continue;
      const guard = guards.get(String(key)) ?? { key: this.#entry(key), kinds: new Set() };
      guard.kinds.add(kind);
      guards.set(String(key), guard);
    }
    if (guards.size > GUARDS_MAX) throw new RangeError(`A commit to Deno KV may have at most ${GUARDS_MAX} guards, not ${guards.size}`);
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const [lock, version, ...judged] = (await this.#get([this.#lock, this.#version, ...[...guards.values()].map(({ key }) => key)])) as [KvEntry, KvEntry, ...KvEntry[]];
      if (lock.versionstamp !== null) {
        await this.#carryOut(lock);
        continue;
      }
      const holds = [...guards.values()].every(({ kinds }, at) => [...kinds].every((kind) => (judged[at]!.versionstamp !== null) === (kind === "require")));
      if (!holds) return false;
      if (await this.#attempt(finalSteps(changes), [lock, ...judged], version)) return true;
    }
    throw new Error("A commit to Deno KV was given up, because other commits kept interrupting it");
  }

  /**
   * Commits `steps` if the entries in `seen` are unchanged; returns false otherwise. Without a plan, the replaced entries must be unchanged as well, or parts of
   * them would be left behind. If these are too many to check, no other commit may have taken place since `version`.
   */
  async #attempt(steps: Change[], seen: KvEntry[], version: KvEntry): Promise<boolean> {
    const draft = new Draft();
    const old = await this.#replaced(steps);
    const isSmall = old !== undefined && fits(steps, old.keys);
    const planned = withPartsOutside(steps, draft, isSmall ? largest(steps) : PLANNED_BYTES);
    const plan = isSmall ? undefined : draft.plan(planned);
    const claim = await this.#writeParts(draft);
    const atomic: KvAtomic = this.#kv.atomic();
    const replaced = plan ? [] : old!.isWhole && seen.length + old!.seen.length <= GUARDS_MAX ? old!.seen : [version];
    atomic.check(...[...seen, ...replaced].map(checked));
    if (claim) atomic.check(claim).delete(claim.key);
    atomic.set(this.#version, crypto.randomUUID());
    if (plan) atomic.set(this.#lock, { id: draft.id, ...plan });
    else this.#apply(atomic, planned, old!);
    if (!(await committed(atomic)).ok) {
      if (claim) await this.#drop([{ id: draft.id, first: 0, count: draft.parts.length }]);
      return false;
    }
    if (plan) {
      const [lock] = (await this.#get([this.#lock])) as [KvEntry];
      if ((lock.value as { id: string } | null)?.id === draft.id) await this.#carryOut(lock);
    } else {
      await this.#drop(old!.references);
    }
    return true;
  }

  /** Keys that ranges remove, and references that are replaced; `undefined` if the steps exceed one operation. */
  async #replaced(steps: Change[]): Promise<Replaced | undefined> {
    if (steps.length > ATOMIC_MUTATIONS) return undefined;
    const replaced: Replaced = { keys: [], references: [], seen: [], isWhole: true };
    const kept = putKeys(steps);
    const note = (value: unknown): void => {
      if (isReference(value)) replaced.references.push(value);
    };
    const written = steps.filter(([kind]) => kind !== "deleteRange").map(([, key]) => this.#entry(key));
    replaced.seen = await this.#get(written);
    for (const { value } of replaced.seen) note(value);
    for (const step of steps) {
      if (step[0] !== "deleteRange") continue;
      replaced.isWhole = false;
      for await (const { key, value } of this.#list(step[1], step[2], ATOMIC_MUTATIONS)) {
        const own = key.at(-1) as Uint8Array;
        if (kept.has(String(own))) continue;
        replaced.keys.push(own);
        note(value);
      }
    }
    return replaced;
  }

  #apply(atomic: KvAtomic, steps: Step[], { keys, references }: Pick<Replaced, "keys" | "references">): void {
    for (const key of keys) atomic.delete(this.#entry(key));
    for (const step of steps) {
      if (step[0] === "put") atomic.set(this.#entry(step[1]), step[2]);
      else if (step[0] === "delete") atomic.delete(this.#entry(step[1]));
    }
    for (const { id, first, count } of references) atomic.set(this.#leftover(id, first), { count, at: 0 });
  }

  /** Writes the parts of a draft. Returns the check that they still exist. */
  async #writeParts({ id, parts }: Draft): Promise<{ key: DenoKvKeyPart[]; versionstamp: string | null } | undefined> {
    if (parts.length === 0) return undefined;
    const key = this.#leftover(id, 0);
    // Take the versionstamp now and not after the parts are written: by then, a sweep may have removed the record and some of them.
    const { versionstamp } = await committed(this.#kv.atomic().set(key, { count: parts.length, at: Date.now() }));
    const each = Math.floor(ATOMIC_BYTES / PART_BYTES);
    for (let at = 0; at < parts.length; at += each) {
      const atomic: KvAtomic = this.#kv.atomic();
      parts.slice(at, at + each).forEach((part, i) => atomic.set(this.#part(id, at + i), part));
      await committed(atomic);
    }
    return { key, versionstamp: versionstamp! };
  }

  /** Carries out the plan that a lock references, and removes the lock. Several processes may do so at once. */
  async #carryOut(lock: KvEntry): Promise<void> {
    const plan = lock.value as { id: string; first: number; count: number };
    const check = { key: this.#lock, versionstamp: lock.versionstamp };
    const pieces = (await this.#get(this.#partsOf(plan))).map(({ value }) => value as Step[] | null);
    // Another process has finished the plan.
    if (pieces.some((piece) => !piece)) return;
    const steps = (pieces as Step[][]).flat();
    const kept = putKeys(steps);
    for (const step of steps) {
      if (step[0] !== "deleteRange") continue;
      let gone: Pick<Replaced, "keys" | "references"> = { keys: [], references: [] };
      const flush = async (): Promise<boolean> => {
        const isDone = await this.#piece(check, gone.keys.map((key) => ["delete", key]), gone.references);
        gone = { keys: [], references: [] };
        return isDone;
      };
      for await (const { key, value } of this.#list(step[1], step[2])) {
        const own = key.at(-1) as Uint8Array;
        if (kept.has(String(own))) continue;
        gone.keys.push(own);
        if (isReference(value)) gone.references.push(value);
        if (gone.keys.length === BATCH / 2 && !(await flush())) return;
      }
      if (gone.keys.length > 0 && !(await flush())) return;
    }
    for (const piece of pieces as Step[][]) {
      const writes = piece.filter(([kind]) => kind !== "deleteRange");
      const before = await this.#get(writes.map(([, key]) => this.#entry(key)));
      // An entry that this plan has already written replaces nothing.
      const references = before.flatMap(({ value }, at) => {
        const step = writes[at]!;
        const isNew = step[0] === "put" && isReference(step[2]) && isReference(value) && value.id === step[2].id && value.first === step[2].first;
        return isReference(value) && !isNew ? [value] : [];
      });
      if (!(await this.#piece(check, writes, references))) return;
    }
    const atomic: KvAtomic = this.#kv.atomic();
    atomic.check(check).delete(this.#lock).set(this.#version, crypto.randomUUID());
    atomic.set(this.#leftover(plan.id, plan.first), { count: plan.count, at: 0 });
    if ((await committed(atomic)).ok) await this.#drop([plan]);
  }

  /** Applies some steps of a plan. Returns false if the lock is gone. */
  async #piece(check: { key: DenoKvKeyPart[]; versionstamp: string | null }, steps: Step[], references: Reference[]): Promise<boolean> {
    const atomic: KvAtomic = this.#kv.atomic();
    this.#apply(atomic.check(check), steps, { keys: [], references });
    if (!(await committed(atomic)).ok) return false;
    await this.#drop(references);
    return true;
  }

  // ---- leftovers

  async sweep(): Promise<number> {
    let swept = 0;
    for await (const { key, value, versionstamp } of this.#kv.list({ prefix: [...this.#prefix, "l"] }) as AsyncIterable<KvEntry>) {
      const { count, at } = value as { count: number; at: number };
      if (at !== 0 && Date.now() - at < LEFTOVER_MS) continue;
      // Claim the record. Either the author has already referenced the parts and this fails, or the author's commit will fail.
      const claim = { key: [...key], versionstamp };
      if (at !== 0 && !(await committed(this.#kv.atomic().check(claim).set(claim.key, { count, at: 0 }))).ok) continue;
      const [id, first] = key.slice(-2) as [string, number];
      await this.#drop([{ id, first, count }]);
      swept += count;
    }
    return swept;
  }

  /** Removes unreferenced parts, and after them their leftover record. */
  async #drop(references: Pick<Reference, "id" | "first" | "count">[]): Promise<void> {
    const keys = references.flatMap((reference) => [...this.#partsOf(reference), this.#leftover(reference.id, reference.first)]);
    for (const some of slices(keys, ATOMIC_MUTATIONS / 2)) {
      const atomic: KvAtomic = this.#kv.atomic();
      some.forEach((key) => atomic.delete(key));
      await committed(atomic);
    }
  }
}

/** A reader found a value whose parts are gone: it was replaced in the meantime. */
const MISSING = Symbol("missing");

/** What a commit removes besides the keys that it names, and the references that it replaces. */
interface Replaced {
  keys: Uint8Array[];
  references: Reference[];
  /** The entries under the keys that it names. */
  seen: KvEntry[];
  /** Whether `seen` covers everything that it replaces. */
  isWhole: boolean;
}

/** The check that an entry is unchanged. */
function checked({ key, versionstamp }: KvEntry): { key: DenoKvKeyPart[]; versionstamp: string | null } {
  return { key: [...key], versionstamp };
}

/** Commits, with retries. If other processes have the file of a local store open, SQLite may give up at once instead of waiting, and writes nothing. */
async function committed(atomic: KvAtomic): Promise<KvCommit> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await atomic.commit();
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !/database is (locked|busy)/.test(String(error))) throw error;
    }
    // The pause is random, so that one of several waiting processes comes first.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * PAUSE_MS));
  }
}

function slices<T>(list: T[], length: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / length) }, (_, i) => list.slice(i * length, (i + 1) * length));
}
