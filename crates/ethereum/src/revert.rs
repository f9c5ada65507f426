//! Reasons of reverts, in words.

use std::fmt::Write as _;

use alloy_dyn_abi::{DynSolType, DynSolValue, Specifier as _};
use alloy_primitives::U256;
use serde_json::Value;

/// Selector of `Error(string)`: the reason of `require` and `revert`.
const ERROR: [u8; 4] = [0x08, 0xc3, 0x79, 0xa0];

/// Selector of `Panic(uint256)`: a check that the compiler added.
const PANIC: [u8; 4] = [0x4e, 0x48, 0x7b, 0x71];

/// The most bytes of arguments that are decoded. Arguments may point to the same bytes several times, so their number
/// is bounded too, by [`ARGUMENTS_MAX`].
const DECODED_MAX: usize = 8 << 10;

/// The most arguments of an error that is decoded.
const ARGUMENTS_MAX: usize = 16;

/// The most characters of a text in a reason.
const TEXT_MAX: usize = 300;

/// The most characters of a whole reason, before its end is replaced by `…`.
const REASON_MAX: usize = 600;

/// The most bytes that are shown in hexadecimal.
const HEX_MAX: usize = 64;

/// The largest JSON ABI that is read, in bytes.
const ABI_MAX: usize = 8 << 20;

/// A custom error of a contract, from its JSON ABI.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorAbi {
    name: String,
    selector: [u8; 4],
    /// Names and types of the arguments; `None` if they have nested arrays, which are not decoded.
    arguments: Option<Vec<(String, DynSolType)>>,
}

/// The reason why a JSON ABI cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("not the JSON ABI of a contract: {0}")]
pub struct AbiError(String);

// === impl ErrorAbi ===

impl ErrorAbi {
    /// The custom errors of a contract, from its JSON ABI or from an object that has it as `abi`, as compilers write.
    ///
    /// # Errors
    /// [`AbiError`].
    pub fn read(json: &str) -> Result<Vec<Self>, AbiError> {
        if json.len() > ABI_MAX {
            let length = json.len();
            return Err(AbiError(format!("{length} bytes are more than {ABI_MAX}")));
        }
        let parsed: Value =
            serde_json::from_str(json).map_err(|error| AbiError(error.to_string()))?;
        let items = parsed.as_array().or_else(|| parsed.get("abi")?.as_array());
        let items = items.ok_or_else(|| {
            AbiError("it is neither an array nor an object with `abi`".to_owned())
        })?;
        let errors = items.iter().filter(|item| item["type"] == "error");
        errors.map(Self::of).collect()
    }

    fn of(item: &Value) -> Result<Self, AbiError> {
        let failed = |why: String| AbiError(format!("the error {}: {why}", item["name"]));
        let error: alloy_json_abi::Error =
            serde_json::from_value(item.clone()).map_err(|error| failed(error.to_string()))?;
        let mut arguments = Vec::new();
        for input in &error.inputs {
            let kind = input.resolve().map_err(|error| failed(error.to_string()))?;
            arguments.push((input.name.clone(), kind));
        }
        let decodable = arguments.len() <= ARGUMENTS_MAX
            && arguments.iter().all(|(_, kind)| is_decodable(kind, false));
        Ok(Self {
            selector: error.selector().into(),
            name: error.name,
            arguments: decodable.then_some(arguments),
        })
    }

    /// The error's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first four bytes of what a contract reverts with.
    pub fn selector(&self) -> [u8; 4] {
        self.selector
    }

    /// The error with its arguments, such as `WrongBlock(expected: 5, given: 7)`.
    fn describe(&self, encoded: &[u8]) -> String {
        let Some(values) = self.decode(encoded) else {
            return format!(
                "{}, with arguments that do not decode: {}",
                self.name,
                hex_of(encoded)
            );
        };
        let mut text = format!("{}(", self.name);
        for (number, ((name, _), value)) in self.arguments.iter().flatten().zip(&values).enumerate()
        {
            if number > 0 {
                text.push_str(", ");
            }
            if !name.is_empty() {
                text.push_str(name);
                text.push_str(": ");
            }
            write_value(&mut text, value);
        }
        text.push(')');
        text
    }

