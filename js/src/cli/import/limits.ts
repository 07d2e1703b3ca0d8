// How much is read and inserted at once.

/** Rows that are inserted together. */
export const BATCH_ROWS = 10_000;
/** Rows from which guesses are made. */
export const SAMPLE_ROWS = 2000;
/** Problems that are shown one by one. */
export const SHOWN_MAX = 10;
