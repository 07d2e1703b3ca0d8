// `timepail user`: who may connect to a file that is served with `--auth`.

import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { parseArgs } from "node:util";
import { FilePlaces } from "../server/places.js";
import { Usage, type CliCommand } from "./command.js";

const help = `
Makes a user of a file, or gives one a new password. The password is asked for; if the standard input is not a terminal, it is its first line. The file keeps
what SCRAM-SHA-256 needs to check a password, and not the password. Every user may do everything.

  --remove     remove the user
  --list       list the users; needs no name
`;

export const user: CliCommand = { usage: "user <file> <name> [options]", summary: "who may connect with --auth", help, run };

async function run(args: string[]): Promise<number> {
  const options = { remove: { type: "boolean", default: false }, list: { type: "boolean", default: false } } as const;
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
  const [file, name, more] = positionals;
  if (file === undefined) throw new Usage("Which file?");
  if (name === undefined && !values.list) throw new Usage("Which user?");
  if (more !== undefined) throw new Usage(`Unexpected argument ${more}`);
  const places = await FilePlaces.open(file, "strict");
  try {
    if (values.list) for (const each of places.users.names()) process.stdout.write(`${each}\n`);
    else if (!values.remove) places.users.set(name!, await password(name!));
    else if (!places.users.remove(name!)) throw new Error(`There is no user ${name}`);
    return 0;
  } finally {
    places.close();
  }
}

/** The first line of the standard input. On a terminal, what is typed is not shown. */
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
  if (line === "") throw new Usage("A password is needed");
  return line;
}
