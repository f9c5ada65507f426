//! A slow and simple verifier of aggregates of Mirage proofs, written only from section 5 of the Hekaton paper,
//! `docs/aggregation-transcript.md`, the file formats and arkworks. It checks each equation separately, round by
//! round.

use ark_ec::pairing::{Pairing, PairingOutput};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{Field, PrimeField, Zero};
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use sha2::{Digest, Sha256};

/// SHA-256 in a chain, as the page describes it.
pub(crate) struct Chain(Vec<u8>);

impl Chain {
    pub(crate) fn new(protocol: &str, curve: &str) -> Self {
        let mut chain = Self(Vec::new());
        chain.take("version", b"proofmill aggregation v1");
        chain.take("protocol", protocol.as_bytes());
        chain.take("curve", curve.as_bytes());
        chain
    }

    pub(crate) fn take(&mut self, label: &str, bytes: &[u8]) {
        self.0.push(1);
        self.0.extend((label.len() as u64).to_le_bytes());
        self.0.extend(label.as_bytes());
        self.0.extend((bytes.len() as u64).to_le_bytes());
        self.0.extend(bytes);
    }

    pub(crate) fn give(&mut self, label: &str) -> [u8; 64] {
        self.0.push(2);
        self.0.extend((label.len() as u64).to_le_bytes());
        self.0.extend(label.as_bytes());
        let state = Sha256::digest(&self.0);
        let block = |number: u8| Sha256::digest([&[4, number][..], &state].concat());
        let wide = [block(0), block(1)].concat();
        self.0 = [&[3][..], &state].concat();
        wide.try_into().unwrap()
    }

    pub(crate) fn scalar<F: PrimeField>(&mut self, label: &str) -> F {
        F::from_le_bytes_mod_order(&self.give(label))
    }

    fn short<F: PrimeField>(&mut self, label: &str) -> F {
        F::from_le_bytes_mod_order(&self.give(label)[..16])
    }
}

/// Bytes that are taken from the front.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn number(&mut self) -> Option<usize> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?) as usize)
    }

    /// A point and its bytes.
    fn point<A: AffineRepr>(&mut self) -> Option<(A, &'a [u8])> {
        let bytes = self.bytes(A::zero().compressed_size())?;
        let point = A::deserialize_compressed(bytes).ok()?;
        let mut again = Vec::new();
        point.serialize_compressed(&mut again).ok()?;
        (again == bytes).then_some((point, bytes))
    }

    /// An element (τ + w)/(τ − w), and its bytes.
    fn element<E: Pairing>(&mut self) -> Option<(PairingOutput<E>, &'a [u8])> {
        type Prime<E> = <<E as Pairing>::TargetField as Field>::BasePrimeField;
        let size = Prime::<E>::zero().compressed_size();
        let bytes = self.bytes(6 * size)?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Some((PairingOutput::zero(), bytes));
        }
        let coordinates = bytes.chunks(size);
        let coordinates: Option<Vec<Prime<E>>> = coordinates
            .map(|bytes| Prime::<E>::deserialize_compressed(bytes).ok())
            .collect();
        let coordinates = coordinates?;
        let with = |w: i64| {
            let last = [w, 0, 0, 0, 0, 0].map(Prime::<E>::from);
            let all = coordinates.iter().copied().chain(last);
            E::TargetField::from_base_prime_field_elems(all)
        };
        let element = with(1)? * with(-1)?.inverse()?;
        // A check for the prime order, which is more than the format requires.
        let element = PairingOutput::<E>(element);
        let power: E::TargetField = element.0.pow(E::ScalarField::MODULUS);
        (power == <E::TargetField as Field>::ONE).then_some((element, bytes))
    }

    /// Reads `count` elements; returns them and their bytes.
    pub(crate) fn elements<E: Pairing>(
        &mut self,
        count: usize,
    ) -> Option<(Vec<PairingOutput<E>>, &'a [u8])> {
        let all = self.0;
        let elements = (0..count).map(|_| Some(self.element::<E>()?.0));
        let elements = elements.collect::<Option<Vec<_>>>()?;
        Some((elements, &all[..all.len() - self.0.len()]))
    }
}

/// The content of a verifying key's file.
pub(crate) struct Key<E: Pairing> {
    pub(crate) count: usize,
    g1: Vec<E::G1Affine>,
    g2: Vec<E::G2Affine>,
    alpha_beta: PairingOutput<E>,
    inputs: Vec<Vec<PairingOutput<E>>>,
    constants: Vec<Vec<PairingOutput<E>>>,
    pub(crate) digest: Vec<u8>,
}

