//! The values of fields of metadata, by series: which series match a filter on a field is looked up, not tried series by
//! series.

// Loaded later.

use crate::error::Result;
use crate::limits::KNOWN_FIELDS_MAX;
use crate::listed::IntoList;
use crate::query::Filter;
use crate::value::{Interner, Kind, OwnedValue, Value, append_key, sort_by};

/// The metadata of series by number: `None` if it is not known, `Some(None)` if there is none.
pub(super) type Metas = [Option<Option<OwnedValue>>];

/// The values of one field of the metadata, each once.
#[derive(Default)]
pub(super) struct SeriesField {
    name: Box<str>,
    /// How many series were known when it was last learnt.
    learnt: usize,
    /// The numbers of values by their bytes.
    numbers: Interner,
    values: Vec<FieldValue>,
    /// The numbers of comparison keys, and the last value of each.
    keys: Interner,
    last_of_key: Vec<usize>,
    /// Arrays, and that the field is missing: a constant may match them without being equal.
    odd: Vec<usize>,
    of_series: Vec<SeriesValue>,
    /// The known series whose metadata is no object.
    others: Vec<usize>,
}

struct FieldValue {
    /// `None` if the field is missing.
    value: Option<OwnedValue>,
    /// Another value that compares equal.
    equal: Option<usize>,
    /// The last of the series that have it.
    series: Option<usize>,
}

/// What a field is in one series.
#[derive(Clone, Copy, Default)]
struct SeriesValue {
    /// The number of its value; `None` if its metadata is no object, or not known.
    value: Option<usize>,
    /// The series before it that has the same value.
    before: Option<usize>,
}

impl SeriesField {
    /// The field with that name among those that are kept, moved to their end.
    fn named<'a>(fields: &'a mut Vec<SeriesField>, name: &str) -> Option<&'a mut SeriesField> {
        let field = match fields.iter().position(|field| &*field.name == name) {
            Some(at) => fields.remove(at),
            None => SeriesField { name: name.into(), ..SeriesField::default() },
        };
        if fields.len() >= KNOWN_FIELDS_MAX {
            fields.remove(0);
        }
        fields.push(field);
        fields.last_mut()
    }

    /// Learns the values of series whose metadata was not known before; `known` is the number of those that are.
    fn learn(&mut self, metas: &Metas, known: usize) {
        if std::mem::replace(&mut self.learnt, known) == known {
            return;
        }
        self.of_series.resize(metas.len(), SeriesValue::default());
        self.others.clear();
        for (number, meta) in metas.iter().enumerate() {
            let Some(meta) = meta else { continue };
            let Some(doc) = meta.as_ref().and_then(|meta| meta.view().as_doc()) else {
                self.others.push(number);
                continue;
            };
            if self.of_series.get(number).is_some_and(|known| known.value.is_none()) {
                let value = self.value_number(doc.get(&self.name));
                let last = self.values.get_mut(value).and_then(|value| value.series.replace(number));
                if let Some(slot) = self.of_series.get_mut(number) {
                    *slot = SeriesValue { value: Some(value), before: last };
                }
            }
        }
    }

    /// The number of a value, which is added if it is new.
    fn value_number(&mut self, value: Option<Value<'_>>) -> usize {
        let owned = value.map(Value::to_owned);
        let (number, is_new) = self.numbers.add(owned.as_ref().map_or(&[], OwnedValue::tagged));
        if is_new {
            let mut equal = None;
            match value.filter(|value| value.kind() != Kind::Array) {
                None => self.odd.push(number),
                Some(value) => {
                    let (key, is_first) = self.keys.add(&key_of(value));
                    match self.last_of_key.get_mut(key) {
                        Some(last) if !is_first => equal = Some(std::mem::replace(last, number)),
                        _ => self.last_of_key.push(number),
                    }
                }
            }
            self.values.push(FieldValue { value: owned, equal, series: None });
        }
        number
    }

    /// The numbers of the values that pass.
    ///
    /// Errors: those of the filter.
    fn passing(&self, conjunct: &Filter) -> Result<Vec<usize>> {
        let mut passing = Vec::new();
        let mut tried: Vec<usize> = Vec::new();
        match conjunct.constants_below() {
            Some(constants) => {
                for constant in constants {
                    let key = self.keys.get(&key_of(constant));
                    let mut next = key.and_then(|key| self.last_of_key.get(key)).copied();
                    while let Some((number, value)) = next.and_then(|number| Some((number, self.values.get(number)?))) {
                        passing.push(number);
                        next = value.equal;
                    }
                }
                tried.clone_from(&self.odd);
            }
            None => tried.extend(0..self.values.len()),
        }
        for number in tried {
            let value = self.values.get(number).and_then(|value| value.value.as_ref());
            if conjunct.matches_field(value.map(OwnedValue::view))? {
                passing.push(number);
            }
        }
        Ok(passing)
    }

    /// The series that have a value, in ascending order.
    fn series_with(&self, value: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut next = self.values.get(value).and_then(|value| value.series);
        while let Some((number, one)) = next.and_then(|number| Some((number, self.of_series.get(number)?))) {
            found.push(number);
            next = one.before;
        }
        found.reverse();
        found
    }
}

