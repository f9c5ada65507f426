//! Faults in a workflow file: position, message, and advice for the fix.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::document::{Document, Field};

/// A fault in a workflow file.
///
/// `Display` renders it for a person: position, field, message, the line with a caret, and advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Whether the workflow can run in spite of the fault.
    pub severity: Severity,
    /// The kind of fault.
    pub code: Code,
    /// The file, as given.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The field, as in `dispatcher "prove".t_ack`; empty for the file as a whole.
    pub field: String,
    /// The fault, as a sentence fragment.
    pub message: String,
    /// Advice for the fix.
    pub help: String,
    #[serde(skip)]
    snippet: Option<Snippet>,
}

/// Severity of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The workflow cannot run.
    Error,
    /// The workflow can run, but a setting has no effect, or something is not verified.
    Warning,
}

/// The source line, and the number of its characters that the caret marks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Snippet {
    text: String,
    width: usize,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// The kind of a fault. The names are stable; `docs/workflow.md` lists them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Code {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Its stable name.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

codes! {
    /// The file cannot be read.
    Unreadable = "unreadable",
    /// The file, or a list in it, is over its limit.
    TooLarge = "too-large",
    /// Not TOML.
    Syntax = "syntax",
    /// A field that does not exist in this table.
    UnknownField = "unknown-field",
    /// A required field is absent.
    MissingField = "missing-field",
    /// A value of another type than the field's.
    WrongType = "wrong-type",
    /// A number or duration outside the field's range.
    OutOfRange = "out-of-range",
    /// A `kind` (or `writers`) that does not exist.
    UnknownKind = "unknown-kind",
    /// A name with characters that names cannot have.
    BadName = "bad-name",
    /// Not a duration.
    BadDuration = "bad-duration",
    /// Not a size.
    BadSize = "bad-size",
    /// Not a rate.
    BadRate = "bad-rate",
    /// Not a JSON pointer.
    BadPointer = "bad-pointer",
    /// Not the address of a server.
    BadUrl = "bad-url",
    /// Not the address of an account or a contract.
    BadAddress = "bad-address",
    /// Not a subject that can be published to.
    BadSubject = "bad-subject",
    /// A path, argument or variable that the operating system would refuse.
    BadPath = "bad-path",
    /// Two stages, or two queues, with one name.
    DuplicateName = "duplicate-name",
    /// A stage names the same queue twice.
    RepeatedQueue = "repeated-queue",
    /// A queue is read, but no stage writes it.
    UnknownQueue = "unknown-queue",
    /// A queue is written, but no stage reads it.
    UnreadQueue = "unread-queue",
    /// A queue is declared, but no stage uses it.
    UnusedQueue = "unused-queue",
    /// Two stages write a queue that is meant to have one writer.
    TwoWriters = "two-writers",
    /// Messages would go round in a cycle.
    Cycle = "cycle",
    /// The workflow has no source.
    NoSource = "no-source",
    /// A chain that may be reorganised shares a stage with another source.
    MixedChain = "mixed-chain",
    /// No source's messages reach the stage.
    UnreachableStage = "unreachable-stage",
    /// A source whose last block is before its first.
    EmptyRange = "empty-range",
    /// A group of no messages.
    EmptyGroup = "empty-group",
    /// A group counts messages of a queue that is not an input.
    CountNotInput = "count-not-input",
    /// An input whose messages a group does not count.
    InputNotCounted = "input-not-counted",
    /// The queue that sets the groups' boundaries is not an input.
    ByNotInput = "by-not-input",
    /// A join with only one input.
    NothingToJoin = "nothing-to-join",
    /// A group that the sources' blocks can never complete.
    GroupNeverFills = "group-never-fills",
    /// A block-wise collector is fed several messages about the same block.
    GroupAmbiguous = "group-ambiguous",
    /// A queue that holds fewer messages than a group needs.
    QueueBelowGroup = "queue-below-group",
    /// `partial` without `t_collect`.
    PartialWithoutTimeout = "partial-without-timeout",
    /// The program does not exist.
    MissingProgram = "missing-program",
    /// The program cannot be executed.
    ProgramNotExecutable = "program-not-executable",
    /// A source's file does not exist.
    MissingFile = "missing-file",
    /// A native prover that is not registered.
    UnknownProver = "unknown-prover",
    /// A custom strategy that is not registered.
    UnknownStrategy = "unknown-strategy",
    /// A heartbeat too slow to keep a lease.
    SlowHeartbeat = "slow-heartbeat",
    /// A first wait longer than the longest wait.
    BackoffOrder = "backoff-order",
    /// A stage without workers.
    NoWorkers = "no-workers",
    /// A stage requires labels that its workers lack.
    UnmetRequirement = "unmet-requirement",
    /// A stage's tasks need more memory than its workers offer.
    UnmetMemory = "unmet-memory",
    /// More results required than copies made.
    AcceptAboveCopies = "accept-above-copies",
    /// More copies than workers that may take them.
    TooFewWorkers = "too-few-workers",
    /// Several results required of a stage that fans out.
    AcceptWithFanOut = "accept-with-fan-out",
    /// Batches of tasks of which several copies are made.
    BatchWithCopies = "batch-with-copies",
    /// Blocks are dropped that the sequencer would wait for.
    DropWithSequencer = "drop-with-sequencer",
    /// A payload template and the whole block, which exclude each other.
    PayloadWithFull = "payload-with-full",
    /// Two locations for one secret.
    TwoSecrets = "two-secrets",
    /// Batches for a program or an engine, which take one task at a time.
    BatchNeedsNative = "batch-needs-native",
    /// Fan-out of a result that is a single proof.
    FanOutOfProof = "fan-out-of-proof",
    /// A fan-out without an output.
    FanOutToNobody = "fan-out-to-nobody",
    /// The sequencer is fed several messages about the same block.
    SequencerNotChain = "sequencer-not-chain",
    /// The sequencer starts at a block that never comes.
    SequencerStart = "sequencer-start",
    /// A stage verifies, and the process that emits cannot check its results again.
    NoEmissionCheck = "no-emission-check",
    /// A stage's results are to be checked before they count, and the coordinator cannot check them.
    NoResultCheck = "no-result-check",
    /// The sequencer emits results that no stage has verified.
    UnverifiedEmission = "unverified-emission",
    /// The sequencer emits results of verifying stages without a second check.
    TrustedVerifiers = "trusted-verifiers",
    /// A pool of a worker group that no stage has.
    UnknownGroup = "unknown-group",
    /// A fallback pool that does not exist or cannot help.
    BadFallback = "bad-fallback",
    /// A stage whose tasks no pool's workers can run, fallback pools aside.
    UncoveredStage = "uncovered-stage",
    /// A dispatcher that the workflow does not have.
    UnknownStage = "unknown-stage",
    /// Proofs are to be reported, and the workflow emits none.
    NothingEmitted = "nothing-emitted",
}

