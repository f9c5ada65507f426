//! A verifier of whole proofs, slow and plain, written from the paper, `docs/partition.md`, the formats of the
//! files, and arkworks alone; the aggregate's is beside it. Only the published constants of Poseidon2 are
//! those of our code.

use ark_ec::pairing::Pairing;
use ark_ff::{Field, PrimeField};
use ark_serialize::CanonicalDeserialize;
use proofmill_kernels::Poseidon2Field;
use sha2::{Digest, Sha256};

use super::naive_aggregation::{Chain, Key, Reader, compressed, verify_mirage};

/// The content of a file without its beginning and its checksum, which are checked.
fn content<'a>(bytes: &'a [u8], magic: &[u8], curve: &str) -> Option<&'a [u8]> {
    let (content, checksum) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
    let mut name = curve.as_bytes().to_vec();
    name.resize(16, 0);
    let beginning = [magic, &[1, 0, 0, 0], &name].concat();
    let is_right = Sha256::digest(content)[..] == *checksum && content.starts_with(&beginning);
    is_right.then(|| &content[beginning.len()..])
}

/// Multiplies a state by a matrix.
fn times<F: Field>(matrix: [[F; 4]; 4], state: [F; 4]) -> [F; 4] {
    matrix.map(|row| row.into_iter().zip(state).map(|(m, x)| m * x).sum())
}

/// Poseidon2 with feed-forward, as section 3.1 of eprint.iacr.org/2023/323 has it.
fn compress<F: Poseidon2Field>(nodes: [F; 4]) -> F {
    let parameters = F::poseidon2();
    let external = [[5, 7, 1, 3], [4, 6, 1, 1], [1, 3, 5, 7], [1, 1, 4, 6]];
    let external = external.map(|row| row.map(F::from));
    let internal = std::array::from_fn(|i| {
        std::array::from_fn(|j| match i == j {
            true => parameters.diagonal_less_one[i] + F::one(),
            false => F::one(),
        })
    });
    let mut state = times(external, nodes);
    let full = |state: [F; 4], constants: &[F; 4]| {
        let sums = std::array::from_fn(|i| (state[i] + constants[i]).pow([5]));
        times(external, sums)
    };
    for constants in &parameters.initial_full_constants {
        state = full(state, constants);
    }
    for constant in &parameters.partial_constants {
        state[0] = (state[0] + constant).pow([5]);
        state = times(internal, state);
    }
    for constants in &parameters.final_full_constants {
        state = full(state, constants);
    }
    state[0] + nodes[0]
}

/// True if the proof shows the statement; `None` and `Some(false)` are refusals.
pub(super) fn verify<E: Pairing<ScalarField: Poseidon2Field>>(
    curve: &str,
    key: &[u8],
    inputs: &[E::ScalarField],
    proof: &[u8],
) -> Option<bool> {
    let mut key = Reader(content(key, b"PMILLPVK", curve)?);
    if key.number()? != 2 {
        return None;
    }
    let partition = key.bytes(32)?;
    let (count, length) = (key.number()?, key.number()?);
    let address_bytes = key.bytes(4 * count)?;
    let parts_bytes = key.bytes(length)?;
    let is_file = content(parts_bytes, b"PMILLAGV", curve).is_some();
    if count != inputs.len() || !key.0.is_empty() || !is_file {
        return None;
    }
    let parts = Key::<E>::read(parts_bytes, curve)?;
    let mut chain = Chain::new("partition key", curve);
    chain.take("protocol", &2u64.to_le_bytes());
    chain.take("partition", partition);
    chain.take("addresses of public inputs", address_bytes);
    chain.take("key of the parts", &parts.digest);
    let digest = chain.give("digest");

    let mut proof = Reader(content(proof, b"PMILLPPR", curve)?);
    let levels = proof.number()?;
    let (_, commitment) = proof.elements::<E>(2)?;
    let scalar_bytes = proof.bytes(32 * (1 + 4 * levels))?;
    let scalars: Option<Vec<E::ScalarField>> = scalar_bytes
        .chunks(32)
        .map(|bytes| E::ScalarField::deserialize_compressed(bytes).ok())
        .collect();
    let scalars = scalars?;
    let (root, path) = (scalars[0], &scalars[1..]);

    let mut chain = Chain::new("partitioned proof", curve);
    chain.take("key", &digest[..32]);
    chain.take("parts", &(parts.count as u64).to_le_bytes());
    let input_bytes: Vec<u8> = inputs.iter().flat_map(compressed).collect();
    chain.take("public inputs", &input_bytes);
    chain.take("commitment to D", commitment);
    let alpha: E::ScalarField = chain.scalar("alpha");
    let beta: E::ScalarField = chain.scalar("beta");
    chain.take("root", &scalar_bytes[..32]);
    chain.take("path of the public state", &scalar_bytes[32..]);
    let context = chain.give("context");

    // Four children to a node, and a place for the state before the first part and after each.
    let is_depth = 4usize.pow(levels as u32) > parts.count
        && (levels == 1 || 4usize.pow(levels as u32 - 1) <= parts.count);
    let addresses = address_bytes.chunks(4);
    let addresses = addresses.map(|four| u32::from_le_bytes(four.try_into().unwrap()));
    let addresses: Vec<u32> = addresses.collect();
    let leaf = public_leaf(&addresses, inputs, alpha, beta)?;
    let mut node = compress(leaf);
    let mut leads = is_depth;
    for children in path.chunks(4) {
        leads &= children[0] == node;
        node = compress(children.try_into().unwrap());
    }
    leads &= node == root;
    let shared = [root, alpha, beta];
    let aggregate = verify_mirage::<E>(
        curve,
        parts_bytes,
        &context[..32],
        &shared,
        commitment,
        proof.0,
    )?;
    Some(leads && aggregate)
}

/// Salt 0, the last value by address, the difference of both sums over the public inputs, and the sum of an empty
/// multiset.
fn public_leaf<F: PrimeField>(
    addresses: &[u32],
    inputs: &[F],
    alpha: F,
    beta: F,
) -> Option<[F; 4]> {
    let (mut value, mut traces) = (F::zero(), F::zero());
    for (number, input) in inputs.iter().enumerate() {
        traces += (alpha - (beta * F::from(number as u64 + 1) + input)).inverse()?;
    }
    let mut before = 0;
    for address in addresses {
        if *address != before && *address != before + 1 || *address == 0 {
            return None;
        }
        before = *address;
        value = inputs[*address as usize - 1];
        traces -= (alpha - (beta * F::from(*address) + value)).inverse()?;
    }
    Some([F::zero(), value, traces, F::zero()])
}

#[test]
fn both_hashes_are_one() {
    fn agree<F: Poseidon2Field>() {
        for seed in 0..20u64 {
            let nodes = std::array::from_fn(|i| F::from(seed).pow([1 + i as u64 * seed]));
            assert_eq!(compress(nodes), crate::tree::compress(&nodes));
        }
    }
    agree::<ark_bn254::Fr>();
    agree::<ark_bls12_381::Fr>();
}
