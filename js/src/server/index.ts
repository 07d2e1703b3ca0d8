// A server that speaks MongoDB's wire protocol: drivers and shells connect to a database of timepail.

import { createServer, type AddressInfo, type Server as Listener, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import type { HostStorage } from "../storage.js";
import { converse, type Limits } from "./connection.js";
import { Databases } from "./databases.js";
import { Dispatcher, type Client } from "./dispatch.js";
import { Operations } from "./operations.js";
import { FilePlaces, givenPlaces, type Places } from "./places.js";
import { Sessions } from "./sessions.js";
import { givenUsers, type Users } from "./users.js";

export type * from "../storage.js";

/** Options of {@link serve}. Either `file` or `storage` is given. */
export interface ServeOptions {
  /** Path of a SQLite file; it is created if it does not exist. It can hold many databases. The database with the name of the file is the one that `openFile` opens. */
  file?: string | undefined;
  /** A storage for one database, or a function that returns the storage of each database by its name, and `undefined` for unknown names. */
  storage?: HostStorage | ((database: string) => HostStorage | undefined) | undefined;
  /** Name of the database in `storage`, if that is not a function. Default `"test"`. */
  database?: string | undefined;
  /** Address to listen on. Default `"127.0.0.1"`. Addresses that other machines can reach require `auth`. */
  host?: string | undefined;
  /** Port to listen on; 0 chooses a free one. Default 27017. */
  port?: number | undefined;
  /** Who may connect: `true` for the users of the file, or names with their passwords. Every user may do everything. Default: anybody. */
  auth?: boolean | Readonly<Record<string, string>> | undefined;
  /** Certificate and private key for TLS, in PEM. With `ca`, clients need a certificate from that authority. */
  tls?: { cert: string | Uint8Array; key: string | Uint8Array; passphrase?: string | undefined; ca?: string | Uint8Array | undefined } | undefined;
  /** When a write is acknowledged, as in `sqliteStorage`. Default `"relaxed"`. */
  durability?: "relaxed" | "strict" | undefined;
  /** Maximum number of connections at once. Default 1000. */
  connectionsMax?: number | undefined;
  /** Maximum total size of incomplete messages over all connections, in bytes. Default 256 MiB. */
  incompleteBytesMax?: number | undefined;
  /** How long a client may pause in the middle of a message, before its first one, or while it takes a reply, in milliseconds. Idle time between commands is not limited. Default 30 000. */
  stallTimeoutMS?: number | undefined;
  /** Called with a line for each invalid message and each internal error. Default: they are not reported. */
  log?: ((line: string) => void) | undefined;
}

/** A running server, as {@link serve} returns it. */
export interface Server {
  readonly host: string;
  readonly port: number;
  /** The address for drivers, without credentials. */
  readonly uri: string;
  /** Number of connections. */
  readonly connections: number;
  /** Closes all connections, finishes pending writes, and closes the file. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const OPTIONS: Record<keyof ServeOptions, 1> = {
  file: 1, storage: 1, database: 1, host: 1, port: 1, auth: 1, tls: 1, durability: 1, connectionsMax: 1, incompleteBytesMax: 1, stallTimeoutMS: 1, log: 1,
};

/**
 * Serves time-series collections to MongoDB's drivers and shells: mongosh, Compass, PyMongo, the official driver for Node. Needs Node 22.13 or later, Deno or Bun.
 *
 * @throws TypeError if other machines could connect without authentication, and for unknown options
 * @example
 * ```ts
 * import { serve } from "timepail/server";
 *
 * const server = await serve({ file: "plant.db" });
 * console.log(server.uri);                              // mongodb://127.0.0.1:27017/
 * await server.close();
 * ```
 */
export async function serve(options: ServeOptions): Promise<Server> {
  for (const name of Object.keys(options)) if (!Object.hasOwn(OPTIONS, name)) throw new TypeError(`Unknown option ${JSON.stringify(name)}; known are ${Object.keys(OPTIONS).join(", ")}`);
  const { host = "127.0.0.1", port = 27_017, auth = false, durability = "relaxed" } = options;
  if ((options.file === undefined) === (options.storage === undefined)) throw new TypeError("serve takes either a file or a storage");
  if (!auth && !isLoopback(host)) throw new TypeError(`serve requires auth to listen on ${host}, because other machines can reach it`);
  if (auth === true && options.file === undefined) throw new TypeError("auth: true uses the users of a file; with a storage, pass an object of users and passwords");
  const users = typeof auth === "object" ? givenUsers(auth) : undefined;
  const places: Places = options.file === undefined ? givenPlaces(options.storage!, options.database ?? "test") : await FilePlaces.open(options.file, durability);
  if (auth === true && places.users?.names().length === 0) options.log?.(`Nobody can connect yet: ${options.file} has no users. Create one: npx timepail user ${options.file} <name>`);
  const server = new WireServer(places, users ?? (auth === true ? places.users : undefined), options);
  try {
    await server.listen(host, port);
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

/** Whether only this machine can reach an address. */
function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

class WireServer implements Server {
  readonly #databases: Databases;
  readonly #listener: Listener;
  readonly #dispatcher: Dispatcher;
  readonly #clients = new Set<Client>();
  readonly #sockets = new Set<Socket>();
  /** Conversations that have not ended. */
  readonly #talks = new Set<Promise<void>>();
  readonly #limits: Limits;
  readonly #connectionsMax: number;
  readonly #log: (line: string) => void;
  #made = 0;
  #closing: Promise<void> | undefined;

  constructor(places: Places, users: Users | undefined, options: ServeOptions) {
    this.#databases = new Databases(places, { durability: options.durability ?? "relaxed" });
    this.#connectionsMax = options.connectionsMax ?? 1000;
    const traffic = { bytesIn: 0, bytesOut: 0 };
    this.#limits = { traffic, held: 0, heldMax: options.incompleteBytesMax ?? 268_435_456, stallMS: options.stallTimeoutMS ?? 30_000 };
    this.#log = options.log ?? (() => {});
    this.#dispatcher = new Dispatcher(
      {
        databases: this.#databases,
        sessions: new Sessions(),
        users,
        clients: this.#clients,
        operations: new Operations(),
        traffic,
        connectionsMax: this.#connectionsMax,
        connectionsMade: () => this.#made,
        started: new Date(),
        address: () => `${this.host}:${this.port}`,
        argv: globalThis.process?.argv ?? [],
      },
      this.#log,
    );
    const accept = (socket: Socket): void => this.#accept(socket);
    const { tls } = options;
    if (tls) {
      const { ca, passphrase, cert, key } = tls;
      const more = { ...(ca === undefined ? {} : { ca: bytesOf(ca), requestCert: true, rejectUnauthorized: true }), ...(passphrase === undefined ? {} : { passphrase }) };
      const listener = createTlsServer({ cert: bytesOf(cert), key: bytesOf(key), handshakeTimeout: 10_000, minVersion: "TLSv1.2", ...more }, accept);
      listener.on("tlsClientError", (error) => this.#log(`TLS: ${error.message}`));
      this.#listener = listener;
    } else {
      // A client that has closed its sending side still gets its replies. Not so with TLS, because a connection that ends within the handshake would stay half open.
      this.#listener = createServer({ allowHalfOpen: true }, accept);
    }
    this.#listener.maxConnections = this.#connectionsMax;
  }

  get #address(): AddressInfo {
    return this.#listener.address() as AddressInfo;
  }

  get host(): string {
    return this.#address.address;
  }

  get port(): number {
    return this.#address.port;
  }

  get uri(): string {
    const host = this.host.includes(":") ? `[${this.host}]` : this.host;
    return `mongodb://${host}:${this.port}/`;
  }

  get connections(): number {
    return this.#clients.size;
  }

  listen(host: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#listener.once("error", reject);
      this.#listener.listen({ host, port }, () => {
        this.#listener.off("error", reject);
        this.#listener.on("error", (error) => this.#log(error.message));
        resolve();
      });
    });
  }

  #accept(socket: Socket): void {
    const client: Client = { id: ++this.#made, remote: `${socket.remoteAddress}:${socket.remotePort}`, since: new Date(), failures: 0 };
    this.#clients.add(client);
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    const talk = converse(socket, client, this.#dispatcher, this.#limits).finally(() => {
      this.#clients.delete(client);
      this.#talks.delete(talk);
    });
    this.#talks.add(talk);
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const closed = this.#listener.listening ? new Promise<void>((resolve) => this.#listener.close(() => resolve())) : Promise.resolve();
    for (const socket of this.#sockets) socket.destroy();
    await Promise.allSettled([...this.#talks]);
    await closed;
    await this.#databases.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function bytesOf(pem: string | Uint8Array): string | Buffer {
  return typeof pem === "string" ? pem : Buffer.from(pem);
}
