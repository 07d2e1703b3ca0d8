// What the live queries of a database do together: they ask the engine in one command, and wait with one timer.

import type { Answer, Door } from "./door.js";
import { letExit } from "./events.js";
import type { Document } from "./types.js";

/** What the engine says of a live query among others; nothing if its last result holds. Without a block, it is to be asked for by itself. */
export type Told = { cursor?: Document; block?: unknown };

interface Question {
  /** The number of the live query. */
  id: number;
  resolve: (told: Told | undefined) => void;
  reject: (error: unknown) => void;
}

/** Those that wait equally long from the same moment on. */
interface Pause {
  timer: ReturnType<typeof setTimeout> | undefined;
  readonly waiting: Set<() => void>;
}

/** What is called then comes after all that is under way, and before any event. */
const soon = Promise.resolve();

const all = new WeakMap<Door, Together>();

export class Together {
  readonly #door: Door;
  #questions: Question[] = [];
  #isAsking = false;
  /** That have not begun yet, by their lengths. */
  readonly #pauses = new Map<number, Pause>();

  private constructor(door: Door) {
    this.#door = door;
  }

  /** The one of a database. */
  static of(door: Door): Together {
    const known = all.get(door) ?? new Together(door);
    all.set(door, known);
    return known;
  }

  /**
   * Asks for news of a live query. Whoever asks while a command is under way is asked for in the next one, with all others: the engine never takes long over such
   * a command, as it leaves what must run again to be asked for by itself.
   */
  news(id: number): Promise<Told | undefined> {
    if (!this.#isAsking) void this.#ask();
    return new Promise((resolve, reject) => this.#questions.push({ id, resolve, reject }));
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    // Others may ask in the same breath.
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
   * Calls `goOn` after so many milliseconds, at once with all others that begin to wait as long before anything else goes on: then they ask together.
   *
   * `isIdle`: nobody needs the process for it, and it may come earlier: at the next multiple of `ms`, at which all others that wait as long are called too.
   * Live queries that began at different times ask together from then on. Returns what ends the wait.
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
      // The next multiple comes anyway, and others may still join.
      if (waiting.size === 0 && !isIdle) clearTimeout(pause.timer);
    };
  }
}
