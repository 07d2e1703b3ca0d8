// Generates sensor measurements. They are seeded, so that every visitor gets the same ones, and in columns, which is the fastest way to insert.

const STEP_MS = 10_000;
const DAY_MS = 86_400_000;
const BATCH_ROWS = 10_000;

const CLIMATES = {
  attic: { temperature: 21, swing: 7, humidity: 42, voltage: 3.31 },
  cellar: { temperature: 13, swing: 0.6, humidity: 71, voltage: 3.02 },
  garage: { temperature: 11, swing: 3, humidity: 58, voltage: 3.15 },
  garden: { temperature: 9, swing: 6, humidity: 76, voltage: 3.44 },
  kitchen: { temperature: 20, swing: 1.8, humidity: 49, voltage: 3.22 },
};

export const FIRST_TIME = Date.UTC(2025, 0, 1);

/**
 * Inserts `total` measurements that begin at `start` (milliseconds). After each batch it calls `onBatch({ rows, ms })`,
 * both counted from the beginning. It stops early, between two batches, when `signal` is aborted.
 */
export async function addSensorPoints(collection, { total, start, signal, onBatch }) {
  const rooms = Object.keys(CLIMATES);
  const walks = Object.fromEntries(rooms.map((room) => [room, walk(room, start)]));
  let rows = 0;
  let ms = 0;
  while (rows < total && !signal.aborted) {
    const columns = { at: [], room: [], temperature: [], humidity: [], voltage: [] };
    const steps = Math.min(BATCH_ROWS, total - rows) / rooms.length;
    for (const room of rooms) {
      for (let i = 0; i < steps; i++) {
        const measurement = walks[room](start + i * STEP_MS);
        columns.at.push(start + i * STEP_MS);
        columns.room.push(room);
        for (const [field, value] of Object.entries(measurement)) columns[field].push(value);
      }
    }
    const before = performance.now();
    await collection.insertColumns(columns);
    ms += performance.now() - before;
    start += steps * STEP_MS;
    rows += steps * rooms.length;
    onBatch({ rows, ms });
  }
  return { rows, ms };
}

/** A function from a time to a measurement; consecutive calls drift a little, as sensors do. */
function walk(room, seed) {
  const { temperature, swing, humidity, voltage } = CLIMATES[room];
  const random = seededRandom(`${room}${seed}`);
  let drift = 0;
  let damp = 0;
  return (time) => {
    const sun = Math.sin(((time % DAY_MS) / DAY_MS - 0.375) * 2 * Math.PI);
    drift += (random() - 0.5) * 0.08 - drift * 0.001;
    damp += (random() - 0.5) * 0.3 - damp * 0.002;
    return {
      temperature: round(temperature + swing * sun + drift),
      humidity: round(humidity - swing * 1.6 * sun + damp),
      voltage: round(voltage - 0.003 * ((time - FIRST_TIME) / DAY_MS) + 0.006 * swing * sun + 0.01 * random()),
    };
  };
}

const round = (value) => Math.round(value * 100) / 100;

/** Numbers from 0 to 1 that depend on the seed alone (mulberry32). */
function seededRandom(text) {
  let state = [...text].reduce((hash, character) => Math.imul(hash ^ character.codePointAt(0), 16777619), 2166136261);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
