// Reads a file of measurements as records: first its beginning, to inspect it, then the whole file piece by piece.

import { DelimitedReader, delimiterOf } from "./delimited.js";
import { guess } from "./guess.js";
import { LinesReader } from "./ndjson.js";
import { breathe } from "./progress.js";

const SAMPLE_BYTES = 200_000;
const PIECE_BYTES = 256_000;
const SAMPLE_RECORDS = 500;

/** Describes a file from its beginning: `{ kind, names, records, problems, types, timeField, metaField, timeseries }`. */
export async function inspect(file) {
  const isWhole = file.size <= SAMPLE_BYTES;
  const text = new TextDecoder().decode(await file.slice(0, SAMPLE_BYTES).arrayBuffer());
  const first = text.trimStart()[0];
  if (first === undefined) throw new Error(`${file.name} is empty.`);
  if (first === "[") throw new Error(`${file.name} is one JSON array; write one document a line (NDJSON), so that it can be read in pieces.`);
  if (text.includes("\0")) throw new Error(`${file.name} is not text.`);
  const source = first === "{" ? { kind: "NDJSON", names: [] } : { kind: "CSV", delimiter: delimiterOf(text.split("\n")[0]) };
  const reader = readerOf(source);
  const all = reader.push(text);
  if (isWhole) all.push(...reader.end());
  if (source.kind === "CSV") source.names = namesOf(all.find(({ cells }) => cells)?.cells ?? []);
  const body = source.kind === "CSV" ? all.slice(1) : all;
  source.records = body.filter(({ cells }) => cells && fits(source, cells)).slice(0, SAMPLE_RECORDS);
  if (source.records.length === 0) throw new Error(`${file.name} has no records${body[0]?.problem ? `; line ${body[0].line}: ${body[0].problem}` : ""}.`);
  return Object.assign(source, guess(source.names, source.records));
}

const readerOf = ({ kind, names, delimiter }) => (kind === "NDJSON" ? new LinesReader(names) : new DelimitedReader(delimiter));

const fits = ({ kind, names }, cells) => kind === "NDJSON" || cells.length === names.length;

/** The records of the whole file, in pieces: `{ records, problems, bytes }`. The page can draw between two pieces. */
export async function* readAll(file, source, signal) {
  const reader = readerOf(source);
  const decoder = new TextDecoder();
  let bytes = 0;
  let isFirst = source.kind === "CSV";
  const sorted = (all) => {
    if (isFirst && all.length > 0) {
      all.shift(); // The names.
      isFirst = false;
    }
    const problems = all.filter(({ problem }) => problem);
    const records = all.filter(({ cells }) => cells && fits(source, cells));
    for (const { line, cells } of all) {
      if (cells && !fits(source, cells)) problems.push({ line, problem: `has ${cells.length} cells instead of ${source.names.length}` });
    }
    return { records, problems, bytes };
  };
  const stream = file.stream().getReader();
  try {
    for (;;) {
      const { done, value } = await stream.read();
      if (done || signal.aborted) break;
      for (let at = 0; at < value.byteLength && !signal.aborted; at += PIECE_BYTES) {
        const piece = value.subarray(at, at + PIECE_BYTES);
        bytes += piece.byteLength;
        yield sorted(reader.push(decoder.decode(piece, { stream: true })));
        await breathe();
      }
    }
    if (!signal.aborted) yield sorted([...reader.push(decoder.decode()), ...reader.end()]);
  } finally {
    await stream.cancel();
  }
}

/** Valid field names: not empty, distinct, without dots and without a leading dollar sign. */
function namesOf(cells) {
  const names = [];
  for (const [place, cell] of cells.entries()) {
    const base = cell.trim().replaceAll(".", "_").replace(/^\$+/, "") || `column ${place + 1}`;
    let name = base;
    for (let n = 2; names.includes(name); n++) name = `${base} ${n}`;
    names.push(name);
  }
  return names;
}
