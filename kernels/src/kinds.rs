//! Type bytes of BSON.

pub const DOUBLE: u8 = 0x01;
pub const OBJECT: u8 = 0x03;
pub const ARRAY: u8 = 0x04;
pub const BOOL: u8 = 0x08;
pub const DATE: u8 = 0x09;
pub const NULL: u8 = 0x0A;
pub const INT32: u8 = 0x10;
pub const INT64: u8 = 0x12;
pub const DECIMAL: u8 = 0x13;
