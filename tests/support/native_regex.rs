//! Regular expressions for native tests, in place of a browser's.

use std::rc::Rc;

/// A compiled pattern.
struct Native(fancy_regex::Regex);

/// Compiles a pattern in the syntax specified by `Env::regex`.
pub fn compile(pattern: &str, ignores_case: bool) -> Result<Rc<dyn super::CompiledRegex>, String> {
    let flags = if ignores_case { "(?i)" } else { "" };
    let regex = fancy_regex::Regex::new(&format!("{flags}{pattern}")).map_err(|error| error.to_string())?;
    Ok(Rc::new(Native(regex)))
}

impl super::CompiledRegex for Native {
    fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text).unwrap_or(false)
    }

    fn find(&self, text: &str, all: bool) -> Vec<super::Match> {
        let found = self.0.captures_iter(text).map_while(std::result::Result::ok).map(|found| super::Match {
            at: text[..found.get(0).unwrap().start()].chars().count(),
            groups: found.iter().map(|group| group.map(|group| group.as_str().to_owned())).collect(),
        });
        found.take(if all { usize::MAX } else { 1 }).collect()
    }
}
