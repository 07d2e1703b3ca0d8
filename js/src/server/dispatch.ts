// Which commands a server answers itself, which it refuses, and which go to the engine of their database.

import { deserialize, serialize } from "bson";
import { apiV1 } from "./api-version.js";
import { COMMANDS, kill, type ServerState } from "./commands.js";
import { CommandError, ProtocolError } from "./errors.js";
import { OP_QUERY, type Request } from "./messages.js";
import type { Operation } from "./operations.js";
import { numberAt, rawFields, stringAt, viewOf, type RawField } from "./raw.js";
import type { Conversation } from "./scram.js";
import { sessionOf } from "./sessions.js";

/** A connection, as commands see it. */
export interface Client {
  readonly id: number;
  /** Address and port. */
  readonly remote: string;
  readonly since: Date;
  /** The name of its program, from its hello. */
  application?: string;
  user?: string;
  conversation?: Conversation | undefined;
  /** Attempts to authenticate that have failed. */
  failures: number;
  /** The running command. */
  running?: Operation;
}

/** A received command, and the fields of it that the server inspects. */
export interface Command {
  name: string;
  database: string;
  bytes: Uint8Array;
  /** Its fields as values. */
  document(): Record<string, any>;
}

/** Maximum size of a document in bytes: 16 MB, and some for the command around it. */
const DOCUMENT_BYTES_MAX = 16_793_600;

/** Fields that the server inspects in every command. */
const LOOKED_AT = new Set(["$db", "apiVersion", "apiStrict", "readConcern", "writeConcern", "txnNumber", "startTransaction", "autocommit", "lsid"]);
/** How the engine spells commands that clients also send in another spelling of the same length. */
const SPELLINGS: Readonly<Record<string, string>> = { collstats: "collStats", dbstats: "dbStats", findandmodify: "findAndModify", listcollections: "listCollections" };
/** Commands that open cursors, use them or end them. */
const CURSORS = new Set(["find", "aggregate", "getMore", "killCursors", "listCollections", "listcollections", "listIndexes"]);
/** Commands that are allowed before authentication. */
const OPEN = new Set(["hello", "isMaster", "ismaster", "saslStart", "saslContinue", "ping", "buildInfo", "buildinfo", "logout", "connectionStatus", "whatsmyuri", "endSessions"]);

/** Commands that end when their client is gone. An aggregation also ends if it writes nothing. */
const READS = new Set(["find", "getMore", "count", "distinct", "explain", "listCollections", "listIndexes", "collStats", "dbStats"]);
/** The type and the name of the int32 field `opKey`. */
const KEY = new TextEncoder().encode("\x10opKey\0");

const decoder = new TextDecoder();

/** Answers commands. */
export class Dispatcher {
  readonly #state: ServerState;
  readonly log: (line: string) => void;

  constructor(state: ServerState, log: (line: string) => void) {
    this.#state = state;
    this.log = log;
  }

  /** Whether this client has to authenticate before it may do more. */
  isStranger(client: Client): boolean {
    return this.#state.users !== undefined && client.user === undefined;
  }

  /** The reply to a command, as BSON. Rejects only for an invalid message. */
  async run(request: Request, client: Client): Promise<Uint8Array> {
    try {
      return await this.#run(request, client);
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      if (error instanceof CommandError) return serialize(error.reply);
      this.log(`${client.remote}: ${(error as Error).stack ?? String(error)}`);
      return serialize({ ok: 0, errmsg: String((error as Error).message ?? error), code: 1, codeName: "InternalError" });
    } finally {
      if (client.running) this.#state.operations.end(client.running);
    }
  }

  /** Called when a client is gone. Its read ends, because no one waits for it. Its write goes on, as on a server. */
  async gone({ running }: Client): Promise<void> {
    try {
      if (running && isRead(running)) await kill(this.#state, running);
    } catch {
      // The command ends by itself: it cannot be read, or the server closes.
    }
  }

  async #run(request: Request, client: Client): Promise<Uint8Array> {
    if (request.documentBytes > DOCUMENT_BYTES_MAX) {
      throw new CommandError(10334, "BSONObjectTooLarge", `BSONObj size: ${request.documentBytes} is invalid. Size must be between 0 and ${DOCUMENT_BYTES_MAX} (16MB)`);
    }
    const bytes = request.kind === OP_QUERY ? unwrapped(request.command) : request.command;
    const fields = new Map<string, RawField>();
    let first: RawField | undefined;
    let hasKey = false;
    for (const field of rawFields(bytes)) {
      first ??= field;
      if (LOOKED_AT.has(field.name)) fields.set(field.name, field);
      // Only the server may set `opKey`.
      hasKey ||= field.name === "opKey";
    }
    if (!first) throw new CommandError(9, "FailedToParse", "The command document is empty");
    const name = first.name;
    const databaseField = fields.get("$db");
    const database = (databaseField && stringAt(bytes, databaseField)) ?? (request.kind === OP_QUERY ? "admin" : undefined);
    if (database === undefined) throw new CommandError(40414, "IDLFailedToParse", "OP_MSG requests require a $db argument");
    const operation = this.#state.operations.begin(client, name, database, bytes);
    if (hasKey) throw new CommandError(40415, "IDLUnknownField", `BSON field '${name}.opKey' is an unknown field.`);
    if (this.isStranger(client) && !OPEN.has(name)) throw new CommandError(13, "Unauthorized", `Command ${name} requires authentication`);
    if (request.kind === OP_QUERY && !/^(hello|is[mM]aster)$/.test(name)) {
      throw new CommandError(352, "UnsupportedOpQueryCommand", `Unsupported OP_QUERY command: ${name}. The client driver may require an upgrade`);
    }
    checkGeneric(name, bytes, fields);
    const command: Command = { name, database, bytes, document: () => documentOf(bytes) };
    const own = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (own) {
      const reply = await own(command, client, this.#state);
      if (reply) return reply instanceof Uint8Array ? reply : serialize({ ...reply, ok: 1 });
    }
    const reply = await this.#state.databases.run(database, keyed(spelled(command, first), operation));
    const lsid = CURSORS.has(name) ? fields.get("lsid") : undefined;
    const session = lsid && sessionOf(bytes, lsid);
    if (session !== undefined) this.#note(session, command, first, reply);
    return reply;
  }

  /** Records which cursors a session has. */
  #note(session: string, { name, database, bytes, document }: Command, first: RawField, reply: Uint8Array): void {
    const { sessions } = this.#state;
    if (name !== "killCursors") sessions.note(session, database, reply, name === "getMore" && first.type === 18 ? viewOf(bytes).getBigInt64(first.start, true) : undefined);
    else for (const id of [document()["cursors"]].flat()) if (/^-?\d+$/.test(String(id))) sessions.forget(session, BigInt(String(id)));
  }
}

