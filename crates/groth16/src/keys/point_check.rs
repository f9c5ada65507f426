//! The extent of the checks of a key's points when it is read.

/// The extent of the checks of a key's points when it is read, from a key file or a `.zkey`. Coordinates must be
/// canonical in any case, and a key file's checksum right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointCheck {
    /// Every point must be on its curve and in the subgroup of prime order: for a file from elsewhere. Many points
    /// are tested together, and a wrong one passes with probability 2⁻⁶⁴ at most. Whether the key is for the circuit
    /// remains a matter of trust in who made it.
    Full,
    /// No point is tested: for a file that was checked before, or that this program wrote where no other user can
    /// write. A checksum detects corruption, not malice: an attacker can recompute it. A malicious proving key
    /// yields proofs that do not verify, or that are not blinded.
    Skip,
}

// === impl PointCheck ===

impl PointCheck {
    /// [`PointCheck::Skip`] if a file of this content was checked before.
    pub fn unless(checked: bool) -> Self {
        if checked { Self::Skip } else { Self::Full }
    }
}
