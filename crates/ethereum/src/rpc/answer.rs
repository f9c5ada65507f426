//! Strict reading of the values in JSON-RPC answers.

use alloy_primitives::{Address, B256, Bytes, FixedBytes, U256};
use serde_json::{Map, Value};

use super::error::RpcError;

/// Parses a quantity in JSON-RPC's format: `0x` and 1 to 16 hexadecimal digits without leading zeros, such as `0x10`.
pub fn quantity(text: &str) -> Option<u64> {
    u64::from_str_radix(digits(text, 16)?, 16).ok()
}

/// Parses a quantity of up to 32 hexadecimal digits.
pub(super) fn quantity_u128(text: &str) -> Option<u128> {
    u128::from_str_radix(digits(text, 32)?, 16).ok()
}

/// Parses a quantity of up to 64 hexadecimal digits.
pub(super) fn quantity_u256(text: &str) -> Option<U256> {
    U256::from_str_radix(digits(text, 64)?, 16).ok()
}

/// The digits of a quantity, of which there are at most `most`.
fn digits(text: &str, most: usize) -> Option<&str> {
    let digits = text.strip_prefix("0x")?;
    let is_number = (1..=most).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && (digits.len() == 1 || !digits.starts_with('0'));
    is_number.then_some(digits)
}

/// Parses bytes in JSON-RPC's format: `0x` and an even number of hexadecimal digits.
pub(crate) fn bytes(text: &str) -> Option<Bytes> {
    hex::decode(text.strip_prefix("0x")?).ok().map(Bytes::from)
}

/// Parses exactly `N` bytes in JSON-RPC's format.
pub(super) fn fixed<const N: usize>(text: &str) -> Option<FixedBytes<N>> {
    let digits = text.strip_prefix("0x")?;
    let mut bytes = FixedBytes::ZERO;
    hex::decode_to_slice(digits, bytes.as_mut_slice()).ok()?;
    Some(bytes)
}

/// A whole answer that is one value: text that `parse` accepts, and that an error calls `what`.
pub(super) fn scalar<T>(
    method: &'static str,
    result: &Value,
    what: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, RpcError> {
    let parsed = result.as_str().and_then(parse);
    parsed.ok_or_else(|| RpcError::Unexpected {
        method,
        why: format!("it is not {what}"),
    })
}

/// The fields of an object in an answer; errors name the method and the field.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    method: &'static str,
    object: &'a Map<String, Value>,
}

// === impl Fields ===

impl<'a> Fields<'a> {
    /// The fields of `value`.
    ///
    /// # Errors
    /// It is not an object.
    pub(super) fn of(method: &'static str, value: &'a Value) -> Result<Self, RpcError> {
        match value.as_object() {
            Some(object) => Ok(Self { method, object }),
            None => Err(RpcError::Unexpected {
                method,
                why: "it is not an object".to_owned(),
            }),
        }
    }

    /// An error about this object.
    pub(super) fn unexpected(&self, why: String) -> RpcError {
        let method = self.method;
        RpcError::Unexpected { method, why }
    }

    /// The value of a field; `None` if it is absent or null.
    pub(super) fn get(&self, field: &str) -> Option<&'a Value> {
        self.object.get(field).filter(|value| !value.is_null())
    }

    fn optional<T>(
        &self,
        field: &str,
        what: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, RpcError> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        match value.as_str().and_then(parse) {
            Some(parsed) => Ok(Some(parsed)),
            None => Err(self.unexpected(format!("`{field}` is not {what}"))),
        }
    }

    fn required<T>(
        &self,
        field: &str,
        what: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, RpcError> {
        let parsed = self.optional(field, what, parse)?;
        parsed.ok_or_else(|| self.unexpected(format!("`{field}` is missing")))
    }

    /// A quantity below 2⁶⁴.
    pub(super) fn quantity(&self, field: &str) -> Result<u64, RpcError> {
        self.required(field, QUANTITY, quantity)
    }

    /// A quantity below 2¹²⁸.
    pub(super) fn quantity_u128(&self, field: &str) -> Result<u128, RpcError> {
        self.required(field, QUANTITY, quantity_u128)
    }

    /// A quantity below 2¹²⁸; `None` if the field is absent or null.
    pub(super) fn optional_quantity_u128(&self, field: &str) -> Result<Option<u128>, RpcError> {
        self.optional(field, QUANTITY, quantity_u128)
    }

    /// A hash.
    pub(super) fn hash(&self, field: &str) -> Result<B256, RpcError> {
        self.required(field, HASH, fixed)
    }

    /// A hash; `None` if the field is absent or null.
    pub(super) fn optional_hash(&self, field: &str) -> Result<Option<B256>, RpcError> {
        self.optional(field, HASH, fixed)
    }

    /// An address.
    pub(super) fn address(&self, field: &str) -> Result<Address, RpcError> {
        self.required(field, ADDRESS, fixed).map(Address)
    }

    /// An address; `None` if the field is absent or null.
    pub(super) fn optional_address(&self, field: &str) -> Result<Option<Address>, RpcError> {
        let found = self.optional(field, ADDRESS, fixed)?;
        Ok(found.map(Address))
    }

    /// Bytes of any number.
    pub(super) fn bytes(&self, field: &str) -> Result<Bytes, RpcError> {
        self.required(field, BYTES, bytes)
    }

    /// The elements of an array.
    pub(super) fn array(&self, field: &str) -> Result<&'a [Value], RpcError> {
        let found = self.get(field).and_then(Value::as_array);
        let elements = found.map(Vec::as_slice);
        elements.ok_or_else(|| self.unexpected(format!("`{field}` is not an array")))
    }
}

pub(super) const QUANTITY: &str = "a number such as \"0x10\"";
pub(super) const HASH: &str = "a hash of 32 bytes in hexadecimal";
pub(super) const ADDRESS: &str = "an address of 20 bytes in hexadecimal";
pub(super) const BYTES: &str = "bytes in hexadecimal, such as \"0x00ff\"";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_hexadecimal_without_leading_zeros() {
        assert_eq!(quantity("0x0"), Some(0));
        assert_eq!(quantity("0x10"), Some(16));
        assert_eq!(quantity("0xffffffffffffffff"), Some(u64::MAX));
        assert_eq!(
            quantity_u128(&format!("0x{}", "f".repeat(32))),
            Some(u128::MAX)
        );
        assert_eq!(
            quantity_u256(&format!("0x{}", "F".repeat(64))),
            Some(U256::MAX)
        );
        for wrong in [
            "",
            "0x",
            "10",
            "0x+1",
            "0x-1",
            "0x10000000000000000",
            "0xg",
            "0X1",
            "0x01",
            "0x00",
            " 0x1",
            "0x1 ",
            "0x1_0",
            "0xé",
        ] {
            assert_eq!(quantity(wrong), None, "{wrong}");
        }
        assert_eq!(quantity_u128(&format!("0x1{}", "0".repeat(32))), None);
        assert_eq!(quantity_u256(&format!("0x1{}", "0".repeat(64))), None);
    }

    #[test]
    fn bytes_have_two_digits_each() {
        assert_eq!(bytes("0x"), Some(Bytes::new()));
        assert_eq!(bytes("0x00fF"), Some(Bytes::from(vec![0, 255])));
        for wrong in ["", "00", "0x0", "0xzz", "0x é"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
        assert_eq!(fixed::<2>("0x0102"), Some(FixedBytes([1, 2])));
        for wrong in ["0x01", "0x010203", "0102", "0x"] {
            assert_eq!(fixed::<2>(wrong), None, "{wrong}");
        }
    }
}
