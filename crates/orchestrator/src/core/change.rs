//! Changes of the log: the records that an append puts and deletes.

use proofmill_bus::Expect;

use crate::record::Record;

/// Change to the record under a key.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are puts, and none lives long"
)]
pub(super) enum Change {
    Put { record: Record, expect: Expect },
    Delete,
}

// === impl Change ===

impl Change {
    pub(super) fn put(record: Record) -> Self {
        Self::Put {
            record,
            expect: Expect::Any,
        }
    }

    pub(super) fn put_new(record: Record) -> Self {
        Self::Put {
            record,
            expect: Expect::Absent,
        }
    }
}
