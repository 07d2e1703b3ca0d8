// The commands that the server answers itself: about the server, its connections and its databases. The engine runs the commands of a database.

import { hostname, arch, cpus, platform, release, totalmem, type as osType } from "node:os";
import { deserialize, Double, Long, serialize, UUID } from "bson";
import { COMPRESSORS } from "./compression.js";
import { MESSAGE_BYTES_MAX, type Traffic } from "./connection.js";
import type { Databases } from "./databases.js";
import { textOf, type Client, type Command } from "./dispatch.js";
import { CommandError } from "./errors.js";
import { shown, type Operation, type Operations } from "./operations.js";
import { Conversation, MECHANISM } from "./scram.js";
import { sessionName, sessionOfCommand, type Sessions } from "./sessions.js";
import type { Users } from "./users.js";

/** The version of MongoDB that this server resembles. Drivers and shells decide by it which commands they may send. */
const VERSION = [7, 0, 0] as const;
const WIRE_VERSION = 21;
/** Maximum length of the stored name of a client's program. */
const APPLICATION_LENGTH_MAX = 128;
/** How many times a client may fail to authenticate before its connection ends. */
const FAILURES_MAX = 5;

/** What all connections of a server share. */
export interface ServerState {
  databases: Databases;
  sessions: Sessions;
  /** Who may connect; absent if anybody may. */
  users: Users | undefined;
  clients: ReadonlySet<Client>;
  operations: Operations;
  traffic: Traffic;
  connectionsMax: number;
  connectionsMade: () => number;
  started: Date;
  /** The address on which it listens, as `host:port`. */
  address: () => string;
  /** Arguments of the program, if it is one. */
  argv: readonly string[];
}

type Reply = Record<string, unknown> | Uint8Array;
/** Returns the reply without `ok`, or a complete reply as bytes, or `undefined` if the engine must answer. */
type Handler = (command: Command, client: Client, state: ServerState) => Reply | undefined | Promise<Reply | undefined>;

const nothing: Handler = () => ({});

/** Refuses a command like a server that does not have the feature. */
const refuse = (code: number, codeName: string, message: string): Handler => () => {
  throw new CommandError(code, codeName, message);
};

const noReplicas = refuse(76, "NoReplicationEnabled", "not running with --replSet");

const hello: Handler = (command, client, state) => {
  const { client: metadata, compression, helloOk, saslSupportedMechs, speculativeAuthenticate } = command.document();
  const application: unknown = metadata?.application?.name;
  if (typeof application === "string") client.application ??= application.slice(0, APPLICATION_LENGTH_MAX);
  const reply: Record<string, unknown> = {
    [command.name === "hello" ? "isWritablePrimary" : "ismaster"]: true,
    ...(helloOk ? { helloOk: true } : {}),
    maxBsonObjectSize: 16_777_216,
    maxMessageSizeBytes: MESSAGE_BYTES_MAX,
    maxWriteBatchSize: 100_000,
    localTime: new Date(),
    logicalSessionTimeoutMinutes: 30,
    connectionId: client.id,
    minWireVersion: 0,
    maxWireVersion: WIRE_VERSION,
    readOnly: false,
  };
  const shared = Array.isArray(compression) ? COMPRESSORS.filter((name) => compression.includes(name)) : [];
  if (shared.length > 0) reply["compression"] = shared;
  // The same for every name, so that a client cannot learn which users exist.
  if (typeof saslSupportedMechs === "string" && state.users) reply["saslSupportedMechs"] = [MECHANISM];
  if (speculativeAuthenticate && state.users) {
    try {
      reply["speculativeAuthenticate"] = start(speculativeAuthenticate, client, state);
    } catch {
      // The attempt was speculative. The client authenticates regularly afterwards, and then gets the error.
    }
  }
  return reply;
};

function start(document: Record<string, any>, client: Client, { users }: ServerState): Record<string, unknown> {
  const { mechanism, payload, options } = document;
  if (!users) throw new CommandError(334, "MechanismUnavailable", "This server asks for no authentication");
  if (mechanism !== MECHANISM) throw new CommandError(334, "MechanismUnavailable", `Unsupported mechanism ${JSON.stringify(mechanism)}; this server has ${MECHANISM}`);
  client.conversation = new Conversation(payloadOf(payload), users, options?.skipEmptyExchange === true);
  return { conversationId: 1, done: false, payload: Buffer.from(client.conversation.first) };
}

