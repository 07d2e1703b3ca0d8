// Messages of the wire protocol, whole, in pieces and damaged, and the server that reads them, over a storage in memory.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { deserialize, serialize, type Document } from "bson";
import { serve, type ServeOptions, type Server } from "timepail/server";
import type { HostStorage } from "timepail";
import { MemoryStorage } from "timepail/testing";
import { compressed, decompressed } from "../src/server/compression.ts";
import { crc32c } from "../src/server/crc32c.ts";
import { ProtocolError } from "../src/server/errors.ts";
import { Frames } from "../src/server/frames.ts";
import { OP_MSG, readMessage as read, writeReply } from "../src/server/messages.ts";
import { Scratch } from "../src/server/scratch.ts";

const readMessage = (bytes: Uint8Array): ReturnType<typeof read> => read(bytes, new Scratch());

/** A message: the header, followed by `parts`. */
function message(opcode: number, ...parts: Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const head = Buffer.alloc(16);
  head.writeInt32LE(16 + body.length, 0);
  head.writeInt32LE(7, 4);
  head.writeInt32LE(opcode, 12);
  return Buffer.concat([head, body]);
}

const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
};

/** OP_MSG with a command, and with sequences of documents beside it. */
function msg(command: Document, { flags = 0, sequences = {} }: { flags?: number; sequences?: Record<string, Document[]> } = {}): Buffer {
  const sections = Object.entries(sequences).map(([name, documents]) => {
    const content = Buffer.concat([Buffer.from(`${name}\0`), ...documents.map((document) => serialize(document))]);
    return Buffer.concat([Buffer.from([1]), int32(content.length + 4), content]);
  });
  const whole = message(OP_MSG, int32(flags), ...sections, Buffer.from([0]), serialize(command));
  if (!(flags & 1)) return whole;
  whole.writeInt32LE(whole.length + 4, 0);
  return Buffer.concat([whole, int32(crc32c(whole))]);
}

test("the checksum is CRC-32C", () => {
  assert.equal(crc32c(Buffer.from("123456789")), 0xe3069283);
  assert.equal(crc32c(Buffer.alloc(32)), 0x8a9136aa);
  const bytes = Buffer.from("the quick brown fox jumps over the lazy dog");
  for (let at = 0; at <= bytes.length; at++) assert.equal(crc32c(bytes.subarray(at), crc32c(bytes.subarray(0, at))), crc32c(bytes));
});

test("messages are the same however the stream is cut", () => {
  const sent = [msg({ ping: 1, $db: "a" }), msg({ ping: 2, $db: "a" }), msg({ text: "x".repeat(1000), $db: "a" })];
  const stream = Buffer.concat(sent);
  for (const size of [1, 3, 15, 16, 17, 100, 1000, stream.length]) {
    const frames = new Frames(new Scratch());
    const received: Buffer[] = [];
    for (let at = 0; at < stream.length; at += size) {
      frames.push(stream.subarray(at, at + size));
      for (let next; (next = frames.next(10_000)); ) received.push(Buffer.from(next));
    }
    assert.deepEqual(received, sent, `${size}`);
    assert.equal(frames.held, 0);
  }
});

test("a length that cannot be is refused when the header has come", () => {
  for (const [length, most] of [[15, 100], [101, 100], [-1, 100], [0x7fffffff, 48_000_000]] as const) {
    const frames = new Frames(new Scratch());
    frames.push(Buffer.concat([int32(length), Buffer.alloc(12)]));
    assert.throws(() => frames.next(most), ProtocolError, `${length}`);
  }
});

test("document sequences become arrays of the command", () => {
  const documents = Array.from({ length: 1234 }, (_, i) => ({ i }));
  const { command, isSilent } = readMessage(msg({ insert: "c", $db: "a" }, { sequences: { documents, others: [] }, flags: 2 }));
  assert.deepEqual(deserialize(command), { insert: "c", $db: "a", documents, others: [] });
  assert.equal(isSilent, true);
  assert.deepEqual([...Object.keys(deserialize(command)["documents"])].at(-1), "1233");
});

test("memory that was used before changes no message", () => {
  const scratch = new Scratch();
  const large = scratch.take(100_000).fill(255);
  scratch.release();
  const documents = Array.from({ length: 120 }, (_, i) => ({ i }));
  const { command } = read(msg({ insert: "c", $db: "a" }, { sequences: { documents, more: documents } }), scratch);
  assert.equal(command.buffer, large.buffer);
  assert.deepEqual(Buffer.from(command), Buffer.from(serialize({ insert: "c", $db: "a", documents, more: documents })));
});

