// Hooks for React: a database that stays open while components use it, and queries that follow its changes.

import { useEffect, useState } from "react";
import { open } from "timepail";

/** The open databases, by name. */
const databases = new Map();

/**
 * The database `name`, or undefined until it is open. All components of a page share it, and the last one to unmount closes it.
 * `prepare(db)` creates the collections. It is called once each time the database is opened; its errors go to the error boundary.
 */
export function useDatabase(name, prepare = () => {}) {
  const [db, setDb] = useState();
  useEffect(() => {
    const shared = databases.get(name) ?? share(name, prepare);
    shared.users++;
    let isCurrent = true;
    shared.opened.then(
      (db) => isCurrent && setDb(db),
      (error) => isCurrent && setDb(() => raise(error)),
    );
    return () => {
      isCurrent = false;
      setDb(undefined);
      shared.users--;
      // Not immediately: StrictMode mounts everything twice, and the router's next page may use the database again.
      setTimeout(() => shared.users === 0 && forget(name, shared) && close(shared));
    };
  }, [name]);
  return db;
}

function share(name, prepare) {
  const shared = { users: 0, opened: openWith(name, prepare) };
  databases.set(name, shared);
  // The next component that mounts tries again.
  shared.opened.catch(() => forget(name, shared));
  return shared;
}

function forget(name, shared) {
  return databases.get(name) === shared && databases.delete(name);
}

async function openWith(name, prepare) {
  const db = await open(name);
  try {
    await prepare(db);
    return db;
  } catch (error) {
    await db.close();
    throw error;
  }
}

function close({ opened }) {
  opened.then(
    (db) => db.close(),
    () => {}, // it was never open
  );
}

/**
 * The result of `query(db)`, or undefined until it resolves. The query runs again when the collection changes, in this tab or another,
 * and when one of `deps` changes. All changes during a running query lead to one more query.
 */
export function useQuery(db, collection, query, deps = []) {
  const [result, setResult] = useState();
  useEffect(() => {
    if (!db) return;
    let isCurrent = true;
    let isAsking = false;
    let isStale = false;
    async function ask() {
      isStale = true;
      if (isAsking) return;
      isAsking = true;
      try {
        while (isStale && isCurrent) {
          isStale = false;
          const result = await query(db);
          if (isCurrent) setResult(() => result);
        }
      } catch (error) {
        if (isCurrent) setResult(() => raise(error));
      } finally {
        isAsking = false;
      }
    }
    const onChange = (change) => (change.collection ?? collection) === collection && ask();
    // A page restored from the back/forward cache has missed what other tabs wrote.
    const onShow = ({ persisted }) => persisted && ask();
    db.on("change", onChange);
    addEventListener("pageshow", onShow);
    ask();
    return () => {
      isCurrent = false;
      db.off("change", onChange);
      removeEventListener("pageshow", onShow);
    };
  }, [db, collection, ...deps]);
  // Ignores the result of an earlier database.
  useEffect(() => () => setResult(undefined), [db, collection]);
  return result;
}

function raise(error) {
  throw error;
}
