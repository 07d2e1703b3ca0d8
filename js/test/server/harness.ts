// Servers and clients for the tests in this folder: each server is a process of `timepail serve` with a file of its own.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
// @ts-expect-error a script without types
import { clients } from "../../scripts/clients.mjs";
// @ts-expect-error a script without types
import { node24 } from "../../scripts/runtimes.mjs";

export const places: { packages: string; mongodb: string; mongosh: string; python: string } = await clients();
/** The official driver, which is installed apart from the dependencies of the package. */
export const { MongoClient, MongoBulkWriteError, MongoServerError, Long, Decimal128, ObjectId }: any = createRequire(import.meta.url)(places.mongodb);

export const node: string = node24();
export const folder = mkdtempSync(join(tmpdir(), "timepail-server-"));
const CLI = join(process.cwd(), "dist/cli.js");
/** Certificate and key of `localhost`, only for these tests. */
export const CERTIFICATE = join(process.cwd(), "test/server/localhost.pem");

/** A running server. */
export interface Served {
  uri: string;
  process: ChildProcess;
  /** Its other output so far. */
  said(): string;
  /** Stops the server, waits until it has ended, and resolves to its exit code. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
}

const running = new Set<ChildProcess>();

after(async () => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** The path of a file in the folder of this test. */
export const file = (name: string): string => join(folder, name);

/** Starts `timepail serve` over a file, on a free port. */
export async function served(name: string, ...args: string[]): Promise<Served> {
  const child = spawn(node, [CLI, "serve", file(name), "--port", "0", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  let said = "";
  child.stderr.on("data", (text) => (said += text));
  child.once("exit", () => running.delete(child));
  const uri = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (line) => resolve(/mongodb:\S+/.exec(String(line))![0]));
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
  });
  const end = async (signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> => {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const ended = once(child, "exit");
    child.kill(signal);
    return (await ended)[0] as number | null;
  };
  return { uri, process: child, said: () => said, end };
}

/** Runs `timepail` and waits until it has ended. */
export function timepail(args: string[], input = ""): { code: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(node, ["--no-warnings", CLI, ...args], { input, encoding: "utf8", cwd: folder });
  return { code: status, out: stdout, err: stderr };
}

/** The same address with credentials. */
export const as = (uri: string, name: string, password: string): string => uri.replace("mongodb://", `mongodb://${encodeURIComponent(name)}:${encodeURIComponent(password)}@`);
