//! Time zones for native tests, in place of a browser's.

use std::rc::Rc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

struct Native(TimeZone);

/// A time zone as specified by `Env::time_zone`.
pub fn zone(name: &str) -> Option<Rc<dyn super::TimeZone>> {
    Some(Rc::new(Native(TimeZone::get(name).ok()?)))
}

impl super::TimeZone for Native {
    fn offset_ms(&self, at_ms: i64) -> i64 {
        // It supports only the years from -9999 to 9999.
        let at_ms = at_ms.clamp(-377_700_000_000_000, 253_400_000_000_000);
        i64::from(self.0.to_offset(Timestamp::from_millisecond(at_ms).unwrap()).seconds()) * 1000
    }
}
