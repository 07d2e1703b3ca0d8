// Scripts that could let a wrong build pass, or that tests depend on.

import assert from "node:assert/strict";
import { copyFileSync, cpSync, existsSync, mkdtempSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { checkedBuild } from "../scripts/builds.mjs";
import { withDependencies } from "../scripts/compiled.mjs";
import { withShortCopies } from "../scripts/copies.mjs";
import { dividedData, unread, withoutHoles } from "../scripts/data.mjs";
import { Graph } from "../scripts/graph.mjs";
import { complaints, markedLater, marksIn } from "../scripts/marks.mjs";
import { orderOf, withOrder } from "../scripts/order.mjs";
import { serve } from "../scripts/serve.mjs";
import { SHARED, Whole, halves } from "../scripts/split.mjs";
import { JS, ROOT, bin, must, run, toolEnv } from "../scripts/steps.mjs";
import { droppedBy, ownerOf } from "../scripts/symbols.mjs";
import { featuresOf, leb, segmentsOf } from "../scripts/wasm.mjs";

describe("the table of builds", () => {
  const build = { target: "web", features: [], "wasm-opt": ["-Oz"], budget: { "wasm-gzip": 2, "more-gzip": 3, "js-gzip": 1 } };
  const table = (changes = {}) => ({ tools: { rust: "1.2.3", "wasm-bindgen": "0.2.1" }, build: { default: { ...build, ...changes } } });
  const lock = (...versions) => ({ package: versions.map((version) => ({ name: "wasm-bindgen", version })) });
  const cargo = { package: { metadata: { "wasm-pack": { profile: { release: { "wasm-opt": ["-Oz", "--enable-sign-ext"] } } } } } };

  it("is accepted when everything agrees", () => {
    assert.deepEqual(checkedBuild(table(), lock("0.2.1"), cargo).budget, { wasm: 2, more: 3, js: 1 });
  });
  it("must pin exactly the version in Cargo.lock", () => {
    assert.throws(() => checkedBuild(table(), lock("0.2.2"), cargo), /pins wasm-bindgen 0\.2\.1, Cargo\.lock has 0\.2\.2/);
    assert.throws(() => checkedBuild(table(), lock("0.2.1", "0.2.2"), cargo), /must be equal/);
  });
  it("pins one compiler", () => {
    assert.equal(checkedBuild(table(), lock("0.2.1"), cargo).rust, "1.2.3");
    assert.throws(() => checkedBuild({ ...table(), tools: { rust: "stable", "wasm-bindgen": "0.2.1" } }, lock("0.2.1"), cargo), /"stable", which is no version/);
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
const custom = (name, ...contents) => section(0, text(name), ...contents);

describe("constants", () => {
  // Three constants at 64, 96 and 128: `one` reads the first, `two` the second, which has the address of the third. The fourth is no constant.
  const number = (value) => [0x41, ...(value < 64 ? [value] : [(value & 0x7f) | 0x80, value >> 7])];
  const body = (address) => [0, ...number(address), 0x1a, 0x0b];
  const bodies = [body(64), body(96)];
  const fill = (value) => Array.from({ length: 32 }, () => value);
  const data = [...fill(1), 128, 0, 0, 0, ...fill(2).slice(4), ...fill(3)];
  const symbol = (name, segment, at) => [1, 0, text(name), segment, at, 32].flat();
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
    const graph = new Graph(module);
    const unreadBut = (...functions) => unread(graph.symbols, graph.reach(functions).constants);
    assert.deepEqual(unreadBut(1), [{ address: 64, length: 32 }]);
    assert.deepEqual(unreadBut(0), [{ address: 96, length: 64 }]);
    assert.deepEqual(unreadBut(0, 1), []);
    assert.deepEqual(unreadBut(), [{ address: 64, length: 96 }]);
  });
  it("are in one half only, where they were", () => {
    const whole = [{ address: 64, bytes: data }, { address: 192, bytes: fill(4) }];
    const halves = dividedData(module, [{ address: 96, length: 64 }]).map((section) => Buffer.concat([module.subarray(0, 8), section]));
    const [first, second] = halves.map((half) => segmentsOf(half).map(({ address, start, length }) => ({ address, bytes: [...half.subarray(start, start + length)] })));
    assert.deepEqual(first, [{ address: 64, bytes: [...data.slice(0, 32), ...Array(64).fill(0)] }, whole[1]]);
    assert.deepEqual(second, [{ address: 96, bytes: data.slice(32) }]);
  });
  it("have no small holes between them", () => {
    const joined = withoutHoles(module);
    const [{ address, start, length }, ...others] = segmentsOf(joined);
    assert.deepEqual([address, [...joined.subarray(start, start + length)], others], [64, [...data, ...Array(32).fill(0), ...fill(4)], []]);
  });
});

describe("the graph of a module", () => {
  // `root` calls `called` and names a constant that has the table index of `held`; nothing names `alone`.
  const root = [0, 0x10, 1, 0x41, 0, 0x1a, 0x0b];
  const bodies = [root, [0, 0x0b], [0, 0x0b], [0, 0x0b]];
  const names = ["root", "called", "held", "alone"];
  const module = Buffer.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, 1, [0x60, 0, 0]),
    ...section(3, 4, [0, 0, 0, 0]),
    ...section(7, 1, text("start"), [0, 0]),
    ...section(10, 4, ...bodies.map((one) => [one.length, ...one])),
    ...section(11, 1, [0, 0x41, 8, 0x0b, 4, 1, 0, 0, 0]),
    ...custom("linking", 2, 5, [11, 1, text(".rodata"), 0, 0].flat(), 8, [31, 5, ...names.flatMap((name, at) => [0, 0, at, text(name.slice(0, 2))]).flat(2), 1, 0, text("table"), 0, 0, 4].flat()),
    ...custom("reloc.CODE", 3, 2, [0, 1 + 1 + 2, 1], [4, 1 + 1 + 4, 4, 0]),
    ...custom("reloc.DATA", 4, 1, [2, 1 + 5, 2]),
    ...custom("name", 1, [names.join("").length + 2 * 4 + 1, 4, ...names.flatMap((name, at) => [at, ...text(name)])]),
  ]);
  const graph = new Graph(module);

  it("has functions that are called or whose table index is in a constant, and nothing else", () => {
    assert.deepEqual([...graph.exports()], [["start", 0]]);
    const { functions, calls, places, constants } = graph.reach([0]);
    assert.deepEqual([functions, calls, places, constants].map((set) => [...set]), [[0, 1, 2], [1], [2], [4]]);
  });
  it("ends at closed functions", () => {
    assert.deepEqual([...graph.reach([0], new Set([0])).functions], [0]);
  });
});

