// Runs a phase of the tests in a runtime with processes and arguments, and prints one line per test.
//
//   <runtime> <file> contract|before|after|writer|counted|left [number]

import process from "node:process";
import { open } from "timepail";
import { after, before, counted, writer, type Step } from "./end-to-end.ts";
import { contract, report, type MakeStorage } from "./report.ts";

/** `own` are tests for this storage only. */
export async function main(make: MakeStorage, own: readonly Step[] = []): Promise<void> {
  const [phase, number] = process.argv.slice(2);
  if (phase === "left") {
    await open("left", { storage: await make("left"), retentionIntervalMS: 1e6 });
    console.log("ok a database that was left open lets its process end");
    return;
  }
  const phases: Record<string, () => Promise<string>> = {
    contract: async () => (await contract(make)) + (await report(own, make, "own")),
    before: () => report(before, make, "plant"),
    after: () => report(after, make, "plant"),
    writer: () => report([writer(Number(number))], make, "shared"),
    counted: () => report([counted(Number(number))], make, "shared"),
  };
  const lines = await phases[phase!]!();
  await new Promise((written) => process.stdout.write(lines, written));
  // Databases stay open: this is the crash.
  process.kill(process.pid, "SIGKILL");
}
