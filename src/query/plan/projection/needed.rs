//! Which top-level fields a plan reads.

/// Which top-level fields somebody reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needed {
    /// Every field.
    All,
    /// The fields of these names, which ascend.
    Roots(Vec<Box<str>>),
}

impl Needed {
    /// No field at all.
    pub fn none() -> Needed {
        Needed::Roots(Vec::new())
    }

    /// Adds the first component of `path`.
    pub fn add_path(&mut self, path: &str) {
        let root = path.split('.').next().unwrap_or_default();
        if let Needed::Roots(roots) = self
            && let Err(at) = place(roots, root)
        {
            roots.insert(at, root.into());
        }
    }

    /// What either of the two reads.
    pub fn union(self, other: Needed) -> Needed {
        match (self, other) {
            (Needed::Roots(mut a), Needed::Roots(b)) => {
                for root in b {
                    if let Err(at) = place(&a, &root) {
                        a.insert(at, root);
                    }
                }
                Needed::Roots(a)
            }
            _ => Needed::All,
        }
    }

    /// Takes a field out, unless every field is needed.
    pub fn remove(&mut self, root: &str) {
        if let Needed::Roots(roots) = self {
            roots.retain(|known| **known != *root);
        }
    }

    /// True where the field called `root` is read.
    pub fn contains(&self, root: &str) -> bool {
        match self {
            Needed::All => true,
            Needed::Roots(roots) => place(roots, root).is_ok(),
        }
    }
}

/// Where `root` stands among `roots`, or where it belongs.
fn place(roots: &[Box<str>], root: &str) -> Result<usize, usize> {
    roots.binary_search_by(|known| (**known).cmp(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_needs_its_first_component() {
        let mut needed = Needed::none();
        needed.add_path("a.b");
        assert!(needed.contains("a") && !needed.contains("b"));
    }

    #[test]
    fn a_union_needs_what_either_needs() {
        let (mut a, mut b) = (Needed::none(), Needed::none());
        a.add_path("a");
        b.add_path("b.c");
        let both = a.clone().union(b);
        assert!(both.contains("a") && both.contains("b") && !both.contains("c"));
        assert_eq!(a.union(Needed::All), Needed::All);
    }
}
