//! Parses `$_internalUnpackBucket` and `$_unpackBucket`.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_internal_unpack_bucket.cpp.

use std::rc::Rc;

use super::spec::{UnpackSpec, refused};
use crate::bucket::TimeseriesOptions;
use crate::error::{ErrorCode, Result};
use crate::query::filter::Filter;
use crate::query::stage::parse::PipelineParser;
use crate::query::stage::spec::Step;
use crate::value::{Collation, Doc, DocBuf, DocWriter, FieldSet, Value};

const INTERNAL: &str = "$_internalUnpackBucket";

/// The required type of a parameter.
#[derive(Clone, Copy)]
enum ParameterType {
    Flag,
    Text,
    Name,
    Names,
    Seconds,
    Filter,
}

/// A parameter, with the error codes for the ways in which it can be wrong, and the codes of the alias.
type UnpackParameter = (&'static str, ParameterType, [ErrorCode; 4], Option<[ErrorCode; 3]>);

/// In the order in which they are shown.
const PARAMETERS: [UnpackParameter; 13] = {
    use ErrorCode::*;
    const NONE: ErrorCode = InternalError;
    const NAMES: [ErrorCode; 4] = [Location5346501, Location5346502, Location5346503, Location9568705];
    [
        ("include", ParameterType::Names, NAMES, None),
        ("exclude", ParameterType::Names, NAMES, None),
        (
            "timeField",
            ParameterType::Text,
            [Location5346504, NONE, Location9568701, NONE],
            Some([Location5612401, NONE, Location9568703]),
        ),
        (
            "metaField",
            ParameterType::Name,
            [Location5346505, Location5545700, Location9568702, NONE],
            Some([Location5612402, Location5612403, Location9568704]),
        ),
        ("bucketMaxSpanSeconds", ParameterType::Seconds, [Location5510600, Location5510601, NONE, NONE], None),
        ("assumeNoMixedSchemaData", ParameterType::Flag, [Location6067202; 4], Some([Location6067203; 3])),
        ("usesExtendedRange", ParameterType::Flag, [Location6646901; 4], None),
        (
            "computedMetaProjFields",
            ParameterType::Names,
            [Location5509900, Location5509901, Location5509902, Location9568706],
            None,
        ),
        ("includeMinTimeAsMetadata", ParameterType::Flag, [Location6460208; 4], None),
        ("includeMaxTimeAsMetadata", ParameterType::Flag, [Location6460209; 4], None),
        ("wholeBucketFilter", ParameterType::Filter, [Location7026903; 4], None),
        ("eventFilter", ParameterType::Filter, [Location7026902; 4], None),
        ("fixedBuckets", ParameterType::Flag, [Location7823300; 4], None),
    ]
};

/// Which of a parameter's codes applies to a value.
fn fault(want: ParameterType, value: Value<'_>) -> Option<usize> {
    let text = |value: Value<'_>, dots: bool| match value.as_str() {
        None => Some(0),
        Some(text) if !dots && text.contains('.') => Some(1),
        Some(text) => text.contains('\0').then_some(2),
    };
    match want {
        ParameterType::Flag => value.as_bool().is_none().then_some(0),
        ParameterType::Text => text(value, true),
        ParameterType::Name => text(value, false),
        ParameterType::Names => match value.as_array() {
            Some(names) => names.iter().find_map(|(_, name)| text(name, false)).map(|fault| fault + 1),
            None => Some(0),
        },
        // Numbers from JavaScript are doubles.
        ParameterType::Seconds => match value.as_integer().and_then(|seconds| i32::try_from(seconds).ok()) {
            Some(seconds) => (seconds <= 0).then_some(1),
            None => Some(0),
        },
        ParameterType::Filter => value.as_doc().is_none().then_some(0),
    }
}

