//! Runs a pattern over a text: it tries one way, and goes back to where there was another one.

// Loaded later.

use std::cell::RefCell;
use std::rc::Rc;

use super::parse::{Boundary, Parser, Set};
use super::steps::{PatternStep, first_of, may_be_empty, steps_of};
use crate::env::{CompiledRegex, Match};

/// After so many steps over a text, the host is asked: it takes less time for patterns that have many ways to match.
const STEPS_MAX: usize = 1 << 15;

/// Another way.
enum Way {
    /// A step and the place where it starts.
    Other(usize, usize),
    /// A step and the places where it may start, of which the last one comes first, or the first one.
    Some { next: usize, low: usize, high: usize, is_greedy: bool },
    /// A place was noted: it was this one before.
    Noted(usize, Option<usize>),
}

/// The work on a text.
#[derive(Default)]
struct MatchState {
    ways: Vec<Way>,
    /// For each group, where it starts and ends.
    places: Vec<Option<usize>>,
    steps: usize,
}

/// A pattern for texts of ASCII. The host matches others.
pub struct Matcher {
    steps: Vec<PatternStep>,
    groups: usize,
    /// The characters with which matches begin; `None` if they may be empty.
    first: Option<Set>,
    host: Rc<dyn CompiledRegex>,
    work: RefCell<MatchState>,
}

impl Matcher {
    /// `None` if the pattern has something that takes the host.
    pub fn new(pattern: &str, ignores_case: bool, host: &Rc<dyn CompiledRegex>) -> Option<Matcher> {
        let mut parser = Parser::new(pattern, ignores_case);
        let whole = parser.whole()?;
        let steps = steps_of(&whole)?;
        let first = (!may_be_empty(&whole)).then(|| first_of(&whole));
        Some(Matcher { steps, groups: parser.groups + 1, first, host: Rc::clone(host), work: RefCell::default() })
    }

    /// Where the first match from some place on starts and ends. The outer `None` if it takes too long.
    fn search(&self, text: &[u8], from: usize, work: &mut MatchState) -> Option<Option<(usize, usize)>> {
        let mut start = from;
        loop {
            if let Some(first) = self.first {
                let Some(next) = text.get(start..)?.iter().position(|byte| first.has(*byte)) else {
                    return Some(None);
                };
                start += next;
            }
            if let Some(end) = self.end_of(text, start, work)? {
                return Some(Some((start, end)));
            }
            start += 1;
            if start > text.len() || matches!(self.steps.first(), Some(PatternStep::Boundary(Boundary::Start))) {
                return Some(None);
            }
        }
    }

    /// The end of the match at `start`.
    fn end_of(&self, text: &[u8], start: usize, work: &mut MatchState) -> Option<Option<usize>> {
        let MatchState { ways, places, steps } = work;
        ways.clear();
        places.clear();
        places.resize(2 * self.groups, None);
        let (mut number, mut at) = (0, start);
        loop {
            *steps = steps.checked_sub(1)?;
            let is_met = match self.steps.get(number)? {
                PatternStep::One(set) => {
                    at += 1;
                    text.get(at - 1).is_some_and(|byte| set.has(*byte))
                }
                PatternStep::Text(wanted) => {
                    let is_next = text.get(at..)?.starts_with(wanted);
                    at += wanted.len();
                    is_next
                }
                PatternStep::Some(set, least, most, is_greedy) => {
                    let ahead = text.get(at..)?.iter().take(*most);
                    let count = ahead.take_while(|byte| set.has(**byte)).count();
                    *steps = steps.checked_sub(count / 8)?;
                    let (low, high) = (at + least, at + count + 1);
                    ways.push(Way::Some { next: number + 1, low, high, is_greedy: *is_greedy });
                    // It goes on from one of these places.
                    false
                }
                PatternStep::Fork(first, second) => {
                    ways.push(Way::Other(*second, at));
                    number = *first;
                    continue;
                }
                PatternStep::Jump(to) => {
                    number = *to;
                    continue;
                }
                PatternStep::Note(slot) => {
                    let place = places.get_mut(*slot)?;
                    ways.push(Way::Noted(*slot, place.replace(at)));
                    true
                }
                PatternStep::Boundary(boundary) => holds(*boundary, text, at),
                PatternStep::Done => return Some(Some(at)),
            };
            number += 1;
            if is_met {
                continue;
            }
            (number, at) = loop {
                match ways.pop() {
                    None => return Some(None),
                    Some(Way::Noted(slot, before)) => *places.get_mut(slot)? = before,
                    Some(Way::Other(number, at)) => break (number, at),
                    Some(Way::Some { next, low, high, is_greedy }) => {
                        // Places where the next step cannot begin are left out.
                        let begins = self.begins_with(next);
                        let may_begin = |at: &usize| begins.is_none_or(|set| set.has_at(text, *at));
                        *steps = steps.checked_sub((high - low.min(high)) / 64)?;
                        let mut places = low..high;
                        let place = if is_greedy { places.rfind(may_begin) } else { places.find(may_begin) };
                        if let Some(at) = place {
                            let (low, high) = if is_greedy { (low, at) } else { (at + 1, high) };
                            ways.push(Way::Some { next, low, high, is_greedy });
                            break (next, at);
                        }
                    }
                }
            };
        }
    }

