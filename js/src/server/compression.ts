// OP_COMPRESSED: a message inside a message.

import { deflateSync, inflateSync } from "node:zlib";
import { ProtocolError } from "./errors.js";
import { HEADER_BYTES } from "./frames.js";
import { OP_COMPRESSED } from "./messages.js";
import { viewOf } from "./raw.js";

const NOOP = 0;
const ZLIB = 2;
/** The inner opcode, the inner length and the compressor. */
const PREFIX_BYTES = 9;

/** The compressors that a server offers in its hello. */
export const COMPRESSORS = ["zlib"];

/** Decompresses a message, and returns it with its compressor. Returns other messages unchanged. */
export function decompressed(message: Uint8Array, most: number): { message: Uint8Array; compressor?: number } {
  const view = viewOf(message);
  if (view.getInt32(12, true) !== OP_COMPRESSED) return { message };
  const start = HEADER_BYTES + PREFIX_BYTES;
  if (message.length < start) throw new ProtocolError("A compressed message is too short");
  const opcode = view.getInt32(16, true);
  const length = view.getInt32(20, true);
  const compressor = message[24]!;
  if (opcode === OP_COMPRESSED) throw new ProtocolError("A compressed message is compressed again");
  if (length < 0 || length > most - HEADER_BYTES) throw new ProtocolError(`A message announces ${length} bytes; the maximum is ${most - HEADER_BYTES}`);
  const body = inflate(compressor, message.subarray(start), length);
  if (body.length !== length) throw new ProtocolError("The length of a compressed message does not match its header");
  const whole = new Uint8Array(HEADER_BYTES + length);
  whole.set(message.subarray(0, HEADER_BYTES));
  whole.set(body, HEADER_BYTES);
  const head = viewOf(whole);
  head.setInt32(0, whole.length, true);
  head.setInt32(12, opcode, true);
  return { message: whole, compressor };
}

function inflate(compressor: number, bytes: Uint8Array, length: number): Uint8Array {
  if (compressor === NOOP) return bytes;
  if (compressor !== ZLIB) throw new ProtocolError(`Unknown compressor ${compressor}`);
  try {
    return inflateSync(bytes, { maxOutputLength: Math.max(1, length) });
  } catch {
    throw new ProtocolError("A compressed message cannot be read");
  }
}

/** Compresses the parts of a message into one message. */
export function compressed(parts: Uint8Array[], compressor: number): Uint8Array[] {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  const body = compressor === ZLIB ? deflateSync(whole.subarray(HEADER_BYTES)) : whole.subarray(HEADER_BYTES);
  const head = new Uint8Array(HEADER_BYTES + PREFIX_BYTES);
  head.set(whole.subarray(0, HEADER_BYTES));
  const view = viewOf(head);
  view.setInt32(16, viewOf(whole).getInt32(12, true), true);
  view.setInt32(20, whole.length - HEADER_BYTES, true);
  view.setInt32(12, OP_COMPRESSED, true);
  view.setInt32(0, head.length + body.length, true);
  head[24] = compressor;
  return [head, body];
}
