// later.js of the package: what few pages use, loaded on the first call of one of these. Its code imports nothing that every page has already loaded.

export { bulkWrite } from "./bulk.js";
export { Follower } from "./live-query.js";
export { seriesOf } from "./series.js";