    /// The character with which a step begins; `None` if it may begin with any, or with none.
    fn begins_with(&self, number: usize) -> Option<Set> {
        match self.steps.get(number)? {
            PatternStep::One(set) => Some(*set),
            PatternStep::Text(text) => text.first().map(|first| Set::between(*first, *first)),
            _ => None,
        }
    }

    fn found(&self, text: &str, all: bool) -> Option<Vec<Match>> {
        let work = &mut *self.work.borrow_mut();
        work.steps = STEPS_MAX;
        let (mut found, mut from) = (Vec::new(), 0);
        while from <= text.len()
            && let Some((start, end)) = self.search(text.as_bytes(), from, work)?
        {
            let of_group = |both: &[Option<usize>]| match both {
                [Some(start), Some(end)] => text.get(*start..*end).map(str::to_owned),
                _ => None,
            };
            let mut groups = vec![text.get(start..end).map(str::to_owned)];
            work.places.chunks(2).skip(1).for_each(|both| groups.push(of_group(both)));
            found.push(Match { at: start, groups });
            if !all {
                break;
            }
            // An empty match would be found again at the same place.
            from = if start == end { end + 1 } else { end };
        }
        Some(found)
    }
}

impl CompiledRegex for Matcher {
    fn is_match(&self, text: &str) -> bool {
        let mut known = None;
        if text.is_ascii() {
            let work = &mut *self.work.borrow_mut();
            work.steps = STEPS_MAX;
            known = self.search(text.as_bytes(), 0, work);
        }
        known.map_or_else(|| self.host.is_match(text), |found| found.is_some())
    }

    fn find(&self, text: &str, all: bool) -> Vec<Match> {
        let known = if text.is_ascii() { self.found(text, all) } else { None };
        known.unwrap_or_else(|| self.host.find(text, all))
    }
}

