// `timepail serve`: serves a file to MongoDB's drivers and shells.

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import * as v8 from "node:v8";
// Import by name and not by path: it is a separate file, and not bundled into this one.
import { serve, type ServeOptions } from "timepail/server";
import { Usage, positional, type CliCommand } from "./command.js";

const help = `
Serves the time-series collections of a database file to MongoDB's drivers and shells: mongosh, Compass, PyMongo, the official drivers.
The file is created if it does not exist. The database with the name of the file is the one that openFile of timepail/file opens. Clients can create others in the same file.

  --port <port>           port to listen on; 0 chooses a free one (default: 27017)
  --host <address>        address to listen on (default: 127.0.0.1). An address that other machines can reach requires --auth
  --auth                  only users of the file may connect; timepail user creates them
  --tls-cert <file.pem>   use TLS with this certificate
  --tls-key <file.pem>    and this private key
  --tls-ca <file.pem>     accept only clients with a certificate from this authority
  --durability strict     acknowledge a write when it is on disk. Without this option, a write survives a crash of the process, but a power failure may lose the last writes
  --quiet                 print nothing

Ctrl-C stops the server.
`;

export const serveCommand: CliCommand = { usage: "serve <file> [options]", summary: "serve MongoDB's drivers and shells", help, run };

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      port: { type: "string", default: "27017" },
      host: { type: "string", default: "127.0.0.1" },
      auth: { type: "boolean", default: false },
      "tls-cert": { type: "string" },
      "tls-key": { type: "string" },
      "tls-ca": { type: "string" },
      durability: { type: "string", default: "relaxed" },
      quiet: { type: "boolean", default: false },
    },
  });
  const [file] = positional(positionals, "file");
  const { host, auth, quiet, durability } = values;
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Usage(`--port must be a number from 0 to 65535, not ${values.port}`);
  if (durability !== "relaxed" && durability !== "strict") throw new Usage(`--durability must be relaxed or strict, not ${durability}`);
  const say = quiet ? () => {} : (line: string): void => void process.stderr.write(`${line}\n`);
  const options: ServeOptions = { file, host, port, auth, durability, log: say };
  const { "tls-cert": cert, "tls-key": key, "tls-ca": ca } = values;
  if ((cert === undefined) !== (key === undefined)) throw new Usage("--tls-cert and --tls-key must be used together");
  if (cert !== undefined && key !== undefined) options.tls = { cert: readFileSync(cert), key: readFileSync(key), ca: ca === undefined ? undefined : readFileSync(ca) };
  collectSeldom();
  const server = await serve(options);
  const ended = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => resolve());
  });
  // Programs read this line to learn the port.
  if (!quiet) process.stdout.write(`Listening on ${server.uri}\n`);
  await ended;
  // A second signal ends the process at once.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));
  await server.close();
  return 0;
}

/**
 * Messages are in memory outside of V8's heap, and large compared with a heap of ten megabytes. V8 would begin to mark the heap for every second insert. Without
 * incremental marking, it waits until the heap is full, and then pauses for some milliseconds. The server then needs a third less processor time for inserts.
 */
function collectSeldom(): void {
  try {
    v8.setFlagsFromString("--no-incremental-marking");
  } catch {
    // A runtime without V8, or without this function, keeps its own settings.
  }
}
