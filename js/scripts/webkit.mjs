// Starts WebKitGTK for tests, through its WebDriver and on an X server without a screen. Its pages have the methods of
// playwright-core's pages that the tests use.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Stop, TOOLS } from "./steps.mjs";

const START_MS = 30_000;
const WAIT_MS = 30_000;
const COMMAND_MS = 60_000;
/** How long a function may take in the page. */
const EVALUATE_MS = 120_000;
const POLL_MS = 10;

/** The paths that the toolchain script has found, or `WEBKIT_MISSING`, the reason why it has found none. */
export function webkitTools() {
  let noted = "";
  try {
    noted = readFileSync(join(TOOLS, "webkit-env"), "utf8");
  } catch {
    // The environment may set all of the paths.
  }
  const found = Object.fromEntries([...noted.matchAll(/^export (\w+)="([^"]*)"$/gm)].map(([, name, value]) => [name, value]));
  for (const name of ["WEBKIT_DRIVER", "WEBKIT_PATH", "XVFB"]) found[name] = process.env[name] ?? found[name];
  return found;
}

/** Starts a browser with its configuration in the folder `profile`. What pages store ends with the browser, because driven sessions keep nothing. */
export async function launchWebKit(profile) {
  const { WEBKIT_DRIVER, WEBKIT_PATH, XVFB } = webkitTools();
  if (!WEBKIT_DRIVER || !WEBKIT_PATH || !XVFB) throw new Stop("there is no WebKit: run js/scripts/toolchain.sh webkit");
  const screen = tied(XVFB, ["-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp"]);
  let driver;
  try {
    const [display] = await Promise.race([once(screen.stdio[3], "data"), failed(screen, "Xvfb")]);
    const port = await freePort();
    driver = tied(WEBKIT_DRIVER, [`--port=${port}`], {
      ...process.env,
      DISPLAY: `:${String(display).trim()}`,
      // It only ever loads pages of this project from loopback.
      WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: "1",
      NO_AT_BRIDGE: "1",
      GSETTINGS_BACKEND: "memory",
      ...Object.fromEntries(["CACHE", "CONFIG", "DATA"].map((kind) => [`XDG_${kind}_HOME`, join(profile, kind.toLowerCase())])),
    });
    const session = new Session(`http://127.0.0.1:${port}`);
    await Promise.race([session.start(WEBKIT_PATH), failed(driver, "WebKitWebDriver")]);
    return new Browser(session, await session.send("GET", "/window"), () => Promise.all([ended(driver), ended(screen)]));
  } catch (error) {
    await Promise.all([driver, screen].map((program) => program && ended(program)));
    throw error;
  }
}

/**
 * Starts a program in a process group of its own, which ends with this process, however that ends. The shell reads from a pipe to
 * which nothing is written. When the other end closes, the shell kills the group.
 */
function tied(program, args, env = process.env) {
  const script = '("$@"; kill -KILL 0) </dev/null & cat; kill -KILL 0';
  return spawn("/bin/sh", ["-c", script, "sh", program, ...args], { env, detached: true, stdio: ["pipe", "ignore", "ignore", "pipe"] });
}

async function ended(program) {
  const over = program.exitCode === null && program.signalCode === null && once(program, "exit");
  program.stdin.end();
  await over;
}

async function failed(program, name) {
  await Promise.race([once(program, "exit"), pause(START_MS, undefined, { ref: false })]);
  throw new Stop(`${name} did not start`);
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** A WebDriver session. A command applies to the window that was chosen last, so choosing a window and sending the command is one turn. */
class Session {
  #url;
  #turn = Promise.resolve();

  constructor(url) {
    this.#url = url;
  }

  async start(binary) {
    const capabilities = { alwaysMatch: { "webkitgtk:browserOptions": { binary, args: ["--automation"] }, timeouts: { pageLoad: WAIT_MS } } };
    const over = performance.now() + START_MS;
    for (;;) {
      try {
        const { sessionId } = await this.send("POST", "/session", { capabilities });
        this.#url += `/session/${sessionId}`;
        return;
      } catch (error) {
        // Not listening yet.
        if (error.cause?.code !== "ECONNREFUSED" || performance.now() > over) throw error;
        await pause(POLL_MS);
      }
    }
  }

  async send(method, path, body = method === "POST" ? {} : undefined) {
    const response = await fetch(this.#url + path, { method, signal: AbortSignal.timeout(COMMAND_MS), ...(body && { body: JSON.stringify(body) }) });
    const { value } = await response.json();
    if (response.ok) return value;
    throw new Error(`${value.error}: ${value.message}`);
  }

  /** A command for the window `handle`. */
  inWindow(handle, ...command) {
    const result = this.#turn.then(async () => {
      await this.send("POST", "/window", { handle });
      return this.send(...command);
    });
    this.#turn = result.catch(() => {});
    return result;
  }
}

class Browser {
  #session;
  #first;
  #end;

  /** `first` is the window that the session began with. It stays open and empty, because the session ends with its last window. */
  constructor(session, first, end) {
    this.#session = session;
    this.#first = first;
    this.#end = end;
  }

  async newPage() {
    // A window, not a tab: a window stays visible, and hidden pages are slowed down.
    const { handle } = await this.#session.inWindow(this.#first, "POST", "/window/new", { type: "window" });
    return new Page(this.#session, handle);
  }

  async close() {
    await this.#session.send("DELETE", "").catch(() => {});
    await this.#end();
  }
}

/** Scripts that run in the page. `ASK` starts code and returns at once. `ANSWER` returns the outcome once there is one. */
const INSTALL = `
  if (!globalThis.__asked) {
    const reported = [];
    addEventListener("error", ({ message, error }) => reported.push(String(error?.message ?? message)));
    addEventListener("unhandledrejection", ({ reason }) => reported.push(String(reason?.message ?? reason)));
    Object.defineProperty(globalThis, "__asked", { value: { reported, outcomes: [] } });
  }
`;
const ASK = `${INSTALL}
  const [code, argument] = arguments;
  const { outcomes } = __asked;
  const place = outcomes.push(undefined) - 1;
  const settle = (outcome) => (outcomes[place] = JSON.stringify(outcome));
  // A value that is no JSON is an error, too.
  (async () => settle({ value: await (0, eval)(code)(argument) }))().catch((error) => settle({ error: String(error) }));
  return place;
`;
const ANSWER = `${INSTALL}
  const [place] = arguments;
  return [__asked.outcomes[place], __asked.reported.splice(0), place < __asked.outcomes.length];
`;

class Page {
  #session;
  #handle;
  #listeners = [];

  constructor(session, handle) {
    this.#session = session;
    this.#handle = handle;
  }

  on(event, listener) {
    if (event !== "pageerror") throw new Stop(`pages of WebKit know no event ${event}`);
    this.#listeners.push(listener);
  }

  #send(path, body) {
    return this.#session.inWindow(this.#handle, "POST", path, body);
  }

  goto = (url) => this.#send("/url", { url });
  reload = () => this.#send("/refresh");
  goBack = () => this.#send("/back");
  goForward = () => this.#send("/forward");
  close = () => this.#session.inWindow(this.#handle, "DELETE", "/window");

  async evaluate(work, argument) {
    const place = await this.#send("/execute/sync", { script: ASK, args: [`(${work})`, argument ?? null] });
    const over = performance.now() + EVALUATE_MS;
    for (;;) {
      const [outcome, reported, isKnown] = await this.#send("/execute/sync", { script: ANSWER, args: [place] });
      for (const message of reported) for (const listener of this.#listeners) listener(new Error(message));
      if (outcome) {
        const { value, error } = JSON.parse(outcome);
        if (error !== undefined) throw new Error(error);
        return value;
      }
      // Another document has taken the place of the one that was asked, and will never answer.
      if (!isKnown) throw new Error(`the page was replaced before it answered ${work}`);
      if (performance.now() > over) throw new Error(`the page has not answered in ${EVALUATE_MS} ms: ${work}`);
      await pause(POLL_MS);
    }
  }

  async waitForFunction(work, argument, { timeout = WAIT_MS } = {}) {
    const over = performance.now() + timeout;
    for (;;) {
      const value = await this.evaluate(work, argument);
      if (value) return { jsonValue: async () => value };
      if (performance.now() > over) throw new Error(`waited in vain for ${work}`);
      await pause(POLL_MS);
    }
  }
}