describe("the halves of a module", () => {
  // One function is imported. `start` calls `later`, which returns 7; table index 1 is a method that returns 9.
  const module = Buffer.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, 1, [0x60, 0, 1, 0x7f]),
    ...section(2, 1, text("a"), text("b"), [0, 0]),
    ...section(3, 3, [0, 0, 0]),
    ...section(4, 1, [0x70, 0, 2]),
    ...section(5, 1, [0, 1]),
    ...section(7, 2, text("start"), [0, 1], text("memory"), [2, 0]),
    ...section(9, 1, [0, 0x41, 1, 0x0b, 1, 3]),
    ...section(10, 3, [4, 0, 0x10, 2, 0x0b], [4, 0, 0x41, 7, 0x0b], [4, 0, 0x41, 9, 0x0b]),
    ...section(11, 1, [0, 0x41, 8, 0x0b, 1, 5]),
  ]);
  const imports = { a: { b: () => 0 } };
  const instance = (bytes, more) => new WebAssembly.Instance(new WebAssembly.Module(bytes), { ...imports, ...more }).exports;
  const taken = (careful) => halves(new Whole(module), { entered: [1], careful: new Set(careful), fills: (own) => (own === 2 ? 1 : undefined) });

  it("call each other once both are loaded, and each fills its own table entries", () => {
    const [first, second] = taken([]);
    const exports = instance(first);
    assert.throws(exports.start, WebAssembly.RuntimeError);
    assert.equal(exports.table0.get(1), null);
    instance(second, { [SHARED]: exports });
    assert.deepEqual([exports.start(), exports.table0.get(1)()], [7, 9]);
  });
  it("answer 0 before that, for functions that may be called early", () => {
    const [first, second] = taken([1]);
    const exports = instance(first);
    assert.equal(exports.start(), 0);
    instance(second, { [SHARED]: exports });
    assert.equal(exports.start(), 7);
  });
});

