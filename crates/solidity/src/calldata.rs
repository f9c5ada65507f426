//! Calls of the contracts: ABI encoding, and texts of the arguments.

use proofmill_groth16::{Curve, Proof, SnarkCurve};

use crate::encoding::{UnsupportedCurve, WORD_BYTES, encode_proof, encode_scalar, keccak256};

/// Bytes of a function's selector.
const SELECTOR_BYTES: usize = 4;

/// One proof of a batch, with its public inputs, the leading one left out.
#[derive(Clone, Debug)]
pub struct BatchEntry<E: SnarkCurve> {
    /// The proof.
    pub proof: Proof<E>,
    /// Its public inputs.
    pub inputs: Vec<E::ScalarField>,
}

/// A call of a verifier contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    curve: Curve,
    /// Encoded proofs, all of the same length.
    proofs: Vec<Vec<u8>>,
    /// Public inputs of each proof, as many for each.
    inputs: Vec<Vec<[u8; WORD_BYTES]>>,
    is_batch: bool,
}

/// The reason why there is no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The curve has no precompiles.
    #[error(transparent)]
    Curve(#[from] UnsupportedCurve),
    /// A proof without public inputs: no contract verifies it.
    #[error("no public inputs: no contract verifies such a proof")]
    NoInputs,
    /// A batch without proofs, which no contract accepts.
    #[error("a batch without proofs, which no contract accepts")]
    EmptyBatch,
    /// The proofs of a batch are not of one circuit.
    #[error(
        "proof {index} of the batch, counted from 0, has {found} public inputs, and the first one {expected}: \
         the proofs of a batch are of one circuit"
    )]
    InputCount {
        /// The proof, counted from 0.
        index: usize,
        /// Its number of public inputs.
        found: usize,
        /// The number of the first proof.
        expected: usize,
    },
}

// === impl Call ===

