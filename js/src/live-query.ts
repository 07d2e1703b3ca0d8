// What computes a live query: when its result is due, how it is asked for, and who is told.

import type { Feed, LiveExplanation, LiveQuery } from "./live.js";
import { collectionsOf, divided, isSame } from "./live-parts.js";
import { Together, type Told } from "./live-together.js";
import type { ChangeEvent, Document } from "./types.js";

/** So often the engine is asked whether the result still holds: a message of another tab may have been lost. */
const POLL_MS = 1000;
/** That takes at most one part in so many of the time, as where the engine has to run the query. */
const POLL_SHARE = 50;
/** And all live queries of a database together do not ask more often than this. */
const POLL_SPACING_MS = 20;
/** Of this, the time between two questions is a multiple, so that many are asked together. */
const POLL_STEP_MS = 100;
/** So many times a computation begins anew because the engine has forgotten it. */
const TRIES_MAX = 3;

const CURSOR_NOT_FOUND = 43;
const COMMAND_NOT_FOUND = 59;
/** For engines without commands for live queries, and where these cannot be loaded. */
const PLAIN: Pick<LiveExplanation, "mode" | "why"> = { mode: "fresh", why: "the engine cannot follow queries here" };

type Observer<T> = Feed<T>["observers"] extends Set<infer O> ? O : never;
type Plan = Pick<LiveExplanation, "mode" | "why"> & { id?: number };

/** Keeps the result of a feed up to date as long as it has observers. At most one computation is in flight. */
export class Follower<T> {
  readonly #feed: Feed<T>;
  readonly #together: Together;
  readonly #collections: Set<string>;
  /** Counts up whenever the first observer comes: what was computed for earlier ones is not theirs. */
  #turn = 0;
  #isAwake = false;
  #isComputing = false;
  /** Something has changed since the last computation began. */
  #isDue = false;
  /** Ends the time that the next computation has to wait. */
  #pause: (() => void) | undefined;
  #poll: (() => void) | undefined;
  #pollMS = POLL_MS;
  /** What the engine has said of the query, and the number under which it follows it. */
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

  /** Starts, stops or ends, as the observers and the database are now. */
  settle(): void {
    const { observers, isClosed, door } = this.#feed;
    if (isClosed || door.isClosed) this.#end("complete");
    else if (observers.size === 0) this.#rest();
    else if (!this.#isAwake) this.#wake();
  }

  /** The results one by one: the newest that nobody has taken, or the next. */
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
    // What a hidden or frozen page has missed it looks for when it is back.
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

  /** The result may have changed: computes it now, or as soon as that is allowed. */
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
      // The engine may count on results that were never read.
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

  /** After the pause between two computations. */
  readonly #goOn = (): void => {
    this.#pause = undefined;
    if (this.#isDue) return this.#change();
    // Nobody else writes into memory.
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
        // The first result, and that of a query with limits of its own, is asked for by itself.
        const isShared = this.#how !== undefined && Object.keys(limits).length === 0;
        const told: Told | undefined = isShared ? await this.#together.news(plan.id) : {};
        if (!told) return void (this.#how = "nothing");
        const { result, reply } = await read(told.block ? told : { liveRefresh: plan.id, ...limits });
        const { changed, how } = (reply["live"] ?? { changed: true, how: "newRows" }) as { changed: boolean; how: LiveExplanation["how"] };
        this.#how = how;
        return changed ? this.#unlessSame(result) : undefined;
      } catch (error) {
        // The engine has begun anew, or what was read is gone.
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

  /** One request for all who wait: the engine would follow the query twice, and once for ever. */
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

  /** Has the engine forget the query. */
  #release(): void {
    const id = this.#plan?.id;
    if (id === undefined) return;
    this.#plan = undefined;
    if (!this.#feed.door.isClosed) this.#feed.door.runAside({ liveClose: id });
  }

  #deliver(isNew: boolean): void {
    const feed = this.#feed;
    // The first observers get a result in any case.
    if (!isNew && feed.greet) return;
    feed.greet = (observer) => this.#tell(observer, "next", feed.current);
    this.#delivered++;
    // One may end the subscription of another, or close all.
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

  /** Calls an observer. What it throws, and an error that it does not want, is reported as an error of its own. */
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

/** Buckets are written under a name of their own. */
function bare(collection: string): string {
  return collection.replace(/^system\.buckets\./, "");
}

/** A worker is as visible as its pages, of which it knows nothing. */
function isVisible(): boolean {
  return globalThis.document?.visibilityState !== "hidden";
}
