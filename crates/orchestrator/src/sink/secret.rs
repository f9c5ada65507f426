//! The secret with which requests are signed.

use std::fmt;
use std::io::Read as _;

use proofmill_workflow as file;
use ring::hmac;

/// Minimum length of a secret in bytes; shorter ones can be guessed.
const LEAST: usize = 16;

/// Maximum length of a secret in bytes.
const MOST: u64 = 4096;

/// A secret for signing requests. Never shown.
pub struct Secret(hmac::Key);

/// The reason why a secret cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the secret in {place} {why}")]
pub struct SecretError {
    place: String,
    why: String,
}

// === impl Secret ===

impl Secret {
    /// Reads the secret from the variable or file that the workflow names. White space at its end,
    /// which editors add, is removed.
    ///
    /// # Errors
    /// It cannot be read, or has fewer than 16 or more than 4096 bytes.
    pub fn read(of: &file::Secret) -> Result<Self, SecretError> {
        let place = match of {
            file::Secret::Environment(name) => format!("the variable {name}"),
            file::Secret::File(path) => path.display().to_string(),
        };
        let failed = |why: String| {
            let place = place.clone();
            SecretError { place, why }
        };
        let bytes = match of {
            file::Secret::Environment(name) => std::env::var_os(name)
                .ok_or_else(|| failed("is missing: set the variable".into()))?
                .into_encoded_bytes(),
            file::Secret::File(path) => {
                let mut bytes = Vec::new();
                let read = std::fs::File::open(path)
                    .and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes));
                read.map_err(|error| failed(format!("cannot be read: {error}")))?;
                bytes
            }
        };
        Self::new(&bytes).map_err(failed)
    }

    fn new(bytes: &[u8]) -> Result<Self, String> {
        let bytes = bytes.trim_ascii_end();
        if bytes.len() < LEAST {
            return Err(format!("has fewer than {LEAST} bytes: take a longer one"));
        }
        if bytes.len() as u64 > MOST {
            return Err(format!("has more than {MOST} bytes: take a shorter one"));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, bytes)))
    }

    /// The HMAC-SHA256 (RFC 2104) of the concatenation of `parts`, in hexadecimal.
    pub fn sign(&self, parts: &[&[u8]]) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        for part in parts {
            context.update(part);
        }
        hex::encode(context.sign())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_signs_as_the_standard_says_and_is_not_shown() {
        // RFC 4231, test case 4: a key of 25 bytes.
        let key: Vec<u8> = (1..=25).collect();
        let secret = Secret::new(&key).expect("a secret");
        let expected = "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b";
        assert_eq!(secret.sign(&[&[0xcd; 20], &[0xcd; 30]]), expected);
        assert_eq!(format!("{secret:?}"), "Secret");
    }

    #[test]
    fn it_is_read_without_the_end_of_its_line_and_refused_if_it_can_be_guessed() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = folder.path().join("secret");
        let read = |text: &str| {
            std::fs::write(&path, text).expect("written");
            Secret::read(&file::Secret::File(path.clone()))
        };
        let signed = |text: &str| read(text).expect("a secret").sign(&[b"x"]);
        assert_eq!(signed("0123456789abcdef\n"), signed("0123456789abcdef"));
        for (text, why) in [
            ("short\n", "fewer than 16 bytes"),
            (&"x".repeat(5000), "more than 4096 bytes"),
        ] {
            let error = read(text).expect_err(why).to_string();
            assert!(
                error.contains(why) && !error.contains(text.trim()),
                "{error}"
            );
        }
        let error = Secret::read(&file::Secret::Environment("PROOFMILL_NO_SUCH".into()));
        let error = error.expect_err("it is not there").to_string();
        assert!(error.contains("PROOFMILL_NO_SUCH is missing"), "{error}");
    }
}
