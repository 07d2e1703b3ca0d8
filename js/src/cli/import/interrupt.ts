// Ctrl-C and SIGTERM: the work stops at the next safe point, and at once at the second signal.

import process from "node:process";

const CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/** Listens from `new` to `dispose`. */
export class Interrupt {
  /** The exit code of a process that was asked to stop; `undefined` before that. */
  code: number | undefined;
  readonly #asked: Promise<"stop">;
  readonly #dispose: () => void;

  constructor() {
    let ask: (value: "stop") => void;
    this.#asked = new Promise((resolve) => (ask = resolve));
    const listeners = Object.entries(CODES).map(([signal, code]) => {
      const listener = (): void => {
        if (this.code !== undefined) process.exit(code);
        this.code = code;
        ask("stop");
      };
      process.on(signal, listener);
      return [signal, listener] as const;
    });
    this.#dispose = () => listeners.forEach(([signal, listener]) => process.off(signal, listener));
  }

  /** The result of `work`, or `"stop"` if a signal comes first. */
  or<T>(work: Promise<T>): Promise<T | "stop"> {
    return this.code === undefined ? Promise.race([this.#asked, work]) : Promise.resolve("stop");
  }

  dispose(): void {
    this.#dispose();
  }
}
