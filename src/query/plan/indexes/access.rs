//! How the buckets of a query are found.

use std::ops::Bound;
use std::rc::Rc;

use super::intervals::Interval;
use crate::bucket::BucketId;
use crate::index::{IndexSpec, META_TIME_INDEX, Part, Source};
use crate::query::filter::In;
use crate::query::plan::pushdown::{Points, Split};
use crate::value::{OwnedValue, Path, text_of_key};

/// How the buckets are found.
#[derive(Clone, Debug)]
pub enum ReadAccess {
    /// In `_id` order, both ends included.
    Buckets {
        /// The lowest id that can hold a match.
        low: BucketId,
        /// The highest id that can hold a match.
        high: BucketId,
    },
    /// Through the default index on metadata and time.
    Series {
        /// What the metadata of every match equals.
        points: Points,
        /// No match is earlier.
        first_ms: Option<i64>,
        /// No match is later.
        last_ms: Option<i64>,
    },
    /// Through an index that a user has made.
    Index(Box<IndexAccess>),
    /// What any of these finds; none of them is a union.
    Union(Vec<ReadAccess>),
}

impl ReadAccess {
    /// The parts of a union, or this alone.
    pub fn branches(&self) -> &[ReadAccess] {
        match self {
            ReadAccess::Union(branches) => branches,
            other => std::slice::from_ref(other),
        }
    }

    /// The number of the index that it goes through.
    pub fn index(&self) -> Option<u16> {
        match self {
            ReadAccess::Series { .. } => Some(META_TIME_INDEX),
            ReadAccess::Index(access) => Some(access.spec.number),
            ReadAccess::Buckets { .. } | ReadAccess::Union(_) => None,
        }
    }

    /// Which strings in front of an entry count, where a collation says so.
    fn texts(&self) -> Option<&In> {
        match self {
            ReadAccess::Series { points, .. } => points.texts.as_ref(),
            ReadAccess::Index(access) => access.texts.as_ref(),
            ReadAccess::Buckets { .. } | ReadAccess::Union(_) => None,
        }
    }

    /// Leaves out the entries that begin with a string which is not asked for, where a collation says which ones are. `prefix` is what all entries of
    /// an index begin with.
    pub fn keep_texts(&self, prefix: &dyn Fn(u16) -> Vec<u8>, entries: &mut Vec<Vec<u8>>) {
        let looks = self.branches().iter().filter_map(|branch| Some((prefix(branch.index()?), branch.texts())));
        let looks: Vec<(Vec<u8>, Option<&In>)> = looks.collect();
        if looks.iter().all(|(_, texts)| texts.is_none()) {
            return;
        }
        // The last entry up to the end of its string, and whether it counts: equal ones stand side by side.
        let mut last: (Vec<u8>, bool) = (Vec::new(), true);
        entries.retain(|entry| {
            if !last.0.is_empty() && entry.starts_with(&last.0) {
                return last.1;
            }
            let (mut end, mut counts) = (0, None);
            for (prefix, texts) in &looks {
                let Some(key) = entry.strip_prefix(&prefix[..]) else { continue };
                // Another branch may look at the same entries for something else.
                let (Some(texts), Some((text, len))) = (texts, text_of_key(key)) else { return true };
                end = prefix.len() + len;
                counts = Some(counts == Some(true) || texts.matches(Some(OwnedValue::string(&text).view())));
            }
            last = (entry.iter().take(end).copied().collect(), counts.unwrap_or(true));
            last.1
        });
    }
}

/// How a query goes through an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexAccess {
    /// The index.
    pub spec: Rc<IndexSpec>,
    /// Where its entries are: from the first of these on to all that begin with the second, without what all entries of the index begin with.
    pub ranges: Vec<(Vec<u8>, Vec<u8>)>,
    /// The path that is looked at in an index over all paths.
    pub wildcard: Option<Path>,
    /// Of each part the intervals that are looked at; of a wildcard those of the path and of its values.
    pub bounds: Vec<Vec<Interval>>,
    /// True where the query is not to see buckets that the index lacks.
    pub only_indexed: bool,
    /// Which strings in front of an entry count, where a collation says so.
    pub texts: Option<In>,
    /// How much it narrows: two for each part that is a point, one for a range.
    pub(super) score: usize,
}

impl IndexAccess {
    /// The parts that are looked at: of a wildcard the path, and what lies there.
    pub fn parts(&self) -> Vec<Part> {
        let Some(path) = &self.wildcard else { return self.spec.parts.clone() };
        let part = |name: &str, source| Part {
            name: name.into(),
            source,
            path: path.clone(),
            direction: OwnedValue::int32(1),
        };
        vec![part("$_path", Source::Data), part(path.as_str(), Source::Meta)]
    }
}

/// How buckets are found, and how much that narrows: two for a point, one for a range.
pub type Found = (usize, Vec<ReadAccess>);

/// By the ids of buckets.
pub fn buckets(split: &Split) -> ReadAccess {
    // An excluded end is included all the same: the bucket predicate decides on that one bucket.
    let end = |bound: Bound<BucketId>, open: BucketId| match bound {
        Bound::Included(id) | Bound::Excluded(id) => id,
        Bound::Unbounded => open,
    };
    ReadAccess::Buckets { low: end(split.id_range.low, BucketId::MIN), high: end(split.id_range.high, BucketId::MAX) }
}
