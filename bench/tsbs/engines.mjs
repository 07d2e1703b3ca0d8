// The engines of the suite. Each keeps the same measurements in memory and answers with rows as plain objects, times as dates.
//
// SQL has a table of tags with one row per series, and one table per measurement with the id of its tags: the layout that the suite gives to relational databases.
// In DuckDB, a measurement also has the name of its series, because it filters by a column faster than by a join, and groups faster by an id. Times are milliseconds.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { open } from "../../js/dist/node.js";

const require = createRequire(import.meta.url);

async function timepail(data) {
  const db = await open(data.name, { storage: "memory" });
  for (const { name, series } of data.measurements) {
    const collection = await db.createCollection(name, { timeseries: { timeField: "time", metaField: "tags" } });
    for (const { tags, columns } of series) await collection.insertColumns(columns, { meta: tags });
  }
  await db.flush();
  return {
    ask: ({ collection, pipeline }) => db.collection(collection).aggregate(pipeline).toArray(),
    close: () => db.close(),
  };
}

function tagColumns(data) {
  return Object.entries(data.measurements[0].series[0].tags).map(([name, value]) => ({ name, kind: typeof value === "string" ? "text" : "real" }));
}

function fieldColumns({ series }) {
  const fields = Object.entries(series[0].columns).filter(([name]) => name !== "time");
  return fields.map(([name, values]) => ({ name, kind: values instanceof Int32Array ? "integer" : "real" }));
}

/** The statements that make the tables. `begin` are the columns in front of the fields of a measurement, `end` is what follows them. */
function tables(data, types, begin, end) {
  const columns = (of) => of.map(({ name, kind }) => `${name} ${types[kind]}`).join(", ");
  return [
    `create table tags (id integer primary key, ${columns(tagColumns(data))})`,
    ...data.measurements.map((one) => `create table ${one.name} (${begin}, ${columns(fieldColumns(one))}${end}`),
  ];
}

const nameOf = ({ tags }) => Object.values(tags)[0];

const dateOf = (ms) => (ms === null ? null : new Date(Number(ms)));

/** Rows as objects out of columns; `times` names the columns that are milliseconds. */
function rowsOf(names, columns, count, times) {
  const values = columns.map((column, i) => (times.includes(names[i]) ? Array.from(column, dateOf) : column));
  const rows = new Array(count);
  for (let row = 0; row < count; row++) {
    const object = {};
    for (let i = 0; i < names.length; i++) object[names[i]] = values[i][row];
    rows[row] = object;
  }
  return rows;
}

const duckdbTables = (data) => tables(data, { text: "varchar", integer: "integer", real: "double" }, "tags_id integer, series varchar, time bigint", ")");

async function duckdb(data) {
  const lib = require("@duckdb/duckdb-wasm/blocking");
  const dist = dirname(require.resolve("@duckdb/duckdb-wasm/dist/duckdb-eh.wasm"));
  const bundle = (name) => ({ mainModule: join(dist, `duckdb-${name}.wasm`), mainWorker: "" });
  const db = await lib.createDuckDB({ mvp: bundle("mvp"), eh: bundle("eh") }, new lib.VoidLogger(), lib.NODE_RUNTIME);
  await db.instantiate();
  const connection = db.connect();
  for (const statement of duckdbTables(data)) connection.query(statement);
  const copy = (table, lines) => {
    db.registerFileText("rows.csv", lines.join("\n"));
    connection.query(`copy ${table} from 'rows.csv' (header false)`);
    db.dropFile("rows.csv");
  };
  copy(
    "tags",
    data.measurements[0].series.map(({ tags }, id) => [id, ...Object.values(tags)].join()),
  );
  for (const { name, series } of data.measurements) {
    for (const [id, one] of series.entries()) {
      const values = Object.values(one.columns);
      copy(
        name,
        Array.from(one.columns.time, (_, row) => `${id},${nameOf(one)},${values.map((column) => column[row]).join()}`),
      );
    }
  }
  return {
    ask: async ({ sql, times = [] }) => {
      const table = connection.query(sql.duckdb ?? sql);
      const columns = table.schema.fields.map((_, i) => table.getChildAt(i));
      const plain = columns.map((column) => (column.nullCount > 0 ? Array.from(column) : column.toArray()));
      return rowsOf(
        table.schema.fields.map(({ name }) => name),
        plain,
        table.numRows,
        times,
      );
    },
    close: () => connection.close(),
  };
}

