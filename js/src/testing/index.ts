// For tests: a storage in memory that fails on demand, and the rules that every storage must keep.

export { storageContract, type StorageRule } from "./contract.js";
export { MemoryStorage, type StorageMethod } from "./memory.js";
export type * from "../storage.js";
