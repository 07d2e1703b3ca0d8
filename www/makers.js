// Creates values of BSON with the names of the shell.

import { Decimal128, Double, Int32, Long, ObjectId } from "bson";

const toDate = (...parts) => {
  const date = new Date(...parts);
  if (Number.isNaN(date.getTime())) throw new Error(`there is no date ${parts.map((part) => JSON.stringify(part)).join(", ")}`);
  return date;
};

/** The functions that you can call, with or without `new`. */
export const MAKERS = {
  Date: toDate,
  ISODate: toDate,
  ObjectId: (text) => new ObjectId(text),
  Int32: (value) => new Int32(Number(value)),
  NumberInt: (value) => new Int32(Number(value)),
  Long: (value) => Long.fromString(String(value)),
  NumberLong: (value) => Long.fromString(String(value)),
  Double: (value) => new Double(Number(value)),
  Decimal128: (value) => Decimal128.fromString(String(value)),
  NumberDecimal: (value) => Decimal128.fromString(String(value)),
};
