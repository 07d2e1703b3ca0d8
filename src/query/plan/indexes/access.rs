//! The access path of a query: how its buckets are found.

use std::ops::Bound;
use std::rc::Rc;

use super::intervals::Interval;
use crate::bucket::BucketId;
use crate::index::{IndexSpec, KeyPart, META_TIME_INDEX, Source};
use crate::listed::IntoList;
use crate::query::filter::In;
use crate::query::plan::pushdown::{Points, Split};
use crate::value::{OwnedValue, Path, text_of_key};

/// How buckets are found.
#[derive(Clone, Debug)]
pub enum ReadAccess {
    /// A range of ids, both ends included, in id order.
    Buckets {
        /// The lowest id of a bucket that may hold a match.
        low: BucketId,
        /// The highest id of a bucket that may hold a match.
        high: BucketId,
    },
    /// Through the default index on metadata and time.
    Series {
        /// The metadata of every match equals one of these.
        points: Points,
        /// No match is earlier.
        first_ms: Option<i64>,
        /// No match is later.
        last_ms: Option<i64>,
    },
    /// Through a user's index.
    Index(Box<IndexAccess>),
    /// The union of several accesses, none of which is a union itself.
    Union(Vec<ReadAccess>),
}

impl ReadAccess {
    /// The branches of a union, or this access alone.
    pub fn branches(&self) -> &[ReadAccess] {
        match self {
            ReadAccess::Union(branches) => branches,
            other => std::slice::from_ref(other),
        }
    }

    /// The number of the index used.
    pub fn index(&self) -> Option<u16> {
        match self {
            ReadAccess::Series { .. } => Some(META_TIME_INDEX),
            ReadAccess::Index(access) => Some(access.spec.number),
            ReadAccess::Buckets { .. } | ReadAccess::Union(_) => None,
        }
    }

    /// If a collation applies: the strings at the start of entries that are wanted.
    fn texts(&self) -> Option<&In> {
        match self {
            ReadAccess::Series { points, .. } => points.texts.as_ref(),
            ReadAccess::Index(access) => access.texts.as_ref(),
            ReadAccess::Buckets { .. } | ReadAccess::Union(_) => None,
        }
    }

    /// Removes entries that begin with an unwanted string, if a collation applies. `prefix` is the prefix of all
    /// entries of an index.
    pub fn keep_texts(&self, prefix: &dyn Fn(u16) -> Vec<u8>, entries: &mut Vec<Vec<u8>>) {
        let looks = self.branches().iter().filter_map(|branch| Some((prefix(branch.index()?), branch.texts())));
        let looks: Vec<(Vec<u8>, Option<&In>)> = looks.listed();
        if looks.iter().all(|(_, texts)| texts.is_none()) {
            return;
        }
        // The last entry up to the end of its string, and whether the string is wanted: equal strings are adjacent.
        let mut last: (Vec<u8>, bool) = (Vec::new(), true);
        entries.retain(|entry| {
            if !last.0.is_empty() && entry.starts_with(&last.0) {
                return last.1;
            }
            let (mut end, mut counts) = (0, None);
            for (prefix, texts) in &looks {
                let Some(key) = entry.strip_prefix(&prefix[..]) else { continue };
                // Another branch may want the same entries for another reason.
                let (Some(texts), Some((text, len))) = (texts, text_of_key(key)) else { return true };
                end = prefix.len() + len;
                counts = Some(counts == Some(true) || texts.matches(Some(OwnedValue::string(&text).view())));
            }
            last = (entry.iter().take(end).copied().listed(), counts.unwrap_or(true));
            last.1
        });
    }
}

/// How a query uses an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexAccess {
    /// The index.
    pub spec: Rc<IndexSpec>,
    /// The ranges of its entries: from the first key to all keys that start with the second. Without the prefix common
    /// to all entries of the index.
    pub ranges: Vec<(Vec<u8>, Vec<u8>)>,
    /// The path that is searched in a wildcard index.
    pub wildcard: Option<Path>,
    /// The intervals searched for each part; for a wildcard, those of the path and of its values.
    pub bounds: Vec<Vec<Interval>>,
    /// True if the query should not see buckets that the index lacks.
    pub only_indexed: bool,
    /// If a collation applies: the strings at the start of entries that are wanted.
    pub texts: Option<In>,
    /// How selective it is: two for each part that is a point, one for a range.
    pub(super) score: usize,
}

impl IndexAccess {
    /// The parts that are searched; for a wildcard, the path and the values there.
    pub fn parts(&self) -> Vec<KeyPart> {
        let Some(path) = &self.wildcard else { return self.spec.parts.clone() };
        let part = |name: &str, source| KeyPart {
            name: name.into(),
            source,
            path: path.clone(),
            direction: OwnedValue::int32(1),
        };
        vec![part("$_path", Source::Data), part(path.as_str(), Source::Meta)]
    }
}

/// How selective an access is (two for a point, one for a range), and its branches.
pub type RankedAccess = (usize, Vec<ReadAccess>);

/// By bucket ids.
pub fn buckets(split: &Split) -> ReadAccess {
    // An excluded end is included all the same: the bucket predicate decides on that one bucket.
    let end = |bound: Bound<BucketId>, open: BucketId| match bound {
        Bound::Included(id) | Bound::Excluded(id) => id,
        Bound::Unbounded => open,
    };
    ReadAccess::Buckets { low: end(split.id_range.low, BucketId::MIN), high: end(split.id_range.high, BucketId::MAX) }
}
