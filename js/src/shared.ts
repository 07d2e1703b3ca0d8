// What the entries for frameworks share: a database that is open while components use it, and what may be followed.

import { open, type Database, type LiveQuery, type OpenOptions } from "timepail";

/** Options of `useDatabase`: those of `open`, and what to do first. */
export interface UseDatabaseOptions extends OpenOptions {
  /** Called once each time the database is opened, for example to create collections. */
  prepare?: (db: Database) => unknown;
}

/** What can be followed: a live query, or a cursor of `find` or `aggregate`. */
export type Followable<T> = Pick<LiveQuery<T>, "current" | "subscribe"> | { live(): LiveQuery<T> };
export type Nothing = undefined | null | false | "";

/** A value that changes, and somebody who hears of it. */
export interface Source<T> {
  readonly current: T | undefined;
  subscribe(next: (value: T) => void, error: (error: unknown) => void): () => void;
}

interface Shared {
  users: number;
  opened: Promise<Database>;
  db?: Database;
}

/** The open databases, by name. */
const databases = new Map<string, Shared>();

export function sourceOf<T>(given: Followable<T> | Nothing): Source<T> | undefined {
  return given ? ("subscribe" in given ? given : given.live()) : undefined;
}

/** The database of that name. All subscribers of a page share it; the last one closes it. */
export function databaseOf(name: string, { prepare, ...options }: UseDatabaseOptions = {}): Source<Database> {
  return {
    get current() {
      return databases.get(name)?.db;
    },
    subscribe(next, error) {
      let shared = databases.get(name);
      if (!shared) {
        const opened = open(name, options).then(async (db) => {
          try {
            await prepare?.(db);
            return (mine.db = db);
          } catch (error) {
            await db.close();
            throw error;
          }
        });
        const mine: Shared = (shared = { users: 0, opened });
        databases.set(name, mine);
        // The next component tries again.
        opened.catch(() => forget(name, mine));
      }
      const mine = shared;
      mine.users++;
      let isCurrent = true;
      mine.opened.then((db) => isCurrent && next(db), (reason) => isCurrent && error(reason));
      return () => {
        if (!isCurrent) return;
        isCurrent = false;
        mine.users--;
        // Not at once: StrictMode mounts everything twice, and the next page of a router may use it again.
        setTimeout(() => mine.users === 0 && forget(name, mine) && mine.opened.then((db) => db.close(), () => {}));
      };
    },
  };
}

function forget(name: string, shared: Shared): boolean {
  return databases.get(name) === shared && databases.delete(name);
}
