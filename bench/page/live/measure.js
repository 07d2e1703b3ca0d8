// timepail with rows in journals compared with the same rows in buckets: the same commits and the same queries, with equal answers.
//
// Runs in a page and in Node. A *place* says where databases lie:
// - `open(name)` opens one; another call with the same name opens it again, as a second tab or process would, and never folds what the first has written
// - `records(name)` resolves to the number of journal records, or to undefined if it is unknown
// - `bare()`, if it exists, resolves to `{ put(bytes), close }`: one record per call into the same kind of storage without timepail
// - `drop(name)` deletes a closed database

import { Plant, timeseries } from "./plant.js";
import { mustAgree, questions } from "./questions.js";

/** Rows per insert for the database with rows in buckets: its buckets are the same, and it is filled faster. */
const LARGE_COMMIT = 5000;
const ids = { next: 0 };

export const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

async function timed(work) {
  const begin = performance.now();
  const value = await work();
  return { ms: performance.now() - begin, value };
}

const freshName = (of) => `live-${of}-${ids.next++}`;

/** A database with an empty collection. */
async function create(place, name) {
  const db = await place.open(name);
  return { db, points: await db.createCollection("points", { timeseries }) };
}

const insert = ({ points }, documents) => points.insertMany(documents, { ordered: false });

/**
 * Two databases with the same `rows` rows: `live` got them in small commits without a flush, `folded` has them in buckets. `commit()` adds one more
 * commit to both, which is then the whole journal of `folded`.
 */
async function pair(place, options, rows) {
  const names = { live: freshName("journals"), folded: freshName("buckets") };
  const [live, folded] = [await create(place, names.live), await create(place, names.folded)];
  const plant = new Plant(options);
  let large = [];
  while (plant.rows < rows) {
    const documents = plant.next();
    await insert(live, documents);
    large.push(...documents);
    if (large.length < LARGE_COMMIT && plant.rows < rows) continue;
    await insert(folded, large);
    large = [];
  }
  await folded.db.flush();
  return {
    plant,
    live,
    folded,
    names,
    async commit() {
      const documents = plant.next();
      await insert(live, documents);
      await insert(folded, documents);
    },
    async close() {
      for (const side of ["live", "folded"]) {
        await { live, folded }[side].db.close();
        await place.drop(names[side]);
      }
    },
  };
}

/** Runs the query on both sides, in an order that changes with `round`, and records the times; the answers must agree. */
async function askBoth(name, plant, { live, folded }, times, round) {
  const sides = round % 2 === 0 ? { live, folded } : { folded, live };
  const answers = {};
  for (const [side, points] of Object.entries(sides)) {
    const { ms, value } = await timed(() => questions[name].ask(points, plant));
    answers[side] = value;
    // The first time is for compilers and caches.
    if (round >= 0) ((times[name] ??= { live: [], folded: [] })[side]).push(ms);
  }
  mustAgree(name, answers.live, answers.folded);
}

/** Ratios are of two neighbouring measurements, so that slow phases of the machine affect both. */
const medians = (times) =>
  Object.entries(times).map(([question, { live, folded }]) => ({
    question,
    live: median(live),
    folded: median(folded),
    ratio: median(live.map((ms, round) => ms / folded[round])),
  }));

/**
 * Every query right after a commit, in the writing context and, unless `isAlone`, in a second one. In `folded` the writer flushes after each commit; for
 * the second context it flushes before the commit, with a query of the second in between, because each flush invalidates its cache.
 *
 * Resolves to `{ own, second, records }`, rows of `{ question, live, folded, ratio }`.
 */
export async function compare(place, { options, rows, rounds, names = Object.keys(questions), isDeleting = false, isAlone = false, log }) {
  const both = await pair(place, options, rows);
  const { plant, live, folded } = both;
  const records = await place.records(both.names.live);
  log(`${place.name}: ${rows} rows in ${Math.ceil(rows / plant.perCommit)} commits`);
  const own = {};
  for (let round = -1; round < rounds; round++) {
    for (const name of names) {
      await both.commit();
      await folded.db.flush();
      await askBoth(name, plant, { live: live.points, folded: folded.points }, own, round);
    }
  }
  log(`${place.name}: asked by the context that wrote`);
  const second = isAlone ? {} : await askedBySecond(place, both, names, rounds);
  if (!isAlone) log(`${place.name}: asked by a second context`);
  const result = { own: medians(own), second: medians(second), records };
  if (isDeleting) result.own.push(await deletion(both));
  await both.close();
  return result;
}

/** The times of a second context. */
async function askedBySecond(place, both, names, rounds) {
  const { plant, folded } = both;
  const [liveToo, foldedToo] = [await place.open(both.names.live), await place.open(both.names.folded)];
  const others = { live: liveToo.collection("points"), folded: foldedToo.collection("points") };
  const second = {};
  for (let round = -1; round < rounds; round++) {
    for (const name of names) {
      await folded.db.flush();
      await questions[name].ask(others.folded, plant);
      await both.commit();
      await askBoth(name, plant, others, second, round);
    }
  }
  for (const db of [liveToo, foldedToo]) await db.close();
  return second;
}

