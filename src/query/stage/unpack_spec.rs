//! What a stage that unpacks buckets is asked to do.
//!
//! Rule: mongodb/mongo src/mongo/db/pipeline/document_source_internal_unpack_bucket.cpp.

use super::aggregation::Step;
use super::parse::Parser;
use crate::bucket::{ColumnSet, TimeseriesOptions};
use crate::error::{Error, ErrorCode, Result};
use crate::query::filter::{Filter, Reads};
use crate::query::projection::Needed;
use crate::value::{Collation, Doc, DocBuf, DocWriter, Kind, Value};

const INTERNAL: &str = "$_internalUnpackBucket";

/// What buckets are unpacked to.
#[derive(Clone)]
pub(super) struct UnpackSpec {
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
    is_include: bool,
    names: Needed,
    /// Fields that buckets have by themselves, for each of their measurements.
    computed: Needed,
    /// Flags that change nothing of the result: they are shown.
    flags: [bool; 3],
    /// The fields that somebody reads.
    reads: Needed,
}

/// A parameter of the stage that is a flag, and the code where it is none.
const FLAGS: [(&str, ErrorCode); 5] = [
    ("assumeNoMixedSchemaData", ErrorCode::Location6067202),
    ("usesExtendedRange", ErrorCode::Location6646901),
    ("fixedBuckets", ErrorCode::Location7823300),
    ("includeMinTimeAsMetadata", ErrorCode::Location6460208),
    ("includeMaxTimeAsMetadata", ErrorCode::Location6460209),
];

