//! Time zones: fixed offsets from UTC, and zones of the host with a cache of its answers.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use super::super::arguments::{Arguments, argument, failure, text};
use super::super::globals::Globals;
use super::calendar::DAY_MS;
use crate::env::{TimeZone, offset_ms};
use crate::error::ErrorCode::*;
use crate::error::Result;

/// A span of about three days, as a number of bits of milliseconds. No clock change was undone faster: in St. John's it
/// once took five days, in Recife seven.
const SPAN_BITS: u32 = 28;
/// Four years of spans; most of their numbers differ in these bits.
const SPANS: usize = 512;
/// Hosts have no later dates.
const HOST_MS_MAX: i64 = 8_640_000_000_000_000;

/// The time zones that a command has used.
pub type Zones = Vec<(Box<str>, Zone)>;

/// A time zone: a fixed offset from UTC in milliseconds, or a zone of the host.
#[derive(Clone)]
pub enum Zone {
    Fixed(i64),
    Named(Rc<CachedZone>),
}

/// A zone of the host. The host is asked twice per span, and more often only if clocks change.
pub struct CachedZone {
    host: Rc<dyn TimeZone>,
    spans: RefCell<Vec<Span>>,
}

/// What is known of a span: the offset before the clock change, the moment of it, and the offset afterwards.
#[derive(Clone, Copy)]
struct Span {
    number: i64,
    before: i64,
    change_ms: i64,
    after: i64,
}

impl Zone {
    pub const UTC: Zone = Zone::Fixed(0);

    /// The zone in the argument at a position; UTC if it is not given.
    ///
    /// Errors: 40485 for an unknown one.
    pub fn of(name: &str, arguments: Arguments<'_, '_>, at: usize, globals: &Globals) -> Result<Zone> {
        if argument(arguments, at).is_none() {
            return Ok(Zone::UTC);
        }
        let zone = text(arguments, at);
        let found = Zone::named(zone, globals);
        found.ok_or_else(|| failure(Location40485, name, &format!("does not know the time zone \"{zone}\"")))
    }

    /// The zone with this name, or the fixed offset.
    pub fn named(name: &str, globals: &Globals) -> Option<Zone> {
        if matches!(name, "UTC" | "GMT" | "Z" | "Etc/UTC" | "Etc/GMT") {
            return Some(Zone::UTC);
        }
        if let Some(offset) = offset_ms(name.as_bytes()) {
            return Some(Zone::Fixed(offset));
        }
        let mut zones = globals.zones().borrow_mut();
        if let Some((_, zone)) = zones.iter().find(|(known, _)| **known == *name) {
            return Some(zone.clone());
        }
        let named = CachedZone { host: globals.env().time_zone(name)?, spans: RefCell::default() };
        let zone = Zone::Named(Rc::new(named));
        zones.push((name.into(), zone.clone()));
        Some(zone)
    }

    /// The offset from UTC at a moment, and a range around the moment with the same offset (not necessarily the
    /// longest).
    pub fn span(&self, at_ms: i64) -> (i64, Range<i64>) {
        let named = match self {
            Zone::Fixed(offset) => return (*offset, i64::MIN..i64::MAX),
            Zone::Named(named) => named,
        };
        let span = named.span(at_ms.clamp(-HOST_MS_MAX, HOST_MS_MAX) >> SPAN_BITS);
        let (start, end) = (span.number << SPAN_BITS, (span.number + 1) << SPAN_BITS);
        if at_ms < span.change_ms {
            (span.before, start..span.change_ms.min(end))
        } else {
            (span.after, span.change_ms.max(start)..end)
        }
    }

    /// The offset from UTC at a moment.
    pub fn offset(&self, at_ms: i64) -> i64 {
        self.span(at_ms).0
    }

    /// A range of moments around one in which local time stays in the same unit of so many milliseconds, at most a day.
    pub fn bin_around(&self, at_ms: i64, unit_ms: i64) -> Range<i64> {
        let (offset, around) = self.span(at_ms);
        let start = at_ms.saturating_sub(at_ms.saturating_add(offset).rem_euclid(unit_ms));
        around.start.max(start)..around.end.min(start.saturating_add(unit_ms))
    }

