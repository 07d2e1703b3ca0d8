// Seeded random numbers, and the times that all measurements share.

export const START = Date.UTC(2026, 0, 1);
export const STEP_MS = 10_000;
export const HOUR_MS = 3_600_000;

/** A separate generator for each name, so that its numbers do not depend on how many another generator has drawn. */
export function generator(name) {
  let state = 2_166_136_261;
  for (const letter of name) state = Math.imul(state ^ letter.codePointAt(0), 16_777_619) >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (bound) => Math.floor(next() * bound);
  return {
    next,
    below,
    of: (choices) => choices[below(choices.length)],
    /** Standard normal, by the polar form of Box and Muller. */
    normal() {
      for (;;) {
        const [x, y] = [2 * next() - 1, 2 * next() - 1];
        const square = x * x + y * y;
        if (square > 0 && square < 1) return x * Math.sqrt((-2 * Math.log(square)) / square);
      }
    },
    /** `count` different numbers below `bound`. */
    some(count, bound) {
      const chosen = new Set();
      while (chosen.size < Math.min(count, bound)) chosen.add(below(bound));
      return [...chosen];
    },
    /** A window of at most `hours` within `[start, end)`. */
    window({ start, end }, hours) {
      const length = Math.min(hours * HOUR_MS, end - start);
      const from = start + below(end - start - length + 1);
      return { from, to: from + length, hours: length / HOUR_MS };
    },
  };
}

/** Milliseconds since the epoch, every ten seconds for so many hours. */
export const times = (hours) => Float64Array.from({ length: Math.floor((hours * HOUR_MS) / STEP_MS) }, (_, row) => START + row * STEP_MS);
