//! A small reader of Rust sources that finds which modules a file names.

pub mod graph;

/// A piece of Rust source.
#[derive(Clone)]
pub struct Token {
    /// A word, `::`, or one other character. Comments, strings, characters and lifetimes are left out.
    pub text: String,
    pub line: usize,
}

/// Splits source text.
pub fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut i) = (Vec::new(), 0);
    let mut line = 1;
    while i < chars.len() {
        let start = i;
        match at(i) {
            '/' if at(i + 1) == '/' => i += chars[i..].iter().take_while(|c| **c != '\n').count(),
            '/' if at(i + 1) == '*' => i = comment_end(&chars, i),
            '"' => i = string_end(&chars, i),
            'r' | 'b' | 'c' if let Some(end) = prefixed_string_end(&chars, i) => i = end,
            '\'' if at(i + 1) == '\\' => i += 3 + chars[i + 3..].iter().take_while(|c| **c != '\'').count() + 1,
            '\'' if at(i + 2) == '\'' => i += 3,
            '\'' => i += 1 + chars[i + 1..].iter().take_while(|c| word(**c)).count(),
            c if word(c) => {
                i += if c == 'r' && at(i + 1) == '#' && word(at(i + 2)) { 2 } else { 0 }; // r#type
                let end = i + chars[i..].iter().take_while(|c| word(**c)).count();
                found.push(Token { text: chars[i..end].iter().collect(), line });
                i = end;
            }
            ':' if at(i + 1) == ':' => {
                found.push(Token { text: "::".into(), line });
                i += 2;
            }
            c => {
                if !c.is_whitespace() {
                    found.push(Token { text: c.into(), line });
                }
                i += 1;
            }
        }
        line += chars[start..i.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

/// Comments nest.
fn comment_end(chars: &[char], start: usize) -> usize {
    let (mut depth, mut i) = (0, start);
    while i < chars.len() {
        match chars[i..] {
            ['/', '*', ..] => (depth, i) = (depth + 1, i + 2),
            ['*', '/', ..] if depth == 1 => return i + 2,
            ['*', '/', ..] => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
    }
    i
}

fn string_end(chars: &[char], quote: usize) -> usize {
    let mut i = quote + 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

/// The end of `b"..."`, `c"..."`, `r"..."`, `br#"..."#` and the like; `None` where a word begins.
fn prefixed_string_end(chars: &[char], start: usize) -> Option<usize> {
    if start > 0 && (chars[start - 1].is_alphanumeric() || chars[start - 1] == '_') {
        return None;
    }
    let prefix = chars[start..].iter().take_while(|c| matches!(c, 'r' | 'b' | 'c')).count();
    let hashes = chars[start + prefix..].iter().take_while(|c| **c == '#').count();
    let quote = start + prefix + hashes;
    if prefix > 2 || chars.get(quote) != Some(&'"') {
        return None;
    }
    if !chars[start..start + prefix].contains(&'r') {
        return (hashes == 0).then(|| string_end(chars, quote));
    }
    let closes = |i: &usize| chars[*i] == '"' && chars[i + 1..].iter().take_while(|c| **c == '#').count() >= hashes;
    (quote + 1..chars.len()).find(closes).map(|i| i + 1 + hashes)
}

/// The tokens without test-only code, and the names of test-only modules in other files.
pub fn without_tests(all: Vec<Token>) -> (Vec<Token>, Vec<String>) {
    let text = |i: usize| all.get(i).map_or("", |token| token.text.as_str());
    let (mut kept, mut modules) = (Vec::new(), Vec::new());
    let mut i = 0;
    while i < all.len() {
        let inner = usize::from(text(i) == "#" && text(i + 1) == "!");
        if text(i) != "#" || text(i + 1 + inner) != "[" {
            kept.push(all[i].clone());
            i += 1;
            continue;
        }
        let end = group_end(&all, i + 1 + inner);
        let words: Vec<_> = all[i..end].iter().map(|token| token.text.as_str()).collect();
        let for_tests = words.contains(&"cfg") && words.contains(&"test") && !words.contains(&"not");
        if for_tests && inner == 1 {
            return (Vec::new(), Vec::new());
        }
        if !for_tests {
            kept.extend_from_slice(&all[i..end]);
            i = end;
            continue;
        }
        i = end;
        while text(i) == "#" {
            i = group_end(&all, i + 1);
        }
        let end = item_end(&all, i);
        let item: Vec<_> = all[i..end].iter().map(|token| token.text.as_str()).collect();
        if let [.., "mod", name, ";"] = item[..] {
            modules.push(name.to_string());
        }
        i = end;
    }
    (kept, modules)
}

/// The position after the bracket that closes the one at `open`.
fn group_end(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    tokens.len()
}

/// The position after the item that begins at `start`: after its block or its semicolon; a field or a variant ends with its comma.
fn item_end(tokens: &[Token], start: usize) -> usize {
    let first = tokens[start..].iter().map(|token| token.text.as_str());
    let kind = first
        .clone()
        .find(|word| !matches!(*word, "pub" | "(" | ")" | "crate" | "super" | "in" | "self"))
        .unwrap_or("");
    let by_block = matches!(
        kind,
        "mod" | "fn" | "impl" | "struct" | "enum" | "trait" | "union" | "unsafe" | "async" | "extern" | "{"
    );
    let by_semicolon =
        matches!(kind, "use" | "const" | "static" | "type" | "let") && !first.clone().take(4).any(|word| word == "fn");
    let mut i = start;
    while i < tokens.len() {
        match tokens[i].text.as_str() {
            "{" if !by_semicolon => return group_end(tokens, i),
            "(" | "[" | "{" => i = group_end(tokens, i) - 1,
            ";" => return i + 1,
            "," if !by_block && !by_semicolon => return i + 1,
            "}" => return i,
            _ => {}
        }
        i += 1;
    }
    i
}

/// The names of the types and traits that `tokens` define. Associated types are not among them.
pub fn defined_types(tokens: &[Token]) -> Vec<&str> {
    let (mut found, mut depth) = (Vec::new(), 0);
    for pair in tokens.windows(2) {
        match pair[0].text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "struct" | "enum" | "trait" => found.push(pair[1].text.as_str()),
            "type" if depth == 0 => found.push(pair[1].text.as_str()),
            _ => {}
        }
    }
    found
}

/// A path to something of this crate, from its root; empty for the root itself.
pub struct Edge {
    pub path: Vec<String>,
    pub line: usize,
    /// True for one of a `use`.
    pub is_import: bool,
    /// True for a re-export from a module below.
    pub is_shown: bool,
}

impl Edge {
    /// The top-level module that it leads to; `None` for the crate root.
    pub fn to(&self) -> Option<&String> {
        self.path.first()
    }
}

/// Every path in `tokens`, the text of the module `module`, that can lead out of it: those that begin with `crate`, `super` or `self`,
/// and those that begin with one of its `children`, the modules below it.
pub fn edges(module: &[String], children: &[&str], tokens: &[Token]) -> Vec<Edge> {
    let text = |i: usize| tokens.get(i).map_or("", |token| token.text.as_str());
    let mut found = Vec::new();
    let mut blocks: Vec<Option<String>> = Vec::new(); // the open braces; a name where one opens a module
    let mut i = 0;
    while i < tokens.len() {
        let line = tokens[i].line;
        let here = |blocks: &[Option<String>]| -> Vec<String> {
            module.iter().chain(blocks.iter().flatten()).cloned().collect()
        };
        match text(i) {
            "{" => blocks.push((i > 1 && text(i - 2) == "mod").then(|| text(i - 1).to_string())),
            "}" => drop(blocks.pop()),
            "use" if text(i + 1) != "<" => {
                let is_shown = i > 0 && matches!(text(i - 1), "pub" | ")");
                let mut paths = Vec::new();
                i = use_tree(tokens, i + 1, &[], &mut paths);
                let here = here(&blocks);
                let targets = paths.iter().filter_map(|(path, line)| Some((target(&here, children, path)?, *line)));
                found.extend(targets.map(|(path, line)| Edge { path, line, is_import: true, is_shown }));
                continue;
            }
            word if text(i + 1) == "::"
                && (i == 0 || text(i - 1) != "::")
                // pub(in crate::name) is a visibility, not an import.
                && !(i > 2 && text(i - 1) == "in" && text(i - 2) == "(" && text(i - 3) == "pub")
                && (matches!(word, "crate" | "super" | "self") || children.contains(&word)) =>
            {
                let mut path = vec![word.to_string()];
                while text(i + 1) == "::" && text(i + 2).starts_with(|c: char| c.is_alphabetic() || c == '_') {
                    path.push(text(i + 2).to_string());
                    i += 2;
                }
                found.extend(target(&here(&blocks), children, &path).map(|path| Edge {
                    path,
                    line,
                    is_import: false,
                    is_shown: false,
                }));
            }
            _ => {}
        }
        i += 1;
    }
    found
}

/// Reads one tree of a `use` from `i` on, adds its leaves to `paths`, and returns what follows it.
fn use_tree(tokens: &[Token], mut i: usize, prefix: &[String], paths: &mut Vec<(Vec<String>, usize)>) -> usize {
    let text = |i: usize| tokens.get(i).map_or("", |token| token.text.as_str());
    let mut path = prefix.to_vec();
    let line = tokens.get(i).map_or(0, |token| token.line);
    loop {
        match text(i) {
            "::" if path.is_empty() => path.push("::".into()), // ::name belongs to another crate
            "::" => {}
            "{" => {
                i += 1;
                while !matches!(text(i), "}" | "") {
                    i = use_tree(tokens, i, &path, paths);
                    i += usize::from(text(i) == ",");
                }
                return i + 1;
            }
            "as" => i += 1,
            "," | ";" | "}" | "" => {
                paths.push((path, line));
                return i;
            }
            word => path.push(word.into()),
        }
        i += 1;
    }
}

/// What `path`, written in the module `here`, names, from the crate root; `None` for a path that cannot leave its module.
fn target(here: &[String], children: &[&str], path: &[String]) -> Option<Vec<String>> {
    let mut base = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "self" | "super" => here.to_vec(),
        word if children.contains(&word) => here.to_vec(),
        _ => return None,
    };
    for word in path {
        match word.as_str() {
            "crate" | "self" => {}
            "super" => drop(base.pop()),
            "*" => break,
            word => base.push(word.to_string()),
        }
    }
    Some(base)
}
