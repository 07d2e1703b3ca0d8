// The page's side of engines in workers: starts workers, opens engines in them, and replaces workers that end.

import type { CommandReply, Engine, EngineOptions, OpenEngine } from "./engine.js";
import type * as Errors from "./errors.js";
import type { Source } from "./instance.js";
import { Line, type PortableError } from "./line.js";
import { loadFailure } from "./load-failure.js";
import { compileModule } from "./load.js";
import { aliveContexts, contextEnded, newContext } from "./lock.js";
import type { OpenOptions, WasmSource, WorkerLike } from "./types.js";

/**
 * Where engines are opened, and what the entry point passes in: this file is bundled separately and without BSON, and errors must be of the classes that you
 * import.
 */
export interface Place extends Pick<typeof Errors, "LoadError" | "ServerError" | "WorkerError"> {
  worker: OpenOptions["worker"];
  /** Address of the worker, if it is started by its address. */
  address: string;
  source: Source;
  rest: Source;
  encode(document: object): Uint8Array;
  /** Starts a worker by its address. */
  start?(address: string): WorkerLike;
  /** What a worker needs to start, for the message of an error. */
  advice?: string;
}

/** Delay after a worker replaces one that ended, before the journal of the ended one is folded. */
const ORPHANS_DELAY_MS = 1000;

const ADVICE = "its script must be served as JavaScript, and worker-src of a Content-Security-Policy must allow it";

/** Opens an engine in a worker. */
export async function openRemote(place: Place, ...[name, options, host]: Parameters<OpenEngine>): Promise<Engine> {
  if (host) throw new TypeError("A storage object cannot go to a worker: open the database in a worker of your own, where the storage is made");
  const engine = new RemoteEngine(place, name, options);
  await engine.connected();
  return engine;
}

/** A worker of the web, or of Node, Bun and Deno. */
type AnyWorker = WorkerLike & Partial<Pick<Worker, "addEventListener">> & { on?(event: string, listener: (what: unknown) => void): void; unref?(): void };

/** True for WebKit: it suspends the workers of a page in the back/forward cache even during a transaction, which blocks other tabs. */
const suspendsTransactions = (): boolean => /^Apple/.test(globalThis.navigator?.vendor);

/** A worker, and the engines that are in it or about to be. */
class Thread {
  readonly worker: AnyWorker;
  readonly isOurs: boolean;
  readonly engines = new Set<RemoteEngine>();
  hasOpened = false;
  hasEnded = false;

  /** A worker of ours (`isOurs`) ends with its last engine, or when it fails. */
  constructor(worker: AnyWorker, isOurs: boolean) {
    this.worker = worker;
    this.isOurs = isOurs;
    // Node, Bun and Deno. A pending call keeps the process alive through its port.
    worker.on?.("error", (error) => this.lose(error));
    worker.on?.("exit", (code) => this.lose(new Error(`it has left with exit code ${String(code)}`)));
    if (isOurs) worker.unref?.();
    if (isOurs && suspendsTransactions()) globalThis.addEventListener?.("pagehide", this.#hide);
    worker.addEventListener?.("error", (event) => {
      // A worker that you passed may also report errors of your own code.
      if (!isOurs && this.hasOpened) return;
      event.preventDefault();
      // The event has no message if the script cannot be loaded.
      const { message } = event as ErrorEvent;
      this.lose(message ? new Error(message) : undefined);
    });
  }

  /** Gives up the worker. */
  lose(cause: unknown): void {
    if (this.hasEnded) return;
    this.#end();
    for (const engine of this.engines) engine.lose(this, cause);
  }

  leave(engine: RemoteEngine): void {
    this.engines.delete(engine);
    if (this.isOurs && this.engines.size === 0) this.#end();
  }

  #end(): void {
    this.hasEnded = true;
    if (!this.isOurs) return;
    this.worker.terminate();
    globalThis.removeEventListener?.("pagehide", this.#hide);
  }

  /** A page in the back/forward cache must not hold a transaction. A worker with a database in memory stays, because its measurements exist nowhere else. */
  readonly #hide = ({ persisted }: PageTransitionEvent): void => {
    const engines = [...this.engines];
    if (persisted && engines.some(({ isBusy }) => isBusy) && !engines.some(({ isInMemory }) => isInMemory)) this.lose(new Error("the page was left during the call"));
  };
}