const saslStart: Handler = (command, client, state) => attempt(client, () => start(command.document(), client, state));

const saslContinue: Handler = (command, client) =>
  attempt(client, () => {
    const { payload } = command.document();
    const { conversation } = client;
    if (!conversation) throw new CommandError(17, "ProtocolError", "No SASL session state found");
    if (conversation.isProven) {
      client.user = conversation.user;
      client.conversation = undefined;
      return { conversationId: 1, done: true, payload: Buffer.alloc(0) };
    }
    const signature = conversation.prove(payloadOf(payload));
    // Clients that skip the empty exchange at the end send no further message.
    if (conversation.skipsEmptyExchange) {
      client.user = conversation.user;
      client.conversation = undefined;
    }
    return { conversationId: 1, done: conversation.skipsEmptyExchange, payload: Buffer.from(signature) };
  });

/** Counts failures. A client that has failed too often must connect again. */
function attempt(client: Client, work: () => Reply): Reply {
  if (client.failures >= FAILURES_MAX) throw new CommandError(18, "AuthenticationFailed", "Authentication failed too often on this connection");
  try {
    return work();
  } catch (error) {
    client.conversation = undefined;
    client.failures++;
    throw error;
  }
}

function payloadOf(payload: unknown): string {
  if (typeof payload === "string") return payload;
  if (payload instanceof Uint8Array) return textOf(payload);
  throw new CommandError(14, "TypeMismatch", "The payload of a SASL message must be binary");
}

const buildInfo: Handler = async (_command, _client, { databases }) => {
  // Use `admin`: clients that have not authenticated may run this, and must not open databases by name.
  const engine = await ask(databases, "admin", { buildInfo: 1 });
  return {
    version: VERSION.join("."),
    versionArray: [...VERSION, 0],
    // The version of timepail, beside the version that the server resembles.
    timepail: { version: engine["version"] },
    gitVersion: "timepail",
    modules: [],
    allocator: "wasm",
    javascriptEngine: "none",
    sysInfo: "",
    bits: 64,
    debug: false,
    maxBsonObjectSize: 16_777_216,
    storageEngines: ["timepail"],
    openssl: {},
    buildEnvironment: {},
  };
};

/** A reply of the engine, as an object. */
async function ask(databases: Databases, database: string, command: Record<string, unknown>): Promise<Record<string, any>> {
  const reply = deserialize(await databases.run(database, serialize({ ...command, $db: database })));
  if (reply["ok"] !== 1) throw new CommandError(reply["code"], reply["codeName"], reply["errmsg"]);
  return reply;
}

const listDatabases: Handler = async (command, _client, { databases }) => {
  const { nameOnly, filter } = command.document();
  adminOnly(command);
  const all: Record<string, unknown>[] = [];
  let total = 0;
  for (const name of new Set(databases.names())) {
    const { cursor } = await ask(databases, name, { listCollections: 1, nameOnly: true, cursor: { batchSize: 1 } });
    const isEmpty = cursor.firstBatch.length === 0;
    if (Number(cursor.id) !== 0) await ask(databases, name, { killCursors: "$cmd.listCollections", cursors: [cursor.id] });
    // A database exists if it has a collection.
    if (isEmpty) continue;
    if (nameOnly) {
      all.push({ name });
      continue;
    }
    const { totalSize } = await ask(databases, name, { dbStats: 1 });
    total += Number(totalSize);
    all.push({ name, sizeOnDisk: new Double(Number(totalSize)), empty: false });
  }
  const shown = filter === undefined ? all : await filtered(databases, all, filter);
  return nameOnly ? { databases: shown } : { databases: shown, totalSize: new Double(total), totalSizeMb: Math.floor(total / 1_048_576) };
};

/** A stage that returns documents literally, because their content may look like an expression. */
const documentsOf = (documents: readonly unknown[]): object => ({ $documents: { $literal: documents } });

