// Runs tests in any runtime, and reports one line for each.

import type { HostStorage } from "timepail";
import { storageContract } from "timepail/testing";
import type { Step } from "./end-to-end.ts";

/** Resolves to a handle on the store `name`, which outlives the process. */
export type MakeStorage = (name: string) => Promise<HostStorage>;

/** Runs `steps` sequentially on `name`; resolves to a line for each. */
export async function report(steps: readonly Step[], make: MakeStorage, name: string): Promise<string> {
  let lines = "";
  for (const step of steps) {
    try {
      await step.run(() => make(name));
      lines += `ok ${step.name}\n`;
    } catch (error) {
      lines += `not ok ${step.name}\n${String((error as Error).stack ?? error)}\n`;
    }
  }
  return lines;
}

/** The storage contract, each case on its own store. */
export async function contract(make: MakeStorage): Promise<string> {
  let lines = "";
  for (const [at, { name, check }] of storageContract.entries()) {
    const store = `contract${at}`;
    lines += await report([{ name, run: async (handle) => check(await handle(), await handle()) }], make, store);
  }
  return lines;
}
