// Memory for messages, used again: a megabyte for each insert would keep the garbage collector busier than the engine.

/** Buffers that wait for their next use, and how large one may be to be kept. */
const KEPT_MAX = 4;
const KEPT_BYTES_MAX = 8_388_608;

const kept: Uint8Array[] = [];

/** Memory for one message after the other of a connection. */
export class Scratch {
  readonly #taken: Uint8Array[] = [];

  /** So many bytes, with anything in them, until `release`. */
  take(bytes: number): Uint8Array {
    // The smallest that is large enough.
    let best = -1;
    for (const [at, buffer] of kept.entries()) if (buffer.length >= bytes && (best < 0 || buffer.length < kept[best]!.length)) best = at;
    // With room for a message that is a little larger.
    const whole = best >= 0 ? kept.splice(best, 1)[0]! : new Uint8Array(Math.max(65_536, bytes + (bytes >> 3)));
    this.#taken.push(whole);
    return whole.subarray(0, bytes);
  }

  /** Ends the use of all that was taken. */
  release(): void {
    for (const buffer of this.#taken) {
      if (buffer.length > KEPT_BYTES_MAX) continue;
      if (kept.length === KEPT_MAX) kept.shift();
      kept.push(buffer);
    }
    this.#taken.length = 0;
  }
}
