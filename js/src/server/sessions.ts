// Tracks which session has opened which cursor, so that the end of a session ends its cursors.

import { rawFields, stringAt, viewOf, type RawField } from "./raw.js";

/** Maximum number of known sessions. Cursors of forgotten sessions end by themselves, ten minutes after their last use. */
const SESSIONS_MAX = 10_000;
/** Maximum number of known cursors of a session. */
const CURSORS_MAX = 1000;

/** An open cursor. */
export interface OpenCursor {
  database: string;
  collection: string;
  id: bigint;
}

/** The cursors of sessions. A session without cursors is not known. */
export class Sessions {
  readonly #cursors = new Map<string, Map<bigint, OpenCursor>>();

  /** Number of open cursors, over all sessions. */
  get cursors(): number {
    let count = 0;
    for (const open of this.#cursors.values()) count += open.size;
    return count;
  }

  /** Reads from a reply which cursor the command has opened or ended. `more` is the id in a `getMore`. */
  note(session: string, database: string, reply: Uint8Array, more?: bigint): void {
    const cursor = cursorOf(reply);
    // A getMore that fails has also ended its cursor.
    if (more !== undefined && cursor?.id !== more) this.forget(session, more);
    if (!cursor || cursor.id === 0n) return;
    let open = this.#cursors.get(session);
    if (!open) {
      this.#cursors.set(session, (open = new Map()));
      if (this.#cursors.size > SESSIONS_MAX) this.#cursors.delete(this.#cursors.keys().next().value!);
    }
    if (open.size === CURSORS_MAX) open.delete(open.keys().next().value!);
    open.set(cursor.id, { database, collection: cursor.ns.slice(database.length + 1), id: cursor.id });
  }

  /** Ends a session, or all of them. Returns the cursors that were open. */
  end(session?: string): OpenCursor[] {
    const ended = session === undefined ? [...this.#cursors.values()] : [this.#cursors.get(session) ?? new Map<bigint, OpenCursor>()];
    if (session === undefined) this.#cursors.clear();
    else this.#cursors.delete(session);
    return ended.flatMap((open) => [...open.values()]);
  }

  /** A cursor of a session has ended. */
  forget(session: string, id: bigint): void {
    const open = this.#cursors.get(session);
    if (open?.delete(id) && open.size === 0) this.#cursors.delete(session);
  }
}

/** A session by its id, from `lsid` of a command. */
export function sessionOf(bytes: Uint8Array, lsid: RawField): string | undefined {
  if (lsid.type !== 3) return undefined;
  const document = bytes.subarray(lsid.start, lsid.end);
  for (const { name, type, start, end } of rawFields(document)) if (name === "id" && type === 5) return sessionName(document.subarray(start + 5, end));
  return undefined;
}

/** The session of a command, if it has one. */
export function sessionOfCommand(bytes: Uint8Array): string | undefined {
  for (const field of rawFields(bytes)) if (field.name === "lsid") return sessionOf(bytes, field);
  return undefined;
}

/** The bytes of a session's id as a key. */
export function sessionName(id: Uint8Array): string {
  return Buffer.from(id.buffer, id.byteOffset, id.length).toString("base64");
}

/** The cursor of a reply. */
function cursorOf(reply: Uint8Array): { id: bigint; ns: string } | undefined {
  for (const field of rawFields(reply)) {
    if (field.name !== "cursor" || field.type !== 3) continue;
    const cursor = reply.subarray(field.start, field.end);
    let id: bigint | undefined;
    let ns: string | undefined;
    for (const inner of rawFields(cursor)) {
      if (inner.name === "id" && inner.type === 18) id = viewOf(cursor).getBigInt64(inner.start, true);
      if (inner.name === "ns") ns = stringAt(cursor, inner);
      if (id !== undefined && ns !== undefined) return { id, ns };
    }
  }
  return undefined;
}
