//! The steps of a pattern.

// Loaded later.

use super::parse::{Boundary, Node, Set};

/// So many steps a pattern may have.
const LENGTH_MAX: usize = 1000;

/// A step of a pattern.
pub enum PatternStep {
    One(Set),
    /// These characters.
    Text(Vec<u8>),
    /// Several characters of a set, at least and at most so many. If greedy, it tries as many as possible first.
    Some(Set, usize, usize, bool),
    /// Tries the first step, then the second one.
    Fork(usize, usize),
    Jump(usize),
    /// Notes the place.
    Note(usize),
    Boundary(Boundary),
    Done,
}

/// The steps of a whole pattern; `None` if it takes the host.
pub fn steps_of(whole: &Node) -> Option<Vec<PatternStep>> {
    let mut steps = Vec::new();
    add(whole, &mut steps)?;
    steps.push(PatternStep::Done);
    Some(steps)
}

/// Appends the steps of a part of a pattern; `None` if that takes the host.
fn add(node: &Node, steps: &mut Vec<PatternStep>) -> Option<()> {
    match node {
        Node::One(set) => steps.push(PatternStep::One(*set)),
        Node::Boundary(boundary) => steps.push(PatternStep::Boundary(*boundary)),
        Node::All(all) => {
            let mut text = Vec::new();
            for node in all {
                match node {
                    Node::One(set) if let Some(byte) = set.only() => text.push(byte),
                    _ => {
                        add_text(&mut text, steps);
                        add(node, steps)?;
                    }
                }
            }
            add_text(&mut text, steps);
        }
        Node::Any(all) => {
            let (last, others) = all.split_last()?;
            let mut jumps = Vec::new();
            for node in others {
                let fork = steps.len();
                steps.push(PatternStep::Fork(fork + 1, 0));
                add(node, steps)?;
                jumps.push(steps.len());
                steps.push(PatternStep::Jump(0));
                *steps.get_mut(fork)? = PatternStep::Fork(fork + 1, steps.len());
            }
            add(last, steps)?;
            let end = steps.len();
            for jump in jumps {
                *steps.get_mut(jump)? = PatternStep::Jump(end);
            }
        }
        Node::Group(None, inner) => add(inner, steps)?,
        Node::Group(Some(number), inner) => {
            steps.push(PatternStep::Note(2 * number));
            add(inner, steps)?;
            steps.push(PatternStep::Note(2 * number + 1));
        }
        Node::Repeat { node, least, most, is_greedy } => {
            if let Node::One(set) = &**node {
                steps.push(PatternStep::Some(*set, *least, *most, *is_greedy));
                return Some(());
            }
            // What the host does with groups that are captured again, or with empty repetitions, is its affair.
            if may_be_empty(node) || *most > 1 && has_groups(node) {
                return None;
            }
            for _ in 0..*least {
                add(node, steps)?;
            }
            let fork = |body: usize, end: usize| {
                if *is_greedy { PatternStep::Fork(body, end) } else { PatternStep::Fork(end, body) }
            };
            let mut forks = Vec::new();
            let more = if *most == usize::MAX { 1 } else { most - least };
            for _ in 0..more {
                forks.push(steps.len());
                steps.push(PatternStep::Done);
                add(node, steps)?;
            }
            if *most == usize::MAX {
                steps.push(PatternStep::Jump(*forks.first()?));
            }
            for at in forks {
                let end = steps.len();
                *steps.get_mut(at)? = fork(at + 1, end);
            }
        }
    }
    (steps.len() <= LENGTH_MAX).then_some(())
}

fn add_text(text: &mut Vec<u8>, steps: &mut Vec<PatternStep>) {
    match std::mem::take(text).as_slice() {
        [] => {}
        [byte] => steps.push(PatternStep::One(Set::between(*byte, *byte))),
        text => steps.push(PatternStep::Text(text.to_vec())),
    }
}

/// True if a part may match no character.
pub fn may_be_empty(node: &Node) -> bool {
    match node {
        Node::One(_) => false,
        Node::Boundary(_) => true,
        Node::All(all) => all.iter().all(may_be_empty),
        Node::Any(all) => all.iter().any(may_be_empty),
        Node::Group(_, inner) => may_be_empty(inner),
        Node::Repeat { node, least, .. } => *least == 0 || may_be_empty(node),
    }
}

fn has_groups(node: &Node) -> bool {
    match node {
        Node::One(_) | Node::Boundary(_) => false,
        Node::All(all) | Node::Any(all) => all.iter().any(has_groups),
        Node::Group(number, inner) => number.is_some() || has_groups(inner),
        Node::Repeat { node, .. } => has_groups(node),
    }
}

/// The characters with which a part may begin.
pub fn first_of(node: &Node) -> Set {
    match node {
        Node::One(set) => *set,
        Node::Boundary(_) => Set::NONE,
        Node::All(all) => {
            let ends = all.iter().position(|node| !may_be_empty(node)).map_or(all.len(), |at| at + 1);
            Set(all.iter().take(ends).fold(0, |set, node| set | first_of(node).0))
        }
        Node::Any(all) => Set(all.iter().fold(0, |set, node| set | first_of(node).0)),
        Node::Group(_, inner) => first_of(inner),
        Node::Repeat { node, .. } => first_of(node),
    }
}
