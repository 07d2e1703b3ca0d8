// A stream of bytes into messages. Nothing is allocated because of a length that a client has only announced.

import { ProtocolError } from "./errors.js";
import type { Scratch } from "./scratch.js";

/** Bytes of the header of every message: its length, its id, the id that it answers, its opcode. */
export const HEADER_BYTES = 16;

/** The messages of one connection. */
export class Frames {
  readonly #scratch: Scratch;
  #chunks: Uint8Array[] = [];
  #held = 0;
  /** Length of the message that is being received; 0 as long as it is not known. */
  #wanted = 0;

  /** A message that comes in pieces is put together in `scratch`. */
  constructor(scratch: Scratch) {
    this.#scratch = scratch;
  }

  /** Bytes that wait for the rest of their message. */
  get held(): number {
    return this.#held;
  }

  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#chunks.push(chunk);
    this.#held += chunk.length;
  }

  /**
   * The next message, if all of it has come; a view of what was pushed where that is possible. It is good until the scratch is released.
   *
   * @param most - bytes that a message may have
   * @throws ProtocolError if it announces more, or less than its header has
   */
  next(most: number): Uint8Array | undefined {
    if (this.#wanted === 0) {
      if (this.#held < HEADER_BYTES) return undefined;
      const length = this.#announced();
      if (length < HEADER_BYTES) throw new ProtocolError(`A message announces an invalid length of ${length} bytes`);
      if (length > most) throw new ProtocolError(`A message announces ${length} bytes; the maximum is ${most}`);
      this.#wanted = length;
    }
    if (this.#held < this.#wanted) return undefined;
    const message = this.#taken(this.#wanted);
    this.#wanted = 0;
    return message;
  }

  /** The length that the header says, which may lie in several chunks. */
  #announced(): number {
    let length = 0;
    let at = 0;
    for (const chunk of this.#chunks) {
      for (let i = 0; i < chunk.length && at < 4; i++, at++) length |= chunk[i]! << (8 * at);
      if (at === 4) break;
    }
    return length;
  }

  /** So many bytes from the front. */
  #taken(bytes: number): Uint8Array {
    const first = this.#chunks[0]!;
    this.#held -= bytes;
    if (first.length === bytes) return this.#chunks.shift()!;
    if (first.length > bytes) {
      this.#chunks[0] = first.subarray(bytes);
      return first.subarray(0, bytes);
    }
    const whole = this.#scratch.take(bytes);
    let at = 0;
    let used = 0;
    for (const chunk of this.#chunks) {
      const rest = bytes - at;
      if (chunk.length > rest) {
        whole.set(chunk.subarray(0, rest), at);
        this.#chunks[used] = chunk.subarray(rest);
        break;
      }
      whole.set(chunk, at);
      at += chunk.length;
      used++;
      if (at === bytes) break;
    }
    this.#chunks.splice(0, used);
    return whole;
  }
}