describe("names of functions", () => {
  it("give the file of a function, and the function of a closure", () => {
    for (const [symbol, owner] of [
      ["_RNvNtNtCslxBrXWkRWEV_8timepail3geo5parse4pair", "geo::parse pair"],
      ["_RNCNvMNtNtCs1_8timepail6engine9raw_writeNtB4_6Engine13store_buckets0B6_", "engine::raw_write Engine::store_buckets"],
      ["_RINCNCNvXs0_NtNtCslxBrXWkRWEV_8timepail7storage3idbNtBa_10IdbStorageNtBc_7Storage10scan_ahead00sEBe_", "storage::idb IdbStorage::scan_ahead"],
      ["_RNSNvYNCNvNtCs1_8timepail3geo4each0INtNtNtCs2_4core3ops8function6FnOnceTuEE9call_once6vtableB8_", "geo each"],
      ["_RNvCs1_8timepail4main", " main"],
    ]) {
      const { module, name } = ownerOf(symbol);
      assert.equal(`${module} ${name}`, owner);
    }
  });
  it("give nothing for generic functions of other crates or symbols of other languages", () => {
    const others = "_RNCINvMNtCsfDgiNtEHuWe_4core5sliceSRSh15partition_pointNCNCNvNtNtNtCslxBrXWkRWEV_8timepail7storage3idb6commit25inserts_touched_elsewhere00E0B13_";
    assert.deepEqual([ownerOf(others), ownerOf("memcpy"), ownerOf(undefined)], [undefined, undefined, undefined]);
  });
  it("give the function whose closure is dropped", () => {
    const future = "_RINvNtCsfDgiNtEHuWe_4core3ptr13drop_in_placeNCNvMNtNtNtCs7jhJ369Plpd_8timepail6engine6insert9raw_writeNtBP_6Engine13store_buckets0EBR_";
    assert.deepEqual(droppedBy(future), { module: "engine::insert::raw_write", name: "Engine::store_buckets" });
    const type = "_RINvNtCsfDgiNtEHuWe_4core3ptr13drop_in_placeNtNtCs7jhJ369Plpd_8timepail5error5ErrorEBK_";
    assert.deepEqual([type, "_RNvNtNtCs2_8timepail3geo5parse4pair", "memcpy", undefined].map(droppedBy), [undefined, undefined, undefined, undefined]);
  });
});

