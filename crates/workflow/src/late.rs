//! What becomes of a message that comes to a collector too late.

use crate::fields::Fields;
use crate::inner::word;

/// What becomes of a message that comes to a collector after the group that it belongs to was
/// emitted. Each is counted. The same message again is none: it is known already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Late {
    /// It goes to the dead-letter queue.
    #[default]
    Dead,
    /// It is passed on alone, as a group of one.
    Emit,
    /// It is consumed without effect.
    Skip,
}

/// The field `late`, which may be absent.
pub(crate) fn late(fields: &mut Fields<'_, '_>) -> Late {
    if !fields.has("late") {
        // Asked for all the same: the field is one that exists here.
        let _ = fields.string("late", "\"dead\"");
        return Late::default();
    }
    match word(fields, "late", &["dead", "emit", "skip"]) {
        Some("emit") => Late::Emit,
        Some("skip") => Late::Skip,
        _ => Late::Dead,
    }
}
