//! Encoding and decoding of a bundle.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use sha2::{Digest as _, Sha256};

use super::error::BundleError;
use super::facts::Facts;
use crate::executor::Resolved;
use crate::payload::Payload;
use crate::record::{DeadRecord, Record};

/// Most bytes of a bundle.
pub const BUNDLE_BYTES_MAX: usize = 192 << 20;
/// Most letters of a bundle.
pub const LETTERS_MAX: usize = 1_000;

const MAGIC: &[u8; 8] = b"PMDEADLB";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = MAGIC.len() + 4 + 4;
const SECTION_HEADER_BYTES: usize = 1 + 8 + 32;
const CHECKSUM_BYTES: usize = 32;
/// Most bytes of the facts.
const FACTS_BYTES_MAX: usize = 4 << 20;

/// Kind of a section, with its number in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Facts = 1,
    Letter = 2,
    Content = 3,
}

/// Dead letters, with their inputs and the settings of their stages.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    facts: Facts,
    letters: Vec<DeadRecord>,
    /// Inputs and files, by the SHA-256 of their content.
    contents: BTreeMap<[u8; 32], Bytes>,
}

/// A section of a file that is read.
struct Section {
    number: usize,
    kind: Kind,
    digest: [u8; 32],
    content: Bytes,
}

// === impl Kind ===

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Facts => "facts",
            Self::Letter => "dead letter",
            Self::Content => "input or file",
        }
    }
}

// === impl Section ===

impl Section {
    fn name(&self) -> String {
        format!("section {} ({})", self.number, self.kind.name())
    }

    fn invalid(&self, why: impl Into<String>) -> BundleError {
        BundleError::Invalid {
            section: self.name(),
            why: why.into(),
        }
    }
}

// === impl Bundle ===

impl Bundle {
    /// A bundle of these parts. A reader refuses it unless every leaf of a letter's payload is a blob among the
    /// contents.
    pub fn new(
        facts: Facts,
        letters: Vec<DeadRecord>,
        contents: BTreeMap<[u8; 32], Bytes>,
    ) -> Self {
        Self {
            facts,
            letters,
            contents,
        }
    }

    /// Facts about the bundle and its stages.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The dead letters, at least one.
    pub fn letters(&self) -> &[DeadRecord] {
        &self.letters
    }

    /// The content of a file of a stage; `None` if the bundle does not hold it.
    pub fn file(&self, digest: &[u8; 32]) -> Option<&Bytes> {
        self.contents.get(digest)
    }

    /// The input of a letter; `None` if the letter is of another bundle.
    pub fn input(&self, letter: &DeadRecord) -> Option<Resolved> {
        self.resolve(&letter.task.payload)
    }

    fn resolve(&self, payload: &Payload) -> Option<Resolved> {
        Some(match payload {
            Payload::Inline { .. } => return None,
            Payload::Blob {
                encoding,
                digest,
                len,
            } => {
                let content = self.contents.get(digest)?;
                if content.len() as u64 != *len {
                    return None;
                }
                Resolved::One(*encoding, content.clone())
            }
            Payload::Group { by_queue, members } => {
                let mut resolved: Vec<(Arc<str>, Resolved)> = Vec::with_capacity(members.len());
                for (queue, member) in members {
                    resolved.push((queue.clone(), self.resolve(member)?));
                }
                Resolved::Group {
                    by_queue: *by_queue,
                    members: resolved,
                }
            }
        })
    }

