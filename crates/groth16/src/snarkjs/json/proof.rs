//! `proof.json`.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::JsonError;
use super::document::{
    Name, PROTOCOL, check_curve, check_protocol, read, required, set, skip, write,
};
use super::element::{point_to_json, set_point};
use crate::{Proof, SnarkCurve};

/// Reads a proof. The protocol and curve may be missing, as in other programs' files, but must be right
/// if present. Unknown fields are skipped.
///
/// # Errors
///
/// [`JsonError`] unless the document is a proof over this curve whose elements are all canonical and in their
/// groups.
pub fn proof_from_json<E: SnarkCurve>(json: &[u8]) -> Result<Proof<E>, JsonError> {
    read(json, Document(PhantomData))
}

/// Writes a proof.
pub fn proof_to_json<E: SnarkCurve>(proof: &Proof<E>) -> String {
    write(&ProofJson {
        pi_a: point_to_json(&proof.a),
        pi_b: point_to_json(&proof.b),
        pi_c: point_to_json(&proof.c),
        protocol: PROTOCOL,
        curve: E::CURVE.snarkjs_name(),
    })
}

/// The fields in snarkjs's order.
#[derive(Serialize)]
struct ProofJson {
    pi_a: Value,
    pi_b: Value,
    pi_c: Value,
    protocol: &'static str,
    curve: &'static str,
}

struct Document<E>(PhantomData<E>);

impl<'de, E: SnarkCurve> DeserializeSeed<'de> for Document<E> {
    type Value = Proof<E>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Proof<E>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, E: SnarkCurve> Visitor<'de> for Document<E> {
    type Value = Proof<E>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a proof: an object with pi_a, pi_b and pi_c")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Proof<E>, A::Error> {
        let (mut a, mut b, mut c) = (None, None, None);
        let (mut protocol, mut curve) = (None, None);
        while let Some(Name(name)) = map.next_key()? {
            match &*name {
                "pi_a" => set_point(&mut a, "pi_a", &mut map)?,
                "pi_b" => set_point(&mut b, "pi_b", &mut map)?,
                "pi_c" => set_point(&mut c, "pi_c", &mut map)?,
                "protocol" => set(
                    &mut protocol,
                    "protocol",
                    check_protocol(map.next_value()?)?,
                )?,
                "curve" => {
                    check_curve(map.next_value()?, E::CURVE)?;
                    set(&mut curve, "curve", ())?;
                }
                _ => skip(&mut map)?,
            }
        }
        Ok(Proof {
            a: required(a, "pi_a")?,
            b: required(b, "pi_b")?,
            c: required(c, "pi_c")?,
        })
    }
}
