// Makes the JavaScript glue of wasm-bindgen smaller. A step that finds nothing to replace fails, because wasm-bindgen then writes the glue in another way.

import { SHARED } from "./split.mjs";
import { Stop } from "./steps.mjs";

/** The exports of the first half that the second one imports, under the names of wasm-bindgen. */
const SHARED_NAMES = ["memory", "table0", "table1", "global0"];

/** The glue with all matches of `pattern` replaced. There must be one. */
function replaced(glue, pattern, replacement) {
  const result = glue.replace(pattern, replacement);
  if (result === glue) throw new Stop(`the glue has nothing like ${pattern}: wasm-bindgen writes it in another way now`);
  return result;
}

/**
 * The glue without its code for fetching and compiling a module and its console messages: load.ts does both, and always passes a
 * `WebAssembly.Module`.
 */
export function withoutLoader(glue) {
  const start = glue.indexOf("let wasmModule, wasmInstance, wasm;");
  const end = glue.indexOf("export { initSync, __wbg_init as default };");
  if (start < 0 || end < start || !glue.includes("    wasm.__wbindgen_start();\n    return wasm;\n")) throw new Stop("the glue loads the module in another way now");
  const load = `let wasm;
async function __wbg_init({ module_or_path: module }) {
    if (wasm) return;
    wasm = (await WebAssembly.instantiate(module, __wbg_get_imports())).exports;
    wasm.__wbindgen_start();
}
async function complete(module) {
    const shared = { ${SHARED_NAMES.map((name) => `${name}: wasm.${name}`).join(", ")} };
    await WebAssembly.instantiate(module, { ...__wbg_get_imports(), ${SHARED}: shared, Math });
}
export { __wbg_init as default, complete };
`;
  return glue.slice(0, start) + load;
}

/** The glue without what no supported runtime needs, and with shorter forms of what it repeats. */
export function simplified(glue) {
  const steps = [
    // The driver closes engines, and never frees them. The garbage collector does.
    [/    __destroy_into_raw\(\) \{[^]*?    free\(\) \{[^]*?\n    \}\n/, ""],
    [/if \(Symbol\.dispose\) .*\n/, ""],
    // The arguments are strings and byte arrays, for which the copy into the memory of the module cannot fail.
    [/let ptr0, len0, ptr1, len1;\s+try \{([^]*?)\s+\} catch \(e\) \{[^]*?throw e;\s+\}/g, (_, passing) => passing.replaceAll(/\w+(?= = )/g, "const $&")],
    // Functions that catch errors for the module.
    [/function\(\) \{ return handleError\(function \((.*)\) \{/g, "handleError(($1) => {"],
    [/\}, arguments\); \}/g, "})"],
    [/function handleError\(f, args\) \{\s+try \{\s+return f\.apply\(this, args\);([^]*?\n)\}\n/, "function handleError(f) {\n    return (...args) => {\n    try {\n        return f(...args);$1    };\n}\n"],
    // IndexedDB may be missing; its values then do not exist either.
    [/let result;\s+try \{\s+result = (arg0 instanceof (\w+));\s+\} catch \(_\) \{\s+result = false;\s+\}\s+const ret = result;/g, (_, test, name) => `const ret = ${name.startsWith("IDB") ? `typeof ${name} === "function" && ` : ""}${test};`],
    [/(?<=const ret = )typeof (globalThis|global|self|window) === 'undefined' \? undefined : \1;/g, "globalThis;"],
    [/(?<=\n +[\w$]+: )function\((.*)\) \{/g, "($1) => {"],
    // Wrappers that only call a function.
    [/\((arg\d(?:, arg\d)*)\) => \{\s+const ret = ((?:Math|Object|Array)\.\w+)\(\1\);\s+return ret;\s+\}/g, "$2"],
    // Strings are always passed with `realloc`, and every runtime has `encodeInto` and a new buffer for grown memory.
    [/    if \(realloc === undefined\) \{[^]*?\n    \}\n/, ""],
    [/if \(!\('encodeInto' in [^]*?\n\}\n/, ""],
    [/cachedDataViewMemory0\.buffer\.detached === true \|\| \(.* && (.*)\)\) \{/, "$1) {"],
  ];
  return steps.reduce((text, [pattern, replacement]) => replaced(text, pattern, replacement), glue);
}

/** The entries of imports that are functions of `Math`, by name. Where the second half alone has one, it imports it from `Math` itself. */
export function mathIn(glue) {
  return new Map(Array.from(glue.matchAll(MATH), ([, name, of]) => [name, of]));
}

const MATH = /^ +([\w$]+): Math\.(\w+),\n/gm;

/**
 * The glue with the short names that wasm-opt has given to the imports and exports of the module. The hundred long names contain hashes,
 * are in both files and compress badly: short ones save three kilobytes of the module and two of the glue.
 */
export function shortened(glue, { imports, exports }) {
  const literal = (name) => name.replaceAll(/[$.]/g, "\\$&");
  const dollars = (name) => name.replaceAll("$", "$$$$");
  const isImported = new Set(imports.map(([, name]) => name));
  glue = glue.replaceAll(MATH, (entry, name) => (isImported.has(name) ? entry : ""));
  for (const [, name, short] of imports) glue = replaced(glue, new RegExp(`(?<=^ +)${literal(name)}(?=:)`, "m"), dollars(short));
  // Some exports are for tools and threads; the glue does not use them.
  for (const [name, short] of exports) glue = glue.replaceAll(new RegExp(`(?<=\\bwasm\\.)${literal(name)}\\b`, "g"), dollars(short));
  // All imports come from one module, which wasm-opt calls "a".
  return replaced(glue, new RegExp(`"${literal(imports[0][0])}"(?=: import)`), '"a"');
}
