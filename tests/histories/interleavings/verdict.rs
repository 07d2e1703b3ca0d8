//! Judges a run: what was acknowledged is found exactly once, and what readers saw fits the order of the operations.
//!
//! An operation comes before another if it had its answer before the other's first call. Independent calls may be
//! reordered unnoticed, and only one such order is run; so an operation also comes before another if
//! reordering such calls alone puts it there. Two operations in neither order overlap, and an overlapping delete may or may not apply.

use bson::Document;
use futures::executor::block_on;

use super::history::{
    BEFORE, Count, CreateIndex, Delete, DeleteOne, Drop, DropIndex, Expire, FRESH_MS, Find, FindBy, HideIndex, History,
    Insert, Operation, Record, Run, Update, open,
};
use crate::support::rows::matching;
use crate::support::valid_bucket::Writers;
use crate::support::{canonical, checks, multiset};

/// Panics if the run was wrong.
pub fn judge(history: &History, run: &Run) {
    let order = Order::new(history, run);
    let drops = history.tasks.iter().flat_map(|task| &task.operations).any(|what| matches!(what, Drop));
    for record in &run.records {
        if let Some(Err(reply)) = &record.outcome {
            assert!(drops || may_fail(history, record, reply), "{:?} failed: {reply}", record.what);
        }
    }
    let all: Vec<Document> = run.records.iter().flat_map(|record| rows_of(&record.what)).cloned().collect();
    let storage = &run.storage;
    let read = |seed| {
        let db = open(storage, seed);
        block_on(checks::sound(&db, "c", Writers::One))
    };
    let left = read(100);
    let folded = block_on(checks::sound_when_folded(&**storage, &open(storage, 101), "c", Writers::One));
    assert_eq!(multiset(&folded), multiset(&left), "folding has changed what is found");
    block_on(judge_indexes(run, &order, &folded));
    let views = views(run, &order, &left);
    views.iter().for_each(|view| view.judge(run, &order));
    for (at, early) in views.iter().enumerate() {
        for late in views.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, late)| late) {
            early.judge_pair(late, run, &order);
        }
    }
    judge_counts(run, &order, &all, &left, drops);
    let db = open(storage, 102);
    block_on(db.ok(bson::rawdoc! { "drop": "c" }));
    let keys = block_on(checks::left_behind(&**storage, |storage| open(&storage, 103)));
    assert!(keys.is_empty(), "a dropped collection leaves behind {keys:?}");
}

fn rows_of(what: &Operation) -> &[Document] {
    match what {
        Insert(rows) => rows,
        _ => &[],
    }
}

/// Whether an operation certainly deletes `row` if it comes after its insert.
fn deletes(what: &Operation, row: &Document) -> bool {
    match what {
        Delete(filter) => !matching(std::slice::from_ref(row), filter).is_empty(),
        Expire => row.get_datetime("t").unwrap().timestamp_millis() < FRESH_MS,
        Drop => true,
        _ => false,
    }
}

fn may_delete(what: &Operation, row: &Document) -> bool {
    match what {
        DeleteOne(filter) => !matching(std::slice::from_ref(row), filter).is_empty(),
        _ => deletes(what, row),
    }
}

fn acknowledged(record: &Record) -> bool {
    matches!(record.outcome, Some(Ok(_)))
}

/// The partial order of operations.
struct Order {
    /// Whether one record comes before another, by their indexes.
    before: Vec<Vec<bool>>,
}

impl Order {
    fn new(history: &History, run: &Run) -> Order {
        let events = &run.events;
        // For each event, those that come before it in every equivalent order.
        let mut causes: Vec<Vec<bool>> = Vec::with_capacity(events.len());
        for (at, event) in events.iter().enumerate() {
            let mut mine = vec![false; events.len()];
            for (earlier, other) in events[..at].iter().enumerate().rev() {
                if !mine[earlier]
                    && (event.task == other.task
                        || history.depend((event.task, &event.footprint), (other.task, &other.footprint)))
                {
                    mine[earlier] = true;
                    mine.iter_mut().zip(&causes[earlier]).for_each(|(mine, theirs)| *mine |= *theirs);
                }
            }
            causes.push(mine);
        }
        let of = |record: &Record| -> Vec<usize> {
            let own = events.iter().enumerate();
            own.filter(|(_, e)| e.task == record.task && e.operation == record.operation).map(|(at, _)| at).collect()
        };
        let places: Vec<Vec<usize>> = run.records.iter().map(of).collect();
        // No event of `a` depends on one of `b`.
        let free = |a: usize, b: usize| !places[a].iter().any(|x| places[b].iter().any(|y| causes[*x][*y]));
        let before = |a: usize, b: usize| {
            let (one, other) = (&run.records[a], &run.records[b]);
            let Some(ended) = one.ended else { return false };
            if one.task == other.task {
                return one.operation < other.operation;
            }
            if one.task == BEFORE || other.task == BEFORE {
                return one.task == BEFORE;
            }
            let first = places[b].first().copied().unwrap_or(other.began);
            ended <= first || free(a, b) && !free(b, a)
        };
        let count = run.records.len();
        Order { before: (0..count).map(|a| (0..count).map(|b| before(a, b)).collect()).collect() }
    }
}