    /// The bundle as a file.
    ///
    /// # Errors
    /// [`BundleError::TooLarge`].
    pub fn encode(&self) -> Result<Bytes, BundleError> {
        let facts = serde_json::to_vec(&self.facts).map_err(|error| BundleError::Invalid {
            section: Kind::Facts.name().to_owned(),
            why: error.to_string(),
        })?;
        let letters = self.letters.iter();
        let letters = letters.map(|letter| (Kind::Letter, Record::Dead(letter.clone()).encode()));
        let contents = self.contents.values();
        let contents = contents.map(|content| (Kind::Content, content.clone()));
        let facts = std::iter::once((Kind::Facts, Bytes::from(facts)));
        let sections: Vec<(Kind, Bytes)> = facts.chain(letters).chain(contents).collect();
        let sizes = sections.iter();
        let sizes = sizes.map(|(_, content)| SECTION_HEADER_BYTES + content.len());
        let size = HEADER_BYTES + sizes.sum::<usize>() + CHECKSUM_BYTES;
        if size > BUNDLE_BYTES_MAX {
            return Err(BundleError::TooLarge {
                bytes: size as u64,
                max: BUNDLE_BYTES_MAX as u64,
            });
        }
        let mut file = BytesMut::with_capacity(size);
        file.put_slice(MAGIC);
        file.put_u32_le(VERSION);
        file.put_u32_le(u32::try_from(sections.len()).unwrap_or(u32::MAX));
        for (kind, content) in sections {
            file.put_u8(kind as u8);
            file.put_u64_le(content.len() as u64);
            file.put_slice(&Sha256::digest(&content));
            file.put_slice(&content);
        }
        let checksum = Sha256::digest(&file);
        file.put_slice(&checksum);
        Ok(file.freeze())
    }

    /// Reads a file. Nothing is allocated for a length that the file only claims.
    ///
    /// # Errors
    /// The file is no bundle, of another version, damaged, or incomplete.
    pub fn decode(file: &Bytes) -> Result<Self, BundleError> {
        let sections = sections(file)?;
        let mut sections = sections.into_iter().peekable();
        let first = sections
            .next_if(|section| section.kind == Kind::Facts)
            .ok_or_else(|| cut("the first section does not hold the facts"))?;
        if first.content.len() > FACTS_BYTES_MAX {
            return Err(first.invalid(format!("over {FACTS_BYTES_MAX} bytes")));
        }
        let facts = serde_json::from_slice(&first.content);
        let facts: Facts = facts.map_err(|error| first.invalid(error.to_string()))?;
        let mut letters = Vec::new();
        let mut names = Vec::new();
        while let Some(section) = sections.next_if(|section| section.kind == Kind::Letter) {
            if letters.len() == LETTERS_MAX {
                return Err(section.invalid(format!("over {LETTERS_MAX} letters")));
            }
            match Record::decode("of the bundle", &section.content) {
                Ok(Record::Dead(letter)) => letters.push(letter),
                Ok(_) => return Err(section.invalid("it is another record than a dead letter")),
                Err(error) => return Err(section.invalid(error.to_string())),
            }
            names.push(section.name());
        }
        let mut contents = BTreeMap::new();
        for section in sections {
            if section.kind != Kind::Content {
                return Err(section.invalid("its kind does not belong here"));
            }
            contents.insert(section.digest, section.content);
        }
        let bundle = Self::new(facts, letters, contents);
        bundle.check(&names)?;
        Ok(bundle)
    }

    /// Checks that every part that another part names is there; `names` are those of the letters' sections.
    fn check(&self, names: &[String]) -> Result<(), BundleError> {
        if self.letters.is_empty() {
            return Err(BundleError::Empty);
        }
        let invalid = |section: &str, why: String| BundleError::Invalid {
            section: section.to_owned(),
            why,
        };
        for (letter, name) in self.letters.iter().zip(names) {
            let id = &letter.task.id;
            if !self.facts.stages.contains_key(&*id.stage) {
                return Err(invalid(
                    name,
                    format!("the facts lack its stage {:?}", id.stage),
                ));
            }
            if self.input(letter).is_none() {
                return Err(invalid(name, format!("an input of {id} is missing")));
            }
        }
        for (name, stage) in &self.facts.stages {
            let missing = |file: &&super::BundledFile| {
                let content = self.contents.get(&file.digest);
                file.included && content.map(|it| it.len() as u64) != Some(file.bytes)
            };
            if stage.work.file().filter(missing).is_some() {
                return Err(invalid(
                    "facts",
                    format!("the file of stage {name:?} is missing"),
                ));
            }
        }
        Ok(())
    }
}

fn cut(why: impl Into<String>) -> BundleError {
    BundleError::Cut { why: why.into() }
}

