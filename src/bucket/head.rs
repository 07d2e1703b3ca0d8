//! Where the parts of a bucket document stand: found once, and kept with a bucket that stays in memory.

use std::ops::Range;

use super::document::{BucketDoc, BucketVersion, ColumnPlace, Control, name_mark};
use super::id::BucketId;
use crate::value::{Doc, FieldSet, Interner, Kind, Value};

/// Where the parts of one bucket document stand. It belongs to that document alone.
#[derive(Clone, Debug, PartialEq)]
pub struct BucketHead {
    id: BucketId,
    version: BucketVersion,
    closed: bool,
    count: Option<usize>,
    min_time_ms: i64,
    max_time_ms: i64,
    min: Range<usize>,
    max: Range<usize>,
    data: Range<usize>,
    meta: Option<(Kind, Range<usize>)>,
    times: (Kind, Range<usize>),
    /// `None` if two columns have the same name.
    columns: Option<Vec<ColumnPlace>>,
}

impl BucketHead {
    /// Of a view of `document`.
    pub fn of(bucket: &BucketDoc<'_>, document: Doc<'_>) -> BucketHead {
        let start = document.as_bytes().as_ptr().addr();
        let place = |bytes: &[u8]| {
            let at = bytes.as_ptr().addr().wrapping_sub(start);
            at..at.wrapping_add(bytes.len())
        };
        let value = |value: Value<'_>| (value.kind(), place(value.bytes()));
        let control = &bucket.control;
        BucketHead {
            id: bucket.id,
            version: control.version,
            closed: control.closed,
            count: control.count,
            min_time_ms: bucket.min_time_ms,
            max_time_ms: bucket.max_time_ms,
            min: place(control.min.as_bytes()),
            max: place(control.max.as_bytes()),
            data: place(bucket.data.as_bytes()),
            meta: bucket.meta.map(value),
            times: value(bucket.times),
            columns: column_places(bucket.data),
        }
    }

    /// The view of `document`, which must be the one that this is of. It shares the document's checks.
    pub fn view<'a>(&'a self, document: Doc<'a>) -> BucketDoc<'a> {
        let bytes = |place: &Range<usize>| document.as_bytes().get(place.clone()).unwrap_or_default();
        let doc = |place| Doc::new_checked(bytes(place));
        let value = |(kind, place): &(Kind, Range<usize>)| Value::new_checked(*kind, bytes(place));
        let (version, closed, count) = (self.version, self.closed, self.count);
        BucketDoc {
            id: self.id,
            control: Control { version, min: doc(&self.min), max: doc(&self.max), closed, count },
            meta: self.meta.as_ref().map(value),
            data: doc(&self.data),
            times: value(&self.times),
            min_time_ms: self.min_time_ms,
            max_time_ms: self.max_time_ms,
            columns: self.columns.as_deref(),
            kept: None,
        }
    }
}

