//! `explain`: how a command goes.

use std::rc::Rc;

use super::find::{globals_of, target};
use super::{Reply, Request, server_status};
use crate::bucket::BUCKETS_PREFIX;
use crate::engine::{Defaults, Engine};
use crate::error::{Error, ErrorCode, Result};
use crate::query::{Count, Distinct, Explain, FindOptions, Globals, Group, Run, Sink};
use crate::value::{Collation, DocWriter, OwnedValue};

/// `{explain: command, verbosity}`. With `queryPlanner` the command is planned only, otherwise it is run and its result forgotten.
pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["verbosity"])?;
    let explained = request.target();
    let command =
        explained.as_doc().ok_or_else(|| super::request::wrong_type("explain", "explain", "an object", explained))?;
    let verbosity = request.string("verbosity")?.unwrap_or("allPlansExecution");
    let (runs, all_plans) = match verbosity {
        "queryPlanner" => (false, false),
        "executionStats" => (true, false),
        "allPlansExecution" => (true, true),
        _ => {
            let message =
                format!("Enumeration value '{verbosity}' for field 'explain.verbosity' is not a valid value.");
            return Err(Error::bad_value(message));
        }
    };
    let inner = Request::new(command)?;
    let globals = globals_of(engine, &inner)?;
    let options = |defaults: Defaults<'_>| Ok(query(&inner, &globals(defaults))?.0);
    let (_, sink) = query(&inner, &globals(Defaults::of_nothing(&Collation::default())))?;
    let (name, raw) = target(inner.collection()?);
    let (mut sink, group) = sink.unzip();
    let begun_ms = engine.now_ms();
    let found = match &mut sink {
        _ if !runs => engine.plan(name, raw, &options).await?,
        Some(sink) => engine.drain(name, raw, &options, &mut **sink).await?,
        None => engine.try_find(name, raw, &options).await?,
    };
    let run = found.as_ref().map(|found| Run {
        entries: found.entries as u64,
        examined: found.examined as u64,
        counters: found.counters,
        duration_ms: engine.now_ms() - begun_ms,
    });
    let entry = found.as_ref().map(|found| found.collection.entry());
    let explain = Explain {
        namespace: &[engine.name(), ".", if found.is_some() { BUCKETS_PREFIX } else { "" }, name].concat(),
        plan: found.as_ref().zip(entry.as_ref()).map(|(found, entry)| (&found.plan, &entry.options.timeseries)),
        run: runs.then(|| run.unwrap_or_default()),
        all_plans,
        group,
    };
    let mut reply = DocWriter::new();
    reply.string("explainVersion", "1");
    explain.write(&mut reply);
    reply.doc("command", command).begin_doc("serverInfo");
    server_status::append_identity(&mut reply, engine);
    reply.end();
    Ok(Reply::ok(reply))
}

/// What takes the matches where they are not returned, and how that is shown.
type Into = (Box<dyn Sink>, Group);

/// The find that a command comes to.
///
/// Errors: those of the command; `CommandNotFound` for one that cannot be explained.
fn query(inner: &Request<'_>, globals: &Globals) -> Result<(FindOptions, Option<Into>)> {
    let command = inner.doc();
    Ok(match inner.name() {
        "find" => (FindOptions::parse(command, globals)?, None),
        "count" => {
            let options = FindOptions::of_count(command, globals)?;
            (options, Some((Box::new(Count::default()), ("count", "$sum", OwnedValue::int32(1)))))
        }
        "distinct" => {
            let (options, key) = FindOptions::of_distinct(command, globals)?;
            let field = OwnedValue::string(&["$", key.as_str()].concat());
            (options, Some((Box::new(Distinct::new(key)), ("distinct", "$addToSet", field))))
        }
        name => {
            let message = format!("Explain failed due to unknown command: {name}");
            return Err(Error::new(ErrorCode::CommandNotFound, message));
        }
    })
}
