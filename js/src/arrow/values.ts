// Converts values of mixed or nested types to Arrow columns: finds the Arrow type that holds all of them.

import { Binary, EJSON, type Decimal128, type Double, type Int32, type Long, type ObjectId } from "bson";
import { Column as ArrowColumn, TimeUnit, batchType, binary, bool, columnFromArray, dictionary, field, float64, int32, int64, list, nullType, struct, timestamp, utf8 } from "@uwdata/flechette";
import type { DataType, Field } from "@uwdata/flechette";
import { bsonType, isDate, isPlain } from "../bson.js";

/** A column with its field in the schema. */
export interface MadeColumn {
  field: Field;
  column: ArrowColumn<any>;
}

/** The key in the metadata of a field that names the type which a text column stands for. */
export const MEANS = "timepail";

/** The types that text columns can stand for. */
export type Meaning = "objectId" | "decimal128" | "uuid" | "json";

/** Objects nested deeper than this are written as JSON. */
const DEPTH_MAX = 32;

/** The Arrow type of some values, and the conversion of a value for the builder of that type. */
interface Shape {
  type: DataType;
  means?: Meaning;
  give: (value: any) => unknown;
}

type Kind = "double" | "int32" | "int64" | "bool" | "string" | "date" | "objectId" | "decimal128" | "uuid" | "binary" | "object" | "array" | "other";

/** A column of these values; `undefined` and `null` are null. */
export function arrowOfValues(name: string, values: readonly unknown[]): MadeColumn {
  const shape = shapeOf(values, 0);
  const given = values.map((value) => (isNull(value) ? null : shape.give(value)));
  return { field: fieldOf(name, shape), column: columnFromArray(given, shape.type) };
}

/** A column of one batch. */
export function newColumn(type: DataType, rows: number, validity: Uint8Array | undefined, buffers: Record<string, unknown>): ArrowColumn<any> {
  let nullCount = validity ? rows : 0;
  for (const byte of validity ?? []) for (let bits = byte; bits; bits &= bits - 1) nullCount--;
  const Batch = batchType(type, {}) as unknown as new (options: object) => any;
  return new ArrowColumn([new Batch({ length: rows, nullCount, type, validity: validity ?? new Uint8Array(0), ...buffers })], type);
}

function fieldOf(name: string, { type, means }: Shape): Field {
  return field(name, type, true, (means ? new Map([[MEANS, means]]) : null) as never);
}

const isNull = (value: unknown): boolean => value === undefined || value === null;

function kindOf(value: unknown): Kind {
  switch (typeof value) {
    case "number":
      return "double";
    case "bigint":
      return "int64";
    case "boolean":
      return "bool";
    case "string":
      return "string";
  }
  if (Array.isArray(value)) return "array";
  switch (bsonType(value as object)) {
    case "Double":
      return "double";
    case "Int32":
      return "int32";
    case "Long":
      return "int64";
    case "ObjectId":
      return "objectId";
    case "Decimal128":
      return "decimal128";
    case "Binary": {
      const { sub_type: type, position } = value as Binary;
      return type === Binary.SUBTYPE_UUID && position === 16 ? "uuid" : type === Binary.SUBTYPE_DEFAULT ? "binary" : "other";
    }
    case undefined:
      return isDate(value as object) ? "date" : isPlain(value as object) ? "object" : "other";
    default:
      return "other";
  }
}

const numberOf = (value: unknown): number => (typeof value === "object" ? Number((value as Double | Int32 | Long).toString()) : Number(value));
const bigintOf = (value: unknown): bigint => (typeof value === "bigint" ? value : BigInt((value as Long | Int32).toString()));
const isExact = (value: unknown): boolean => kindOf(value) !== "int64" || BigInt(numberOf(value)) === bigintOf(value);

/** Converts equal objects once. */
function once(give: (value: any) => unknown): (value: any) => unknown {
  const known = new Map<unknown, unknown>();
  return (value) => {
    if (!known.has(value)) known.set(value, give(value));
    return known.get(value);
  };
}

