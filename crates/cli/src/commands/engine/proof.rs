//! Writing the files of a proof that an engine made.

use std::path::Path;

use proofmill_api::engine::proto::Proof;
use proofmill_api::engine::{AnswerKey, ProofTexts, check_answer_of_any_curve};

use crate::args::engine::ProofFiles;
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy, write_together};
use crate::output;

impl ProofFiles {
    /// Fails if an output would overwrite a file that is needed; `plan` has the command's other files.
    pub(super) fn check<'a>(&'a self, plan: FilePlan<'a>) -> Result<(), Failure> {
        let mut plan = plan.writes("the proof", &self.output);
        if let Some(public) = &self.public {
            plan = plan.writes("the public signals", public);
        }
        if let Some(vk) = &self.vk {
            plan = plan.reads("the verifying key", vk);
        }
        plan.check(OverwritePolicy::NothingHardToRecreate)
    }

    /// The key of `--vk`, with which this process verifies proofs; `None` without the option.
    pub(super) fn key(&self) -> Result<Option<AnswerKey>, Failure> {
        let key = self.vk.as_deref().map(AnswerKey::load).transpose();
        key.map_err(Failure::new)
    }

    /// Writes a proof, and its public signals if `--public` is given. The files are made from the checked values, never
    /// copied from the engine's texts.
    pub(super) fn write(
        &self,
        proof: &Proof,
        witness: Option<&[u8]>,
        key: Option<&AnswerKey>,
    ) -> Result<(), Failure> {
        let checked = check_answer_of_any_curve(proof, witness, key);
        let checked =
            checked.map_err(|error| Failure::new(format!("{error}; nothing was written")))?;
        let texts = ProofTexts::from(&checked);
        let mut written: Vec<(&Path, &str)> = Vec::new();
        let public = self.public.as_deref();
        written.extend(public.map(|public| (public, &*texts.public)));
        written.push((&self.output, &texts.proof));
        write_together(&written)
    }

    /// Prints that the proof was written, and whether it was verified here or only by the engine.
    pub(super) fn tell(&self, job: &str) -> Result<(), Failure> {
        output::line(output::plain(&format!(
            "{}: made and verified by the engine{}, job {job}",
            self.output.display(),
            if self.vk.is_some() {
                ", and verified here"
            } else {
                ""
            },
        )))
    }
}
