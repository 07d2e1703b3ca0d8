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
use crate::query::expr::Globals;
use crate::value::{FieldSet, Number, Value, sort_rows};

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
        let globals = self.globals.clone();
        globals.note_random();
        self.push(SampleSpec { size: size.unwrap_or_default(), globals }, "$sample", argument);
        Ok(())
    }
}

/// The specification of a `$sample`.
struct SampleSpec {
    size: usize,
    /// For their random numbers.
    globals: Globals,
}

impl Spec for SampleSpec {
    fn reads(&self, behind: FieldSet) -> FieldSet {
        behind
    }

    fn start(self: Rc<Self>, _others: &Others) -> Box<dyn Stage> {
        Box::new(Sample { spec: self, held: Vec::new(), drawn: Vec::new(), bound: u64::MAX, made: None })
    }
}

/// A running `$sample`: every row draws a number, and the rows with the smallest numbers stay, in the order of these.
struct Sample {
    spec: Rc<SampleSpec>,
    held: Vec<Block>,
    /// What each row held has drawn, and its number among them.
    drawn: Vec<(u64, u32)>,
    /// Rows that draw this or more cannot be in the sample.
    bound: u64,
    made: Option<Block>,
}

impl Sample {
    /// Drops all rows that cannot be in the sample.
    fn cut(&mut self) {
        sort_rows(&mut self.drawn);
        self.drawn.truncate(self.spec.size);
        let rows: Vec<u32> = self.drawn.iter().map(|(_, row)| *row).listed();
        self.held = vec![join_blocks(std::mem::take(&mut self.held)).gather(&rows)];
        self.drawn.iter_mut().zip(0..).for_each(|(drawn, row)| drawn.1 = row);
        self.bound = self.drawn.last().filter(|_| rows.len() == self.spec.size).map_or(u64::MAX, |(last, _)| *last);
    }
}

impl Stage for Sample {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        let mut kept = Vec::new();
        for row in 0..rows.rows() as u32 {
            // The bits of non-negative doubles sort as the doubles.
            let number = self.spec.globals.env().random_double().to_bits();
            if number < self.bound {
                kept.push(row);
                self.drawn.push((number, u32::try_from(self.drawn.len()).unwrap_or(u32::MAX)));
            }
        }
        self.held.push(if kept.len() == rows.rows() { rows } else { rows.gather(&kept) });
        // Rarely enough that rows are moved only a few times, and often enough that at most twice the sample and a
        // block are held.
        if self.drawn.len() / 2 > self.spec.size {
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
