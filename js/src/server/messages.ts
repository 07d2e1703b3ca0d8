// Messages of MongoDB's wire protocol: OP_MSG, and OP_QUERY for the first command of old drivers.

import { crc32c } from "./crc32c.js";
import { ProtocolError } from "./errors.js";
import { HEADER_BYTES } from "./frames.js";
import { documentLength, nameEnd, rawFields, viewOf } from "./raw.js";
import type { Scratch } from "./scratch.js";

export const OP_REPLY = 1;
export const OP_QUERY = 2004;
export const OP_COMPRESSED = 2012;
export const OP_MSG = 2013;

/** Flags of OP_MSG. A receiver must know each flag that is set in the lower 16 bits. */
const CHECKSUM_PRESENT = 1;
const MORE_TO_COME = 2;
const REQUIRED = 0xffff;
/** The number of bytes before the first section of an OP_MSG. */
const FLAGS_END = HEADER_BYTES + 4;
const CHECKSUM_BYTES = 4;

const decoder = new TextDecoder();

/** A command as a client has sent it. */
export interface Request {
  id: number;
  /** The command: one document, with the document sequences of the message as arrays. */
  command: Uint8Array;
  kind: typeof OP_MSG | typeof OP_QUERY;
  /** True if the client wants no reply. */
  isSilent: boolean;
  hasChecksum: boolean;
  /** Size of its largest document in bytes: the command itself, or one of a document sequence. */
  documentBytes: number;
}

/** Reads a message that is not compressed. The command is a view of it, or lies in `scratch`. */
export function readMessage(message: Uint8Array, scratch: Scratch): Request {
  const view = viewOf(message);
  const id = view.getInt32(4, true);
  switch (view.getInt32(12, true)) {
    case OP_MSG:
      return readMsg(message, view, id, scratch);
    case OP_QUERY:
      return readQuery(message, view, id);
    default:
      throw new ProtocolError(`Unknown opcode ${view.getInt32(12, true)}`);
  }
}

/** A document sequence, which becomes an array of the command. */
interface Sequence {
  name: Uint8Array;
  start: number;
  end: number;
  count: number;
}

function readMsg(message: Uint8Array, view: DataView, id: number, scratch: Scratch): Request {
  if (message.length < FLAGS_END + 6) throw new ProtocolError("A message is too short");
  const flags = view.getUint32(HEADER_BYTES, true);
  if ((flags & REQUIRED & ~(CHECKSUM_PRESENT | MORE_TO_COME)) !== 0) throw new ProtocolError(`A message has unknown flags: ${flags}`);
  const hasChecksum = (flags & CHECKSUM_PRESENT) !== 0;
  const end = message.length - (hasChecksum ? CHECKSUM_BYTES : 0);
  if (hasChecksum && view.getUint32(end, true) !== crc32c(message.subarray(0, end))) throw new ProtocolError("The checksum of a message is wrong");
  let body: Uint8Array | undefined;
  const sequences: Sequence[] = [];
  let documentBytes = 0;
  for (let at = FLAGS_END; at < end; ) {
    const kind = message[at++]!;
    if (kind === 0) {
      if (body) throw new ProtocolError("A message has two commands");
      const length = documentLength(message, view, at, end);
      body = message.subarray(at, at + length);
      documentBytes = Math.max(documentBytes, length);
      at += length;
    } else if (kind === 1) {
      const length = end - at >= 5 ? view.getInt32(at, true) : 0;
      if (length < 5 || length > end - at) throw new ProtocolError("A document sequence has an invalid length");
      const last = at + length;
      const zero = nameEnd(message, at + 4, last);
      const sequence: Sequence = { name: message.subarray(at + 4, zero), start: zero + 1, end: last, count: 0 };
      for (at = sequence.start; at < last; sequence.count++) {
        const bytes = documentLength(message, view, at, last);
        documentBytes = Math.max(documentBytes, bytes);
        at += bytes;
      }
      sequences.push(sequence);
    } else {
      throw new ProtocolError(`Unknown section kind ${kind}`);
    }
  }
  if (!body) throw new ProtocolError("A message has no command");
  const command = sequences.length > 0 ? joined(message, view, body, sequences, scratch) : body;
  return { id, command, kind: OP_MSG, isSilent: (flags & MORE_TO_COME) !== 0, hasChecksum, documentBytes };
}