/// The result of a find, or the final content.
struct View<'a> {
    /// The record of the find; `None` for the final content.
    at: Option<usize>,
    /// Every measurement that could be found, the index of its insert, and how often it was found.
    rows: Vec<(&'a Document, usize, usize)>,
}

fn views<'a>(run: &'a Run, order: &Order, left: &[Document]) -> Vec<View<'a>> {
    let view = |at: Option<usize>, filter: Document, found: &[Document]| {
        let found = multiset(&as_inserted(run, order, at, found));
        let mut rows = Vec::new();
        for (insert, record) in run.records.iter().enumerate() {
            for row in matching(rows_of(&record.what), &filter) {
                let bytes = canonical(row);
                rows.push((row, insert, found.iter().filter(|other| **other == bytes).count()));
            }
        }
        let known: usize = rows.iter().map(|(_, _, times)| times).sum();
        assert_eq!(known, found.len(), "something was found that nobody has inserted");
        View { at, rows }
    };
    let mut views = vec![view(None, Document::new(), left)];
    for (at, record) in run.records.iter().enumerate() {
        let Some(Ok((found, _))) = &record.outcome else { continue };
        match &record.what {
            Find(filter) => views.push(view(Some(at), filter.clone(), found)),
            Operation::Buckets | FindBy(_) => views.push(view(Some(at), Document::new(), found)),
            _ => {}
        }
    }
    views
}

/// The found measurements as they were inserted; their metadata must be what the updates before and beside allow.
fn as_inserted(run: &Run, order: &Order, at: Option<usize>, found: &[Document]) -> Vec<Document> {
    let mut found = found.to_vec();
    let of_inserts =
        run.records.iter().enumerate().flat_map(|(at, by)| rows_of(&by.what).iter().map(move |row| (at, row)));
    for row in &mut found {
        let Some((insert, inserted)) = of_inserts.clone().find(|(_, inserted)| inserted.get("n") == row.get("n"))
        else {
            continue;
        };
        let (mut may, mut must) = (false, false);
        for (place, update) in run.records.iter().enumerate() {
            let Update(from, to) = &update.what else { continue };
            if inserted.get_str("m").unwrap() != *from {
                continue;
            }
            let comes = at.is_none_or(|at| !order.before[at][place]) && !order.before[place][insert];
            may |= comes && row.get_str("m").unwrap() == *to;
            must |= acknowledged(update) && order.before[insert][place] && at.is_none_or(|at| order.before[place][at]);
        }
        let is_new = row.get("m") != inserted.get("m");
        assert!(if is_new { may } else { !must }, "{row} was found, which was inserted as {inserted}");
        row.insert("m", inserted.get("m").unwrap().clone());
    }
    found
}

/// The reasons why an operation may fail: no room, a missing index, or one that was dropped during its build.
fn may_fail(history: &History, record: &Record, reply: &Document) -> bool {
    match &record.what {
        Delete(_) | Expire if history.full == Some(record.task) => format!("{reply}").contains("14031"),
        CreateIndex(..) => reply.get_i32("code").ok() == Some(112),
        DropIndex(_) | HideIndex(..) => reply.get_i32("code").ok() == Some(27),
        FindBy(_) => reply.get_i32("code").ok() == Some(2),
        _ => false,
    }
}

/// Asserts that every listed index finds everything, and that created indexes are listed unless they were dropped.
async fn judge_indexes(run: &Run, order: &Order, all: &[Document]) {
    let db = open(&run.storage, 104);
    let reply = db.ok(bson::rawdoc! { "listIndexes": "c" }).await;
    let listed = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    let mut names = Vec::new();
    for spec in listed.iter().map(|spec| spec.as_document().unwrap()) {
        let name = spec.get_str("name").unwrap();
        names.push(name);
        if !spec.contains_key("hidden") {
            let found = db.find(bson::rawdoc! { "find": "c", "hint": name }).await;
            assert_eq!(multiset(&found), multiset(all), "by the index {name}");
        }
    }
    for (made, record) in run.records.iter().enumerate() {
        let CreateIndex(name, _) = &record.what else { continue };
        let may_be_gone = run.records.iter().enumerate().any(|(place, other)| match &other.what {
            DropIndex(dropped) => dropped == name && !order.before[place][made],
            Drop => !order.before[place][made],
            _ => false,
        });
        assert!(!acknowledged(record) || may_be_gone || names.contains(name), "{name} is not listed: {names:?}");
    }
}