test("a checksum is checked, and answered in kind", () => {
  const whole = msg({ ping: 1, $db: "a" }, { flags: 1 });
  const request = readMessage(whole);
  assert.equal(request.hasChecksum, true);
  const reply = Buffer.concat(writeReply(request, serialize({ ok: 1 })));
  assert.equal(reply.readUInt32LE(reply.length - 4), crc32c(reply.subarray(0, -4)));
  assert.equal(reply.readInt32LE(0), reply.length);
  assert.equal(reply.readInt32LE(8), 7);
  whole[30]! ^= 1;
  assert.throws(() => readMessage(whole), /checksum/);
});

test("what is no message is refused", () => {
  const wrong: [string, Buffer][] = [
    ["opcode", message(2005, int32(0))],
    ["flag", msg({ ping: 1 }, { flags: 4 })],
    ["section", message(OP_MSG, int32(0), Buffer.from([2]), serialize({ ping: 1 }))],
    ["two commands", message(OP_MSG, int32(0), Buffer.from([0]), serialize({ ping: 1 }), Buffer.from([0]), serialize({ ping: 1 }))],
    ["no command", message(OP_MSG, int32(0), Buffer.from([1]), int32(8), Buffer.from("abc\0"))],
    ["field twice", msg({ documents: 1 }, { sequences: { documents: [] } })],
    ["sequence twice", message(OP_MSG, int32(0), ...[0, 0].flatMap(() => [Buffer.from([1]), int32(6), Buffer.from("a\0")]), Buffer.from([0]), serialize({ ping: 1 }))],
    ["length of the document", message(OP_MSG, int32(0), Buffer.from([0]), int32(1000), Buffer.alloc(20))],
    ["name without an end", message(OP_MSG, int32(0), Buffer.from([1]), int32(8), Buffer.from("abcd"), Buffer.from([0]), serialize({ ping: 1 }))],
    ["too short", message(OP_MSG, int32(0))],
  ];
  for (const [name, bytes] of wrong) assert.throws(() => readMessage(bytes), ProtocolError, name);
});

test("damaged messages are read or refused, and nothing else", () => {
  const whole = msg({ insert: "c", $db: "a" }, { sequences: { documents: [{ a: 1 }, { b: "text" }] } });
  let seed = 1;
  const random = (below: number): number => (seed = (seed * 48_271) % 0x7fffffff) % below;
  let refused = 0;
  for (let i = 0; i < 20_000; i++) {
    const damaged = Buffer.from(whole);
    for (let n = 0; n <= random(3); n++) damaged[12 + random(damaged.length - 12)] = random(256);
    try {
      readMessage(damaged);
    } catch (error) {
      assert.ok(error instanceof ProtocolError, String(error));
      refused++;
    }
  }
  assert.ok(refused > 1000 && refused < 20_000);
});

test("a compressed message is what it was", () => {
  const whole = msg({ ping: 1, text: "x".repeat(10_000), $db: "a" });
  for (const compressor of [0, 2]) {
    const bytes = Buffer.concat(compressed([whole.subarray(0, 20), whole.subarray(20)], compressor));
    assert.equal(bytes.readInt32LE(0), bytes.length);
    const back = decompressed(bytes, 48_000_000);
    assert.deepEqual(Buffer.from(back.message), whole);
    assert.equal(back.compressor, compressor);
  }
});

test("a compressed message that is larger than it says, or larger than allowed, is refused", () => {
  const inside = (opcode: number, length: number, compressor: number, body: Uint8Array): Buffer => message(2012, int32(opcode), int32(length), Buffer.from([compressor]), body);
  const bomb = deflateSync(Buffer.alloc(10_000_000));
  const wrong = [
    inside(OP_MSG, 100, 2, bomb), // it would be 10 MB
    inside(OP_MSG, 10_000_000, 2, bomb), // more than is allowed below
    inside(OP_MSG, 20_000, 2, deflateSync(Buffer.alloc(100))),
    inside(OP_MSG, -1, 2, bomb),
    inside(2012, 100, 0, Buffer.alloc(100)), // compressed twice
    inside(OP_MSG, 100, 3, Buffer.alloc(100)), // zstd, which was not offered
    inside(OP_MSG, 100, 2, Buffer.from("no deflate")),
  ];
  for (const [at, bytes] of wrong.entries()) assert.throws(() => decompressed(bytes, 1_000_000), ProtocolError, `${at}`);
});

