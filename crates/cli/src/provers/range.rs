//! A range of headers as a file states it, and its comparison with the public inputs of proofs of chunks.

use ark_ff::PrimeField;
use proofmill_bitcoin::{ChunkStatement, RangeStatement};
use serde::{Deserialize, Serialize};

use crate::progress::counted;

/// A range of headers that is proven in chunks, as JSON. The heights are the word of the author of the file: the
/// proofs are of hashes, work and a number of headers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatedRange {
    /// Height of the first header.
    pub(crate) first: u64,
    /// Height of the last header.
    pub(crate) last: u64,
    /// The number of headers.
    pub(crate) headers: u64,
    /// The number of chunks, each with a proof in the aggregate.
    pub(crate) chunks: usize,
    /// Hash of the header before the first, as block explorers show it.
    pub(crate) prev_hash: String,
    /// Hash of the last header.
    pub(crate) last_hash: String,
    /// Total work, hexadecimal.
    pub(crate) work: String,
}

// === impl StatedRange ===

impl StatedRange {
    /// The file's content for a range from the height `first` on.
    pub(crate) fn of(first: u64, chunks: usize, range: &RangeStatement) -> Self {
        Self {
            first,
            last: first.saturating_add(range.count).saturating_sub(1),
            headers: range.count,
            chunks,
            prev_hash: range.prev_hash.to_string(),
            last_hash: range.last_hash.to_string(),
            work: range.work.to_string(),
        }
    }

    /// Checks that these public inputs, of one proof each, are of chunks that follow one another and together are this
    /// range. The error is for people.
    pub(crate) fn check<F: PrimeField>(&self, inputs: &[Vec<F>]) -> Result<(), String> {
        let chunks = inputs.iter().enumerate().map(|(chunk, inputs)| {
            let statement = ChunkStatement::from_inputs(inputs);
            statement.map_err(|error| format!("chunk {chunk}: {error}"))
        });
        let chunks: Vec<ChunkStatement> = chunks.collect::<Result<_, _>>()?;
        let range = RangeStatement::of(&chunks).map_err(|error| error.to_string())?;
        let proven = Self::of(self.first, chunks.len(), &range);
        for ((name, stated), (_, proven)) in self.fields().into_iter().zip(proven.fields()) {
            if stated != proven {
                return Err(format!(
                    "the range states {stated} as its {name}, and the proofs are of {proven}"
                ));
            }
        }
        Ok(())
    }

    /// Each field that proofs bind, or that follows from one, with its name.
    fn fields(&self) -> [(&'static str, String); 6] {
        [
            ("number of chunks", self.chunks.to_string()),
            ("number of headers", self.headers.to_string()),
            ("previous hash", self.prev_hash.clone()),
            ("last hash", self.last_hash.clone()),
            ("work", self.work.clone()),
            ("last height", self.last.to_string()),
        ]
    }

    /// The range in lines for people.
    pub(crate) fn lines(&self) -> [String; 4] {
        let work = self.work.trim_start_matches('0');
        [
            format!(
                "headers  {} in {}, each of which begins where the one before it ends; heights {} to {} by the word of \
                 the range's author",
                self.headers,
                counted(self.chunks, "chunk"),
                self.first,
                self.last,
            ),
            format!("after    {}", self.prev_hash),
            format!("tip      {}", self.last_hash),
            format!("work     0x{work}"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use proofmill_bitcoin::mainnet_headers;
    use proofmill_groth16::Bls12_381;

    use super::*;

    type Fr = <Bls12_381 as ark_ec::pairing::Pairing>::ScalarField;

    fn inputs(size: usize) -> (StatedRange, Vec<Vec<Fr>>) {
        let headers = mainnet_headers();
        let chunks = headers.chunks(size).filter_map(ChunkStatement::of);
        let chunks: Vec<_> = chunks.collect();
        let range = RangeStatement::of(&chunks).expect("a range");
        let inputs = chunks.iter().map(|chunk| chunk.to_inputs(size));
        let inputs = inputs.collect::<Result<_, _>>().expect("they fit");
        (StatedRange::of(7, chunks.len(), &range), inputs)
    }

    #[test]
    fn a_range_is_that_of_its_chunks_and_of_no_others() {
        let (range, right) = inputs(5);
        assert_eq!(
            (range.first, range.last, range.headers, range.chunks),
            (7, 38, 32, 7)
        );
        assert_eq!(range.check(&right), Ok(()));
        for last in 0..right.len() {
            range.check(&right[..last]).expect_err("chunks left out");
        }
        range.check(&right[1..]).expect_err("the first left out");
        for chunk in 0..right.len() {
            for input in 0..right[chunk].len() {
                let mut wrong = right.clone();
                wrong[chunk][input] += Fr::from(1);
                range.check(&wrong).expect_err("an input changed");
            }
        }
        let wrong = StatedRange {
            last: 39,
            ..range.clone()
        };
        let refused = wrong.check(&right).expect_err("another height");
        assert!(refused.contains("last height"), "{refused}");
    }
}
