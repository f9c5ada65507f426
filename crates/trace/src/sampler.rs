//! The choice of the traces that are recorded.
//!
//! It depends on the trace's identifier and on the caller's flag alone, so every process chooses the same
//! traces, and a trace is recorded whole or not at all.

use crate::context::TraceContext;
use crate::id::TraceId;

/// Sampler of traces, as `OTEL_TRACES_SAMPLER` names them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// Whether the caller's flag decides about a trace that came with a context.
    follows_caller: bool,
    /// A trace is chosen if 63 bits of its identifier are below this.
    bound: u64,
}

/// A ratio that is not between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("a ratio of traces is between 0 and 1, not {0}")]
pub struct InvalidRatio(f64);

// === impl Sampler ===

impl Sampler {
    /// Every trace (`ratio` 1), none (0), or this share of them, whatever their callers say.
    ///
    /// # Errors
    /// [`InvalidRatio`] unless it is between 0 and 1.
    pub fn ratio(ratio: f64) -> Result<Self, InvalidRatio> {
        if !(0.0..=1.0).contains(&ratio) {
            return Err(InvalidRatio(ratio));
        }
        Ok(Self {
            follows_caller: false,
            // Exact for 0 and 1; in between to the precision of a double.
            bound: (ratio * (1_u64 << 63) as f64) as u64,
        })
    }

    /// The same sampler, for traces without a caller's context; the caller's flag decides about the others.
    #[must_use]
    pub fn following_callers(self) -> Self {
        Self {
            follows_caller: true,
            ..self
        }
    }

    /// Whether the trace is recorded; `caller` is the context that it came with.
    pub fn is_sampled(&self, trace: TraceId, caller: Option<&TraceContext>) -> bool {
        match caller {
            Some(caller) if self.follows_caller => caller.is_sampled(),
            _ => {
                let bytes = trace.bytes();
                let low: [u8; 8] = bytes[8..].try_into().unwrap_or_default();
                u64::from_be_bytes(low) >> 1 < self.bound
            }
        }
    }
}

impl Default for Sampler {
    /// `parentbased_always_on`, OpenTelemetry's default.
    fn default() -> Self {
        Self {
            follows_caller: true,
            bound: 1 << 63,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_traces_is_chosen_and_callers_are_followed() {
        let chosen = |sampler: Sampler| {
            let blocks = (0..4000).map(|block| TraceId::of_block("w", block));
            blocks.filter(|it| sampler.is_sampled(*it, None)).count()
        };
        let ratio = |ratio| Sampler::ratio(ratio).expect("a ratio");
        assert_eq!(chosen(ratio(0.0)), 0);
        assert_eq!(chosen(ratio(1.0)), 4000);
        assert_eq!(chosen(Sampler::default()), 4000);
        let quarter = chosen(ratio(0.25));
        assert!((800..1200).contains(&quarter), "{quarter}");
        for bad in [-0.1, 1.1, f64::NAN] {
            assert!(Sampler::ratio(bad).is_err());
        }
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0";
        let on = TraceContext::parse(&format!("{parent}1"), []).expect("valid");
        let off = TraceContext::parse(&format!("{parent}0"), []).expect("valid");
        let none = ratio(0.0);
        assert!(!none.is_sampled(on.trace(), Some(&on)));
        assert!(none.following_callers().is_sampled(on.trace(), Some(&on)));
        assert!(!Sampler::default().is_sampled(off.trace(), Some(&off)));
        assert!(ratio(1.0).is_sampled(off.trace(), Some(&off)));
    }
}
