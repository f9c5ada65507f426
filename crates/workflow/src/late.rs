//! Treatment of messages that reach a collector too late.

use crate::fields::Fields;
use crate::inner::keyword;

/// Treatment of a message that reaches a collector after the group that it belongs to was emitted.
/// Each such message is counted. A duplicate of a message already known is not late.
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
        // Read nevertheless, so that the field counts as known.
        let _ = fields.string("late", "\"dead\"");
        return Late::default();
    }
    match keyword(fields, "late", &["dead", "emit", "skip"]) {
        Some("emit") => Late::Emit,
        Some("skip") => Late::Skip,
        _ => Late::Dead,
    }
}
