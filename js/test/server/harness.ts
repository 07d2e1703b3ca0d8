// Servers for the tests beside this file: `timepail serve` in processes of their own, over files of their own, and the clients that ask them.

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

export const places: { mongodb: string; mongosh: string; python: string } = await clients();
/** The official driver, which is not among the packages that this one depends on. */
export const { MongoClient, MongoBulkWriteError, MongoServerError, Long, Decimal128, ObjectId }: any = createRequire(import.meta.url)(places.mongodb);

export const node: string = node24();
export const folder = mkdtempSync(join(tmpdir(), "timepail-server-"));
const CLI = join(process.cwd(), "dist/cli.js");
/** Certificate and key of `localhost`, for these tests alone. */
export const CERTIFICATE = join(process.cwd(), "test/server/localhost.pem");

/** A server that runs. */
export interface Served {
  uri: string;
  process: ChildProcess;
  /** What it has said besides, so far. */
  said(): string;
  /** Ends it, and waits for its end; gives its exit code. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
}

const running = new Set<ChildProcess>();

after(async () => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** A file in the folder of this test. */
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

/** Runs `timepail` to its end. */
export function timepail(args: string[], input = ""): { code: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(node, ["--no-warnings", CLI, ...args], { input, encoding: "utf8", cwd: folder });
  return { code: status, out: stdout, err: stderr };
}

/** The same address with a user. */
export const as = (uri: string, name: string, password: string): string => uri.replace("mongodb://", `mongodb://${encodeURIComponent(name)}:${encodeURIComponent(password)}@`);
