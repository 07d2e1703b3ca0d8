// Files of Apache Parquet. This is a separate file of the package, which the command line loads on demand, because its libraries are larger than the rest.

import { openAsBlob } from "node:fs";
import { Binary, Decimal128, EJSON, Int32, ObjectId, UUID, type Document } from "bson";
import { Type, tableFromIPC } from "@uwdata/flechette";
import { parquetMetadataAsync, parquetReadObjects, parquetSchema, type AsyncBuffer, type SchemaElement, type SchemaTree } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { ByteWriter, parquetWrite } from "hyparquet-writer";
import { written as arrowOf } from "timepail/arrow";
import { setOwn } from "../../own.js";
import type { Cursor, InputFile } from "./model.js";

/** Rows that are compressed together. */
const GROUP_ROWS = 100_000;
/** The key under which a file lists the types that its texts stand for, by path. */
const MEANINGS = "timepail";

type Meaning = "objectId" | "decimal128" | "uuid" | "json";
type Field = ReturnType<typeof tableFromIPC>["schema"]["fields"][number];

/** The bytes of a file with the rows of a cursor. */
export async function written(cursor: Cursor): Promise<{ bytes: Uint8Array; rows: number }> {
  const { bytes, rows } = await arrowOf(cursor);
  const table = tableFromIPC(bytes, { useBigInt: true, useDate: true });
  const meanings: Record<string, string> = {};
  const columns = table.schema.fields.map((field, at) => ({ field, elements: elementsOf(field, field.name, meanings), data: valuesOf(field, table.getChildAt(at).toArray()) }));
  // A field that is always null has no type here.
  const typed = columns.filter(({ elements }) => elements.length > 0);
  const writer = new ByteWriter();
  parquetWrite({
    writer,
    schema: [{ name: "schema", num_children: typed.length }, ...typed.flatMap(({ elements }) => elements)],
    columnData: typed.map(({ field, data }) => ({ name: field.name, data })),
    rowGroupSize: GROUP_ROWS,
    kvMetadata: [{ key: MEANINGS, value: JSON.stringify(meanings) }],
    createdBy: "timepail",
  });
  return { bytes: new Uint8Array(writer.getBuffer()), rows };
}

