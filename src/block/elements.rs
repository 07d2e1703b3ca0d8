//! The elements of arrays, as a column of their own, and arrays of such elements.

use std::rc::Rc;

use kernels::{elements, parts};

use super::bitmap::Bitmap;
use super::builder::ColumnBuilder;
use super::column::{ArrayElements, Column, ColumnData, VarData};
use super::objects::Objects;
use super::text_numbers::TextNumbers;
use crate::listed::IntoList;
use crate::value::{Kind, Value};

/// Of so many arrays at most, as in a dictionary, the texts among the elements get numbers.
const NUMBERED_MAX: usize = 512;

impl Column {
    /// For each array in a BSON column, the number of the element behind its last one. `None` if a value is not an array.
    pub fn array_ends(&self) -> Option<Vec<u32>> {
        let ColumnData::Bson(cells) = self.data() else { return None };
        elements::ends_of_arrays(&cells.offsets, &cells.bytes)
    }

    /// The elements of the arrays in a BSON column, which are remembered. `None` if a value is not an array.
    pub fn elements(&self) -> Option<Rc<ArrayElements>> {
        let ColumnData::Bson(cells) = self.data() else { return None };
        self.elements_known(|| {
            if let Some((cells, ends)) = elements::doubles_of_arrays(&cells.offsets, &cells.bytes) {
                return Some(Rc::new(ArrayElements { values: Column::new(ColumnData::F64(cells), None), ends }));
            }
            let (offsets, bytes, ends) = elements::of_arrays(&cells.offsets, &cells.bytes)?;
            let values = Column::new(ColumnData::Bson(VarData { offsets, bytes }), None).narrowed();
            let numbered = if self.len() > NUMBERED_MAX { None } else { TextNumbers::of(&values) };
            Some(Rc::new(ArrayElements { values: numbered.unwrap_or(values), ends }))
        })
    }

    /// True if the first value of a BSON column is an array, so that most probably all are.
    pub fn begins_with_array(&self) -> bool {
        let ColumnData::Bson(cells) = self.data() else { return false };
        cells.bytes.first() == Some(&Kind::Array.byte())
    }
}

impl Objects {
    /// The arrays to which a path leads in all objects, and which rows have one. `None` if it leads elsewhere, or if something else than
    /// scalars, or else than objects, is in the arrays.
    // Loaded later.
    #[inline(never)]
    pub fn arrays(&self, path: &[&str]) -> Option<(ArrayElements, Bitmap)> {
        let Some(items) = self.items(path) else { return self.arrays_of_objects(path) };
        let doubles = items.iter().map(|item| match (item.data(), item.presence()) {
            (ColumnData::F64(cells), None) => Some(cells.as_slice()),
            _ => None,
        });
        if let Some(doubles) = doubles.listed_if_all() {
            let ends = (1..=self.rows()).map(|row| (row * doubles.len()) as u32).listed();
            let values = Column::new(ColumnData::F64(elements::interleaved(&doubles)), None);
            return Some((ArrayElements { values, ends }, Bitmap::filled(self.rows(), true)));
        }
        let (mut values, mut ends, mut scratch) = (ColumnBuilder::new(), Vec::new(), Vec::new());
        let present = Bitmap::from_fn(self.rows(), |row| {
            let before = values.len();
            for item in items {
                item.value(row, &mut scratch).into_iter().for_each(|value| values.push(value));
            }
            ends.push(values.len() as u32);
            values.len() > before
        });
        Some((ArrayElements { values: values.finish(), ends }, present))
    }

    /// The same for arrays of objects.
    fn arrays_of_objects(&self, path: &[&str]) -> Option<(ArrayElements, Bitmap)> {
        let (items, rows) = (self.object_items(path)?, self.rows());
        let (mut places, mut ends) = (Vec::new(), Vec::with_capacity(rows));
        let present = Bitmap::from_fn(rows, |row| {
            let before = places.len();
            let of_row =
                items.iter().enumerate().filter(|(_, item)| item.presence().is_none_or(|present| present.get(row)));
            places.extend(of_row.map(|(number, _)| (number * rows + row) as u32));
            ends.push(places.len() as u32);
            places.len() > before
        });
        let items = items.into_iter().map(Some).listed();
        Some((ArrayElements { values: joined(&items, rows)?.gather(&places), ends }, present))
    }

    /// The element with a number in the arrays to which a path leads in all objects. `None` if it leads elsewhere, or if no array has one.
    // Loaded later.
    #[inline(never)]
    pub fn element(&self, path: &[&str], number: usize) -> Option<&Column> {
        let items = self.items(path)?;
        let item = items.get(number)?;
        // A literal may be an object, to whose fields the number could lead as well.
        let are_plain = items.iter().all(|item| item.kind().is_some());
        are_plain.then_some(item)
    }
}

