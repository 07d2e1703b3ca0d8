// The scripts that a wrong build would slip through, or that a test depends on.

import assert from "node:assert/strict";
import { mkdtempSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { checkedBuild } from "../scripts/builds.mjs";
import { dividedData, segmentsOf, unread } from "../scripts/data.mjs";
import { orderOf, withOrder } from "../scripts/order.mjs";
import { serve } from "../scripts/serve.mjs";
import { leb } from "../scripts/wasm.mjs";

describe("the table of builds", () => {
  const build = { target: "web", features: [], "wasm-opt": ["-Oz"], later: "x", budget: { "wasm-gzip": 2, "more-gzip": 3, "js-gzip": 1 } };
  const table = (changes = {}) => ({ tools: { "wasm-bindgen": "0.2.1" }, build: { default: { ...build, ...changes } } });
  const lock = (...versions) => ({ package: versions.map((version) => ({ name: "wasm-bindgen", version })) });
  const cargo = { package: { metadata: { "wasm-pack": { profile: { release: { "wasm-opt": ["-Oz", "--enable-sign-ext"] } } } } } };

  it("is accepted when everything agrees", () => {
    assert.deepEqual(checkedBuild(table(), lock("0.2.1"), cargo).budget, { wasm: 2, more: 3, js: 1 });
  });
  it("must pin the version that Cargo.lock has, and that alone", () => {
    assert.throws(() => checkedBuild(table(), lock("0.2.2"), cargo), /pins wasm-bindgen 0\.2\.1, Cargo\.lock has 0\.2\.2/);
    assert.throws(() => checkedBuild(table(), lock("0.2.1", "0.2.2"), cargo), /must be equal/);
  });
  it("refuses flags that make modules which browsers refuse", () => {
    assert.throws(() => checkedBuild(table({ "wasm-opt": ["-Oz", "-all"] }), lock("0.2.1"), cargo), /-all overrides/);
    assert.throws(() => checkedBuild(table({ "wasm-opt": ["--enable-sign-ext"] }), lock("0.2.1"), cargo), /overrides/);
  });
  it("refuses flags that Cargo.toml does not repeat, words it does not know, and a missing budget", () => {
    assert.throws(() => checkedBuild(table({ "wasm-opt": ["-O3"] }), lock("0.2.1"), cargo), /Cargo\.toml lacks it/);
    assert.throws(() => checkedBuild(table({ feature: [] }), lock("0.2.1"), cargo), /build\.default\.feature means nothing/);
    assert.throws(() => checkedBuild(table({ budget: {} }), lock("0.2.1"), cargo), /budget/);
  });
});

const text = (string) => [string.length, ...Buffer.from(string)];
const section = (id, ...contents) => [id, ...leb(contents.flat().length), ...contents.flat()];

describe("constants", () => {
  // Three at 64, 96 and 128; `one` reads the first, `two` the second, which has the address of the third, and the fourth is no constant.
  const number = (value) => [0x41, ...(value < 64 ? [value] : [(value & 0x7f) | 0x80, value >> 7])];
  const body = (address) => [0, ...number(address), 0x1a, 0x0b];
  const bodies = [body(64), body(96)];
  const fill = (value) => Array.from({ length: 32 }, () => value);
  const data = [...fill(1), 128, 0, 0, 0, ...fill(2).slice(4), ...fill(3)];
  const symbol = (name, segment, at) => [1, 0, text(name), segment, at, 32].flat();
  const custom = (name, ...contents) => section(0, text(name), ...contents);
  const code = [2, ...bodies.flatMap((one) => [one.length, ...one])];
  const module = Buffer.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, 1, [0x60, 0, 0]),
    ...section(3, 2, [0, 0]),
    ...section(10, code),
    ...section(11, 2, [0, ...number(64), 0x0b, data.length, ...data], [0, ...number(192), 0x0b, 32, ...fill(4)]),
    ...custom("linking", 2, 5, [17, 2, text(".rodata"), 0, 0, text(".data"), 0, 0].flat(), 8, [37, 4, symbol("a", 0, 0), symbol("b", 0, 32), symbol("c", 0, 64), symbol("d", 1, 0)].flat()),
    ...custom("reloc.CODE", 3, 2, [4, 4, 0, 0], [4, 4 + bodies[0].length + 1, 1, 0]),
    ...custom("reloc.DATA", 4, 1, [5, 7 + 32, 2, 0]),
    ...custom("name", 1, [11, 2, 0, text("one"), 1, text("two")].flat()),
  ]);

  it("go with the functions that read them, and with constants that do", () => {
    assert.deepEqual(unread(module, new Set(["one"])), [{ address: 64, length: 32 }]);
    assert.deepEqual(unread(module, new Set(["two"])), [{ address: 96, length: 64 }]);
    assert.deepEqual(unread(module, new Set()), []);
    assert.deepEqual(unread(module, new Set(["one", "two"])), [{ address: 64, length: 96 }]);
  });
  it("are in one half only, where they were", () => {
    const whole = [{ address: 64, bytes: data }, { address: 192, bytes: fill(4) }];
    const halves = dividedData(module, [{ address: 96, length: 64 }]).map((section) => Buffer.concat([module.subarray(0, 8), section]));
    const [first, second] = halves.map((half) => segmentsOf(half).map(({ address, start, length }) => ({ address, bytes: [...half.subarray(start, start + length)] })));
    assert.deepEqual(first, [{ address: 64, bytes: [...data.slice(0, 32), ...Array(64).fill(0)] }, whole[1]]);
    assert.deepEqual(second, [{ address: 96, bytes: data.slice(32) }]);
  });
});

