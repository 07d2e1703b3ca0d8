// Own properties of objects.

import type { Document } from "./types.js";

/** Sets an own property, even if its name is `__proto__`. */
export function setOwn(object: Document, key: string, value: unknown): void {
  if (key === "__proto__") Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  else object[key] = value;
}
