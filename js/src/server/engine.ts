// The engine of a server: takes commands and returns replies as bytes, in its own instance of the module.

import { encodeDocument } from "../bson.js";
import { readModule } from "../entry/read-module.js";
import type { Engine } from "../engine.js";
import { newContext } from "../lock.js";
import type { HostStorage } from "../storage.js";
import { wasmEngine } from "../wasm.js";

/** How the databases of a server are opened. */
export interface EngineSettings {
  durability: "relaxed" | "strict";
}

/** The interval of retention and folds while no client sends commands. */
const MAINTENANCE_MS = 60_000;

const openEngine = wasmEngine(
  () => readModule(new URL("./timepail.wasm", import.meta.url)),
  () => readModule(new URL("./timepail-more.wasm", import.meta.url)),
);

/** An open database, which runs its own maintenance. */
export class OpenDatabase {
  readonly name: string;
  readonly #engine: Engine;
  readonly #timer: ReturnType<typeof setInterval>;
  #isMaintaining = false;
  /** The number of running commands. */
  running = 0;

  private constructor(name: string, engine: Engine) {
    this.name = name;
    this.#engine = engine;
    this.#timer = setInterval(() => this.#aside({ expire: 1 }), MAINTENANCE_MS);
    this.#timer.unref?.();
  }

  static async open(name: string, storage: HostStorage, { durability }: EngineSettings): Promise<OpenDatabase> {
    const engine = await openEngine(name, { storage: "host", durability, context: newContext() }, storage);
    const database = new OpenDatabase(name, engine);
    // Fold the journals that ended processes have left. This is not urgent, so it is not awaited.
    database.#aside({ foldJournals: 1, alive: [] });
    return database;
  }

  /** Runs a command. A failure is a reply as well. */
  async run(command: Uint8Array): Promise<Uint8Array> {
    this.running++;
    try {
      const { reply, due } = await this.#engine.run_command(command, null, true);
      if (due) this.#maintain();
      return reply;
    } finally {
      this.running--;
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#engine.close();
  }

  #maintain(): void {
    if (this.#isMaintaining) return;
    this.#isMaintaining = true;
    void this.#aside({ maintain: 1 }).finally(() => (this.#isMaintaining = false));
  }

  /** Runs a command in the background. A failure changes nothing; the next such command tries again. */
  async #aside(command: object): Promise<void> {
    await this.#engine.run_command(encodeDocument(command), null, true).catch(() => {});
  }
}