/** Workers by their address, and those that were passed. */
const threads = new Map<unknown, Thread>();
const passed = new WeakMap<object, Thread>();

/** Starts a web worker. For a script of another origin, it starts a script of this origin that imports it. */
function startWorker(address: string): WorkerLike {
  const isForeign = new URL(address).origin !== location.origin;
  const script = isForeign ? URL.createObjectURL(new Blob([`import ${JSON.stringify(address)}`], { type: "text/javascript" })) : address;
  return new Worker(script, { type: "module", name: "timepail" });
}

function threadOf({ worker, address, start = startWorker }: Place): Thread {
  if (typeof worker === "function") return new Thread(worker(), true);
  const isPassed = typeof (worker as Partial<WorkerLike>).postMessage === "function";
  if (!isPassed && worker !== true && typeof worker !== "string" && !(worker instanceof URL)) {
    throw new TypeError("The option worker is true, an address, a Worker, or a function that makes one");
  }
  const known = isPassed ? passed.get(worker as WorkerLike) : threads.get(address);
  if (known && (isPassed || !known.hasEnded)) return known;
  const thread = new Thread(isPassed ? (worker as WorkerLike) : start(address), !isPassed);
  if (isPassed) passed.set(worker as WorkerLike, thread);
  else threads.set(address, thread);
  return thread;
}

class RemoteEngine implements Engine {
  readonly isApart = true;
  readonly #place: Place;
  readonly #name: string;
  readonly #options: EngineOptions;
  #context: string;
  #connection: Promise<Line> | undefined;
  #thread: Thread | undefined;
  #line: Line | undefined;
  /** Why no other worker can take the place of the one that ended. */
  #lost: Error | undefined;

  constructor(place: Place, name: string, options: EngineOptions) {
    this.#place = place;
    this.#name = name;
    this.#options = options;
    this.#context = options.context;
  }

  run_command(command: Uint8Array, payload?: Uint8Array | null): Promise<CommandReply> {
    return this.#call("run_command", [command, payload]) as Promise<CommandReply>;
  }

