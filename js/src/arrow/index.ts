// `timepail/arrow`: results as Apache Arrow, and Arrow into collections.

export { insertArrow, type ArrowInput, type ArrowTableLike, type InsertArrowOptions } from "./insert.js";
export { toArrow, type ToArrowOptions } from "./write.js";
