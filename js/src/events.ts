// Changes of a database, in this tab and in others: listeners, and the channel between tabs.

import type { Document, ChangeEvent } from "./types.js";

/** Minimum interval between messages about inserts, in milliseconds. Other tabs hear of the first insert at once; the counts of later ones are added up. */
const PAUSE_MS = 16;

type Listener = (event: ChangeEvent) => void;

/** Notifies listeners, and other openings of the same database, of changes. Correctness does not depend on it. */
export class Events {
  readonly #listeners = new Set<Listener>();
  /** Callbacks for when the database closes, one for each live query that is followed. */
  readonly closing = new Set<() => void>();
  readonly #channel: BroadcastChannel | undefined;
  /** Numbers of inserts that are not sent to other tabs yet, by collection. */
  readonly #waiting = new Map<string, number>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `isShared`: other tabs and workers may have the database open. */
  constructor(database: string, isShared: boolean) {
    if (!isShared || typeof BroadcastChannel === "undefined") return;
    this.#channel = new BroadcastChannel(`timepail:${database}`);
    letExit(this.#channel);
    this.#channel.onmessage = ({ data }) => this.#tell({ ...(data as ChangeEvent), local: false });
  }

  on(listener: Listener): void {
    this.#listeners.add(listener);
  }

  off(listener: Listener): void {
    this.#listeners.delete(listener);
  }

  /** Notes that `command` has succeeded with `reply`. */
  note(command: Document, reply: Document): void {
    const emit = (operation: string, collection: unknown, more?: Partial<ChangeEvent>): void => {
      this.#emit({ operation, local: true, ...(typeof collection === "string" && { collection }), ...more } as ChangeEvent);
    };
    const name = Object.keys(command)[0]!;
    const target: unknown = command[name];
    if (/^(insert|update|delete|findAndModify)$/.test(name)) {
      const count = Number(reply["nModified"] ?? reply["n"] ?? reply["lastErrorObject"]?.n ?? 0);
      if (count > 0) emit(name === "findAndModify" ? "delete" : name, target, { count });
    }
    if (/^(create|drop(Database)?)$/.test(name)) emit(name, target);
    const out = name === "aggregate" && !command["explain"] && (command["pipeline"] as Document[]).at(-1)?.["$out"];
    if (out) emit("replace", out.coll ?? out);
    const { collections } = reply;
    // In a reply of `dbStats`, `collections` is a number.
    for (const { name, nBuckets, nMeasurements, nBytes, oldest } of (Array.isArray(collections) ? collections : []) as Document[]) {
      emit("expire", name, { count: Number(nMeasurements), buckets: Number(nBuckets), bytes: Number(nBytes), oldest });
    }
  }

  close(): void {
    this.#flush();
    clearTimeout(this.#timer);
    this.#channel?.close();
    this.closing.forEach((end) => end());
    this.#listeners.clear();
  }

  #emit(event: ChangeEvent): void {
    this.#tell(event);
    if (!this.#channel) return;
    if (event.operation !== "insert") {
      this.#flush();
      this.#channel.postMessage(event);
      return;
    }
    this.#waiting.set(event.collection!, (this.#waiting.get(event.collection!) ?? 0) + event.count!);
    if (this.#timer === undefined) this.#flush();
  }

  /** Sends the waiting inserts. Later inserts wait for the next interval. */
  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#waiting.size > 0 ? setTimeout(() => this.#flush(), PAUSE_MS) : undefined;
    for (const [collection, count] of this.#waiting) this.#channel?.postMessage({ operation: "insert", collection, count });
    this.#waiting.clear();
  }

  #tell(event: ChangeEvent): void {
    for (const listener of this.#listeners) {
      // A listener that throws must not stop the other listeners or the command. Its error is reported as an uncaught error.
      try {
        listener(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

/** Node runs as long as a timer or a channel is open. A database that you forgot to close should not keep it running. In Deno a timer is a number. */
export function letExit(waiting: unknown): void {
  if (typeof waiting === "number") (globalThis as { Deno?: { unrefTimer(id: number): void } }).Deno?.unrefTimer(waiting);
  (waiting as { unref?: () => void } | undefined)?.unref?.();
}
