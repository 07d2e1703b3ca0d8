// Puts similar functions next to each other, so that compression can refer from one to the other.
//
// gzip looks back 32 KB, and the module is many times as long. Renumbering functions would require reading every instruction. wasm-opt
// can do it, in the order of function names. So `withOrder` gives the functions names in the desired order, and wasm-opt runs with
// `--reorder-functions-by-name`, which removes the names again.

import { CUSTOM, bodiesOf, importedFunctions, leb, prefixed, sectionsOf } from "./wasm.mjs";

/** The length of a shingle: for this many equal bytes, a back-reference in the compressed file is shorter than the bytes. */
const SHINGLE = 5;
/** Shingles in more functions than this are found nearby in any order, and are ignored. */
const COMMON = 30;
/** The number of bytes after which the weight of an earlier function falls to a third. */
const MEMORY = 12_000;

/**
 * Shorter functions are at the end, in the order of their lengths and bytes. Most only call another function or a slot of the table, and are
 * equal up to its number: too common to be weighed by shingles.
 */
const WEIGHED_BYTES_MIN = 24;

/** Numbers below are written in one byte. */
const SHORT_END = 0x80;

/**
 * `bytes`, a Buffer, with a name for every function. Imported functions, which come first, keep their order, and so do the others with
 * indexes below `end`, because wasm-opt has put the functions with the most calls first.
 */
export function withOrder(bytes, end = SHORT_END) {
  const sections = sectionsOf(bytes);
  const imported = importedFunctions(bytes, sections);
  const bodies = bodiesOf(bytes, sections);
  const fixed = Math.min(Math.max(end - imported, 0), bodies.length);
  const places = Array.from({ length: imported + fixed }, (_, at) => at);
  orderOf(bodies.slice(fixed)).forEach((one, place) => (places[imported + fixed + one] = imported + fixed + place));
  const names = places.map((place, at) => Buffer.concat([leb(at), prefixed(Buffer.from(String(place).padStart(9, "0")))]));
  // Subsection 1 of the section "name" has the names of functions.
  const functions = prefixed(Buffer.concat([leb(names.length), ...names]));
  const section = Buffer.concat([prefixed(Buffer.from("name")), Buffer.from([1]), functions]);
  return Buffer.concat([bytes, Buffer.from([CUSTOM]), prefixed(section)]);
}

/**
 * The indexes of `bodies`, ordered such that each is most similar to those shortly before it: it shares the most shingles with them,
 * weighted by its length, but less than proportionally, because otherwise all short functions would come first.
 */
export function orderOf(bodies) {
  const [short, long] = [true, false].map((isShort) => [...bodies.keys()].filter((at) => bodies[at].length < WEIGHED_BYTES_MIN === isShort));
  short.sort((a, b) => bodies[a].length - bodies[b].length || Buffer.compare(bodies[a], bodies[b]));
  return [...weighedOrderOf(long.map((at) => bodies[at])).map((at) => long[at]), ...short];
}

function weighedOrderOf(bodies) {
  const shingles = sharedShingles(bodies);
  const users = new Map();
  shingles.forEach((own, one) => {
    for (const shingle of own) {
      if (users.has(shingle)) users.get(shingle).push(one);
      else users.set(shingle, [one]);
    }
  });
  const weights = bodies.map(({ length }) => length ** 0.7);
  // Earlier functions should count less. Giving later ones a higher weight has the same effect, and is computed only once.
  let now = 1;
  const seen = new Map();
  const scores = new Float64Array(bodies.length);
  const order = [];
  const left = new Set(bodies.keys());
  while (left.size > 0) {
    let next = -1;
    let best = -1;
    for (const one of left) {
      const score = scores[one] / weights[one];
      if (score > best) [next, best] = [one, score];
    }
    left.delete(next);
    order.push(next);
    now *= 1 + bodies[next].length / MEMORY;
    for (const shingle of shingles[next]) {
      const more = now - (seen.get(shingle) ?? 0);
      for (const one of users.get(shingle)) scores[one] += more;
      seen.set(shingle, now);
    }
  }
  return order;
}

/** For each body, the shingles that it shares with another one, as numbers. */
function sharedShingles(bodies) {
  const counts = new Map();
  const all = bodies.map((body) => {
    const own = new Set();
    for (let at = 0; at + SHINGLE <= body.length; at++) own.add(body.readUIntBE(at, SHINGLE));
    for (const shingle of own) counts.set(shingle, (counts.get(shingle) ?? 0) + 1);
    return own;
  });
  return all.map((own) => [...own].filter((shingle) => counts.get(shingle) > 1 && counts.get(shingle) < COMMON));
}