/// The sections of a file, each with the digest that its header states; all digests and the checksum are right.
fn sections(file: &Bytes) -> Result<Vec<Section>, BundleError> {
    if !file.starts_with(MAGIC) {
        return Err(BundleError::NoBundle);
    }
    if file.len() < HEADER_BYTES + CHECKSUM_BYTES {
        return Err(cut(format!("{} bytes are no whole bundle", file.len())));
    }
    if file.len() > BUNDLE_BYTES_MAX {
        return Err(BundleError::TooLarge {
            bytes: file.len() as u64,
            max: BUNDLE_BYTES_MAX as u64,
        });
    }
    let body = file.slice(..file.len() - CHECKSUM_BYTES);
    let mut rest = body.slice(MAGIC.len()..);
    let version = rest.get_u32_le();
    if version != VERSION {
        return Err(BundleError::Version {
            found: version,
            read: VERSION,
        });
    }
    let count = rest.get_u32_le() as usize;
    // Not reserved: the count is a claim, and the file's length limits the number of sections.
    let mut sections = Vec::new();
    for number in 1..=count {
        let section = section(&mut rest, number)?;
        if Sha256::digest(&section.content)[..] != section.digest {
            return Err(BundleError::Damaged {
                section: section.name(),
            });
        }
        sections.push(section);
    }
    if !rest.is_empty() {
        return Err(cut(format!("{} bytes follow the last section", rest.len())));
    }
    if Sha256::digest(&body)[..] != file[body.len()..] {
        return Err(BundleError::Checksum);
    }
    Ok(sections)
}

fn section(rest: &mut Bytes, number: usize) -> Result<Section, BundleError> {
    if rest.len() < SECTION_HEADER_BYTES {
        return Err(cut(format!("section {number} is missing")));
    }
    let kind = match rest.get_u8() {
        1 => Kind::Facts,
        2 => Kind::Letter,
        3 => Kind::Content,
        other => {
            let section = format!("section {number}");
            let why = format!("its kind, {other}, is unknown");
            return Err(BundleError::Invalid { section, why });
        }
    };
    let length = rest.get_u64_le();
    let mut digest = [0; 32];
    rest.copy_to_slice(&mut digest);
    let fits = usize::try_from(length).is_ok_and(|length| length <= rest.len());
    if !fits {
        let left = rest.len();
        let why = format!("section {number} claims {length} bytes, and {left} are left");
        return Err(cut(why));
    }
    // The length is at most that of the rest.
    let content = rest.split_to(length as usize);
    Ok(Section {
        number,
        kind,
        digest,
        content,
    })
}

#[cfg(test)]
mod tests {
    use super::super::facts::{BundledFile, Stage, Work};
    use super::*;
    use crate::id::{Part, TaskId};
    use crate::payload::Encoding;
    use crate::record::TaskRecord;

    fn sample() -> Bundle {
        let contents = [&b"{\"block\":7}"[..], b"[1]", b"#!/bin/sh\n"].map(Bytes::from_static);
        let digest = |at: usize| -> [u8; 32] { Sha256::digest(&contents[at]).into() };
        let blob = |at: usize| Payload::Blob {
            encoding: Encoding::Json,
            digest: digest(at),
            len: contents[at].len() as u64,
        };
        let id = TaskId {
            stage: "prove".into(),
            block: 7,
            part: Part::whole(),
        };
        let mut task = TaskRecord::for_tests(id);
        task.payload = Payload::Group {
            by_queue: true,
            members: vec![("a".into(), blob(0)), ("b".into(), blob(1))],
        };
        let stage = Stage {
            fan_out: false,
            time_limit_ms: Some(1000),
            work: Work::Program {
                program: "/x/prove.sh".to_owned(),
                file: Some(BundledFile {
                    digest: digest(2),
                    bytes: contents[2].len() as u64,
                    included: true,
                }),
                args: vec!["-v".to_owned()],
                variables: vec!["KEY".to_owned()],
                inherit_env: Vec::new(),
                strict_pids_limit: None,
                input_flag: "-i".to_owned(),
                output_flag: "-o".to_owned(),
                memory_limit: None,
            },
        };
        let facts = Facts {
            program_version: "1".to_owned(),
            os: "linux".to_owned(),
            arch: "x86_64".to_owned(),
            made_at_ms: 5,
            workflow: "w".to_owned(),
            stages: [("prove".to_owned(), stage)].into(),
        };
        let letter = DeadRecord {
            task,
            reason: "it failed".to_owned(),
            attempts: Vec::new(),
            at_ms: 3,
            late: false,
        };
        let contents = contents.into_iter();
        let contents = contents.map(|content| (Sha256::digest(&content).into(), content));
        Bundle::new(facts, vec![letter], contents.collect())
    }

