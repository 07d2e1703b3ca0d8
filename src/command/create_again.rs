//! `create` of an existing collection with other options: says what differs and how to change it, or changes it.

// Loaded later.

use std::rc::Rc;

use super::coll_mod;
use super::request::Request;
use crate::bucket::CollectionOptions;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{DocBuf, DocWriter, Value};

/// The differences between an existing collection and the options of a `create`.
struct Differences {
    said: String,
    /// Options that `collMod` cannot change.
    fixed: String,
    /// The `collMod` commands that change the rest.
    steps: Vec<DocBuf>,
}

/// Every option, with those of the buckets in the middle.
const OPTIONS: [&str; 9] = [
    "timeField",
    "metaField",
    "granularity",
    "bucketMaxSpanSeconds",
    "bucketRoundingSeconds",
    "expireAfterSeconds",
    "maxBytes",
    "dedupe",
    "collation",
];

/// Changes `there` to the options `asked`, if requested and possible.
///
/// Errors: `NamespaceExists` if not; those of `collMod`.
pub async fn modify_or_refuse(
    engine: &Rc<Engine>,
    name: &str,
    there: &CollectionOptions,
    mut asked: CollectionOptions,
    modify: bool,
) -> Result<()> {
    asked.collate(&**engine.globals().env())?;
    let Differences { said, fixed, steps } = differences(name, there, &asked, engine.now_ms());
    if modify && fixed.is_empty() {
        for step in steps {
            coll_mod::run(engine, &Request::new(step.view())?).await?;
        }
        return Ok(());
    }
    let mut message =
        ["Collection '", engine.name(), ".", name, "' exists already, with other options: ", &said, ". "].concat();
    if fixed.is_empty() {
        message.push_str("Change that with ");
        for step in &steps {
            message.push_str(&format!("{:?}, ", step.view()));
        }
        message.push_str("or create it with ifExists: \"modify\"");
    } else {
        message.push_str(&fixed);
        message.push_str(" cannot be changed: use another name, or drop the collection first");
    }
    Err(Error::new(ErrorCode::NamespaceExists, message))
}

fn differences(name: &str, there: &CollectionOptions, asked: &CollectionOptions, now_ms: i64) -> Differences {
    let (mut said, mut fixed) = (String::new(), String::new());
    let mut of_the_same_fields = asked.timeseries.clone();
    of_the_same_fields.time_field.clone_from(&there.timeseries.time_field);
    of_the_same_fields.meta_field.clone_from(&there.timeseries.meta_field);
    let same_buckets = there.timeseries.same_as(&of_the_same_fields);
    let (old, new) = (there.to_doc(), asked.to_doc());
    let mut buckets = DocWriter::new();
    buckets.string("collMod", name).begin_doc("timeseries");
    let mut others = DocWriter::new();
    others.string("collMod", name);
    let mut others_differ = false;
    let mut dedupe = None;
    for option in OPTIONS {
        let (old, new) = (option_of(&old, option), option_of(&new, option));
        let of_buckets = matches!(option, "granularity" | "bucketMaxSpanSeconds" | "bucketRoundingSeconds");
        if of_buckets {
            // The granularity implies the others.
            let is_said = asked.timeseries.granularity.is_none() || option == "granularity";
            if let Some(value) = new.filter(|_| is_said) {
                buckets.value(option, value);
            }
        }
        if old == new || of_buckets && same_buckets {
            continue;
        }
        let shown = |value: Option<Value<'_>>| value.map_or_else(|| "absent".to_owned(), |value| format!("{value:?}"));
        list(&mut said, &[option, " is ", &shown(old), ", not ", &shown(new)].concat());
        match new {
            _ if of_buckets => {}
            _ if option == "dedupe" => {
                let mut step = DocWriter::new();
                step.string("collMod", name);
                match new {
                    Some(value) => step.value(option, value),
                    None => step.string(option, "off"),
                };
                dedupe = Some(step.finish());
            }
            _ if !matches!(option, "expireAfterSeconds" | "maxBytes") => list(&mut fixed, option),
            Some(value) => _ = others.value(option, value),
            None => _ = others.string(option, "off"),
        }
        others_differ |= matches!(option, "expireAfterSeconds" | "maxBytes");
    }
    buckets.end();
    let mut steps = Vec::new();
    if !same_buckets {
        let step = buckets.finish();
        match there.modified(step.view(), now_ms) {
            Ok(_) => steps.push(step),
            Err(_) => list(&mut fixed, "buckets that become shorter"),
        }
    }
    if others_differ {
        steps.push(others.finish());
    }
    steps.extend(dedupe);
    Differences { said, fixed, steps }
}

fn list(all: &mut String, item: &str) {
    if !all.is_empty() {
        all.push_str(", ");
    }
    all.push_str(item);
}

/// An option as `listCollections` shows it; also finds those of `timeseries`.
fn option_of<'a>(options: &'a DocBuf, name: &str) -> Option<Value<'a>> {
    let series = options.view().get("timeseries").and_then(Value::as_doc);
    options.view().get(name).or_else(|| series?.get(name))
}
