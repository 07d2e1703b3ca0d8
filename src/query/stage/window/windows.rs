//! Runs `$setWindowFields`, which computes fields from the rows around each row.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/document_source_set_window_fields.cpp. A preceding sort groups
//! partitions and orders their rows. Partitions that lie in one block are computed and passed on together. The last one
//! of a block is held until it is complete.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use super::bounds::Window;
use super::cells::{cells_of, joined, part_of, typed_if_possible};
use super::downsample::RowChoice;
use super::function::{Partition, WindowFunction, shifted};
use crate::block::{Block, Column, ColumnBuilder};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::listed::IntoList;
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
        let mut blocks = std::mem::take(&mut self.held);
        if let (Some(choice), Some((order, _))) = (&self.spec.choice, &self.spec.order) {
            let rows = choice.rows(&blocks, order)?;
            self.ready.extend(Some(rows).filter(|rows| rows.rows() > 0));
            return Ok(());
        }
        let is_known = |output: &WindowOutput| blocks.iter().any(|block| block.column(&output.name).is_some());
        if self.spec.outputs.iter().any(|output| is_known(output) || output.is_ranked()) {
            // A field that is replaced has the same place in all rows; and what is shown of ranked rows is one expression.
            blocks = vec![join_blocks(blocks)];
        }
        let all = 0..blocks.iter().map(Block::rows).sum();
        if all.is_empty() {
            return Ok(());
        }
        self.complete(blocks, std::slice::from_ref(&all))
    }

    /// Adds the new columns to consecutive partitions: those of one block, or a single one.
    fn complete(&mut self, mut blocks: Vec<Block>, partitions: &[Range<usize>]) -> Result<()> {
        let order = self
            .spec
            .order
            .as_ref()
            .map(|(expr, ascending)| Ok((typed_if_possible(joined(&blocks, expr)?), *ascending)));
        let order = order.transpose()?;
        let columns =
            self.spec.outputs.iter().map(|output| self.spec.computed(output, &blocks, order.as_ref(), partitions));
        let mut columns = columns.try_listed()?;
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

impl WindowSpec {
    /// A new column of these blocks.
    ///
    /// Errors: those of expressions, and values that the function does not accept.
    fn computed(
        &self,
        WindowOutput { function, input, window, .. }: &WindowOutput,
        blocks: &[Block],
        order: Option<&(Column, bool)>,
        partitions: &[Range<usize>],
    ) -> Result<Column> {
        let input = match (function, blocks) {
            // A window moves on row by row, so what is shown of ranked rows is needed of most of them.
            (WindowFunction::Accumulator(_, accumulation), [only]) => accumulation.inputs(only, true)?,
            _ => Inputs::of(joined(blocks, input)?),
        };
        let compute = |rows: &Range<usize>, input: Inputs<'_>| {
            let order =
                order.map(|(column, ascending)| (typed_if_possible(cells_of(column, rows.clone())), *ascending));
            let (rows, order, collation) = (rows.len(), order.as_ref(), &self.collation);
            Partition { rows, order, input, window, collation }.compute(function)
        };
        if let [only] = partitions {
            return compute(only, input);
        }
        if let WindowFunction::Shift(by, default) = function {
            return Ok(shifted(&input.cells, partitions, *by, default));
        }
        let mut column = ColumnBuilder::new();
        for partition in partitions {
            let input = input.slice(&|column| cells_of(column, partition.clone()));
            column.extend(&compute(partition, input)?, 0..partition.len());
        }
        Ok(column.finish())
    }
}

impl Stage for Windows {
    fn push(&mut self, rows: Block) -> Result<Flow> {
        let Some(partition) = &self.spec.partition else {
            self.hold(rows)?;
            return Ok(Flow::Continue);
        };
        let keys = partition.column(&rows)?;
        // Where partitions begin.
        let mut starts = Vec::new();
        let mut scratch = Vec::new();
        let mut start = 0;
        while start < rows.rows() {
            // Missing and null are one partition, because they tie in a sort.
            let key = keys.value(start, &mut scratch).unwrap_or(Value::NULL);
            if key.kind() == Kind::Array {
                let message = "The value of partitionBy must not be an array";
                return Err(Error::type_mismatch(message));
            }
            if self.key.as_ref().is_none_or(|known| !self.spec.collation.equal(known.view(), key)) {
                self.key = Some(key.to_owned());
                starts.push(start);
            }
            start = run_end(&keys, start);
        }
        let Some((first, last)) = starts.first().copied().zip(starts.last().copied()) else {
            self.hold(rows)?;
            return Ok(Flow::Continue);
        };
        if first > 0 {
            self.hold(part_of(&rows, 0..first))?;
        }
        self.close()?;
        let partitions = starts.windows(2).filter_map(|pair| Some(*pair.first()?..*pair.last()?));
        if self.spec.choice.is_some() || rows.size_bytes() > STAGE_SIZE_BYTES_MAX {
            for partition in partitions {
                self.hold(part_of(&rows, partition))?;
                self.close()?;
            }
        } else if first < last {
            let partitions: Vec<_> = partitions.map(|range| range.start - first..range.end - first).collect();
            self.complete(vec![part_of(&rows, first..last)], &partitions)?;
        }
        self.hold(if last == 0 { rows } else { part_of(&rows, last..rows.rows()) })?;
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
