// Properties of an object itself.

import type { Document } from "./types.js";

/** Sets a property of the object itself, whatever its name. */
export function setOwn(object: Document, key: string, value: unknown): void {
  if (key === "__proto__") Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  else object[key] = value;
}
