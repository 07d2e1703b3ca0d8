//! Runs `$setWindowFields`, which computes fields from the rows around each row.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_set_window_fields.cpp. A preceding sort groups
//! partitions and orders their rows. A partition is held until it is complete, and then passed on with its new columns.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::rc::Rc;

use super::bounds::Window;
use super::cells::{joined, part_of, typed};
use super::downsample::RowChoice;
use super::function::{Partition, WindowFunction};
use crate::block::Block;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::query::exec::{Flow, join_blocks};
use crate::query::expr::BoundExpr;
use crate::query::stage::accumulator::Inputs;
use crate::query::stage::group::run_end;
use crate::query::stage::model::Others;
use crate::query::stage::running::Stage;
use crate::query::stage::spec::{Spec, read_by};
use crate::value::{Collation, FieldSet, Kind, OwnedValue, Value};

/// The specification of a `$setWindowFields`, without its sort.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WindowSpec {
    /// The key of a partition; `None` if all rows are one partition.
    pub(super) partition: Option<BoundExpr>,
    /// The sort key if it is one field, and whether it is ascending.
    pub(super) order: Option<(BoundExpr, bool)>,
    pub(super) outputs: Vec<WindowOutput>,
    /// Which rows stay; `None` for all.
    pub(super) choice: Option<RowChoice>,
    pub(super) collation: Collation,
}

impl Spec for WindowSpec {
    fn reads(&self, behind: FieldSet) -> FieldSet {
        let order = self.order.iter().map(|(expr, _)| expr);
        let chosen = self.choice.iter().map(|choice| &choice.field);
        let inputs = self.outputs.iter().flat_map(WindowOutput::exprs);
        read_by(behind, self.partition.iter().chain(order).chain(inputs).chain(chosen))
    }

    fn start(self: Rc<Self>, _others: &Others) -> Box<dyn Stage> {
        Box::new(Windows::new(self))
    }
}

/// A field to compute.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WindowOutput {
    pub(super) name: Box<str>,
    pub(super) function: WindowFunction,
    pub(super) input: BoundExpr,
    pub(super) window: Window,
}

impl WindowOutput {
    fn exprs(&self) -> Box<dyn Iterator<Item = &BoundExpr> + '_> {
        match &self.function {
            WindowFunction::Accumulator(_, accumulation) => Box::new(accumulation.exprs()),
            _ => Box::new(std::iter::once(&self.input)),
        }
    }

    /// True if it ranks rows by keys.
    fn is_ranked(&self) -> bool {
        matches!(&self.function, WindowFunction::Accumulator(_, accumulation) if accumulation.is_ranked())
    }
}

/// A running `$setWindowFields` over sorted rows.
struct Windows {
    spec: Rc<WindowSpec>,
    /// The key of the partition held.
    key: Option<OwnedValue>,
    held: Vec<Block>,
    size_bytes: usize,
    ready: VecDeque<Block>,
}

impl Windows {
    fn new(spec: Rc<WindowSpec>) -> Windows {
        Windows { spec, key: None, held: Vec::new(), size_bytes: 0, ready: VecDeque::new() }
    }

    fn hold(&mut self, rows: Block) -> Result<()> {
        self.size_bytes += rows.size_bytes();
        if self.size_bytes > STAGE_SIZE_BYTES_MAX {
            return Err(too_large());
        }
        self.held.push(rows);
        Ok(())
    }

    /// Processes the partition held, which is complete.
    fn close(&mut self) -> Result<()> {
        self.size_bytes = 0;
        if let (Some(choice), Some((order, _))) = (&self.spec.choice, &self.spec.order) {
            let rows = choice.rows(&std::mem::take(&mut self.held), order)?;
            self.ready.extend(Some(rows).filter(|rows| rows.rows() > 0));
            return Ok(());
        }
        let mut blocks = std::mem::take(&mut self.held);
        let is_known = |output: &WindowOutput| blocks.iter().any(|block| block.column(&output.name).is_some());
        if self.spec.outputs.iter().any(|output| is_known(output) || output.is_ranked()) {
            // A field that is replaced has the same place in all rows; and what is shown of ranked rows is one expression.
            blocks = vec![join_blocks(blocks)];
        }
        let rows: usize = blocks.iter().map(Block::rows).sum();
        if rows == 0 {
            return Ok(());
        }
        let order = match &self.spec.order {
            Some((expr, ascending)) => {
                let column = joined(&blocks, expr)?;
                let made = match typed(&column) {
                    Some(Cow::Owned(made)) => Some(made),
                    _ => None,
                };
                Some((made.unwrap_or(column), *ascending))
            }
            None => None,
        };
        let mut columns = Vec::new();
        for WindowOutput { function, input, window, .. } in &self.spec.outputs {
            let input = match (function, blocks.as_slice()) {
                // A window moves on row by row, so what is shown of first and last rows is needed of most of them.
                (WindowFunction::Accumulator(_, accumulation), [only]) if accumulation.is_last().is_none() => {
                    accumulation.inputs(only)?
                }
                _ => Inputs::of(joined(&blocks, input)?),
            };
            let partition = Partition { rows, order: order.as_ref(), input, window, collation: &self.spec.collation };
            columns.push(partition.compute(function)?);
        }
        if let [only] = blocks.as_mut_slice() {
            for (output, column) in self.spec.outputs.iter().zip(columns.drain(..)) {
                only.set_column(&output.name, column);
            }
        }
        let mut start = 0;
        for mut block in blocks {
            let end = start + block.rows();
            for (output, column) in self.spec.outputs.iter().zip(&columns) {
                block.set_column(&output.name, column.slice(start..end));
            }
            self.ready.extend(Some(block).filter(|block| block.rows() > 0));
            start = end;
        }
        Ok(())
    }
}

impl Stage for Windows {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        let mut rows = rows;
        let keys = self.spec.partition.as_ref().map(|partition| partition.column(&rows)).transpose()?;
        let mut start = 0;
        while let Some(keys) = keys.as_ref().filter(|_| start < rows.rows()) {
            let end = run_end(keys, start);
            let mut scratch = Vec::new();
            // Missing and null are one partition, because they tie in a sort.
            let key = keys.value(start, &mut scratch).unwrap_or(Value::NULL);
            if key.kind() == Kind::Array {
                let message = "The value of partitionBy must not be an array";
                return Err(Error::type_mismatch(message));
            }
            if self.key.as_ref().is_none_or(|known| !self.spec.collation.equal(known.view(), key)) {
                let key = key.to_owned();
                self.close()?;
                self.key = Some(key);
            }
            match (start, end) == (0, rows.rows()) {
                true => {
                    self.hold(std::mem::take(&mut rows))?;
                    break;
                }
                false => self.hold(part_of(&rows, start..end))?,
            }
            start = end;
        }
        if keys.is_none() {
            self.hold(rows)?;
        }
        Ok(Flow::Continue)
    }

    fn finish(&mut self) -> Result<()> {
        self.close()
    }

    fn take(&mut self) -> Result<Option<Block>> {
        Ok(self.ready.pop_front())
    }
}

#[cold]
fn too_large() -> Error {
    Error::new(
        ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
        "Exceeded memory limit for a partition, and there is no disk to spill to",
    )
}
