// The command door: encodes documents and blocks, decodes replies, and converts failures to errors.

import { decodeBlock, type Block } from "./block.js";
import { decodeDocument, encodeDocument, type RawDocument } from "./bson.js";
import type { Engine } from "./engine.js";
import { AbortedWriteError, ClosedError, ServerError } from "./errors.js";
import { Events } from "./events.js";
import { readOptions } from "./options.js";
import type { BSONReadOptions, Document, WriteError } from "./types.js";

/** A successful reply, and the block that came with it. */
export interface Answer {
  reply: Document;
  block: Block | undefined;
}

/** Maximum number of single inserts that share one command. */
const SINGLES_MAX = 1000;

/** Single inserts of one turn into one collection. */
interface Turn {
  documents: RawDocument[];
  /** Sends them on the first call; returns the answer. */
  send: () => Promise<Answer>;
}

/** What a database, its collections and its cursors share. */
export class Door {
  readonly database: string;
  readonly generateIds: boolean;
  readonly events: Events;
  /** True if the database is in memory, so that no one else can write. */
  readonly isAlone: boolean;
  readonly #engine: Engine;
  #closing: Promise<void> | undefined;
  #isMaintaining = false;
  /** How many commands had a signal. */
  #operations = 0;
  /** Single inserts by collection, which are sent before any other command. */
  readonly #turns = new Map<string, Turn>();

  /** `isShared`: other tabs and workers may have the database open. */
  constructor(engine: Engine, database: string, generateIds: boolean, isShared = false, isAlone = false) {
    this.#engine = engine;
    this.database = database;
    this.generateIds = generateIds;
    this.events = new Events(database, isShared);
    this.isAlone = isAlone;
  }

  /** Runs a command. Throws a {@link ServerError} for `ok: 0`, and a {@link ClosedError} if the database is closed. */
  async run(command: Document, payload?: Uint8Array, options?: BSONReadOptions): Promise<Answer> {
    if (typeof command["signal"]?.throwIfAborted === "function") return this.#runUntil(command, payload, options);
    const engine = this.#open();
    this.#turns.forEach(({ send }) => void send());
    const bytes = encodeDocument("$db" in command ? command : { ...command, $db: this.database });
    const answer = await engine.run_command(bytes, payload ?? null);
    const reply = decodeDocument(answer.reply, readOptions(options));
    // With `promoteValues: false`, the number is an object.
    if (Number(reply["ok"]) !== 1) throw new ServerError(decodeDocument(answer.reply));
    this.events.note(command, reply);
    if (answer.due) this.#maintain();
    return { reply, block: answer.payload ? decodeBlock(answer.payload) : undefined };
  }

  /** Like `run`, until the signal of the command aborts. It then rejects at once, and the engine ends the command at its next turn. */
  async #runUntil({ signal, ...command }: Document, payload?: Uint8Array, options?: BSONReadOptions): Promise<Answer> {
    signal.throwIfAborted();
    const opKey = ++this.#operations;
    const sent = this.run({ ...command, opKey }, payload, options);
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        this.runAside({ killOp: 1, op: opKey });
        // The reply may still arrive and open a cursor. The name of a database may contain dots.
        sent.then(({ reply: { cursor } }) => {
          if (cursor?.id) this.runAside({ killCursors: cursor.ns.slice(this.database.length + 1), cursors: [cursor.id] });
        }, () => {});
        reject(isWrite(command) ? new AbortedWriteError(signal.reason) : signal.reason);
      };
      signal.addEventListener("abort", abort);
      sent.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
    });
  }

  /** Inserts a document together with the others of this turn. Resolves to its write error, if there is one. Fails like `run`. */
  async insertOne(insert: string, document: RawDocument): Promise<WriteError | undefined> {
    let turn = this.#turns.get(insert);
    if (!turn) {
      const documents: RawDocument[] = [];
      let sent: Promise<Answer> | undefined;
      const send = (): Promise<Answer> => {
        if (!sent) {
          this.#turns.delete(insert);
          sent = this.run({ insert, ordered: false, documents });
        }
        return sent;
      };
      this.#turns.set(insert, (turn = { documents, send }));
    }
    const index = turn.documents.push(document) - 1;
    // Let the other inserts of this turn join first.
    if (index < SINGLES_MAX - 1) await undefined;
    const { reply } = await turn.send();
    return (reply["writeErrors"] as WriteError[] | undefined)?.find((error) => error.index === index);
  }

  /** Runs a command in the background. A failure changes nothing; the next such command tries again. */
  runAside(command: Document): void {
    this.run(command).catch(() => {});
  }

  /** Runs due folds and deletions. In a page they wait for idle time, but not for long. */
  #maintain(): void {
    if (this.#isMaintaining) return;
    this.#isMaintaining = true;
    const start = (): void => {
      this.run({ maintain: 1 })
        .catch(() => {})
        .finally(() => (this.#isMaintaining = false));
    };
    // Safari and workers have no idle callbacks.
    if (!this.#engine.isApart && (globalThis.requestIdleCallback as unknown)) requestIdleCallback(start, { timeout: 200 });
    else start();
  }

  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /** Refuses all further commands, then closes the engine. Later calls wait for the first. */
  close(): Promise<void> {
    this.#turns.forEach(({ send }) => void send());
    return (this.#closing ??= this.#engine.close().finally(() => this.events.close()));
  }

  #open(): Engine {
    if (this.isClosed) throw new ClosedError(this.database);
    return this.#engine;
  }
}

/** True for a command that may change something. */
function isWrite(command: Document): boolean {
  return /^(insert|update|delete|findA|create|drop|coll[Mm]od|expire)/.test(Object.keys(command)[0]!) || "$out" in (command["pipeline"]?.at(-1) ?? {});
}
