//! A `$group` that reads what a projection reads, so that the projection is not needed.

use super::crossing::read_below;
use crate::listed::IntoList;
use crate::query::expr::{BoundExpr, Expr, Variable};
use crate::query::plan::{FindCommand, Origin, Projection};
use crate::query::stage::accumulator::Accumulation;
use crate::query::stage::group::{GroupSpec, Key};
use crate::value::{Doc, DocBuf, DocWriter, Value};

/// Accumulators whose input is one of several arguments.
const WITH_ARGUMENTS: [&str; 6] = ["$firstN", "$lastN", "$minN", "$maxN", "$median", "$percentile"];

/// Lets a `$group` read the fields from which the projection of `find` takes its own, and drops the projection. False if
/// that changes results, or if the projection computes what the group does not read exactly once.
pub fn inline(find: &mut FindCommand, group: &mut GroupSpec, shown: &mut DocBuf) -> bool {
    if find.projection.is_all() {
        return false;
    }
    let Some((key, inputs)) = translated(&find.projection, group) else { return false };
    let is_changed = key != group.key || inputs.iter().zip(&group.fields).any(|(input, field)| *input != field.input);
    group.key = key;
    for (field, input) in group.fields.iter_mut().zip(inputs) {
        field.input = input;
    }
    if is_changed {
        *shown = written(group, shown.view());
    }
    find.projection = Projection::all();
    true
}

fn translated(projection: &Projection, group: &GroupSpec) -> Option<(Key, Vec<BoundExpr>)> {
    let of_key = match &group.key {
        Key::One(expr) => vec![expr],
        Key::Object(fields) => fields.iter().map(|(_, expr)| expr).listed(),
    };
    let read = || of_key.iter().copied().chain(group.fields.iter().flat_map(Accumulation::exprs));
    if read().any(|expr| expr.fields().is_all()) {
        return None;
    }
    // What takes time, or can fail, is computed exactly once, for every row.
    let is_whole = |expr: &BoundExpr, name: &str| matches!(expr.expr(), Expr::Field(Variable::Root, path) if matches!(&path[..], [only] if **only == *name));
    let is_once = |(name, expr): (&str, &BoundExpr)| {
        expr.is_plain()
            || read().filter(|expr| expr.fields().contains(name)).count() == 1
                && read().any(|expr| is_whole(expr, name))
    };
    if projection.computed_fields()?.into_iter().any(|field| !is_once(field)) {
        return None;
    }
    let translate = |expr: &BoundExpr, is_sorted: bool| {
        let place = |path: &[Box<str>]| {
            let (name, below) = path.split_first()?;
            match projection.origin(name) {
                Origin::Same => Some(Expr::Field(Variable::Root, path.to_vec())),
                Origin::Computed(_) if is_sorted => None,
                Origin::Computed(computed) if is_whole(expr, name) => Some(computed.clone()),
                Origin::Computed(computed) => read_below(computed, below),
                Origin::Part | Origin::Missing | Origin::Unknown => None,
            }
        };
        expr.expr().translated(&place).map(|moved| BoundExpr::new(moved, expr.globals().clone()))
    };
    let key = match &group.key {
        Key::One(expr) => Key::One(translate(expr, false)?),
        Key::Object(fields) => {
            let parts = fields.iter().map(|(name, expr)| Some((name.clone(), translate(expr, false)?)));
            Key::Object(parts.listed_if_all()?)
        }
    };
    // What has an order of its own knows the names of its sort keys.
    let is_left = |field: &Accumulation| {
        !field.is_ranked() || field.exprs().into_iter().all(|expr| translate(expr, true).as_ref() == Some(expr))
    };
    if !group.fields.iter().all(is_left) {
        return None;
    }
    let inputs = group.fields.iter().map(|field| translate(&field.input, field.is_ranked()));
    Some((key, inputs.listed_if_all()?))
}

/// The stage as it runs now.
fn written(group: &GroupSpec, shown: Doc<'_>) -> DocBuf {
    let mut writer = DocWriter::new();
    let Some((stage, argument)) = shown.iter().next() else { return writer.finish() };
    writer.begin_doc(stage);
    match &group.key {
        Key::One(expr) => expr.expr().write("_id", &mut writer),
        Key::Object(fields) => {
            writer.begin_doc("_id");
            fields.iter().for_each(|(name, expr)| expr.expr().write(name, &mut writer));
            writer.end();
        }
    }
    for field in &group.fields {
        let Some((operator, input)) = argument.as_doc().and_then(|all| all.get(&field.name)?.as_doc()?.iter().next())
        else {
            continue;
        };
        writer.begin_doc(&field.name);
        match input.as_doc() {
            _ if operator == "$count" || field.is_ranked() => drop(writer.value(operator, input)),
            Some(arguments) if WITH_ARGUMENTS.contains(&operator) => {
                writer.begin_doc(operator);
                for (name, value) in arguments {
                    write_argument(field, name, value, &mut writer);
                }
                writer.end();
            }
            _ => field.input.expr().write(operator, &mut writer),
        }
        writer.end();
    }
    writer.end();
    writer.finish()
}

fn write_argument(field: &Accumulation, name: &str, value: Value<'_>, writer: &mut DocWriter) {
    if name == "input" {
        field.input.expr().write(name, writer);
    } else {
        writer.value(name, value);
    }
}