impl PipelineParser<'_> {
    /// `$_internalUnpackBucket`, and `$_unpackBucket`, which has fewer parameters and codes of its own.
    ///
    /// Errors: one for each parameter and rule, in the order of the parameters; those of filters.
    pub fn unpack(&mut self, stage: &str, argument: Value<'_>) -> Result<()> {
        use ErrorCode as E;
        let is_internal = stage == INTERNAL;
        let code = |internal, external| if is_internal { internal } else { external };
        let doc = argument.as_doc();
        let doc = doc.ok_or_else(|| refused(stage, code(E::Location5346500, E::Location5612400), "needs an object"))?;
        let mut arguments = [None; PARAMETERS.len()];
        for (name, value) in doc {
            let known = PARAMETERS
                .iter()
                .zip(0..)
                .find(|((known, .., others), _)| *known == name && (is_internal || others.is_some()));
            let Some(((_, want, codes, others), place)) = known else {
                let code = code(E::Location5346506, E::Location5612404);
                return Err(refused(stage, code, &["unknown parameter ", name].concat()));
            };
            if place < 2 && matches!(arguments, [Some(_), ..] | [_, Some(_), ..]) {
                return Err(refused(stage, E::Location5408000, "takes at most one of include and exclude"));
            }
            let codes: &[ErrorCode] = others.as_ref().filter(|_| !is_internal).map_or(codes, |others| others);
            if let Some(code) = fault(*want, value).and_then(|fault| codes.get(fault)) {
                return Err(refused(stage, *code, &format!("{name} cannot be {value:?}")));
            }
            arguments.iter_mut().skip(place).take(1).for_each(|slot| *slot = Some(value));
        }
        let [include, exclude, time, meta, seconds, _, _, computed, min, max, whole, event, _] = arguments;
        let text = |value: Option<Value<'_>>| value.and_then(Value::as_str).map(str::to_owned);
        let flag = |value: Option<Value<'_>>| value.and_then(Value::as_bool) == Some(true);
        let names = |value: Option<Value<'_>>| {
            let mut names = FieldSet::none();
            let list = value.map_or(Doc::EMPTY.iter(), Value::elements);
            list.filter_map(|(_, name)| name.as_str()).for_each(|name| names.add_path(name));
            names
        };
        let no_time = || refused(stage, code(E::Location5346508, E::Location5612405), "requires timeField");
        let time_field = text(time).ok_or_else(no_time)?;
        let seconds = seconds.and_then(Value::as_integer).and_then(|seconds| i32::try_from(seconds).ok());
        let seconds = seconds.or((!is_internal).then_some(3600));
        let seconds = seconds.ok_or_else(|| refused(stage, E::Location5510602, "requires bucketMaxSpanSeconds"))?;
        let filter = |value: Option<Value<'_>>| {
            value.and_then(Value::as_doc).map(|doc| Filter::parse(doc, self.globals)).transpose()
        };
        let (event, whole) = (filter(event)?, filter(whole)?);
        let mut spec = UnpackSpec {
            options: TimeseriesOptions {
                time_field,
                meta_field: text(meta),
                granularity: None,
                span_seconds: seconds.into(),
                rounding_seconds: None,
                rebucketed: false,
                collation: Collation::default(),
            },
            gives_time: false,
            gives_meta: None,
            summaries: [flag(min), flag(max)],
            event: event.filter(|event| !event.is_trivial()),
            whole,
            is_include: include.is_some(),
            names: names(include.or(exclude)),
            computed: names(computed),
            reads: FieldSet::All,
        };
        spec.separate_fields();
        let shown = spec.shown(&arguments);
        self.push_step(Step::Unpack(Rc::new(spec)), INTERNAL, shown.view().as_value());
        Ok(())
    }
}

impl UnpackSpec {
    /// The given parameters, as the server writes them.
    fn shown(&self, arguments: &[Option<Value<'_>>]) -> DocBuf {
        let mut shown = DocWriter::new();
        for ((name, want, ..), value) in PARAMETERS.iter().zip(arguments) {
            let mut write_names = |names: &FieldSet, more: Option<&str>| {
                shown.begin_array(name);
                for (place, name) in names.names().iter().map(|name| &**name).chain(more).enumerate() {
                    shown.string(&place.to_string(), name);
                }
                shown.end();
            };
            match (want, *name, value) {
                (ParameterType::Names, "computedMetaProjFields", _) if self.computed.names().is_empty() => {}
                (ParameterType::Names, "computedMetaProjFields", _) => write_names(&self.computed, None),
                (ParameterType::Names, ..) => {
                    // The metadata is kept apart, and written after the others whether it is included or excluded.
                    let apart = self.options.meta_field.as_deref().filter(|meta| {
                        self.gives_meta.is_some() == self.is_include
                            && !self.computed.contains(meta)
                            && !self.names.contains(meta)
                    });
                    if self.is_include == (*name == "include") {
                        write_names(&self.names, apart);
                    }
                }
                (ParameterType::Seconds, ..) => {
                    shown.int32(name, i32::try_from(self.options.span_seconds).unwrap_or(i32::MAX));
                }
                (ParameterType::Filter, ..) => {
                    let filter = if *name == "eventFilter" { &self.event } else { &self.whole };
                    if let Some(filter) = filter {
                        shown.begin_doc(name);
                        filter.write(&mut shown);
                        shown.end();
                    }
                }
                (ParameterType::Flag, _, Some(value)) if value.as_bool() == Some(false) => {}
                (.., Some(value)) => {
                    shown.value(name, *value);
                }
                _ => {}
            }
        }
        shown.finish()
    }
}
