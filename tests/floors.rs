//! The floors of `ARCHITECTURE.md`, held against every path that `src/` names.
#![cfg(not(target_arch = "wasm32"))]
// Helpers are no `#[test]` functions to clippy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use source::{Token, edges, tokens, without_tests};

const LINES_MAX: usize = 500;

// ---- the rules ------------------------------------------------------------------------------------------------------

#[test]
fn imports_go_strictly_down() {
    let floors = floors();
    let files = sources();
    let test_only: Vec<Vec<String>> = files.iter().flat_map(Source::test_modules).collect();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in &files {
        let Some(from) = file.module.first() else { continue }; // lib.rs stands above all floors
        if test_only.iter().any(|module| file.module.starts_with(module)) {
            continue;
        }
        for edge in edges(&file.module, &without_tests(file.tokens.clone()).0) {
            seen += usize::from(edge.to.as_ref() != Some(from));
            if let Some(why) = objection(&floors, from, &edge.to) {
                wrong.push(format!("{}:{}: {why}", file.name, edge.line));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 50, "only {seen} imports between modules were found: the reader is broken");
}

#[test]
fn every_module_has_a_floor() {
    let floors = floors();
    let missing: Vec<_> =
        sources().into_iter().filter(|file| file.module.first().is_some_and(|top| !floors.contains_key(top))).collect();
    let names: Vec<_> = missing.iter().map(|file| &file.name).collect();
    assert!(names.is_empty(), "the table in ARCHITECTURE.md has no floor for {names:?}");
}

#[test]
fn javascript_is_known_to_bindings_and_storages_of_the_host_only() {
    let allowed = |file: &Source| {
        let storages = ["idb", "host", "thrown"].map(|name| path(&format!("storage::{name}")));
        file.module.first().is_some_and(|top| top == "bindings")
            || storages.iter().any(|storage| file.module.starts_with(storage))
    };
    let mut wrong = sources();
    wrong.retain(|file| !allowed(file) && file.tokens.iter().any(|token| token.text == "JsValue"));
    let names: Vec<_> = wrong.iter().map(|file| &file.name).collect();
    assert!(names.is_empty(), "JsValue stands in {names:?}");
}

#[test]
fn time_and_randomness_come_from_the_host_alone() {
    // Whoever asks for them elsewhere makes a run with a seed differ from the next.
    let sources_of_chance = ["SystemTime", "Instant", "getrandom", "RandomState"];
    let mut wrong = sources();
    wrong.retain(|file| {
        let code = without_tests(file.tokens.clone()).0;
        file.module.first().is_none_or(|top| top != "bindings")
            && code.iter().any(|token| sources_of_chance.contains(&token.text.as_str()))
    });
    let names: Vec<_> = wrong.iter().map(|file| &file.name).collect();
    assert!(names.is_empty(), "{names:?} ask for the time or for chance themselves, and not `Env`");
}

#[test]
fn no_file_is_longer_than_it_may_be() {
    let long: Vec<_> = sources().into_iter().filter(|file| file.lines > LINES_MAX).collect();
    let names: Vec<_> = long.iter().map(|file| format!("{} ({} lines)", file.name, file.lines)).collect();
    assert!(names.is_empty(), "longer than {LINES_MAX} lines, split by noun: {names:?}");
}

/// Why a module may not name another, if so. `to` is `None` for the crate root itself.
fn objection(floors: &BTreeMap<String, u32>, from: &str, to: &Option<String>) -> Option<String> {
    let Some(to) = to else { return Some(format!("{from} takes in the crate root, which hides what it uses")) };
    if from == to {
        return None;
    }
    let (Some(above), Some(below)) = (floors.get(from), floors.get(to)) else {
        return Some(format!("{from} names crate::{to}, and the table has no floor for one of them"));
    };
    match above.cmp(below) {
        std::cmp::Ordering::Greater => None,
        std::cmp::Ordering::Equal => Some(format!("{from} and {to} are siblings on floor {above}")),
        std::cmp::Ordering::Less => Some(format!("{from} on floor {above} names {to} on floor {below}")),
    }
}

/// Module and floor, from the table in `ARCHITECTURE.md`.
fn floors() -> BTreeMap<String, u32> {
    let floors = parse_floors(&fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap());
    assert!(floors.len() > 10, "the table of floors was not understood: {floors:?}");
    floors
}

fn parse_floors(text: &str) -> BTreeMap<String, u32> {
    let mut floors = BTreeMap::new();
    let table = text.lines().skip_while(|line| !line.starts_with("| floor |")).take_while(|line| line.starts_with('|'));
    for line in table {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let Ok(floor) = cells[1].parse() else { continue };
        for name in cells[2].split(',') {
            floors.insert(name.trim().trim_matches('`').to_string(), floor);
        }
    }
    floors
}

// ---- the files ------------------------------------------------------------------------------------------------------

struct Source {
    name: String,
    /// `["bucket", "time"]` for `bucket/time.rs`, `["bucket"]` for `bucket/mod.rs`, nothing for `lib.rs`.
    module: Vec<String>,
    tokens: Vec<Token>,
    lines: usize,
}

impl Source {
    /// Modules in files of their own that exist in tests only.
    fn test_modules(&self) -> Vec<Vec<String>> {
        let names = without_tests(self.tokens.clone()).1;
        names.into_iter().map(|name| self.module.iter().cloned().chain([name]).collect()).collect()
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<Source> {
    let src = root().join("src");
    let mut folders = vec![src.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry: PathBuf = entry.unwrap().path();
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                files.push(entry);
            }
        }
    }
    files.sort();
    assert!(files.len() > 3, "src/ was not found");
    let source = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap();
        let inner = file.strip_prefix(&src).unwrap().with_extension("");
        let mut module: Vec<String> = inner.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if matches!(module.last().unwrap().as_str(), "mod" | "lib") {
            module.pop();
        }
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        Source { name, module, lines: text.lines().count(), tokens: tokens(&text) }
    };
    files.iter().map(source).collect()
}

// ---- the reader itself ----------------------------------------------------------------------------------------------

fn path(text: &str) -> Vec<String> {
    text.split("::").map(str::to_string).collect()
}

/// What the rules say about a snippet in a module, on a small house of four floors.
fn objections(module: &str, snippet: &str) -> Vec<String> {
    let floors = [("engine", 3), ("catalog", 2), ("query", 2), ("value", 1), ("error", 0)];
    let floors = floors.into_iter().map(|(name, floor)| (name.to_string(), floor)).collect();
    let module = path(module);
    let found = edges(&module, &without_tests(tokens(snippet)).0);
    found
        .iter()
        .filter_map(|edge| Some(format!("{}: {}", edge.line, objection(&floors, &module[0], &edge.to)?)))
        .collect()
}

#[test]
fn an_upward_import_is_caught() {
    assert_eq!(objections("value", "use crate::engine::Engine;"), ["1: value on floor 1 names engine on floor 3"]);
    assert_eq!(objections("value", "\npub(crate) use crate::engine;").len(), 1);
    assert_eq!(objections("value::doc", "use super::super::engine::Engine;").len(), 1);
    assert_eq!(objections("value", "use self::super::engine::Engine;").len(), 1);
}

#[test]
fn a_sideways_import_is_caught() {
    assert_eq!(
        objections("query::filter", "use crate::catalog::Stage;"),
        ["1: query and catalog are siblings on floor 2"]
    );
}

#[test]
fn an_import_downward_or_within_is_fine() {
    let snippet = "use crate::value::{Doc, Value}; use super::sort::Spec; use crate::query::plan; use self::inner::*; use std::fmt;";
    assert_eq!(objections("query::filter", snippet), [""; 0]);
}

#[test]
fn groups_over_many_lines_are_read() {
    let snippet = "use crate::{\n    error::{Error, Result},\n    value::{\n        self, Doc as D,\n    },\n    engine::{read::{self, Page}, Engine},\n};";
    let wrong = objections("query", snippet);
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    assert!(wrong.iter().all(|text| text.starts_with("6: query on floor 2 names engine")), "{wrong:?}");
}

#[test]
fn paths_in_code_are_read() {
    assert_eq!(objections("value", "fn f() -> u8 { crate::engine::run::<u8>(1) }").len(), 1);
    assert_eq!(objections("value", "type T = Vec<crate::query::Plan>;").len(), 1);
    assert_eq!(objections("value", "macro_rules! m { () => { $crate::engine::run() } }").len(), 1);
    assert_eq!(objections("value::doc", "fn f() { super::super::engine::run() }").len(), 1);
}

#[test]
fn an_inner_module_counts_as_a_level() {
    assert_eq!(
        objections("value", "mod inner { use super::super::engine::Engine; } use crate::error::Error;").len(),
        1
    );
    assert_eq!(objections("value", "mod inner { fn f() { if true { super::helper() } } }"), [""; 0]);
}

#[test]
fn the_crate_root_as_a_whole_is_no_import() {
    for snippet in ["use crate::*;", "use super::*;", "use crate::{self as root};", "use crate as root;"] {
        assert_eq!(objections("value", snippet).len(), 1, "{snippet}");
    }
    assert_eq!(objections("value", "use crate::Unknown;").len(), 1);
}

#[test]
fn comments_texts_and_lifetimes_are_no_code() {
    let snippet = r##"
        // use crate::engine::A;
        /* use crate::engine::B; /* nested */ use crate::engine::C; */
        const T: &str = "use crate::engine::D; \" use crate::engine::E;";
        const R: &str = r#"" use crate::engine::F;"#;
        const B: (&[u8], u8, char, char) = (b"crate::engine::G", b'"', '"', '\'');
        fn f<'a>(x: &'a str) -> &'a str { x } // crate::engine
    "##;
    assert_eq!(objections("value", snippet), [""; 0]);
    assert_eq!(objections("value", &format!("{snippet} use crate::engine::H;")).len(), 1, "what follows is read again");
}

