//! What a stage that unpacks buckets is asked to do.

use crate::bucket::TimeseriesOptions;
use crate::error::{Error, ErrorCode};
use crate::query::filter::Filter;
use crate::value::{Doc, FieldSet};

/// What buckets are unpacked to.
#[derive(Clone)]
pub struct UnpackSpec {
    /// The names of the time and of the metadata, and the span of buckets.
    pub options: TimeseriesOptions,
    /// True where measurements have the time.
    pub gives_time: bool,
    /// The name under which measurements have the metadata; `None` where they have none.
    pub gives_meta: Option<Box<str>>,
    /// The first and the last time of each bucket are to be there.
    pub summaries: [bool; 2],
    /// Which measurements are wanted; `None` for all.
    pub event: Option<Filter>,
    /// Of which buckets all measurements are.
    pub whole: Option<Filter>,
    /// True where `names` are those of the fields that come, the metadata apart, and not those of fields that do not.
    pub(super) is_include: bool,
    pub(super) names: FieldSet,
    /// Fields that buckets have by themselves, for each of their measurements.
    pub(super) computed: FieldSet,
    /// The fields that somebody reads.
    pub(super) reads: FieldSet,
}

#[cold]
#[inline(never)]
pub fn refused(stage: &str, code: ErrorCode, what: &str) -> Error {
    Error::new(code, [stage, ": ", what].concat())
}

impl UnpackSpec {
    /// True where measurements have the field, if there is one.
    fn provides(&self, name: &str) -> bool {
        self.names.contains(name) == self.is_include
    }

    /// The time and the metadata stand apart; what is computed takes the place of any of them, but comes only where it is asked for.
    pub fn settle_fields(&mut self) {
        if let Some(meta) = self.options.meta_field.clone().filter(|meta| !self.computed.contains(meta)) {
            self.gives_meta = self.provides(&meta).then(|| meta.as_str().into());
            self.names.remove(&meta);
        }
        let time = &self.options.time_field;
        self.gives_time = self.provides(time) && !self.computed.contains(time);
        let mut kept = FieldSet::none();
        self.computed().filter(|name| self.provides(name)).for_each(|name| kept.add_path(name));
        self.computed = kept;
    }

    /// Tells what is read of the measurements: nothing else has to be unpacked.
    pub fn narrow(&mut self, reads: FieldSet) {
        self.reads = reads;
        if let Some(filter) = &self.event {
            self.reads.add_all(&filter.fields());
        }
        self.gives_time &= self.reads.contains(&self.options.time_field);
        self.gives_meta = self.gives_meta.take().filter(|meta| self.reads.contains(meta));
    }

    /// The fields of the bucket that go to each measurement.
    pub fn computed(&self) -> impl Iterator<Item = &str> {
        self.computed.names().iter().map(|name| &**name).filter(|name| self.reads.contains(name))
    }

    /// The columns of a bucket that are to be decoded.
    pub fn wanted(&self, data: Doc<'_>) -> FieldSet {
        let time = &self.options.time_field;
        let is_wanted = |name: &str| match name == time {
            true => self.gives_time,
            false => self.provides(name) && !self.computed.contains(name) && self.reads.contains(name),
        };
        let mut wanted = FieldSet::none();
        data.iter().filter(|(name, _)| is_wanted(name)).for_each(|(name, _)| wanted.add(name));
        wanted
    }
}