/// Visits the wanted columns of a bucket, other than the time, with their numbers; false if it is not known where they stand.
///
/// Errors: those of `take`.
pub(super) fn each_at_its_place(
    bucket: &BucketDoc<'_>,
    wanted: &FieldSet,
    time_field: &str,
    take: &mut dyn FnMut(&str, u32, Value<'_>) -> Result<(), String>,
) -> Result<bool, String> {
    let (Some(places), FieldSet::Only(names)) = (bucket.columns, wanted) else { return Ok(false) };
    let data = bucket.data().as_bytes();
    let bytes = |place: &Range<u32>| data.get(place.start as usize..place.end as usize).unwrap_or_default();
    let others = || names.iter().filter(|name| ***name != *time_field);
    let marks = others().fold(0_u64, |marks, name| marks | 1 << name_mark(name.as_bytes()));
    for (number, place) in (0..).zip(places).filter(|(_, place)| marks >> place.mark & 1 == 1) {
        if let Some(name) = others().find(|wanted| wanted.as_bytes() == bytes(&place.name)) {
            take(name, number, Value::new_checked(place.kind, bytes(&place.value)))?;
        }
    }
    Ok(true)
}

/// Up to so many columns, marks find equal names faster than a table does.
const FEW_COLUMNS: usize = 64;
/// Bytes of a column in a bucket of few rows, and how many columns there is room for at first.
const COLUMN_BYTES: usize = 32;
const USUAL_COLUMNS: usize = 16;

fn column_places(data: Doc<'_>) -> Option<Vec<ColumnPlace>> {
    let start = data.as_bytes().as_ptr().addr();
    let place = |bytes: &[u8]| {
        let at = bytes.as_ptr().addr().wrapping_sub(start);
        Some(u32::try_from(at).ok()?..u32::try_from(at + bytes.len()).ok()?)
    };
    let (mut marks, mut seen) = (0_u64, Interner::default());
    // To grow it step by step takes longer than to read the names.
    let mut places = Vec::<ColumnPlace>::with_capacity((data.as_bytes().len() / COLUMN_BYTES).min(USUAL_COLUMNS));
    for (name, value) in data.fields() {
        let (mark, kind) = (name_mark(name), value.kind());
        let name_of = |known: &ColumnPlace| data.as_bytes().get(known.name.start as usize..known.name.end as usize);
        let is_new = if places.len() < FEW_COLUMNS {
            let is_known = |known: &ColumnPlace| known.mark == mark && name_of(known) == Some(name);
            marks >> mark & 1 == 0 || !places.iter().any(is_known)
        } else {
            if places.len() == FEW_COLUMNS {
                places.iter().filter_map(name_of).for_each(|known| _ = seen.add(known));
            }
            seen.add(name).1
        };
        if !is_new {
            return None;
        }
        marks |= 1 << mark;
        places.push(ColumnPlace { name: place(name)?, mark, kind, value: place(value.bytes())? });
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{documents, options, view};
    use super::super::unpack::unpack;
    use super::*;
    use crate::block::{Column, ColumnData};
    use crate::column;
    use crate::value::{DocWriter, FieldSet};
    use bson::rawdoc;

    #[test]
    fn a_head_gives_the_parts_that_parsing_gives() {
        let date = bson::DateTime::from_millis;
        let limits = rawdoc! { "t": date(60_000), "a": 1 };
        for (version, meta) in [(2, Some(7)), (3, None)] {
            let control = rawdoc! { "version": version, "min": limits.clone(), "max": rawdoc! { "t": date(61_000) }, "closed": true, "count": 5 };
            let data = rawdoc! { "a": 1, "t": 2.5 };
            let mut document = rawdoc! { "_id": bson::oid::ObjectId::from_bytes([0xAB; 12]), "control": control };
            if let Some(meta) = meta {
                document.append(bson::cstr!("meta"), meta);
            }
            document.append(bson::cstr!("data"), data);
            let options = options(Some("m"));
            let parsed = BucketDoc::parse(view(&document), &options).unwrap();
            let head = BucketHead::of(&parsed, view(&document));
            let copy = document.clone();
            let again = head.view(view(&copy));
            let columns = again.columns.map(<[ColumnPlace]>::len);
            assert_eq!(columns, Some(2));
            assert_eq!(format!("{:?}", BucketDoc { columns: None, ..again }), format!("{parsed:?}"));
        }
    }

    #[test]
    fn two_columns_of_one_name_are_noticed_and_two_of_one_mark_are_kept_apart() {
        let data = |names: &[&str]| {
            names.iter().fold(DocWriter::new(), |mut writer, name| {
                writer.int32(name, 1);
                writer
            })
        };
        for (names, count) in
            [(&["t", "cpu1", "cpuq"][..], Some(3)), (&["t", "cpu1", "b", "cpu1"], None), (&["a", "a"], None)]
        {
            let data = data(names).finish();
            assert_eq!(column_places(data.view()).map(|places| places.len()), count, "{names:?}");
        }
        let many: Vec<String> = (0..200).map(|number| format!("column {number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for (count, again) in
            (1..many.len()).flat_map(|count| [(count, None), (count, Some(0)), (count, Some(count - 1))])
        {
            let names = [&many[..count], &again.map(|again| many[again]).into_iter().collect::<Vec<_>>()].concat();
            let found = column_places(data(&names).finish().view()).map(|places| places.len());
            assert_eq!(found, again.is_none().then_some(count), "{count}, {again:?}");
        }
    }

    #[test]
    fn columns_are_found_by_their_names_however_these_are_marked() {
        assert_eq!(name_mark(b"cpu1"), name_mark(b"cpuq"));
        let compressed = |data| {
            let bytes = column::encode(&Column::new(data, None));
            bson::Binary { subtype: bson::spec::BinarySubtype::Column, bytes }
        };
        let mut data = rawdoc! { "t": compressed(ColumnData::Date(vec![1, 2])) };
        for (name, value) in [("a", 1.5), ("cpu1", 2.5), ("cpuq", 3.5), ("b", 4.5)] {
            data.append(bson::raw::CString::try_from(name).unwrap(), compressed(ColumnData::F64(vec![value; 2])));
        }
        let limits = rawdoc! { "t": bson::DateTime::from_millis(0) };
        let control = rawdoc! { "version": 2, "min": limits.clone(), "max": limits };
        let document = rawdoc! { "_id": bson::oid::ObjectId::from_bytes([0xAB; 12]), "control": control, "data": data };
        let options = options(None);
        let parsed = BucketDoc::parse(view(&document), &options).unwrap();
        let head = BucketHead::of(&parsed, view(&document));
        let bucket = head.view(view(&document));
        assert!(bucket.columns.is_some() && parsed.columns.is_none());
        let all = ["a", "b", "cpu1", "cpuq", "none", "t"];
        for bits in 0..1 << all.len() {
            let wanted = all.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, name)| (*name).into());
            let wanted = FieldSet::Only(wanted.collect());
            let [found, known] = [&bucket, &parsed].map(|bucket| unpack(bucket, &wanted, &options).unwrap());
            assert_eq!(documents(&found), documents(&known), "{wanted:?}");
        }
    }
}
