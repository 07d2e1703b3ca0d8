// Live queries: results that follow the database. Every page loads this half. The first subscription loads later.ts with live-query.ts, which computes results.

import { asyncDispose } from "./cursor.js";
import type { Door } from "./door.js";
import type { Follower } from "./live-query.js";
import { checkNames } from "./options.js";
import type { Document } from "./types.js";

/** `Symbol.observable` if it is defined, else the name that libraries agree on. */
const observable = (Symbol as { observable?: symbol }).observable ?? "@@observable";

/** Options of `live`. */
export interface LiveOptions {
  /** Results are columns, as `toColumns()` returns them, instead of documents. Default: `false`. */
  columns?: boolean;
  /** The minimum time between the end of one computation and the start of the next, in milliseconds. Default: 16. */
  throttleMS?: number;
}

/** The observer of an Observable. */
export interface LiveObserver<T> {
  next?: ((result: T) => void) | undefined;
  /** A computation failed. The subscription has ended; subscribe again to retry. */
  error?: ((error: unknown) => void) | undefined;
  /** The live query or its database was closed. */
  complete?: (() => void) | undefined;
}

/** Ends a subscription when it is called. It is also the subscription object of an Observable. */
export interface LiveSubscription {
  (): void;
  unsubscribe(): void;
}

/** How a live query follows the database. */
export interface LiveExplanation {
  /** `"newRows"` if new measurements are added to the last result, `"fresh"` if the query runs again. */
  mode: "newRows" | "fresh";
  /** The reason for the mode. */
  why: string;
  /** What the last computation did: `"nothing"` if the last result still held. */
  how?: "nothing" | "newRows" | "fresh";
  /** How often the engine was asked for the result: after changes, and otherwise at most once a second. */
  asked: number;
  /** How often the result was computed. */
  computed: number;
  /** The number of delivered results. */
  delivered: number;
}

/**
 * What this file and live-query.ts share.
 * @internal
 */
export interface Feed<T> {
  readonly door: Door;
  /** The command of the query. */
  readonly command: Document;
  /** Reads the complete result of a command, as documents or columns; `reply` is the first reply. Instead of a command, it takes the engine's answer for a query. */
  readonly read: (command: Document) => Promise<{ result: T; reply: Document }>;
  readonly throttleMS: number;
  /** Each subscription has an object of its own. */
  readonly observers: Set<{ of: LiveObserver<any> }>;
  current?: T | undefined;
  isClosed: boolean;
  /** Gives a new subscriber the last result, as long as that is kept up to date. */
  greet?: ((observer: { of: LiveObserver<any> }) => void) | undefined;
}

/**
 * The result of a query, kept up to date while somebody subscribes to it. An extension to the driver. Made by `find(...).live()` and `aggregate(...).live()`.
 *
 * It is an Observable, a store of Svelte, and an async iterable. Changes of other tabs count. Without a subscriber it costs nothing.
 *
 * @example
 * ```ts
 * const live = weather.find({ station: "roof" }).sort({ at: -1 }).limit(100).live();
 * const stop = live.subscribe((rows) => draw(rows));
 * ```
 */
export class LiveQuery<T> {
  readonly #feed: Feed<T>;
  #follower: Promise<Follower<T>> | undefined;

  /** @internal */
  constructor(door: Door, command: Document, read: Feed<T>["read"], { throttleMS = 16, ...others }: LiveOptions) {
    checkNames(others, ["columns", "throttleMS"]);
    this.#feed = { door, command, read, throttleMS, observers: new Set(), isClosed: false };
  }

  /** The last result; `undefined` before the first one. It is kept up to date while there is a subscriber. */
  get current(): T | undefined {
    return this.#feed.current;
  }

  /**
   * Calls `next` with the result, and again with each later one. Returns a function that ends the subscription.
   *
   * If others subscribe already, `next` is called at once with the last result.
   */
  subscribe(next: ((result: T) => void) | LiveObserver<T>, error?: (error: unknown) => void, complete?: () => void): LiveSubscription {
    const { observers, greet } = this.#feed;
    const observer = { of: typeof next === "function" ? { next, error, complete } : next };
    const stop = (): void => void (observers.delete(observer) && this.#settle());
    observers.add(observer);
    this.#settle();
    greet?.(observer);
    return Object.assign(stop, { unsubscribe: stop });
  }

  /** Iterates over the results. A reader that is slower than the changes gets the newest result, not all of them. */
  [Symbol.asyncIterator](): AsyncIterator<T, void> {
    const iterator = this.#load().then((follower) => follower.iterate(this));
    return { next: async () => (await iterator).next(), return: async () => (await iterator).return() };
  }

  /** Ends all subscriptions and loops; they complete. Subscriptions and loops that begin later complete at once. */
  close(): void {
    this.#feed.isClosed = true;
    if (this.#follower) this.#settle();
  }

  /** Explains how the result is kept up to date. */
  async explain(): Promise<LiveExplanation> {
    return (await this.#load()).explain();
  }

  /** Closes the live query at the end of an `await using` block. */
  async [asyncDispose](): Promise<void> {
    this.close();
  }

  /** For Observable libraries. */
  [observable](): this {
    return this;
  }

  #load(): Promise<Follower<T>> {
    return (this.#follower ??= import("./later.js").then(
      ({ Follower }) => new Follower(this.#feed),
      (error) => {
        // The next call tries to load it again.
        this.#follower = undefined;
        throw error;
      },
    ));
  }

  /** Starts, stops or ends the computation, depending on observers and database. */
  #settle(): void {
    this.#load().then(
      (follower) => follower.settle(),
      (error) => {
        const { observers } = this.#feed;
        const all = [...observers];
        observers.clear();
        all.forEach(({ of }) => (of.error ? of.error(error) : Promise.reject(error)));
      },
    );
  }
}
