// Splits a stream of bytes into messages. A length that a client merely announces causes no allocation.

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

  /** A message that comes in pieces is assembled in `scratch`. */
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
   * The next message, if it is complete. It is a view of the pushed bytes if possible, and is valid until the scratch is released.
   *
   * @param most - maximum size of a message in bytes
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

  /** The length from the header, which may span several chunks. */
  #announced(): number {
    let length = 0;
    let at = 0;
    for (const chunk of this.#chunks) {
      for (let i = 0; i < chunk.length && at < 4; i++, at++) length |= chunk[i]! << (8 * at);
      if (at === 4) break;
    }
    return length;
  }

  /** Removes this many bytes from the front. */
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
