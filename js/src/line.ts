// Calls over a `MessagePort` in both directions, between the page and the worker of an engine.

/** Methods that the other side may call, by name. */
export type Handlers = Readonly<Record<string, (...args: never[]) => unknown>>;

/** A call has a method, an answer has none. */
type Message = readonly [id: number, method: string, args: unknown[]] | readonly [id: number, method: undefined, isError: boolean, value: unknown];

interface Call {
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/** A port of this runtime. In Node, Deno and Bun, a port keeps the process alive unless you call `unref`. */
type Port = MessagePort & { ref?(): void; unref?(): void };

/** One end of a channel. Byte arrays are transferred, so you must not use one after you pass it. */
export class Line {
  readonly #port: Port;
  readonly #handlers: Handlers;
  readonly #revive: (error: unknown) => unknown;
  readonly #calls = new Map<number, Call>();
  #nextId = 1;
  #end: { error: unknown } | undefined;

  /** `revive` converts a received error to the one to reject with. `onEnd` is called if the other side has ended and this runtime reports it. */
  constructor(port: MessagePort, handlers: Handlers, revive = (error: unknown): unknown => error, onEnd = (): void => {}) {
    this.#port = port;
    this.#handlers = handlers;
    this.#revive = revive;
    port.addEventListener("message", ({ data }) => this.#hear(data as Message));
    port.addEventListener("close", onEnd);
    port.start();
    this.#port.unref?.();
  }

  /** Whether calls are pending. */
  get isWaiting(): boolean {
    return this.#calls.size > 0;
  }

  /** Calls a method of the other side. */
  call(method: string, args: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#end) return reject(this.#end.error);
      const id = this.#nextId++;
      this.#say([id, method, args], args);
      this.#calls.set(id, { resolve, reject });
      // Keep the process alive while a call is pending.
      this.#port.ref?.();
    });
  }

  /** Closes the port. Pending calls, and all later ones, reject with `error`. */
  end(error: unknown): void {
    this.#end ??= { error };
    this.#port.close();
    this.#calls.forEach(({ reject }) => reject(error));
    this.#calls.clear();
  }

  #hear([id, method, ...rest]: Message): void {
    if (method !== undefined) return void this.#answer(id, method, rest[0] as never[]);
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (this.#calls.size === 0) this.#port.unref?.();
    if (rest[0]) call?.reject(this.#revive(rest[1]));
    else call?.resolve(rest[1]);
  }

  async #answer(id: number, method: string, args: never[]): Promise<void> {
    try {
      const value = await this.#handlers[method]!(...args);
      this.#say([id, undefined, false, value], typeof value === "object" ? Object.values(value ?? {}) : []);
    } catch (error) {
      this.#say([id, undefined, true, portable(error)]);
    }
  }

  #say(message: Message, values: unknown[] = []): void {
    this.#port.postMessage(message, values.filter((value) => value instanceof Uint8Array && value.byteLength === value.buffer.byteLength).map((value) => (value as Uint8Array).buffer as ArrayBuffer));
  }
}

/** What is sent of an error: the name of its class, its text, its code and its cause. */
export interface PortableError {
  name: string;
  message: string;
  code?: number | undefined;
  codeName?: string | undefined;
  cause?: Error | undefined;
}

function portable(error: unknown): PortableError {
  const { name, message, code, codeName, cause } = error as PortableError;
  return error instanceof Error ? { name, message, code, codeName, cause: cause instanceof Error ? cause : undefined } : { name: "Error", message: String(error) };
}