async function sqlite(data) {
  const start = (await import("@sqlite.org/sqlite-wasm")).default;
  const { oo1 } = await start({ print() {}, printErr() {} });
  const db = new oo1.DB(":memory:");
  const types = { text: "text", integer: "integer", real: "real" };
  for (const statement of tables(data, types, "tags_id integer, time integer", ", primary key (tags_id, time)) without rowid")) db.exec(statement);
  db.exec("begin");
  const fill = (table, width, rows) => {
    const insert = db.prepare(`insert into ${table} values (${Array(width).fill("?").join()})`);
    for (const row of rows) insert.bind(row).stepReset();
    insert.finalize();
  };
  const tagged = data.measurements[0].series.map(({ tags }, id) => [id, ...Object.values(tags)]);
  fill("tags", tagged[0].length, tagged);
  for (const { name, series } of data.measurements) {
    const rows = function* () {
      for (const [id, { columns }] of series.entries()) {
        const values = Object.values(columns);
        for (let row = 0; row < columns.time.length; row++) yield [id, ...values.map((column) => column[row])];
      }
    };
    fill(name, Object.keys(series[0].columns).length + 1, rows());
  }
  db.exec("commit; analyze");
  return {
    ask: async ({ sql, times = [] }) => {
      const statement = db.prepare(sql.sqlite ?? sql.replaceAll("//", "/"));
      try {
        const names = statement.getColumnNames();
        const columns = names.map(() => []);
        let count = 0;
        for (; statement.step(); count++) for (let i = 0; i < names.length; i++) columns[i].push(statement.get(i));
        return rowsOf(names, columns, count, times);
      } finally {
        statement.finalize();
      }
    },
    close: () => db.close(),
  };
}

/** DuckDB as a native library, if it is installed. */
async function native(data) {
  let lib;
  try {
    lib = await import("@duckdb/node-api");
  } catch {
    return undefined;
  }
  const connection = await (await lib.DuckDBInstance.create(":memory:")).connect();
  for (const statement of duckdbTables(data)) await connection.run(statement);
  const TYPES = { text: lib.VARCHAR, integer: lib.INTEGER, real: lib.DOUBLE };
  const CHUNK_ROWS = 2048;
  const append = async (table, kinds, columns) => {
    const appender = await connection.createAppender(table);
    const length = columns[0].length;
    for (let from = 0; from < length; from += CHUNK_ROWS) {
      const chunk = lib.DuckDBDataChunk.create(kinds, Math.min(CHUNK_ROWS, length - from));
      chunk.setColumns(columns.map((column) => Array.from(column.slice(from, from + CHUNK_ROWS))));
      appender.appendDataChunk(chunk);
    }
    appender.closeSync();
  };
  const series = data.measurements[0].series;
  const names = tagColumns(data);
  await append(
    "tags",
    [lib.INTEGER, ...names.map(({ kind }) => TYPES[kind])],
    [series.map((_, id) => id), ...names.map(({ name }) => series.map(({ tags }) => tags[name]))],
  );
  for (const measurement of data.measurements) {
    const kinds = [lib.INTEGER, lib.VARCHAR, lib.BIGINT, ...fieldColumns(measurement).map(({ kind }) => TYPES[kind])];
    for (const [id, one] of measurement.series.entries()) {
      const { time, ...fields } = one.columns;
      const begin = [Array.from(time, () => id), Array.from(time, () => nameOf(one)), Array.from(time, BigInt)];
      await append(measurement.name, kinds, [...begin, ...Object.values(fields)]);
    }
  }
  return {
    ask: async ({ sql, times = [] }) => {
      const reader = await connection.runAndReadAll(sql.duckdb ?? sql);
      return rowsOf(reader.columnNames(), reader.getColumnsJS(), reader.currentRowCount, times);
    },
    close: () => connection.closeSync(),
  };
}

/** All engines over `data`, by name; `native` is left out if it is not installed. */
export async function enginesOver(data) {
  const engines = {};
  for (const [name, start] of Object.entries({ timepail, DuckDB: duckdb, SQLite: sqlite, "native DuckDB": native })) {
    const engine = await start(data);
    if (engine !== undefined) engines[name] = engine;
  }
  return engines;
}
