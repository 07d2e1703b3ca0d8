// One client: its messages one after the other, each answered before the next is read.

import type { Socket } from "node:net";
import { compressed, decompressed } from "./compression.js";
import { ProtocolError } from "./errors.js";
import { Frames } from "./frames.js";
import { readMessage, writeReply, type Request } from "./messages.js";
import { Scratch } from "./scratch.js";
import type { Client, Dispatcher } from "./dispatch.js";

/** Bytes of the largest message, as hello tells it. */
export const MESSAGE_BYTES_MAX = 48_000_000;
/** Bytes of a message of a client that has not authenticated yet, where that is needed: a hello or a step of SCRAM. */
const STRANGER_BYTES_MAX = 65_536;
/** How long a client that has not authenticated may rest. Drivers watch a server by such connections, and ask every few seconds. */
const STRANGER_REST_MS = 300_000;
/** Bytes that a client must send or take in a second, on average, once it has taken its time to stall. */
const RATE_MIN = 8192;

export interface Traffic {
  bytesIn: number;
  bytesOut: number;
}

/** What the connections of a server share. */
export interface Limits {
  /** Bytes that have gone through all of them. */
  readonly traffic: Traffic;
  /** Bytes that they hold together of messages that are not complete. */
  held: number;
  readonly heldMax: number;
  /** How long nothing may come of a message that has begun, or of the first one, and nothing be taken of a reply. */
  readonly stallMS: number;
}

/** Talks with a client until it goes. Never rejects. */
export async function converse(socket: Socket, client: Client, dispatcher: Dispatcher, limits: Limits): Promise<void> {
  const conversation = new Conversation(socket, client, dispatcher, limits);
  try {
    await conversation.run();
    // What was written is still on its way.
    socket.setTimeout(limits.stallMS);
    socket.end(() => socket.destroy());
  } catch (error) {
    socket.destroy();
    if (error instanceof ProtocolError) dispatcher.log(`${client.remote}: ${error.message}`);
    // Those of the network have a code, and there are many.
    else if ((error as { code?: unknown }).code === undefined) dispatcher.log(`${client.remote}: ${(error as Error).stack ?? String(error)}`);
  } finally {
    conversation.end();
  }
}

class Conversation {
  readonly #socket: Socket;
  readonly #client: Client;
  readonly #dispatcher: Dispatcher;
  readonly #limits: Limits;
  readonly #scratch = new Scratch();
  readonly #frames = new Frames(this.#scratch);
  /** Bytes that the limits know of. */
  #counted = 0;
  /** When the message began that has not come completely. */
  #began: number | undefined;
  #hasSpoken = false;
  #isAnswering = false;
  /** Nothing more comes. */
  #isOver = false;
  /** Tells the loop that something has come, or that nothing more will. */
  #wake: (() => void) | undefined;

  constructor(socket: Socket, client: Client, dispatcher: Dispatcher, limits: Limits) {
    this.#socket = socket;
    this.#client = client;
    this.#dispatcher = dispatcher;
    this.#limits = limits;
    const over = (): void => {
      this.#isOver = true;
      // The command that runs may be for nobody.
      if (this.#isAnswering) void dispatcher.gone(client);
      this.#wake?.();
    };
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 60_000);
    socket.on("timeout", () => socket.destroy());
    socket.on("error", () => socket.destroy());
    socket.on("end", over);
    socket.on("close", over);
    socket.on("data", (chunk: Uint8Array) => {
      this.#frames.push(chunk);
      limits.traffic.bytesIn += chunk.length;
      // A client that sends more while it waits has to wait with it. What stands still is read, so that its end is noticed.
      if (this.#isAnswering) socket.pause();
      else this.#wake?.();
    });
    socket.setTimeout(limits.stallMS);
  }

  async run(): Promise<void> {
    const { stallMS } = this.#limits;
    for (;;) {
      this.#count();
      const message = this.#frames.next(this.#bytesMax);
      if (message) {
        this.#began = undefined;
        this.#hasSpoken = true;
        this.#count();
        // A command takes the time that it takes.
        this.#socket.setTimeout(0);
        this.#isAnswering = true;
        const isTaken = await this.#answer(message);
        this.#isAnswering = false;
        this.#scratch.release();
        if (!isTaken) return;
        continue;
      }
      if (this.#isOver) return;
      if (this.#frames.held > 0) {
        this.#socket.setTimeout(stallMS);
        this.#checkRate();
      } else if (this.#hasSpoken && this.#dispatcher.isStranger(this.#client)) {
        this.#socket.setTimeout(STRANGER_REST_MS);
      }
      this.#socket.resume();
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
  }

  /** Gives back what is held. */
  end(): void {
    this.#limits.held -= this.#counted;
    this.#counted = 0;
  }

  get #bytesMax(): number {
    return this.#dispatcher.isStranger(this.#client) ? STRANGER_BYTES_MAX : MESSAGE_BYTES_MAX;
  }

  #count(): void {
    const { held } = this.#frames;
    this.#limits.held += held - this.#counted;
    this.#counted = held;
    if (this.#limits.held > this.#limits.heldMax) throw new ProtocolError("Too many messages are incomplete");
  }

  /** Whoever sends a byte now and then does not stall, and holds memory all the same. */
  #checkRate(): void {
    this.#began ??= performance.now();
    const seconds = (performance.now() - this.#began - this.#limits.stallMS) / 1000;
    if (this.#frames.held < seconds * RATE_MIN) throw new ProtocolError("A message comes too slowly");
  }

  /** Whether the client may go on: it has taken its reply, or wants none. */
  async #answer(given: Uint8Array): Promise<boolean> {
    const { message, compressor } = decompressed(given, this.#bytesMax);
    const request = readMessage(message, this.#scratch);
    const reply = await this.#dispatcher.run(request, this.#client);
    if (request.isSilent) return true;
    return !this.#socket.destroyed && this.#send(request, reply, compressor);
  }

  /** Resolves when what was written can be forgotten. */
  async #send(request: Request, reply: Uint8Array, compressor: number | undefined): Promise<boolean> {
    const socket = this.#socket;
    const parts = writeReply(request, reply);
    socket.cork();
    let isTaken = true;
    for (const part of compressor === undefined ? parts : compressed(parts, compressor)) {
      this.#limits.traffic.bytesOut += part.length;
      isTaken = socket.write(part);
    }
    socket.uncork();
    if (!isTaken || socket.writableNeedDrain) await this.#drained(reply.length);
    return !socket.destroyed;
  }

  /** Waits until the client has taken what was written, or is gone. */
  #drained(bytes: number): Promise<void> {
    const socket = this.#socket;
    const { stallMS } = this.#limits;
    return new Promise((resolve) => {
      const tooSlow = setTimeout(() => socket.destroy(), stallMS + (bytes / RATE_MIN) * 1000);
      const end = (): void => {
        clearTimeout(tooSlow);
        socket.off("drain", end);
        socket.off("close", end);
        socket.setTimeout(0);
        resolve();
      };
      socket.setTimeout(stallMS);
      socket.on("drain", end);
      socket.on("close", end);
    });
  }
}