/** A command with its document sequences as arrays at the end. */
function joined(message: Uint8Array, view: DataView, body: Uint8Array, sequences: Sequence[], scratch: Scratch): Uint8Array {
  const names = new Set<string>();
  for (const { name } of rawFields(body)) names.add(name);
  let size = body.length;
  for (const { name, start, end, count } of sequences) {
    const text = decoder.decode(name);
    if (names.has(text)) throw new ProtocolError(`A message has the field ${JSON.stringify(text)} twice`);
    names.add(text);
    // Type, name, zero; length, elements, zero.
    size += name.length + 7 + (end - start) + namesLength(count);
  }
  const command = scratch.take(size);
  const writer = viewOf(command);
  command.set(body.subarray(0, -1));
  let to = body.length - 1;
  for (const { name, start, end } of sequences) {
    command[to++] = 4;
    command.set(name, to);
    to += name.length;
    command[to++] = 0;
    const array = to;
    to += 4;
    for (let at = start, index = 0; at < end; index++) {
      command[to++] = 3;
      to = writeIndex(command, to, index);
      command[to++] = 0;
      const length = view.getInt32(at, true);
      command.set(message.subarray(at, at + length), to);
      at += length;
      to += length;
    }
    command[to++] = 0;
    writer.setInt32(array, to - array, true);
  }
  command[to] = 0;
  writer.setInt32(0, size, true);
  return command;
}

/** Bytes of the types, names and zeros of the first `count` elements of an array. */
function namesLength(count: number): number {
  let bytes = count * 2;
  for (let digits = 1, from = 0; from < count; digits++) {
    const until = Math.min(count, 10 ** digits);
    bytes += (until - from) * digits;
    from = until;
  }
  return bytes;
}

/** Writes the digits of a number, and returns the position after them. */
function writeIndex(bytes: Uint8Array, at: number, index: number): number {
  let digits = 1;
  for (let rest = index; rest >= 10; rest = Math.trunc(rest / 10)) digits++;
  for (let place = at + digits - 1, rest = index; place >= at; place--) {
    bytes[place] = 48 + (rest % 10);
    rest = Math.trunc(rest / 10);
  }
  return at + digits;
}

function readQuery(message: Uint8Array, view: DataView, id: number): Request {
  // Layout: flags, name of the collection, number to skip, number to return.
  const zero = nameEnd(message, FLAGS_END, message.length);
  const at = zero + 9;
  if (!decoder.decode(message.subarray(FLAGS_END, zero)).endsWith(".$cmd")) throw new ProtocolError("OP_QUERY is supported for commands only");
  const length = documentLength(message, view, at, message.length);
  return { id, command: message.subarray(at, at + length), kind: OP_QUERY, isSilent: false, hasChecksum: false, documentBytes: length };
}

let lastId = 0;

function header(length: number, responseTo: number, opcode: number, more: number): [Uint8Array, DataView] {
  const bytes = new Uint8Array(HEADER_BYTES + more);
  const view = viewOf(bytes);
  view.setInt32(0, length, true);
  view.setInt32(4, (lastId = (lastId + 1) | 0), true);
  view.setInt32(8, responseTo, true);
  view.setInt32(12, opcode, true);
  return [bytes, view];
}

/** The message with this reply, in parts. */
export function writeReply({ id, kind, hasChecksum }: Pick<Request, "id" | "kind" | "hasChecksum">, reply: Uint8Array): Uint8Array[] {
  if (kind === OP_QUERY) {
    const [head, view] = header(HEADER_BYTES + 20 + reply.length, id, OP_REPLY, 20);
    // The flag AwaitCapable, then the cursor, its starting position, and the number of documents.
    view.setInt32(16, 8, true);
    view.setInt32(32, 1, true);
    return [head, reply];
  }
  const end = FLAGS_END + 1 + reply.length;
  const [head, view] = header(end + (hasChecksum ? CHECKSUM_BYTES : 0), id, OP_MSG, 5);
  if (!hasChecksum) return [head, reply];
  view.setInt32(HEADER_BYTES, CHECKSUM_PRESENT, true);
  const checksum = new Uint8Array(CHECKSUM_BYTES);
  viewOf(checksum).setUint32(0, crc32c(reply, crc32c(head)), true);
  return [head, reply, checksum];
}
