// Writes docs/api.md, the reference of the package, from its declarations in js/dist/*.d.ts.
//
//   node js/scripts/api.mjs

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { DIST, ROOT, main } from "./steps.mjs";

/** The entry points, and the declaration files of each; of some files, only the listed names are exported. */
const MODULES = [
  [
    "timepail",
    [
      "index.d.ts",
      ["database.d.ts", "Database"],
      "collection.d.ts",
      ["find.d.ts", "FindCursor"],
      ["aggregate.d.ts", "AggregationCursor"],
      "live.d.ts",
      ["cursor.d.ts", "AbstractCursor", "CommandCursor"],
      "errors.d.ts",
      "types.d.ts",
      "collection-options.d.ts",
      "schema.d.ts",
      "shapes.d.ts",
      "storage.d.ts",
    ],
  ],
  ["timepail/slim", ["entry/slim.d.ts"]],
  ["timepail/file", ["file.d.ts"]],
  ["timepail/pipelines", ["pipelines.d.ts"]],
  ["timepail/arrow", ["arrow/write.d.ts", "arrow/insert.d.ts"]],
  ["timepail/react", ["react.d.ts", ["shared.d.ts", "Followable", "UseDatabaseOptions"]]],
  ["timepail/vue", ["vue.d.ts"]],
  ["timepail/svelte", ["svelte.d.ts"]],
  ["timepail/sqlite", ["sqlite.d.ts"]],
  ["timepail/deno-kv", ["deno-kv.d.ts"]],
  ["timepail/server", ["server/index.d.ts"]],
  ["timepail/testing", ["testing/memory.d.ts", "testing/contract.d.ts"]],
];
const KINDS = /^export (?:declare )?(?:abstract )?(class|interface|type|function|const) (\w+)/;

/** The whole reference, as Markdown. */
export function reference() {
  const parts = [
    "# Reference",
    "Generated from the type declarations of the package by `node js/scripts/api.mjs`. Names, argument order and results are those of the MongoDB driver for Node. Extensions are marked.",
  ];
  for (const [module, files] of MODULES) {
    parts.push(`## \`${module}\``);
    for (const entry of files) {
      const [file, ...names] = [entry].flat();
      for (const declaration of declarations(readFileSync(join(DIST, file), "utf8").split("\n"), "")) {
        const [, kind, name] = KINDS.exec(declaration.code[0]) ?? [];
        if (name && (names.length === 0 || names.includes(name))) parts.push(...shown(kind, name, declaration));
      }
    }
  }
  return `${parts.join("\n\n")}\n`;
}

/** The declarations at one indentation, each with its preceding comment. */
function declarations(lines, indent) {
  const found = [];
  let doc = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    if (!line.startsWith(indent) || /^\s/.test(line.slice(indent.length)) || line.trim() === "") continue;
    if (line.startsWith(`${indent}/**`)) {
      const from = at;
      while (!lines[at].endsWith("*/")) at++;
      doc = lines.slice(from, at + 1).map((text) => text.trim().replace(/^\/\*\*\s?|^\*\/$|^\* ?|\s*\*\/$/g, ""));
      continue;
    }
    const from = at;
    // A declaration ends at a closing line of the same depth.
    while (!/[;}]$/.test(lines[at]) || (at > from && /^\s/.test(lines[at].slice(indent.length)))) at++;
    const code = lines.slice(from, at + 1);
    if (!doc.includes("@internal")) found.push({ doc, code });
    doc = [];
  }
  return found;
}

function shown(kind, name, { doc, code }) {
  const title = `### ${kind === "interface" || kind === "const" ? "" : `${kind} `}\`${name}\``;
  if (kind !== "class" && kind !== "interface") return [title, ...prose(doc), fenced(code.map((line) => line.replace(/^export (declare )?/, "")))];
  const head = code[0].replace(/^export (declare )?/, "").replace(/ \{\}?$/, "");
  const members = declarations(code.slice(1, -1), "    ").filter((member) => !/^\s*(#private|constructor|private )/.test(member.code[0]));
  const items = members.flatMap(({ doc, code }) => [`**\`${code.map((line) => line.trim()).join(" ").replace(/;$/, "")}\`**`, ...prose(doc)]);
  return [title, ...(/ extends | implements |</.test(head) ? [`\`${head}\``] : []), ...prose(doc), ...items];
}

const fenced = (lines) => ["```ts", ...lines, "```"].join("\n");

/** The paragraphs of a comment, with tags written as sentences. */
function prose(doc) {
  const text = doc
    .join("\n")
    .replace(/\{@link ([^}]+)\}/g, "`$1`")
    .replace(/^@throws (\w+)(.*)/gm, "\nFails with `$1`$2.")
    .replace(/^@param (\w+) - /gm, "\n`$1`: ")
    .replace(/^@returns /gm, "\nReturns ")
    .replace(/^@example\n/gm, "\n")
    .trim();
  return text === "" ? [] : [text.replace(/\n{3,}/g, "\n\n")];
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await main(async () => {
    writeFileSync(join(ROOT, "docs/api.md"), reference());
    console.log("docs/api.md");
  });
}
