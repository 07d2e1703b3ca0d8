// The interface of the WebAssembly module, as the driver sees it.

import type { HostStorage } from "./storage.js";
import type { EngineParameters } from "./types.js";

/** The result of one command: the reply as BSON and, for cursor batches, a block. */
export interface CommandReply {
  reply: Uint8Array;
  payload?: Uint8Array | undefined;
  /** True if folds or retention are due. The command `maintain` runs them. */
  due?: boolean | undefined;
}

/** An open database inside the WebAssembly module. Every argument and result is bytes. */
export interface Engine {
  /** True if it has a thread of its own, so that background work need not wait until the page is idle. */
  readonly isApart?: boolean;
  /**
   * Runs one command. A failure is a reply with `ok: 0`; rejects only where the rest of the module is needed and cannot be loaded. With `documents` the batch of a
   * cursor comes inside the reply, as a server sends it, and not as a block.
   */
  run_command(command: Uint8Array, payload?: Uint8Array | null, documents?: boolean | null): Promise<CommandReply>;
  /** Finishes writes in flight and releases the storage. */
  close(): Promise<void>;
}

/** What `open` passes to the engine, as BSON. */
export interface EngineOptions {
  storage: "indexeddb" | "memory" | "host";
  durability: "relaxed" | "strict";
  /** 16 hexadecimal digits that identify this opening. They are part of the keys of its journal. */
  context: string;
  bucketVersion?: 1 | 2;
  parameters?: EngineParameters;
  strict?: boolean;
  retention?: "automatic" | "manual";
}

/** Opens an engine. `host` is the storage object, if the options select one. The entry points pass a function that loads WebAssembly, tests pass their own. */
export type OpenEngine = (name: string, options: EngineOptions, host?: HostStorage) => Promise<Engine>;
