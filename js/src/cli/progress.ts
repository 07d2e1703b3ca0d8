// The progress of an import or an export, on standard error.

import process from "node:process";

const REDRAW_MS = 100;

/** What is counted. */
export type Noun = "row" | "bucket";

/** Shows progress on a terminal as one line that is updated in place. With `isLines`, it writes a line for each call instead. */
export class Progress {
  readonly #noun: Noun;
  readonly #isQuiet: boolean;
  readonly #isTerminal: boolean;
  readonly #isLines: boolean;
  readonly #start = performance.now();
  #drawn = 0;
  #isShown = false;

  constructor({ noun, isQuiet, isLines = false }: { noun: Noun; isQuiet: boolean; isLines?: boolean }) {
    this.#noun = noun;
    this.#isQuiet = isQuiet;
    this.#isLines = isLines && !isQuiet;
    this.#isTerminal = !isQuiet && !isLines && process.stderr.isTTY === true;
  }

  /** @param share - of the input, from 0 to 1, where it is known */
  update(rows: number, share?: number): void {
    const now = performance.now();
    if (this.#isLines) return void process.stderr.write(`${this.#text(rows, share, now)}\n`);
    if (!this.#isTerminal || (this.#isShown && now - this.#drawn < REDRAW_MS)) return;
    this.#drawn = now;
    this.#isShown = true;
    process.stderr.write(`\r\x1b[K${this.#text(rows, share, now)}`);
  }

  /** Removes the line, so that another text can take its place. */
  clear(): void {
    if (this.#isShown) process.stderr.write("\r\x1b[K");
    this.#isShown = false;
  }

  /** Replaces the line by what has been done, such as `stored in c`. `others` are printed even with `isQuiet`. */
  end(rows: number, what: string, others: readonly (string | false)[] = [], isWhole = true): void {
    this.clear();
    const said = others.filter((other) => other !== false);
    if (this.#isQuiet && isWhole && said.length === 0) return;
    const now = performance.now();
    const parts = [`${isWhole ? "" : "Stopped: "}${count(rows, this.#noun)} ${what} in ${duration((now - this.#start) / 1000)}`];
    if (rows > 0 && isWhole) parts.push(this.#rate(rows, now));
    process.stderr.write(`${[...parts, ...said].join(", ")}\n`);
  }

  #rate(rows: number, now: number): string {
    return `${Math.round(rows / Math.max((now - this.#start) / 1000, 0.001)).toLocaleString("en-US")}/s`;
  }

  #text(rows: number, share: number | undefined, now: number): string {
    const seconds = (now - this.#start) / 1000;
    const parts = [count(rows, this.#noun), this.#rate(rows, now)];
    if (share !== undefined) {
      parts.push(`${Math.floor(share * 100)} %`);
      if (share > 0.01 && share < 1) parts.push(`${duration((seconds / share) * (1 - share))} left`);
    }
    return parts.join(", ");
  }
}

/** `1 row`, `12,000 rows`. */
export const count = (number: number, noun: string): string => `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;

/** A readable duration. */
function duration(seconds: number): string {
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