/** The documents that match the filter, as evaluated by the engine. */
async function filtered(databases: Databases, documents: Record<string, unknown>[], filter: unknown): Promise<unknown[]> {
  if (documents.length === 0) return [];
  const reply = await ask(databases, "admin", { aggregate: 1, pipeline: [documentsOf(documents), { $match: filter }], cursor: {} });
  return reply["cursor"].firstBatch;
}

function adminOnly({ name, database }: Command): void {
  if (database !== "admin") throw new CommandError(13, "Unauthorized", `${name} may only be run against the admin database.`);
}

const connectionStatus: Handler = (command, client, { users }) => {
  const { showPrivileges } = command.document();
  const isKnown = users !== undefined && client.user !== undefined;
  return {
    authInfo: {
      authenticatedUsers: isKnown ? [{ user: client.user, db: "admin" }] : [],
      authenticatedUserRoles: isKnown ? [{ role: "root", db: "admin" }] : [],
      ...(showPrivileges ? { authenticatedUserPrivileges: [] } : {}),
    },
  };
};

const hostInfo: Handler = () => ({
  system: {
    currentTime: new Date(),
    hostname: hostname(),
    cpuAddrSize: 64,
    memSizeMB: Math.floor(totalmem() / 1_048_576),
    memLimitMB: Math.floor(totalmem() / 1_048_576),
    numCores: cpus().length,
    cpuArch: arch(),
    numaEnabled: false,
  },
  os: { type: osType(), name: platform(), version: release() },
  extra: {},
});

const getParameter: Handler = async (command, _client, { databases }) => {
  const { $db, lsid, ...document } = command.document();
  const known: Record<string, unknown> = { featureCompatibilityVersion: { version: `${VERSION[0]}.${VERSION[1]}` }, authenticationMechanisms: [MECHANISM] };
  const own = Object.entries(known).filter(([name]) => document["getParameter"] === "*" || Object.hasOwn(document, name));
  if (own.length === 0) return undefined;
  // The engine has the parameters of time-series collections. It fails if the command names none of them.
  const others = await ask(databases, command.database, document).catch(() => ({}));
  return { ...others, ...Object.fromEntries(own) };
};

const getLog: Handler = (command) => {
  const which = command.document()["getLog"];
  if (which === "*") return { names: ["global", "startupWarnings"] };
  if (which === "global" || which === "startupWarnings") return { totalLinesWritten: 0, log: [] };
  throw new CommandError(96, "OperationFailed", `No log named '${String(which)}'`);
};

const NOBODY = { total: 0, readers: 0, writers: 0 };
const total = (numbers: number[]): number => numbers.reduce((sum, number) => sum + number, 0);

const serverStatus: Handler = async (command, _client, { databases, sessions, clients, operations, traffic, connectionsMax, connectionsMade, started }) => {
  const document = command.document();
  const { $db, lsid, ...rest } = document;
  const engine = await ask(databases, command.database, rest);
  const uptimeMS = Date.now() - started.getTime();
  const { user, system } = process.cpuUsage();
  const memory = process.memoryUsage();
  return {
    ...engine,
    host: hostname(),
    version: VERSION.join("."),
    pid: Long.fromNumber(process.pid),
    uptime: new Double(Math.floor(uptimeMS / 1000)),
    uptimeMillis: Long.fromNumber(uptimeMS),
    connections: { current: clients.size, available: Math.max(0, connectionsMax - clients.size), totalCreated: connectionsMade() },
    extra_info: { note: "fields vary by platform", user_time_us: Long.fromNumber(user), system_time_us: Long.fromNumber(system) },
    metrics: { cursor: { open: { total: Long.fromNumber(sessions.cursors) } } },
    mem: { bits: 64, resident: Math.round(memory.rss / 1_048_576), supported: true },
    network: { bytesIn: Long.fromNumber(traffic.bytesIn), bytesOut: Long.fromNumber(traffic.bytesOut), numRequests: Long.fromNumber(total(Object.values(operations.counts))) },
    opcounters: Object.fromEntries(Object.entries(operations.counts).map(([kind, count]) => [kind, Long.fromNumber(count)])),
    // No command waits for a lock in this server.
    globalLock: { totalTime: Long.fromNumber(uptimeMS * 1000), currentQueue: NOBODY, activeClients: { ...NOBODY, total: operations.size } },
  };
};

