//! Position of a value in a document, for errors.

use std::fmt;

/// The path from the document's root to a value: a linked list on the stack, which lives while the value is read.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step,
}

#[derive(Clone, Copy)]
enum Step {
    Root,
    Field(&'static str),
    Index(usize),
}

// === impl Path ===

impl<'a> Path<'a> {
    /// The document itself.
    pub(super) const ROOT: Self = Self {
        parent: None,
        step: Step::Root,
    };

    pub(super) const fn field(&'a self, name: &'static str) -> Self {
        Self {
            parent: Some(self),
            step: Step::Field(name),
        }
    }

    pub(super) const fn index(&'a self, index: usize) -> Self {
        Self {
            parent: Some(self),
            step: Step::Index(index),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            fmt::Display::fmt(parent, f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) => f.write_str(name),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}