// ------------------------------------------------------------------------------------------------------- the server

/** Runs a test with a server over a storage in memory. */
async function withServer(options: ServeOptions, work: (server: Server) => Promise<void>): Promise<void> {
  const server = await serve({ storage: new MemoryStorage(), database: "plant", port: 0, ...options });
  try {
    await work(server);
  } finally {
    await server.close();
  }
}

/** A socket, and the replies that come on it, in order. */
async function opened(server: Server): Promise<{ socket: Socket; replies: AsyncIterator<Buffer> }> {
  const socket = connect(server.port, server.host);
  await once(socket, "connect");
  return { socket, replies: messages(socket) };
}

async function* messages(socket: Socket): AsyncGenerator<Buffer, void> {
  const frames = new Frames(new Scratch());
  for await (const chunk of socket) {
    frames.push(chunk as Buffer);
    for (let next; (next = frames.next(100_000_000)); ) yield Buffer.from(next);
  }
}

const documentOf = (reply: Buffer): Document => deserialize(reply.subarray(21));

async function ask(server: Server, ...commands: Document[]): Promise<Document[]> {
  const { socket, replies } = await opened(server);
  const found: Document[] = [];
  for (const command of commands) {
    socket.write(msg({ ...command, $db: command["$db"] ?? "plant" }));
    found.push(documentOf((await replies.next()).value as Buffer));
  }
  socket.destroy();
  return found;
}

/** Resolves when the server has ended the connection. */
const ended = (socket: Socket): Promise<unknown> => new Promise((resolve) => socket.resume().on("error", () => {}).once("close", resolve));

const create = { create: "c", timeseries: { timeField: "at", metaField: "m" } };

test("commands are answered in the order in which they came, those without a reply included", () =>
  withServer({}, async (server) => {
    await ask(server, create);
    const { socket, replies } = await opened(server);
    const insert = (i: number): Buffer => msg({ insert: "c", $db: "plant" }, { flags: 2, sequences: { documents: [{ at: new Date(i), i }] } });
    const all = Array.from({ length: 50 }, (_, i) => Buffer.concat([insert(i), msg({ count: "c", $db: "plant" })]));
    socket.write(Buffer.concat(all));
    for (let i = 0; i < 50; i++) assert.equal(documentOf((await replies.next()).value as Buffer)["n"], i + 1);
    socket.destroy();
  }));

