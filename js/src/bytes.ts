// Keys as bytes: comparison, and conversion from and to text.

/** Negative, positive or 0, as `a` sorts before, after or equal to `b`. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

/** Encodes text as UTF-8. */
export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Decodes UTF-8 to text. */
export function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