/** The Parquet schema of a field and of the fields below it. Adds to `meanings` the types that texts stand for. */
function elementsOf({ name, type, metadata }: Field, path: string, meanings: Record<string, string>): SchemaElement[] {
  const of = "dictionary" in type ? (type.dictionary as typeof type) : type;
  const means = metadata?.get(MEANINGS);
  if (means) meanings[path] = means;
  const leaf = (element: Partial<SchemaElement>): SchemaElement[] => [{ name, repetition_type: "OPTIONAL", ...element }];
  switch (of.typeId) {
    case Type.Float:
      return leaf({ type: "DOUBLE" });
    case Type.Int:
      return leaf({ type: (of as { bitWidth: number }).bitWidth === 64 ? "INT64" : "INT32" });
    case Type.Bool:
      return leaf({ type: "BOOLEAN" });
    case Type.Timestamp:
      return leaf({ type: "INT64", converted_type: "TIMESTAMP_MILLIS", logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MILLIS" } });
    case Type.Utf8:
      return leaf({ type: "BYTE_ARRAY", converted_type: "UTF8" });
    case Type.Binary:
      return leaf({ type: "BYTE_ARRAY" });
    case Type.List: {
      const [item] = (of as unknown as { children: Field[] }).children;
      const inner = elementsOf({ ...item!, name: "element" }, `${path}[]`, meanings);
      if (inner.length === 0) inner.push({ name: "element", repetition_type: "OPTIONAL", type: "DOUBLE" });
      return [...leaf({ converted_type: "LIST", num_children: 1 }), { name: "list", repetition_type: "REPEATED", num_children: 1 }, ...inner];
    }
    case Type.Struct: {
      const inner = (of as unknown as { children: Field[] }).children.map((child) => elementsOf(child, `${path}.${child.name}`, meanings)).filter((elements) => elements.length > 0);
      return inner.length === 0 ? [] : [...leaf({ num_children: inner.length }), ...inner.flat()];
    }
  }
  return [];
}

function valuesOf({ type }: Field, values: any): any {
  const give = listed(type);
  return give ? Array.from(values as Iterable<unknown>, give) : values;
}

/** A function that converts lists in values to plain arrays, because the writer does not accept typed arrays; `undefined` if there are no lists. */
function listed(type: any): ((value: any) => any) | undefined {
  const unlessNull = (give: (value: any) => any) => (value: any) => (value === null || value === undefined ? value : give(value));
  if (type.typeId === Type.List) return unlessNull((list: Iterable<unknown>) => Array.from(list));
  if (type.typeId !== Type.Struct) return undefined;
  const children = (type.children as Field[]).map((child) => [child.name, listed(child.type)] as const);
  if (children.every(([, give]) => give === undefined)) return undefined;
  return unlessNull((object: Document) => {
    const copy: Document = {};
    for (const [name, give] of children) setOwn(copy, name, give ? give(object[name]) : object[name]);
    return copy;
  });
}

/** The rows of a file as documents, some at a time. A file on disk is read in parts as needed; any other input is held in memory. */
export async function* documentsOf(input: InputFile, rows: number): AsyncGenerator<Document[], void, void> {
  const file = await bufferOf(input);
  const metadata = await parquetMetadataAsync(file);
  const meanings = JSON.parse(metadata.key_value_metadata?.find(({ key }) => key === MEANINGS)?.value ?? "{}") as Record<string, Meaning>;
  const read = groupReader(parquetSchema(metadata), "", meanings);
  const count = Number(metadata.num_rows);
  for (let rowStart = 0; rowStart < count; rowStart += rows) {
    const found = await parquetReadObjects({ file, metadata, compressors, utf8: false, rowStart, rowEnd: Math.min(rowStart + rows, count) });
    yield found.map(read);
  }
}

async function bufferOf(input: InputFile): Promise<AsyncBuffer> {
  if (input.path !== undefined) {
    const blob = await openAsBlob(input.path);
    return { byteLength: blob.size, slice: (start, end) => blob.slice(start, end).arrayBuffer() };
  }
  const pieces: Uint8Array[] = [];
  for await (const piece of input.bytes()) pieces.push(piece);
  const { buffer } = new Uint8Array(Buffer.concat(pieces));
  return { byteLength: buffer.byteLength, slice: (start, end) => buffer.slice(start, end) };
}

function groupReader({ children }: SchemaTree, path: string, meanings: Record<string, Meaning>): (object: Document) => Document {
  const fields = children.map((child) => {
    const { name } = child.element;
    const inside = path === "" ? name : `${path}.${name}`;
    return [name, valueReader(child, inside, meanings)] as const;
  });
  return (object) => {
    const copy: Document = {};
    for (const [name, read] of fields) {
      const value = object[name];
      if (value !== null && value !== undefined) setOwn(copy, name, read(value));
    }
    return copy;
  };
}

function valueReader(node: SchemaTree, path: string, meanings: Record<string, Meaning>): (value: any) => unknown {
  const { type, converted_type: converted, logical_type: logical } = node.element;
  if (converted === "LIST" || logical?.type === "LIST") {
    const element = node.children[0]?.children[0];
    if (!element) throw new Error(`Column ${path} is a list without elements`);
    const read = valueReader(element, `${path}[]`, meanings);
    return (list: unknown[]) => list.map((value) => (value === null || value === undefined ? null : read(value)));
  }
  if (converted === "MAP" || logical?.type === "MAP" || logical?.type === "VARIANT") throw new Error(`Column ${path} has the Parquet type ${converted ?? logical?.type}, which no BSON type holds`);
  if (node.children.length > 0) return groupReader(node, path, meanings);
  switch (meanings[path]) {
    case "objectId":
      return (text: string) => new ObjectId(text);
    case "decimal128":
      return (text: string) => Decimal128.fromString(text);
    case "uuid":
      return (text: string) => new UUID(text);
    case "json":
      return (text: string) => (EJSON.parse(`{"value":${text}}`, { relaxed: false }) as Document)["value"];
  }
  const isInteger = type === "INT32" && converted !== "DECIMAL" && logical?.type !== "DECIMAL";
  return (value) => (value instanceof Uint8Array ? new Binary(value) : isInteger && typeof value === "number" ? integer(value) : value);
}

/** An unsigned integer may exceed the range of signed 32-bit integers. */
const integer = (value: number): Int32 | bigint => (value === (value | 0) ? new Int32(value) : BigInt(value));