describe("marks in the source", () => {
  const source = `//! Doc.

// Loaded later.

use a::b;
`;
  const functions = `//! Doc.

impl<'a> Trait<X> for Engine<'a>
where
    X: Y,
{
    /// Doc.
    // Loaded later.
    #[inline(never)]
    pub(super) async fn store(&self) -> bool {
        true
    }

    fn open(&self) {
        // Loaded by now: awaited above.
        self.store()
    }
}

fn free() {
    // Loaded by now: it is there.
    call()
}
`;
  const shown = (marks) => marks.map(({ place, module, name, isLater }) => [place, module, name, isLater]);

  it("belong to the module at the head of a file, or to the function after or around them", () => {
    assert.deepEqual(shown(marksIn("query/stage/mod.rs", source)), [["src/query/stage/mod.rs:3", "query::stage", undefined, true]]);
    assert.deepEqual(shown(marksIn("engine/raw.rs", functions)), [
      ["src/engine/raw.rs:8", "engine::raw", "Engine::store", true],
      ["src/engine/raw.rs:15", "engine::raw", "Engine::open", false],
      ["src/engine/raw.rs:21", "engine::raw", "free", false],
    ]);
  });
  it("before a type are about its derived comparison", () => {
    const source = "use a;\n\n/// A filter.\n// Loaded by now: why.\n#[derive(PartialEq)]\npub enum Filter {\n";
    assert.deepEqual(shown(marksIn("filter/tree.rs", source)), [["src/filter/tree.rs:4", "filter::tree", "Filter::eq", false]]);
  });
  it("are refused if they are empty or match nothing", () => {
    for (const text of ["// Loaded later\nfn a() {", "// Loaded by now:\nfn a() {", "// Loaded by now.\nfn a() {"]) assert.throws(() => marksIn("a.rs", text), /src\/a\.rs:1: a mark reads/);
    for (const text of ["use a;\n// Loaded later.\nuse b;", "// Loaded by now: why.\nuse b;"]) assert.throws(() => marksIn("a.rs", text), /neither before a function/);
  });

  // `first` calls `over` of another crate, which calls `second` and drops its future; `second` is marked.
  const named = (calls = []) => ({ calls: new Set(calls), places: new Set(), constants: new Set() });
  const graph = {
    names: new Map([[0, "_RNvNtC8timepail1a5first"], [1, "_RNvC4core4over"], [2, "_RNvNtC8timepail1b6second"], [3, "_RNvNtC8timepail1b16second_if_loaded"], [4, "_RINvNtC4core3ptr13drop_in_placeNCNvNtC8timepail1b6second0EB0_"]]),
    functions: new Map([[0, named([1, 3])], [1, named([2, 4])], [2, named()], [3, named()], [4, named()]]),
    constants: new Map(),
  };
  const later = marksIn("b.rs", "// Loaded later.\n");
  const complained = (...marks) => complaints(graph, [...later, ...marks], [0, 1], markedLater(graph, [...later, ...marks]));
  const reason = (name) => marksIn("a.rs", `// Loaded by now: why.
fn ${name}() {`);

  it("cover the functions of a module", () => {
    assert.deepEqual([...markedLater(graph, later)], [2, 3, 4]);
    assert.deepEqual([...markedLater(graph, marksIn("b.rs", "// Loaded later.\nfn second() {"))], [2, 4]);
  });
  it("must give a reason if the first half calls the second, unless the callee's name ends in _if_loaded", () => {
    assert.match(complained().join(), /^a::first calls b::second of the second half: say in it why/);
    assert.deepEqual(complained(...reason("first")), []);
  });
  it("may be in a function that was inlined into one of the same file", () => {
    assert.deepEqual(complained(...reason("inlined")), []);
  });
  it("must not be superfluous", () => {
    assert.match(complained(...marksIn("c.rs", "// Loaded later.\n")).join("\n"), /src\/c\.rs:1: c is not in the module/);
    const needless = marksIn("c.rs", "fn other() {\n// Loaded by now: why.\n");
    assert.match(complained(...reason("first"), ...needless).join("\n"), /^src\/c\.rs:2: c::other calls nothing of the second half/);
  });
});

describe("functions", () => {
  // Function bodies that push and drop some constants.
  const body = (...numbers) => Buffer.from([0, ...numbers.flatMap((number) => [0x41, number, 0x1a]), 0x0b]);
  const long = (...numbers) => body(...numbers, ...[4, 5, 6, 7, 8, 9].map((more) => numbers[0] + more));
  const bodies = [long(1, 2, 3), long(11, 12, 13, 14), long(1, 2, 4), long(11, 12, 13, 15), long(21, 22, 23)];

  it("are placed beside similar ones", () => {
    assert.deepEqual(orderOf(bodies), [0, 2, 1, 3, 4]);
  });
  it("of few bytes come last, the shortest first", () => {
    assert.deepEqual(orderOf([body(2), body(1, 1), ...bodies, body(1)]), [2, 4, 3, 5, 6, 7, 0, 1]);
  });
  const module = Buffer.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, 1, [0x60, 0, 0]),
    ...section(2, 1, text("a"), text("b"), [0, 0]),
    ...section(3, 5, [0, 0, 0, 0, 0]),
    ...section(10, 5, ...bodies.map((one) => [one.length, ...one])),
  ]);
  const placesIn = (ordered) => {
    assert.ok(ordered.subarray(0, module.length).equals(module));
    const [names] = WebAssembly.Module.customSections(new WebAssembly.Module(ordered), "name");
    const [, , count, ...entries] = new Uint8Array(names);
    return Array.from({ length: count }, (_, at) => Number(Buffer.from(entries.slice(at * 11 + 2, at * 11 + 11)).toString()));
  };
  it("get names that sort in that order, imported ones first", () => {
    assert.deepEqual(placesIn(withOrder(module, 0)), [0, 1, 3, 2, 4, 5]);
  });
  it("keep short numbers, which those have that are called most", () => {
    assert.deepEqual(placesIn(withOrder(module, 3)), [0, 1, 2, 3, 4, 5]);
    assert.deepEqual(placesIn(withOrder(module, 2)), [0, 1, 2, 4, 3, 5]);
    assert.deepEqual(placesIn(withOrder(module)), [0, 1, 2, 3, 4, 5]);
  });
});