    /// The file with its last bytes replaced by the right checksum.
    fn resealed(mut file: Vec<u8>) -> Bytes {
        let body = file.len() - CHECKSUM_BYTES;
        let checksum = Sha256::digest(&file[..body]);
        file[body..].copy_from_slice(&checksum);
        file.into()
    }

    #[test]
    fn a_bundle_is_read_as_it_was_written() {
        let bundle = sample();
        let file = bundle.encode().expect("small");
        let read = Bundle::decode(&file).expect("whole");
        assert_eq!(read, bundle);
        let input = read.input(&read.letters()[0]).expect("complete");
        let input = input.to_program_input().expect("JSON");
        assert_eq!(input, "{\"a\":[{\"block\":7}],\"b\":[[1]]}");
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_refused() {
        let file = sample().encode().expect("small");
        for at in 0..file.len() {
            let mut changed = file.to_vec();
            changed[at] ^= 1 << (at % 8);
            assert!(Bundle::decode(&changed.into()).is_err(), "byte {at}");
            assert!(Bundle::decode(&file.slice(..at)).is_err(), "cut at {at}");
        }
        let longer = [&file[..], b"x"].concat();
        assert!(Bundle::decode(&longer.into()).is_err());
    }

    #[test]
    fn a_damaged_section_is_named() {
        let file = sample().encode().expect("small").to_vec();
        let mut at = HEADER_BYTES;
        let mut seen = Vec::new();
        while at < file.len() - CHECKSUM_BYTES {
            let length = u64::from_le_bytes(file[at + 1..at + 9].try_into().expect("eight"));
            let content = at + SECTION_HEADER_BYTES;
            let mut changed = file.clone();
            changed[content] ^= 1;
            let error = Bundle::decode(&resealed(changed)).expect_err("damaged");
            seen.push(error.to_string());
            at = content + length as usize;
        }
        assert_eq!(seen.len(), 5);
        for (number, error) in seen.iter().enumerate() {
            assert!(
                error.contains(&format!("section {} (", number + 1)),
                "{error}"
            );
            assert!(error.contains("damaged"), "{error}");
        }
    }

    #[test]
    fn whole_sections_that_do_not_fit_together_are_refused() {
        let refused = |change: &dyn Fn(&mut Bundle), why: &str| {
            let mut bundle = sample();
            change(&mut bundle);
            let error = Bundle::decode(&bundle.encode().expect("small")).expect_err(why);
            assert!(error.to_string().contains(why), "{error}");
        };
        refused(&|it| it.letters.clear(), "no dead letter");
        refused(&|it| it.facts.stages.clear(), "lack its stage");
        refused(&|it| it.contents.clear(), "is missing");
        let inline = |it: &mut Bundle| it.letters[0].task.payload = Payload::json("1");
        refused(&inline, "an input of prove/7/0 is missing");
        let no_program = |it: &mut Bundle| {
            it.contents.retain(|_, content| !content.starts_with(b"#!"));
        };
        refused(&no_program, "the file of stage \"prove\" is missing");
        let many = |it: &mut Bundle| it.letters = vec![it.letters[0].clone(); LETTERS_MAX + 1];
        refused(&many, "over 1000 letters");
    }

    #[test]
    fn claims_of_a_hostile_header_allocate_nothing() {
        let mut file = MAGIC.to_vec();
        file.extend(VERSION.to_le_bytes());
        file.extend(u32::MAX.to_le_bytes());
        file.push(1);
        file.extend(u64::MAX.to_le_bytes());
        file.extend([0; 64]);
        let error = Bundle::decode(&resealed(file.clone())).expect_err("claims too much");
        assert!(error.to_string().contains("claims"), "{error}");
        file[8] = 2;
        let error = Bundle::decode(&resealed(file)).expect_err("another version");
        assert!(matches!(error, BundleError::Version { found: 2, .. }));
    }
}
