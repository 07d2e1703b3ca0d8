//! Sets of top-level fields: those that an expression reads, or that a plan decodes.

/// So many names are compared one by one.
const FEW: usize = 16;

/// A set of top-level fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldSet {
    /// Every field.
    All,
    /// The fields with these names, in ascending order.
    Only(Vec<Box<str>>),
}

impl Default for FieldSet {
    fn default() -> Self {
        FieldSet::none()
    }
}

impl FieldSet {
    /// The empty set.
    pub const fn none() -> FieldSet {
        FieldSet::Only(Vec::new())
    }

    /// The set of one field.
    pub fn one(name: &str) -> FieldSet {
        FieldSet::Only(vec![name.into()])
    }

    /// Adds the field with this name, which may contain dots.
    pub fn add(&mut self, name: &str) {
        if let FieldSet::Only(names) = self
            && let Err(at) = place(names, name)
        {
            names.insert(at, name.into());
        }
    }

    /// Adds the first component of `path`.
    pub fn add_path(&mut self, path: &str) {
        self.add(path.split('.').next().unwrap_or_default());
    }

    /// Adds the fields of another set.
    pub fn add_all(&mut self, other: &FieldSet) {
        match other {
            FieldSet::All => *self = FieldSet::All,
            FieldSet::Only(names) => names.iter().for_each(|name| self.add(name)),
        }
    }

    /// Removes a field, unless the set contains every field.
    pub fn remove(&mut self, name: &str) {
        if let FieldSet::Only(names) = self {
            names.retain(|known| **known != *name);
        }
    }

    /// True if the set contains the field `name`.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            FieldSet::All => true,
            // Most of a few names differ in length, so this is faster than a binary search.
            FieldSet::Only(names) if names.len() <= FEW => names.iter().any(|known| **known == *name),
            FieldSet::Only(names) => place(names, name).is_ok(),
        }
    }

    /// True if the set contains every field.
    pub fn is_all(&self) -> bool {
        matches!(self, FieldSet::All)
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        matches!(self, FieldSet::Only(names) if names.is_empty())
    }

    /// The names, in ascending order; empty if the set contains every field.
    pub fn names(&self) -> &[Box<str>] {
        match self {
            FieldSet::All => &[],
            FieldSet::Only(names) => names,
        }
    }
}

/// The position of `name` in `names`, or where it would be inserted.
fn place(names: &[Box<str>], name: &str) -> Result<usize, usize> {
    names.binary_search_by(|known| (**known).cmp(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_adds_its_first_component_and_a_name_with_dots_itself() {
        let mut fields = FieldSet::none();
        fields.add_path("a.b");
        fields.add("c.d");
        assert!(fields.contains("a") && !fields.contains("b"));
        assert!(fields.contains("c.d") && !fields.contains("c"));
    }

    #[test]
    fn field_names_are_sorted_and_unique() {
        let mut fields = FieldSet::none();
        ["b", "a", "b", "c", "a"].iter().for_each(|name| fields.add(name));
        assert_eq!(fields.names(), ["a".into(), "b".into(), "c".into()]);
        fields.remove("b");
        assert_eq!(fields.names(), ["a".into(), "c".into()]);
    }

    #[test]
    fn a_set_of_any_size_contains_its_names_alone() {
        for count in [1, FEW, FEW + 1, 40] {
            let mut fields = FieldSet::none();
            (0..count).for_each(|number| fields.add(&format!("f{number}")));
            let found = (0..50).filter(|number| fields.contains(&format!("f{number}"))).count();
            assert_eq!((found, fields.contains("f")), (count, false));
        }
    }

    #[test]
    fn the_set_of_all_fields_never_changes() {
        let mut fields = FieldSet::one("a");
        fields.add_all(&FieldSet::one("b"));
        assert_eq!(fields.names(), ["a".into(), "b".into()]);
        fields.add_all(&FieldSet::All);
        fields.add("c");
        fields.remove("a");
        assert!(fields.is_all() && fields.contains("a") && !fields.is_empty());
    }
}
