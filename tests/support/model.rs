//! The expected content as a plain list, with operations of unknown outcome.

use bson::{Bson, Document};

use super::rows::matches;
use super::{canonical, raw};

/// An inserted measurement.
#[derive(Clone)]
pub struct Entry {
    pub document: Document,
    pub number: i64,
    /// Its fields sorted by name.
    bytes: Vec<u8>,
    /// False if an operation on it has failed: it may exist or not.
    pub certain: bool,
    /// The failed insert that it belongs to: all of its measurements exist, or none.
    group: Option<u64>,
}

/// Measurements by number, each inserted once.
#[derive(Default)]
pub struct Model {
    pub entries: Vec<Entry>,
    groups: u64,
}

impl Model {
    pub fn insert(&mut self, documents: Vec<Document>, acknowledged: bool) {
        self.groups += 1;
        let group = (!acknowledged).then_some(self.groups);
        self.entries.extend(documents.into_iter().map(|document| Entry {
            number: number(&document),
            bytes: canonical(&document),
            document,
            certain: acknowledged,
            group,
        }));
    }

    /// The minimum and the maximum number of matches.
    pub fn bounds(&self, filter: &Document) -> (usize, usize) {
        let entries = self.matching(filter);
        (entries.iter().filter(|at| self.entries[**at].certain).count(), entries.len())
    }

    fn matching(&self, filter: &Document) -> Vec<usize> {
        let matches = matches(raw(filter));
        (0..self.entries.len()).filter(|at| matches(&self.entries[*at].bytes)).collect()
    }

    /// The numbers of the matches; only those that exist for certain if `certain`.
    pub fn numbers(&self, filter: &Document, certain: bool) -> Vec<i64> {
        let matching = self.matching(filter).into_iter().map(|at| &self.entries[at]);
        matching.filter(|entry| entry.certain || !certain).map(|entry| entry.number).collect()
    }

    /// Deletes the selected measurements, for certain or perhaps.
    pub fn delete(&mut self, goes: impl Fn(i64) -> bool, acknowledged: bool) {
        let (gone, mut left): (Vec<Entry>, Vec<Entry>) =
            std::mem::take(&mut self.entries).into_iter().partition(|entry| goes(entry.number));
        // Only a part of an insert is affected, so the rest is no longer all or nothing.
        let torn = |group| gone.iter().any(|entry| entry.group.is_some() && entry.group == group);
        left.iter_mut().filter(|entry| torn(entry.group)).for_each(|entry| entry.group = None);
        if !acknowledged {
            left.extend(gone.into_iter().map(|entry| Entry { certain: false, group: None, ..entry }));
            left.sort_by_key(|entry| entry.number);
        }
        self.entries = left;
    }

    /// Changes the metadata of the matches. Returns their numbers, and how many already had that metadata.
    pub fn update(&mut self, filter: &Document, meta: &Bson) -> (Vec<i64>, usize) {
        let mut same = 0;
        let matching = self.matching(filter);
        for at in &matching {
            let entry = &mut self.entries[*at];
            same += usize::from(entry.document.get("m") == Some(meta));
            entry.document.insert("m", meta.clone());
            entry.bytes = canonical(&entry.document);
        }
        (matching.iter().map(|at| self.entries[*at].number).collect(), same)
    }

    /// Compares the model with the result of a filter, which settles unknown outcomes.
    ///
    /// Errors: what is wrong.
    pub fn learn(&mut self, filter: &Document, found: &[Document]) -> Result<(), String> {
        let matching = self.matching(filter);
        let mut found: Vec<(i64, Vec<u8>)> = found.iter().map(|row| (number(row), canonical(row))).collect();
        found.sort();
        if let Some(twice) = found.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(format!("measurement {} was found twice by {filter}", twice[0].0));
        }
        let mut seen = 0;
        let mut groups: Vec<(u64, bool)> = Vec::new();
        let mut gone = Vec::new();
        for at in matching {
            let entry = &mut self.entries[at];
            let n = entry.number;
            let place = found.binary_search_by(|(number, bytes)| (number, bytes).cmp(&(&n, &entry.bytes)));
            let there = place.is_ok();
            seen += usize::from(there);
            if entry.certain && !there {
                return Err(format!("{} was not found by {filter}", entry.document));
            }
            if let Some(group) = entry.group.take() {
                if groups.iter().any(|(other, all)| *other == group && *all != there) {
                    return Err(format!("a failed insert has stored a part of its measurements: {}", entry.document));
                }
                groups.push((group, there));
            }
            entry.certain = there;
            if !there {
                gone.push(n);
            }
        }
        if seen < found.len() {
            let known: Vec<i64> = self.entries.iter().map(|entry| entry.number).collect();
            let unknown: Vec<i64> = found.iter().map(|(n, _)| *n).filter(|n| known.binary_search(n).is_err()).collect();
            return Err(format!("{} measurements too many were found by {filter}: {unknown:?}", found.len() - seen));
        }
        self.entries.retain(|entry| gone.binary_search(&entry.number).is_err());
        // The rest of an insert exists exactly if the seen part does.
        self.entries.retain_mut(|entry| match groups.iter().find(|(group, _)| entry.group == Some(*group)) {
            Some((_, there)) => {
                (entry.certain, entry.group) = (*there, None);
                *there
            }
            None => true,
        });
        Ok(())
    }
}

/// The number of a measurement.
pub fn number(document: &Document) -> i64 {
    document.get_i64("n").unwrap()
}