impl Parser<'_> {
    /// `$_internalUnpackBucket`, and `$_unpackBucket`, which takes fewer parameters and has codes of its own.
    ///
    /// Errors: one a parameter and rule of it, in the order in which the parameters stand; those of filters.
    pub fn unpack(&mut self, name: &str, argument: Value<'_>) -> Result<()> {
        use ErrorCode as E;
        let is_internal = name == INTERNAL;
        let code = |internal, external| if is_internal { internal } else { external };
        let refuse = |code, what: &str| Error::new(code, [name, ": ", what].concat());
        let doc = argument.as_doc();
        let doc = doc.ok_or_else(|| refuse(code(E::Location5346500, E::Location5612400), "needs an object"))?;
        let text = |field: &str, value: Value<'_>, no_string, no_name: Option<ErrorCode>, nul| {
            let text = value.as_str().ok_or((no_string, " must be of strings"));
            let text = text.and_then(|text| match no_name.filter(|_| text.contains('.')) {
                Some(code) => Err((code, " must be of names without a dot")),
                None if text.contains('\0') => Err((nul, " must be of names without a null byte")),
                None => Ok(text.to_owned()),
            });
            text.map_err(|(code, what)| refuse(code, &[field, what].concat()))
        };
        let list = |field: &str, value: Value<'_>, [no_array, no_string, no_name, nul]: [ErrorCode; 4]| {
            let mut names = Needed::none();
            let array = value.as_array().ok_or_else(|| refuse(no_array, &[field, " must be an array"].concat()))?;
            for (_, item) in array {
                names.add_path(&text(field, item, no_string, Some(no_name), nul)?);
            }
            Ok(names)
        };
        let (mut time, mut meta, mut names, mut is_include, mut computed) = (None, None, None, false, Needed::none());
        let (mut flags, mut span_seconds, mut filters) = ([false; 5], None, [None, None]);
        for (field, value) in doc {
            let flag = FLAGS.iter().position(|(name, _)| *name == field).filter(|at| is_internal || *at == 0);
            match (field, flag) {
                (_, Some(at)) => {
                    let no_flag = FLAGS.get(at).map_or(E::InternalError, |(_, own)| code(*own, E::Location6067203));
                    let value = value.as_bool().ok_or_else(|| refuse(no_flag, &[field, " must be a bool"].concat()))?;
                    flags.iter_mut().skip(at).take(1).for_each(|flag| *flag = value);
                }
                ("timeField", _) => {
                    let nul = code(E::Location9568701, E::Location9568703);
                    time = Some(text(field, value, code(E::Location5346504, E::Location5612401), None, nul)?);
                }
                ("metaField", _) => {
                    let no_name = Some(code(E::Location5545700, E::Location5612403));
                    let nul = code(E::Location9568702, E::Location9568704);
                    meta = Some(text(field, value, code(E::Location5346505, E::Location5612402), no_name, nul)?);
                }
                ("include" | "exclude", _) if is_internal => {
                    if names.is_some() {
                        return Err(refuse(E::Location5408000, "takes at most one of include and exclude"));
                    }
                    let codes = [E::Location5346501, E::Location5346502, E::Location5346503, E::Location9568705];
                    (names, is_include) = (Some(list(field, value, codes)?), field == "include");
                }
                ("computedMetaProjFields", _) if is_internal => {
                    let codes = [E::Location5509900, E::Location5509901, E::Location5509902, E::Location9568706];
                    computed = list(field, value, codes)?;
                }
                ("bucketMaxSpanSeconds", _) if is_internal => {
                    let seconds = value.as_i32().filter(|_| value.kind() == Kind::Int32);
                    let seconds =
                        seconds.ok_or_else(|| refuse(E::Location5510600, "bucketMaxSpanSeconds must be an int"));
                    let seconds = Some(seconds?).filter(|seconds| *seconds > 0);
                    let too_small = || refuse(E::Location5510601, "bucketMaxSpanSeconds must be greater than zero");
                    span_seconds = Some(seconds.ok_or_else(too_small)?);
                }
                ("eventFilter" | "wholeBucketFilter", _) if is_internal => {
                    let [event, whole] = &mut filters;
                    let (filter, no_object) = match field {
                        "eventFilter" => (event, E::Location7026902),
                        _ => (whole, E::Location7026903),
                    };
                    let object = value.as_doc();
                    *filter = Some(object.ok_or_else(|| refuse(no_object, &[field, " must be an object"].concat()))?);
                }
                _ => {
                    let unknown = ["unrecognized parameter ", field].concat();
                    return Err(refuse(code(E::Location5346506, E::Location5612404), &unknown));
                }
            }
        }
        let no_time = || refuse(code(E::Location5346508, E::Location5612405), "requires a timeField");
        let time_field = time.ok_or_else(no_time)?;
        let no_span = || refuse(E::Location5510602, "requires bucketMaxSpanSeconds");
        let span_seconds = span_seconds.or((!is_internal).then_some(3600)).ok_or_else(no_span)?.into();
        let filter = |doc: Option<Doc<'_>>| doc.map(|doc| Filter::parse(doc, self.globals)).transpose();
        let [event, whole] = filters;
        let (event, whole) = (filter(event)?, filter(whole)?);
        let [no_mixed, extended, fixed, min, max] = flags;
        let mut spec = UnpackSpec {
            options: TimeseriesOptions {
                time_field,
                meta_field: meta,
                granularity: None,
                span_seconds,
                rounding_seconds: None,
                rebucketed: false,
                collation: Collation::default(),
            },
            gives_time: false,
            gives_meta: None,
            summaries: [min, max],
            event: event.filter(|event| !event.is_trivial()),
            whole,
            is_include,
            names: names.unwrap_or_else(Needed::none),
            computed,
            flags: [no_mixed, extended, fixed],
            reads: Needed::All,
        };
        spec.settle_fields();
        let shown = spec.shown();
        self.push(Step::Unpack(Box::new(spec)), INTERNAL, shown.view().as_value());
        Ok(())
    }
}

impl UnpackSpec {
    /// True where measurements have the field, if there is one.
    fn provides(&self, name: &str) -> bool {
        self.names.contains(name) == self.is_include
    }

