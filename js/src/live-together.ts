// Groups the live queries of a database: they ask the engine in one command, and wait with one timer.

import type { Answer, Door } from "./door.js";
import { letExit } from "./events.js";
import type { Document } from "./types.js";

/** The engine's answer for one of several live queries; none if its last result holds. Without a block, its result must be requested separately. */
export type Told = { cursor?: Document; block?: unknown };

interface Question {
  /** The number of the live query. */
  id: number;
  resolve: (told: Told | undefined) => void;
  reject: (error: unknown) => void;
}

/** Callbacks that wait for the same time from the same moment on. */
interface Pause {
  timer: ReturnType<typeof setTimeout> | undefined;
  readonly waiting: Set<() => void>;
}

/** Its callbacks run after the code that is running now, and before any event. */
const soon = Promise.resolve();

const all = new WeakMap<Door, Together>();

export class Together {
  readonly #door: Door;
  #questions: Question[] = [];
  #isAsking = false;
  /** Pauses that others can still join, by length. Idle ones have negative keys. */
  readonly #pauses = new Map<number, Pause>();

  private constructor(door: Door) {
    this.#door = door;
  }

  /** The instance of a database. */
  static of(door: Door): Together {
    const known = all.get(door) ?? new Together(door);
    all.set(door, known);
    return known;
  }

  /**
   * Asks for news of a live query. Requests that arrive while a command runs go into the next one together. The engine answers such a command quickly, because it
   * does not run queries again: their results are requested separately.
   */
  news(id: number): Promise<Told | undefined> {
    if (!this.#isAsking) void this.#ask();
    return new Promise((resolve, reject) => this.#questions.push({ id, resolve, reject }));
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    // Others may ask before the running code has finished.
    await soon;
    while (this.#questions.length > 0) {
      const questions = this.#questions;
      this.#questions = [];
      try {
        const { reply }: Answer = await this.#door.run({ liveRefresh: questions.map(({ id }) => id) });
        const news = new Map((reply["live"] as Document[]).map((told) => [Number(told["id"]), told as Told]));
        questions.forEach(({ id, resolve }) => resolve(news.get(id)));
      } catch (error) {
        questions.forEach(({ reject }) => reject(error));
      }
    }
    this.#isAsking = false;
  }

  /**
   * Calls `goOn` after `ms` milliseconds. All that start an equal wait before the next event share a timer, so that they ask together.
   *
   * `isIdle`: the wait does not keep the process alive. It ends earlier, at the next multiple of `ms`, together with all other idle waits of this length.
   * Live queries that began at different times then ask together. Returns a function that cancels the wait.
   */
  wait(ms: number, goOn: () => void, isIdle = false): () => void {
    const key = isIdle ? -ms : ms;
    let pause = this.#pauses.get(key);
    if (!pause) {
      const begun: Pause = (pause = { timer: undefined, waiting: new Set() });
      const leave = (): void => void this.#pauses.delete(key);
      this.#pauses.set(key, begun);
      void soon.then(() => {
        const isUnused = begun.waiting.size === 0;
        if (!isIdle || isUnused) leave();
        if (isUnused) return;
        const call = (): void => {
          if (isIdle) leave();
          begun.waiting.forEach((called) => called());
        };
        begun.timer = setTimeout(call, isIdle ? ms - (performance.now() % ms) : ms);
        if (isIdle) letExit(begun.timer);
      });
    }
    const { waiting } = pause;
    waiting.add(goOn);
    return () => {
      waiting.delete(goOn);
      // An idle timer keeps running, because others may still join.
      if (waiting.size === 0 && !isIdle) clearTimeout(pause.timer);
    };
  }
}
