// The rows of bench/operators.mjs: hosts whose measurements have a field of each common shape.

import { generator } from "../tsbs/random.mjs";

export const STARTED_MS = Date.UTC(2026, 0, 1);
export const SAYINGS = Array.from({ length: 200 }, (_, at) => `saying ${at} of Many`);
const HOSTS = 50;
const STATES = ["ok", "warning", "error", "unknown"];

function* rowsOf(host, count) {
  const random = generator(`operators ${host}`);
  let [a, b] = [50, 20];
  for (let row = 0; row < count; row++) {
    a = Math.max(0, Math.min(100, a + (random.next() - 0.5) * 2));
    b = Math.max(0, b + random.next() - 0.5);
    const level = Math.floor(a / 3);
    yield {
      time: new Date(STARTED_MS + row * 10_000),
      tags: { host: `host_${host}`, region: `region_${host % 5}`, rack: host % 7 },
      a: Math.round(a * 100) / 100,
      b,
      level,
      state: STATES[Math.floor(random.next() * STATES.length)],
      saying: SAYINGS[Math.floor(random.next() * SAYINGS.length)],
      flag: random.next() < 0.5,
      list: [Math.floor(a), Math.floor(b), row % 7],
      object: { x: Math.round(a), y: b },
      when: new Date(STARTED_MS - Math.floor(random.next() * 1e9)),
      iso: new Date(STARTED_MS + row * 60_000).toISOString(),
      ...(row % 2 === 1 && { half: a }),
    };
  }
}

/** Inserts about so many rows into a collection; resolves to their number. */
export async function fill(collection, rows) {
  const each = Math.ceil(rows / HOSTS);
  for (let host = 0; host < HOSTS; host++) await collection.insertMany([...rowsOf(host, each)]);
  return each * HOSTS;
}