/// The bytes by which values are compared.
fn key_of(value: Value<'_>) -> Vec<u8> {
    let mut key = Vec::with_capacity(40);
    append_key(&mut key, value);
    key
}

/// Those of the series with known metadata that match `filter`, in ascending order; `known` is the number of all.
///
/// Errors: those of the filter.
pub(super) fn matching(
    fields: &mut Vec<SeriesField>,
    metas: &Metas,
    known: usize,
    filter: &Filter,
) -> Result<Vec<usize>> {
    let all = || (0..).zip(metas).filter(|(_, meta)| meta.is_some()).map(|(number, _)| number).listed();
    let mut left: Option<Vec<usize>> = None;
    for conjunct in filter.conjuncts() {
        let open = left.as_ref().map_or(known, Vec::len);
        let mut field = conjunct.field_below().and_then(|name| SeriesField::named(fields, name));
        field.iter_mut().for_each(|field| field.learn(metas, known));
        // The same value decides for many series, unless only a few are left.
        let has_constants = conjunct.constants_below().is_some();
        let field = field.filter(|field| has_constants || field.values.len() <= 2 * open);
        let passing = field.as_ref().map(|field| field.passing(conjunct)).transpose()?.unwrap_or_default();
        let (mut matching, tried) = match (&field, left, &*passing) {
            (Some(field), None, [one]) => (field.series_with(*one), field.others.clone()),
            (_, left, _) => (Vec::new(), left.unwrap_or_else(all)),
        };
        let mut passes = vec![false; field.as_ref().map_or(0, |field| field.values.len())];
        for number in passing {
            passes.get_mut(number).into_iter().for_each(|passes| *passes = true);
        }
        for number in tried {
            let value = field.as_ref().and_then(|field| field.of_series.get(number)?.value);
            let meta = metas.get(number).and_then(Option::as_ref).and_then(Option::as_ref);
            let matches = match value {
                Some(value) => passes.get(value) == Some(&true),
                None => conjunct.matches_value(meta.map(OwnedValue::view))?,
            };
            matching.extend(matches.then_some(number));
        }
        left = Some(matching);
    }
    let mut matching = left.unwrap_or_else(all);
    sort_by(&mut matching, Ord::cmp);
    Ok(matching)
}

#[cfg(test)]
mod tests {
    use bson::{RawBson, rawdoc};
    use proptest::prelude::*;

    use super::*;
    use crate::query::filter_samples::{any_block, any_collation, any_filter_doc, any_value, filter, filter_by, owned};
    use crate::value::{DocWriter, Path};

    fn known(metas: &Metas) -> usize {
        metas.iter().flatten().count()
    }

