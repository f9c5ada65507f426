//! Names of contracts.

use std::fmt;
use std::str::FromStr;

/// The most characters of a contract's name.
const LENGTH_MAX: usize = 100;

/// Words that Solidity reserves, which no contract can have as its name. Types with a size (`uint8` to `uint256`,
/// `bytes1` to `bytes32`, `fixed128x18`) are recognised by their form.
const RESERVED: &str = "abstract address after alias anonymous apply as assembly auto bool break byte bytes calldata case \
    catch constant constructor continue contract copyof days default define delete do else emit enum error ether event \
    external fallback false final fixed for from function global gwei hex hours if immutable implements import in indexed \
    inline int interface internal is let library macro mapping match memory minutes modifier mutable new null of override \
    partial payable pragma private promise public pure receive reference relocatable return returns revert sealed seconds \
    sizeof static storage string struct super supports switch this throw transient true try type typedef typeof ufixed \
    uint unchecked unicode using var view virtual weeks while wei years layout at";

/// The name of a Solidity contract: an identifier that Solidity does not reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractName(String);

/// A text that is no contract's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The text is no identifier.
    #[error(
        "not a contract's name: it has 1 to {LENGTH_MAX} letters (a to z, A to Z), digits, `_` and `$`, \
         and does not begin with a digit"
    )]
    NotIdentifier,
    /// Solidity gives the word a meaning.
    #[error("not a contract's name: `{0}` is a reserved word of Solidity")]
    Reserved(String),
}

// === impl ContractName ===

impl ContractName {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// [`NameError`] if Solidity's grammar does not allow the name.
    pub fn new(name: &str) -> Result<Self, NameError> {
        let letter = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$');
        let is_identifier = (1..=LENGTH_MAX).contains(&name.len())
            && name
                .bytes()
                .all(|byte| letter(byte) || byte.is_ascii_digit())
            && !name.as_bytes()[0].is_ascii_digit();
        if !is_identifier {
            return Err(NameError::NotIdentifier);
        }
        if RESERVED.split_whitespace().any(|word| word == name) || is_sized_type(name) {
            return Err(NameError::Reserved(name.to_owned()));
        }
        Ok(Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether the name is an elementary type with its size, such as `uint256` or `fixed128x18`.
fn is_sized_type(name: &str) -> bool {
    ["uint", "int", "bytes", "ufixed", "fixed"]
        .iter()
        .filter_map(|kind| name.strip_prefix(kind))
        .any(|size| {
            size.starts_with(|first: char| first.is_ascii_digit())
                && size
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'x')
        })
}

/// `Groth16Verifier`, the name that snarkjs gives its contracts.
impl Default for ContractName {
    fn default() -> Self {
        Self("Groth16Verifier".to_owned())
    }
}

impl fmt::Display for ContractName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ContractName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::new(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_names_and_other_texts_are_not() {
        for name in [
            "Groth16Verifier",
            "_x",
            "$",
            "a1",
            "Uint8",
            "uint8s",
            "intx9y",
        ] {
            assert!(ContractName::new(name).is_ok(), "{name}");
        }
        let long = "a".repeat(LENGTH_MAX + 1);
        for name in ["", "1a", "a b", "a-b", "ä", "a{", "a;\n", &long] {
            assert_eq!(
                ContractName::new(name),
                Err(NameError::NotIdentifier),
                "{name}"
            );
        }
        for name in [
            "contract",
            "uint",
            "uint256",
            "bytes32",
            "fixed128x18",
            "this",
        ] {
            let reserved = Err(NameError::Reserved(name.to_owned()));
            assert_eq!(ContractName::new(name), reserved, "{name}");
        }
    }
}
