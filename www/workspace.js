// Shared by the sections of the page: the open database, the collection that is shown, its last insert and query, and helpers for elements.

export const $ = (id) => document.getElementById(id);
export const all = (selector) => document.querySelectorAll(selector);

/** `extent`: times of the oldest and the newest measurement of the chosen collection, `null` while it is empty. */
export const workspace = { db: undefined, chosen: "weather", extent: null };

/** For each collection, the last insert and the last query, each as `{ rows, ms }`. */
const runs = new Map();

export function lastOf(name) {
  if (!runs.has(name)) runs.set(name, {});
  return runs.get(name);
}

export const forgetRuns = () => runs.clear();

/** An element with properties and children. */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
