//! Indexes in terms of buckets instead of measurements.

use super::part::{KeyPart, Source};
use super::spec::IndexSpec;
use crate::bucket::TimeseriesOptions;
use crate::env::Env;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Collation, Doc, DocBuf, DocWriter, Value, equal};

impl IndexSpec {
    /// Parses a user's index specification; if `raw`, one in terms of buckets.
    ///
    /// Errors: those of `parse` and `of_raw`; `BadValue` if a field occurs twice in the key; those of `originalSpec` and
    /// of collations.
    pub fn of_user(user_spec: Doc<'_>, raw: bool, options: &TimeseriesOptions, env: &dyn Env) -> Result<IndexSpec> {
        let completed = complete(user_spec, options, env)?;
        let user_spec = completed.view();
        let asked = if raw { IndexSpec::of_raw(user_spec, options)? } else { user_spec.to_owned() };
        let spec = IndexSpec::parse(asked.view(), options)?;
        let twice = |part: &&KeyPart| spec.parts.iter().filter(|other| other.name == part.name).count() > 1;
        if let Some(part) = spec.parts.iter().find(twice) {
            return Err(Error::bad_value(["The field '", &part.name, "' occurs twice in the key"].concat()));
        }
        // Not kept: the specification that was asked for is always kept.
        if let Some(original) = user_spec.get("originalSpec").and_then(Value::as_doc) {
            if original.is_empty() {
                return Err(Error::bad_value("The field 'originalSpec' of an index is empty"));
            }
            if original.get("collation") != user_spec.get("collation") {
                let message = "The 'originalSpec' of an index must have the same collation as the index";
                return Err(Error::new(ErrorCode::InvalidIndexSpecificationOption, message));
            }
        }
        Ok(spec)
    }

    /// Translates a specification over buckets into what a user would ask for.
    ///
    /// Errors: `CannotCreateIndex` if no user's key translates to this one, and for a filter; those of `parse`.
    fn of_raw(user_spec: Doc<'_>, options: &TimeseriesOptions) -> Result<DocBuf> {
        let refuse = |what: &str| Err(Error::new(ErrorCode::CannotCreateIndex, ["Over buckets, ", what].concat()));
        let Some(key) = user_spec.get("key").and_then(Value::as_doc) else { return Ok(user_spec.to_owned()) };
        if user_spec.get("partialFilterExpression").is_some() {
            return refuse("an index cannot have a partialFilterExpression");
        }
        let mut asked = DocWriter::new();
        asked.begin_doc("key");
        let mut last = None;
        for (part, direction) in key {
            let on_meta = part.strip_prefix("meta").filter(|rest| rest.is_empty() || rest.starts_with('.'));
            let of_control = part.strip_prefix("control.min.").or_else(|| part.strip_prefix("control.max."));
            if let (Some(rest), Some(meta)) = (on_meta, options.meta_field.as_deref()) {
                asked.value(&[meta, rest].concat(), direction);
            } else if let (Some(field), Some("2dsphere_bucket")) = (part.strip_prefix("data."), direction.as_str()) {
                asked.string(field, "2dsphere");
            } else if let Some(field) = of_control.filter(|field| last != Some(*field)) {
                // The minimum and the maximum of a field are one part.
                asked.value(field, direction);
            }
            last = of_control.filter(|field| last != Some(*field));
        }
        asked.end();
        for (name, value) in user_spec.iter().filter(|(name, _)| *name != "key") {
            asked.value(name, value);
        }
        let asked = asked.finish();
        match IndexSpec::parse(asked.view(), options) {
            Ok(spec) if spec.has_bucket_key(key) => Ok(asked),
            Err(error) if error.code != ErrorCode::CannotCreateIndex => Err(error),
            _ => refuse("an index needs a key that an index on measurements would have"),
        }
    }

    /// The specification as users see it, with its collation complete.
    pub fn shown_in(&self, options: &TimeseriesOptions) -> DocBuf {
        let mut shown = DocWriter::new();
        let stored = self.shown();
        for (name, value) in stored.view() {
            shown.value(name, value);
        }
        if let (None, Some(default)) = (stored.view().get("collation"), options.collation.options()) {
            shown.doc("collation", default);
        }
        shown.finish()
    }

    /// True if the bucket key equals `key`.
    pub fn has_bucket_key(&self, key: Doc<'_>) -> bool {
        equal(self.bucket_key().view().as_value(), key.as_value())
    }

    /// The index in terms of buckets, filter included, with the original specification if the key does not determine
    /// it.
    pub fn shown_raw(&self, filter: Option<&DocBuf>, options: &TimeseriesOptions) -> DocBuf {
        let mut writer = DocWriter::new();
        let shown = self.shown_in(options);
        for (name, value) in shown.view() {
            let key = (name == "key").then(|| self.bucket_key());
            match key.as_ref().or(filter.filter(|_| name == "partialFilterExpression")) {
                Some(doc) => writer.doc(name, doc.view()),
                None => writer.value(name, value),
            };
        }
        let is_bound = |part: &KeyPart| part.source != Source::Meta && part.path.as_str() != options.time_field;
        if filter.is_some() || self.parts.iter().any(is_bound) {
            writer.doc("originalSpec", shown.view());
        }
        writer.finish()
    }
}

/// The specification with complete collations, and without those that are the collection's anyway: so equal indexes are
/// equal documents.
fn complete(spec: Doc<'_>, options: &TimeseriesOptions, env: &dyn Env) -> Result<DocBuf> {
    let mut completed = DocWriter::new();
    for (name, value) in spec {
        match (name, value.as_doc()) {
            // Both together are refused, whatever they are.
            ("collation", Some(given)) if spec.get("partialFilterExpression").is_none() => {
                let given = Collation::parse(given, env)?;
                if given.options() == options.collation.options() {
                    continue;
                }
                match given.options() {
                    Some(given) => completed.doc(name, given),
                    None => completed.begin_doc(name).string("locale", "simple").end(),
                }
            }
            ("originalSpec", Some(original)) => completed.doc(name, complete(original, options, env)?.view()),
            _ => completed.value(name, value),
        };
    }
    Ok(completed.finish())
}