  async close(): Promise<void> {
    try {
      // A worker that has ended has nothing to close.
      if (this.#connection) await this.#call("close", []);
    } catch (error) {
      if (!(error instanceof this.#place.WorkerError)) throw error;
    } finally {
      this.#leave(undefined);
    }
  }

  get isInMemory(): boolean {
    return this.#options.storage === "memory";
  }

  /** Whether calls to the worker are pending. */
  get isBusy(): boolean {
    return this.#line?.isWaiting ?? false;
  }

  async #call(method: string, args: unknown[]): Promise<unknown> {
    return (await this.connected()).call(method, args);
  }

  /** The connection to the engine. After a worker has ended, it connects to another one. */
  async connected(): Promise<Line> {
    if (this.#lost) throw this.#lost;
    const connection = (this.#connection ??= this.#connect());
    try {
      return await connection;
    } catch (error) {
      if (this.#connection === connection) this.#leave(error);
      throw error;
    }
  }

  async #connect(): Promise<Line> {
    const [name, options, { source, rest, encode }] = [this.#name, this.#options, this.#place];
    const context = this.#context;
    let thread: Thread;
    try {
      thread = threadOf(this.#place);
    } catch (cause) {
      throw cause instanceof TypeError ? cause : this.#failure(false, false, cause);
    }
    if (thread.hasEnded) throw this.#failure(true, false, undefined);
    this.#thread = thread;
    thread.engines.add(this);
    const { port1, port2 } = new MessageChannel();
    const ended = (cause?: unknown): void => thread.lose(cause);
    const handlers = { rest: async () => [await this.#crossing(rest)], ended: (text: string) => ended(new Error(text)) };
    const line = (this.#line = new Line(port1, handlers, (error) => this.#revived(error as PortableError), () => this.#line === line && ended()));
    thread.worker.postMessage({ timepail: port2 }, [port2]);
    const isHeld = await line.call("open", [name, options.storage, encode({ ...options, context }), context, await this.#crossing(source)]);
    thread.hasOpened = true;
    // Browsers do not report workers that end, but release their locks. Runtimes that do report them skip this, because a pending lock request keeps Deno running.
    if (isHeld && !thread.worker.on) contextEnded(name, context).then(() => this.#line === line && ended(), () => {});
    if (isHeld && context !== options.context) setTimeout(() => void this.#foldOrphans(line).catch(() => {}), ORPHANS_DELAY_MS);
    return line;
  }

  /** Folds journals that ended workers of this page have left, as `open` does for all others. */
  async #foldOrphans(line: Line): Promise<void> {
    const alive = await aliveContexts(this.#name);
    await line.call("run_command", [this.#place.encode({ foldJournals: 1, alive, $db: this.#name })]);
  }

  /** The worker has ended. */
  lose(thread: Thread, cause: unknown): void {
    const isInMemory = thread.hasOpened && this.isInMemory;
    const error = this.#failure(thread.hasOpened, thread.isOurs && !isInMemory, cause);
    if (thread.hasOpened && (isInMemory || !thread.isOurs)) this.#lost = error;
    this.#leave(error);
  }

  #leave(error: unknown): void {
    this.#connection = undefined;
    // The journal of the last context may still have records, which others fold. A new context does not add to it.
    this.#context = newContext();
    const [line, thread] = [this.#line, this.#thread];
    this.#line = this.#thread = undefined;
    void line?.call("leave", []).catch(() => {});
    line?.end(error);
    thread?.leave(this);
  }

  /** `isReplaced`: the next call starts another worker. */
  #failure(hasOpened: boolean, isReplaced: boolean, cause: unknown): Error {
    const said = cause === undefined ? "" : `: ${String((cause as Error).message ?? cause)}`;
    const what = `The worker of the database "${this.#name}" ${hasOpened ? "has ended" : "cannot be started"}${said}`;
    const stored = "what was acknowledged is stored, of this call it is not known";
    const again = "close the database and open it again";
    let advice = `${stored}; ${again}, with a function that makes workers, for one that was passed cannot be replaced`;
    if (!hasOpened) advice = this.#place.advice ?? ADVICE;
    else if (isReplaced) advice = `${stored}, and the next one starts another worker`;
    else if (this.isInMemory) advice = `its measurements were in memory only, and are gone; ${again}`;
    return new this.#place.WorkerError(`${what}; ${advice}`, { cause });
  }

  /** Resolves addresses against the page, and copies bytes, because sending transfers them. */
  async #crossing(source: Source): Promise<WasmSource> {
    const given = await source();
    if (typeof given === "string" || given instanceof URL) return new Request(given).url;
    if (given instanceof ArrayBuffer) return new Uint8Array(given.slice(0));
    if (ArrayBuffer.isView(given)) return new Uint8Array(given.buffer as ArrayBuffer, given.byteOffset, given.byteLength).slice();
    // A `Response` cannot be sent, so the page compiles it. The worker reports all other problems.
    return given instanceof Response ? compileModule(given, loadFailure).catch((error) => Promise.reject(this.#revived(error))) : given;
  }

  #revived({ name, message, code, codeName, cause }: PortableError): Error {
    if (name === "ServerError") return new this.#place.ServerError({ ok: 0, errmsg: message, code, codeName });
    if (name === "LoadError") return new this.#place.LoadError(message, { cause });
    return Object.assign(new Error(message, { cause }), { name });
  }
}
