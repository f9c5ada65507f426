//! snarkjs's JSON files, made by snarkjs (see `fixtures/README.md`): read, written back byte for
//! byte, verified; and refused when anything in them is changed.

use proofmill_groth16::snarkjs::{
    curve_of_json, inputs_from_json, inputs_to_json, proof_from_json, proof_to_json,
    verifying_key_from_json, verifying_key_to_json,
};
use proofmill_groth16::{
    Bls12_381, Bn254, Curve, PreparedVerifyingKey, SnarkCurve, verify, with_curve,
};
use serde_json::Value;

use crate::points::outside_subgroup;

struct Files {
    curve: Curve,
    key: &'static str,
    proof: &'static str,
    inputs: &'static str,
}

macro_rules! files {
    ($curve:expr, $folder:literal) => {
        Files {
            curve: $curve,
            key: include_str!(concat!("../fixtures/", $folder, "/verification_key.json")),
            proof: include_str!(concat!("../fixtures/", $folder, "/proof.json")),
            inputs: include_str!(concat!("../fixtures/", $folder, "/public.json")),
        }
    };
}

const FILES: [Files; 2] = [
    files!(Curve::Bn254, "bn254"),
    files!(Curve::Bls12_381, "bls12_381"),
];

/// Whether these files are read, and the proof verifies.
fn accepts<E: SnarkCurve>(key: &str, proof: &str, inputs: &str) -> Result<(), String> {
    let key = verifying_key_from_json::<E>(key.as_bytes()).map_err(|e| e.to_string())?;
    let proof = proof_from_json::<E>(proof.as_bytes()).map_err(|e| e.to_string())?;
    let inputs = inputs_from_json(inputs.as_bytes()).map_err(|e| e.to_string())?;
    verify(&PreparedVerifyingKey::from(key), &inputs, &proof).map_err(|e| e.to_string())
}

#[test]
fn files_of_snarkjs_verify_and_are_written_back_byte_for_byte() {
    for files in &FILES {
        for file in [files.key, files.proof] {
            assert_eq!(curve_of_json(file.as_bytes()).unwrap(), Some(files.curve));
        }
        with_curve!(files.curve, E => {
            accepts::<E>(files.key, files.proof, files.inputs).unwrap();
            let key = verifying_key_from_json::<E>(files.key.as_bytes()).unwrap();
            assert_eq!(verifying_key_to_json(&key), files.key);
            let proof = proof_from_json::<E>(files.proof.as_bytes()).unwrap();
            assert_eq!(proof_to_json(&proof), files.proof);
            let inputs = inputs_from_json::<<E as ark_ec::pairing::Pairing>::ScalarField>(
                files.inputs.as_bytes(),
            )
            .unwrap();
            assert_eq!(inputs_to_json(&inputs), files.inputs);
        });
    }
    assert_eq!(inputs_to_json::<ark_bn254::Fr>(&[]), "[\n]");
    assert_eq!(inputs_from_json::<ark_bn254::Fr>(b"[]").unwrap(), []);
}

/// Appends the paths of all values in a document that are neither lists nor objects.
fn leaves(value: &Value, path: String, out: &mut Vec<String>) {
    match value {
        Value::Array(list) => {
            for (i, value) in list.iter().enumerate() {
                leaves(value, format!("{path}/{i}"), out);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                leaves(value, format!("{path}/{name}"), out);
            }
        }
        _ => out.push(path),
    }
}

/// Replacements for a number, each of which must be refused.
fn replacements(original: &Value) -> Vec<Value> {
    let Value::String(text) = original else {
        return vec![
            Value::Null,
            0.into(),
            1.into(),
            3.into(),
            u64::MAX.into(),
            "2".into(),
        ];
    };
    let mut digits = text.clone().into_bytes();
    let last = digits.last_mut().unwrap();
    *last = if *last == b'9' { b'8' } else { *last + 1 };
    vec![
        String::from_utf8(digits).unwrap().into(),
        format!("0{text}").into(),
        format!("+{text}").into(),
        format!("-{text}").into(),
        format!("{text} ").into(),
        format!("{text}0").into(),
        "".into(),
        "7".into(),
        "0x7".into(),
        "9".repeat(200).into(),
        Value::Null,
        7.into(),
        Value::Array(vec![original.clone()]),
    ]
}

#[test]
fn every_tampering_is_refused() {
    for files in &FILES {
        let documents = [files.key, files.proof, files.inputs];
        let mut tried = 0;
        for (index, document) in documents.iter().enumerate() {
            let value: Value = serde_json::from_str(document).unwrap();
            let mut paths = Vec::new();
            leaves(&value, String::new(), &mut paths);
            for path in paths {
                let original = value.pointer(&path).unwrap().clone();
                for other in replacements(&original) {
                    if other == original {
                        continue;
                    }
                    let mut wrong = value.clone();
                    *wrong.pointer_mut(&path).unwrap() = other.clone();
                    let mut texts = documents.map(str::to_owned);
                    texts[index] = wrong.to_string();
                    let [key, proof, inputs] = &texts;
                    let verdict = with_curve!(files.curve, E => accepts::<E>(key, proof, inputs));
                    // A redundant field, which snarkjs ignores too.
                    let ignored = path.starts_with("/vk_alphabeta_12");
                    assert_eq!(verdict.is_ok(), ignored, "{path}: {other}: {verdict:?}");
                    tried += 1;
                }
            }
        }
        assert!(tried > 400, "{tried}");
    }
}