/** A command as an object. Its inner documents have not been checked before. */
function documentOf(bytes: Uint8Array): Record<string, any> {
  try {
    return deserialize(bytes, { promoteBuffers: true });
  } catch (error) {
    throw new CommandError(22, "InvalidBSON", `The command cannot be read: ${(error as Error).message}`);
  }
}

/** OP_QUERY may have its command in `$query`, with a read preference beside it. */
function unwrapped(command: Uint8Array): Uint8Array {
  for (const { name, type, start, end } of rawFields(command)) {
    if ((name === "$query" || name === "query") && type === 3) return command.subarray(start, end);
    break;
  }
  return command;
}

/** The command as the engine spells it. */
function spelled({ name, bytes }: Command, first: RawField): Uint8Array {
  const spelling = SPELLINGS[name];
  if (spelling === undefined) return bytes;
  const copy = bytes.slice();
  copy.set(new TextEncoder().encode(spelling), first.start - 1 - spelling.length);
  return copy;
}

/** The command with the number by which the engine can end it. An insert does not end early, and is too large to copy without need. */
function keyed(bytes: Uint8Array, { id, name }: Operation): Uint8Array {
  if (name === "insert") return bytes;
  // Replace the final NUL by type, name, number and NUL.
  const longer = new Uint8Array(bytes.length + KEY.length + 4);
  longer.set(bytes);
  longer.set(KEY, bytes.length - 1);
  const view = viewOf(longer);
  view.setInt32(bytes.length - 1 + KEY.length, id, true);
  view.setInt32(0, longer.length, true);
  return longer;
}

/** Whether a command changes nothing. */
function isRead({ name, bytes }: Operation): boolean {
  if (name !== "aggregate") return READS.has(name);
  const pipeline: unknown = documentOf(bytes)["pipeline"];
  return Array.isArray(pipeline) && !["$out", "$merge"].some((stage) => stage in (pipeline.at(-1) ?? {}));
}

/** Refuses what a standalone server refuses: transactions, and read and write concerns that involve other members. */
function checkGeneric(name: string, bytes: Uint8Array, fields: Map<string, RawField>): void {
  if (fields.size <= 1) return;
  const inner = (of: string): Map<string, RawField> | undefined => {
    const field = fields.get(of);
    if (!field) return undefined;
    if (field.type !== 3) throw new CommandError(14, "TypeMismatch", `BSON field '${name}.${of}' is the wrong type, expected type 'object'`);
    const document = bytes.subarray(field.start, field.end);
    return new Map([...rawFields(document)].map((each) => [each.name, { ...each, start: each.start + field.start, end: each.end + field.start }]));
  };
  if (fields.has("startTransaction") || fields.has("autocommit")) {
    throw new CommandError(20, "IllegalOperation", "Transaction numbers are only allowed on a replica set member or mongos");
  }
  if (fields.has("txnNumber")) throw new CommandError(20, "IllegalOperation", "Transaction numbers are only allowed on a replica set member or mongos");
  const readConcern = inner("readConcern");
  const level = readConcern?.get("level");
  if (level) {
    const text = stringAt(bytes, level) ?? "";
    if (text === "linearizable" || text === "snapshot") throw new CommandError(123, "NotAReplicaSet", `node needs to be a replica set member to use readConcern: ${text}`);
    if (!["", "local", "available", "majority"].includes(text)) throw new CommandError(2, "BadValue", `Enumeration value '${text}' for field '${name}.readConcern.level' is not a valid value.`);
  }
  const w = inner("writeConcern")?.get("w");
  if (w) {
    const text = stringAt(bytes, w);
    const count = numberAt(bytes, w);
    if ((count !== undefined && count > 1) || (text !== undefined && text !== "majority")) {
      throw new CommandError(2, "BadValue", "cannot use non-majority 'w' mode or 'w' > 1 when a host is not replicated");
    }
  }
  const version = fields.get("apiVersion");
  if (version) {
    const text = stringAt(bytes, version);
    if (text !== "1") throw new CommandError(322, "APIVersionError", "API version must be \"1\"");
    const strict = fields.get("apiStrict");
    if (strict && numberAt(bytes, strict) && !apiV1.has(name)) {
      throw new CommandError(323, "APIStrictError", `Provided apiStrict:true, but the command ${name} is not in API Version 1. Information on supported commands and migrations in API Version 1 can be found at https://dochub.mongodb.org/core/manual-versioned-api`);
    }
  }
}

/** Text of bytes, for messages of SCRAM. */
export const textOf = (bytes: Uint8Array): string => decoder.decode(bytes);
