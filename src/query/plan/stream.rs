//! Sorts that stream with the help of buckets, so that not all rows are held at once.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_internal_unpack_bucket.cpp (a sort on metadata moves
//! below unpacking) and the bounded sort of src/mongo/db/sorter. Here both are one: buckets are ordered by their
//! metadata, then by their start, which bounds the times of all rows still to come.

use super::rows::CollectionFacts;
use crate::query::sort::SortSpec;

/// How a sort streams bucket by bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// The order of buckets before any is unpacked: the leading sort keys on the metadata.
    pub buckets: Option<SortSpec>,
    /// The order of rows of buckets that tie; `None` if any order will do.
    pub rows: Option<SortSpec>,
    /// Set if rows are sorted by time first: true for ascending.
    pub time: Option<bool>,
}

impl Stream {
    /// Only for sorts by time and possibly one more field, by metadata only, or by metadata and then time; otherwise
    /// `None`. If two keys may meet different arrays in a row, which is an error, every row must be examined.
    pub fn of(sort: &SortSpec, facts: &CollectionFacts<'_>) -> Option<Stream> {
        let parts = sort.parts();
        let on_meta = parts.iter().take_while(|part| Some(part.path.first()) == facts.meta_field).count();
        let by_time = parts.get(on_meta).filter(|part| part.path.as_str() == facts.time_field);
        let behind = parts.len() - on_meta;
        let streams =
            if on_meta == 0 { by_time.is_some() && behind <= 2 } else { behind == usize::from(by_time.is_some()) };
        streams.then(|| {
            let (buckets, rows) = sort.split_at(on_meta);
            Stream { buckets, rows, time: by_time.map(|part| part.ascending) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Collation, Doc};
    use bson::{RawDocumentBuf, rawdoc};

    /// The number of keys on metadata, of other keys, and the direction of time.
    fn of(sort: RawDocumentBuf) -> Option<(usize, usize, Option<bool>)> {
        let spec = SortSpec::parse(Doc::parse(sort.as_bytes()).unwrap().as_value(), &Collation::default()).unwrap();
        let count = |spec: &Option<SortSpec>| spec.as_ref().map_or(0, |spec| spec.parts().len());
        let stream = Stream::of(&spec, &CollectionFacts { time_field: "t", meta_field: Some("m") })?;
        Some((count(&stream.buckets), count(&stream.rows), stream.time))
    }

    #[test]
    fn a_sort_streams_if_metadata_or_time_come_first() {
        assert_eq!(of(rawdoc! { "t": 1 }), Some((0, 1, Some(true))));
        assert_eq!(of(rawdoc! { "t": -1, "a": 1 }), Some((0, 2, Some(false))));
        assert_eq!(of(rawdoc! { "m": 1 }), Some((1, 0, None)));
        assert_eq!(of(rawdoc! { "m.a": 1, "m.b": -1, "t": -1 }), Some((2, 1, Some(false))));
        for other in [
            rawdoc! { "a": 1, "t": 1 },
            rawdoc! { "t.x": 1 },
            rawdoc! { "t": 1, "a": 1, "b": 1 },
            rawdoc! { "mm": 1 },
            rawdoc! { "m": 1, "a": 1 },
            rawdoc! { "m": 1, "t": 1, "a": 1 },
        ] {
            assert_eq!(of(other), None);
        }
    }
}
