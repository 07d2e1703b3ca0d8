//! Reads a pattern in the syntax of ECMAScript without other flags than `i`, as far as texts of ASCII can be matched by it without the
//! host: no lookaround but those that `Regex` writes, no references to groups, no names of groups.

// Loaded later.

/// ASCII characters, by bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set(pub u128);

/// What holds between two characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    Start,
    End,
    /// The end, or a newline that is the last character.
    LastEnd,
    LineStart,
    LineEnd,
    Word,
    NoWord,
}

/// A part of a pattern.
#[derive(Debug)]
pub enum Node {
    One(Set),
    Boundary(Boundary),
    All(Vec<Node>),
    Any(Vec<Node>),
    /// A group, and its number if it is captured.
    Group(Option<usize>, Box<Node>),
    Repeat {
        node: Box<Node>,
        least: usize,
        most: usize,
        is_greedy: bool,
    },
}

/// Groups in groups.
const DEPTH_MAX: usize = 16;
/// Repetitions with a number.
const COUNT_MAX: usize = 1000;

/// Boundaries in the form that `Regex` gives them.
const BOUNDARIES: [(&[u8], Boundary); 3] =
    [(br"(?=\n?$)", Boundary::LastEnd), (br"(?<![^\n])", Boundary::LineStart), (br"(?![^\n])", Boundary::LineEnd)];

impl Set {
    pub const NONE: Set = Set(0);
    const DIGITS: Set = Set::between(b'0', b'9');
    const WORDS: Set =
        Set(Set::DIGITS.0 | Set::between(b'a', b'z').0 | Set::between(b'A', b'Z').0 | Set::between(b'_', b'_').0);
    const SPACES: Set = Set(Set::between(b'\t', b'\r').0 | Set::between(b' ', b' ').0);

    pub const fn between(low: u8, high: u8) -> Set {
        let up_to = if high >= 127 { u128::MAX } else { (1 << (high + 1)) - 1 };
        Set(if low > 127 || low > high { 0 } else { up_to & !((1 << low) - 1) })
    }

    pub const fn has(self, byte: u8) -> bool {
        let half = if byte < 64 { self.0 } else { self.0 >> 64 } as u64;
        byte < 128 && half >> (byte & 63) & 1 == 1
    }

    /// True if there is such a character at a place.
    pub fn has_at(self, text: &[u8], at: usize) -> bool {
        text.get(at).is_some_and(|byte| self.has(*byte))
    }

    /// The character, if it has just one.
    pub fn only(self) -> Option<u8> {
        (self.0.count_ones() == 1).then(|| self.0.trailing_zeros() as u8)
    }

    pub fn is_word(byte: Option<&u8>) -> bool {
        byte.is_some_and(|byte| Set::WORDS.has(*byte))
    }

    const fn others(self) -> Set {
        Set(!self.0)
    }

    /// With the other case of its letters.
    const fn folded(self) -> Set {
        let (upper, lower) = (Set::between(b'A', b'Z').0, Set::between(b'a', b'z').0);
        Set(self.0 | (self.0 & upper) << 32 | (self.0 & lower) >> 32)
    }
}

/// A member of a class.
enum Member {
    /// A character, by its number.
    One(u32),
    Set(Set),
}

pub struct Parser<'a> {
    rest: &'a [u8],
    ignores_case: bool,
    /// How many groups are captured.
    pub groups: usize,
}

