//! The order of columns in which several blocks can be joined.

use super::table::Block;
use crate::listed::IntoList;
use crate::value::Interner;

/// Of more names, no common order is looked for, which would take long.
const NAMES_MAX: usize = 512;

/// The names of all columns of some blocks, in an order that agrees with that of each block. `None` if there is none, as two blocks have
/// some of them in another order, or if there are many.
pub fn common_order(blocks: &mut dyn Iterator<Item = &Block>) -> Option<Vec<Box<str>>> {
    let (mut names, mut known) = (Interner::default(), Order::default());
    let mut last: Option<&Block> = None;
    for block in blocks {
        if last.is_some_and(|last| last.has_fields_of(block)) {
            continue;
        }
        last = Some(block);
        let mut before = None;
        for (name, _) in block.columns() {
            let (at, is_new) = names.add(name.as_bytes());
            if is_new {
                known.all.push(Name { name, behind: Vec::new(), in_front: 0, is_placed: false });
            }
            before.inspect(|before| known.put_behind(*before, at));
            before = Some(at);
        }
        if known.all.len() > NAMES_MAX {
            return None;
        }
    }
    known.in_order()
}

/// A name, and which others must stand behind it.
struct Name<'a> {
    name: &'a str,
    /// The numbers of those that stand next behind it in a block.
    behind: Vec<usize>,
    /// How many of these it is itself, of names that are not placed yet.
    in_front: usize,
    is_placed: bool,
}

/// All names, in the order in which they came.
#[derive(Default)]
struct Order<'a> {
    all: Vec<Name<'a>>,
}

impl Order<'_> {
    fn put_behind(&mut self, first: usize, second: usize) {
        if let Some(first) = self.all.get_mut(first)
            && !first.behind.contains(&second)
        {
            first.behind.push(second);
            self.all.get_mut(second).into_iter().for_each(|name| name.in_front += 1);
        }
    }

    /// Of the names with no other in front, the first is placed next.
    fn in_order(mut self) -> Option<Vec<Box<str>>> {
        let mut placed = Vec::with_capacity(self.all.len());
        while placed.len() < self.all.len() {
            let next = self.all.iter_mut().find(|name| !name.is_placed && name.in_front == 0)?;
            next.is_placed = true;
            placed.push(next.name.into());
            for behind in std::mem::take(&mut next.behind) {
                self.all.get_mut(behind).into_iter().for_each(|name| name.in_front -= 1);
            }
        }
        Some(placed.into_iter().listed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Column, ColumnData};
    use proptest::prelude::*;

    fn block(names: &str) -> Block {
        let mut block = Block::new(1);
        for name in names.chars() {
            block.set_column(&name.to_string(), Column::new(ColumnData::Bool(vec![1]), None));
        }
        block
    }

    fn order(lists: &[&str]) -> Option<String> {
        let blocks: Vec<Block> = lists.iter().map(|names| block(names)).collect();
        common_order(&mut blocks.iter()).map(|names| names.concat())
    }

    #[test]
    fn names_stand_as_in_each_block_and_otherwise_as_they_came() {
        assert_eq!(order(&[]).as_deref(), Some(""));
        assert_eq!(order(&["tv", "tv", "tab"]).as_deref(), Some("tvab"));
        assert_eq!(order(&["tv", "tr", "tvr"]).as_deref(), Some("tvr"));
        assert_eq!(order(&["tr", "tv", "tvr", "xt"]).as_deref(), Some("xtvr"));
        assert_eq!(order(&["ab", "bc", "ca"]), None);
        assert_eq!(order(&["ab", "c", "ba"]), None);
    }

    #[test]
    fn of_many_names_no_order_is_looked_for() {
        let blocks = [block(&('\u{4e00}'..).take(NAMES_MAX + 1).collect::<String>()), block("a")];
        assert_eq!(common_order(&mut blocks.iter()), None);
        assert!(common_order(&mut blocks.iter().skip(1)).is_some());
    }

    proptest! {
        #[test]
        fn parts_of_one_order_have_a_common_one_that_agrees_with_each(parts in prop::collection::vec(1_u16..1024, 1..9)) {
            let part = |bits: &u16| ('a'..'k').zip(0..).filter(|(_, bit)| bits >> bit & 1 == 1).map(|(name, _)| name).collect::<String>();
            let lists: Vec<String> = parts.iter().map(part).collect();
            let all = order(&lists.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
            for list in lists {
                let places: Vec<usize> = list.chars().map(|name| all.find(name).unwrap()).collect();
                prop_assert!(places.is_sorted());
            }
        }
    }
}