    fn decode(&self, encoded: &[u8]) -> Option<Vec<DynSolValue>> {
        let arguments = self.arguments.as_ref()?;
        if encoded.len() > DECODED_MAX {
            return None;
        }
        let kinds = arguments.iter().map(|(_, kind)| kind.clone()).collect();
        match DynSolType::Tuple(kinds).abi_decode_params(encoded).ok()? {
            DynSolValue::Tuple(values) => Some(values),
            _ => None,
        }
    }
}

/// Whether values of a type are decoded: not of arrays in arrays, whose elements hostile bytes can repeat exponentially.
fn is_decodable(kind: &DynSolType, in_array: bool) -> bool {
    /// The most elements of an array of fixed length.
    const ELEMENTS_MAX: usize = 1024;
    match kind {
        DynSolType::Array(inner) => !in_array && is_decodable(inner, true),
        DynSolType::FixedArray(inner, length) => {
            !in_array && *length <= ELEMENTS_MAX && is_decodable(inner, true)
        }
        DynSolType::Tuple(kinds) => {
            kinds.len() <= ARGUMENTS_MAX
                && !in_array
                && kinds.iter().all(|kind| is_decodable(kind, true))
        }
        DynSolType::String | DynSolType::Bytes => !in_array,
        _ => true,
    }
}

/// Explanation of the data that a contract reverted with: a reason (`Error(string)`), the meaning of a panic, a custom error of
/// `errors` with its arguments, or else the first bytes in hexadecimal. At most 600 characters, without control
/// characters.
pub fn explain(data: &[u8], errors: &[ErrorAbi]) -> String {
    let mut reason = match data.split_first_chunk::<4>() {
        None if data.is_empty() => "no reason was given".to_owned(),
        None => format!("with {}", hex_of(data)),
        Some((&ERROR, rest)) => match text_of(rest) {
            Some(text) => format!("{:?}", Shortened(&text)),
            None => format!(
                "Error(string), with an argument that does not decode: {}",
                hex_of(rest)
            ),
        },
        Some((&PANIC, rest)) => match <&[u8; 32]>::try_from(rest) {
            Ok(word) => panic_text(U256::from_be_bytes(*word)),
            Err(_) => format!(
                "Panic(uint256), with an argument that does not decode: {}",
                hex_of(rest)
            ),
        },
        Some((selector, rest)) => match errors.iter().find(|error| error.selector == *selector) {
            Some(error) => error.describe(rest),
            None => format!("the unknown error {}", hex_of(data)),
        },
    };
    if let Some((end, _)) = reason.char_indices().nth(REASON_MAX - 1) {
        reason.truncate(end);
        reason.push('…');
    }
    reason
}

/// The one string in ABI-encoded arguments. Bytes that are not UTF-8 are replaced.
fn text_of(encoded: &[u8]) -> Option<String> {
    let number = |at: usize| {
        let word = encoded.get(at..at.checked_add(32)?)?;
        usize::try_from(U256::from_be_slice(word)).ok()
    };
    let at = number(0)?;
    let length = number(at)?;
    let start = at.checked_add(32)?;
    let bytes = encoded.get(start..start.checked_add(length)?)?;
    // Enough for the characters that are shown, of four bytes each at most.
    let bytes = &bytes[..bytes.len().min(4 * TEXT_MAX + 4)];
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// Text of which [`TEXT_MAX`] characters are shown, in quotation marks and with escapes.
struct Shortened<'a>(&'a str);

