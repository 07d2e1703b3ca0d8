//! A log of writes with their begin and end: what a reader must find, may find, and must not find during concurrent writes.

use std::cell::{Cell, RefCell};
use std::sync::LazyLock;

use bson::{Bson, Document, RawDocumentBuf};

use super::canonical;
use super::model::number;
use super::raw;
use super::rows::matches;

#[derive(Clone, Copy, PartialEq)]
pub enum Outcome {
    /// The write is running.
    Running,
    Acknowledged,
    /// The write failed, or its context vanished: it may have taken effect wholly, in part, or not at all.
    Unknown,
}

/// An insert or a delete.
struct Write {
    began: usize,
    ended: usize,
    outcome: Outcome,
    what: What,
}

enum What {
    Insert(Vec<Document>),
    /// Filters of measurements that are deleted for certain, and of those that may be.
    Delete(Document, Document),
    /// The selected measurements and their new metadata.
    Update(Document, Bson),
}

/// The writes of all tasks, in the order of their begin.
#[derive(Default)]
pub struct Log {
    writes: RefCell<(usize, Vec<Write>)>,
    /// True if updates move measurements to other buckets, so that readers may miss them meanwhile, or find them twice.
    pub updates_move: Cell<bool>,
}

/// A running write.
pub struct Ticket(usize);

impl Log {
    pub fn insert(&self, rows: Vec<Document>) -> Ticket {
        self.begin(What::Insert(rows))
    }

    pub fn delete(&self, certainly: Document, perhaps: Document) -> Ticket {
        self.begin(What::Delete(certainly, perhaps))
    }

    pub fn update(&self, filter: Document, meta: Bson) -> Ticket {
        self.begin(What::Update(filter, meta))
    }

    fn begin(&self, what: What) -> Ticket {
        let began = self.now();
        let writes = &mut self.writes.borrow_mut().1;
        writes.push(Write { began, ended: usize::MAX, outcome: Outcome::Running, what });
        Ticket(writes.len() - 1)
    }

    pub fn end(&self, ticket: Ticket, outcome: Outcome) {
        let ended = self.now();
        let write = &mut self.writes.borrow_mut().1[ticket.0];
        (write.ended, write.outcome) = (ended, outcome);
    }

    /// A time later than all previous ones.
    pub fn now(&self) -> usize {
        let clock = &mut self.writes.borrow_mut().0;
        *clock += 1;
        *clock
    }

    /// Checks what a reader has found by a filter between two times.
    ///
    /// Errors: what is wrong.
    pub fn judge(&self, filter: &Document, found: &[Document], began: usize, ended: usize) -> Result<(), String> {
        let writes = &self.writes.borrow().1;
        let mut found: Vec<(i64, Vec<u8>)> = found.iter().map(|row| (number(row), canonical(row))).collect();
        found.sort();
        let moving =
            |write: &Write| matches!(write.what, What::Update(..)) && write.began < ended && write.ended > began;
        let may_move = self.updates_move.get() && writes.iter().any(moving);
        if let Some(twice) = found.windows(2).find(|pair| pair[0].0 == pair[1].0 && !may_move) {
            return Err(format!("measurement {} was found twice by {filter}", twice[0].0));
        }
        found.dedup_by_key(|row| row.0);
        let mut seen = 0;
        let matches_filter = matches(raw(filter));
        let tests: Vec<_> =
            writes.iter().map(|write| write.what.filters().map(|filter| matches(raw(filter)))).collect();
        let others: Vec<_> = writes.iter().zip(&tests).filter(|(write, _)| write.began < ended).collect();
        for insert in writes {
            let What::Insert(rows) = &insert.what else { continue };
            for row in rows {
                let forms = forms_of(row, insert, &others);
                let of =
                    |matches: &dyn Fn(&[u8]) -> bool| forms.iter().filter(|form| matches(form.1.as_bytes())).count();
                let matching = forms.iter().filter(|form| matches_filter(form.1.as_bytes()));
                let there =
                    matching.clone().any(|form| found.binary_search(&(number(row), canonical(&form.0))).is_ok());
                seen += usize::from(there);
                let (mut gone, mut may_be_gone) = (false, false);
                for (delete, [certainly, perhaps]) in others.iter().filter(|other| other.0.ended > insert.began) {
                    let moves =
                        matches!(delete.what, What::Update(..)) && self.updates_move.get() && delete.ended > began;
                    may_be_gone |= moves && of(perhaps) > 0;
                    let What::Delete(..) = &delete.what else { continue };
                    may_be_gone |= of(perhaps) > 0;
                    gone |= delete.outcome == Outcome::Acknowledged
                        && (insert.ended < delete.began && delete.ended < began)
                        && of(certainly) == forms.len();
                }
                let stands = insert.outcome == Outcome::Acknowledged && insert.ended < began && !may_be_gone;
                if stands && !there && matching.count() == forms.len() {
                    return Err(format!("{row} was not found by {filter}"));
                }
                if there && (gone || insert.began > ended) {
                    return Err(format!("{row}, deleted, was found by {filter}"));
                }
            }
        }
        match found.len() - seen {
            0 => Ok(()),
            many => Err(format!("{many} measurements that nobody has inserted were found by {filter}")),
        }
    }
}

static NOTHING: LazyLock<Document> = LazyLock::new(Document::new);

impl What {
    /// The certain and the possible filter; for an update both are the same.
    fn filters(&self) -> [&Document; 2] {
        match self {
            What::Insert(_) => [&NOTHING; 2],
            What::Delete(certainly, perhaps) => [certainly, perhaps],
            What::Update(filter, _) => [filter; 2],
        }
    }
}

/// The possible states of a measurement, as document and bytes, after any of the updates in any order.
fn forms_of(
    row: &Document,
    insert: &Write,
    writes: &[(&Write, &[impl Fn(&[u8]) -> bool; 2])],
) -> Vec<(Document, RawDocumentBuf)> {
    let mut forms = vec![(row.clone(), raw(row))];
    let updates = || writes.iter().filter(|write| write.0.ended > insert.began);
    loop {
        let before = forms.len();
        for (update, [matches, _]) in updates() {
            let What::Update(_, meta) = &update.what else { continue };
            let known = forms.iter().any(|form| form.0.get("m") == Some(meta));
            if !known && forms.iter().any(|form| matches(form.1.as_bytes())) {
                let mut new = row.clone();
                new.insert("m", meta.clone());
                forms.push((new.clone(), raw(&new)));
            }
        }
        if forms.len() == before {
            return forms;
        }
    }
}
