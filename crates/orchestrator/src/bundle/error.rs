//! The errors of making and of reading a bundle.

use crate::executor::ResolveError;

/// The reason why a bundle cannot be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// There is nothing to put in.
    #[error("no dead letter is to be bundled")]
    Empty,
    /// More letters than one bundle may hold.
    #[error("{letters} dead letters, over the limit of {max} for one bundle: bundle fewer tasks")]
    TooManyLetters {
        /// Letters.
        letters: usize,
        /// Most letters of a bundle.
        max: usize,
    },
    /// More bytes than one bundle may hold.
    #[error(
        "the bundle would hold {bytes} bytes of inputs and files, over the limit of {max}: bundle fewer tasks, or \
         leave the program out"
    )]
    TooLarge {
        /// Bytes of inputs and files.
        bytes: u64,
        /// Most bytes of a bundle.
        max: u64,
    },
    /// An input cannot be fetched.
    #[error("the input of {task} cannot be read")]
    Input {
        /// The task.
        task: String,
        /// The error of the blob store.
        #[source]
        source: Box<ResolveError>,
    },
    /// A file that was asked for cannot be read.
    #[error("stage {stage:?}: {why}")]
    File {
        /// The stage that uses the file.
        stage: String,
        /// The reason, with the path.
        why: String,
    },
    /// The file is none of this program's bundles.
    #[error("it is no bundle of dead letters: it does not begin with PMDEADLB")]
    NoBundle,
    /// The file is a bundle of a version that this program does not read.
    #[error(
        "it is a bundle of version {found}, and this program reads version {read}: use a newer release"
    )]
    Version {
        /// Version of the file.
        found: u32,
        /// Version that is read.
        read: u32,
    },
    /// The file ends too early, or something follows its end.
    #[error("it is cut off or was appended to: {why}")]
    Cut {
        /// The mismatch.
        why: String,
    },
    /// The content of a section is not the one that was written.
    #[error("{section} is damaged: its SHA-256 is another than its header says")]
    Damaged {
        /// The section, by number and kind.
        section: String,
    },
    /// The sections are whole, but the header or the order of the sections was changed.
    #[error("its checksum is wrong: sections were changed, moved, or removed")]
    Checksum,
    /// A section does not have the content that its kind requires.
    #[error("{section}: {why}")]
    Invalid {
        /// The section, by number and kind.
        section: String,
        /// The fault.
        why: String,
    },
}
