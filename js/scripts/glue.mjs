// Makes the JavaScript glue of wasm-bindgen smaller. A step that finds nothing to replace fails, because wasm-bindgen then writes the glue in another way.

import { SHARED } from "./split.mjs";
import { Stop } from "./steps.mjs";

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
async function __wbg_init(module) {
    if (wasm) return;
    wasm = (await WebAssembly.instantiate(module, __wbg_get_imports())).exports;
    wasm.__wbindgen_start();
}
async function complete(module) {
    await WebAssembly.instantiate(module, { ...__wbg_get_imports(), ${SHARED}: wasm, Math });
}
export { __wbg_init as default, complete };
`;
  return glue.slice(0, start) + load;
}

/**
 * Functions that take the place of those of the glue. Few strings pass, and short ones, so they are encoded before they are copied. Views of
 * the memory are made anew, because it grows.
 */
const HELPERS = `const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();
const view = () => new DataView(wasm.memory.buffer);
const getArrayU8FromWasm0 = (at, size) => new Uint8Array(wasm.memory.buffer, at >>> 0, size);
const getStringFromWasm0 = (at, size) => decoder.decode(getArrayU8FromWasm0(at, size));
const addToExternrefTable0 = (value) => {
    if (value == null) return 0;
    const at = wasm.__externref_table_alloc();
    wasm.__wbindgen_externrefs.set(at, value);
    return at;
};
const passArray8ToWasm0 = (bytes) => {
    if (bytes == null) return 0;
    WASM_VECTOR_LEN = bytes.length;
    const at = wasm.__wbindgen_malloc(WASM_VECTOR_LEN, 1);
    getArrayU8FromWasm0(at, WASM_VECTOR_LEN).set(bytes);
    return at;
};
const passStringToWasm0 = (text) => passArray8ToWasm0(encoder.encode(text));
const returnText = (to, text) => {
    const at = text == null ? 0 : passStringToWasm0(text);
    new Uint32Array(wasm.memory.buffer, to >>> 0, 2).set([at, WASM_VECTOR_LEN]);
};
const registryOf = (end) => globalThis.FinalizationRegistry && new FinalizationRegistry(end);
let WASM_VECTOR_LEN = 0;
`;

/** What they replace, and what these needed. */
const FUNCTIONS = "addToExternrefTable0|decodeText|getArrayU8FromWasm0|get(?:DataView|Uint8Array)Memory0|getStringFromWasm0|isLikeNone|pass(?:Array8|String)ToWasm0";
const VARIABLES = "cached\\w+|MAX_SAFARI_DECODE_BYTES|numBytesDecoded|WASM_VECTOR_LEN";
const REPLACED = new RegExp(
  `\\n(?:let|const) (?:${VARIABLES}) = .*;|\\ncachedTextDecoder\\.decode\\(\\);|\\nif \\(!\\('encodeInto' in [^]*?\\n\\}|\\nfunction (?:${FUNCTIONS})\\([^]*?\\n\\}`,
  "g",
);

/** The glue without what no supported runtime needs, and with shorter forms of what it repeats. */
export function simplified(glue) {
  const steps = [
    [/^ +\/\/ Cast intrinsic .*\n/gm, ""],
    // The driver closes engines, and never frees them. The garbage collector does.
    [/    __destroy_into_raw\(\) \{[^]*?    free\(\) \{[^]*?\n    \}\n/, ""],
    [/static __wrap\(ptr\) \{[^]*?\n    \}/, "constructor(ptr) {\n        this.ptr = ptr;\n        EngineFinalization.register(this, ptr);\n    }"],
    [/this\.__wbg_ptr/g, "this.ptr"],
    [/Engine\.__wrap\(/g, "new Engine("],
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
    [/\((arg\d(?:, arg\d)*)\) => \{\s+const ret = ((?:Math|Object|Array|Reflect|JSON)\.\w+|getStringFromWasm0)\(\1\);\s+return ret;\s+\}/g, "$2"],
    [/Uint8Array\.prototype\.set\.call\(([^;]*), arg2\);/, "$1.set(arg2);"],
    // `Promise` calls its argument at once, and once.
    [/try \{\s+var state0 = [^]*?return (\w+)\(a, state0\.b, arg0, arg1\);[^]*?state0\.a = 0;\s+\}/, "return new Promise((resolve, reject) => $1(arg0, arg1, resolve, reject));"],
    // Functions that only call one of the module.
    [/(?<==> )(\w+)(?=\(arg0, arg1, resolve, reject\)\);[^]*?\nfunction \1(\(arg0, arg1, arg2, arg3\)) \{\s+(wasm\.\w+)\2;\s+\})/, "$3"],
    [/(?<=makeMutClosure\(arg0, arg1, )(\w+)(?=\);[^]*?\nfunction \1\((arg0, arg1, arg2)\) \{\s+(wasm\.\w+)\(\2\);\s+\})/g, (all, name, params, call) => `(${params}) => ${call}(${params})`],
    // Both registries of what the garbage collector has found. A runtime may lack them.
    [/\(typeof FinalizationRegistry === 'undefined'\)\s+\? .*\s+: new FinalizationRegistry/g, "registryOf"],
    [/(EngineFinalization|CLOSURE_DTORS)(?=\.)/g, "$1?"],
    // Strings, byte arrays and values that may be missing.
    [/(?:isLikeNone\((\w+)\) \? 0 : )?(pass(?:Array8|String)ToWasm0)\((\w+), wasm\.__wbindgen_malloc(?:, wasm\.__wbindgen_realloc)?\)/g, "$2($3)"],
    [/(?:var|const) ptr1 = passStringToWasm0\(ret\);\s+(?:var|const) len1 = .*\s+.*\s+.* ptr1, true\);/g, "returnText(arg0, ret);"],
    [/isLikeNone\((\w+)\) \? 0 : addToExternrefTable0\(\1\)/g, "addToExternrefTable0($1)"],
    [/const v = arg0;\s+const ret = typeof\(v\) === 'boolean' \? v : undefined;\s+.*/, "return typeof arg0 === 'boolean' ? arg0 : 0xFFFFFF;"],
    [/const obj = arg1;\s+const ret = typeof\(obj\)(.*)\? obj/g, "const ret = typeof arg1$1? arg1"],
    [/const (ret|idx) = (.*);(\s+.*(?:\baddToExternrefTable0|\breturnText|_exn_store)\((?:arg0, )?)\1\);/g, "$3$2);"],
    [REPLACED, ""],
    [/!isLikeNone\((\w+)\)/g, "$1 != null"],
    [/isLikeNone\((\w+)\)/g, "$1 == null"],
    [/getDataViewMemory0\(\)/g, "view()"],
    [/ \+ 4 \* 0|(?<=\d) \* 1\b/g, ""],
    // Results that the module does not expect are ignored.
    [/(?<=\) => )\{\s+(?!(?:return|const|throw|var)\b)([^\s;{}][^;{}]*);\s+\}(?=\)?,\n)/g, "$1"],
    [/^/, HELPERS],
    [/__proto__: null,\s+/g, ""],
    [/\._wbg_cb_unref\b/g, ".release"],
  ];
  return steps.reduce((text, [pattern, replacement]) => replaced(text, pattern, replacement), glue);
}

/** The entries of imports that are functions of `Math`, by name. Where the second half alone has one, it imports it from `Math` itself. */
export function mathIn(glue) {
  return new Map(Array.from(glue.matchAll(/^ +([\w$]+): Math\.(\w+),\n/gm), ([, name, of]) => [name, of]));
}

/**
 * The glue with its imports as a list, and the place in it of each import that has one, by name. Without the hundred long names, which contain
 * hashes, glue and modules are smaller. Equal functions share a place. Similar ones follow each other, so that they compress well.
 */
export function listed(glue, hasPlace) {
  const object = /const import0 = \{\n([^]*?)\n    \};/;
  const entries = Array.from(object.exec(glue)[1].matchAll(/^ {8}([\w$]+): ([^]*?),$(?=\n {8}[\w$]|(?![^]))/gm), ([, name, code]) => [name, code]);
  const listed = entries.filter(([name]) => hasPlace(name));
  // Without names of properties, and then with them.
  const shapeOf = (code) => code.replaceAll(/\.\w+/g, ".") + code;
  const codes = [...new Set(listed.map(([, code]) => code))].toSorted((a, b) => (shapeOf(a) < shapeOf(b) ? -1 : 1));
  const list = `const import0 = [\n        ${codes.join(",\n        ")},\n    ];`;
  return { glue: replaced(glue, object, () => list), places: new Map(listed.map(([name, code]) => [name, String(codes.indexOf(code))])) };
}

/** The glue with the short names that wasm-opt has given to the exports of the module, and a short name of the list of imports. */
export function shortened(glue, { imports, exports }) {
  const literal = (name) => name.replaceAll(/[$.]/g, "\\$&");
  // Some exports are for tools and threads; the glue does not use them.
  for (const [name, short] of exports) glue = glue.replaceAll(new RegExp(`(?<=\\bwasm\\.)${literal(name)}\\b`, "g"), () => short);
  return replaced(glue, new RegExp(`"${literal(imports[0][0])}"(?=: import)`), '"a"');
}
