// Compares the answers of two engines, and measures how long they take.

/** Flattens rows of groups: the parts of `_id` become fields, a single `_id` gets the name `key`, and dates and 64-bit integers become numbers. */
function flat(row, key) {
  const plain = {};
  const take = (name, value) => {
    if (value instanceof Date) plain[name] = value.getTime();
    else if (typeof value === "bigint") plain[name] = Number(value);
    else if (typeof value === "boolean") plain[name] = Number(value);
    else if (value === undefined) plain[name] = null;
    else if (typeof value === "object" && value !== null) for (const [inner, one] of Object.entries(value)) take(inner, one);
    else plain[name === "_id" ? key : name] = value;
  };
  for (const [name, value] of Object.entries(row)) take(name === "_id" && (typeof value !== "object" || value instanceof Date) ? key : name, value);
  return plain;
}

const near = (a, b) => a === b || (typeof a === "number" && typeof b === "number" && Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b)));

/** Sorts rows by what identifies one: everything but numbers with a fraction, which may differ in the last digit. */
function ordered(rows, names) {
  const keys = new Map(
    rows.map((row) => [row, JSON.stringify(names.map((name) => (Number.isInteger(row[name]) || typeof row[name] === "string" ? row[name] : null)))]),
  );
  return rows.toSorted((a, b) => (keys.get(a) < keys.get(b) ? -1 : Number(keys.get(a) > keys.get(b))));
}

/** The first difference between the answers of two engines as a sentence, or `undefined`. `keys` are the columns that tell rows apart. */
export function difference(wanted, found, { key = "_id", keys }) {
  if (wanted.length !== found.length) return `${found.length} rows, not ${wanted.length}`;
  const [left, right] = [wanted, found].map((rows) =>
    ordered(
      rows.map((row) => flat(row, key)),
      keys,
    ),
  );
  for (const [i, row] of left.entries()) {
    const names = new Set([...Object.keys(row), ...Object.keys(right[i])]);
    for (const name of names) {
      if (!near(row[name], right[i][name])) return `row ${i}, ${name}: ${JSON.stringify(right[i])}, not ${JSON.stringify(row)}`;
    }
  }
  return undefined;
}

const WARM_MS = 50;
const ENOUGH_MS = 20;
const ASKS_MAX = 5;

/** Clocks in milliseconds. The processor clock counts the time of this process only, whatever else the machine does. It includes compilers and garbage collectors. */
export const CLOCKS = {
  wall: () => performance.now(),
  cpu: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
};

/**
 * Repeats a query and resolves to `{ answer, ms }`, where `ms` is the shortest time. A query of a millisecond runs five times, because other work of the machine
 * would double the time of a single run. A long query runs once.
 */
export async function timed(ask, clock) {
  const begin = performance.now();
  let [answer, ms] = [undefined, Infinity];
  for (let asks = 0; asks === 0 || (asks < ASKS_MAX && performance.now() < begin + ENOUGH_MS); asks++) {
    const before = clock();
    answer = await ask();
    ms = Math.min(ms, clock() - before);
  }
  return { answer, ms };
}

/** Repeats a query until compilers and caches are warm. */
export async function warm(ask) {
  const begin = performance.now();
  do await ask();
  while (performance.now() < begin + WARM_MS);
}

export const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
export const geometricMean = (values) => Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
