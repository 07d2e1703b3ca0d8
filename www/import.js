// Imports bucket documents from a file of this page or of mongodump.

import { EJSON } from "bson";
import { documentsOf } from "./bson-file.js";
import { show } from "./collection.js";
import { datasets } from "./datasets.js";
import { say } from "./feedback.js";
import { bytes, number } from "./format.js";
import { breathe, follow } from "./progress.js";
import { $, element, workspace } from "./workspace.js";

const BATCH = 100;
const PROBLEMS_MAX = 10;
const DUPLICATE_KEY = 11_000;
/** The longest spans of the granularities, in seconds. */
const SPANS = [[3600, "seconds"], [86_400, "minutes"], [2_592_000, "hours"]];
const LONGEST_SECONDS = 31_536_000;

/** Imports a `.bson` file, with the options of its `.metadata.json` if there is one. */
export async function importBuckets(files) {
  const file = files.find(({ name }) => /\.bson$/i.test(name));
  if (!file) throw new Error("Choose a .bson file. You can choose its .metadata.json as well.");
  const metadata = files.find(({ name }) => /metadata\.json$/i.test(name));
  const name = file.name.replace(/\.bson$/i, "").replace(/^system\.buckets\./, "").replace(/[^\p{L}\p{N}_.-]+/gu, "_");
  const total = { inserted: 0, present: 0, problems: [] };
  const { cancelled } = await follow(`Import of ${file.name}`, async (signal, progress) => {
    let batch = [];
    let isReady = false;
    const store = async (end) => {
      if (batch.length === 0) return;
      if (!isReady) await prepare(name, batch, metadata && EJSON.parse(await metadata.text()));
      isReady = true;
      await insert(name, batch, total);
      batch = [];
      progress(end / file.size, `${number(total.inserted)} buckets`);
      await breathe();
    };
    for await (const { document, end } of documentsOf(file)) {
      if (signal.aborted) return;
      batch.push(document);
      if (batch.length === BATCH) await store(end);
    }
    await store(file.size);
  });
  showProblems(total.problems);
  await show(Object.hasOwn(datasets, name) || total.inserted > 0 ? name : undefined);
  const notes = [
    `${cancelled ? "Cancelled: " : ""}${number(total.inserted)} buckets imported into “${name}”, ${bytes(file.size)}`,
    total.present > 0 && `${number(total.present)} were there already`,
    total.problems.length > 0 && `${number(total.problems.length)} refused`,
  ];
  say(`${notes.filter(Boolean).join("; ")}.`);
}

/** Creates the collection if it does not exist, with its options or with those that its buckets suggest. */
async function prepare(name, buckets, metadata) {
  const strange = buckets.find(({ _id, control, data }) => _id?._bsontype !== "ObjectId" || !control?.min || !data);
  if (strange) throw new Error("These documents are not buckets of a time-series collection.");
  if ((await workspace.db.listCollections({ name }).toArray()).length > 0) {
    if (!metadata || (await workspace.db.collection(name).countDocuments()) > 0) return;
    await workspace.db.dropCollection(name); // An empty one is replaced by one with the options of the metadata.
  }
  const { timeseries, expireAfterSeconds, collation } = metadata?.options ?? { timeseries: guess(buckets) };
  if (!timeseries) throw new Error("The metadata does not describe a time-series collection.");
  const limits = { ...(expireAfterSeconds !== undefined && { expireAfterSeconds: Number(expireAfterSeconds) }), ...(collation && { collation }) };
  const collection = await workspace.db.createCollection(name, { timeseries: plain(timeseries), ...limits });
  const present = new Set((await collection.indexes()).map((index) => index.name));
  for (const { key, name: index, v, ...more } of metadata?.indexes ?? []) {
    if (present.has(index)) continue; // The default one.
    await collection.createIndex(plain(key), { ...more, name: index });
  }
}

const plain = (document) => Object.fromEntries(Object.entries(document).map(([field, value]) => [field, value?._bsontype ? Number(value) : value]));

/** Options that fit the buckets. The time is the date field whose minimum is in the id. The span is longer than that of any bucket so far. */
function guess(buckets) {
  const [{ _id, control }] = buckets;
  const dates = Object.keys(control.min).filter((field) => control.min[field] instanceof Date);
  const idSeconds = _id.getTimestamp().getTime() / 1000;
  const timeField = dates.find((field) => Math.floor(control.min[field].getTime() / 1000) === idSeconds) ?? dates[0];
  if (!timeField) throw new Error("These buckets have no time.");
  const longest = Math.max(...buckets.map(({ control: { min, max } }) => (max[timeField] - min[timeField]) / 1000));
  const [, granularity] = SPANS.find(([span]) => longest < span) ?? [];
  const span = granularity ? { granularity } : { bucketMaxSpanSeconds: LONGEST_SECONDS, bucketRoundingSeconds: LONGEST_SECONDS };
  return { timeField, ...(buckets.some(({ meta }) => meta !== undefined) && { metaField: "meta" }), ...span };
}

async function insert(name, documents, total) {
  const command = { insert: `system.buckets.${name}`, documents, ordered: false, unsafeBucketWrites: true };
  const { n, writeErrors = [] } = await workspace.db.command(command);
  total.inserted += Number(n);
  for (const { index, code, errmsg } of writeErrors) {
    if (code === DUPLICATE_KEY) total.present++;
    else total.problems.push(`Bucket ${documents[index]._id}: ${errmsg}`);
  }
}

function showProblems(problems) {
  const items = problems.slice(0, PROBLEMS_MAX).map((textContent) => element("li", { textContent }));
  if (problems.length > PROBLEMS_MAX) items.push(element("li", { textContent: `and ${number(problems.length - PROBLEMS_MAX)} more` }));
  $("import-problems").replaceChildren(...items);
  $("import-problems").hidden = problems.length === 0;
}
