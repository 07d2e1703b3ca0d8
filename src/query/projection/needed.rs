//! Which top-level fields a plan reads.

use std::collections::BTreeSet;

/// Which top-level fields somebody reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needed {
    /// Every field.
    All,
    /// The fields of these names.
    Roots(BTreeSet<Box<str>>),
}

impl Needed {
    /// No field at all.
    pub fn none() -> Needed {
        Needed::Roots(BTreeSet::new())
    }

    /// Adds the first component of `path`.
    pub fn add_path(&mut self, path: &str) {
        if let Needed::Roots(roots) = self {
            let root = path.split('.').next().unwrap_or_default();
            if !roots.contains(root) {
                roots.insert(root.into());
            }
        }
    }

    /// What either of the two reads.
    pub fn union(self, other: Needed) -> Needed {
        match (self, other) {
            (Needed::Roots(mut a), Needed::Roots(b)) => {
                a.extend(b);
                Needed::Roots(a)
            }
            _ => Needed::All,
        }
    }

    /// Takes a field out, unless every field is needed.
    pub fn remove(&mut self, root: &str) {
        if let Needed::Roots(roots) = self {
            roots.remove(root);
        }
    }

    /// True where the field called `root` is read.
    pub fn contains(&self, root: &str) -> bool {
        match self {
            Needed::All => true,
            Needed::Roots(roots) => roots.contains(root),
        }
    }
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