    /// The time and the metadata stand apart; what is computed takes the place of any of them, but comes only where it is asked for.
    fn settle_fields(&mut self) {
        if let Some(meta) = self.options.meta_field.clone().filter(|meta| !self.computed.contains(meta)) {
            self.gives_meta = self.provides(&meta).then(|| meta.as_str().into());
            self.names.remove(&meta);
        }
        let time = &self.options.time_field;
        self.gives_time = self.provides(time) && !self.computed.contains(time);
        let mut kept = Needed::none();
        self.computed().filter(|name| self.provides(name)).for_each(|name| kept.add_path(name));
        self.computed = kept;
    }

    /// Tells what is read of the measurements: nothing else has to be unpacked.
    pub fn narrow(&mut self, reads: Needed) {
        self.reads = reads;
        if let Some(filter) = &self.event {
            filter.for_each_read(&mut |read| match read {
                Reads::Field(name) => self.reads.add_path(name),
                Reads::Everything => self.reads = Needed::All,
                Reads::Chance => {}
            });
        }
        self.gives_time &= self.reads.contains(&self.options.time_field);
        self.gives_meta = self.gives_meta.take().filter(|meta| self.reads.contains(meta));
    }

    /// The fields of the bucket that go to each measurement.
    pub fn computed(&self) -> impl Iterator<Item = &str> {
        roots(&self.computed).iter().map(|name| &**name).filter(|name| self.reads.contains(name))
    }

    /// The columns of a bucket that are to be decoded.
    pub fn wanted(&self, data: Doc<'_>) -> ColumnSet {
        let time = &self.options.time_field;
        let is_wanted = |name: &&str| match *name == time {
            true => self.gives_time,
            false => self.provides(name) && !self.computed.contains(name) && self.reads.contains(name),
        };
        let mut names: Vec<Box<str>> = data.iter().map(|(name, _)| name).filter(is_wanted).map(Into::into).collect();
        names.sort_unstable();
        ColumnSet::Only(names)
    }

    /// The parameters as the server writes them.
    fn shown(&self) -> DocBuf {
        let mut shown = DocWriter::new();
        let write_names = |shown: &mut DocWriter, name: &str, names: &Needed, more: Option<&str>| {
            shown.begin_array(name);
            for (place, name) in roots(names).iter().map(|name| &**name).chain(more).enumerate() {
                shown.string(&place.to_string(), name);
            }
            shown.end();
        };
        let meta = self.options.meta_field.as_deref();
        // Kept apart, it stands behind the others where it is asked for, or where it is not.
        let apart = |meta: &&str| {
            self.gives_meta.is_some() == self.is_include && !self.computed.contains(meta) && !self.names.contains(meta)
        };
        let name = if self.is_include { "include" } else { "exclude" };
        write_names(&mut shown, name, &self.names, meta.filter(apart));
        shown.string("timeField", &self.options.time_field);
        if let Some(meta) = meta {
            shown.string("metaField", meta);
        }
        shown.int32("bucketMaxSpanSeconds", i32::try_from(self.options.span_seconds).unwrap_or(i32::MAX));
        let [no_mixed, extended, fixed] = self.flags;
        let [min, max] = self.summaries;
        let write_flag = |shown: &mut DocWriter, at: usize, flag: bool| {
            for (name, _) in FLAGS.iter().skip(at).take(usize::from(flag)) {
                shown.bool(name, true);
            }
        };
        write_flag(&mut shown, 0, no_mixed);
        write_flag(&mut shown, 1, extended);
        if !roots(&self.computed).is_empty() {
            write_names(&mut shown, "computedMetaProjFields", &self.computed, None);
        }
        write_flag(&mut shown, 3, min);
        write_flag(&mut shown, 4, max);
        for (name, filter) in [("wholeBucketFilter", &self.whole), ("eventFilter", &self.event)] {
            if let Some(filter) = filter {
                shown.begin_doc(name);
                filter.write(&mut shown);
                shown.end();
            }
        }
        write_flag(&mut shown, 2, fixed);
        shown.finish()
    }
}

/// The names of a set of them.
fn roots(names: &Needed) -> &[Box<str>] {
    match names {
        Needed::All => &[],
        Needed::Roots(roots) => roots,
    }
}
