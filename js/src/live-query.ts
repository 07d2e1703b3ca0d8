// Computes live queries: when a result is due, how it is requested, and who is notified.

import type { Feed, LiveExplanation, LiveQuery } from "./live.js";
import { collectionsOf, divided, isSame } from "./live-parts.js";
import { Together, type Told } from "./live-together.js";
import type { ChangeEvent, Document } from "./types.js";

/** Shortest poll period; polls fall on its multiples. The engine is asked whether the result still holds, because a message of another tab may be lost. */
const POLL_MS = 1000;
/** Polling takes at most one part in this many of the time, because the engine may have to run the query. */
const POLL_SHARE = 50;
/** Minimum average interval between polls of all live queries of a database together. */
const POLL_SPACING_MS = 20;
/** Poll intervals are multiples of this, so that many queries are polled together. */
const POLL_STEP_MS = 100;
/** Maximum number of tries for a query that the engine has forgotten. */
const TRIES_MAX = 3;

const CURSOR_NOT_FOUND = 43;
const COMMAND_NOT_FOUND = 59;
/** For engines without the commands for live queries, or if these cannot be loaded. */
const PLAIN: Pick<LiveExplanation, "mode" | "why"> = { mode: "fresh", why: "the engine cannot follow queries here" };

type Observer<T> = Feed<T>["observers"] extends Set<infer O> ? O : never;
type Plan = Pick<LiveExplanation, "mode" | "why"> & { id?: number };

/** Keeps the result of a feed up to date as long as it has observers. At most one computation is in flight. */
export class Follower<T> {
  readonly #feed: Feed<T>;
  readonly #together: Together;
  readonly #collections: Set<string>;
  /** Incremented when a first observer subscribes. Results computed for earlier observers are not delivered to later ones. */
  #turn = 0;
  #isAwake = false;
  #isComputing = false;
  /** Something has changed since the last computation began. */
  #isDue = false;
  /** Cancels the pause before the next computation. */
  #pause: (() => void) | undefined;
  #poll: (() => void) | undefined;
  #pollMS = POLL_MS;
  /** The engine's plan for the query, and the id under which the engine follows it. */
  #plan: Plan | undefined;
  #opening: Promise<Plan> | undefined;
  #how: LiveExplanation["how"];
  #asked = 0;
  #computed = 0;
  #delivered = 0;

  constructor(feed: Feed<T>) {
    this.#feed = feed;
    this.#together = Together.of(feed.door);
    this.#collections = collectionsOf(feed.command);
  }