// === impl Code ===

impl Code {
    /// Severity of faults of this kind.
    pub fn severity(self) -> Severity {
        match self {
            Self::UnusedQueue | Self::UnverifiedEmission | Self::TrustedVerifiers => {
                Severity::Warning
            }
            _ => Severity::Error,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

// === impl Severity ===

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

// === impl Diagnostic ===

impl Diagnostic {
    /// Maximum length of the source line that is shown, in characters.
    const MAX_SNIPPET: usize = 160;

    /// The fault of a path that cannot be read as a workflow file.
    pub fn of_file(file: &Path, message: impl Into<String>, help: impl Into<String>) -> Self {
        let document = Document::new(file, "");
        let field = Field::root();
        Self::new(&document, Code::Unreadable, &field, message, help)
    }

    pub(crate) fn new(
        document: &Document,
        code: Code,
        field: &Field,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let span = document.span(field);
        Self::at(document, code, span, document.label(field), message, help)
    }

    pub(crate) fn at(
        document: &Document,
        code: Code,
        span: std::ops::Range<usize>,
        field: String,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let (line, column, text) = document.place(span.start);
        let room = text.chars().count().saturating_sub(column - 1);
        let marked = document
            .text()
            .get(span)
            .map_or(1, |marked| marked.chars().count());
        let snippet = (column <= Self::MAX_SNIPPET && !text.trim().is_empty()).then(|| Snippet {
            text: text.chars().take(Self::MAX_SNIPPET).collect(),
            width: marked.min(room).min(Self::MAX_SNIPPET + 1 - column).max(1),
        });
        Self {
            severity: code.severity(),
            code,
            file: document.file().to_owned(),
            line,
            column,
            field,
            message: message.into(),
            help: help.into(),
            snippet,
        }
    }

    /// Whether the fault prevents the workflow from running.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}: ",
            self.file.display(),
            self.line,
            self.column,
            self.severity
        )?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{} [{}]", self.message, self.code)?;
        if let Some(snippet) = &self.snippet {
            let gutter = self.line.to_string().len();
            // Tabs are kept in the indent, so that the caret stands under its text.
            let indent: String = snippet
                .text
                .chars()
                .take(self.column - 1)
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            write!(f, "\n  {} | {}", self.line, snippet.text)?;
            write!(
                f,
                "\n  {:gutter$} | {indent}{}",
                "",
                "^".repeat(snippet.width)
            )?;
        }
        if !self.help.is_empty() {
            write!(f, "\n  help: {}", self.help)?;
        }
        Ok(())
    }
}

/// Renders diagnostics one after the other, and a last line that counts errors and warnings.
pub fn render(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        text.push_str(&format!("{diagnostic}\n\n"));
    }
    let errors = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.is_error())
        .count();
    let count = |n: usize, what: &str| match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let warnings = diagnostics.len() - errors;
    text.push_str(&format!(
        "{}, {}\n",
        count(errors, "error"),
        count(warnings, "warning")
    ));
    text
}