impl<'a> Parser<'a> {
    pub fn new(pattern: &'a str, ignores_case: bool) -> Parser<'a> {
        Parser { rest: pattern.as_bytes(), ignores_case, groups: 0 }
    }

    /// The whole pattern; `None` if it has something else.
    pub fn whole(&mut self) -> Option<Node> {
        let node = self.alternatives(0)?;
        self.rest.is_empty().then_some(node)
    }

    fn takes(&mut self, text: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn alternatives(&mut self, depth: usize) -> Option<Node> {
        let mut all = vec![self.sequence(depth)?];
        while self.takes(b"|") {
            all.push(self.sequence(depth)?);
        }
        if all.len() == 1 { all.pop() } else { Some(Node::Any(all)) }
    }

    fn sequence(&mut self, depth: usize) -> Option<Node> {
        let mut all = Vec::new();
        while !matches!(self.rest.first(), None | Some(b'|' | b')')) {
            let node = self.part(depth)?;
            let (least, most) = match self.rest.first() {
                Some(b'*') => (0, usize::MAX),
                Some(b'+') => (1, usize::MAX),
                Some(b'?') => (0, 1),
                Some(b'{') => self.counts()?,
                _ => {
                    all.push(node);
                    continue;
                }
            };
            self.next();
            if matches!(node, Node::Boundary(_)) {
                return None;
            }
            let is_greedy = !self.takes(b"?");
            all.push(Node::Repeat { node: Box::new(node), least, most, is_greedy });
        }
        Some(Node::All(all))
    }

    /// The numbers of `{2,3}`, up to its end.
    fn counts(&mut self) -> Option<(usize, usize)> {
        self.next();
        let least = self.number()?;
        let most = match self.takes(b",") {
            true if self.rest.first() == Some(&b'}') => usize::MAX,
            true => self.number()?,
            false => least,
        };
        (self.rest.first() == Some(&b'}') && least <= most).then_some((least, most))
    }

    fn number(&mut self) -> Option<usize> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.rest.split_at_checked(digits)?;
        self.rest = rest;
        std::str::from_utf8(number).ok()?.parse().ok().filter(|number| *number <= COUNT_MAX)
    }

    fn part(&mut self, depth: usize) -> Option<Node> {
        if let Some((_, boundary)) = BOUNDARIES.iter().find(|(text, _)| self.takes(text)) {
            return Some(Node::Boundary(*boundary));
        }
        let set = match self.next()? {
            b'^' => return Some(Node::Boundary(Boundary::Start)),
            b'$' => return Some(Node::Boundary(Boundary::End)),
            b'(' if depth < DEPTH_MAX => {
                let number = match self.takes(b"?:") {
                    true => None,
                    false => {
                        self.groups += 1;
                        Some(self.groups)
                    }
                };
                // Others are lookaround, or have names.
                let is_plain = self.rest.first() != Some(&b'?');
                let inner = self.alternatives(depth + 1).filter(|_| is_plain)?;
                return self.takes(b")").then(|| Node::Group(number, Box::new(inner)));
            }
            b'[' => self.class()?,
            b'\\' => match self.rest.first() {
                Some(b'b') => return self.boundary(Boundary::Word),
                Some(b'B') => return self.boundary(Boundary::NoWord),
                _ => match self.escaped()? {
                    Member::One(code) => self.one(code)?,
                    Member::Set(set) => set,
                },
            },
            b'(' | b')' | b'.' | b'*' | b'+' | b'?' | b'{' | b'}' | b']' => return None,
            first => {
                let code = self.character(first)?;
                self.one(code)?
            }
        };
        Some(Node::One(set))
    }

    fn boundary(&mut self, boundary: Boundary) -> Option<Node> {
        self.next();
        Some(Node::Boundary(boundary))
    }

    /// The number of the character that begins with this byte.
    fn character(&mut self, first: u8) -> Option<u32> {
        if first.is_ascii() {
            return Some(first.into());
        }
        // What it is does not matter.
        while self.rest.first().is_some_and(|byte| byte & 0xc0 == 0x80) {
            self.next();
        }
        Some(u32::MAX)
    }

    /// What one character matches. The case of others than ASCII is the host's affair.
    fn one(&self, code: u32) -> Option<Set> {
        match u8::try_from(code) {
            Ok(byte) if byte.is_ascii() => {
                let set = Set::between(byte, byte);
                Some(if self.ignores_case { set.folded() } else { set })
            }
            _ => (!self.ignores_case).then_some(Set::NONE),
        }
    }

    /// What comes behind a backslash.
    fn escaped(&mut self) -> Option<Member> {
        let one = |byte: u8| Some(Member::One(byte.into()));
        let set = match self.next()? {
            b'd' => Set::DIGITS,
            b'D' => Set::DIGITS.others(),
            b'w' => Set::WORDS,
            // With `i`, hosts do not agree.
            b'W' if !self.ignores_case => Set::WORDS.others(),
            b's' => Set::SPACES,
            b'S' => Set::SPACES.others(),
            b'n' => return one(b'\n'),
            b'r' => return one(b'\r'),
            b't' => return one(b'\t'),
            b'f' => return one(0x0c),
            b'v' => return one(0x0b),
            b'x' => return self.hexadecimal(2),
            b'u' => return self.hexadecimal(4),
            byte if byte.is_ascii_punctuation() => return one(byte),
            _ => return None,
        };
        Some(Member::Set(set))
    }

    fn hexadecimal(&mut self, digits: usize) -> Option<Member> {
        let (number, rest) = self.rest.split_at_checked(digits)?;
        let digits = std::str::from_utf8(number).ok().filter(|_| number.iter().all(u8::is_ascii_hexdigit))?;
        self.rest = rest;
        Some(Member::One(u32::from_str_radix(digits, 16).ok()?))
    }

    /// A class, without its first bracket.
    fn class(&mut self) -> Option<Set> {
        let is_negated = self.takes(b"^");
        let mut set = Set::NONE;
        while !self.takes(b"]") {
            match (self.member()?, self.rest) {
                (Member::One(low), [b'-', next, ..]) if *next != b']' => {
                    self.next();
                    let Member::One(high) = self.member()? else { return None };
                    set.0 |= self.range(low, high)?.0;
                }
                (Member::Set(_), [b'-', next, ..]) if *next != b']' => return None,
                (Member::One(code), _) => set.0 |= self.one(code)?.0,
                (Member::Set(more), _) => set.0 |= more.0,
            }
        }
        let set = if self.ignores_case { set.folded() } else { set };
        Some(if is_negated { set.others() } else { set })
    }

    fn range(&self, low: u32, high: u32) -> Option<Set> {
        if self.ignores_case && high > 127 || low > high {
            return None;
        }
        Some(u8::try_from(low).map_or(Set::NONE, |low| Set::between(low, high.min(127) as u8)))
    }

    fn member(&mut self) -> Option<Member> {
        match self.next()? {
            b'\\' if self.takes(b"b") => Some(Member::One(8)),
            b'\\' if self.takes(b"-") => Some(Member::One(b'-'.into())),
            b'\\' => self.escaped(),
            first => self.character(first).map(Member::One),
        }
    }
}
