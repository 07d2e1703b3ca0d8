//! MongoDB's time-series collection as a WebAssembly module.
