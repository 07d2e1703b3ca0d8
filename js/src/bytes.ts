// Keys as bytes: comparing them, and showing them.

/** Below, above or exactly 0, as `a` sorts to `b`. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

/** Bytes of a text. */
export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** A text of bytes. */
export function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
