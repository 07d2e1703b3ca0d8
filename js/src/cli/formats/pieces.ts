// Collects lines of text into pieces of bytes that are each large enough for a write.

const PIECE_CHARS = 65_536;

/** Collects text, and returns it as bytes when there is enough of it. */
export class Pieces {
  #text = "";
  #rows = 0;
  readonly #onRows: (rows: number) => void;
  readonly #encoder = new TextEncoder();

  constructor(onRows: (rows: number) => void) {
    this.#onRows = onRows;
  }

  /** Adds text that ends `rows` rows. True if it is time to `take`. */
  add(text: string, rows: number): boolean {
    this.#text += text;
    this.#rows += rows;
    return this.#text.length >= PIECE_CHARS;
  }

  take(): Uint8Array {
    const bytes = this.#encoder.encode(this.#text);
    this.#onRows(this.#rows);
    this.#text = "";
    this.#rows = 0;
    return bytes;
  }
}
