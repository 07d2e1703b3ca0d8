//! Checks every path in `src/` against the floors of `ARCHITECTURE.md` and `docs/internals/rooms.md`, and other rules about the sources.
#![cfg(not(target_arch = "wasm32"))]
// Helpers are no `#[test]` functions to clippy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use source::graph::{self, Arrow, File, Spread};
use source::{Token, defined_types, edges, tokens, without_tests};

const LINES_MAX: usize = 500;

/// The maximum number of files of one room that may import each other in a circle.
const CIRCLE_MAX: usize = 3;

/// Modules of recursive types, whose files import each other: an operator is part of an expression and has expressions; likewise filters and values.
const TREES: [&str; 3] = ["query::expr", "query::filter", "value"];

/// `Engine` has its methods in all rooms of the engine, and all of them import it.
const ENGINE: Spread<'_> = Spread { module: "engine", name: "Engine", callers: &["self", "engine"] };

/// The floors that handle keys of storage.
const KEY_FLOORS: [&str; 4] = ["storage", "engine", "command", "bindings"];

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
        for edge in edges(&file.module, &[], &without_tests(file.tokens.clone()).0) {
            seen += usize::from(edge.to() != Some(from));
            if let Some(why) = objection(&floors, from, edge.to()) {
                wrong.push(format!("{}:{}: {why}", file.name, edge.line));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 50, "only {seen} imports between modules were found: the reader is broken");
}

#[test]
fn inside_the_engine_imports_and_calls_go_strictly_down_from_room_to_room() {
    check_rooms("engine", 100);
}

#[test]
fn inside_the_query_imports_go_strictly_down_from_room_to_room() {
    check_rooms("query", 100);
    check_rooms("query::plan", 10);
}

/// Checks the rooms of a module against its table in `docs/internals/rooms.md`, `| floor | rooms of …`. At least
/// `arrows_min` imports must be found.
fn check_rooms(module: &str, arrows_min: usize) {
    let floors = parse_floors(&page("docs/internals/rooms.md"), &format!("| floor | rooms of `{module}` |"));
    let house = House::of_sources();
    let above = path(module);
    let room = |at: usize| {
        let inner = house.files[at].module.strip_prefix(&above[..])?;
        Some(inner.first().cloned().unwrap_or_default())
    };
    let rooms: Vec<String> = (0..house.files.len()).filter_map(room).collect();
    let unknown = rooms.iter().filter(|room| !room.is_empty() && !floors.contains_key(*room));
    assert_eq!(unknown.collect::<Vec<_>>(), [""; 0], "the table in rooms.md has no floor for these");
    let gone: Vec<_> = floors.keys().filter(|room| !rooms.contains(room)).collect();
    assert!(gone.is_empty(), "the table in rooms.md has floors for {gone:?}, which are no rooms of {module}");
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for arrow in &house.arrows {
        let (Some(from), Some(to)) = (room(arrow.from), room(arrow.to)) else { continue };
        // The file of the module itself may import all rooms.
        if from == to || from.is_empty() {
            continue;
        }
        seen += 1;
        if to.is_empty() || floors[&from] <= floors[&to] {
            wrong.push(house.shown(arrow));
        }
    }
    assert!(wrong.is_empty(), "these go up, or sideways:\n{}", wrong.join("\n"));
    assert!(seen > arrows_min, "only {seen} arrows between rooms of {module} were found: the reader is broken");
}

