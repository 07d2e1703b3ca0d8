//! Tests of the ids of groups.

use std::rc::Rc;

use proptest::prelude::*;

use super::{Group, GroupSpec, Key};
use crate::block::Block;
use crate::query::exec::Flow;
use crate::query::exec::samples::{any_column, without_case};
use crate::query::expr::{BoundExpr, Expr};
use crate::query::filter::samples::globals;
use crate::query::stage::accumulator::Accumulation;
use crate::query::stage::running::Stage;
use crate::value::{Collation, OwnedValue};

const NAMES: [&str; 3] = ["x", "y", "z"];

/// The ids and counts of groups by fields of blocks.
fn groups(spec: GroupSpec, blocks: &[Block]) -> Vec<[Option<OwnedValue>; 2]> {
    let mut group = Group::new(Rc::new(spec));
    blocks.iter().for_each(|block| assert_eq!(group.push(block.clone()).unwrap(), Flow::Continue));
    group.finish().unwrap();
    let rows = group.take().unwrap().unwrap();
    let value = |row: usize, name: &str| {
        let mut scratch = Vec::new();
        rows.column(name).and_then(|column| column.value(row, &mut scratch).map(|value| value.to_owned()))
    };
    (0..rows.rows()).map(|row| ["_id", "n"].map(|name| value(row, name))).collect()
}

proptest! {
    #[test]
    fn ids_made_of_columns_are_those_that_are_written(
        blocks in prop::collection::vec([any_column(40), any_column(40), any_column(40)], 1..5),
        parts in 0..4_usize, is_collated in any::<bool>(),
    ) {
        let blocks: Vec<Block> = blocks
            .into_iter()
            .map(|columns| {
                let mut block = Block::new(40);
                NAMES.iter().zip(columns).for_each(|(name, column)| block.set_column(name, column));
                block
            })
            .collect();
        let field = |name: &str| {
            let path = OwnedValue::string(&format!("${name}"));
            BoundExpr::new(Expr::parse(path.view(), &globals()).unwrap(), globals())
        };
        let spec = |shows_parts: bool| GroupSpec {
            key: match parts {
                0 => Key::One(field(NAMES[0])),
                _ => Key::Object(NAMES[..parts].iter().map(|name| ((*name).into(), field(name))).collect()),
            },
            fields: vec![Accumulation::parse("n", "$sum", OwnedValue::int32(1).view(), &globals()).unwrap()],
            collation: if is_collated { without_case() } else { Collation::default() },
            unsorted_by: None,
            in_order: Vec::new(),
            shows_id: true,
            shows_parts,
        };
        prop_assert_eq!(groups(spec(true), &blocks), groups(spec(false), &blocks));
    }
}
