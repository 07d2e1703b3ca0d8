// One client: its messages one after the other, each answered before the next is read.

import type { Socket } from "node:net";
import { compressed, decompressed } from "./compression.js";
import { ProtocolError } from "./errors.js";
import { Frames } from "./frames.js";
import { readMessage, writeReply } from "./messages.js";
import { Scratch } from "./scratch.js";
import type { Client, Dispatcher } from "./dispatch.js";

/** Bytes of the largest message, as hello tells it. */
export const MESSAGE_BYTES_MAX = 48_000_000;
/** Bytes of a message of a client that has not authenticated yet, where that is needed: a hello or a step of SCRAM. */
const STRANGER_BYTES_MAX = 65_536;
/** How long a client that has not authenticated may rest. Drivers watch a server by such connections, and ask every few seconds. */
const STRANGER_REST_MS = 300_000;

/** What the connections of a server share. */
export interface Limits {
  /** Bytes that they hold together of messages that are not complete. */
  held: number;
  readonly heldMax: number;
  /** How long nothing may come of a message that has begun, or of the first one, and nothing be taken of a reply. */
  readonly stallMS: number;
}

/** Talks with a client until it goes. Never rejects. */
export async function converse(socket: Socket, client: Client, dispatcher: Dispatcher, limits: Limits): Promise<void> {
  const scratch = new Scratch();
  const frames = new Frames(scratch);
  let counted = 0;
  const count = (): void => {
    limits.held += frames.held - counted;
    counted = frames.held;
    if (limits.held > limits.heldMax) throw new ProtocolError("Too many messages are incomplete");
  };
  const stalled = (): void => void socket.destroy();
  socket.setNoDelay(true);
  socket.setKeepAlive(true, 60_000);
  socket.on("timeout", stalled);
  socket.on("error", stalled);
  socket.setTimeout(limits.stallMS);
  try {
    for await (const chunk of socket as AsyncIterable<Uint8Array>) {
      frames.push(chunk);
      count();
      for (let message; (message = frames.next(dispatcher.isStranger(client) ? STRANGER_BYTES_MAX : MESSAGE_BYTES_MAX)); ) {
        count();
        // A command takes the time that it takes.
        socket.setTimeout(0);
        await answer(socket, message, client, dispatcher, limits, scratch);
        scratch.release();
        if (socket.destroyed) return;
      }
      if (frames.held > 0) socket.setTimeout(limits.stallMS);
      else if (dispatcher.isStranger(client)) socket.setTimeout(STRANGER_REST_MS);
    }
  } catch (error) {
    if (error instanceof ProtocolError) dispatcher.log(`${client.remote}: ${error.message}`);
    // Those of the network have a code, and there are many.
    else if ((error as { code?: unknown }).code === undefined) dispatcher.log(`${client.remote}: ${(error as Error).stack ?? String(error)}`);
  } finally {
    limits.held -= counted;
    socket.destroy();
  }
}

async function answer(socket: Socket, given: Uint8Array, client: Client, dispatcher: Dispatcher, limits: Limits, scratch: Scratch): Promise<void> {
  const { message, compressor } = decompressed(given, dispatcher.isStranger(client) ? STRANGER_BYTES_MAX : MESSAGE_BYTES_MAX);
  const request = readMessage(message, scratch);
  const reply = await dispatcher.run(request, client);
  if (request.isSilent || socket.destroyed) return;
  const parts = writeReply(request, reply);
  socket.cork();
  let isTaken = true;
  for (const part of compressor === undefined ? parts : compressed(parts, compressor)) isTaken = socket.write(part);
  socket.uncork();
  if (!isTaken || socket.writableNeedDrain) await drained(socket, limits.stallMS);
}

/** Waits until the client has taken what was written, or is gone. */
function drained(socket: Socket, stallMS: number): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
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
