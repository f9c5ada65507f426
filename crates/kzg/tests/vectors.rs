//! The consensus specification's known answers, in the form that `data/make.py` gives them.

use std::path::Path;

use proofmill_kzg::{Claim, Request, Scalar, Verifier};

/// A line of a file of cases.
struct Case<'a> {
    name: &'a str,
    verdict: &'a str,
    fields: Vec<&'a str>,
}

fn read(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    std::fs::read(path.join(name)).unwrap()
}

fn cases(text: &str) -> Vec<Case<'_>> {
    let line = |line| {
        let mut words = str::split_ascii_whitespace(line);
        Case {
            name: words.next().unwrap(),
            verdict: words.next().unwrap(),
            fields: words.collect(),
        }
    };
    text.lines().map(line).collect()
}

/// The bytes of segments, HEX*COUNT or FILE:BYTES.
fn data(segments: &str) -> Vec<u8> {
    let segment = |segment: &str| match segment.split_once('*') {
        Some((element, count)) => hex::decode(element).unwrap().repeat(count.parse().unwrap()),
        None => {
            let (file, length) = segment.split_once(':').unwrap();
            read(file)[..length.parse().unwrap()].to_vec()
        }
    };
    segments.split(',').flat_map(segment).collect()
}

/// Encodes a request whose fields may have wrong lengths; then the encoding has a wrong length too.
fn encoded(kind: u8, index: &[u8], commitment: &str, proof: &str, segments: &str) -> Vec<u8> {
    let points = [commitment, proof].map(|point| hex::decode(point).unwrap());
    [
        b"PMKZ",
        &[1, kind][..],
        index,
        &points[0],
        &points[1],
        &data(segments),
    ]
    .concat()
}

fn reduce(verifier: &Verifier, request: &[u8]) -> Option<Claim> {
    verifier.reduce(&Request::decode(request).ok()?).ok()
}

/// The specification's `output`, of requests that are checked together.
fn verdict(verifier: &Verifier, requests: &[Vec<u8>]) -> &'static str {
    let reduced: Option<Vec<_>> = requests.iter().map(|r| reduce(verifier, r)).collect();
    let Some(claims) = reduced else {
        return "null";
    };
    let alone = claims.iter().all(|claim| verifier.check(claim).is_ok());
    let weighted: Vec<_> = claims
        .iter()
        .zip((2..).map(|w: u64| Scalar::from(w)))
        .collect();
    assert_eq!(verifier.all_hold(&weighted), alone);
    if alone { "true" } else { "false" }
}

#[test]
fn blobs() {
    let verifier = Verifier::new();
    let text = String::from_utf8(read("blobs.txt")).unwrap();
    let cases = cases(&text);
    assert_eq!(cases.len(), 25);
    for Case {
        name,
        verdict: expected,
        fields,
    } in cases
    {
        let [commitment, proof, segments] = fields[..] else {
            panic!("{name}: {} fields", fields.len());
        };
        let request = encoded(1, &[], commitment, proof, segments);
        assert_eq!(verdict(&verifier, &[request]), expected, "{name}");
    }
}

#[test]
fn cells() {
    let verifier = Verifier::new();
    let text = String::from_utf8(read("cells.txt")).unwrap();
    let cases = cases(&text);
    assert_eq!(cases.len(), 21);
    for Case {
        name,
        verdict: expected,
        fields,
    } in cases
    {
        let (proofs, rest) = fields.as_chunks::<4>();
        assert!(rest.is_empty(), "{name}");
        let requests: Vec<_> = proofs
            .iter()
            .map(|[index, commitment, proof, segments]| {
                let index = index.parse::<u64>().unwrap().to_be_bytes();
                encoded(2, &index, commitment, proof, segments)
            })
            .collect();
        assert_eq!(verdict(&verifier, &requests), expected, "{name}");
    }
}
