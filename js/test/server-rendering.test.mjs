// The examples with React, Vue and Svelte, rendered on a server: they show what they show before the database is open, and open nothing.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { transform } from "esbuild";

/** Inside js, where packages are found. */
const OUT = join(process.cwd(), ".test-build/server");

const EMPTY = /^<label>at least <input[^>]*type="number"[^>]*>.*<\/label>\s*<ul>\s*<\/ul>\s*<button disabled[^>]*>Measure<\/button>$/;

/** Imports a module with this text. */
function moduleOf(name, text) {
  mkdirSync(OUT, { recursive: true });
  writeFileSync(join(OUT, name), text);
  return import(join(OUT, name));
}

/** The HTML without comments, which only mark its parts for hydration. Asserts that rendering opens no database. */
async function shown(render) {
  const opened = [];
  globalThis.indexedDB = { open: (name) => opened.push(name) };
  try {
    const html = await render();
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(opened, []);
    return html.replaceAll(/<!--.*?-->/g, "");
  } finally {
    delete globalThis.indexedDB;
  }
}

test("React renders the component without its rows", async () => {
  const { createElement } = await import("react");
  const { renderToString } = await import("react-dom/server");
  const { code } = await transform(readFileSync("examples/react/rooms.jsx", "utf8"), { loader: "jsx", jsx: "automatic" });
  const { Rooms } = await moduleOf("react.mjs", code);
  assert.match(await shown(() => renderToString(createElement(Rooms))), EMPTY);
});

test("Vue renders the component without its rows", async () => {
  const { createSSRApp } = await import("vue");
  const { renderToString } = await import("vue/server-renderer");
  const { parse, compileScript } = await import("vue/compiler-sfc");
  const { descriptor } = parse(readFileSync("examples/vue/rooms.vue", "utf8"));
  const { content } = compileScript(descriptor, { id: "rooms", inlineTemplate: true, templateOptions: { ssr: true } });
  const { default: Rooms } = await moduleOf("vue.mjs", content);
  assert.match(await shown(() => renderToString(createSSRApp(Rooms))), EMPTY);
});

test("Svelte renders the component without its rows, and a store once", async () => {
  const { render } = await import("svelte/server");
  const { compile } = await import("svelte/compiler");
  const component = async (name, text) => (await moduleOf(name, compile(text, { generate: "server", dev: false }).js.code)).default;
  const Rooms = await component("svelte.mjs", readFileSync("examples/svelte/rooms.svelte", "utf8"));
  assert.match(await shown(() => render(Rooms).body), EMPTY);
  const Store = await component("store.mjs", `<script>import { useDatabase } from "timepail/svelte"; const db = useDatabase("home");</script><p>{$db ? "open" : "not yet"}</p>`);
  assert.equal(await shown(() => render(Store).body), "<p>not yet</p>");
});