impl ArrayElements {
    /// Elements of which absent ones are null.
    pub fn new(values: Column, ends: Vec<u32>) -> ArrayElements {
        if values.presence().is_none() {
            return ArrayElements { values, ends };
        }
        let (mut builder, mut scratch) = (ColumnBuilder::with_capacity(values.len()), Vec::new());
        for at in 0..values.len() {
            builder.push(values.value(at, &mut scratch).unwrap_or(Value::NULL));
        }
        ArrayElements { values: builder.finish(), ends }
    }

    /// Arrays of other values in the place of the elements, those of `rows` alone.
    pub fn with(&self, values: &Column, rows: &Bitmap) -> ArrayElements {
        let (mut count, mut start) = (0, 0);
        let ends = self.ends.iter().map(|end| {
            count += (start..*end).filter(|at| rows.get(*at as usize)).count() as u32;
            start = *end;
            count
        });
        ArrayElements { ends: ends.listed(), values: values.gather(&rows.to_rows()) }
    }

    /// The elements at these places, and nothing at `NOWHERE`. `None` if that is everywhere.
    pub fn at(&self, places: &[u32]) -> Option<Column> {
        let present = Bitmap::from_slice(places, |place| *place != parts::NOWHERE);
        if present.none() {
            return None;
        }
        // The slot of a place that is not there is empty, as that of an absent cell.
        let found = self.values.gather(places);
        Some(Column::new(found.into_parts().0, Some(present)))
    }

    /// The arrays of which an element is among `elements`.
    pub fn with_any(&self, elements: &Bitmap) -> Bitmap {
        Bitmap::from_words(parts::with_any(&self.ends, elements.words()), self.ends.len())
    }

    /// The elements of an array.
    pub fn range(&self, array: usize) -> std::ops::Range<usize> {
        let end = |array: usize| self.ends.get(array).map_or(self.values.len(), |end| *end as usize);
        array.checked_sub(1).map_or(0, end)..end(array)
    }

    /// Writes an array.
    pub fn write(&self, array: usize, out: &mut Vec<u8>) {
        let (mut head, mut scratch) = (elements::Head::default(), Vec::new());
        out.clear();
        out.extend_from_slice(&[0; 4]);
        for at in self.range(array) {
            let value = self.values.value(at, &mut scratch).unwrap_or(Value::NULL);
            elements::push(out, &mut head, value.kind().byte(), value.bytes());
        }
        out.push(0);
        let len = u32::try_from(out.len()).unwrap_or(u32::MAX);
        out.iter_mut().zip(len.to_le_bytes()).for_each(|(byte, of_len)| *byte = of_len);
    }

    /// The column of these arrays, with null for those that are `absent`.
    pub fn arrays(&self, absent: impl Fn(usize) -> bool) -> Column {
        let ends = self.ends.iter().enumerate().map(|(row, end)| (!absent(row), *end as usize));
        let ends: Vec<(bool, usize)> = ends.listed();
        let (offsets, bytes) = match self.values.data() {
            ColumnData::F64(cells) => elements::arrays_of_doubles(cells, &ends),
            ColumnData::Bson(cells) => elements::arrays_of_values((&cells.offsets, &cells.bytes), &ends),
            _ => {
                let cells = self.values.tagged();
                elements::arrays_of_values((&cells.offsets, &cells.bytes), &ends)
            }
        };
        Column::new(ColumnData::Bson(VarData { offsets, bytes }), None)
    }
}

/// Columns of so many rows one behind the other; `None` stands for absent cells. Objects whose fields have the same order stay columns.
fn joined(columns: &[Option<Column>], rows: usize) -> Option<Column> {
    let fields = columns.iter().flatten().map(|column| match column.data() {
        ColumnData::Objects(objects) => objects.fields(),
        _ => None,
    });
    if let Some(fields) = fields.listed_if_all() {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in fields.iter().flatten() {
            if !names.contains(name) {
                names.push(name);
            }
        }
        let are_ordered = fields.iter().all(|fields| {
            let mut rest = names.iter();
            fields.iter().all(|(name, _)| rest.any(|known| known == name))
        });
        if are_ordered && !names.is_empty() {
            let of_name = |name: &str| {
                let mut of_columns = fields.iter();
                let parts = columns.iter().map(|column| {
                    column
                        .as_ref()
                        .and_then(|_| of_columns.next())
                        .and_then(|fields| fields.iter().find(|(known, _)| *known == name))
                        .map(|(_, field)| field.clone())
                });
                joined(&parts.listed(), rows)
            };
            let fields = names.iter().map(|name| Some((*name, of_name(name)?))).listed_if_all()?;
            return Column::of_some_fields(fields);
        }
    }
    let mut builder = ColumnBuilder::with_capacity(rows * columns.len());
    for column in columns {
        match column {
            Some(column) => builder.extend(column, 0..rows),
            None => builder.push_absent(rows),
        }
    }
    Some(builder.finish())
}