describe("functions", () => {
  // Bodies of some constants that are dropped again.
  const body = (...numbers) => Buffer.from([0, ...numbers.flatMap((number) => [0x41, number, 0x1a]), 0x0b]);
  const bodies = [body(1, 2, 3), body(11, 12, 13, 14), body(1, 2, 4), body(11, 12, 13, 15), body(21, 22, 23)];

  it("stand beside those that look like them", () => {
    assert.deepEqual(orderOf(bodies), [0, 2, 1, 3, 4]);
  });
  it("get names that sort in that order, those from outside first", () => {
    const module = Buffer.from([
      ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      ...section(1, 1, [0x60, 0, 0]),
      ...section(2, 1, text("a"), text("b"), [0, 0]),
      ...section(3, 5, [0, 0, 0, 0, 0]),
      ...section(10, 5, ...bodies.map((one) => [one.length, ...one])),
    ]);
    const ordered = withOrder(module);
    assert.ok(ordered.subarray(0, module.length).equals(module));
    const [names] = WebAssembly.Module.customSections(new WebAssembly.Module(ordered), "name");
    const expected = [0, 1, 3, 2, 4, 5].map((place, at) => [at, ...text(`00000000${place}`)]);
    assert.deepEqual([...new Uint8Array(names)], section(1, 6, ...expected));
  });
});

describe("the server of the demo", () => {
  let folder, server;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "timepail-serve-"));
    mkdirSync(join(folder, "www"));
    writeFileSync(join(folder, "secret.txt"), "secret");
    writeFileSync(join(folder, "www/index.html"), "<p>page</p>");
    symlinkSync(join(folder, "secret.txt"), join(folder, "www/link.txt"));
    server = await serve({ port: 0, root: join(folder, "www") });
  });
  after(async () => {
    await server.close();
    rmSync(folder, { recursive: true });
  });

  // Not fetch: it tidies the dots in a path away before sending it.
  const get = (path) =>
    new Promise((resolve, reject) => {
      const { port } = new URL(server.url);
      const sent = request({ host: "127.0.0.1", port, path, method: "GET" }, (response) => {
        let text = "";
        response.on("data", (part) => (text += part));
        response.on("end", () => resolve({ status: response.statusCode, type: response.headers["content-type"], text }));
      });
      sent.on("error", reject).end();
    });

  it("answers a folder with its index page", async () => {
    assert.deepEqual(await get("/?day=1"), { status: 200, type: "text/html; charset=utf-8", text: "<p>page</p>" });
  });
  it("says application/wasm, without which a browser does not compile while it downloads", async () => {
    assert.equal((await get("/timepail/timepail.wasm")).type, "application/wasm");
  });
  it("shows the libraries of the page", async () => {
    assert.equal((await get("/vendor/bson/bson.mjs")).type, "text/javascript; charset=utf-8");
    assert.equal((await get("/vendor/vega-datasets/stocks.csv")).status, 200);
  });
  for (const path of ["/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/link.txt", "/timepail/../package.json", "/%00", "/%zz", "//"])
    it(`shows nothing outside its folders for ${path}`, async () => {
      const { status, text } = await get(path);
      assert.ok(status === 404 || text === "<p>page</p>", `${status} ${text}`);
    });
});