fn holds(boundary: Boundary, text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| text.get(at));
    let behind = text.get(at);
    match boundary {
        Boundary::Start => at == 0,
        Boundary::End => behind.is_none(),
        Boundary::LastEnd => matches!(text.get(at..), Some([] | [b'\n'])),
        Boundary::LineStart => matches!(before, None | Some(b'\n')),
        Boundary::LineEnd => matches!(behind, None | Some(b'\n')),
        Boundary::Word => Set::is_word(before) != Set::is_word(behind),
        Boundary::NoWord => Set::is_word(before) == Set::is_word(behind),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::regex::Regex;
    use super::super::super::samples::globals;
    use super::*;
    use proptest::prelude::*;

    /// The host's expression, and a matcher for it if there is one.
    fn compiled(pattern: &str, ignores_case: bool) -> Option<(Rc<dyn CompiledRegex>, Option<Matcher>)> {
        let host = globals().env().regex(pattern, ignores_case).ok()?;
        let matcher = Matcher::new(pattern, ignores_case, &host);
        Some((host, matcher))
    }

    /// The host finds all that the matcher finds; that of tests, unlike JavaScript, no empty match at the end of another one.
    fn compare(pattern: &str, (host, matcher): (&dyn CompiledRegex, &Matcher), text: &str) {
        assert_eq!(matcher.is_match(text), host.is_match(text), "/{pattern}/ on {text:?}");
        assert_eq!(matcher.find(text, false), host.find(text, false), "/{pattern}/ on {text:?}");
        let mut found = matcher.find(text, true);
        let mut end = usize::MAX;
        found.retain(|found| {
            let len = found.groups[0].as_ref().unwrap().chars().count();
            let is_kept = len > 0 || found.at != end;
            end = found.at + len;
            is_kept
        });
        assert_eq!(found, host.find(text, true), "/{pattern}/ on {text:?}");
    }

    #[track_caller]
    fn check(pattern: &str, ignores_case: bool, texts: &[&str]) {
        let (host, matcher) = compiled(pattern, ignores_case).expect(pattern);
        let matcher = matcher.expect(pattern);
        texts.iter().for_each(|text| compare(pattern, (&*host, &matcher), text));
    }

    #[test]
    fn the_usual_patterns_match_what_the_host_matches() {
        let texts = [
            "",
            "a",
            "GET /users/17/orders?page=2",
            "worker 12 failed after 350 ms",
            "worker x",
            "2024-01-31T10:20:30.5Z",
            "a\n",
            "a\nb",
            "user-7@mail.example.org",
            "foo=1, bar = 22;baz=333",
            "aaab",
            "ab12_x y",
            "(a) [b] {c}",
            "\t \u{b}x",
            "Über worker 9",
            "error: Error: ERROR",
        ];
        for pattern in [
            "worker (\\d+)",
            "^a",
            "a$",
            "^$",
            "^(GET|POST) ([^?]*)(?:\\?(.*))?$",
            "\\b\\d{2,3}\\b",
            "(\\w+)@(\\w+)(?:\\.\\w+)+",
            "a+?b",
            "a*?b",
            "(\\w+)\\s*=\\s*(\\d+)",
            "\\d{4}-\\d\\d-\\d\\d(T| )",
            "[\\[\\](){}]",
            "[^\\n]*failed",
            "x|",
            "|x",
            "(a|ab)(c|bcd)?",
            "\\x61",
            "\\u0061\\n?",
            "\\S+\\W\\D",
            "[a-c_-]+",
            "[^a-z ]",
            "\\B.",
            "(?:ab|a){1,2}b?",
            "[\\w.+-]+@",
            "(?=\\n?$)",
            "a(?=\\n?$)",
            "(?<![^\\n])b",
            "a(?![^\\n])",
            "(a)?b",
            "\\tx?",
            "é|w",
            "[é-ü]|w",
        ] {
            // `Regex` writes the dot in this form.
            check(&pattern.replace("B.", "B[^\\n]").replace("(.*)", "([^\\n]*)"), false, &texts);
        }
        for pattern in ["error", "[e-r]+:", "WORKER \\d", "[^e]r"] {
            check(pattern, true, &texts);
        }
    }

    #[test]
    fn what_takes_the_host_is_left_to_it() {
        for pattern in ["(?=a)", "(?<!a)b", "(?<n>a)", "(a)\\1", "(?:a*)*", "(a)+", "(?:|a)+", "\\p{L}"] {
            assert!(compiled(pattern, false).is_none_or(|(_, matcher)| matcher.is_none()), "{pattern}");
        }
        for pattern in ["é", "\\W", "[é]", "[a-\\u0100]"] {
            assert!(compiled(pattern, true).is_none_or(|(_, matcher)| matcher.is_none()), "{pattern}");
        }
        // Too many ways.
        check("(?:a+b?)+(?:a+b?)+(?:a+b?)+c", false, &["a".repeat(200).as_str()]);
    }

    #[test]
    fn patterns_match_whole_texts_as_those_of_pcre() {
        let matches =
            |pattern: &str, options: &str, text: &str| Regex::new(pattern, options, &globals()).unwrap().is_match(text);
        assert!(matches("a.c$", "", "xabc\n") && !matches("a.c$", "", "xabc\n\n") && !matches("a.c", "", "a\nc"));
        assert!(matches("a.c", "s", "a\nc") && matches("^b$", "m", "a\nb\nc") && matches("A B", "ix", "xab"));
    }

    fn pattern() -> impl Strategy<Value = String> {
        let one = prop::sample::select(vec![
            "a",
            "b",
            "c",
            " ",
            "[ab]",
            "[^a]",
            "\\d",
            "\\w",
            "\\s",
            "[^\\n]",
            "[a-c1]",
            "\\W",
            "^",
            "$",
            "\\b",
            "\\B",
            "(?=\\n?$)",
            "(?![^\\n])",
            "1",
            "-",
            "[b-]",
        ]);
        one.prop_map(str::to_owned).prop_recursive(4, 24, 4, |inner| {
            let counts = prop::sample::select(vec!["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,3}?", "{2,}"]);
            prop_oneof![
                4 => prop::collection::vec(inner.clone(), 1..5).prop_map(|all| all.concat()),
                2 => prop::collection::vec(inner.clone(), 2..4).prop_map(|all| format!("(?:{})", all.join("|"))),
                2 => inner.clone().prop_map(|inner| format!("({inner})")),
                3 => (inner, counts).prop_map(|(inner, count)| format!("(?:{inner}){count}")),
            ]
        })
    }

    proptest! {
        #[test]
        fn random_patterns_match_what_the_host_matches(pattern in pattern(), texts in prop::collection::vec("[abcA1 \\-\n]{0,9}", 8), ignores_case in any::<bool>()) {
            let Some((host, Some(matcher))) = compiled(&pattern, ignores_case) else { return Ok(()) };
            texts.iter().for_each(|text| compare(&pattern, (&*host, &matcher), text));
        }
    }
}