    /// The local time at a moment.
    pub fn local(&self, at_ms: i64) -> i64 {
        at_ms.saturating_add(self.offset(at_ms))
    }

    /// The first moment with this local time. If clocks skip it, it is computed with the offset before the change.
    pub fn utc(&self, local_ms: i64) -> Option<i64> {
        let [before, after] = [-DAY_MS, DAY_MS].map(|step| self.offset(local_ms.saturating_add(step)));
        let first = local_ms.checked_sub(before)?;
        if self.offset(first) == before {
            return Some(first);
        }
        let second = local_ms.checked_sub(after)?;
        Some(if self.offset(second) == after { second } else { first })
    }
}

impl CachedZone {
    /// What is known of the span with this number.
    fn span(&self, number: i64) -> Span {
        let mut spans = self.spans.borrow_mut();
        if spans.is_empty() {
            spans.resize(SPANS, Span { number: i64::MAX, before: 0, change_ms: 0, after: 0 });
        }
        let place = usize::try_from(number.rem_euclid(SPANS as i64)).unwrap_or_default();
        match spans.get_mut(place) {
            Some(known) if known.number == number => *known,
            known => {
                let span = self.asked(number);
                known.into_iter().for_each(|known| *known = span);
                span
            }
        }
    }

    fn asked(&self, number: i64) -> Span {
        let ask = |at_ms: i64| self.host.offset_ms(at_ms.clamp(-HOST_MS_MAX, HOST_MS_MAX));
        let (mut low, mut high) = (number << SPAN_BITS, (number + 1) << SPAN_BITS);
        let (before, after) = (ask(low), ask(high));
        while before != after && high - low > 1 {
            let middle = low + (high - low) / 2;
            if ask(middle) == before { low = middle } else { high = middle }
        }
        Span { number, before, change_ms: high, after }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::env::native_zone;
    use crate::query::expr::samples::globals;
    use crate::query::expr::{BoundExpr, Expr};
    use crate::value::Doc;
    use bson::rawdoc;

    /// Zones whose clocks change by an hour, by half an hour, across midnight, by a day, every few weeks or days, or
    /// never.
    const NAMES: [&str; 11] = [
        "America/New_York",
        "Europe/London",
        "Australia/Lord_Howe",
        "Asia/Kolkata",
        "America/St_Johns",
        "America/Sao_Paulo",
        "Pacific/Apia",
        "Africa/Casablanca",
        "America/Havana",
        "Africa/Monrovia",
        "America/Recife",
    ];

    proptest! {
        #[test]
        fn a_bin_begins_no_later_than_its_slack_after_any_moment_in_it(
            name in prop::sample::select(&NAMES[..]), unit in prop::sample::select(vec!["minute", "hour", "day", "week", "month", "year"]),
            size in 1..4_i32, ms in -3_000_000_000_000..3_000_000_000_000_i64,
        ) {
            let expr = rawdoc! { "x": { "$dateTrunc": { "date": "$t", "unit": unit, "binSize": size, "timezone": name } } };
            let expr = Doc::parse(expr.as_bytes()).unwrap().get("x").and_then(|expr| Expr::parse(expr, &globals()).ok());
            let expr = BoundExpr::new(expr.unwrap(), globals());
            let slack_ms = expr.bin_slack_ms("t").unwrap();
            prop_assert_eq!(expr.bin_slack_ms("u"), None);
            // Also around the changes of the zone's clocks.
            let Some(Zone::Named(zone)) = Zone::named(name, &globals()) else { return Ok(()) };
            let change_ms = zone.span(ms >> SPAN_BITS).change_ms;
            for at_ms in [ms, change_ms, change_ms - 1, change_ms + 1, change_ms + ms % 7_200_000] {
                let row = rawdoc! { "t": bson::DateTime::from_millis(at_ms) };
                let begin = expr.value(Doc::parse(row.as_bytes()).unwrap()).unwrap().unwrap();
                prop_assert!(begin.view().as_date_ms().unwrap() <= at_ms + slack_ms, "{at_ms} {begin:?}");
            }
        }
    }

    #[test]
    fn utc_offsets_are_parsed_in_every_form_and_other_strings_refused() {
        for (text, seconds) in [("+05:30", 19_800), ("-0330", -12_600), ("+14", 50_400), ("-04:56:02", -17_762)] {
            assert_eq!(offset_ms(text.as_bytes()), Some(seconds * 1000));
        }
        for text in ["", "+", "5", "+5", "+530", "+0:530", "05:30", "+05:3a", "+05:30:000", "Z", "+05-30"] {
            assert_eq!(offset_ms(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_time_zone_is_created_once_and_an_unknown_one_is_refused() {
        let globals = globals();
        let [first, second] = [0, 1].map(|_| match Zone::named("Europe/London", &globals) {
            Some(Zone::Named(zone)) => zone,
            _ => panic!("not a zone of the host"),
        });
        assert!(Rc::ptr_eq(&first, &second));
        assert!(Zone::named("Europe/Nowhere", &globals).is_none());
    }

    #[test]
    fn the_host_is_asked_rarely() {
        struct Counting(Rc<dyn TimeZone>, Rc<Cell<u32>>);
        impl TimeZone for Counting {
            fn offset_ms(&self, at_ms: i64) -> i64 {
                self.1.set(self.1.get() + 1);
                self.0.offset_ms(at_ms)
            }
        }
        let count = Rc::new(Cell::new(0));
        let host = Rc::new(Counting(native_zone::zone("Europe/London").unwrap(), Rc::clone(&count)));
        let zone = Zone::Named(Rc::new(CachedZone { host, spans: RefCell::default() }));
        // Three years, forwards and back.
        for minute in 0..3 * 365 * 1440_i64 {
            zone.offset(1_600_000_000_000 + minute * 60_000);
            zone.offset(1_690_000_000_000 - minute * 60_000);
        }
        assert!(count.get() < 1000, "{}", count.get());
    }

    proptest! {
        #[test]
        fn cached_offsets_equal_those_of_the_host(at in 0..NAMES.len(), times in prop::collection::vec(-3i64<<38..4i64<<38, 50)) {
            let (host, zone) = (native_zone::zone(NAMES[at]).unwrap(), Zone::named(NAMES[at], &globals()).unwrap());
            for ms in times {
                prop_assert_eq!(zone.offset(ms), host.offset_ms(ms), "{} at {}", NAMES[at], ms);
                let (offset, around) = zone.span(ms);
                prop_assert!(around.contains(&ms));
                prop_assert_eq!([around.start, around.end - 1].map(|ms| host.offset_ms(ms)), [offset; 2]);
            }
        }

        #[test]
        fn a_local_time_is_its_first_occurrence_or_is_shifted_over_a_gap(
            at in 0..NAMES.len(),
            around in 0..500_usize,
            minutes in -2000..2000_i64,
        ) {
            // Near clock changes, or anywhere.
            let reference = jiff::tz::TimeZone::get(NAMES[at]).unwrap();
            let changes: Vec<i64> = reference
                .following(Timestamp::UNIX_EPOCH)
                .take(60)
                .map(|change| change.timestamp().as_millisecond())
                .collect();
            let local_ms = changes.get(around % 60).copied().unwrap_or(around as i64 * 3_000_000_000) + minutes * 60_000;
            let civil = Timestamp::from_millisecond(local_ms).unwrap().to_zoned(jiff::tz::TimeZone::UTC).datetime();
            let wanted = civil.to_zoned(reference).unwrap().timestamp().as_millisecond();
            prop_assert_eq!(Zone::named(NAMES[at], &globals()).unwrap().utc(local_ms), Some(wanted), "{} {}", NAMES[at], civil);
        }
    }
}
