// The door of the WebAssembly module, as the driver sees it.

import type { HostStorage } from "./storage.js";
import type { EngineParameters } from "./types.js";

/** What one command gives back: the reply as BSON and, for cursor batches, a block. */
export interface CommandReply {
  reply: Uint8Array;
  payload?: Uint8Array | undefined;
  /** Folds or retention are due: the command `maintain` does them. */
  due?: boolean | undefined;
}

/** An open database inside the WebAssembly module. Every argument and result is bytes. */
export interface Engine {
  /** True if it has a thread of its own: what it does in the background need not wait until the page is idle. */
  readonly isApart?: boolean;
  /**
   * Runs one command. A failure is a reply with `ok: 0`; rejects only where the rest of the module is needed and cannot be loaded. With `documents` the batch of a
   * cursor comes inside the reply, as a server sends it, and not as a block.
   */
  run_command(command: Uint8Array, payload?: Uint8Array | null, documents?: boolean | null): Promise<CommandReply>;
  /** Finishes writes in flight and lets go of the storage. */
  close(): Promise<void>;
}

/** What `open` tells the engine; it crosses as BSON. */
export interface EngineOptions {
  storage: "indexeddb" | "memory" | "host";
  durability: "relaxed" | "strict";
  /** 16 hexadecimal digits that name this opening; the keys of its journal carry them. */
  context: string;
  bucketVersion?: 1 | 2;
  parameters?: EngineParameters;
  strict?: boolean;
  retention?: "automatic" | "manual";
}

/** Opens an engine; `host` where the options say so. The entry points give the one that loads WebAssembly, tests give their own. */
export type OpenEngine = (name: string, options: EngineOptions, host?: HostStorage) => Promise<Engine>;