const text = (means: Meaning | undefined, give: (value: any) => unknown): Shape => ({ type: dictionary(utf8(), int32()), ...(means && { means }), give });
const json = (): Shape => text("json", once((value) => EJSON.stringify(withTypes(value), { relaxed: true })));

/** The value with whole doubles as `$numberDouble`, because a reader takes a number without a decimal point for an integer. */
function withTypes(value: any): unknown {
  if (isNull(value)) return value;
  switch (kindOf(value)) {
    case "double": {
      const number = typeof value === "number" ? value : (value as Double).value;
      return Number.isInteger(number) ? { $numberDouble: Object.is(number, -0) ? "-0.0" : number.toFixed(1) } : value;
    }
    case "array":
      return (value as unknown[]).map(withTypes);
    case "object":
      return Object.fromEntries(Object.entries(value as object).map(([key, inner]) => [key, withTypes(inner)]));
    default:
      return value;
  }
}

function shapeOf(values: readonly unknown[], depth: number): Shape {
  // Many rows share the few metadata objects of their series.
  const distinct = [...new Set(values)].filter((value) => !isNull(value));
  const kinds = new Set(distinct.map(kindOf));
  // The library cannot build nulls without a type inside structs and lists.
  if (kinds.size === 0) return { type: depth === 0 ? nullType() : bool(), give: () => null };
  if (kinds.size > 1) {
    const isOf = (...wanted: Kind[]): boolean => [...kinds].every((kind) => wanted.includes(kind));
    if (isOf("int32", "int64")) return { type: int64(), give: bigintOf };
    if (isOf("double", "int32", "int64") && distinct.every(isExact)) return { type: float64(), give: numberOf };
    return json();
  }
  const [kind] = kinds;
  switch (kind!) {
    case "double":
      return { type: float64(), give: numberOf };
    case "int32":
      return { type: int32(), give: numberOf };
    case "int64":
      return { type: int64(), give: bigintOf };
    case "bool":
      return { type: bool(), give: (value) => value };
    case "string":
      return text(undefined, (value: string) => value);
    case "date":
      return { type: timestamp(TimeUnit.MILLISECOND, "UTC"), give: (value: Date) => value.getTime() };
    case "objectId":
      return text("objectId", (value: ObjectId) => value.toHexString());
    case "decimal128":
      return text("decimal128", (value: Decimal128) => value.toString());
    case "uuid":
      return text("uuid", (value: Binary) => value.toUUID().toString());
    case "binary":
      return { type: binary(), give: (value: Binary) => value.value() };
    case "object":
      return (depth < DEPTH_MAX && structOf(distinct as Record<string, unknown>[], depth)) || json();
    case "array":
      return (depth < DEPTH_MAX && listOf(distinct as unknown[][], depth)) || json();
    default:
      return json();
  }
}

/** `undefined` if no object has a field, because readers of Arrow do not agree on empty structs. */
function structOf(objects: readonly Record<string, unknown>[], depth: number): Shape | undefined {
  const names = [...new Set(objects.flatMap((object) => Object.keys(object)))];
  if (names.length === 0) return undefined;
  const children = names.map((name) => [name, shapeOf(objects.map((object) => object[name]), depth + 1)] as const);
  const give = (object: Record<string, unknown>): unknown =>
    Object.fromEntries(children.map(([name, shape]) => [name, isNull(object[name]) ? null : shape.give(object[name])]));
  return { type: struct(children.map(([name, shape]) => fieldOf(name, shape))), give: once(give) };
}

/** `undefined` if the elements have different types, or are objects or arrays. */
function listOf(arrays: readonly unknown[][], depth: number): Shape | undefined {
  const elements = arrays.flat();
  if (elements.some((element) => !isNull(element) && ["object", "array", "other"].includes(kindOf(element)))) return undefined;
  const shape = shapeOf(elements, depth + 1);
  if (shape.means === "json") return undefined;
  // Most readers do not support a dictionary within a list.
  const type = shape.type.typeId === dictionary(utf8()).typeId ? utf8() : shape.type;
  return { type: list(fieldOf("item", { ...shape, type })), give: once((array: unknown[]) => array.map((element) => (isNull(element) ? null : shape.give(element)))) };
}