/** Deletes the older half of the rows, once. */
async function deletion({ plant, live, folded }) {
  await folded.db.flush();
  const older = { at: { $lt: plant.timeAt(0.5) } };
  const times = {};
  for (const [side, { points }] of Object.entries({ live, folded })) times[side] = (await timed(() => points.deleteMany(older))).ms;
  mustAgree("count of each sensor", await questions["count of each sensor"].ask(live.points), await questions["count of each sensor"].ask(folded.points));
  return { question: "delete the older half", ...times, ratio: times.live / times.folded };
}

/**
 * A growing database that is never flushed: at each of `sizes` the queries right after a commit, the number of journal records, and the rate of
 * the inserts since the last size. Resolves to `[{ rows, records, rate, times: { question: ms } }]`.
 */
export async function growth(place, { options, sizes, rounds, names, log }) {
  const name = freshName("growth");
  const store = await create(place, name);
  const plant = new Plant(options);
  const found = [];
  for (const rows of sizes) {
    let [ms, inserted] = [0, 0];
    while (plant.rows < rows) {
      const documents = plant.next();
      ms += (await timed(() => insert(store, documents))).ms;
      inserted += documents.length;
    }
    const times = {};
    for (let round = -1; round < rounds; round++) {
      for (const question of names) {
        await insert(store, plant.next());
        const { ms } = await timed(() => questions[question].ask(store.points, plant));
        if (round >= 0) (times[question] ??= []).push(ms);
      }
    }
    const counted = await store.points.countDocuments();
    if (counted !== plant.rows) throw new Error(`${counted} of ${plant.rows} rows`);
    found.push({ rows, records: await place.records(name), rate: inserted / ms, times: Object.fromEntries(Object.entries(times).map(([q, all]) => [q, median(all)])) });
    log(`${place.name}: grown to ${rows} rows`);
  }
  await store.db.close();
  await place.drop(name);
  return found;
}

/**
 * The rate of inserts, compared with bare puts of a kilobyte, one per commit, into the same storage: `{ rate, settled, late, puts }`. Rates are points per millisecond,
 * `settled` includes the flush, `late` is the rate of the last tenth divided by that of the second; `puts` is the time of a commit in bare puts.
 */
export async function ingest(place, { options, rows, rounds, log }) {
  const times = { all: [], settled: [], late: [], puts: [] };
  for (let round = 0; round < rounds; round++) {
    const name = freshName("ingest");
    const store = await create(place, name);
    const plant = new Plant(options);
    const commits = Array.from({ length: Math.floor(rows / plant.perCommit) }, () => plant.next());
    const tenth = Math.floor(commits.length / 10);
    const bare = await place.bare?.();
    const parts = [];
    let puts = bare ? 0 : undefined;
    for (let part = 0; part < 10; part++) {
      const documents = commits.slice(part * tenth, (part + 1) * tenth);
      parts.push((await timed(async () => {
        for (const commit of documents) await insert(store, commit);
      })).ms);
      // Between the tenths, so that slow phases of the machine affect both.
      if (!bare) continue;
      puts += (await timed(async () => {
        for (let i = 0; i < tenth; i++) await bare.put(new Uint8Array(1024));
      })).ms;
    }
    const flush = (await timed(() => store.db.flush())).ms;
    const all = parts.reduce((a, b) => a + b, 0);
    const points = 10 * tenth * plant.perCommit;
    times.all.push(points / all);
    times.settled.push(points / (all + flush));
    times.late.push(parts[1] / parts[9]);
    if (bare) times.puts.push(all / puts);
    await bare?.close();
    await store.db.close();
    await place.drop(name);
    log(`${place.name}: ingest, round ${round + 1}`);
  }
  return { rate: median(times.all), settled: median(times.settled), late: median(times.late), puts: median(times.puts) };
}

/** Runs `work` while the page appears never idle, so that the database folds nothing by itself. */
async function withoutFolds(work) {
  const { requestIdleCallback } = globalThis;
  globalThis.requestIdleCallback = () => 0;
  try {
    return await work();
  } finally {
    globalThis.requestIdleCallback = requestIdleCallback;
  }
}

/**
 * The cost of folds during inserts: the same commits as fast as possible, with automatic folds and without any, in turns. Resolves to
 * `{ folded, unfolded, ratio, records }`: points per millisecond, the median ratio of neighbouring runs, and the remaining journal records of each.
 */
export async function folding(place, { options, rows, rounds, log }) {
  const rates = { folded: [], unfolded: [] };
  const records = {};
  for (let round = -1; round < rounds; round++) {
    for (const side of round % 2 === 0 ? ["folded", "unfolded"] : ["unfolded", "folded"]) {
      const name = freshName("folding");
      const store = await create(place, name);
      const plant = new Plant(options);
      const commits = Array.from({ length: Math.floor(rows / plant.perCommit) }, () => plant.next());
      const fill = async () => {
        for (const commit of commits) await insert(store, commit);
      };
      const { ms } = await timed(() => (side === "folded" ? fill() : withoutFolds(fill)));
      // The first time is for compilers and caches.
      if (round >= 0) rates[side].push(plant.rows / ms);
      records[side] = await place.records(name);
      await store.db.close();
      await place.drop(name);
    }
    log(`${place.name}: folding, round ${round + 1}`);
  }
  const ratio = median(rates.folded.map((rate, round) => rate / rates.unfolded[round]));
  return { folded: median(rates.folded), unfolded: median(rates.unfolded), ratio, records };
}
