// Reusable memory for messages. A new megabyte for each insert would keep the garbage collector busier than the engine.

/** Maximum number of buffers that are kept for reuse, and maximum size of a kept buffer. */
const KEPT_MAX = 4;
const KEPT_BYTES_MAX = 8_388_608;

const kept: Uint8Array[] = [];

/** Memory for the successive messages of a connection. */
export class Scratch {
  readonly #taken: Uint8Array[] = [];

  /** Returns this many bytes with arbitrary content, for use until `release`. */
  take(bytes: number): Uint8Array {
    // Take the smallest buffer that is large enough.
    let best = -1;
    for (const [at, buffer] of kept.entries()) if (buffer.length >= bytes && (best < 0 || buffer.length < kept[best]!.length)) best = at;
    // Leave room for a message that is a little larger.
    const whole = best >= 0 ? kept.splice(best, 1)[0]! : new Uint8Array(Math.max(65_536, bytes + (bytes >> 3)));
    this.#taken.push(whole);
    return whole.subarray(0, bytes);
  }

  /** Releases all memory that was taken. */
  release(): void {
    for (const buffer of this.#taken) {
      if (buffer.length > KEPT_BYTES_MAX) continue;
      if (kept.length === KEPT_MAX) kept.shift();
      kept.push(buffer);
    }
    this.#taken.length = 0;
  }
}