pub(crate) fn compressed(point: impl CanonicalSerialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    point.serialize_compressed(&mut bytes).unwrap();
    bytes
}

impl<E: Pairing> Key<E> {
    pub(crate) fn read(bytes: &[u8], curve: &str) -> Option<Self> {
        let mut reader = Reader(&bytes[..bytes.len() - 32]);
        reader.bytes(28)?;
        let (count, inputs) = (reader.number()?, reader.number()?);
        let (mut g1, mut g2) = (Vec::new(), Vec::new());
        let (mut g1_bytes, mut g2_bytes) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let (point, bytes) = reader.point()?;
            g1.push(point);
            g1_bytes.extend(bytes);
        }
        for _ in 0..2 {
            let (point, bytes) = reader.point()?;
            g2.push(point);
            g2_bytes.extend(bytes);
        }
        let mut srs = Chain::new("reference string", curve);
        srs.take("G", &compressed(E::G1Affine::generator()));
        srs.take("H", &compressed(E::G2Affine::generator()));
        srs.take("first powers in the first group", &g1_bytes);
        srs.take("first powers in the second group", &g2_bytes);
        let mut chain = Chain::new("mirage key", curve);
        chain.take("reference string", &srs.give("digest")[..32]);
        chain.take("parts", &(count as u64).to_le_bytes());
        let (alpha_beta, bytes) = reader.element::<E>()?;
        chain.take("e(alpha, beta)", bytes);
        chain.take("inputs", &(inputs as u64).to_le_bytes());
        let mut commitments = |label: &str| {
            let (elements, bytes) = reader.elements::<E>(2)?;
            chain.take(label, bytes);
            Some(elements)
        };
        let inputs = (0..inputs).map(|_| commitments("commitment to an input"));
        let inputs = inputs.collect::<Option<Vec<_>>>()?;
        let constants = ["gamma", "delta", "eta"].map(&mut commitments);
        let constants = constants.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Self {
            count,
            g1,
            g2,
            alpha_beta,
            inputs,
            constants,
            digest: chain.give("digest")[..32].to_vec(),
        })
    }
}