#[test]
fn what_only_tests_compile_is_left_out() {
    let snippet = "
        #[cfg(test)]
        mod tests { use crate::engine::A; fn f() { { } } }
        #[cfg(test)]
        use crate::engine::{B, C};
        #[cfg(all(test, feature = \"x\"))]
        #[allow(dead_code)]
        pub(crate) fn f(x: [u8; 2]) -> u8 { crate::engine::run(x) }
        #[cfg(test)]
        const X: u8 = { crate::engine::X };
        struct S { #[cfg(test)] a: crate::engine::A, b: u8 }
    ";
    assert_eq!(objections("value", snippet), [""; 0]);
    assert_eq!(objections("value", &format!("{snippet} #[cfg(not(test))] use crate::engine::H;")).len(), 1);
    assert_eq!(objections("value", "#![cfg(test)] use crate::engine::A;"), [""; 0]);
    assert_eq!(without_tests(tokens("#[cfg(test)] pub(crate) mod samples; mod doc;")).1, ["samples"]);
}

#[test]
fn the_table_is_read() {
    let text = "# A\n\n| floor | modules | x |\n|---|---|---|\n| 6 | `catalog`, `query` | y |\n| 0 | `error` | z |\n\n| 9 | `no` |\n";
    let expected = [("catalog", 6), ("error", 0), ("query", 6)].map(|(name, floor)| (name.to_string(), floor));
    assert_eq!(parse_floors(text), expected.into());
}
