//! Between a parsed command and its rows: filters, what of them runs before unpacking, plans, execution. Never awaits.

pub mod filter;
pub mod pushdown;