    #[test]
    fn a_constant_finds_what_equals_it_in_any_type_and_arrays_that_hold_it() {
        let metas = [
            rawdoc! { "a": 1, "b": "x" },
            rawdoc! { "a": 1_i64, "b": "y" },
            rawdoc! { "a": 1.0 },
            rawdoc! { "a": RawBson::Decimal128("1.00".parse().unwrap()), "b": "x" },
            rawdoc! { "a": [2, 1], "b": "x" },
            rawdoc! { "a": "1" },
            rawdoc! { "a": RawBson::Symbol("1".into()) },
            rawdoc! { "a": null, "b": "x" },
            rawdoc! { "b": "x" },
        ]
        .map(|meta| Some(Some(owned(meta))));
        let found = |doc| matching(&mut Vec::new(), &metas, known(&metas), &filter(&doc)).unwrap();
        for constant in [RawBson::Int32(1), RawBson::Int64(1), RawBson::Double(1.0)] {
            assert_eq!(found(rawdoc! { "m.a": constant }), [0, 1, 2, 3, 4]);
        }
        assert_eq!(found(rawdoc! { "m.a": "1" }), [5, 6]);
        assert_eq!(found(rawdoc! { "m.a": { "$in": ["1", 2] } }), [4, 5, 6]);
        assert_eq!(found(rawdoc! { "m.a": null }), [7, 8]);
        assert_eq!(found(rawdoc! { "m.b": "x" }), [0, 3, 4, 7, 8]);
        assert_eq!(found(rawdoc! { "m.b": "x", "m.a": 1 }), [0, 3, 4]);
        assert_eq!(found(rawdoc! { "m.a": 1, "m.b": { "$ne": "x" } }), [1, 2]);
        assert_eq!(found(rawdoc! { "m.a": 3 }), [0_usize; 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn the_series_that_match_are_those_whose_metadata_matches_one_by_one(
            block in any_block(), other in any_value(), docs in prop::collection::vec(any_filter_doc(any_value()), 1..4),
            collation in any_collation(), hidden in any::<u16>(),
        ) {
            let mut metas: Vec<Option<Option<OwnedValue>>> = (0..block.rows())
                .map(|row| {
                    let mut writer = DocWriter::new();
                    block.write_row(row, &mut writer);
                    Some(Some(writer.finish().view().as_value().to_owned()))
                })
                .collect();
            metas.extend([Some(None), Some(Some(owned(other)))]);
            // Some are learnt later.
            let first: Vec<_> =
                metas.iter().enumerate().map(|(at, meta)| meta.clone().filter(|_| hidden >> (at % 16) & 1 == 0)).collect();
            let mut fields = Vec::new();
            for metas in [first, metas] {
                for doc in &docs {
                    let filter = filter_by(doc, &collation).map_leaves(&mut |leaf| match leaf {
                        Filter::Field(path, test) => Filter::Field(Path::parse(&format!("m.{path}")).unwrap(), test),
                        other => other,
                    });
                    let one_by_one = (0..).zip(&metas).map(|(number, meta)| {
                        let meta = meta.as_ref().map(|meta| meta.as_ref().map(OwnedValue::view));
                        Ok(meta.map(|meta| filter.matches_value(meta)).transpose()?.unwrap_or_default().then_some(number))
                    });
                    let one_by_one: Result<Vec<Option<usize>>> = one_by_one.collect();
                    match (matching(&mut fields, &metas, known(&metas), &filter), one_by_one) {
                        (Ok(matching), Ok(wanted)) => {
                            prop_assert_eq!(matching, wanted.into_iter().flatten().collect::<Vec<_>>(), "{:?}", filter);
                        }
                        // A conjunct that excludes a series hides what another one raises for it.
                        (_, wanted) => prop_assert!(wanted.is_err() || filter.can_fail(), "{:?}", filter),
                    }
                }
            }
        }
    }
}
