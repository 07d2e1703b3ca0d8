// Shared by the entries for frameworks: a database that is open while components use it, and sources that they can follow.

import { open, type Database, type LiveQuery, type OpenOptions } from "timepail";

/** Options of `useDatabase`: those of `open`, and a function to call first. */
export interface UseDatabaseOptions extends OpenOptions {
  /** Called once each time the database is opened, for example to create collections. */
  prepare?: (db: Database) => unknown;
}

/** What `useLive` accepts: a live query, or a cursor of `find` or `aggregate`. */
export type Followable<T> = Pick<LiveQuery<T>, "current" | "subscribe"> | { live(): LiveQuery<T> };
export type Nothing = undefined | null | false | "";

/** A changing value that you can subscribe to. */
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
export function databaseOf(name: string, options: UseDatabaseOptions = {}): Source<Database> {
  return {
    get current() {
      return databases.get(name)?.db;
    },
    subscribe(next, error) {
      const shared = databases.get(name) ?? share(name, options);
      shared.users++;
      let isCurrent = true;
      shared.opened.then((db) => isCurrent && next(db), (reason) => isCurrent && error(reason));
      return () => {
        if (!isCurrent) return;
        isCurrent = false;
        shared.users--;
        // Do not close at once: StrictMode mounts everything twice, and the next page of a router may use the database again.
        setTimeout(() => shared.users === 0 && forget(name, shared) && shared.opened.then((db) => db.close(), () => {}));
      };
    },
  };
}

function share(name: string, { prepare, ...options }: UseDatabaseOptions): Shared {
  const shared: Shared = { users: 0, opened: open(name, options).then(prepared) };
  databases.set(name, shared);
  // The next component tries again.
  shared.opened.catch(() => forget(name, shared));
  return shared;

  async function prepared(db: Database): Promise<Database> {
    try {
      await prepare?.(db);
      return (shared.db = db);
    } catch (error) {
      await db.close();
      throw error;
    }
  }
}

function forget(name: string, shared: Shared): boolean {
  return databases.get(name) === shared && databases.delete(name);
}
