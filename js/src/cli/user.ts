// `timepail user`: who may connect to a file that is served with `--auth`.

import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { parseArgs } from "node:util";
import { FilePlaces } from "../server/places.js";
import { Usage, type CliCommand } from "./command.js";

const help = `
Creates a user in a file, or changes the password of a user. On a terminal, the command asks for the password; otherwise it reads the first line of standard input.
The file stores salted keys for SCRAM-SHA-256, not the password. Every user may do everything.

  --remove     remove the user
  --list       list the users; takes no name
`;

export const user: CliCommand = { usage: "user <file> <name> [options]", summary: "manage the users for serve --auth", help, run };

async function run(args: string[]): Promise<number> {
  const options = { remove: { type: "boolean", default: false }, list: { type: "boolean", default: false } } as const;
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
  const [file, name, more] = positionals;
  if (file === undefined) throw new Usage("Missing argument: file");
  if (name === undefined && !values.list) throw new Usage("Missing argument: name");
  if (more !== undefined) throw new Usage(`Unexpected argument ${more}`);
  const places = await FilePlaces.open(file, "strict");
  try {
    if (values.list) for (const each of places.users.names()) process.stdout.write(`${each}\n`);
    else if (!values.remove) places.users.set(name!, await password(name!));
    else if (!places.users.remove(name!)) throw new Error(`Unknown user ${name}`);
    return 0;
  } finally {
    places.close();
  }
}

/** The first line of the standard input. A terminal does not show what you type. */
async function password(name: string): Promise<string> {
  const isTerminal = process.stdin.isTTY === true;
  if (isTerminal) process.stderr.write(`Password of ${name}: `);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: isTerminal });
  const line = await new Promise<string>((resolve) => {
    lines.once("line", resolve);
    lines.once("close", () => resolve(""));
    lines.once("SIGINT", () => process.exit(130));
  });
  lines.close();
  if (isTerminal) process.stderr.write("\n");
  if (line === "") throw new Usage("The password is empty");
  return line;
}
