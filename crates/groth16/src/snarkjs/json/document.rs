//! Shared parts of snarkjs's JSON files: size limit, protocol and curve fields, arrays, output format.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::path::Path as FilePath;

use proofmill_files::open_regular_or_inherited;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::ser::{PrettyFormatter, Serializer};

use super::JsonError;
use crate::Curve;

/// The largest JSON file that is read: 32 MiB.
pub const MAX_JSON_BYTES: u64 = 32 << 20;

/// Name of this proof system in snarkjs's files, field `protocol`.
pub(super) const PROTOCOL: &str = "groth16";

/// Reads a JSON file of at most [`MAX_JSON_BYTES`]. A pipe is read if this process was started with
/// it, as with a shell's `<(…)`; a named pipe is refused, since reading could block forever without a writer.
///
/// # Errors
///
/// [`JsonError::Io`], [`JsonError::TooLarge`].
pub fn read_json(path: &FilePath) -> Result<Vec<u8>, JsonError> {
    let io = |source| JsonError::Io {
        path: path.to_owned(),
        source,
    };
    let file = open_regular_or_inherited(path).map_err(io)?;
    let found = file.metadata().map_err(io)?.len();
    let mut bytes = Vec::with_capacity(found.min(MAX_JSON_BYTES) as usize);
    // A pipe has no length beforehand.
    let read = file
        .take(MAX_JSON_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(io)?;
    check_size(found.max(read as u64))?;
    Ok(bytes)
}

pub(super) const fn check_size(found: u64) -> Result<(), JsonError> {
    if found > MAX_JSON_BYTES {
        return Err(JsonError::TooLarge {
            found,
            limit: MAX_JSON_BYTES,
        });
    }
    Ok(())
}

/// Deserializes a whole document by `seed`; an error if more follows it.
pub(super) fn read<'de, S: serde::de::DeserializeSeed<'de>>(
    json: &'de [u8],
    seed: S,
) -> Result<S::Value, JsonError> {
    check_size(json.len() as u64)?;
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// The curve that a proof or a verification key names; `None` if it names none, as in the proofs of some programs.
///
/// # Errors
///
/// [`JsonError`] if the file is not a JSON object, or names an unknown curve or protocol.
pub fn curve_of_json(json: &[u8]) -> Result<Option<Curve>, JsonError> {
    read(json, CurveVisitor)
}

struct CurveVisitor;

impl<'de> serde::de::DeserializeSeed<'de> for CurveVisitor {
    type Value = Option<Curve>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for CurveVisitor {
    type Value = Option<Curve>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut curve = None;
        while let Some(Name(name)) = map.next_key()? {
            match &*name {
                "protocol" => check_protocol(map.next_value()?)?,
                "curve" => set(&mut curve, "curve", read_curve(map.next_value()?)?)?,
                _ => skip(&mut map)?,
            }
        }
        Ok(curve)
    }
}

/// A string of the document: borrowed, unless escapes in it had to be resolved.
pub(super) struct Name<'de>(pub(super) Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

/// Skips the value of an unknown field.
pub(super) fn skip<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(|_| ())
}

/// Sets a field; an error if it occurs twice.
pub(super) fn set<T, E: Error>(
    slot: &mut Option<T>,
    name: &'static str,
    value: T,
) -> Result<(), E> {
    if slot.replace(value).is_some() {
        return Err(E::duplicate_field(name));
    }
    Ok(())
}

/// The value of a field; an error if the field is missing.
pub(super) fn required<T, E: Error>(slot: Option<T>, name: &'static str) -> Result<T, E> {
    slot.ok_or_else(|| E::missing_field(name))
}

pub(super) fn check_protocol<E: Error>(Name(found): Name<'_>) -> Result<(), E> {
    if found == PROTOCOL {
        return Ok(());
    }
    Err(E::custom(format_args!(
        "protocol: {:?}, only {PROTOCOL:?} is supported",
        TruncatedForDisplay(&found)
    )))
}

pub(super) fn read_curve<E: Error>(Name(found): Name<'_>) -> Result<Curve, E> {
    Curve::from_snarkjs_name(&found).ok_or_else(|| {
        E::custom(format_args!(
            "curve: {:?}, only \"bn128\" and \"bls12381\" are supported",
            TruncatedForDisplay(&found)
        ))
    })
}

pub(super) fn check_curve<E: Error>(name: Name<'_>, expected: Curve) -> Result<(), E> {
    let found = read_curve::<E>(name)?;
    if found == expected {
        return Ok(());
    }
    Err(E::custom(format_args!(
        "curve: {:?}, not {:?}",
        found.snarkjs_name(),
        expected.snarkjs_name()
    )))
}

/// A string that `Debug` shows cut after 40 characters, for errors.
struct TruncatedForDisplay<'a>(&'a str);

impl fmt::Debug for TruncatedForDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(40) {
            None => fmt::Debug::fmt(self.0, f),
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
        }
    }
}

/// The text of a document, laid out as snarkjs does: one space for each level, and no line end
/// after the last.
pub(super) fn write(document: &impl Serialize) -> String {
    let mut out = Vec::new();
    let formatter = PrettyFormatter::with_indent(b" ");
    document
        .serialize(&mut Serializer::with_formatter(&mut out, formatter))
        .expect("fields and strings are written to memory");
    String::from_utf8(out).expect("JSON is UTF-8")
}