test("a message that comes byte by byte is answered", () =>
  withServer({}, async (server) => {
    const { socket, replies } = await opened(server);
    for (const byte of msg({ ping: 1, $db: "admin" }, { flags: 1 })) {
      socket.write(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    assert.equal(deserialize(((await replies.next()).value as Buffer).subarray(21, -4))["ok"], 1);
    socket.destroy();
  }));

test("a document that is too large is refused, and the connection goes on", () =>
  withServer({}, async (server) => {
    const { socket, replies } = await opened(server);
    const text = "x".repeat(17_000_000);
    const large = [msg({ insert: "c", documents: [{ at: new Date(0), text }], $db: "plant" }), msg({ insert: "c", $db: "plant" }, { sequences: { documents: [{ at: new Date(0), text }] } })];
    for (const bytes of [...large, msg({ ping: 1, $db: "plant" })]) socket.write(bytes);
    const codes = [];
    for (let i = 0; i < 3; i++) codes.push(documentOf((await replies.next()).value as Buffer)["code"]);
    assert.deepEqual(codes, [10334, 10334, undefined]);
    socket.destroy();
  }));

test("the legacy hello is answered, and other commands of its kind are refused", () =>
  withServer({}, async (server) => {
    const query = (command: Document): Buffer => message(2004, int32(0), Buffer.from("admin.$cmd\0"), int32(0), int32(-1), serialize(command));
    const { socket, replies } = await opened(server);
    const answered = async (command: Document): Promise<Document> => {
      socket.write(query(command));
      const reply = (await replies.next()).value as Buffer;
      assert.equal(reply.readInt32LE(12), 1);
      return deserialize(reply.subarray(36));
    };
    const { ismaster, maxWireVersion, helloOk } = await answered({ isMaster: 1, helloOk: true });
    assert.deepEqual([ismaster, maxWireVersion, helloOk], [true, 21, true]);
    assert.equal((await answered({ $query: { hello: 1 }, $readPreference: { mode: "nearest" } }))["isWritablePrimary"], true);
    assert.equal((await answered({ find: "c" }))["code"], 352);
    socket.destroy();
  }));

test("a client that sends no message is cut off, and the others go on", () =>
  withServer({ incompleteBytesMax: 1_000_000 }, async (server) => {
    const whole = msg({ ping: 1, $db: "admin" }, { flags: 1 });
    const damaged = Buffer.from(whole);
    damaged[25]! ^= 1;
    const tooLong = Buffer.concat([int32(48_000_001), Buffer.alloc(12)]);
    const tooMuch = Buffer.concat([int32(40_000_000), Buffer.alloc(2_000_000)]);
    const { socket: good, replies } = await opened(server);
    for (const bytes of [damaged, tooLong, tooMuch, message(2005, int32(0)), Buffer.from("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), msg({ ping: 1, $db: "admin" }, { flags: 8 })]) {
      const { socket } = await opened(server);
      socket.write(bytes);
      await ended(socket);
      good.write(whole);
      assert.equal((await replies.next()).done, false);
    }
    good.destroy();
  }));

test("a client that stalls, or goes in the middle of a message, leaves nothing behind", () =>
  withServer({ stallTimeoutMS: 1000 }, async (server) => {
    const whole = msg({ ping: 1, $db: "admin" });
    // One client sends nothing, one stops in the middle of a message, and one is idle after a command, which is allowed.
    const silent = await opened(server);
    const half = await opened(server);
    half.socket.write(whole.subarray(0, 20));
    const resting = await opened(server);
    resting.socket.write(whole);
    await resting.replies.next();
    await Promise.all([ended(silent.socket), ended(half.socket)]);
    while (server.connections > 1) await new Promise(setImmediate);
    const gone = await opened(server);
    gone.socket.write(whole.subarray(0, 20), () => gone.socket.destroy());
    await once(gone.socket, "close");
    resting.socket.write(whole);
    assert.equal(documentOf((await resting.replies.next()).value as Buffer)["ok"], 1);
    resting.socket.destroy();
  }));

test("a client that sends a byte now and then is cut off, although it never stalls", () =>
  withServer({ stallTimeoutMS: 100 }, async (server) => {
    const { socket } = await opened(server);
    const closed = ended(socket);
    let isClosed = false;
    void closed.then(() => (isClosed = true));
    // The message has a megabyte. The client sends one byte of it per ten replies to another client.
    const other = await opened(server);
    socket.write(Buffer.concat([int32(1_000_000), int32(1), int32(0), int32(OP_MSG)]));
    while (!isClosed) {
      socket.write(Buffer.alloc(1));
      for (let i = 0; i < 10; i++) {
        other.socket.write(msg({ ping: 1, $db: "plant" }));
        await other.replies.next();
      }
    }
    other.socket.destroy();
  }));

test("a client that says it sends no more gets the replies to what it has sent", () =>
  withServer({}, async (server) => {
    const { socket, replies } = await opened(server);
    socket.end(Buffer.concat([msg({ ...create, $db: "plant" }), msg({ count: "c", $db: "plant" }), msg({ ping: 1, $db: "plant" })]));
    for (let i = 0; i < 3; i++) assert.equal(documentOf((await replies.next()).value as Buffer)["ok"], 1);
    assert.equal((await replies.next()).done, true);
  }));

test("what a client has sent without waiting for replies is stored, although it is gone", () =>
  withServer({}, async (server) => {
    await ask(server, create);
    const { socket } = await opened(server);
    const insert = (i: number): Buffer => msg({ insert: "c", documents: [{ at: new Date(i), text: "x".repeat(10_000) }], $db: "plant" }, { flags: 2 });
    socket.end(Buffer.concat(Array.from({ length: 50 }, (_, i) => insert(i))));
    await ended(socket);
    assert.equal((await ask(server, { count: "c" }))[0]!["n"], 50);
  }));

test("a client that does not take its replies is cut off", () =>
  withServer({ stallTimeoutMS: 1000 }, async (server) => {
    const rows = Array.from({ length: 20 }, (_, i) => ({ at: new Date(i), text: "x".repeat(500_000) }));
    const [, inserted] = await ask(server, create, { insert: "c", documents: rows.slice(0, 10) }, { insert: "c", documents: rows.slice(10) });
    assert.equal(inserted!["n"], 10);
    const { socket } = await opened(server);
    socket.pause();
    // The replies are more than the buffers on the way can hold.
    for (let i = 0; i < 20; i++) socket.write(msg({ find: "c", batchSize: 20, $db: "plant" }));
    while (server.connections > 0) await new Promise(setImmediate);
    socket.destroy();
  }));

test("a server is refused for other machines without authentication, and with options that it does not know", async () => {
  const storage = new MemoryStorage();
  for (const host of ["0.0.0.0", "::", "192.168.1.7", "example.org"]) await assert.rejects(serve({ storage, host, port: 0 }), /other machines can reach it/, host);
  await assert.rejects(serve({ port: 0 }), /either a file or a storage/);
  await assert.rejects(serve({ storage, auth: true, port: 0 }), /pass an object of users and passwords/);
  await assert.rejects(serve({ storage, prot: 0 } as ServeOptions), /Unknown option "prot"/);
  await withServer({ storage, host: "0.0.0.0", auth: { ada: "secret" } }, async (server) => assert.ok(server.port > 0));
});

test("a command whose inside is no BSON is refused, and the connection goes on", () =>
  withServer({}, async (server) => {
    const { socket, replies } = await opened(server);
    const bytes = msg({ hello: 1, client: { application: { name: "x" } }, $db: "admin" });
    // Damage the type of the field `name`, which is in a nested document.
    bytes[bytes.indexOf("name\0") - 1] = 99;
    for (const each of [bytes, msg({ find: "c", $db: "plant" }), msg({ ping: 1, $db: "admin" })]) socket.write(each);
    const codes = [];
    for (let i = 0; i < 3; i++) codes.push(documentOf((await replies.next()).value as Buffer)["code"]);
    assert.deepEqual(codes, [22, undefined, undefined]);
    socket.destroy();
  }));

test("what a client asks is killed when it goes, and what it writes is not", async () => {
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  const memory = new MemoryStorage();
  // The storage answers only when the client is gone.
  const slow: HostStorage = {
    getMany: async (keys) => (await released, memory.getMany(keys)),
    scan: async (ranges, page) => (await released, memory.scan(ranges, page)),
    commit: async (changes) => (await released, memory.commit(changes)),
  };
  await withServer({ storage: (name) => (name === "plant" ? slow : new MemoryStorage()) }, async (server) => {
    const commands = [{ aggregate: "c", pipeline: [], cursor: {} }, { aggregate: "c", pipeline: [{ $out: "d" }], cursor: {} }, { count: "c" }, { delete: "c", deletes: [{ q: {}, limit: 0 }] }];
    const sockets = [];
    for (const command of commands) {
      const { socket } = await opened(server);
      sockets.push(ended(socket));
      socket.end(msg({ ...command, $db: "plant" }));
      await once(socket, "finish");
    }
    // The server notices the closed connections before it receives these commands.
    const found = await ask(server, ...Array.from({ length: 3 }, () => ({ currentOp: 1, ns: /^plant/, $db: "admin" })));
    const killed = found.at(-1)!["inprog"].map(({ command, killPending = false }: Document) => [Object.keys(command)[0], command.pipeline?.length, killPending]);
    assert.deepEqual(killed, [["aggregate", 0, true], ["aggregate", 1, false], ["count", undefined, true], ["delete", undefined, false]]);
    release();
    await Promise.all(sockets);
  });
});

test("a stranger may send only what authentication takes", () =>
  withServer({ auth: { ada: "secret" } }, async (server) => {
    const [hello, find, buildInfo] = await ask(server, { hello: 1, saslSupportedMechs: "admin.nobody" }, { find: "c" }, { buildInfo: 1 });
    assert.deepEqual(hello!["saslSupportedMechs"], ["SCRAM-SHA-256"]);
    assert.equal(find!["code"], 13);
    assert.equal(buildInfo!["ok"], 1);
    const { socket } = await opened(server);
    socket.write(msg({ ping: 1, text: "x".repeat(100_000), $db: "admin" }));
    await ended(socket);
  }));

test("an attempt to authenticate says the same of a wrong password and of a name that nobody has", () =>
  withServer({ auth: { ada: "secret" } }, async (server) => {
    const tried = async (name: string): Promise<Document[]> => {
      const { socket, replies } = await opened(server);
      const said = async (command: Document): Promise<Document> => {
        socket.write(msg({ ...command, $db: "admin" }));
        return documentOf((await replies.next()).value as Buffer);
      };
      const first = await said({ saslStart: 1, mechanism: "SCRAM-SHA-256", payload: Buffer.from(`n,,n=${name},r=abc`) });
      const text = String(first["payload"].toString());
      const [, nonce] = /r=([^,]+)/.exec(text)!;
      const last = await said({ saslContinue: 1, conversationId: 1, payload: Buffer.from(`c=biws,r=${nonce},p=${Buffer.alloc(32).toString("base64")}`) });
      socket.destroy();
      return [{ shape: text.replace(/[A-Za-z0-9+/=]{20,}/g, "…").replace(/r=[^,]*/, "") }, last];
    };
    const [known, unknown] = await Promise.all([tried("ada"), tried("bob")]);
    assert.deepEqual(known, unknown);
    assert.equal(known[1]!["code"], 18);
  }));

test("a database that the storage is not for is empty, and takes nothing", () =>
  withServer({}, async (server) => {
    const [, listed, made, databases] = await ask(server, create, { listCollections: 1, $db: "other" }, { ...create, $db: "other" }, { listDatabases: 1, $db: "admin" });
    assert.deepEqual(listed!["cursor"].firstBatch, []);
    assert.equal(made!["ok"], 0);
    assert.match(made!["errmsg"], /no storage for the database "other"/);
    assert.deepEqual(databases!["databases"].map(({ name }: Document) => name), ["plant"]);
  }));

test("a storage for each name gives many databases", async () => {
  const storages = new Map(["one", "two"].map((name) => [name, new MemoryStorage()]));
  await withServer({ storage: (name) => storages.get(name) }, async (server) => {
    const [, , one, two, invalid] = await ask(
      server,
      { ...create, $db: "one" },
      { insert: "c", documents: [{ at: new Date(0) }], $db: "one" },
      { count: "c", $db: "one" },
      { count: "c", $db: "two" },
      { count: "c", $db: "a b" },
    );
    assert.deepEqual([one!["n"], two!["n"], invalid!["code"]], [1, 0, 73]);
  });
});

test("a hundred names that are asked for once do not stay open, and lose nothing", async () => {
  const storages = new Map<string, MemoryStorage>();
  const storage = (name: string): MemoryStorage => storages.get(name) ?? storages.set(name, new MemoryStorage()).get(name)!;
  await withServer({ storage }, async (server) => {
    const names = Array.from({ length: 100 }, (_, i) => `d${i}`);
    await Promise.all(names.map((name) => ask(server, { ...create, $db: name }, { insert: "c", documents: [{ at: new Date(0) }], $db: name })));
    for (const name of names) assert.equal((await ask(server, { count: "c", $db: name }))[0]!["n"], 1, name);
  });
});

test("what only a member of a replica set can promise is refused", () =>
  withServer({}, async (server) => {
    const codes = (
      await ask(
        server,
        { find: "c", readConcern: { level: "linearizable" } },
        { find: "c", readConcern: { level: "fast" } },
        { find: "c", readConcern: { level: "majority" } },
        { insert: "c", documents: [{}], writeConcern: { w: 3 } },
        { find: "c", txnNumber: 1, startTransaction: true, autocommit: false },
        { find: "c", apiVersion: "2" },
        { collStats: "c", apiVersion: "1", apiStrict: true },
        { replSetGetStatus: 1, $db: "admin" },
        { fly: 1 },
        { find: "c", $db: "" },
      )
    ).map(({ code }) => code as number | undefined);
    assert.deepEqual(codes, [123, 2, undefined, 2, 20, 322, 323, 76, 59, 73]);
  }));

test("a command that comes while the server closes gets no half of a reply", async () => {
  const server = await serve({ storage: new MemoryStorage(), port: 0 });
  const { socket, replies } = await opened(server);
  socket.on("error", () => {});
  socket.write(msg({ ping: 1, $db: "admin" }));
  await replies.next();
  const closing = server.close();
  socket.write(msg({ ping: 1, $db: "admin" }));
  await closing;
  assert.equal(server.connections, 0);
  await server.close();
});
