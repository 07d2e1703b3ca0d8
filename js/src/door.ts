// The command door: documents and blocks to bytes, bytes to replies, failures to errors.

import { decodeBlock, type Block } from "./block.js";
import { decodeDocument, encodeDocument, type RawDocument } from "./bson.js";
import type { Engine } from "./engine.js";
import { AbortedWriteError, ClosedError, ServerError } from "./errors.js";
import { Events } from "./events.js";
import type { BSONReadOptions, Document, WriteError } from "./types.js";

/** A reply without failure, and the block that came with it. */
export interface Answer {
  reply: Document;
  block: Block | undefined;
}

/** Most documents that one command takes from single inserts. */
const SINGLES_MAX = 1000;

/** Single inserts of one turn into one collection. */
interface Turn {
  documents: RawDocument[];
  /** Sends them, the first time; gives the answer. */
  send: () => Promise<Answer>;
}

/** What a database, its collections and its cursors share. */
export class Door {
  readonly database: string;
  readonly generateIds: boolean;
  readonly events: Events;
  /** Nobody else can write: the database is in memory. */
  readonly isAlone: boolean;
  readonly #engine: Engine;
  #closing: Promise<void> | undefined;
  #isMaintaining = false;
  /** How many commands had a signal. */
  #operations = 0;
  /** By collection, what is to be sent before any other command. */
  readonly #turns = new Map<string, Turn>();

  /** `isShared`: other tabs and workers may have the database open. */
  constructor(engine: Engine, database: string, generateIds: boolean, isShared = false, isAlone = false) {
    this.#engine = engine;
    this.database = database;
    this.generateIds = generateIds;
    this.events = new Events(database, isShared);
    this.isAlone = isAlone;
  }

  /** Runs a command. `ok: 0` is a {@link ServerError}; a closed database is a {@link ClosedError}. */
  async run(command: Document, payload?: Uint8Array, options?: BSONReadOptions): Promise<Answer> {
    if (typeof command["signal"]?.throwIfAborted === "function") return this.#runUntil(command, payload, options);
    const engine = this.#open();
    this.#turns.forEach(({ send }) => void send());
    const bytes = encodeDocument("$db" in command ? command : { ...command, $db: this.database });
    const answer = await engine.run_command(bytes, payload ?? null);
    const reply = decodeDocument(answer.reply, readOptions(options));
    // Under promoteValues: false the number is an object.
    if (Number(reply["ok"]) !== 1) throw new ServerError(decodeDocument(answer.reply));
    this.events.note(command, reply);
    if (answer.due) this.#maintain();
    return { reply, block: answer.payload ? decodeBlock(answer.payload) : undefined };
  }

  /** As `run`, until the signal of the command aborts. Then nobody waits any more, and the engine ends the command at its next turn. */
  async #runUntil({ signal, ...command }: Document, payload?: Uint8Array, options?: BSONReadOptions): Promise<Answer> {
    signal.throwIfAborted();
    const opKey = ++this.#operations;
    const sent = this.run({ ...command, opKey }, payload, options);
    let abort!: () => void;
    const aborted = new Promise<never>((_, reject) => {
      abort = () => {
        this.runAside({ killOp: 1, op: opKey });
        // Its first batch may be on its way.
        sent.then(({ reply: { cursor } }) => {
          if (cursor?.id) this.runAside({ killCursors: cursor.ns.slice(cursor.ns.indexOf(".") + 1), cursors: [cursor.id] });
        }, () => {});
        reject(isWrite(command) ? new AbortedWriteError(signal.reason) : signal.reason);
      };
      signal.addEventListener("abort", abort);
    });
    try {
      return await Promise.race([sent, aborted]);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** Inserts a document together with the others of this turn; resolves to what is wrong with it, if anything is. Failures are those of `run`. */
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
    // The others of this turn come before this goes on.
    if (index < SINGLES_MAX - 1) await undefined;
    const { reply } = await turn.send();
    return (reply["writeErrors"] as WriteError[] | undefined)?.find((error) => error.index === index);
  }

  /** Runs a command that nobody waits for. What fails leaves everything as it was; the next one tries again. */
  runAside(command: Document): void {
    this.run(command).catch(() => {});
  }

  /** Folds and deletes what is due: in a page when it is idle, or soon all the same. */
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

/** Only the options that decide how BSON is read, and only those that were given. */
export function readOptions(options: BSONReadOptions = {}): BSONReadOptions {
  return pick(options, "promoteLongs", "promoteValues", "promoteBuffers", "bsonRegExp", "useBigInt64");
}

/** Some properties of `T`, without those that are `undefined`. */
export type Picked<T, K extends keyof T> = { [P in K]?: Exclude<T[P], undefined> };

/** The named properties of `from` that are not `undefined`, in the order named. */
export function pick<T extends object, K extends keyof T & string>(from: T, ...keys: K[]): Picked<T, K> {
  const picked: Partial<T> = {};
  for (const key of keys) if (from[key] !== undefined) picked[key] = from[key];
  return picked as Picked<T, K>;
}
