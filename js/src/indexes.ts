// The cursor of listIndexes.

import { AbstractCursor } from "./cursor.js";
import type { Door } from "./door.js";
import type { Document, IndexInfo } from "./types.js";

/** The indexes of a collection, as they were asked for. */
export class ListIndexesCursor extends AbstractCursor<IndexInfo> {
  readonly #collection: string;

  /** @internal */
  constructor(door: Door, collection: string) {
    super(door, collection, {});
    this.#collection = collection;
  }

  /** @internal */
  protected override get batchSizeSet(): number | undefined {
    return undefined;
  }

  /** @internal */
  protected override openingCommand(): Document {
    return { listIndexes: this.#collection };
  }
}
