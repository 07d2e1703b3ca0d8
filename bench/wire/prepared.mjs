// The inserts of bench/wire/tasks.mjs by a client that only sends messages that were encoded before. So only the server is measured, and any number of clients can
// load it in this way. node bench/wire/prepared.mjs <uri> <points> <folder of the driver>

import { createRequire } from "node:module";
import { connect } from "node:net";
import { COMMIT, rows, timed } from "./tasks.mjs";

const OP_MSG = 2013;
const HEADER_BYTES = 16;

const [uri, given, folder] = process.argv.slice(2);
const points = Number(given);
const { MongoClient, BSON } = createRequire(import.meta.url)(folder);
const { ObjectId, serialize } = BSON;
const client = new MongoClient(uri);
const db = client.db("bench");
await db.createCollection("points", { timeseries: { timeField: "at", metaField: "station" } });
const processorMs = async () => {
  const { extra_info: used } = await client.db("admin").command({ serverStatus: 1 });
  return (used.user_time_us + used.system_time_us) / 1000;
};

let requests = 0;
/** An insert as the driver sends it: the command, and the documents as a sequence. */
function message(documents) {
  const command = Buffer.from(serialize({ insert: "points", ordered: false, $db: "bench" }));
  const sequence = [Buffer.from("documents\0"), ...documents.map((document) => serialize({ ...document, _id: new ObjectId() }))];
  const sequenceBytes = 4 + sequence.reduce((sum, { length }) => sum + length, 0);
  const head = Buffer.alloc(HEADER_BYTES + 5);
  head.writeInt32LE(head.length + command.length + 1 + sequenceBytes, 0);
  head.writeInt32LE(++requests, 4);
  head.writeInt32LE(OP_MSG, 12);
  const kind = Buffer.from([1, 0, 0, 0, 0]);
  kind.writeInt32LE(sequenceBytes, 1);
  return Buffer.concat([head, command, kind, ...sequence]);
}

/** A connection, and a function that sends a message and resolves to the reply. */
async function connection() {
  const { hostname, port } = new URL(uri);
  const socket = connect(Number(port), hostname).setNoDelay();
  await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  let received = Buffer.alloc(0);
  let answered;
  socket.on("data", (bytes) => {
    received = Buffer.concat([received, bytes]);
    if (received.length < 4 || received.length < received.readInt32LE(0)) return;
    answered(BSON.deserialize(received.subarray(HEADER_BYTES + 5)));
    received = Buffer.alloc(0);
  });
  const send = async (bytes) => {
    const reply = new Promise((resolve) => (answered = resolve));
    socket.write(bytes);
    const { ok, n } = await reply;
    if (ok !== 1 || n !== COMMIT) throw new Error(`ok: ${ok}, n: ${n}`);
  };
  return { send, end: () => socket.destroy() };
}

const messages = (start, count) => Array.from({ length: count / COMMIT }, (_, i) => message(rows(start + i * COMMIT, COMMIT)));
const connections = await Promise.all(Array.from({ length: 4 }, connection));
for (const bytes of messages(points, 2 * COMMIT)) await connections[0].send(bytes);
const times = {};
const one = messages(0, points);
await timed(times, "insertMany of 10 000", processorMs, async () => {
  for (const bytes of one) await connections[0].send(bytes);
});
const rest = messages(2 * points, points).values();
await timed(times, "the same, four at a time", processorMs, () =>
  Promise.all(
    connections.map(async ({ send }) => {
      for (const bytes of rest) await send(bytes);
    }),
  ),
);
const stored = await db.collection("points").countDocuments();
if (stored !== 2 * points + 2 * COMMIT) throw new Error(`${stored} measurements were stored`);
console.log(JSON.stringify(times));
for (const { end } of connections) end();
await client.close();
