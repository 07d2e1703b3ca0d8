// What an export says of itself on standard error: a line that changes while it runs, and one at its end.

const EVERY_MS = 200;

export interface Progress {
  /** So many more rows were written. */
  rows(count: number): void;
  /** Ends the line that changes, and says what was written. */
  done(what: string): void;
  /** Ends the line that changes. */
  stop(): void;
}

const grouped = (count: number): string => count.toLocaleString("en-US");

/** The progress of an export; `isQuiet` says nothing. The line that changes is for terminals only. */
export function progressOf(isQuiet: boolean, unit = "rows"): Progress {
  const isTerminal = !isQuiet && process.stderr.isTTY === true;
  const start = performance.now();
  let total = 0;
  let shown = start;
  let isShown = false;
  const rate = (): number => Math.round(total / Math.max((performance.now() - start) / 1000, 1e-3));
  const stop = (): void => {
    if (isShown) process.stderr.write("\r\x1b[K");
    isShown = false;
  };
  return {
    rows(count) {
      total += count;
      const now = performance.now();
      if (!isTerminal || now - shown < EVERY_MS) return;
      shown = now;
      isShown = true;
      process.stderr.write(`\r\x1b[K${grouped(total)} ${unit}, ${grouped(rate())} a second`);
    },
    done(what) {
      stop();
      if (!isQuiet) process.stderr.write(`${grouped(total)} ${unit} ${what} in ${((performance.now() - start) / 1000).toFixed(1)} s, ${grouped(rate())} a second\n`);
    },
    stop,
  };
}
