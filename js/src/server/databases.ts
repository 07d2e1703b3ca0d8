// The databases of a server, each opened by the first command for it.

import { OpenDatabase, type EngineSettings } from "./engine.js";
import { CommandError } from "./errors.js";
import type { Places } from "./places.js";

/** Maximum number of open databases. A client can name any number of them, and most of them are empty. */
const OPEN_MAX = 64;
/** Maximum size of a name in bytes, and characters that are not allowed. */
const NAME_BYTES_MAX = 63;
const FORBIDDEN = /[\0-\x1f/\\. "$*<>:|?]/;

/** Opens databases, and closes unused ones if there are many. */
export class Databases {
  readonly #places: Places;
  readonly #settings: EngineSettings;
  /** In order of last use; the most recent one is at the end. */
  readonly #open = new Map<string, Promise<OpenDatabase>>();
  #isClosed = false;

  constructor(places: Places, settings: EngineSettings) {
    this.#places = places;
    this.#settings = settings;
  }

  names(): string[] {
    return this.#places.names();
  }

  /** Runs a command of a database. */
  async run(name: string, command: Uint8Array): Promise<Uint8Array> {
    // Taken while nobody else can close it.
    const opening = this.#database(name);
    const database = await opening;
    if (this.#open.get(name) !== opening) return this.run(name, command);
    return database.run(command);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const closing = [...this.#open.values()].map(async (opening) => (await opening).close());
    this.#open.clear();
    await Promise.allSettled(closing);
    this.#places.close();
  }

  #database(name: string): Promise<OpenDatabase> {
    if (this.#isClosed) throw new CommandError(91, "ShutdownInProgress", "The server is shutting down");
    const known = this.#open.get(name);
    if (known) {
      this.#open.delete(name);
      this.#open.set(name, known);
      return known;
    }
    checkName(name);
    const opening = OpenDatabase.open(name, this.#places.storage(name), this.#settings);
    this.#open.set(name, opening);
    opening.then(() => this.#shrink(), () => this.#open.delete(name));
    return opening;
  }

  /** Closes the least recently used databases. Their cursors are gone, as after a restart. */
  async #shrink(): Promise<void> {
    for (const [name, opening] of this.#open) {
      if (this.#open.size <= OPEN_MAX) return;
      const database = await opening.catch(() => undefined);
      if (!database || database.running > 0 || this.#open.get(name) !== opening) continue;
      this.#open.delete(name);
      await database.close();
    }
  }
}

function checkName(name: string): void {
  if (name !== "" && new TextEncoder().encode(name).length <= NAME_BYTES_MAX && !FORBIDDEN.test(name)) return;
  throw new CommandError(73, "InvalidNamespace", `Invalid database name: ${JSON.stringify(name)}`);
}