  /** Starts, stops or ends, depending on the observers and the database. */
  settle(): void {
    const { observers, isClosed, door } = this.#feed;
    if (isClosed || door.isClosed) this.#end("complete");
    else if (observers.size === 0) this.#rest();
    else if (!this.#isAwake) this.#wake();
  }

  /** Iterates over the results: the newest one that is not read yet, or the next. */
  iterate(live: LiveQuery<T>): { next(): Promise<IteratorResult<T, void>>; return(): Promise<IteratorResult<T, void>> } {
    const waiting: { resolve: (result: IteratorResult<T, void>) => void; reject: (error: unknown) => void }[] = [];
    const done: IteratorResult<T, void> = { done: true, value: undefined };
    let newest: IteratorResult<T, void> | undefined;
    let failure: [unknown] | undefined;
    let isOver = false;
    let stop: (() => void) | undefined;
    const end = (): void => {
      isOver = true;
      const reader = failure && waiting.shift();
      if (reader) reader.reject(failure![0]);
      if (reader) failure = undefined;
      for (const { resolve } of waiting.splice(0)) resolve(done);
    };
    const begin = (): (() => void) =>
      live.subscribe({
        next(value) {
          const result = { done: false as const, value };
          const reader = waiting.shift();
          if (reader) reader.resolve(result);
          else newest = result;
        },
        error(error) {
          failure = [error];
          end();
        },
        complete: end,
      });
    return {
      async next() {
        if (!isOver) stop ??= begin();
        const result = newest;
        newest = undefined;
        if (result) return result;
        if (failure) {
          const [error] = failure;
          failure = undefined;
          throw error;
        }
        return isOver ? done : new Promise((resolve, reject) => waiting.push({ resolve, reject }));
      },
      async return() {
        stop?.();
        newest = failure = undefined;
        end();
        return done;
      },
    };
  }

  async explain(): Promise<LiveExplanation> {
    const { mode, why } = (this.#plan ??= await this.#planned());
    if (!this.#isAwake) this.#release();
    return { mode, why, ...(this.#how && { how: this.#how }), asked: this.#asked, computed: this.#computed, delivered: this.#delivered };
  }

  #wake(): void {
    this.#isAwake = true;
    this.#turn++;
    const { events } = this.#feed.door;
    events.on(this.#hear);
    events.closing.add(this.#close);
    // A page that was hidden or frozen looks for missed changes when it is back.
    globalThis.addEventListener?.("pageshow", this.#change);
    globalThis.document?.addEventListener("visibilitychange", this.#show);
    globalThis.document?.addEventListener("resume", this.#change);
    this.#change();
  }

  #rest(): void {
    if (!this.#isAwake) return;
    this.#isAwake = this.#isDue = false;
    this.#feed.greet = undefined;
    const { events } = this.#feed.door;
    events.off(this.#hear);
    events.closing.delete(this.#close);
    globalThis.removeEventListener?.("pageshow", this.#change);
    globalThis.document?.removeEventListener("visibilitychange", this.#show);
    globalThis.document?.removeEventListener("resume", this.#change);
    this.#pause?.();
    this.#poll?.();
    this.#pause = this.#poll = undefined;
    if (!this.#isComputing) this.#release();
  }

  readonly #close = (): void => this.#end("complete");

  readonly #show = (): void => {
    if (isVisible()) this.#change();
  };

  readonly #hear = ({ collection }: ChangeEvent): void => {
    if (collection === undefined || this.#collections.has(bare(collection))) this.#change();
  };

  /** The result may have changed: computes it now, or as soon as it may. */
  readonly #change = (): void => {
    this.#isDue = true;
    if (!this.#isComputing && this.#pause === undefined) void this.#compute();
  };

  async #compute(): Promise<void> {
    const turn = this.#turn;
    const start = performance.now();
    this.#poll?.();
    this.#isComputing = true;
    this.#isDue = false;
    try {
      const next = await this.#refresh();
      this.#asked++;
      if (this.#how !== "nothing") this.#computed++;
      if (next) this.#feed.current = next.result;
      if (turn === this.#turn && this.#isAwake) this.#deliver(next !== undefined);
    } catch (error) {
      // Release the query, because the engine may build on results that were never read.
      this.#release();
      if (turn === this.#turn && this.#isAwake) this.#end(this.#feed.door.isClosed ? "complete" : "error", error);
    }
    this.#isComputing = false;
    const pollMS = Math.max(POLL_MS, (performance.now() - start) * POLL_SHARE, this.#feed.door.events.closing.size * POLL_SPACING_MS);
    this.#pollMS = Math.ceil(pollMS / POLL_STEP_MS) * POLL_STEP_MS;
    if (!this.#isAwake) this.#release();
    else if (turn !== this.#turn) this.#change();
    else this.#pause = this.#together.wait(this.#feed.throttleMS, this.#goOn);
  }

  /** Called after the pause between two computations. */
  readonly #goOn = (): void => {
    this.#pause = undefined;
    if (this.#isDue) return this.#change();
    // No one else can write to a database in memory, so polling is unnecessary.
    if (this.#feed.door.isAlone) return;
    this.#poll = this.#together.wait(this.#pollMS, this.#show, true);
  };

  /** The next result; `undefined` if the last one still holds. */
  async #refresh(): Promise<{ result: T } | undefined> {
    const { read, command } = this.#feed;
    const { limits } = divided(command);
    for (let tries = 1; ; tries++) {
      try {
        const plan = (this.#plan ??= await this.#planned());
        if (plan.id === undefined) {
          this.#how = "fresh";
          return this.#unlessSame((await read(command)).result);
        }
        // The first result is requested separately, and so are those of a query with limits of its own.
        const isShared = this.#how !== undefined && Object.keys(limits).length === 0;
        const told: Told | undefined = isShared ? await this.#together.news(plan.id) : {};
        if (!told) return void (this.#how = "nothing");
        const { result, reply } = await read(told.block ? told : { liveRefresh: plan.id, ...limits });
        const { changed, how } = (reply["live"] ?? { changed: true, how: "newRows" }) as { changed: boolean; how: LiveExplanation["how"] };
        this.#how = how;
        return changed ? this.#unlessSame(result) : undefined;
      } catch (error) {
        // The engine has restarted, or its query or cursor is gone.
        const { code, name } = error as { code?: unknown; name?: unknown };
        if ((code !== CURSOR_NOT_FOUND && name !== "WorkerError") || tries === TRIES_MAX) throw error;
        this.#release();
      }
    }
  }

  #unlessSame(result: T): { result: T } | undefined {
    const { current } = this.#feed;
    return current !== undefined && isSame(result, current) ? undefined : { result };
  }

  /** Concurrent callers share one request. Otherwise the engine would follow the query twice, and one of them for ever. */
  #planned(): Promise<Plan> {
    return (this.#opening ??= this.#open().finally(() => (this.#opening = undefined)));
  }

  /** Asks the engine to follow the query. */
  async #open(): Promise<Plan> {
    const { door, command } = this.#feed;
    if ((command["pipeline"] as Document[] | undefined)?.some((stage) => "$out" in stage || "$merge" in stage)) {
      throw new TypeError("A live query cannot write: it has $out or $merge");
    }
    try {
      const { query, limits } = divided(command);
      const { reply } = await door.run({ liveQuery: 1, query, ...limits });
      return { id: Number(reply["id"]), mode: reply["mode"], why: reply["why"] };
    } catch (error) {
      const { code, name } = error as { code?: unknown; name?: unknown };
      if (code === COMMAND_NOT_FOUND || name === "LoadError") return PLAIN;
      throw error;
    }
  }

  /** Makes the engine forget the query. */
  #release(): void {
    const id = this.#plan?.id;
    if (id === undefined) return;
    this.#plan = undefined;
    if (!this.#feed.door.isClosed) this.#feed.door.runAside({ liveClose: id });
  }

  #deliver(isNew: boolean): void {
    const feed = this.#feed;
    // The first observers get a result even if it is unchanged.
    if (!isNew && feed.greet) return;
    feed.greet = (observer) => this.#tell(observer, "next", feed.current);
    this.#delivered++;
    // An observer may end the subscription of another, or close all.
    for (const observer of [...feed.observers]) if (feed.observers.has(observer) && !feed.isClosed) feed.greet?.(observer);
  }

  /** Ends all subscriptions. */
  #end(how: "error" | "complete", error?: unknown): void {
    const { observers } = this.#feed;
    const all = [...observers];
    observers.clear();
    this.#rest();
    for (const observer of all) this.#tell(observer, how, error);
  }

  /** Calls an observer. What it throws, and an error that it does not handle, is reported as an uncaught error. */
  #tell({ of }: Observer<T>, what: "next" | "error" | "complete", value: unknown): void {
    try {
      if (what === "error" && !of.error) throw value;
      (of[what] as ((value: unknown) => void) | undefined)?.call(of, value);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}

/** The name of a collection, without the prefix under which its buckets are written. */
function bare(collection: string): string {
  return collection.replace(/^system\.buckets\./, "");
}

/** A worker counts as visible, because it does not know whether its pages are. */
function isVisible(): boolean {
  return globalThis.document?.visibilityState !== "hidden";
}
