// Serves the demo page on this machine: www/ at the root, the built package and the libraries of the page beside it.
//
//   node js/scripts/serve.mjs [--port 8642]     the next free port when none is given and 8642 is taken

import { createReadStream, realpathSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { DIST, JS, ROOT, Stop, main } from "./steps.mjs";

const TYPES = {
  ".css": "text/css; charset=utf-8",
  ".csv": "text/csv; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".map": "application/json; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml; charset=utf-8",
  ".ts": "text/plain; charset=utf-8",
  ".txt": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
  ".webmanifest": "application/manifest+json",
};
const FIRST_PORT = 8642;
const VENDOR = { uplot: "dist", bson: "lib", "vega-datasets": "data", dexie: "dist" };

/** URL prefixes and the folders behind them; the longest prefix comes first. Libraries show one folder each, as /vendor/<name>/. */
function mounts(root, more) {
  const vendor = Object.entries(VENDOR).map(([name, folder]) => [`/vendor/${name}/`, join(JS, "node_modules", name, folder)]);
  return [...Object.entries(more), ...vendor, ["/timepail/", DIST], ["/", root]];
}

/** The file that a URL path names. Undefined if there is none, if it is outside its folder (by dots or by a link), or if the path cannot be decoded. */
function resolve(path, folders) {
  try {
    const decoded = decodeURIComponent(path);
    const [prefix, folder] = folders.find(([prefix]) => decoded.startsWith(prefix));
    const base = realpathSync(folder);
    let file = realpathSync(join(base, decoded.slice(prefix.length)));
    if (statSync(file).isDirectory()) file = realpathSync(join(file, "index.html"));
    return file.startsWith(base + sep) && statSync(file).isFile() ? file : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Starts the server on 127.0.0.1. Without `port` it takes 8642 or the next free one; 0 asks the system for any.
 * `more` maps further URL prefixes to folders. Resolves to `{ url, close }`; `url` has no slash at the end.
 */
export async function serve({ port, root = join(ROOT, "www"), more = {} } = {}) {
  const folders = mounts(root, more);
  const server = createServer((request, response) => {
    const head = { "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff" };
    const answer = (status, text) => response.writeHead(status, { ...head, "Content-Type": TYPES[".txt"] }).end(`${text}\n`);
    if (request.method !== "GET" && request.method !== "HEAD") return answer(405, "only GET and HEAD");
    const path = request.url.replace(/[?#].*$/, "");
    const file = resolve(path, folders);
    if (file === undefined) return answer(404, `nothing at ${path}`);
    const type = TYPES[extname(file)] ?? "application/octet-stream";
    response.writeHead(200, { ...head, "Content-Type": type, "Content-Length": statSync(file).size });
    if (request.method === "HEAD") return response.end();
    createReadStream(file).on("error", () => response.destroy()).pipe(response);
  });
  await listen(server, port);
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function listen(server, port) {
  const last = port === undefined ? FIRST_PORT + 100 : port;
  for (let candidate = port ?? FIRST_PORT; ; candidate++) {
    try {
      return await new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(candidate, "127.0.0.1", () => {
          server.off("error", reject);
          resolve();
        });
      });
    } catch (error) {
      if (error.code !== "EADDRINUSE") throw error;
      if (candidate >= last) throw new Stop(`port ${candidate} is taken`);
    }
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href)
  await main(async () => {
    const [flag, value, ...rest] = process.argv.slice(2);
    if ((flag !== undefined && flag !== "--port") || rest.length > 0) throw new Stop("there is only --port NUMBER");
    if (flag && !/^\d{1,5}$/.test(value ?? "")) throw new Stop("--port needs a number");
    const { url } = await serve({ port: flag && Number(value) });
    console.log(`timepail is at ${url}/ (Ctrl-C ends it)`);
  });
