// A tiny engine in JavaScript for tests of the driver: it keeps documents in arrays and answers insert, find, getMore and so on.

import { deserialize, serialize, type Document, type Long } from "bson";
import { decodeBlock } from "../src/block.ts";
import type { CommandReply, Engine, EngineOptions } from "../src/engine.ts";
import { documentsToBlock } from "../src/pivot.ts";
import { blockToDocuments } from "../src/rows.ts";

export class FakeEngine implements Engine {
  collections = new Map<string, Document[]>();
  cursors = new Map<number, { name: string; rest: Document[] }>();
  /** Every command that came in, in order. */
  commands: Document[] = [];
  options: EngineOptions | undefined;
  closed = 0;
  #nextCursor = 1;
  /** Refuses documents for which it returns a message. */
  refuse: (document: Document) => string | undefined = () => undefined;
  /** Answers in place of the fake if it returns something. */
  intercept: (command: Document) => Document | undefined = () => undefined;

  async run_command(bytes: Uint8Array, payload?: Uint8Array | null): Promise<CommandReply> {
    const command = deserialize(bytes);
    this.commands.push(command);
    await Promise.resolve();
    const answer = this.intercept(command) ?? this.#answer(command, payload ?? undefined);
    const { rows, ...reply } = answer;
    if (rows === undefined) return { reply: serialize(reply) };
    return { reply: serialize(reply), payload: documentsToBlock(rows as Document[])! };
  }

  async close(): Promise<void> {
    this.closed++;
  }

  #answer(command: Document, payload: Uint8Array | undefined): Document {
    const [name, target] = Object.entries(command)[0] as [string, string];
    switch (name) {
      case "insert":
        return this.#insert(target, command, payload);
      case "find": {
        let found = (this.collections.get(target) ?? []).filter((document) => matches(document, command["filter"] as Document));
        found = found.slice((command["skip"] as number | undefined) ?? 0);
        if (command["limit"]) found = found.slice(0, command["limit"] as number);
        return this.#batch(target, found, (command["batchSize"] as number | undefined) ?? 101, "firstBatch", Boolean(command["singleBatch"]));
      }
      case "getMore": {
        const id = Number(target as unknown as Long);
        const cursor = this.cursors.get(id);
        if (!cursor) return { ok: 0, code: 43, codeName: "CursorNotFound", errmsg: `cursor id ${id} not found` };
        this.cursors.delete(id);
        return this.#batch(cursor.name, cursor.rest, (command["batchSize"] as number | undefined) ?? 100_000, "nextBatch", false);
      }
      case "flush":
        return { ok: 1 };
      case "killCursors":
        for (const id of command["cursors"] as unknown[]) this.cursors.delete(Number(id));
        return { ok: 1 };
      case "count":
        return { ok: 1, n: (this.collections.get(target) ?? []).filter((document) => matches(document, (command["query"] as Document) ?? {})).length };
      case "create":
        this.collections.set(target, []);
        return { ok: 1 };
      case "drop":
        this.collections.delete(target);
        return { ok: 1 };
      case "delete": {
        const [{ q, limit }] = command["deletes"] as [{ q: Document; limit: number }];
        const all = this.collections.get(target) ?? [];
        const gone = all.filter((document) => matches(document, q)).slice(0, limit === 0 ? undefined : limit);
        this.collections.set(target, all.filter((document) => !gone.includes(document)));
        return { ok: 1, n: gone.length };
      }
      case "update":
        return { ok: 1, n: 1, nModified: 1 };
      case "listCollections":
        return { ok: 1, cursor: { id: 0, ns: "db.$cmd.listCollections", firstBatch: [...this.collections.keys()].map((each) => ({ name: each, type: "timeseries" })) } };
      case "ping":
      case "foldJournals":
      case "dropDatabase":
        return { ok: 1 };
      default:
        return { ok: 0, code: 59, codeName: "CommandNotFound", errmsg: `no such command: '${name}'` };
    }
  }

  #insert(name: string, command: Document, payload: Uint8Array | undefined): Document {
    const documents = payload ? blockToDocuments(decodeBlock(payload)) : (command["documents"] as Document[]);
    if (documents.length > 100_000) return { ok: 0, code: 16, codeName: "InvalidLength", errmsg: "too many documents" };
    if (!this.collections.has(name)) this.collections.set(name, []);
    const all = this.collections.get(name)!;
    const writeErrors: Document[] = [];
    let n = 0;
    for (const [index, document] of documents.entries()) {
      const errmsg = this.refuse(document);
      if (errmsg === undefined) {
        all.push("meta" in command ? { ...document, meta: command["meta"] as unknown } : document);
        n++;
        continue;
      }
      writeErrors.push({ index, code: 2, errmsg });
      if (command["ordered"] !== false) break;
    }
    return { ok: 1, n, ...(writeErrors.length > 0 ? { writeErrors } : {}) };
  }

  #batch(name: string, found: Document[], size: number, key: string, isLast: boolean): Document {
    const rest = found.slice(size);
    let id = 0;
    if (rest.length > 0 && !isLast) this.cursors.set((id = this.#nextCursor++), { name, rest });
    return { ok: 1, cursor: { id, ns: `db.${name}`, [key]: [] }, rows: found.slice(0, size) };
  }
}

function matches(document: Document, filter: Document): boolean {
  return Object.entries(filter).every(([key, value]) => document[key] === value);
}
