//! Applies a filter to whole journal records, so that the tail of a series need not grow if none of its new rows match.
//!
//! A commit of a thousand series has a row of each. Filtering its columns takes microseconds. Adding a row to each of a
//! thousand tails, and filtering these, takes milliseconds.

use std::cell::RefCell;
use std::rc::Rc;

use crate::block::Bitmap;
use crate::engine::journal::{JournalEntry, SectionGroup, SectionRef};
use crate::engine::read::unit::Unit;
use crate::error::Result;
use crate::limits::{SIEVE_RECORDS_MAX, SIEVE_SECTIONS_MAX, SIEVE_SERIES_MIN};
use crate::query::ReadPlan;

/// The records that one query has filtered as a whole.
pub struct Sieve {
    /// False if the filter reads the metadata, or may fail.
    is_of_use: bool,
    asked: RefCell<FilteredRecords>,
}

#[derive(Default)]
struct FilteredRecords {
    /// Records and their matching rows; `None` if no row matches.
    records: Vec<(Rc<JournalEntry>, Option<Bitmap>)>,
    /// The places of the records of the group before: the next group nearly always has rows of the same records.
    last: Vec<usize>,
}

impl Sieve {
    /// For the filter of `plan`.
    pub fn new(plan: &ReadPlan) -> Sieve {
        let residual = &plan.plan.residual;
        let fields = residual.fields();
        let reads_meta = plan.plan.meta_field.as_deref().is_some_and(|meta| fields.contains(meta));
        let is_of_use = !residual.is_trivial() && !residual.can_fail() && !fields.is_all() && !reads_meta;
        Sieve { is_of_use, asked: RefCell::default() }
    }

    /// False if no journal row of a bucket can match, neither in its tail nor among those that came since.
    ///
    /// Errors: those of expressions on the metadata.
    pub fn may_match(&self, plan: &ReadPlan, unit: &Unit, group: &SectionGroup) -> Result<bool> {
        if !self.is_of_use || unit.is_partly_stored(group) || group.resolution().is_some() {
            return Ok(true);
        }
        let (tail, new) = group.begun();
        // Rows that stay outside their tail for long would be filtered again by every query.
        if new.is_empty() || new.len() > SIEVE_SECTIONS_MAX {
            return Ok(true);
        }
        if let Some(tail) = tail
            && plan.may_match(&tail.summary(unit.id, group.meta()))?
        {
            return Ok(true);
        }
        let asked = &mut *self.asked.borrow_mut();
        Ok(new.iter().enumerate().any(|(at, section)| asked.may_match(plan, section, at)))
    }
}

impl FilteredRecords {
    /// False if no row of a section matches; `at` is its place among the new sections of its group.
    fn may_match(&mut self, plan: &ReadPlan, section: &SectionRef, at: usize) -> bool {
        let entry = section.entry();
        let is_it = |place: &usize| self.records.get(*place).is_some_and(|(known, _)| Rc::ptr_eq(known, entry));
        let place = match self.last.get(at).filter(|place| is_it(place)) {
            Some(place) => *place,
            None => {
                let known = (0..self.records.len()).find(is_it);
                let Some(place) = known.or_else(|| self.ask(plan, entry)) else { return true };
                self.last.truncate(at);
                self.last.push(place);
                place
            }
        };
        let found = self.records.get(place).and_then(|(_, found)| found.as_ref());
        found.is_some_and(|found| section.rows().1.any(|row| found.get(row)))
    }

    /// Filters a record, and returns its place. `None` with few series per record, or many records: this is then no
    /// faster than growing the tails.
    fn ask(&mut self, plan: &ReadPlan, entry: &Rc<JournalEntry>) -> Option<usize> {
        if entry.record.sections.len() < SIEVE_SERIES_MIN || self.records.len() == SIEVE_RECORDS_MAX {
            return None;
        }
        let found = plan.select(&entry.record.rows, None).ok()?;
        self.records.push((Rc::clone(entry), Some(found).filter(|found| !found.none())));
        Some(self.records.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::journal::ByBucket;
    use crate::engine::journal::samples::{options, shared};
    use crate::query::{Filter, FindCommand};
    use crate::value::OwnedValue;

    const SERIES: u8 = SIEVE_SERIES_MIN as u8;

    /// Commits with one row per series. The time encodes series and commit: the first row of the first series is at 1000 and has `x` 2000.
    fn journal(commits: usize) -> Rc<ByBucket> {
        let commits = (0..commits).map(|seq| {
            let times: Vec<[i64; 1]> = (1..=SERIES).map(|series| [1000 * i64::from(series) + seq as i64]).collect();
            let sections: Vec<(u8, &[i64])> =
                (1..=SERIES).zip(&times).map(|(series, times)| (series, &times[..])).collect();
            shared(1, seq as u64, &sections)
        });
        Rc::new(ByBucket::of(commits.collect::<Vec<_>>().iter()))
    }

    fn plan(field: &str, value: f64) -> ReadPlan {
        let filter = Filter::equality(field, OwnedValue::double(value).view()).unwrap();
        ReadPlan::new(FindCommand { filter, ..FindCommand::default() }.into(), &options(), false, &[])
    }

    /// The series that may have matching rows.
    fn may_match(plan: &ReadPlan, journal: &Rc<ByBucket>) -> Vec<usize> {
        let sieve = Sieve::new(plan);
        let asked = |number: &usize| {
            let group = &journal.groups()[*number];
            sieve.may_match(plan, &Unit::of_journal(group.bucket, *number, journal), group).unwrap()
        };
        (0..journal.groups().len()).filter(asked).collect()
    }

    #[test]
    fn only_series_with_matching_rows_get_a_tail() {
        let (journal, all) = (journal(3), (0..usize::from(SERIES)).collect::<Vec<_>>());
        assert_eq!(may_match(&plan("x", 2.0 * 3002.0), &journal), [2]);
        assert_eq!(may_match(&plan("x", 1.0), &journal), [0; 0]);
        assert!(journal.groups().iter().all(|group| group.begun().0.is_none()));
        // Records have no metadata column, and without a filter every row matches.
        assert_eq!(may_match(&plan("m.a", 1.0), &journal), all);
        let everything = ReadPlan::new(FindCommand::default().into(), &options(), false, &[]);
        assert_eq!(may_match(&everything, &journal), all);
    }

    #[test]
    fn rows_of_a_tail_are_judged_by_its_bounds_and_newer_ones_one_by_one() {
        let mut journal = journal(2);
        journal.groups().iter().for_each(|group| drop(journal.tail(group, &options()).unwrap()));
        let sections: Vec<(u8, &[i64])> = (1..=SERIES).map(|series| (series, &[7_i64][..])).collect();
        Rc::get_mut(&mut journal).unwrap().push(&shared(1, 2, &sections));
        // Inside the bounds of the first tail and outside those of all others.
        assert_eq!(may_match(&plan("x", 2001.0), &journal), [0]);
        assert_eq!(may_match(&plan("x", 14.0), &journal).len(), usize::from(SERIES));
        assert!(journal.groups().iter().all(|group| group.begun().1.len() == 1));
    }

    #[test]
    fn rows_of_many_commits_go_into_the_tail() {
        let filter = plan("x", 1.0);
        assert_eq!(may_match(&filter, &journal(SIEVE_SECTIONS_MAX)), [0; 0]);
        assert_eq!(may_match(&filter, &journal(SIEVE_SECTIONS_MAX + 1)).len(), usize::from(SERIES));
    }
}
