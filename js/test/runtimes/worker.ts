// A Durable Object: one table per store, and one request per phase.

// @ts-expect-error only Workers have this module
import { DurableObject } from "cloudflare:workers";
import { open } from "timepail";
import { sqliteStorage, type DurableObjectStorage } from "timepail/sqlite";
import { after, before, type Step } from "./end-to-end.ts";
import { failure, same } from "./expect.ts";
import { contract, report, type MakeStorage } from "./report.ts";

const own: Step[] = [
  {
    name: "an engine in a worker is refused, because Workers start none",
    async run() {
      const { name, message } = await failure(open("plant", { worker: true }));
      same([name, message], ["TypeError", "Cloudflare Workers start no workers: leave out the option worker"]);
    },
  },
  {
    name: "less of what is read stays in memory than in a page, because a Worker has 128 MB",
    async run() {
      const db = await open("plant", { storage: "memory" });
      const { readCacheBytes } = await db.command({ getParameter: 1, readCacheBytes: 1 });
      await db.close();
      same(readCacheBytes, 40 * 2 ** 20);
    },
  },
];

export class Tests extends DurableObject {
  declare ctx: { storage: DurableObjectStorage };

  async fetch(request: Request): Promise<Response> {
    const make: MakeStorage = async (name) => sqliteStorage(this.ctx.storage, { table: name });
    switch (new URL(request.url).pathname) {
      case "/contract":
        return new Response(await contract(async (name) => sqliteStorage(this.ctx.storage, { table: name, durability: "strict" })));
      case "/before":
        return new Response(await report([...own, ...before], make, "plant"));
      case "/after":
        return new Response(await report(after, make, "plant"));
    }
    return new Response("", { status: 404 });
  }
}

interface Env {
  TESTS: { get(id: unknown): { fetch(request: Request): Promise<Response> }; idFromName(name: string): unknown };
}

export default {
  fetch: (request: Request, env: Env): Promise<Response> => env.TESTS.get(env.TESTS.idFromName("tests")).fetch(request),
};
