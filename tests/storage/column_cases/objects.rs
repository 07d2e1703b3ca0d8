//! Objects and arrays whose fields change values, appear, disappear, move and change type.

use timepail::value::Value;

use super::random::Random;
use super::scalars;

/// A value as a tree.
#[derive(Clone)]
enum Tree {
    Scalar(Vec<u8>),
    Object(Vec<(String, Tree)>),
    Array(Vec<Tree>),
}

/// `length` objects or arrays, each derived from the previous one. `moves` sets how far scalars move and how often the shape changes.
pub fn track(length: usize, moves: u8, random: &mut Random) -> Vec<Vec<u8>> {
    let change_percent = [0, 0, 5, 40][usize::from(moves & 3)];
    let drop_percent = [0, 10, 30, 0][usize::from(moves >> 2 & 3)];
    let mut tree = root(random);
    (0..length)
        .map(|_| {
            let thinned = thin(&tree, drop_percent, random);
            walk(&mut tree, moves >> 2, change_percent, random);
            tagged(&thinned)
        })
        .collect()
}

fn root(random: &mut Random) -> Tree {
    loop {
        let tree = grow(3, random);
        if !matches!(tree, Tree::Scalar(_)) {
            return tree;
        }
    }
}

fn grow(depth: usize, random: &mut Random) -> Tree {
    let count = if random.chance(10) { 0 } else { 1 + random.below(4) };
    match random.below(8) {
        0 | 1 if depth > 0 => Tree::Object((0..count).map(|i| (name(i, random), grow(depth - 1, random))).collect()),
        2 if depth > 0 => Tree::Array((0..count).map(|_| grow(depth - 1, random)).collect()),
        _ => Tree::Scalar(scalars::fresh(random.next() as u8, random)),
    }
}

/// A field name; mostly unique within its object, sometimes empty.
fn name(number: usize, random: &mut Random) -> String {
    if random.chance(3) { String::new() } else { ["a", "b", "c", "d", "e", "f", "g", "long name"][number % 8].into() }
}

/// Moves every scalar, and changes the shape in some places.
fn walk(tree: &mut Tree, size: u8, change_percent: usize, random: &mut Random) {
    match tree {
        Tree::Scalar(value) if random.chance(change_percent / 4) => {
            *value = scalars::fresh(random.next() as u8, random)
        }
        Tree::Scalar(value) if random.chance(70) => *value = scalars::step(value, size, random),
        Tree::Scalar(_) => {}
        Tree::Object(fields) => {
            fields.iter_mut().for_each(|(_, field)| walk(field, size, change_percent, random));
            if random.chance(change_percent) {
                match random.below(6) {
                    0 if fields.len() > 1 => fields.swap(0, 1),
                    1 => drop(fields.pop()),
                    2 => fields.clear(),
                    3 if !fields.is_empty() => fields[0].1 = grow(1, random),
                    4 => fields.insert(0, (name(7, random), grow(1, random))),
                    _ => fields.push((name(fields.len(), random), grow(1, random))),
                }
            }
        }
        Tree::Array(list) => {
            list.iter_mut().for_each(|field| walk(field, size, change_percent, random));
            if random.chance(change_percent) {
                if random.chance(30) { drop(list.pop()) } else { list.push(grow(1, random)) }
            }
        }
    }
}

/// The tree without some fields of its objects.
fn thin(tree: &Tree, percent: usize, random: &mut Random) -> Tree {
    match tree {
        Tree::Object(fields) => {
            let mut kept = Vec::new();
            for (name, field) in fields {
                if !random.chance(percent) {
                    kept.push((name.clone(), thin(field, percent, random)));
                }
            }
            Tree::Object(kept)
        }
        Tree::Array(list) => Tree::Array(list.iter().map(|field| thin(field, percent, random)).collect()),
        Tree::Scalar(_) => tree.clone(),
    }
}

fn tagged(tree: &Tree) -> Vec<u8> {
    match tree {
        Tree::Scalar(value) => value.clone(),
        Tree::Object(fields) => document(0x03, fields.iter().map(|(name, field)| (name.clone(), tagged(field)))),
        Tree::Array(list) => document(0x04, list.iter().enumerate().map(|(i, field)| (i.to_string(), tagged(field)))),
    }
}

fn document(kind: u8, fields: impl Iterator<Item = (String, Vec<u8>)>) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, field) in fields {
        body.push(field[0]);
        body.extend_from_slice(name.as_bytes());
        body.push(0);
        body.extend_from_slice(&field[1..]);
    }
    [&[kind][..], &(body.len() as i32 + 5).to_le_bytes(), &body, &[0]].concat()
}

/// The number of scalars of an object or array at any depth, each a stream of a section with this reference. In legacy sections `arrays_are_scalars`.
pub fn scalar_count(element: &[u8], arrays_are_scalars: bool) -> usize {
    let value = Value::parse_tagged(element).unwrap();
    match value.as_container().filter(|_| !(arrays_are_scalars && element[0] == 0x04)) {
        Some(container) => container
            .iter()
            .map(|(_, field)| scalar_count(&[&[field.kind().byte()], field.bytes()].concat(), arrays_are_scalars))
            .sum(),
        None => 1,
    }
}