impl std::fmt::Debug for Shortened<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.char_indices().nth(TEXT_MAX) {
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

/// The meaning of a panic's code (Solidity's documentation, "Panic via assert and Error via require").
fn panic_text(code: U256) -> String {
    let meaning = match u8::try_from(code) {
        Ok(0x00) => "a panic of the compiler's",
        Ok(0x01) => "an assertion failed",
        Ok(0x11) => "a number overflowed",
        Ok(0x12) => "a division by zero",
        Ok(0x21) => "a number that is no value of an enumeration",
        Ok(0x22) => "a byte array in storage is encoded wrongly",
        Ok(0x31) => "`pop` on an empty array",
        Ok(0x32) => "an index outside of an array",
        Ok(0x41) => "too much memory",
        Ok(0x51) => "a call of a function variable that is not set",
        _ => "of an unknown kind",
    };
    format!("panic {code:#04x}: {meaning}")
}

/// Up to [`HEX_MAX`] bytes in hexadecimal, and how many there are if these are not all.
fn hex_of(bytes: &[u8]) -> String {
    match bytes.get(..HEX_MAX) {
        Some(shown) if bytes.len() > HEX_MAX => {
            format!("0x{}… ({} bytes)", hex::encode(shown), bytes.len())
        }
        _ => format!("0x{}", hex::encode(bytes)),
    }
}

/// Appends a value, unless the text is long already.
fn write_value(text: &mut String, value: &DynSolValue) {
    if text.len() > 4 * REASON_MAX {
        return;
    }
    let written = match value {
        DynSolValue::Bool(value) => write!(text, "{value}"),
        DynSolValue::Int(value, _) => write!(text, "{value}"),
        DynSolValue::Uint(value, _) => write!(text, "{value}"),
        DynSolValue::Address(address) => write!(text, "{address}"),
        DynSolValue::FixedBytes(word, size) => {
            write!(text, "{}", hex_of(&word[..(*size).min(32)]))
        }
        DynSolValue::Function(function) => write!(text, "{}", hex_of(function.as_slice())),
        DynSolValue::Bytes(bytes) => write!(text, "{}", hex_of(bytes)),
        DynSolValue::String(value) => write!(text, "{:?}", Shortened(value)),
        DynSolValue::Array(values) | DynSolValue::FixedArray(values) => {
            write_list(text, values, ['[', ']']);
            Ok(())
        }
        DynSolValue::Tuple(values) => {
            write_list(text, values, ['(', ')']);
            Ok(())
        }
    };
    // Writing to a `String` does not fail.
    debug_assert!(written.is_ok());
}

fn write_list(text: &mut String, values: &[DynSolValue], [open, close]: [char; 2]) {
    text.push(open);
    for (number, value) in values.iter().enumerate() {
        if text.len() > 4 * REASON_MAX {
            break;
        }
        if number > 0 {
            text.push_str(", ");
        }
        write_value(text, value);
    }
    text.push(close);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ABI: &str = r#"{"contractName": "X", "abi": [
        {"type": "error", "name": "WrongBlock", "inputs": [
            {"name": "expected", "type": "uint64"}, {"name": "given", "type": "uint64"}]},
        {"type": "error", "name": "Paused", "inputs": []},
        {"type": "error", "name": "Odd", "inputs": [
            {"name": "", "type": "string"}, {"name": "who", "type": "address"},
            {"name": "flags", "type": "bool[]"}, {"name": "raw", "type": "bytes"}, {"name": "tag", "type": "bytes4"},
            {"name": "delta", "type": "int8"}]},
        {"type": "error", "name": "Bomb", "inputs": [{"name": "x", "type": "uint256[][][][]"}]},
        {"type": "function", "name": "f", "inputs": [], "outputs": [], "stateMutability": "view"}]}"#;

    fn errors() -> Vec<ErrorAbi> {
        ErrorAbi::read(ABI).expect("an ABI")
    }

    fn word(number: u64) -> [u8; 32] {
        U256::from(number).to_be_bytes()
    }

    /// The encoding of `Error(string)`.
    fn reason(text: &[u8]) -> Vec<u8> {
        let mut data = [&ERROR[..], &word(32), &word(text.len() as u64), text].concat();
        data.resize(4 + 64 + text.len().div_ceil(32) * 32, 0);
        data
    }

    #[test]
    fn reasons_and_panics_are_put_into_words() {
        assert_eq!(explain(&[], &[]), "no reason was given");
        assert_eq!(explain(&[1, 2, 3], &[]), "with 0x010203");
        assert_eq!(
            explain(&reason(b"only the owner"), &[]),
            "\"only the owner\""
        );
        assert_eq!(
            explain(&reason(b"a\x1b[31m\n\"b\xff"), &[]),
            "\"a\\u{1b}[31m\\n\\\"b\u{fffd}\""
        );
        let long = explain(&reason(&[b'x'; 5000]), &[]);
        assert_eq!(long, format!("\"{}\"…", "x".repeat(TEXT_MAX)));
        let division = [&PANIC[..], &word(0x12)].concat();
        assert_eq!(explain(&division, &[]), "panic 0x12: a division by zero");
        let unknown = [&PANIC[..], &[0xff; 32]].concat();
        assert!(explain(&unknown, &[]).ends_with("of an unknown kind"));
        for broken in [&reason(b"abc")[..70], &reason(b"abc")[..4], &division[..35]] {
            assert!(explain(broken, &[]).contains("does not decode"));
        }
        let far = [&ERROR[..], &[0xff; 32]].concat();
        assert!(explain(&far, &[]).contains("does not decode"));
    }

    #[test]
    fn custom_errors_are_named_with_their_arguments() {
        let errors = errors();
        assert_eq!(errors.len(), 4);
        assert_eq!(errors[0].name(), "WrongBlock");
        let data = [&errors[0].selector()[..], &word(5), &word(7)].concat();
        assert_eq!(explain(&data, &errors), "WrongBlock(expected: 5, given: 7)");
        assert_eq!(
            explain(&data, &[]),
            format!(
                "the unknown error 0x{}… (68 bytes)",
                hex::encode(&data[..64])
            )
        );
        assert_eq!(explain(&errors[1].selector(), &errors), "Paused()");
        assert_eq!(
            explain(&data[..30], &errors),
            format!(
                "WrongBlock, with arguments that do not decode: 0x{}",
                hex::encode(&data[4..30])
            )
        );
    }

    #[test]
    fn arguments_of_all_kinds_are_shown() {
        let errors = errors();
        let mut minus = [0xff; 32];
        minus[31] = 0xfe;
        let mut tag = [0; 32];
        tag[..4].copy_from_slice(&[1, 2, 3, 4]);
        let mut text = [0; 32];
        text[..2].copy_from_slice(b"hi");
        let data = [
            &errors[2].selector()[..],
            &word(0xc0),
            &word(0xabcd),
            &word(0x100),
            &word(0x160),
            &tag,
            &minus,
            &word(2),
            &text,
            &word(2),
            &word(1),
            &word(0),
            &word(0),
        ]
        .concat();
        assert_eq!(
            explain(&data, &errors),
            "Odd(\"hi\", who: 0x000000000000000000000000000000000000ABcD, flags: [true, false], raw: 0x, \
             tag: 0x01020304, delta: -2)"
        );
    }

    #[test]
    fn arrays_in_arrays_are_not_decoded() {
        let errors = errors();
        // Each level of arrays has elements that all point to the same next level: 30⁴ numbers in 4 kB.
        let mut data = errors[3].selector().to_vec();
        data.extend(word(32));
        for _ in 0..3 {
            data.extend(word(30));
            for _ in 0..30 {
                data.extend(word(30 * 32));
            }
        }
        data.extend(word(30));
        data.extend([0; 30 * 32]);
        assert!(explain(&data, &errors).starts_with("Bomb, with arguments that do not decode"));
    }

    #[test]
    fn what_is_no_abi_is_refused() {
        for (wrong, why) in [
            ("", "EOF"),
            ("{}", "neither an array"),
            (
                r#"[{"type": "error", "name": "E", "inputs": [{"name": "x", "type": "uint7"}]}]"#,
                "\"E\"",
            ),
            (r#"[{"type": "error"}]"#, "the error null"),
        ] {
            let error = ErrorAbi::read(wrong).expect_err(wrong).to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_data_panics_and_reasons_are_short(
            selector in 0..6_usize,
            words in proptest::collection::vec(0..300_u64, 0..40),
            tail in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let errors = errors();
            let selectors = [ERROR, PANIC, errors[0].selector(), errors[2].selector(), errors[3].selector(), [9; 4]];
            let mut data = selectors[selector].to_vec();
            words.iter().for_each(|number| data.extend(word(*number)));
            data.extend(tail);
            let text = explain(&data, &errors);
            prop_assert!(text.chars().count() <= REASON_MAX, "{}", text);
            prop_assert!(!text.chars().any(char::is_control), "{:?}", text);
        }
    }
}
