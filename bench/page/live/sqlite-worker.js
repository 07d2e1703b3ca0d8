// SQLite in a worker, over its file pool in the origin private file system, which needs no special headers. A message has statements, `[sql, ...parameters]`
// each, and is answered with the rows of each; writes are one transaction.

import init from "/sqlite/index.mjs";

const sqlite = await init({ print() {}, printErr() {} });
const pool = await sqlite.installOpfsSAHPoolVfs({ name: "live" });
const db = new pool.OpfsSAHPoolDb("/live.db");
db.exec("pragma synchronous = normal; create table points(sensor text, at integer, value real, pressure real, status text, primary key (sensor, at)) without rowid");
const prepared = new Map();

function run([sql, ...parameters]) {
  if (!prepared.has(sql)) prepared.set(sql, db.prepare(sql));
  const statement = prepared.get(sql);
  if (parameters.length > 0) statement.bind(parameters);
  const rows = [];
  while (statement.step()) rows.push(statement.get({}));
  statement.reset();
  return rows;
}

onmessage = ({ data: { isWrite, statements } }) => {
  try {
    if (isWrite) db.exec("begin");
    const answers = statements.map(run);
    if (isWrite) db.exec("commit");
    postMessage({ answers: isWrite ? [] : answers });
  } catch (error) {
    postMessage({ error: String(error) });
  }
};
postMessage({ answers: [] });
