//! Random weights.

use rand::TryRngCore;
use rand::rngs::OsRng;

use crate::Scalar;

/// The operating system refuses to give random numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random numbers: {0}")]
pub struct NoRandomness(String);

/// So many weights of 128 bits from the operating system. A sum of claims under them of which one does
/// not hold is zero with a probability of 2⁻¹²⁸.
///
/// Whoever can choose a claim after its weight is known can make a false one pass: draw them last.
///
/// # Errors
///
/// [`NoRandomness`]: nothing can be said of the claims then.
pub fn draw_weights(count: usize) -> Result<Vec<Scalar>, NoRandomness> {
    let mut bytes = vec![0; 16 * count];
    let drawn = OsRng.try_fill_bytes(&mut bytes);
    drawn.map_err(|error| NoRandomness(error.to_string()))?;
    let numbers = bytes.as_chunks().0.iter();
    Ok(numbers
        .map(|bytes| Scalar::from(u128::from_le_bytes(*bytes)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_differ() {
        let weights = draw_weights(100).unwrap();
        assert_eq!(weights.len(), 100);
        for (number, drawn) in weights.iter().enumerate() {
            assert!(!weights[..number].contains(drawn));
        }
    }
}
