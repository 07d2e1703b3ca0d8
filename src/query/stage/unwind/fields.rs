//! `$unwind` of the fields of objects that are columns.

// Loaded later.

use super::{NAME, UnwindSpec, UnwoundFrom, VALUE};
use crate::block::{Block, Column, ColumnBuilder, Objects};
use crate::listed::IntoList;
use crate::query::exec::join_blocks;
use crate::value::{Interner, OwnedValue};

/// Names of fields, and whether pairs of them may be kept.
#[derive(Default)]
pub struct WantedNames {
    names: Interner,
    are_wanted: Vec<bool>,
}

impl WantedNames {
    /// True if pairs of this name may be kept.
    pub fn has(&mut self, spec: &UnwindSpec, name: &str) -> bool {
        if spec.names.is_trivial() {
            return true;
        }
        let (number, is_new) = self.names.add(name.as_bytes());
        if is_new {
            self.are_wanted.push(spec.wants(name));
        }
        self.are_wanted.get(number).is_none_or(|is_wanted| *is_wanted)
    }
}

/// The rows of fields that are columns: for each new row the number of the row and that of the field, and the new cells. `None` if a
/// field is not a column.
pub fn unwound_columns(
    objects: &Objects,
    spec: &UnwindSpec,
    wanted: &mut WantedNames,
) -> Option<(Vec<u32>, Vec<u32>, Column)> {
    let mut fields = objects.fields()?;
    fields.retain(|(name, _)| wanted.has(spec, name));
    let rows_of = |column: &Column| match column.presence() {
        Some(present) => present.to_rows(),
        None => (0..).take(objects.rows()).collect(),
    };
    let present: Vec<Vec<u32>> = fields.iter().map(|(_, column)| rows_of(column)).listed();
    // Where the next new row of each row comes.
    let mut next = vec![0; objects.rows()];
    present.iter().flatten().for_each(|row| next.get_mut(*row as usize).into_iter().for_each(|count| *count += 1));
    let mut total = 0;
    next.iter_mut().for_each(|count| total += std::mem::replace(count, total));
    u32::try_from(total).ok()?;
    if total == 0 {
        return Some((Vec::new(), Vec::new(), ColumnBuilder::new().finish()));
    }
    let (mut picked, mut places, mut cells) = (vec![0; total], vec![0; total], vec![0; total]);
    let mut cell = 0;
    for (place, rows) in (0..).zip(&present) {
        for row in rows {
            let at = next.get_mut(*row as usize)?;
            for (list, value) in [(&mut picked, *row), (&mut places, place), (&mut cells, cell)] {
                *list.get_mut(*at)? = value;
            }
            (*at, cell) = (*at + 1, cell + 1);
        }
    }
    let mut names = ColumnBuilder::with_capacity(fields.len());
    let of_field = |((name, column), rows): ((&str, Column), &Vec<u32>)| {
        names.push(OwnedValue::string(name).view());
        let mut block = Block::new(rows.len());
        block.set_column(VALUE, column.gather(rows));
        block
    };
    let all = join_blocks(fields.into_iter().zip(&present).map(of_field).listed());
    let values = all.column(VALUE)?.gather(&cells);
    let column = match spec.from {
        UnwoundFrom::Pairs => {
            Column::of_fields(vec![(NAME, Column::of_entries(places.clone(), names.finish())), (VALUE, values)])?
        }
        _ => values,
    };
    Some((picked, places, column))
}
