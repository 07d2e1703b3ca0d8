//! Numbers and dates that are read from texts: `$toDouble`, `$toInt`, `$toLong`, `$toDate`.

use kernels::reading;

use super::cells::{Cells, Int32s, Vector};
use super::mask::Mask;
use super::numbers::finished;
use super::texts::texts_of;
use crate::query::expr::date::shapes_of;
use crate::query::expr::operators::Operator;

/// If more than one of so many texts has another form, all are evaluated row by row.
const ROWS_AN_OTHER_MIN: usize = 4;

/// The results of a conversion; `None` for other operators, and for values other than texts.
pub fn converted<'a>(operator: &Operator, vector: &Vector<'_>, rows: usize) -> Option<Vector<'a>> {
    let texts = texts_of(vector)?;
    let (cells, others) = match operator.name() {
        "$toDouble" => {
            let (cells, others) = reading::doubles(texts);
            (Cells::Numbers(cells.into(), Int32s::None), others)
        }
        "$toLong" => {
            let (cells, others) = reading::integers(texts);
            (Cells::Longs(cells.into()), others)
        }
        "$toInt" => {
            let (cells, mut others) = reading::integers(texts);
            let is_beyond = |(row, n): (usize, &i64)| i32::try_from(*n).is_err().then_some(row);
            others.extend(cells.iter().enumerate().filter_map(is_beyond));
            (Cells::Numbers(kernels::convert::doubles_of_int64s(&cells).into(), Int32s::All), others)
        }
        "$toDate" => return dates(vector, None, rows),
        _ => return None,
    };
    read(cells, &others, vector, rows)
}

fn read<'a>(cells: Cells<'a>, others: &[usize], vector: &Vector<'_>, rows: usize) -> Option<Vector<'a>> {
    // Those of rows without a text are among them.
    let absent = vector.absent();
    let mut beyond = Mask::of_rows(rows, others);
    beyond.remove(&absent);
    (beyond.count() <= rows / ROWS_AN_OTHER_MIN).then(|| finished(cells, absent, vector.left.clone(), beyond))
}

/// The dates in texts: null where the text is null or missing. Texts in another form than this format are left out; without one, ISO
/// 8601 is read. `None` for formats with other parts than numbers of dates and times.
pub fn dates<'a>(vector: &Vector<'_>, format: Option<&str>, rows: usize) -> Option<Vector<'a>> {
    let (cells, others) = reading::dates(texts_of(vector)?, &shapes_of(format)?);
    read(Cells::Dates(cells.into()), &others, vector, rows)
}
