// The running commands, which `currentOp` shows and `killOp` ends.

import { deserialize, Long } from "bson";
import type { Client } from "./dispatch.js";
import { rawFields, stringAt } from "./raw.js";

/** Larger commands are shown by their name alone. */
const SHOWN_BYTES_MAX = 4096;
/** The kinds of operation that a server reports for some commands, instead of "command". */
const KINDS: Readonly<Record<string, string>> = { find: "query", getMore: "getmore", insert: "insert", update: "update", delete: "remove" };
const COUNTED: Readonly<Record<string, keyof Operations["counts"]>> = { find: "query", getMore: "getmore", insert: "insert", update: "update", delete: "delete" };
/** Commands whose content must stay hidden from other clients. */
const SECRET = /^sasl/;

/** A running command. */
export interface Operation {
  /** What `killOp` names. The engine knows the command by the same number. */
  readonly id: number;
  readonly client: Client;
  readonly name: string;
  readonly database: string;
  /** The command as received. The next message reuses its memory. */
  readonly bytes: Uint8Array;
  readonly since: number;
  isKilled: boolean;
}

/** All running commands. */
export class Operations {
  readonly #running = new Map<number, Operation>();
  /** How many there have been of each kind. */
  readonly counts = { insert: 0, query: 0, update: 0, delete: 0, getmore: 0, command: 0 };
  #last = 0;

  begin(client: Client, name: string, database: string, bytes: Uint8Array): Operation {
    this.#last = (this.#last % 0x7fff_ffff) + 1;
    const operation: Operation = { id: this.#last, client, name, database, bytes, since: performance.now(), isKilled: false };
    this.#running.set(operation.id, operation);
    this.counts[COUNTED[name] ?? "command"]++;
    client.running = operation;
    return operation;
  }

  end(operation: Operation): void {
    this.#running.delete(operation.id);
    delete operation.client.running;
  }

  get size(): number {
    return this.#running.size;
  }

  find(id: number): Operation | undefined {
    return this.#running.get(id);
  }

  [Symbol.iterator](): Iterator<Operation> {
    return this.#running.values();
  }
}

/** A connection and its command, as `currentOp` shows them. */
export function shown({ id, remote, application, user, running }: Client, host: string): Record<string, unknown> {
  const microseconds = running ? Math.max(0, Math.round((performance.now() - running.since) * 1000)) : 0;
  return {
    type: "op",
    host,
    desc: `conn${id}`,
    connectionId: id,
    client: remote,
    ...(application === undefined ? {} : { appName: application }),
    ...(user === undefined ? {} : { effectiveUsers: [{ user, db: "admin" }] }),
    active: running !== undefined,
    currentOpTime: new Date().toISOString(),
    ...(running
      ? {
          opid: running.id,
          secs_running: Long.fromNumber(Math.floor(microseconds / 1e6)),
          microsecs_running: Long.fromNumber(microseconds),
          op: KINDS[running.name] ?? "command",
          ...commandOf(running),
          ...(running.isKilled ? { killPending: true } : {}),
        }
      : { op: "none", ns: "", command: {} }),
  };
}

function commandOf({ name, database, bytes }: Operation): { ns: string; command: Record<string, unknown> } {
  const [first] = rawFields(bytes);
  const target = first && stringAt(bytes, first);
  const ns = `${database}.${target ?? (name === "aggregate" ? "$cmd.aggregate" : "$cmd")}`;
  if (SECRET.test(name)) return { ns, command: { [name]: 1, $db: database } };
  if (bytes.length > SHOWN_BYTES_MAX) return { ns, command: { [name]: target ?? 1, $truncated: `${bytes.length} bytes`, $db: database } };
  try {
    const command = deserialize(bytes, { promoteValues: false });
    return { ns: name === "getMore" ? `${database}.${String(command["collection"])}` : ns, command };
  } catch {
    // The command cannot be read, and is about to be refused.
    return { ns, command: { [name]: target ?? 1, $db: database } };
  }
}
