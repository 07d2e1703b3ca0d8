// The worker's side of engines in workers: opens an engine for each port that it receives.

import type { Engine, EngineOptions } from "./engine.js";
import { instance } from "./instance.js";
import { Line } from "./line.js";
import { loadFailure } from "./load-failure.js";
import { holdContext } from "./lock.js";
import type { WasmSource } from "./types.js";

/** A worker's global scope, or in Node, Bun and Deno its port. */
type Scope = Pick<MessagePort, "addEventListener">;

const lines = new Set<Line>();

/** Serves the page that started this worker. Ignores other messages. */
export function serve(scope: Scope): void {
  scope.addEventListener("message", (event) => {
    const port = (event.data as { timepail?: MessagePort } | null)?.timepail;
    if (!port) return;
    event.stopImmediatePropagation();
    admit(port);
  });
  // A trap reaches no caller; in Node it ends the worker by itself. The page is told by a message. If it also received the error event, the error might
  // be reported as the page's own, because the page ends the worker meanwhile.
  globalThis.addEventListener?.("error", (event) => trapped(event.error) && event.preventDefault());
  globalThis.addEventListener?.("unhandledrejection", (event) => trapped(event.reason) && event.preventDefault());
}

/** Whether a page was told of a trap. The page then gives up the worker, and until the worker ends, the module may trap again. */
let isTold = false;

/** After a trap, the module is unusable. Returns true if a page was told. */
function trapped(error: unknown): boolean {
  if (!(error instanceof WebAssembly.RuntimeError)) return false;
  isTold ||= lines.size > 0;
  // The page does not answer, because it has given up the worker.
  for (const line of lines) line.call("ended", [String(error)]).catch(() => {});
  return isTold;
}

function admit(port: MessagePort): void {
  let engine: Engine;
  let release: (() => void) | undefined;
  const running = new Set<Promise<unknown>>();
  const line = new Line(port, {
    /** Resolves to true if this worker holds the lock of the context, which shows that it is alive. */
    async open(name: string, storage: EngineOptions["storage"], options: Uint8Array, context: string, source: WasmSource) {
      release = await holdContext(name, context);
      const rest = async (): Promise<WasmSource> => ((await line.call("rest", [])) as [WasmSource])[0];
      try {
        engine = await instance(() => source, rest, loadFailure)(name, storage, options);
      } catch (error) {
        release?.();
        throw error;
      }
      return release !== undefined;
    },
    async run_command(command: Uint8Array, payload: Uint8Array | undefined) {
      let answer: Promise<unknown> | undefined;
      try {
        running.add((answer = engine.run_command(command, payload)));
        return await answer;
      } catch (error) {
        trapped(error);
        throw error;
      } finally {
        running.delete(answer!);
      }
    },
    /** Its answer is the last one of the engine. */
    async close() {
      await engine.close();
      await Promise.allSettled(running);
    },
    leave: () => leave(),
  });
  /** Called by the page, so that it does not mistake the free lock for a worker that has ended. */
  const leave = (): void => {
    lines.delete(line);
    release?.();
    line.end(undefined);
  };
  lines.add(line);
}
