// The files that `import` reads: by their paths or from the standard input, compressed with gzip or not.

import { createReadStream, statSync } from "node:fs";
import { basename } from "node:path";
import process from "node:process";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { InputFile } from "./formats/model.js";

const PIECE_BYTES = 256 * 1024;
/** Bytes at the beginning by which a format is recognised. */
const BEGINNING_BYTES = 16;

/** Opens a file, or the standard input for `-`. @throws Error for a file that cannot be read */
export async function openInput(path: string): Promise<InputFile> {
  const isStandard = path === "-";
  const stream: Readable = isStandard ? process.stdin : createReadStream(path, { highWaterMark: PIECE_BYTES });
  let bytesRead = 0;
  const raw = counted(stream, (length) => (bytesRead += length));
  const beginning = await beginningOf(raw);
  const isCompressed = beginning[0] === 0x1f && beginning[1] === 0x8b;
  let source = raw;
  let gunzip: Readable | undefined;
  if (isCompressed) {
    gunzip = Readable.from(raw).pipe(createGunzip({ chunkSize: PIECE_BYTES }));
    stream.once("error", (error) => gunzip!.destroy(error));
    source = new Peeked(decompressed(gunzip, path));
  }
  return {
    name: isStandard ? "standard input" : basename(path),
    path: isStandard || isCompressed ? undefined : path,
    size: isStandard ? undefined : statSync(path).size,
    beginning: isCompressed ? await beginningOf(source) : beginning,
    bytes: () => source,
    bytesRead: () => bytesRead,
    close() {
      gunzip?.destroy();
      stream.destroy();
    },
  };
}

/** Pieces of a stream. You can look at the first ones before you read them. */
class Peeked implements AsyncIterable<Uint8Array> {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #ahead: Uint8Array[] = [];

  constructor(source: AsyncIterator<Uint8Array>) {
    this.#source = source;
  }

  /** Reads one more piece ahead and returns it; iteration still yields it. `undefined` at the end. */
  async look(): Promise<Uint8Array | undefined> {
    const { value, done } = await this.#source.next();
    if (done) return undefined;
    this.#ahead.push(value);
    return value;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return {
      next: async () => (this.#ahead.length > 0 ? { value: this.#ahead.shift()!, done: false } : this.#source.next()),
      return: async () => this.#source.return?.() ?? { value: undefined, done: true },
    };
  }
}

function counted(stream: Readable, count: (length: number) => void): Peeked {
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for await (const piece of stream) {
      count(piece.length);
      yield piece;
    }
  }
  return new Peeked(pieces());
}

/** @throws Error that names the file, because zlib does not know it */
async function* decompressed(gunzip: Readable, path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* gunzip;
  } catch (cause) {
    throw new Error(`${path === "-" ? "standard input" : basename(path)} cannot be decompressed: ${(cause as Error).message}`, { cause });
  }
}

async function beginningOf(source: Peeked): Promise<Uint8Array> {
  let found = new Uint8Array();
  while (found.length < BEGINNING_BYTES) {
    const piece = await source.look();
    if (!piece) break;
    const longer = new Uint8Array(found.length + piece.length);
    longer.set(found);
    longer.set(piece, found.length);
    found = longer;
  }
  return found.subarray(0, BEGINNING_BYTES);
}
