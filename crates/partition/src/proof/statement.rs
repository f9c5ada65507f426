//! The transcript of a proof, from which α, β and the aggregate's context are drawn.

use proofmill_aggregation::{Commitment, Transcript};

use super::PartitionCurve;
use crate::Challenges;
use crate::tree::Path;

/// The statement and the first message of a proof; the challenges follow from them.
pub(super) struct Statement<F> {
    transcript: Transcript,
    challenges: Challenges<F>,
}

// === impl Statement ===

impl<F: proofmill_kernels::Poseidon2Field> Statement<F> {
    /// Takes the verifying key's digest, the number of parts, the public inputs, and the commitment to the
    /// commitments of all parts; draws α and β.
    pub(super) fn new<E: PartitionCurve<ScalarField = F>>(
        key: &[u8; 32],
        parts: usize,
        public_inputs: &[F],
        commitment: &Commitment<E>,
    ) -> Self {
        let mut transcript = Transcript::new::<E>("partitioned proof");
        transcript.absorb("key", key);
        transcript.absorb_number("parts", parts as u64);
        transcript.absorb_scalars("public inputs", public_inputs);
        transcript.absorb("commitment to D", &commitment.to_bytes());
        let challenges = Challenges {
            alpha: transcript.scalar("alpha"),
            beta: transcript.scalar("beta"),
        };
        Self {
            transcript,
            challenges,
        }
    }

    pub(super) const fn challenges(&self) -> Challenges<F> {
        self.challenges
    }

    /// Absorbs the second message, the tree of states, and returns the digest of all messages, the aggregate's
    /// context.
    pub(super) fn context(mut self, root: F, public_path: &Path<F>) -> [u8; 32] {
        self.transcript.absorb_scalars("root", &[root]);
        let path = public_path.children().as_flattened();
        self.transcript
            .absorb_scalars("path of the public state", path);
        self.transcript.digest("context")
    }

    /// The public inputs that all parts share.
    pub(super) fn shared(&self, root: F) -> [F; super::SHARED] {
        [root, self.challenges.alpha, self.challenges.beta]
    }
}
