// A storage in memory that keeps its entries when the database is closed.

/** A `HostStorage` over a sorted list. */
export function sortedStorage() {
  const keys = [];
  const values = [];
  const compare = (a, b) => Buffer.compare(a, b);
  const place = (key) => {
    let [low, high] = [0, keys.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compare(keys[middle], key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const has = (key, at = place(key)) => at < keys.length && compare(keys[at], key) === 0;
  const apply = {
    put: (key, value) => {
      const at = place(key);
      const replaced = has(key, at) ? 1 : 0;
      keys.splice(at, replaced, key);
      values.splice(at, replaced, value);
    },
    delete: (key) => {
      const at = place(key);
      if (has(key, at)) for (const list of [keys, values]) list.splice(at, 1);
    },
    deleteRange: (start, end) => {
      const at = place(start);
      const count = Math.max(0, place(end) - at);
      for (const list of [keys, values]) list.splice(at, count);
    },
    require: () => undefined,
  };
  apply.insert = apply.put;
  return {
    getMany: (wanted) => wanted.map((key) => (has(key) ? values[place(key)] : undefined)),
    scan: (ranges, { entriesMax, keysOnly }) => {
      const found = [];
      for (const [start, end] of ranges) {
        for (let at = place(start); found.length < entriesMax && at < keys.length && compare(keys[at], end) < 0; at++) found.push(keysOnly ? [keys[at]] : [keys[at], values[at]]);
      }
      return found;
    },
    commit: (changes) => {
      const holds = ([kind, key]) => (kind === "insert" ? !has(key) : kind !== "require" || has(key));
      if (!changes.every(holds)) return false;
      for (const [kind, ...rest] of changes) apply[kind](...rest);
      return true;
    },
  };
}
