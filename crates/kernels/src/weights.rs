//! Random weights, under which many claims are checked as one.

use rand::TryRngCore;
use rand::rngs::OsRng;

/// The operating system refuses to give random numbers, for this reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random numbers: {0}")]
pub struct NoRandomness(pub String);

/// Draws `count` weights of 128 bits from the operating system. A sum of claims under these weights that
/// contains a false claim is zero with a probability of 2⁻¹²⁸.
///
/// Draw the weights after the claims are fixed: a claim chosen with its weight known can be false and pass.
///
/// # Errors
///
/// [`NoRandomness`] if the operating system gives no random numbers; the claims cannot be checked then.
pub fn draw_weights<W: From<u128>>(count: usize) -> Result<Vec<W>, NoRandomness> {
    let mut bytes = vec![0; 16 * count];
    let drawn = OsRng.try_fill_bytes(&mut bytes);
    drawn.map_err(|error| NoRandomness(error.to_string()))?;
    let numbers = bytes.as_chunks().0.iter();
    Ok(numbers
        .map(|bytes| W::from(u128::from_le_bytes(*bytes)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_differ() {
        let weights: Vec<u128> = draw_weights(100).unwrap();
        assert_eq!(weights.len(), 100);
        for (number, drawn) in weights.iter().enumerate() {
            assert!(!weights[..number].contains(drawn));
        }
    }
}
