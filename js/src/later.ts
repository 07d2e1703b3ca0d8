// What few pages use: later.js of the package, which is loaded when one of these is first called. Its code imports nothing of what every page has loaded.

export { bulkWrite } from "./bulk.js";
export { Follower } from "./live-query.js";
export { seriesOf } from "./series.js";