impl View<'_> {
    /// True if operation `a` comes before this view.
    fn after(&self, a: usize, order: &Order) -> bool {
        self.at.is_none_or(|at| order.before[a][at])
    }

    /// True if this view comes before operation `a`.
    fn before(&self, a: usize, order: &Order) -> bool {
        self.at.is_some_and(|at| order.before[at][a])
    }

    fn judge(&self, run: &Run, order: &Order) {
        for (row, insert, times) in &self.rows {
            let (insert, times) = (*insert, *times);
            assert!(times <= 1, "{row} was found {times} times by {}", self.name(run));
            let record = &run.records[insert];
            let failed = matches!(record.outcome, Some(Err(_)));
            assert!(times == 0 || !failed, "{row}, refused, was found by {}", self.name(run));
            assert!(
                times == 0 || !self.before(insert, order),
                "{row} was found by {} before it was inserted",
                self.name(run)
            );
            let gone = (0..run.records.len()).any(|delete| {
                let what = &run.records[delete];
                acknowledged(what)
                    && deletes(&what.what, row)
                    && order.before[insert][delete]
                    && self.after(delete, order)
            });
            assert!(times == 0 || !gone, "{row}, deleted, was found by {}", self.name(run));
            let may_be_gone = (0..run.records.len()).any(|delete| {
                may_delete(&run.records[delete].what, row)
                    && !order.before[delete][insert]
                    && !self.before(delete, order)
            });
            let stands = acknowledged(record) && self.after(insert, order) && !may_be_gone;
            assert!(times == 1 || !stands, "{row} was not found by {}", self.name(run));
        }
    }

    /// Compares a view with an earlier one: a measurement disappears or comes back only because of an operation.
    fn judge_pair(&self, late: &View<'_>, run: &Run, order: &Order) {
        let Some(at) = self.at else { return };
        if !late.after(at, order) {
            return;
        }
        for (row, insert, times) in &self.rows {
            let same = late.rows.iter().find(|(other, _, _)| other.get("n") == row.get("n"));
            let Some((_, _, later)) = same else { continue };
            let deleted_between = (0..run.records.len()).any(|delete| {
                may_delete(&run.records[delete].what, row)
                    && !order.before[delete][at]
                    && !late.before(delete, order)
                    && !order.before[delete][*insert]
            });
            let lost = *times == 1 && *later == 0 && !deleted_between;
            assert!(!lost, "{row} was found by {} and no longer by {}", self.name(run), late.name(run));
            let back = *times == 0 && *later == 1 && order.before[*insert][at];
            assert!(!back, "{row} was gone for {} and is back for {}", self.name(run), late.name(run));
        }
    }

    fn name(&self, run: &Run) -> String {
        self.at.map_or("the last reader".to_owned(), |at| {
            format!("task {} in operation {}", run.records[at].task, run.records[at].operation)
        })
    }
}

/// Asserts that the counts of deletes equal what is gone, and that `count` is within the possible range.
fn judge_counts(run: &Run, order: &Order, all: &[Document], left: &[Document], drops: bool) {
    let deleted: i64 = run
        .records
        .iter()
        .filter_map(|record| match (&record.what, &record.outcome) {
            (Delete(_) | DeleteOne(_) | Expire, Some(Ok((_, n)))) => Some(*n),
            _ => None,
        })
        .sum();
    if !drops && !run.vanished {
        assert_eq!(deleted, (all.len() - left.len()) as i64, "measurements that deletes have counted");
    }
    for (at, record) in run.records.iter().enumerate() {
        let (Count(filter), Some(Ok((_, n)))) = (&record.what, &record.outcome) else { continue };
        let (mut least, mut most) = (0, 0);
        for (insert, by) in run.records.iter().enumerate() {
            for row in matching(rows_of(&by.what), filter) {
                let gone = (0..run.records.len()).any(|d| {
                    let what = &run.records[d];
                    acknowledged(what) && deletes(&what.what, row) && order.before[insert][d] && order.before[d][at]
                });
                let may_be_gone = (0..run.records.len())
                    .any(|d| may_delete(&run.records[d].what, row) && !order.before[d][insert] && !order.before[at][d]);
                least += i64::from(order.before[insert][at] && !may_be_gone);
                most += i64::from(!order.before[at][insert] && !gone);
            }
        }
        assert!((least..=most).contains(n), "{n} were counted, not {least} to {most}");
    }
}
