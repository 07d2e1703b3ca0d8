//! What every text that matches a pattern has in it.

/// Literal texts of a pattern of PCRE.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Literals {
    /// The prefix of every match; empty if unknown.
    pub prefix: Box<str>,
    /// What every match contains; empty if unknown.
    pub part: Box<str>,
    /// True if a text matches if it has these.
    pub decide: bool,
}

/// The literal texts of a pattern without options, or of one that ignores case: those have no prefix, and their part, which is
/// in lower case, is of ASCII letters only, for which hosts and this crate agree on what their case is.
pub fn literals_of(pattern: &str, ignores_case: bool) -> Literals {
    let anchored = pattern.strip_prefix('^');
    let body = anchored.unwrap_or(pattern).as_bytes();
    if body.contains(&b'|') {
        return Literals::default();
    }
    let (mut runs, mut decide): (Vec<Vec<u8>>, _) = (vec![Vec::new()], true);
    let mut rest = body.iter();
    while let Some(next) = rest.next() {
        let literal = match next {
            b'\\' => rest.next().filter(|byte| byte.is_ascii_punctuation()),
            b'.' | b'+' | b'[' | b'(' | b')' | b']' | b'}' | b'$' | b'^' | b'?' | b'*' | b'{' => None,
            other => Some(other),
        };
        if let (Some(literal), Some(run)) = (literal, runs.last_mut()) {
            run.push(*literal);
            continue;
        }
        decide = false;
        // The last character may be absent or repeated.
        if let (b'?' | b'*' | b'{', Some(run)) = (next, runs.last_mut()) {
            while run.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
        }
        // What stands behind a class, a group or an escape with a letter may belong to it.
        if !b".+$^?*".contains(next) {
            break;
        }
        runs.push(Vec::new());
    }
    // Only whole characters were taken.
    let text = |run: Option<&Vec<u8>>| String::from_utf8(run.cloned().unwrap_or_default()).unwrap_or_default();
    let prefix = if anchored.is_some() && !ignores_case { text(runs.first()) } else { String::new() };
    let mut part = text(runs.iter().max_by_key(|run| run.len()));
    if ignores_case && part.is_ascii() {
        part.make_ascii_lowercase();
    } else if ignores_case {
        (part, decide) = (String::new(), false);
    }
    let decide = decide && (anchored.is_none() || !ignores_case);
    Literals { prefix: prefix.into(), part: part.into(), decide }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, ignores_case: bool, prefix: &str, part: &str, decide: bool) {
        let expected = Literals { prefix: prefix.into(), part: part.into(), decide };
        assert_eq!(literals_of(pattern, ignores_case), expected, "{pattern}");
    }

    #[test]
    fn a_prefix_ends_at_the_first_variable_part_of_an_anchored_pattern() {
        check("^abc", false, "abc", "abc", true);
        check(r"^a\.b", false, "a.b", "a.b", true);
        check("^abc*", false, "ab", "ab", false);
        check("^abc{0}", false, "ab", "ab", false);
        check("^abc+", false, "abc", "abc", false);
        check(r"^ab\d", false, "ab", "ab", false);
        check("^éa$", false, "éa", "éa", false);
        check("^é?", false, "", "", false);
        check("^ab|c", false, "", "", false);
        check("^", false, "", "", true);
    }

    #[test]
    fn a_part_is_the_longest_literal_that_each_match_contains() {
        check("abc", false, "", "abc", true);
        check("", false, "", "", true);
        check(r"a\/b", false, "", "a/b", true);
        check("a.bcd?e", false, "", "bc", false);
        check("^a.bcd", false, "a", "bcd", false);
        check("abc+?de", false, "", "abc", false);
        check("a$", false, "", "a", false);
        // Behind a class, a group or an escape, letters may be a part of these.
        check(r"a\x62cd", false, "", "a", false);
        check("a[bcd]efg", false, "", "a", false);
        check("(?i)abc", false, "", "", false);
        check("a(bcd)", false, "", "a", false);
        check("a{2,3}bcd", false, "", "", false);
    }

    #[test]
    fn a_part_ignores_the_case_of_ascii_letters_only() {
        check("aBc", true, "", "abc", true);
        check("^aBc", true, "", "abc", false);
        check("aB.", true, "", "ab", false);
        check("aBé", true, "", "", false);
        check("", true, "", "", true);
    }
}
