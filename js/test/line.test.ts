// Calls between a page and a worker, over a channel of this process.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Line, type Handlers } from "../src/line.ts";

/** Both ends of a channel. Node declares its ports with other types than the web does. */
function lines(t: { after: (work: () => void) => void }, far: Handlers, near: Handlers = {}, revive?: (error: unknown) => unknown): [Line, Line] {
  const { port1, port2 } = new MessageChannel();
  const both: [Line, Line] = [new Line(port1 as never, near, revive), new Line(port2 as never, far)];
  t.after(() => both.forEach((line) => line.end(undefined)));
  return both;
}

test("calls go in both directions and answers find their calls", async (t) => {
  const waiting: (() => void)[] = [];
  const far = {
    later: (n: number) => new Promise((resolve) => waiting.push(() => resolve(n))),
    now: (n: number) => {
      waiting.reverse().forEach((answer) => answer());
      return n;
    },
    asks: async () => (await other.call("name", [])) + "!",
  };
  const [line, other] = lines(t, far, { name: () => "page" });
  assert.deepEqual(await Promise.all([line.call("later", [1]), line.call("later", [2]), line.call("now", [3])]), [1, 2, 3]);
  assert.equal(await line.call("asks", []), "page!");
});

test("whole byte arrays are transferred, and parts of others are copied", async (t) => {
  const kept: Uint8Array[] = [];
  const far = {
    swap(bytes: Uint8Array) {
      const reply = Uint8Array.of(bytes.length);
      kept.push(reply);
      return { reply, payload: undefined };
    },
  };
  const [line] = lines(t, far);
  const whole = new Uint8Array(1000);
  assert.deepEqual(await line.call("swap", [whole]), { reply: Uint8Array.of(1000 & 255), payload: undefined });
  const part = new Uint8Array(1000).subarray(10, 20);
  assert.deepEqual(await line.call("swap", [part]), { reply: Uint8Array.of(10), payload: undefined });
  assert.deepEqual([whole.length, part.length, kept.map(({ length }) => length)], [0, 10, [0, 0]]);
});

test("errors cross with their name, code and cause, and the caller makes its own of them", async (t) => {
  const far = {
    fails() {
      throw Object.assign(new Error("it failed", { cause: new TypeError("why") }), { name: "LoadError", code: 5, codeName: "Five" });
    },
    throwsText() {
      throw "text";
    },
  };
  const [line] = lines(t, far, {}, (error) => Object.assign(new RangeError("revived"), { of: error }));
  const failure = async (method: string): Promise<{ of: { message: string; cause?: Error } }> => line.call(method, []).then(() => assert.fail(), (error) => error);
  const { of } = await failure("fails");
  assert.deepEqual({ ...of, cause: of.cause!.message }, { name: "LoadError", message: "it failed", code: 5, codeName: "Five", cause: "why" });
  assert.deepEqual((await failure("throwsText")).of, { name: "Error", message: "text" });
  assert.match((await failure("unknown")).of.message, /not a function/);
});

test("after the end, calls that wait and later ones reject", async (t) => {
  const [line] = lines(t, { never: () => new Promise(() => {}) });
  const waiting = [line.call("never", []), line.call("never", [])];
  const error = new Error("ended");
  line.end(error);
  for (const call of [...waiting, line.call("never", [])]) await assert.rejects(call, error);
});
