// One client connection. Its messages are handled one after the other, each answered before the next is read.

import type { Socket } from "node:net";
import { compressed, decompressed } from "./compression.js";
import { ProtocolError } from "./errors.js";
import { Frames } from "./frames.js";
import { readMessage, writeReply, type Request } from "./messages.js";
import { Scratch } from "./scratch.js";
import type { Client, Dispatcher } from "./dispatch.js";

/** Maximum size of a message in bytes, as hello announces it. */
export const MESSAGE_BYTES_MAX = 48_000_000;
/** Maximum size of a message in bytes before a required authentication: enough for a hello or a step of SCRAM. */
const STRANGER_BYTES_MAX = 65_536;
/** How long a client that has not authenticated may be idle. Drivers monitor a server over such connections, and send a command every few seconds. */
const STRANGER_REST_MS = 300_000;
/** Minimum average rate, in bytes per second, at which a client must send or read after the allowed stall. */
const RATE_MIN = 8192;

export interface Traffic {
  bytesIn: number;
  bytesOut: number;
}

/** What the connections of a server share. */
export interface Limits {
  /** Total bytes over all connections. */
  readonly traffic: Traffic;
  /** Total bytes of incomplete messages over all connections. */
  held: number;
  readonly heldMax: number;
  /** How long a client may pause within a message, before its first one, or while it takes a reply. */
  readonly stallMS: number;
}

/** Serves a client until it disconnects. Never rejects. */
export async function converse(socket: Socket, client: Client, dispatcher: Dispatcher, limits: Limits): Promise<void> {
  const conversation = new Conversation(socket, client, dispatcher, limits);
  try {
    await conversation.run();
    // The last replies are still being sent.
    socket.setTimeout(limits.stallMS);
    socket.end(() => socket.destroy());
  } catch (error) {
    socket.destroy();
    if (error instanceof ProtocolError) dispatcher.log(`${client.remote}: ${error.message}`);
    // Errors of the network have a code. They are frequent, so they are not logged.
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
  /** Bytes of this connection that are included in `limits.held`. */
  #counted = 0;
  /** The time at which the incomplete message began. */
  #began: number | undefined;
  #hasSpoken = false;
  #isAnswering = false;
  /** No more data will arrive. */
  #isOver = false;
  /** Wakes the loop when data has arrived, or when no more will arrive. */
  #wake: (() => void) | undefined;

  constructor(socket: Socket, client: Client, dispatcher: Dispatcher, limits: Limits) {
    this.#socket = socket;
    this.#client = client;
    this.#dispatcher = dispatcher;
    this.#limits = limits;
    const over = (): void => {
      this.#isOver = true;
      // The client may no longer need the result of the running command.
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
      // Pause a client that sends more while a command runs. A silent socket is not paused, so that its end is noticed.
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
        // A running command has no timeout.
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

  /** Subtracts this connection from the limits. */
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

  /** Refuses slow messages: a client that sends a byte now and then does not stall, but still holds memory. */
  #checkRate(): void {
    this.#began ??= performance.now();
    const seconds = (performance.now() - this.#began - this.#limits.stallMS) / 1000;
    if (this.#frames.held < seconds * RATE_MIN) throw new ProtocolError("A message comes too slowly");
  }

  /** Answers a message. Resolves to true if the client has taken its reply, or wants none. */
  async #answer(given: Uint8Array): Promise<boolean> {
    const { message, compressor } = decompressed(given, this.#bytesMax);
    const request = readMessage(message, this.#scratch);
    const reply = await this.#dispatcher.run(request, this.#client);
    if (request.isSilent) return true;
    return !this.#socket.destroyed && this.#send(request, reply, compressor);
  }

  /** Sends a reply. Resolves when its memory can be reused. */
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

  /** Waits until the client has taken the written bytes, or is gone. */
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