describe("copies of known lengths", () => {
  const folder = mkdtempSync(join(tmpdir(), "timepail-copies-"));
  after(() => rmSync(folder, { recursive: true }));
  const lengths = [1, 2, 3, 7, 8, 12, 13, 16, 24, 31, 48, 75, 76, 77, 200];
  const features = ["--enable-bulk-memory", "--enable-bulk-memory-opt", "--enable-simd"];
  const printed = async (text) => {
    writeFileSync(join(folder, "in.wat"), text);
    await must(bin("wasm-as"), [...features, join(folder, "in.wat"), "-o", join(folder, "in.wasm")]);
    return must(bin("wasm-dis"), [...features, join(folder, "in.wasm"), "-o", "-"]);
  };
  const compiled = async (text) => {
    await printed(text);
    const module = readFileSync(join(folder, "in.wasm"));
    return { module, exports: (await WebAssembly.instantiate(module)).instance.exports };
  };
  const copy = (operands) => `(memory.copy ${operands})`;
  const [target, source, length] = ["(local.get 0)", "(local.get 1)", "(local.get 2)"];
  const functions = [
    ...lengths.map((length) => `(func (export "of${length}") (param i32 i32) ${copy(`${target} ${source} (i32.const ${length})`)})`),
    `(func (export "any") (param i32 i32 i32) ${copy(`${target} ${source} ${length}`)})`,
    // A copy in an operand of another one, whose length is computed from a constant.
    `(func (export "nested") (param i32 i32 i32)
      ${copy(`(block (result i32) ${copy(`${target} ${source} (i32.const 4)`)} ${target}) (i32.add ${source} (i32.const 8)) (i32.add ${length} (i32.const 4))`)})`,
  ];
  const text = `(module (memory (export "memory") 1) ${functions.join("\n")})`;

  it("become calls up to 76 bytes, and copy what the instruction does, also onto themselves", async () => {
    const given = await compiled(text);
    const changed = withShortCopies(await printed(text));
    const left = changed.split("\n").filter((line) => line.trim() === "(memory.copy").length;
    // Those of 77 and 200 bytes, and the two with a length that is not constant.
    assert.equal(left, 4);
    const made = await compiled(changed);
    const bytesAfter = ({ exports }, name, ...operands) => {
      const bytes = new Uint8Array(exports.memory.buffer);
      bytes.forEach((_, at) => (bytes[at] = (at * 7) ^ (at >> 8)));
      exports[name](...operands);
      return bytes.slice(0, 1024);
    };
    const calls = [
      ...lengths.flatMap((length) => [[300, 100], [100, 300], [101, 100], [100, 103], [110, 100]].map((places) => [`of${length}`, ...places])),
      ["any", 300, 100, 12],
      ["nested", 300, 100, 9],
    ];
    for (const call of calls) assert.deepEqual(bytesAfter(made, ...call), bytesAfter(given, ...call), call.join());
  });
  it("leave a module without such copies as it is", async () => {
    const text = await printed(`(module (memory 1) (func (export "any") (param i32 i32 i32) ${copy(`${target} ${source} ${length}`)}))`);
    assert.equal(withShortCopies(text), text);
  });
});