/// True if the aggregate shows the statement; `None` and `Some(false)` are refusals.
pub(crate) fn verify_mirage<E: Pairing>(
    curve: &str,
    key: &[u8],
    context: &[u8],
    inputs: &[E::ScalarField],
    commitment: &[u8],
    aggregate: &[u8],
) -> Option<bool> {
    let key = Key::<E>::read(key, curve)?;
    let mut chain = Chain::new("mirage aggregate", curve);
    chain.take("key", &key.digest);
    chain.take("proofs", &(key.count as u64).to_le_bytes());
    chain.take("context", context);
    let scalars: Vec<u8> = inputs.iter().flat_map(compressed).collect();
    chain.take("shared public inputs", &scalars);
    chain.take("commitment to D", commitment);
    let (of_d, _) = Reader(commitment).elements::<E>(2)?;

    let mut name = curve.as_bytes().to_vec();
    name.resize(16, 0);
    let rounds = key.count.next_power_of_two().trailing_zeros();
    let mut head = b"PMILLAGG\x01\0\0\0\x02\0\0\0".to_vec();
    head.extend(name);
    head.extend(rounds.to_le_bytes());
    head.extend([6, 0, 0, 0, 0, 0, 0, 0]);
    let mut reader = Reader(aggregate);
    if reader.bytes(44)? != head {
        return None;
    }
    let (of_ab, bytes) = reader.elements::<E>(2)?;
    chain.take("commitment to A and B", bytes);
    let (of_c, bytes) = reader.elements::<E>(2)?;
    chain.take("commitment to C", bytes);
    let r: E::ScalarField = chain.scalar("r");
    let (cross, bytes) = reader.elements::<E>(6)?;
    chain.take("cross products", bytes);
    let s: E::ScalarField = chain.scalar("s");

    // Of L = A + s·S + s²·C + s³·D and R = B − s⁻¹·γ − s⁻²·δ − s⁻³·η: commitment and product.
    let power = |exponent: i32| match exponent {
        ..0 => s.pow([exponent.unsigned_abs().into()]).inverse().unwrap(),
        _ => s.pow([exponent as u64]),
    };
    let mut committed = [0, 1].map(|side: usize| {
        let mut sum = of_ab[side] + of_c[side] * power(2) + of_d[side] * power(3);
        sum += key.inputs[0][side] * s;
        for (of_input, input) in key.inputs[1..].iter().zip(inputs) {
            sum += of_input[side] * (*input * s);
        }
        for (number, constant) in key.constants.iter().enumerate() {
            sum -= constant[side] * power(-(number as i32) - 1);
        }
        sum
    });
    let powers_of_r = (0..key.count as u64).map(|i| r.pow([i]));
    let mut product = key.alpha_beta * powers_of_r.sum::<E::ScalarField>();
    for (exponent, cross) in [1, 2, 3, -1, -2, -3].into_iter().zip(cross) {
        product += cross * power(exponent);
    }

    let mut challenges: Vec<E::ScalarField> = Vec::new();
    for _ in 0..rounds {
        let (with, bytes) = reader.elements::<E>(3)?;
        chain.take("round: with x", bytes);
        let (inverse, bytes) = reader.elements::<E>(3)?;
        chain.take("round: with 1/x", bytes);
        let x: E::ScalarField = chain.short("x");
        let of = |number: usize| with[number] * x + inverse[number] * x.inverse().unwrap();
        committed[0] += of(0);
        committed[1] += of(1);
        product += of(2);
        challenges.push(x);
    }
    let (left, bytes) = reader.point::<E::G1Affine>()?;
    chain.take("folded left", bytes);
    let (right, bytes) = reader.point::<E::G2Affine>()?;
    chain.take("folded right", bytes);
    let (v1, v2, bytes) = two::<E::G2Affine>(&mut reader)?;
    chain.take("folded v", &bytes);
    let (w1, w2, bytes) = two::<E::G1Affine>(&mut reader)?;
    chain.take("folded w", &bytes);
    let z: E::ScalarField = chain.scalar("z");
    let (v1_opening, v2_opening, _) = two::<E::G2Affine>(&mut reader)?;
    let (w1_opening, w2_opening, _) = two::<E::G1Affine>(&mut reader)?;

    let mut holds = reader.0.is_empty() && product == E::pairing(left, right);
    for (committed, (v, w)) in committed.iter().zip([(v1, w1), (v2, w2)]) {
        holds &= *committed == E::pairing(left, v) + E::pairing(w, right);
    }
    let [v_value, w_value] = key_values(&challenges, r, z);
    let (g, h) = (E::G1::generator(), E::G2::generator());
    let openings = [(v1, v1_opening), (v2, v2_opening)];
    for (secret, (v, opening)) in key.g1.iter().zip(openings) {
        let value = v.into_group() - h * v_value;
        holds &= E::pairing(g, value) == E::pairing(secret.into_group() - g * z, opening);
    }
    let openings = [(w1, w1_opening), (w2, w2_opening)];
    for (secret, (w, opening)) in key.g2.iter().zip(openings) {
        let value = w.into_group() - g * w_value;
        holds &= E::pairing(value, h) == E::pairing(opening, secret.into_group() - h * z);
    }
    Some(holds)
}

fn two<A: AffineRepr>(reader: &mut Reader<'_>) -> Option<(A, A, Vec<u8>)> {
    let (left, left_bytes) = reader.point()?;
    let (right, right_bytes) = reader.point()?;
    Some((left, right, [left_bytes, right_bytes].concat()))
}

/// The values of the folded v and w at z, by the sums over all places.
fn key_values<F: Field>(challenges: &[F], r: F, z: F) -> [F; 2] {
    let size = 1u64 << challenges.len();
    let (mut v, mut w) = (F::ZERO, F::ZERO);
    for place in 0..size {
        let mut upper = F::ONE;
        for (round, challenge) in challenges.iter().enumerate() {
            if place >> (challenges.len() - 1 - round) & 1 == 1 {
                upper *= challenge;
            }
        }
        v += upper * r.inverse().unwrap().pow([place]) * z.pow([place]);
        w += upper.inverse().unwrap() * z.pow([size + place]);
    }
    [v, w]
}

#[test]
fn points_are_affine_in_naive_checks() {
    // The curve's identity is written and read as any point is.
    let identity = ark_bls12_381::G1Projective::zero().into_affine();
    let bytes = compressed(identity);
    let (read, _) = Reader(&bytes).point::<ark_bls12_381::G1Affine>().unwrap();
    assert_eq!(read, identity);
}
