//! Who began and ended what, and when: what a reader must find, may find, and must not find, while others write.

use std::cell::RefCell;

use bson::Document;

use super::canonical;
use super::model::number;
use super::rows::matching;

#[derive(Clone, Copy, PartialEq)]
pub enum Outcome {
    /// It runs.
    Running,
    Acknowledged,
    /// It failed, or its context has vanished: it has happened, or it has not, in part or as a whole.
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
    /// Filters of what goes for certain, and of what may go.
    Delete(Document, Document),
}

/// The writes of all tasks, in the order in which they began.
#[derive(Default)]
pub struct Log {
    writes: RefCell<(usize, Vec<Write>)>,
}

/// A write that runs.
pub struct Ticket(usize);

impl Log {
    pub fn insert(&self, rows: Vec<Document>) -> Ticket {
        self.begin(What::Insert(rows))
    }

    pub fn delete(&self, certainly: Document, perhaps: Document) -> Ticket {
        self.begin(What::Delete(certainly, perhaps))
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

    /// A moment, later than all before.
    pub fn now(&self) -> usize {
        let clock = &mut self.writes.borrow_mut().0;
        *clock += 1;
        *clock
    }

    /// Judges what a reader has found by a filter between two moments.
    ///
    /// Errors: what is wrong.
    pub fn judge(&self, filter: &Document, found: &[Document], began: usize, ended: usize) -> Result<(), String> {
        let writes = &self.writes.borrow().1;
        let mut found: Vec<(i64, Vec<u8>)> = found.iter().map(|row| (number(row), canonical(row))).collect();
        found.sort();
        if let Some(twice) = found.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(format!("measurement {} was found twice by {filter}", twice[0].0));
        }
        let mut seen = 0;
        for insert in writes {
            let What::Insert(rows) = &insert.what else { continue };
            for row in matching(rows, filter) {
                let there = found.binary_search(&(number(row), canonical(row))).is_ok();
                seen += usize::from(there);
                let (mut gone, mut may_be_gone) = (false, false);
                for delete in writes.iter().filter(|delete| delete.ended > insert.began && delete.began < ended) {
                    let What::Delete(certainly, perhaps) = &delete.what else { continue };
                    let goes = |filter: &Document| !matching(std::slice::from_ref(row), filter).is_empty();
                    may_be_gone |= goes(perhaps);
                    gone |= delete.outcome == Outcome::Acknowledged
                        && (insert.ended < delete.began && delete.ended < began)
                        && goes(certainly);
                }
                let stands = insert.outcome == Outcome::Acknowledged && insert.ended < began && !may_be_gone;
                if stands && !there {
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
