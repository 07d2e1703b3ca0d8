// `timepail/vue`: composables that keep a database open and follow live queries.

import { computed, shallowRef, toValue, watchPostEffect, type ComputedRef, type MaybeRefOrGetter } from "vue";
import type { Database } from "timepail";
import { databaseOf, sourceOf, type Followable, type Nothing, type Source, type UseDatabaseOptions } from "./shared.js";

export type { Followable, Nothing, UseDatabaseOptions };

/**
 * The database `name`; its value is `undefined` until it is open, and on a server. All components of a page share it, and the last one to unmount closes it.
 * The options apply when it is opened. After a failure, reading the value throws the error, which Vue passes to `onErrorCaptured`.
 *
 * @example
 * ```ts
 * const db = useDatabase("home", { prepare: (db) => db.createCollection("readings", { timeseries: { timeField: "at" } }) });
 * ```
 */
export function useDatabase(name: MaybeRefOrGetter<string>, options?: UseDatabaseOptions): ComputedRef<Database | undefined> {
  return useSource(() => databaseOf(toValue(name), options));
}

/**
 * The result of a live query; its value is `undefined` until there is one, and on a server. `source` is a cursor, a live query, or a function that makes one,
 * called again when something reactive that it has read changes. After a failure, reading the value throws the error.
 *
 * @example
 * ```ts
 * const rows = useLive(() => db.value?.collection("readings").find({ room: room.value }).sort({ at: -1 }).limit(10));
 * ```
 */
export function useLive<T>(source: MaybeRefOrGetter<Followable<T> | Nothing>): ComputedRef<T | undefined> {
  return useSource(() => sourceOf(toValue(source)));
}

function useSource<T>(make: () => Source<T> | undefined): ComputedRef<T | undefined> {
  const value = shallowRef<T>();
  const failure = shallowRef<{ error: unknown }>();
  // Effects that run after rendering do not run on a server.
  watchPostEffect((onCleanup) => {
    const source = make();
    failure.value = undefined;
    value.value = source?.current;
    const stop = source?.subscribe(
      (result) => (value.value = result),
      (error) => (failure.value = { error }),
    );
    if (stop) onCleanup(stop);
  });
  return computed(() => {
    if (failure.value) throw failure.value.error;
    return value.value;
  });
}