/** The fields of `currentOp` that say what to show; the others are a filter. */
const CURRENT_OP_FIELDS = new Set(["currentOp", "$all", "$ownOps", "$truncateOps", "$db", "$readPreference", "$clusterTime", "lsid", "comment", "maxTimeMS", "readConcern", "apiVersion", "apiStrict", "apiDeprecationErrors"]);

const currentOp: Handler = async (command, client, state) => {
  adminOnly(command);
  const document = command.document();
  const found = operations(client, state, { allUsers: !document["$ownOps"], idleConnections: Boolean(document["$all"]) });
  const filter = Object.fromEntries(Object.entries(document).filter(([name]) => !CURRENT_OP_FIELDS.has(name)));
  return { inprog: Object.keys(filter).length === 0 ? found : await filtered(state.databases, found, filter) };
};

/** Connections with their commands, as `currentOp` and its stage show them. */
function operations(asking: Client, { clients, users, address }: ServerState, { allUsers, idleConnections }: Record<string, boolean>): Record<string, unknown>[] {
  const isWanted = (client: Client): boolean => (idleConnections || client.running !== undefined) && (allUsers || !users || client.user === asking.user);
  return [...clients].filter(isWanted).map((client) => shown(client, address()));
}

const CURRENT_OP_OPTIONS = new Set(["allUsers", "idleConnections", "idleCursors", "idleSessions", "localOps", "truncateOps", "backtrace", "targetAllNodes"]);

/** The checked options of the stage. */
function currentOpOptions(given: unknown): Record<string, boolean> {
  const wrong = (message: string): CommandError => new CommandError(9, "FailedToParse", message);
  if (typeof given !== "object" || given === null) throw wrong("$currentOp options must be specified in an object");
  for (const [name, value] of Object.entries(given)) {
    if (!CURRENT_OP_OPTIONS.has(name)) throw wrong(`Unrecognized option '${name}' in $currentOp stage.`);
    if (typeof value !== "boolean") throw wrong(`The '${name}' parameter of the $currentOp stage must be a boolean value`);
  }
  return given as Record<string, boolean>;
}

const killOp: Handler = async (command, _client, state) => {
  adminOnly(command);
  const { op } = command.document();
  if (op === undefined) throw new CommandError(4, "NoSuchKey", "Missing expected field \"op\"");
  if (typeof op !== "number") throw new CommandError(14, "TypeMismatch", "Expected field \"op\" to have a numeric type");
  if (!Number.isInteger(op)) throw new CommandError(2, "BadValue", `Expected field "op" to have a value exactly representable as a 64-bit integer, but found ${op}`);
  const operation = state.operations.find(op);
  if (operation) await kill(state, operation);
  // As on a MongoDB server, the reply does not depend on whether the operation exists.
  return { info: "attempting to kill op" };
};

/** Ends a command at its next turn. */
export async function kill({ databases }: ServerState, operation: Operation): Promise<void> {
  operation.isKilled = true;
  await ask(databases, operation.database, { killOp: 1, op: operation.id });
}

/** Stages that only a server can answer, in a pipeline of a database. */
const aggregate: Handler = (command, client, state) => {
  const { aggregate: target, pipeline, cursor } = targetsDatabase(command) ? command.document() : ({} as Record<string, any>);
  if (target !== 1 || !Array.isArray(pipeline)) return undefined;
  const [stage, ...rest] = pipeline as Record<string, unknown>[];
  const source = Object.keys(stage ?? {})[0];
  if (source === "$currentOp") {
    if (command.database !== "admin") throw new CommandError(73, "InvalidNamespace", "$currentOp must be run against the 'admin' database with {aggregate: 1}");
    return listed(command, state, operations(client, state, currentOpOptions(stage!["$currentOp"])), rest, cursor);
  }
  if (source === "$listLocalSessions" || source === "$listSessions") return listed(command, state, [], rest, cursor);
  return undefined;
};

/** Whether the command is `{ aggregate: 1 }`, without reading the pipeline. */
function targetsDatabase({ bytes }: Command): boolean {
  // Layout: length, type, "aggregate", NUL. The name of a collection is a string.
  return bytes[4] !== 2;
}

