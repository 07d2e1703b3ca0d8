// later.js of the package: what many pages do not use, loaded on the first call of one of these. Its code imports nothing that every page has already loaded.

export { bulkWrite } from "./bulk.js";
export { Follower } from "./live-query.js";
export { loadFailure } from "./load-failure.js";
export { META_PER_ROW, unknownStorage } from "./mistakes.js";
export { columnsOrSeries } from "./typed.js";
