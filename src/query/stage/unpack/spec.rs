//! The specification of a stage that unpacks buckets.

use crate::bucket::TimeseriesOptions;
use crate::error::{Error, ErrorCode};
use crate::query::filter::Filter;
use crate::value::{Doc, FieldSet};

/// How buckets are unpacked.
#[derive(Clone)]
pub struct UnpackSpec {
    /// The names of the time field and the meta field, and the span of buckets.
    pub options: TimeseriesOptions,
    /// True if measurements get the time.
    pub gives_time: bool,
    /// The field of the metadata in measurements; `None` if they get none.
    pub gives_meta: Option<Box<str>>,
    /// True if the summaries of a bucket's times, the first and the last, must exist.
    pub summaries: [bool; 2],
    /// The filter on measurements; `None` for all.
    pub event: Option<Filter>,
    /// The filter on buckets whose measurements all pass.
    pub whole: Option<Filter>,
    /// True if `names` are the fields to include, apart from the metadata; false if they are the ones to exclude.
    pub(super) is_include: bool,
    pub(super) names: FieldSet,
    /// Fields of the bucket itself that each of its measurements gets.
    pub(super) computed: FieldSet,
    /// The fields that are read.
    pub(super) reads: FieldSet,
}

#[cold]
#[inline(never)]
pub fn refused(stage: &str, code: ErrorCode, what: &str) -> Error {
    Error::new(code, [stage, ": ", what].concat())
}

impl UnpackSpec {
    /// True if measurements get the field, if it exists.
    fn provides(&self, name: &str) -> bool {
        self.names.contains(name) == self.is_include
    }

    /// Separates the time and the metadata from other fields. Computed fields replace either, but are included only if
    /// requested.
    pub fn separate_fields(&mut self) {
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

    /// Limits unpacking to the fields that are read.
    pub fn narrow(&mut self, reads: FieldSet) {
        self.reads = reads;
        if let Some(filter) = &self.event {
            self.reads.add_all(&filter.fields());
        }
        self.gives_time &= self.reads.contains(&self.options.time_field);
        self.gives_meta = self.gives_meta.take().filter(|meta| self.reads.contains(meta));
    }

    /// The fields of the bucket that each measurement gets.
    pub fn computed(&self) -> impl Iterator<Item = &str> {
        self.computed.names().iter().map(|name| &**name).filter(|name| self.reads.contains(name))
    }

    /// The columns of a bucket to decode.
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
