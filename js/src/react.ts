// `timepail/react`: hooks that keep a database open and follow live queries.

import { useMemo, useSyncExternalStore } from "react";
import type { Database } from "timepail";
import { databaseOf, sourceOf, type Followable, type Nothing, type Source, type UseDatabaseOptions } from "./shared.js";

export type { Followable, Nothing, UseDatabaseOptions };

/**
 * The database `name`; `undefined` until it is open, and on a server. All components of a page share it, and the last one to unmount closes it.
 * The options apply when it is opened. Errors are thrown during rendering, for an error boundary.
 *
 * @example
 * ```ts
 * const db = useDatabase("home", { prepare: (db) => db.createCollection("readings", { timeseries: { timeField: "at" } }) });
 * ```
 */
export function useDatabase(name: string, options?: UseDatabaseOptions): Database | undefined {
  return useSource(() => databaseOf(name, options), [name]);
}

/**
 * The result of a live query; `undefined` until there is one, and on a server. `source` is a function that makes a cursor or a live query,
 * called again when one of `deps` changes, or a cursor or live query that stays the same from one rendering to the next.
 * Errors are thrown during rendering, for an error boundary.
 *
 * @example
 * ```ts
 * const rows = useLive(() => db?.collection("readings").find({ room }).sort({ at: -1 }).limit(10), [db, room]);
 * ```
 */
export function useLive<T>(source: (() => Followable<T> | Nothing) | Followable<T> | Nothing, deps: readonly unknown[] = []): T | undefined {
  const isFunction = typeof source === "function";
  return useSource(() => sourceOf(isFunction ? source() : source), isFunction ? deps : [source]);
}

function useSource<T>(make: () => Source<T> | undefined, deps: readonly unknown[]): T | undefined {
  const store = useMemo(() => {
    const source = make();
    let failure: { error: unknown } | undefined;
    return {
      subscribe: (changed: () => void) =>
        source?.subscribe(changed, (error) => {
          failure = { error };
          changed();
        }) ?? (() => {}),
      snapshot: () => failure ?? source?.current,
      get failure() {
        return failure;
      },
    };
  }, deps);
  const value = useSyncExternalStore(store.subscribe, store.snapshot, () => undefined);
  if (value !== undefined && value === store.failure) throw store.failure!.error;
  return value as T | undefined;
}
