//! `explain` of `delete`, `update` and `findAndModify`: counts what would be changed, as `count` does.

// Loaded later.

use std::rc::Rc;

use super::explain_reply::{multikey_of, reply_of, run_of};
use super::find::{globals_of, target};
use super::reply::Reply;
use super::request::Request;
use super::{find_and_modify, statements};
use crate::bucket::BUCKETS_PREFIX;
use crate::engine::{ChangeKind, Defaults, Engine, ParseFind};
use crate::error::Result;
use crate::query::{Count, Demand, Explain, FindCommand, Projection, Query, Write};

/// True for the commands that are explained here.
pub fn is_write(name: &str) -> bool {
    matches!(name, "delete" | "update" | "findAndModify" | "findandmodify")
}

/// As `explain::show`.
pub async fn show(engine: &Rc<Engine>, inner: &Request<'_>, all_plans: Option<bool>) -> Result<Reply> {
    let (name, raw) = target(inner.collection()?);
    if !matches!(inner.name(), "delete" | "update") {
        let find = find_and_modify::find_of(inner)?;
        let globals = globals_of(engine, inner)?;
        let options = |defaults: Defaults<'_>| {
            let find = FindCommand { limit: Some(1), ..FindCommand::parse(find.view(), &globals(defaults))? };
            Ok(Query { find, demand: Demand::of_write() })
        };
        let (op_type, of_buckets) = match inner.field("update") {
            Some(_) => ("updateOne", "UPDATE"),
            None => ("deleteOne", "DELETE"),
        };
        let (of_buckets, answers) = (raw.then_some(of_buckets), Some(inner.field("fields").is_some()));
        let write = Write { op_type, of_buckets, answers };
        return plan(engine, inner, raw, &options, write, all_plans).await;
    }
    let collection = engine.collection(name).await?;
    let change = statements::only_change(engine, inner, collection.as_deref(), raw)?;
    let limit = matches!(change.kind, ChangeKind::DeleteOne | ChangeKind::UpdateOne(_)).then_some(1);
    let options = |_: Defaults<'_>| {
        let (filter, hint) = (change.filter.clone(), change.hint.clone());
        let projection = Projection::none();
        let find = FindCommand { filter, hint, limit, projection, ..FindCommand::default() };
        Ok(Query { find, demand: Demand::of_write() })
    };
    let (op_type, of_buckets) = match change.kind {
        ChangeKind::UpdateOne(_) => ("updateOne", Some("UPDATE")),
        ChangeKind::Update(_) => ("updateMany", Some("UPDATE")),
        ChangeKind::Delete => ("deleteMany", Some("DELETE")),
        _ => ("deleteOne", raw.then_some("DELETE")),
    };
    plan(engine, inner, raw, &options, Write { op_type, of_buckets, answers: None }, all_plans).await
}

async fn plan(
    engine: &Rc<Engine>,
    inner: &Request<'_>,
    raw: bool,
    options: &ParseFind<'_>,
    write: Write,
    all_plans: Option<bool>,
) -> Result<Reply> {
    let (name, begun_ms) = (target(inner.collection()?).0, engine.now_ms());
    let found = match (all_plans, write.answers) {
        (None, _) => engine.plan(name, raw, options).await?,
        (_, None) => engine.drain(name, raw, options, &mut Count::default()).await?,
        // In the requested order.
        _ => engine.try_find(name, raw, options).await?,
    };
    let run = run_of(engine, found.as_ref(), begun_ms);
    let multikey = multikey_of(engine, found.as_ref().filter(|_| all_plans.is_some())).await?;
    let entry = found.as_ref().map(|found| found.collection.entry());
    let explain = Explain {
        namespace: &[engine.name(), ".", if found.is_some() { BUCKETS_PREFIX } else { "" }, name].concat(),
        plan: found.as_ref().zip(entry.as_ref()).map(|(found, entry)| (&found.plan, &entry.options.timeseries)),
        run: all_plans.map(|_| run.unwrap_or_default()),
        all_plans: all_plans == Some(true),
        multikey,
        write: Some(write),
        group: None,
        has_source: false,
        later: &[],
    };
    Ok(reply_of(engine, inner, &explain))
}
