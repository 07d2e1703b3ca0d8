// `timepail/svelte`: a database that stays open and live queries, for runes (`.current`) and as stores (`$`).

import { createSubscriber } from "svelte/reactivity";
import type { Database } from "timepail";
import { databaseOf, sourceOf, type Followable, type Nothing, type Source, type UseDatabaseOptions } from "./shared.js";

export type { Followable, Nothing, UseDatabaseOptions };

/** A changing value: read `current` in a reactive context, or use it as a store. */
export interface Live<T> {
  /** The value; `undefined` until there is one, and on a server. It is kept up to date while an effect or a component reads it. After a failure, reading it throws the error. */
  readonly current: T | undefined;
  /** The contract of Svelte's stores. */
  subscribe(run: (value: T | undefined) => void): () => void;
}

/**
 * The database `name`. All components of a page share it, and the last one to stop reading it closes it. The options apply when it is opened.
 *
 * @example
 * ```ts
 * const db = useDatabase("home", { prepare: (db) => db.createCollection("readings", { timeseries: { timeField: "at" } }) });
 * ```
 */
export function useDatabase(name: string, options?: UseDatabaseOptions): Live<Database> {
  return liveOf(databaseOf(name, options));
}

/**
 * The result of a cursor or a live query.
 *
 * @example
 * ```ts
 * const rows = $derived(useLive(db.current?.collection("readings").find({ room }).sort({ at: -1 }).limit(10)));
 * ```
 */
export function useLive<T>(source: Followable<T> | Nothing): Live<T> {
  return liveOf(sourceOf(source));
}

function liveOf<T>(source: Source<T> | undefined): Live<T> {
  let failure: { error: unknown } | undefined;
  const read = createSubscriber((update) => {
    failure = undefined;
    return source?.subscribe(update, (error) => {
      failure = { error };
      update();
    });
  });
  return {
    get current() {
      read();
      if (failure) throw failure.error;
      return source?.current;
    },
    subscribe(run) {
      run(source?.current);
      // On a server, a store is read only once.
      if (typeof window === "undefined" || !source) return () => {};
      return source.subscribe(run, (error) => {
        throw error;
      });
    },
  };
}
