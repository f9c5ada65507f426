//! Names of shared wires.

use std::fmt;

/// The name of a portal or of a memory cell: a label and up to two indices, for example
/// `"total"`, `("digest", 3)` or `("state", 7, 0)`.
///
/// The portals of a read-only memory share a label, and their index is the address: `("rom", address)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    label: &'static str,
    indices: [u64; 2],
    /// The number of indices that were given.
    given: u8,
}

// === impl Name ===

impl Name {
    /// The label.
    pub const fn label(&self) -> &'static str {
        self.label
    }

    /// The indices that were given.
    pub fn indices(&self) -> &[u64] {
        &self.indices[..usize::from(self.given)]
    }
}

impl From<&'static str> for Name {
    fn from(label: &'static str) -> Self {
        let (indices, given) = ([0, 0], 0);
        Self {
            label,
            indices,
            given,
        }
    }
}

impl From<(&'static str, usize)> for Name {
    fn from((label, index): (&'static str, usize)) -> Self {
        let (indices, given) = ([index as u64, 0], 1);
        Self {
            label,
            indices,
            given,
        }
    }
}

impl From<(&'static str, usize, usize)> for Name {
    fn from((label, first, second): (&'static str, usize, usize)) -> Self {
        let (indices, given) = ([first as u64, second as u64], 2);
        Self {
            label,
            indices,
            given,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label)?;
        self.indices()
            .iter()
            .try_for_each(|index| write!(f, "[{index}]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_print_as_they_are_written_and_differ() {
        let names: [Name; 4] = [
            "a".into(),
            ("a", 0).into(),
            ("a", 0, 0).into(),
            ("a", 0, 1).into(),
        ];
        let printed: Vec<String> = names.iter().map(Name::to_string).collect();
        assert_eq!(printed, ["a", "a[0]", "a[0][0]", "a[0][1]"]);
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{name}");
        }
    }
}
