// `timepail/arrow`: results as Apache Arrow, and Arrow into collections.

/** @internal For the command line. */
export { documentsOf } from "./insert.js";
/** @internal For the command line. */
export { written } from "./write.js";
export { insertArrow, type ArrowInput, type ArrowTableLike, type InsertArrowOptions } from "./insert.js";
export { toArrow, type ToArrowOptions } from "./write.js";
