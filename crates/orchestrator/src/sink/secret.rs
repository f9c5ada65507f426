//! The secret with which requests are signed.

use std::fmt;

use proofmill_http::SecretError;
use proofmill_workflow as file;
use ring::hmac;

/// Minimum length of a secret in bytes; shorter ones can be guessed.
const LEAST: usize = 16;

/// Maximum length of a secret in bytes.
const MOST: usize = 4096;

/// A secret for signing requests. Never shown.
pub struct Secret(hmac::Key);

// === impl Secret ===

impl Secret {
    /// Reads the secret from the variable or file that the workflow names.
    ///
    /// # Errors
    /// It cannot be read, others can access its file, or it has fewer than 16 or more than 4096 bytes.
    pub fn read(of: &file::Secret) -> Result<Self, SecretError> {
        let text = proofmill_http::Secret::read(of, LEAST..=MOST)?;
        Ok(Self::new(text.expose().as_bytes()))
    }

    fn new(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
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
        let secret = Secret::new(&key);
        let expected = "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b";
        assert_eq!(secret.sign(&[&[0xcd; 20], &[0xcd; 30]]), expected);
        assert_eq!(format!("{secret:?}"), "Secret");
    }
}