impl Call {
    /// A call of `verifyProof` with one proof and its public inputs, the leading one left out.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub fn single<E: SnarkCurve>(
        proof: &Proof<E>,
        inputs: &[E::ScalarField],
    ) -> Result<Self, CallError> {
        if inputs.is_empty() {
            return Err(CallError::NoInputs);
        }
        Ok(Self {
            curve: E::CURVE,
            proofs: vec![encode_proof(proof)?],
            inputs: vec![inputs.iter().map(encode_scalar).collect()],
            is_batch: false,
        })
    }

    /// A call of `verifyProofs`, which contracts with a batch verifier have.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub fn batch<E: SnarkCurve>(entries: &[BatchEntry<E>]) -> Result<Self, CallError> {
        let first = entries.first().ok_or(CallError::EmptyBatch)?;
        let expected = first.inputs.len();
        if expected == 0 {
            return Err(CallError::NoInputs);
        }
        let mut call = Self {
            curve: E::CURVE,
            proofs: Vec::with_capacity(entries.len()),
            inputs: Vec::with_capacity(entries.len()),
            is_batch: true,
        };
        for (index, entry) in entries.iter().enumerate() {
            let found = entry.inputs.len();
            if found != expected {
                return Err(CallError::InputCount {
                    index,
                    found,
                    expected,
                });
            }
            call.proofs.push(encode_proof(&entry.proof)?);
            call.inputs
                .push(entry.inputs.iter().map(encode_scalar).collect());
        }
        Ok(call)
    }

    /// The curve of the proofs.
    pub const fn curve(&self) -> Curve {
        self.curve
    }

    /// The function's signature, of which the selector is made: `verifyProof(bytes,uint256[])` over BLS12-381.
    pub fn signature(&self) -> String {
        let inputs = self.inputs[0].len();
        match (self.curve, self.is_batch) {
            (Curve::Bn254, false) => {
                format!("verifyProof(uint256[2],uint256[2][2],uint256[2],uint256[{inputs}])")
            }
            (Curve::Bn254, true) => format!("verifyProofs(uint256[8][],uint256[{inputs}][])"),
            (_, false) => "verifyProof(bytes,uint256[])".to_owned(),
            (_, true) => "verifyProofs(bytes,uint256[])".to_owned(),
        }
    }

    /// The first four bytes of keccak256 of the [signature](Self::signature).
    pub fn selector(&self) -> [u8; SELECTOR_BYTES] {
        let digest = keccak256(self.signature().as_bytes());
        [digest[0], digest[1], digest[2], digest[3]]
    }

    /// The proofs as the contract reads them, one after the other, 256 bytes each over BN254 and 512 over BLS12-381.
    pub fn proof_bytes(&self) -> Vec<u8> {
        self.proofs.concat()
    }

    /// The public inputs as words, those of the first proof first.
    pub fn input_words(&self) -> Vec<[u8; WORD_BYTES]> {
        self.inputs.concat()
    }

    /// Each proof as the contract reads it.
    pub fn proofs(&self) -> impl Iterator<Item = &[u8]> {
        self.proofs.iter().map(Vec::as_slice)
    }

    /// The public inputs of each proof, as words.
    pub fn inputs(&self) -> impl Iterator<Item = &[[u8; WORD_BYTES]]> {
        self.inputs.iter().map(Vec::as_slice)
    }

    /// Selector and arguments as the ABI of Solidity encodes them: the `data` of a transaction.
    pub fn abi(&self) -> Vec<u8> {
        let (proofs, inputs) = (self.proof_bytes(), self.input_words().concat());
        let mut data = self.selector().to_vec();
        match (self.curve, self.is_batch) {
            // Arrays of fixed length: their words only.
            (Curve::Bn254, false) => {
                data.extend(proofs);
                data.extend(inputs);
            }
            // Two arrays of as many elements; the length counts elements, which are arrays of fixed length.
            (Curve::Bn254, true) => {
                let count = self.proofs.len();
                extend_dynamic(&mut data, [(count, proofs), (count, inputs)]);
            }
            // A proof over BLS12-381 is a whole number of words: `bytes` needs no padding.
            _ => {
                let (bytes, words) = (proofs.len(), inputs.len() / WORD_BYTES);
                extend_dynamic(&mut data, [(bytes, proofs), (words, inputs)]);
            }
        }
        data
    }

    /// The arguments as text: over BN254 what `snarkjs zkey export soliditycalldata` prints; over BLS12-381 the proof in
    /// hexadecimal and a list of the inputs.
    pub fn arguments(&self) -> String {
        let inputs = self.inputs.iter();
        let inputs: Vec<String> = inputs.map(|words| list(&words.concat(), ",")).collect();
        match (self.curve, self.is_batch) {
            (Curve::Bn254, false) => {
                // snarkjs has a space after the comma between two coordinates.
                let pairs = self.proofs[0].chunks(2 * WORD_BYTES);
                let pairs: Vec<String> = pairs.map(|pair| list(pair, ", ")).collect();
                let (a, b, c) = (&pairs[0], &pairs[1..3].join(","), &pairs[3]);
                format!("{a},[{b}],{c},{}", inputs[0])
            }
            (Curve::Bn254, true) => {
                let proofs = self.proofs.iter();
                let proofs: Vec<String> = proofs.map(|proof| list(proof, ",")).collect();
                format!("[{}],[{}]", proofs.join(","), inputs.join(","))
            }
            _ => {
                let proofs = quoted(&self.proof_bytes());
                format!("{proofs},{}", list(&self.input_words().concat(), ","))
            }
        }
    }
}

/// Appends two arguments of dynamic length, each with its length: the offsets of both from the end of the selector, then
/// each length with its content.
fn extend_dynamic(data: &mut Vec<u8>, arguments: [(usize, Vec<u8>); 2]) {
    let [(first_length, first), (second_length, second)] = arguments;
    let first_at = 2 * WORD_BYTES;
    let second_at = first_at + WORD_BYTES + first.len();
    data.extend(count_word(first_at));
    data.extend(count_word(second_at));
    data.extend(count_word(first_length));
    data.extend(first);
    data.extend(count_word(second_length));
    data.extend(second);
}

fn count_word(count: usize) -> [u8; WORD_BYTES] {
    let mut word = [0; WORD_BYTES];
    word[WORD_BYTES - 8..].copy_from_slice(&(count as u64).to_be_bytes());
    word
}

/// Words in quotes, in brackets.
fn list(words: &[u8], separator: &str) -> String {
    let words: Vec<String> = words.chunks(WORD_BYTES).map(quoted).collect();
    format!("[{}]", words.join(separator))
}

fn quoted(bytes: &[u8]) -> String {
    format!("\"0x{}\"", hex::encode(bytes))
}
