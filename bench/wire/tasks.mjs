// The tasks of bench/wire.mjs, for what has the methods of the official driver. bench/wire/driver.py has the same for PyMongo, and bench/wire/prepared.mjs the first two.

export const COMMIT = 10_000;
const SINGLES = 300;

/** Measurements of ten stations, a second apart. */
export function rows(start, count) {
  return Array.from({ length: count }, (_, i) => ({ at: new Date(Date.UTC(2025, 5, 1) + (start + i) * 1000), station: (start + i) % 10, temp: 20 + Math.sin((start + i) / 500), humidity: 40 + ((start + i) % 30) / 4 }));
}

/** Runs a task and adds to `times`: its milliseconds, the processor time of the storing process, which `processorMs` returns, and that of this process. */
export async function timed(times, name, processorMs, work) {
  const [begin, processorBegin, ownBegin] = [performance.now(), await processorMs(), process.cpuUsage()];
  await work();
  const tookMs = performance.now() - begin;
  const { user, system } = process.cpuUsage(ownBegin);
  times[name] = [tookMs, (await processorMs()) - processorBegin, (user + system) / 1000];
}

/** The times of each task, as `timed` gives them. `points` is the number of measurements. */
export async function times(collection, points, processorMs) {
  const times = {};
  // A warm-up, which the counts below include.
  for (let i = 0; i < 2; i++) await collection.insertMany(rows(points + i * COMMIT, COMMIT), { ordered: false });
  const batches = Array.from({ length: points / COMMIT }, (_, i) => rows(i * COMMIT, COMMIT));
  await timed(times, "insertMany of 10 000", processorMs, async () => {
    for (const batch of batches) await collection.insertMany(batch, { ordered: false });
  });
  const more = Array.from({ length: points / COMMIT }, (_, i) => rows(2 * points + i * COMMIT, COMMIT)).values();
  await timed(times, "the same, four at a time", processorMs, async () => {
    const insert = async () => {
      for (const batch of more) await collection.insertMany(batch, { ordered: false });
    };
    await Promise.all(Array.from({ length: 4 }, insert));
  });
  const singles = rows(points + 2 * COMMIT, SINGLES);
  await timed(times, `${SINGLES} times insertOne`, processorMs, async () => {
    for (const row of singles) await collection.insertOne(row);
  });
  let found;
  await timed(times, "find, all measurements", processorMs, async () => (found = await collection.find().toArray()));
  if (found.length !== 2 * points + 2 * COMMIT + SINGLES) throw new Error(`${found.length} measurements were found`);
  await timed(times, `${SINGLES} times find of 100`, processorMs, async () => {
    for (let i = 0; i < SINGLES; i++) {
      const at = Date.UTC(2025, 5, 1) + i * 600_000;
      const hundred = await collection.find({ at: { $gte: new Date(at), $lt: new Date(at + 100_000) } }).toArray();
      if (hundred.length !== 100 && at + 100_000 < Date.UTC(2025, 5, 1) + points * 1000) throw new Error(`${hundred.length} instead of a hundred`);
    }
  });
  return times;
}