/// The modulus added to a number stands for the same element, and is refused all the same.
#[test]
fn numbers_are_canonical() {
    let files = &FILES[0];
    let input: Vec<String> = serde_json::from_str(files.inputs).unwrap();
    let modulus = "21888242871839275222246405745257275088548364400416034343698204186575808495617";
    let alias = modulus.strip_suffix("5617").unwrap().to_owned() + "5773";
    assert_eq!(input[0], "156");
    let wrong = files.inputs.replace("156", &alias);
    let error = accepts::<Bn254>(files.key, files.proof, &wrong).unwrap_err();
    assert!(
        error.starts_with("[0]: ") && error.contains("line 2"),
        "{error}"
    );
    assert!(inputs_from_json::<ark_bn254::Fr>(format!("[{modulus:?}]").as_bytes()).is_err());
}

#[test]
fn errors_name_the_field() {
    let files = &FILES[1];
    let proof = |from: &str, to: &str| {
        assert!(files.proof.contains(from), "{from}");
        proof_from_json::<Bls12_381>(files.proof.replacen(from, to, 1).as_bytes())
            .unwrap_err()
            .to_string()
    };
    let value: Value = serde_json::from_str(files.proof).unwrap();
    let text = |path: &str| value.pointer(path).unwrap().as_str().unwrap().to_owned();
    for (path, shown) in [("/pi_a/0", "pi_a[0]: "), ("/pi_b/1/0", "pi_b[1][0]: ")] {
        let error = proof(&text(path), "x");
        assert!(
            error.starts_with(shown) && error.contains("line "),
            "{error}"
        );
    }
    let error = proof(&text("/pi_c/1"), "5");
    assert!(
        error.starts_with("pi_c: not a point of the curve"),
        "{error}"
    );
    let error = proof("pi_c", "pi_d");
    assert!(error.contains("missing field `pi_c`"), "{error}");
    let error = proof("pi_c", "pi_a");
    assert!(error.contains("duplicate field `pi_a`"), "{error}");
    let error = proof("groth16", "plonk");
    assert!(
        error.starts_with("protocol: \"plonk\", only \"groth16\""),
        "{error}"
    );
    let error = proof("bls12381", "bn128");
    assert!(
        error.starts_with("curve: \"bn128\", not \"bls12381\""),
        "{error}"
    );
    let error = proof("bls12381", &"y".repeat(1000));
    assert!(error.len() < 200, "{error}");
    let error = proof(&format!("\"{}\"", text("/pi_b/0/1")), "[]");
    assert!(error.contains("digits at pi_b[0][1]"), "{error}");
    let error = proof(&format!("\"{}\",", text("/pi_a/1")), "");
    assert!(
        error.contains("invalid length 2") && error.contains("pi_a"),
        "{error}"
    );

    let key = files
        .key
        .replacen("\"nPublic\": 2", "\"nPublic\": 18446744073709551615", 1);
    let error = verifying_key_from_json::<Bls12_381>(key.as_bytes())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("IC: 3 points"), "{error}");
    for cut in (0..files.key.len()).step_by(7) {
        assert!(verifying_key_from_json::<Bls12_381>(&files.key.as_bytes()[..cut]).is_err());
    }
}

/// A point of the curve that is not in the group must not reach the pairing.
#[test]
fn points_outside_the_subgroup_are_refused() {
    let outside = outside_subgroup::<ark_bls12_381::g1::Config>();
    let mut proof = proof_from_json::<Bls12_381>(FILES[1].proof.as_bytes()).unwrap();
    proof.c = outside;
    let error = proof_from_json::<Bls12_381>(proof_to_json(&proof).as_bytes()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("pi_c: a point outside the subgroup"),
        "{error}"
    );
    // Infinity is of every subgroup; such a proof is read, and does not verify.
    proof.c = ark_bls12_381::G1Affine::identity();
    let text = proof_to_json(&proof);
    assert_eq!(
        proof_from_json::<Bls12_381>(text.as_bytes()).unwrap(),
        proof
    );
    assert!(accepts::<Bls12_381>(FILES[1].key, &text, FILES[1].inputs).is_err());
}

/// Proofs of other programs name no curve and no protocol.
#[test]
fn a_bare_proof_is_read() {
    let mut value: Value = serde_json::from_str(FILES[0].proof).unwrap();
    let fields = value.as_object_mut().unwrap();
    fields.remove("protocol");
    fields.remove("curve");
    fields.insert(
        "note".to_owned(),
        serde_json::json!({"deep": [[1, {}], "\u{1f600}\n"]}),
    );
    let text = value.to_string();
    assert_eq!(curve_of_json(text.as_bytes()).unwrap(), None);
    accepts::<Bn254>(FILES[0].key, &text, FILES[0].inputs).unwrap();
    let deep = format!("{{\"note\":{}", "[".repeat(1 << 20));
    assert!(curve_of_json(deep.as_bytes()).is_err());
}
