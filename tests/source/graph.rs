//! The imports between files.

use std::collections::{BTreeMap, BTreeSet};

use super::{Token, edges};

/// A file of the crate without test-only code.
pub struct File {
    /// `["bucket", "time"]` for `bucket/time.rs`, `["bucket"]` for `bucket/mod.rs`.
    pub module: Vec<String>,
    pub tokens: Vec<Token>,
}

/// An import: one file names another in some line.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrow {
    pub from: usize,
    pub to: usize,
    pub line: usize,
}

/// A type whose methods are spread over the files of its module: naming the type is no import, calling a method is one.
pub struct Spread<'a> {
    pub module: &'a str,
    pub name: &'a str,
    /// The names of variables of this type in method calls.
    pub callers: &'a [&'a str],
}

/// The imports between `files`. Re-exports of a façade are followed to their definition.
pub fn arrows(files: &[File], spread: &Spread<'_>) -> Vec<Arrow> {
    let places: BTreeMap<&[String], usize> =
        files.iter().enumerate().map(|(at, file)| (&file.module[..], at)).collect();
    let found: Vec<_> = files.iter().map(|file| edges(&file.module, &children(files, file), &file.tokens)).collect();
    let imports: Vec<BTreeMap<&str, &[String]>> = found
        .iter()
        .map(|edges| edges.iter().filter(|edge| edge.is_import))
        .map(|edges| edges.filter_map(|edge| Some((edge.path.last()?.as_str(), &edge.path[..]))).collect())
        .collect();
    let resolve = |path: &[String]| {
        let mut path = path.to_vec();
        // A façade may re-export from another one.
        for _ in 0..5 {
            let len = (0..=path.len()).rev().find(|len| places.contains_key(&path[..*len]))?;
            let at = places[&path[..len]];
            match path.get(len).and_then(|name| imports[at].get(name.as_str())) {
                Some(shown) => path = [*shown, &path[len + 1..]].concat(),
                None => return Some(at),
            }
        }
        None
    };
    let is_spread = |path: &[String]| path.len() == 2 && path[0] == spread.module && path[1] == spread.name;
    let mut all = Vec::new();
    for (from, edges) in found.iter().enumerate() {
        for edge in edges.iter().filter(|edge| !edge.is_shown && !is_spread(&edge.path)) {
            all.extend(resolve(&edge.path).map(|to| Arrow { from, to, line: edge.line }));
        }
    }
    all.extend(calls(files, spread));
    all.retain(|arrow| arrow.from != arrow.to);
    all
}

/// The modules right below that of a file.
fn children<'a>(files: &'a [File], of: &File) -> Vec<&'a str> {
    let below = files.iter().filter_map(|file| file.module.split_last()).filter(|(_, above)| **above == of.module);
    below.map(|(name, _)| name.as_str()).collect()
}

/// Calls of methods of a type from other files of its module than those that define them.
fn calls(files: &[File], spread: &Spread<'_>) -> Vec<Arrow> {
    let inside: Vec<usize> =
        (0..files.len()).filter(|at| files[*at].module.first().is_some_and(|top| top == spread.module)).collect();
    let mut owners = BTreeMap::new();
    for at in &inside {
        owners.extend(methods(&files[*at].tokens, spread.name).into_iter().map(|name| (name, *at)));
    }
    let mut all = Vec::new();
    for from in inside {
        for four in files[from].tokens.windows(4) {
            let [caller, dot, name, open] = four else { continue };
            if dot.text == "." && open.text == "(" && spread.callers.contains(&caller.text.as_str()) {
                // Methods in the file of the type itself may be called by all.
                let to = owners.get(name.text.as_str()).filter(|to| files[**to].module.len() > 1);
                all.extend(to.map(|to| Arrow { from, to: *to, line: name.line }));
            }
        }
    }
    all
}

/// The names of the functions in the `impl` blocks of a type.
fn methods<'a>(tokens: &'a [Token], of: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    let mut depth: Option<usize> = None;
    for (i, token) in tokens.iter().enumerate() {
        let before = |back: usize| i.checked_sub(back).map_or("", |i| tokens[i].text.as_str());
        match (token.text.as_str(), depth) {
            ("{", None) if before(1) == of && before(2) == "impl" => depth = Some(1),
            ("{", Some(open)) => depth = Some(open + 1),
            ("}", Some(open)) => depth = (open > 1).then_some(open - 1),
            (name, Some(1)) if before(1) == "fn" => names.push(name),
            _ => {}
        }
    }
    names
}

/// The circles among `count` files: lists of files that import each other, directly or not (strongly connected components).
pub fn circles(count: usize, arrows: &[Arrow]) -> Vec<Vec<usize>> {
    let mut next = vec![BTreeSet::new(); count];
    for arrow in arrows {
        next[arrow.from].insert(arrow.to);
    }
    let reached: Vec<BTreeSet<usize>> = (0..count)
        .map(|from| {
            let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
            while let Some(at) = left.pop() {
                left.extend(next[at].iter().filter(|to| seen.insert(**to)));
            }
            seen
        })
        .collect();
    let mut found: Vec<Vec<usize>> = Vec::new();
    for at in 0..count {
        let known = found.iter().any(|circle| circle.contains(&at));
        if !known && reached[at].contains(&at) {
            found.push(
                (0..count).filter(|other| reached[at].contains(other) && reached[*other].contains(&at)).collect(),
            );
        }
    }
    found
}