describe("the features of a module", () => {
  it("are those that it lists", () => {
    const module = Buffer.from([0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...custom("target_features", 2, 0x2b, text("simd128"), 0x2b, text("sign-ext"))]);
    assert.deepEqual(featuresOf(module), ["simd128", "sign-ext"]);
    assert.deepEqual(featuresOf(module.subarray(0, 8)), []);
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

  // Not `fetch`, which normalises dots in the path before sending it.
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
  it("answers wasm files as application/wasm, which streaming compilation needs", async () => {
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

describe("the run of all tests", () => {
  it("starts where no npm package is installed, because it installs them", async () => {
    const folder = mkdtempSync(join(tmpdir(), "timepail-scripts-"));
    after(() => rmSync(folder, { recursive: true, force: true }));
    for (const file of readdirSync(join(JS, "scripts"))) copyFileSync(join(JS, "scripts", file), join(folder, file));
    const { code, output } = await run(process.execPath, [join(folder, "test.mjs"), "no-such-stage"]);
    // Node has resolved all imports when the script reads its arguments.
    assert.match(output, /there is no stage no-such-stage/);
    assert.equal(code, 1);
  });
  it("keeps compiled dependencies where no npm package is installed: the stage native runs meanwhile", async () => {
    const folder = mkdtempSync(join(tmpdir(), "timepail-scripts-"));
    after(() => rmSync(folder, { recursive: true, force: true }));
    mkdirSync(join(folder, "kernels"));
    mkdirSync(join(folder, "tests"));
    for (const file of ["Cargo.lock", "Cargo.toml", "kernels/Cargo.toml"]) copyFileSync(join(ROOT, file), join(folder, file));
    cpSync(join(JS, "scripts"), join(folder, "js/scripts"), { recursive: true });
    const script = `import { withDependencies } from "./js/scripts/compiled.mjs";
      console.log(await withDependencies("host", process.env, ["soak"], async () => "worked", { tools: "tools", target: "target" }));`;
    const { output } = await run(process.execPath, ["--input-type=module", "--eval", script], { cwd: folder, env: await toolEnv("env") });
    assert.equal(output, "worked\n");
  });
});

describe("compiled dependencies", () => {
  const folder = mkdtempSync(join(tmpdir(), "timepail-compiled-"));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const tools = join(folder, "tools");
  const hash = "0123456789abcdef";

  /** A clone in which `compile` has run; resolves to the files of dependencies that were there before. */
  async function clone(name, compile = () => {}) {
    const target = join(folder, name);
    let before;
    const work = async () => {
      before = existsSync(join(target, "soak/deps")) ? readdirSync(join(target, "soak/deps")) : [];
      compile(join(target, "soak"));
    };
    await withDependencies("test", await toolEnv("env"), ["soak"], work, { tools, target });
    return before;
  }

  it("are taken from another clone, without the crates and tests of this repository", async () => {
    const files = [`libserde-${hash}.rlib`, `serde-${hash}.d`, `libtimepail-${hash}.rlib`, "timepail.wasm", `libtimepail_kernels-${hash}.rlib`, `query-${hash}`];
    const compile = (profile) => {
      for (const part of ["deps", ".fingerprint", "incremental"]) mkdirSync(join(profile, part), { recursive: true });
      files.forEach((file) => writeFileSync(join(profile, "deps", file), ""));
      for (const name of ["serde", "timepail"]) mkdirSync(join(profile, ".fingerprint", `${name}-${hash}`));
    };
    assert.deepEqual(await clone("first", compile), []);
    assert.deepEqual(await clone("second"), [`libserde-${hash}.rlib`, `serde-${hash}.d`]);
    assert.deepEqual(readdirSync(join(folder, "second/soak")), [".fingerprint", "deps"]);
    assert.deepEqual(readdirSync(join(folder, "second/soak/.fingerprint")), [`serde-${hash}`]);
  });
  it("are not brought into a clone that has compiled some itself", async () => {
    mkdirSync(join(folder, "busy/soak/deps"), { recursive: true });
    writeFileSync(join(folder, `busy/soak/deps/libbson-${hash}.rlib`), "");
    assert.deepEqual(await clone("busy"), [`libbson-${hash}.rlib`]);
  });
  it("are not kept if compiling has failed", async () => {
    const failing = async () => {
      mkdirSync(join(folder, "broken/soak/deps"), { recursive: true });
      return { code: 101 };
    };
    await withDependencies("broken", await toolEnv("env"), ["soak"], failing, { tools, target: join(folder, "broken") });
    assert.equal(readdirSync(tools).length, 1);
  });
  it("are deleted if no clone has asked for them for a month", async () => {
    mkdirSync(join(tools, "compiled-old"));
    utimesSync(join(tools, "compiled-old"), 0, 0);
    await clone("third");
    assert.equal(readdirSync(tools).length, 1);
  });
});
