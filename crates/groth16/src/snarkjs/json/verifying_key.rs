//! `verification_key.json`.

use std::fmt;
use std::marker::PhantomData;

use ark_ff::Field;
use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

use super::JsonError;
use super::document::{
    Name, PROTOCOL, check_curve, check_protocol, read, required, set, skip, write,
};
use super::element::{Point, element_to_json, point_to_json, set_point};
use super::inputs::{MAX_INPUTS, check_count};
use super::path::Path;
use crate::{SnarkCurve, VerifyingKey};

/// Reads an untrusted verification key. Its circuit digest is all zeros, as the file has none. Protocol,
/// curve and number of public inputs must be present and right.
///
/// `vk_alphabeta_12`, the pairing of α and β, is skipped, as neither snarkjs nor this crate uses it for verification.
/// Unknown fields are skipped too.
///
/// # Errors
///
/// [`JsonError`] unless the document is a key over this curve, with at most [`MAX_INPUTS`] public inputs, whose
/// elements are all canonical and in their groups.
pub fn verifying_key_from_json<E: SnarkCurve>(json: &[u8]) -> Result<VerifyingKey<E>, JsonError> {
    read(json, Document(PhantomData))
}

/// Writes a verification key.
pub fn verifying_key_to_json<E: SnarkCurve>(key: &VerifyingKey<E>) -> String {
    let alpha_beta = E::pairing(key.alpha_g1, key.beta_g2).0;
    let instance: Vec<Value> = key.instance.iter().map(point_to_json).collect();
    write(&VerifyingKeyJson {
        protocol: PROTOCOL,
        curve: E::CURVE.snarkjs_name(),
        n_public: key.instance.len().saturating_sub(1),
        vk_alpha_1: point_to_json(&key.alpha_g1),
        vk_beta_2: point_to_json(&key.beta_g2),
        vk_gamma_2: point_to_json(&key.gamma_g2),
        vk_delta_2: point_to_json(&key.delta_g2),
        vk_alphabeta_12: target_to_json(&alpha_beta),
        ic: instance,
    })
}

/// The fields in snarkjs's order.
#[derive(Serialize)]
struct VerifyingKeyJson {
    protocol: &'static str,
    curve: &'static str,
    #[serde(rename = "nPublic")]
    n_public: usize,
    vk_alpha_1: Value,
    vk_beta_2: Value,
    vk_gamma_2: Value,
    vk_delta_2: Value,
    vk_alphabeta_12: Value,
    #[serde(rename = "IC")]
    ic: Vec<Value>,
}

/// An element of the pairing's target: a quadratic extension of a cubic one of a quadratic one,
/// with w² = v and v³ the same non-residue for arkworks and snarkjs.
fn target_to_json<F: Field>(element: &F) -> Value {
    let Value::Array(parts) = element_to_json(element) else {
        return Value::Null;
    };
    let pairs: Vec<&[Value]> = parts.chunks(2).collect();
    json!(pairs.chunks(3).collect::<Vec<_>>())
}

struct Document<E>(PhantomData<E>);

impl<'de, E: SnarkCurve> DeserializeSeed<'de> for Document<E> {
    type Value = VerifyingKey<E>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, E: SnarkCurve> Visitor<'de> for Document<E> {
    type Value = VerifyingKey<E>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a verification key: an object with vk_alpha_1, vk_beta_2, … and IC")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut protocol, mut curve, mut inputs) = (None, None, None);
        let (mut alpha, mut beta, mut gamma, mut delta) = (None, None, None, None);
        let mut instance = None;
        while let Some(Name(name)) = map.next_key()? {
            match &*name {
                "protocol" => set(
                    &mut protocol,
                    "protocol",
                    check_protocol(map.next_value()?)?,
                )?,
                "curve" => {
                    check_curve(map.next_value()?, E::CURVE)?;
                    set(&mut curve, "curve", ())?;
                }
                "nPublic" => set(&mut inputs, "nPublic", map.next_value::<u64>()?)?,
                "vk_alpha_1" => set_point(&mut alpha, "vk_alpha_1", &mut map)?,
                "vk_beta_2" => set_point(&mut beta, "vk_beta_2", &mut map)?,
                "vk_gamma_2" => set_point(&mut gamma, "vk_gamma_2", &mut map)?,
                "vk_delta_2" => set_point(&mut delta, "vk_delta_2", &mut map)?,
                "IC" => set(
                    &mut instance,
                    "IC",
                    map.next_value_seed(Instance(PhantomData))?,
                )?,
                _ => skip(&mut map)?,
            }
        }
        required(protocol, "protocol")?;
        required(curve, "curve")?;
        let inputs = required(inputs, "nPublic")?;
        let instance: Vec<E::G1Affine> = required(instance, "IC")?;
        if inputs.checked_add(1) != Some(instance.len() as u64) {
            return Err(A::Error::custom(format_args!(
                "IC: {} points, for {inputs} public inputs there must be one more than these",
                instance.len()
            )));
        }
        Ok(VerifyingKey {
            circuit: [0; 32],
            alpha_g1: required(alpha, "vk_alpha_1")?,
            beta_g2: required(beta, "vk_beta_2")?,
            gamma_g2: required(gamma, "vk_gamma_2")?,
            delta_g2: required(delta, "vk_delta_2")?,
            instance,
        })
    }
}

/// The points of the instance.
struct Instance<A>(PhantomData<A>);

impl<'de, P: crate::PointGroup> DeserializeSeed<'de> for Instance<P> {
    type Value = Vec<P>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<P>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, P: crate::PointGroup> Visitor<'de> for Instance<P> {
    type Value = Vec<P>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of 1 to {} points at IC", MAX_INPUTS + 1)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<P>, A::Error> {
        let path = Path::ROOT.field("IC");
        let mut points: Vec<P> = Vec::new();
        while let Some(point) = list.next_element_seed(Point::at(path.index(points.len())))? {
            if !points.is_empty() {
                check_count(points.len() - 1)?;
            }
            points.push(point);
        }
        Ok(points)
    }
}
