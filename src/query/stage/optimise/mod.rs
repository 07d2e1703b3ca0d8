//! Rearranges the steps of a parsed pipeline: filters run as early as possible, and a projection that only renames fields
//! is merged into the `$group` behind it.

mod crossing;
mod inline;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use super::model::Foreign;
use super::spec::{ShownStep, Step};
use crate::listed::IntoList;
use crate::query::filter::Filter;
use crate::query::plan::{FindCommand, Projection};
use crate::query::sort::SortSpec;
use crate::value::{Doc, DocBuf, DocWriter, Value};
use crossing::Crossing;

/// Rearranges steps. The result of the pipeline stays the same, except for errors of rows that are now dropped earlier.
pub(super) fn optimise(steps: &mut Vec<ShownStep>, others: &mut [Foreign]) {
    move_filters(steps, others);
    merge_finds(steps);
    show_filters(steps);
    inline_projections(steps);
}

/// A find without parts is a barrier, except in front of all steps.
fn is_barrier(step: &Step, at: usize) -> bool {
    matches!(step, Step::Find(find) if at > 0 && find.is_empty())
}

/// Moves filters in front of the steps before them, from the last step to the first.
fn move_filters(steps: &mut Vec<ShownStep>, others: &mut [Foreign]) {
    let mut at = steps.len();
    while at > 1 {
        at -= 1;
        let Some([(before, shown), (Step::Find(find), _)]) = steps.get_mut(at - 1..=at) else { continue };
        if find.filter.is_trivial() || is_barrier(before, at - 1) {
            continue;
        }
        let divided = match appended(before, others) {
            Some(other) if !find.filter.reads_outer() => {
                let (moved, kept) = Crossing::Order.divide(&find.filter);
                *shown = with_filter(shown.view(), &moved);
                other.filter = Filter::and([moved.clone(), std::mem::take(&mut other.filter)]);
                Some((moved, kept))
            }
            _ => Crossing::of(before).map(|crossing| crossing.divide(&find.filter)),
        };
        let is_moved = |(moved, kept): &(Filter, Filter)| !moved.is_trivial() || *kept != find.filter;
        let Some((moved, kept)) = divided.filter(is_moved) else { continue };
        find.filter = kept;
        let is_spent = find.is_empty();
        let inserted = match before {
            Step::Find(before) => {
                before.filter = Filter::and([std::mem::take(&mut before.filter), moved]);
                None
            }
            _ if moved.is_trivial() => None,
            _ => Some(FindCommand { filter: moved, ..FindCommand::default() }),
        };
        if is_spent {
            steps.remove(at);
        }
        if let Some(find) = inserted {
            steps.insert(at - 1, (Step::Find(Box::new(find)), DocWriter::new().finish()));
            at += 1;
        }
    }
}

/// The pipeline whose rows a step appends unchanged.
fn appended<'o>(step: &Step, others: &'o mut [Foreign]) -> Option<&'o mut Foreign> {
    match step {
        Step::Other(spec) => others.get_mut(spec.appended()?),
        _ => None,
    }
}

/// A stage as it was written, with a filter behind the stages of its pipeline.
fn with_filter(shown: Doc<'_>, filter: &Filter) -> DocBuf {
    let mut writer = DocWriter::new();
    let Some((stage, argument)) = shown.iter().next() else { return writer.finish() };
    writer.begin_doc(stage);
    let options = argument.as_doc().unwrap_or(Doc::EMPTY);
    if let Some(collection) = options.get("coll").or(argument.as_str().map(|_| argument)) {
        writer.value("coll", collection);
    }
    writer.begin_array("pipeline");
    let stages: Vec<_> = options.get("pipeline").map_or(Doc::EMPTY.iter(), Value::elements).listed();
    for (place, (_, stage)) in stages.iter().enumerate() {
        writer.value(&place.to_string(), *stage);
    }
    writer.begin_doc(&stages.len().to_string()).begin_doc("$match");
    filter.write(&mut writer);
    writer.end().end().end().end();
    writer.finish()
}

/// Joins neighbouring finds, where no filter stands between them any more.
fn merge_finds(steps: &mut Vec<ShownStep>) {
    let mut at = 1;
    while at < steps.len() {
        let is_merged = match steps.get_mut(at - 1..=at) {
            Some([(before, _), (behind, _)]) if !is_barrier(before, at - 1) && !is_barrier(behind, at) => {
                match (before, behind) {
                    (Step::Find(before), Step::Find(behind)) => merge(before, behind),
                    _ => false,
                }
            }
            _ => false,
        };
        if is_merged {
            steps.remove(at);
        } else {
            at += 1;
        }
    }
}

/// Adds the parts of `behind` to `before`, if one find can do both.
fn merge(before: &mut FindCommand, behind: &mut FindCommand) -> bool {
    let (is_kept, drops) = (before.projection.is_all(), before.skip > 0 || before.limit.is_some());
    let sorts =
        |sort: &SortSpec| !drops && sort.parts().iter().all(|part| before.projection.leaves_root(part.path.first()));
    let fits = behind.filter.is_trivial()
        && (is_kept || behind.projection.is_all())
        && behind.sort.as_ref().is_none_or(sorts)
        && (behind.skip == 0 || before.limit.is_none());
    if !fits {
        return false;
    }
    before.sort = behind.sort.take().or(before.sort.take());
    before.skip = before.skip.saturating_add(behind.skip);
    before.limit = before.limit.into_iter().chain(behind.limit).min();
    if is_kept {
        before.projection = std::mem::replace(&mut behind.projection, Projection::all());
    }
    true
}

/// Lets each stage see the filter behind it.
fn show_filters(steps: &mut [ShownStep]) {
    for at in 1..steps.len() {
        if let Some([(Step::Other(spec), _), (Step::Find(find), _)]) = steps.get_mut(at - 1..=at)
            && let Some(spec) = Rc::get_mut(spec)
        {
            spec.see_filter(&find.filter);
        }
    }
}

/// Lets each `$group` read the fields from which a projection in front of it takes its own.
fn inline_projections(steps: &mut Vec<ShownStep>) {
    for at in (1..steps.len()).rev() {
        if let Some([(Step::Find(find), _), (step, shown)]) = steps.get_mut(at - 1..=at)
            && let Some(group) = step.group()
            && inline::inline(find, group, shown)
            && at > 1
            && find.is_empty()
        {
            steps.remove(at - 1);
        }
    }
}