#[test]
fn no_files_import_each_other_in_a_large_circle_or_out_of_their_room() {
    let house = House::of_sources();
    let mut wrong = Vec::new();
    for circle in graph::circles(house.files.len(), &house.arrows) {
        let modules: Vec<String> = circle.iter().map(|at| house.files[*at].module.join("::")).collect();
        // In a recursive type, nodes and operators import each other.
        if TREES.iter().any(|tree| modules.iter().all(|module| module.starts_with(tree))) {
            continue;
        }
        let rooms: BTreeSet<&Path> = circle.iter().map(|at| house.rooms[*at].as_path()).collect();
        if rooms.len() > 1 || circle.len() > CIRCLE_MAX {
            let within = |arrow: &&Arrow| circle.contains(&arrow.from) && circle.contains(&arrow.to);
            let arrows: Vec<_> = house.arrows.iter().filter(within).map(|arrow| house.shown(arrow)).collect();
            wrong.push(format!("{modules:?}:\n{}", arrows.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
    // Otherwise two runs with the same seed would differ.
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
fn the_prefixes_of_keys_stand_in_the_key_space_alone() {
    let key_space = "src/engine/store/keyspace.rs";
    let declared = fs::read_to_string(root().join(key_space)).unwrap();
    let prefixes: Vec<char> = declared.lines().filter_map(declared_prefix).collect();
    assert!(prefixes.len() >= 6, "only {prefixes:?} were found: the reader is broken");
    // Other floors encode dates, numbers and values with letters as well, and never handle keys.
    let sees_keys = |file: &Source| file.module.first().is_some_and(|top| KEY_FLOORS.contains(&top.as_str()));
    let files: Vec<Source> = sources().into_iter().filter(sees_keys).collect();
    assert!(files.len() > 50, "only {} files see keys: the reader is broken", files.len());
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| file.name != key_space) {
        let text = fs::read_to_string(root().join(&file.name)).unwrap();
        let lines = text.lines().enumerate().filter(|(_, line)| names_prefix(line, &prefixes));
        wrong.extend(lines.map(|(at, line)| format!("{}:{}: {}", file.name, at + 1, line.trim())));
    }
    assert!(wrong.is_empty(), "these name prefixes of keys, which {key_space} alone may do:\n{}", wrong.join("\n"));
}

#[test]
fn no_file_is_longer_than_it_may_be() {
    let long: Vec<_> = sources().into_iter().filter(|file| file.lines > LINES_MAX).collect();
    let names: Vec<_> = long.iter().map(|file| format!("{} ({} lines)", file.name, file.lines)).collect();
    assert!(names.is_empty(), "longer than {LINES_MAX} lines, split by noun: {names:?}");
}

#[test]
fn a_type_name_is_defined_by_one_module_only() {
    let house = House::of_sources();
    let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (file, name) in house.files.iter().zip(&house.names) {
        defined_types(&file.tokens).into_iter().for_each(|found| modules.entry(found).or_default().push(name));
    }
    assert!(modules.len() > 400, "only {} types were found: the reader is broken", modules.len());
    modules.retain(|_, files| files.len() > 1);
    assert!(modules.is_empty(), "one name, several types: {modules:#?}");
}

/// The prefix that a line of the key space declares, as in `const JOURNAL: u8 = b'J';`.
fn declared_prefix(line: &str) -> Option<char> {
    let (_, literal) = line.strip_prefix("const ")?.split_once(": u8 = b'")?;
    literal.chars().next()
}

/// True if a line contains one of `prefixes` as a byte literal or at the start of a byte string.
fn names_prefix(line: &str, prefixes: &[char]) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    prefixes.iter().any(|prefix| code.contains(&format!("b'{prefix}'")) || code.contains(&format!("b\"{prefix}")))
}

/// Why a module may not name another, if so. `to` is `None` for the crate root itself.
fn objection(floors: &BTreeMap<String, u32>, from: &str, to: Option<&String>) -> Option<String> {
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
    let floors = parse_floors(&page("ARCHITECTURE.md"), "| floor | modules |");
    assert!(floors.len() > 10, "the table of floors was not understood: {floors:?}");
    floors
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// Module and floor of each row of the table with this head.
fn parse_floors(text: &str, head: &str) -> BTreeMap<String, u32> {
    let mut floors = BTreeMap::new();
    let table = text.lines().skip_while(|line| !line.starts_with(head)).take_while(|line| line.starts_with('|'));
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
    /// The modules of test-only files.
    fn test_modules(&self) -> Vec<Vec<String>> {
        let names = without_tests(self.tokens.clone()).1;
        names.into_iter().map(|name| self.module.iter().cloned().chain([name]).collect()).collect()
    }
}

/// The files of the crate, and which imports which.
struct House {
    files: Vec<File>,
    /// The folder of each file; a file with the name of a folder belongs to that folder.
    rooms: Vec<PathBuf>,
    names: Vec<String>,
    arrows: Vec<Arrow>,
}

impl House {
    fn of_sources() -> House {
        let sources = sources();
        let test_only: Vec<Vec<String>> = sources.iter().flat_map(Source::test_modules).collect();
        let (mut files, mut rooms, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for source in sources {
            let is_test = test_only.iter().any(|module| source.module.starts_with(module));
            if is_test || source.module.is_empty() {
                continue;
            }
            let file = root().join(&source.name);
            let folder = file.with_extension("");
            rooms.push(if folder.is_dir() { folder } else { file.parent().unwrap().to_path_buf() });
            files.push(File { module: source.module, tokens: without_tests(source.tokens).0 });
            names.push(source.name);
        }
        let arrows = graph::arrows(&files, &ENGINE);
        assert!(arrows.len() > 1000, "only {} arrows were found: the reader is broken", arrows.len());
        House { files, rooms, names, arrows }
    }

    fn shown(&self, arrow: &Arrow) -> String {
        format!("{}:{} names {}", self.names[arrow.from], arrow.line, self.names[arrow.to])
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

#[test]
fn types_are_found_in_functions_too_but_associated_ones_are_not() {
    let source = "pub struct A<'a> { x: B } enum C { D } type E = F; pub(crate) trait G { type H; }
        impl G for A<'_> { type H = u8; } fn f() { struct I; let type_of = 1; } // struct J;";
    assert_eq!(defined_types(&tokens(source)), ["A", "C", "E", "G", "I"]);
}

fn path(text: &str) -> Vec<String> {
    text.split("::").map(str::to_string).collect()
}

/// The violations of a snippet in a module, in an example of four floors.
fn objections(module: &str, snippet: &str) -> Vec<String> {
    let floors = [("engine", 3), ("catalog", 2), ("query", 2), ("value", 1), ("error", 0)];
    let floors = floors.into_iter().map(|(name, floor)| (name.to_string(), floor)).collect();
    let module = path(module);
    let found = edges(&module, &[], &without_tests(tokens(snippet)).0);
    found
        .iter()
        .filter_map(|edge| Some(format!("{}: {}", edge.line, objection(&floors, &module[0], edge.to())?)))
        .collect()
}

#[test]
fn a_prefix_of_keys_outside_the_key_space_is_caught() {
    assert_eq!(declared_prefix("const JOURNAL: u8 = b'J';"), Some('J'));
    assert_eq!(declared_prefix("const EPOCH: u8 = 2;"), None);
    let caught = |line| names_prefix(line, &['J', 'B']);
    assert!(caught("    if key.first() == Some(&b'B') {") && caught("let all = KeyRange::prefix(b\"J\");"));
    assert!(!caught("let other = b'j';") && !caught("// `b'J'` is a prefix") && !caught("rawdoc! { \"J\": 1 }"));
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
    assert_eq!(parse_floors(text, "| floor |"), expected.into());
}

/// The imports among some small files, with their lines.
fn arrows_of(files: &[(&str, &str)]) -> Vec<String> {
    let file = |(module, text): &(&str, &str)| File { module: path(module), tokens: without_tests(tokens(text)).0 };
    let read: Vec<File> = files.iter().map(file).collect();
    let arrows = graph::arrows(&read, &ENGINE);
    arrows.iter().map(|arrow| format!("{}:{} {}", files[arrow.from].0, arrow.line, files[arrow.to].0)).collect()
}

#[test]
fn what_a_facade_shows_is_followed_to_where_it_is() {
    let files = [
        ("bucket", "mod id; mod merge; pub use id::BucketId; use merge::merge;"),
        ("bucket::id", "pub struct BucketId;"),
        ("bucket::merge", "use super::BucketId;\nuse crate::bucket::{id, merge};"),
        ("engine", "pub use store::keyspace; mod store; mod read;"),
        ("engine::store", "pub mod keyspace;"),
        ("engine::store::keyspace", "use crate::bucket::BucketId; pub(in crate::engine) struct Key;"),
        ("engine::read", "\nfn f() { crate::engine::keyspace::epoch() }"),
    ];
    let expected = [
        "bucket:1 bucket::merge",
        "bucket::merge:1 bucket::id",
        "bucket::merge:2 bucket::id",
        "engine::store::keyspace:1 bucket::id",
        "engine::read:2 engine::store::keyspace",
    ];
    assert_eq!(arrows_of(&files), expected);
}

#[test]
fn calls_of_methods_that_are_elsewhere_are_arrows_and_naming_their_type_is_none() {
    let files = [
        ("engine", "pub struct Engine; impl Engine { fn now_ms(&self) {} }"),
        (
            "engine::read",
            "use super::Engine; impl Engine { async fn scan(&self) { self.now_ms(); if true { self.scan(); } } }",
        ),
        (
            "engine::find",
            "use super::Engine; impl Engine {\n fn find(&self) { self.scan() } }\nfn f(list: &[u8]) { list.iter().find() }",
        ),
        ("engine::rows", "struct Rows; impl Rows { fn scan(&self) {} }\nfn f(engine: &Engine) { engine.find() }"),
    ];
    assert_eq!(arrows_of(&files), ["engine::find:2 engine::read", "engine::rows:2 engine::find"]);
}

#[test]
fn circles_are_found() {
    let arrow = |(from, to): (usize, usize)| Arrow { from, to, line: 1 };
    let arrows = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3), (5, 0)].map(arrow);
    assert_eq!(graph::circles(6, &arrows), [vec![0, 1, 2], vec![3, 4]]);
    assert_eq!(graph::circles(3, &[(0, 1), (1, 2), (0, 2)].map(arrow)), [[0_usize; 0]; 0]);
}
