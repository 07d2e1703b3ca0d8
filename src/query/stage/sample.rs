//! `$sample`: a uniform random sample of the rows.

use std::rc::Rc;

use super::model::Others;
use super::parse::PipelineParser;
use super::running::Stage;
use super::spec::Spec;
use crate::block::Block;
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::query::exec::{Flow, join_blocks};
use crate::query::expr::BoundExpr;
use crate::value::{DocWriter, FieldSet, Number, Value, sort_rows};

impl PipelineParser<'_> {
    /// `$sample`.
    ///
    /// Errors: 28745 to 28749.
    pub fn sample(&mut self, argument: Value<'_>) -> Result<()> {
        let refuse = |code, message: &str| Err(Error::new(code, message));
        let Some(doc) = argument.as_doc() else {
            return refuse(ErrorCode::Location28745, "The $sample stage specification must be an object");
        };
        let mut size = None;
        for (name, value) in doc {
            if name != "size" {
                return refuse(ErrorCode::Location28748, "Unknown option of $sample");
            }
            let Some(number) = Number::of(value) else {
                return refuse(ErrorCode::Location28746, "The size of $sample must be a number");
            };
            size = Some(number.truncated().and_then(|n| usize::try_from(n).ok()).unwrap_or_default());
        }
        match size {
            None => return refuse(ErrorCode::Location28749, "$sample needs a size"),
            Some(0) => return refuse(ErrorCode::Location28747, "The size of $sample must be a positive integer"),
            Some(_) => {}
        }
        let mut chance = DocWriter::new();
        chance.begin_doc("$rand").end();
        let chance = self.expr(chance.finish().view().as_value())?;
        self.push(SampleSpec { size: size.unwrap_or_default(), chance }, "$sample", argument);
        Ok(())
    }
}

/// The specification of a `$sample`.
struct SampleSpec {
    size: usize,
    chance: BoundExpr,
}

impl Spec for SampleSpec {
    fn reads(&self, behind: FieldSet) -> FieldSet {
        behind
    }

    fn start(self: Rc<Self>, _others: &Others) -> Box<dyn Stage> {
        let (size, chance) = (self.size, self.chance.clone());
        Box::new(Sample { size, chance, held: Vec::new(), drawn: Vec::new(), made: None })
    }
}

/// A running `$sample`: every row draws a number, and the rows with the smallest numbers stay, in the order of these.
struct Sample {
    size: usize,
    chance: BoundExpr,
    held: Vec<Block>,
    /// What each row has drawn, and its number among the rows held.
    drawn: Vec<(u64, u32)>,
    made: Option<Block>,
}

impl Sample {
    /// Drops all rows that cannot be in the sample.
    fn cut(&mut self) {
        sort_rows(&mut self.drawn);
        self.drawn.truncate(self.size);
        let rows: Vec<u32> = self.drawn.iter().map(|(_, row)| *row).listed();
        self.held = vec![join_blocks(std::mem::take(&mut self.held)).gather(&rows)];
        self.drawn.iter_mut().zip(0..).for_each(|(drawn, row)| drawn.1 = row);
    }
}

impl Stage for Sample {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        let count = rows.rows();
        let drawn = &mut self.drawn;
        self.chance.for_each_row(&rows, &mut (0..count), &mut |_, value| {
            // The bits of non-negative doubles sort as the doubles.
            let number = value.and_then(Value::as_f64).unwrap_or_default().to_bits();
            drawn.push((number, u32::try_from(drawn.len()).unwrap_or(u32::MAX)));
        })?;
        self.held.push(rows);
        // Rarely enough that rows are moved only a few times, and often enough that at most twice the sample and a
        // block are held.
        if self.drawn.len() / 2 > self.size {
            self.cut();
        }
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        self.cut();
        self.made = self.held.pop().filter(|rows| rows.rows() > 0);
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Block>> {
        Ok(self.made.take())
    }
}
