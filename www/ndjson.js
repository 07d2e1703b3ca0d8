// Parses lines of JSON piece by piece. Values may be extended JSON, as mongoexport writes it.

import { EJSON } from "bson";

/** Reads documents, one per line, as cells in the order of `names`. Each new field is added to `names`. */
export class LinesReader {
  constructor(names) {
    this.names = names;
    this.places = new Map(names.map((name, place) => [name, place]));
    this.rest = "";
    this.line = 0;
  }

  push(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop();
    return lines.flatMap((line) => this.#record(line));
  }

  end() {
    return this.#record(this.rest);
  }

  #record(text) {
    const line = ++this.line;
    if (text.trim() === "") return [];
    try {
      const parsed = JSON.parse(text);
      if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return [{ line, problem: "is not a document" }];
      const document = text.includes('"$') ? EJSON.deserialize(parsed, { relaxed: true }) : parsed;
      const cells = [];
      for (const [name, value] of Object.entries(document)) cells[this.#place(name)] = value;
      return [{ line, cells }];
    } catch (error) {
      return [{ line, problem: error.message }];
    }
  }

  #place(name) {
    if (!this.places.has(name)) {
      this.places.set(name, this.names.length);
      this.names.push(name);
    }
    return this.places.get(name);
  }
}
