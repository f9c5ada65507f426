//! Amounts as people write them.

use alloy_primitives::U256;

/// Units and the number of decimal places by which they are larger than a wei, largest first.
const UNITS: [(&str, usize); 3] = [("ether", 18), ("gwei", 9), ("wei", 0)];

/// The most digits of an amount in wei: 2²⁵⁶ has 78.
const DIGITS_MAX: usize = 78;

/// The reason why text is not an amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(String);

/// Reads an amount with its unit (`wei`, `gwei` or `ether`), such as `30 gwei` or `0.1 ether`, in wei.
///
/// # Errors
/// [`UnitError`], with what is wrong: no unit, no number, more decimal places than the unit has, or 2²⁵⁶ or more.
pub fn parse(text: &str) -> Result<U256, UnitError> {
    let failed = |why: String| Err(UnitError(why));
    if text.len() > 2 * DIGITS_MAX {
        return failed("an amount is a number and a unit: it is too long".to_owned());
    }
    let text = text.trim();
    let number = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let number = number.trim_end();
    let Some((unit, places)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return failed(format!(
            "{text:?} has no unit: write the amount in wei, gwei or ether, such as \"30 gwei\""
        ));
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        _ => (number, ""),
    };
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return failed(format!(
            "{text:?} is no amount: write digits, perhaps with a point, and a unit, such as \"0.1 ether\""
        ));
    }
    if fraction.len() > *places {
        return failed(format!(
            "{text:?} is no whole number of wei: {unit} has {places} decimal places"
        ));
    }
    let digits = format!("{whole}{fraction}{}", "0".repeat(places - fraction.len()));
    let digits = digits.trim_start_matches('0');
    if digits.len() > DIGITS_MAX {
        return failed(format!(
            "{text:?} is more than any amount: 2²⁵⁶ wei or more"
        ));
    }
    if digits.is_empty() {
        return Ok(U256::ZERO);
    }
    U256::from_str_radix(digits, 10).map_err(|_| {
        UnitError(format!(
            "{text:?} is more than any amount: 2²⁵⁶ wei or more"
        ))
    })
}

/// An amount of wei with a unit that suits it, exactly: `30 gwei`, `0.1 ether`. Amounts below 0.000001 gwei are in wei,
/// below 0.0001 ether in gwei. [`parse`] reads it back.
pub fn show(wei: U256) -> String {
    let digits = wei.to_string();
    let (unit, places) = match digits.len() {
        15.. => UNITS[0],
        4.. => UNITS[1],
        _ => UNITS[2],
    };
    let padded = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = padded.split_at(padded.len() - places);
    match fraction.trim_end_matches('0') {
        "" => format!("{whole} {unit}"),
        fraction => format!("{whole}.{fraction} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_are_read_with_their_unit() {
        for (text, wei) in [
            ("0 wei", 0_u64),
            ("7wei", 7),
            ("30 gwei", 30_000_000_000),
            ("1.5gwei", 1_500_000_000),
            ("0.000000001 gwei", 1),
            ("0.1 ether", 100_000_000_000_000_000),
            (" 00.10 ether", 100_000_000_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(U256::from(wei)), "{text}");
        }
        let most = format!("{} wei", U256::MAX);
        assert_eq!(parse(&most), Ok(U256::MAX));
        for (wrong, why) in [
            ("", "no unit"),
            ("30", "no unit"),
            ("30 eth", "no unit"),
            ("30 GWEI", "no unit"),
            ("gwei", "no amount"),
            (".5 gwei", "no amount"),
            ("5. gwei", "no amount"),
            ("-5 gwei", "no amount"),
            ("+5 gwei", "no amount"),
            ("1e9 wei", "no amount"),
            ("1_000 wei", "no amount"),
            ("0x10 wei", "no amount"),
            ("1.2.3 ether", "no amount"),
            ("1 0 wei", "no amount"),
            ("٣ wei", "no amount"),
            ("0.5 wei", "0 decimal places"),
            ("0.0000000001 gwei", "9 decimal places"),
            (&format!("1{} wei", "0".repeat(78)), "more than any amount"),
            (&format!("{}0 wei", U256::MAX), "more than any amount"),
            (&"9".repeat(1000), "too long"),
        ] {
            let error = parse(wrong).expect_err(wrong).to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn amounts_are_shown_in_the_unit_that_suits_them() {
        for (wei, text) in [
            (0_u64, "0 wei"),
            (999, "999 wei"),
            (1_000, "0.000001 gwei"),
            (30_000_000_000, "30 gwei"),
            (99_999_999_999_999, "99999.999999999 gwei"),
            (100_000_000_000_000, "0.0001 ether"),
            (1_500_000_000_000_000_000, "1.5 ether"),
        ] {
            assert_eq!(show(U256::from(wei)), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(limbs in any::<[u64; 4]>(), shift in 0..256_usize) {
            let wei = U256::from_limbs(limbs) >> shift;
            prop_assert_eq!(parse(&show(wei)), Ok(wei));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}|[0-9. ]{0,90}(wei|gwei|ether)") {
            let _ = parse(&text);
        }
    }
}
