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
   * Asks for news of a live query, together with all others that are asked for before anything else goes on. One that is alone is to be asked for by itself.
   */
  news(id: number): Promise<Told | undefined> {
    if (this.#questions.length === 0) void soon.then(() => this.#ask());
    return new Promise((resolve, reject) => this.#questions.push({ id, resolve, reject }));
  }

  async #ask(): Promise<void> {
    const questions = this.#questions;
    this.#questions = [];
    if (questions.length === 1) return questions[0]!.resolve({});
    try {
      const { reply }: Answer = await this.#door.run({ liveRefresh: questions.map(({ id }) => id) });
      const news = new Map((reply["live"] as Document[]).map((told) => [Number(told["id"]), told as Told]));
      questions.forEach(({ id, resolve }) => resolve(news.get(id)));
    } catch (error) {
      questions.forEach(({ reject }) => reject(error));
    }
  }

  /**
   * Calls `goOn` after so many milliseconds, at once with all others that begin to wait as long before anything else goes on: then they ask together. `isIdle`: nobody
   * needs the process for it. Returns what ends the wait.
   */
  wait(ms: number, goOn: () => void, isIdle = false): () => void {
    const key = isIdle ? -ms : ms;
    let pause = this.#pauses.get(key);
    if (!pause) {
      const begun: Pause = (pause = { timer: undefined, waiting: new Set() });
      this.#pauses.set(key, begun);
      void soon.then(() => {
        this.#pauses.delete(key);
        if (begun.waiting.size === 0) return;
        begun.timer = setTimeout(() => begun.waiting.forEach((called) => called()), ms);
        if (isIdle) letExit(begun.timer);
      });
    }
    const { waiting } = pause;
    waiting.add(goOn);
    return () => {
      waiting.delete(goOn);
      if (waiting.size === 0) clearTimeout(pause.timer);
    };
  }
}