/** Runs the rest of a pipeline on documents of the server. */
async function listed(command: Command, { databases }: ServerState, documents: unknown[], rest: unknown[], cursor: unknown): Promise<Reply> {
  if (documents.length === 0) return { cursor: { id: Long.ZERO, ns: `${command.database}.$cmd.aggregate`, firstBatch: [] } };
  return databases.run(command.database, serialize({ aggregate: 1, pipeline: [documentsOf(documents), ...rest], cursor: cursor ?? {}, $db: command.database }));
}

/** Ends the named sessions and their cursors. The commands that kill sessions also end their commands, and apply to all sessions if none is named. */
const endSessions: Handler = async (command, client, state) => {
  const { databases, sessions, operations } = state;
  const named: unknown = command.document()[command.name];
  if (!Array.isArray(named)) throw new CommandError(14, "TypeMismatch", `BSON field '${command.name}.${command.name}' is the wrong type, expected type 'array'`);
  const ids = named.map((session: { id?: unknown }) => (session?.id instanceof Uint8Array ? sessionName(session.id) : ""));
  const isKill = command.name !== "endSessions";
  for (const operation of isKill ? operations : []) {
    if (operation.client !== client && (ids.length === 0 || ids.includes(sessionOfCommand(operation.bytes) ?? ""))) await kill(state, operation);
  }
  // Drivers use `endSessions` for their own sessions. Only a kill command that names none ends all sessions.
  const ended = ids.length === 0 && isKill ? sessions.end() : ids.flatMap((id) => sessions.end(id));
  for (const { database, collection, id } of ended) await ask(databases, database, { killCursors: collection, cursors: [Long.fromBigInt(id)] });
  return {};
};

/** The handlers of commands that the engine does not answer alone. */
export const COMMANDS: Readonly<Record<string, Handler>> = {
  hello,
  isMaster: hello,
  ismaster: hello,
  ping: nothing,
  saslStart,
  saslContinue,
  logout(_command, client) {
    delete client.user;
    return {};
  },
  buildInfo,
  buildinfo: buildInfo,
  listDatabases,
  connectionStatus,
  hostInfo,
  getParameter,
  getLog,
  serverStatus,
  currentOp,
  aggregate,
  killOp,
  profile(command) {
    const level = Number(command.document()["profile"]);
    if (level > 0) throw new CommandError(20, "IllegalOperation", "There is no profiler; explain shows what a query does");
    return { was: 0, slowms: 100, sampleRate: new Double(1) };
  },
  whatsmyuri: (_command, client) => ({ you: client.remote }),
  getCmdLineOpts: (_command, _client, { argv }) => ({ argv: [...argv], parsed: {} }),
  top: (command) => {
    adminOnly(command);
    return { totals: {} };
  },
  getLastError: refuse(59, "CommandNotFound", "no such command: 'getLastError'"),
  getFreeMonitoringStatus: () => ({ state: "disabled", message: "Free monitoring is not part of this server" }),
  usersInfo: (_command, _client, { users }) => ({ users: (users?.names() ?? []).map((user) => ({ _id: `admin.${user}`, user, db: "admin", roles: [{ role: "root", db: "admin" }], mechanisms: [MECHANISM] })) }),
  rolesInfo: () => ({ roles: [] }),
  startSession: () => ({ id: { id: new UUID() }, timeoutMinutes: 30 }),
  endSessions,
  killSessions: endSessions,
  killAllSessions: endSessions,
  refreshSessions: nothing,
  replSetGetStatus: noReplicas,
  replSetGetConfig: noReplicas,
  getShardMap: noReplicas,
  isdbgrid: refuse(59, "CommandNotFound", "no such command: 'isdbgrid'"),
  createUser: refuse(20, "IllegalOperation", "Users are created outside of the server: npx timepail user <file> <name>"),
  updateUser: refuse(20, "IllegalOperation", "Users are changed outside of the server: npx timepail user <file> <name>"),
  dropUser: refuse(20, "IllegalOperation", "Users are removed outside of the server: npx timepail user <file> <name> --remove"),
  shutdown: refuse(20, "IllegalOperation", "Stop the server by Ctrl-C or a signal to its process"),
};
