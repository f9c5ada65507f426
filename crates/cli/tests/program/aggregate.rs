//! `proofmill aggregate`: reference strings, keys, aggregates, and verdicts on them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use ark_ff::One;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use proofmill_groth16::snarkjs::{inputs_to_json, proof_to_json, verifying_key_to_json};
use proofmill_groth16::{Bls12_381, Bn254, ProvingKey, SnarkCurve, prove, setup};
use proofmill_r1cs::{Assignment, R1cs};
use proofmill_verifier::kinds::Groth16;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Finished, Running, finish, folder, proofmill, repository, run};

/// A circuit whose public inputs are the powers x², x³ … of a witness x.
struct Circuit<E: SnarkCurve> {
    system: R1cs<E::ScalarField>,
    key: ProvingKey<E>,
    inputs: usize,
    rng: StdRng,
    /// The witness of the next proof.
    next: u64,
}

impl<E: SnarkCurve> Circuit<E> {
    fn new(inputs: usize, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let one = E::ScalarField::one();
        let row = |variable: usize| vec![(one, variable)];
        let before = |power: usize| if power == 1 { inputs + 1 } else { power - 1 };
        let rows = [
            (1..=inputs).map(|power| row(before(power))).collect(),
            (1..=inputs).map(|_| row(inputs + 1)).collect(),
            (1..=inputs).map(row).collect(),
        ];
        let system = R1cs::from_rows(1 + inputs, 1, rows).expect("a system");
        Self {
            key: setup(&system, &mut rng).expect("a key"),
            system,
            inputs,
            rng,
            next: 3,
        }
    }

    fn write_key(&self, path: &Path) {
        fs::write(path, verifying_key_to_json(&self.key.vk)).expect("written");
    }

    /// Makes a proof of other public inputs than those before, and writes it into a folder.
    fn write_proof(&mut self, folder: &Path, is_compact: bool) {
        let x = E::ScalarField::from(self.next);
        self.next += 1;
        let powers = std::iter::successors(Some(x * x), |power| Some(*power * x));
        let inputs: Vec<_> = powers.take(self.inputs).collect();
        let assignment = Assignment::new(&inputs, &[x]);
        let proven = prove(&self.key, &self.system, &assignment, &mut self.rng);
        let (proof, _) = proven.expect("a proof");
        fs::create_dir_all(folder).expect("made");
        if is_compact {
            fs::write(folder.join("a.proof"), proof.to_bytes()).expect("written");
            let statement = Groth16::<E>::compact_statement(&inputs);
            fs::write(folder.join("a.public"), statement).expect("written");
        } else {
            fs::write(folder.join("proof.json"), proof_to_json(&proof)).expect("written");
            fs::write(folder.join("public.json"), inputs_to_json(&inputs)).expect("written");
        }
    }

    /// Writes `count` proofs into folders below `folder`, which has the key.
    fn write_proofs(&mut self, folder: &Path, count: usize) {
        for number in 0..count {
            self.write_proof(&folder.join(format!("{number:02}")), false);
        }
        self.write_key(&folder.join("vk.json"));
    }
}

/// A command's words, split at spaces.
fn aggregate(folder: &Path, words: &str) -> Finished {
    run(
        folder,
        ["aggregate"].into_iter().chain(words.split_whitespace()),
    )
}

fn make_string(folder: &Path, name: &str, curve: &str, capacity: usize) {
    let words = format!("setup --curve {curve} --capacity {capacity} -o {name}");
    aggregate(folder, &words).succeeded();
}

/// A folder with an aggregate of four proofs, `all.proof`, and the files it was made from.
fn four() -> tempfile::TempDir {
    let folder = folder();
    let here = folder.path();
    make_string(here, "s.srs", "bn254", 4);
    Circuit::<Bn254>::new(2, 1).write_proofs(&here.join("p"), 4);
    let words = "key --srs s.srs --key p/vk.json:4 -o aggregate.key";
    aggregate(here, words).succeeded();
    let words = "prove --srs s.srs --key aggregate.key p -o all.proof --public all.public";
    aggregate(here, words).succeeded();
    folder
}

const BY_PUBLIC: &str = "verify --key aggregate.key --public all.public all.proof";

/// Verifies by the JSON of each proof, in an order.
fn by_inputs(folder: &Path, order: [usize; 4]) -> Finished {
    let files = order.map(|number| format!("p/{number:02}/public.json"));
    let words = format!(
        "verify --key aggregate.key --inputs {} -- all.proof",
        files.join(" ")
    );
    aggregate(folder, &words)
}

fn flip(path: &Path, place: usize) {
    let mut bytes = fs::read(path).expect("a file");
    bytes[place] ^= 1;
    fs::write(path, bytes).expect("written");
}

fn length(path: &Path) -> usize {
    fs::metadata(path).expect("a file").len() as usize
}

#[test]
fn one_three_and_eight_proofs_are_aggregated() {
    let folder = folder();
    let here = folder.path();
    // Five are asked for.
    let words = "setup --curve bn254 --capacity 5 -o s0.srs --json";
    let ran = aggregate(here, words).succeeded();
    assert!(
        ran.stderr
            .contains("up to 8 proofs (a power of two; 5 were asked for)"),
        "{ran:?}"
    );
    assert!(
        ran.stderr.contains("warning: one party made this"),
        "{ran:?}"
    );
    assert_eq!(ran.json()["capacity"], 8);
    let ran = aggregate(here, "contribute s0.srs -o s.srs --json").succeeded();
    let contribution = ran.json()["contribution"].clone();
    assert!(
        ran.stderr.contains(contribution.as_str().expect("text")),
        "{ran:?}"
    );
    let checked = aggregate(here, "check s.srs --json").succeeded().json();
    assert_eq!(checked["contributions"][1], contribution);
    assert_eq!(checked["contributions"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        (&checked["capacity"], &checked["curve"]),
        (&8.into(), &"bn254".into())
    );
    let ran = aggregate(here, "check s.srs").succeeded();
    assert!(ran.stdout.contains("s.srs is consistent"), "{ran:?}");
    assert!(!ran.stderr.contains("one party"), "{ran:?}");
    // A verifier's digest is of the secrets: each contribution changes it.
    let before = aggregate(here, "check s0.srs --json").succeeded().json();
    assert_ne!(before["digest"], checked["digest"]);

    let mut circuit = Circuit::<Bn254>::new(2, 1);
    let mut sizes = Vec::new();
    for count in [1, 3, 8] {
        let own = here.join(count.to_string());
        circuit.write_proofs(&own, count);
        let words =
            format!("key --srs s.srs --key {count}/vk.json:{count} -o {count}/aggregate.key");
        aggregate(here, &words).succeeded();
        let words = format!(
            "prove --srs s.srs --key {count}/aggregate.key {count} -o {count}/all.proof --public \
             {count}/all.public --json"
        );
        let made = aggregate(here, &words).succeeded().json();
        assert_eq!(made["proofs"], count);
        assert_eq!(made["bytes"], length(&own.join("all.proof")));
        assert_eq!(length(&own.join("all.public")), 64 * count);
        sizes.push(length(&own.join("all.proof")));
        let words = format!(
            "verify --key {count}/aggregate.key --public {count}/all.public {count}/all.proof --json"
        );
        let verdict = aggregate(here, &words).succeeded().json();
        assert_eq!(
            (&verdict["valid"], &verdict["proofs"]),
            (&true.into(), &count.into())
        );
        let inputs: Vec<_> = (0..count)
            .map(|it| format!("{count}/{it:02}/public.json"))
            .collect();
        let words = format!(
            "verify --key {count}/aggregate.key --inputs {} -- {count}/all.proof",
            inputs.join(" ")
        );
        let ran = aggregate(here, &words).succeeded();
        assert!(ran.stdout.starts_with("valid    "), "{ran:?}");
        // Find the public inputs by the names of the files beside it.
        let proof = format!("{count}/all.proof");
        let ran = run(here, ["verify", &proof, "--json"]).succeeded();
        let first: Value =
            serde_json::from_str(ran.stdout.lines().next().expect("a line")).unwrap();
        assert_eq!(first["kind"], "groth16-aggregate-bn254");
        // And among the proofs that it is of.
        let ran = run(here, ["verify", &count.to_string()]).succeeded();
        let said = format!("{} proofs: {} valid", count + 1, count + 1);
        assert!(ran.stdout.starts_with(&said), "{ran:?}");
    }
    // 44 bytes of head, ten points and six elements of the target group; for each doubling six more elements
    // of 192 bytes.
    assert_eq!(sizes[0], 44 + 5 * 32 + 5 * 64 + 6 * 192);
    assert_eq!(sizes[1] - sizes[0], 2 * 6 * 192);
    assert_eq!(sizes[2] - sizes[1], 6 * 192);
}

#[test]
fn proofs_under_two_keys_over_bls12_381_and_in_both_formats() {
    let folder = folder();
    let here = folder.path();
    make_string(here, "s.srs", "bls12-381", 8);
    let mut first = Circuit::<Bls12_381>::new(1, 1);
    first.write_proofs(&here.join("a"), 2);
    first.write_proof(&here.join("a/compact"), true);
    Circuit::<Bls12_381>::new(3, 2).write_proofs(&here.join("b"), 5);
    let words = "key --srs s.srs --key a/vk.json:3 --key b/vk.json:5 -o aggregate.key --json";
    let made = aggregate(here, words).succeeded().json();
    assert_eq!(
        (&made["proofs"], &made["verifying_keys"]),
        (&8.into(), &2.into())
    );
    // The same once more: anybody can make it.
    let words = "key --srs s.srs --key a/vk.json:3 --key b/vk.json:5 -o again.key --json";
    assert_eq!(
        aggregate(here, words).succeeded().json()["digest"],
        made["digest"]
    );
    let read = |name: &str| fs::read(here.join(name)).expect("a file");
    assert_eq!(read("aggregate.key"), read("again.key"));
    // One key that is named twice is one key.
    let words =
        "key --srs s.srs --key a/vk.json:1 --key b/vk.json:1 --key a/vk.json:1 -o other.key --json";
    let made = aggregate(here, words).succeeded().json();
    assert_eq!(
        (&made["proofs"], &made["verifying_keys"]),
        (&3.into(), &2.into())
    );

    let words = "prove --srs s.srs --key aggregate.key a b -o all.proof --public all.public";
    aggregate(here, words).succeeded();
    aggregate(here, BY_PUBLIC).succeeded();
    run(here, ["verify", "all.proof"]).succeeded();
    let kind = "groth16-aggregate-bls12-381";
    let ran = run(here, ["verify", "all.proof", "--json"]).succeeded();
    assert!(ran.stdout.contains(kind), "{ran:?}");
    // In another order they are under the wrong keys: all are named but those of b in its own places.
    let words = "prove --srs s.srs --key aggregate.key b a -o no.proof";
    let ran = aggregate(here, words).failed(1, "6 of 8 proofs are not valid; nothing was written");
    assert!(ran.stderr.contains("refused  b/00/proof.json"), "{ran:?}");
    assert!(ran.stderr.contains("refused  a/compact/a.proof"), "{ran:?}");
    assert!(ran.stderr.contains("in the order of the paths"), "{ran:?}");
    assert!(!here.join("no.proof").exists());
}

/// Proofs by `proofmill prove`, under the key of a ceremony of snarkjs and under one by `proofmill setup`.
#[test]
fn proofs_of_a_circom_circuit_are_aggregated() {
    let folder = folder();
    let here = folder.path();
    let fixtures = repository("crates/groth16/tests/fixtures/bn254");
    for name in ["circuit.r1cs", "circuit.zkey", "witness.wtns"] {
        fs::copy(fixtures.join(name), here.join(name)).expect("copied");
    }
    run(here, ["setup", "circuit.r1cs", "-o", "own.zkey"]).succeeded();
    for (key, folder, count) in [("circuit.zkey", "a", 2), ("own.zkey", "b", 1)] {
        for number in 0..count {
            fs::create_dir_all(here.join(format!("{folder}/{number}"))).expect("made");
            let proof = format!("{folder}/{number}/proof.json");
            let public = format!("{folder}/{number}/public.json");
            run(here, ["prove", key, "witness.wtns", &proof, &public]).succeeded();
        }
        run(
            here,
            ["zkey", "export-vk", key, &format!("{folder}/vk.json")],
        )
        .succeeded();
    }
    make_string(here, "s.srs", "bn254", 3);
    let words = "key --srs s.srs --key a/vk.json:2 --key b/vk.json:1 -o aggregate.key";
    aggregate(here, words).succeeded();
    let words = "prove --srs s.srs --key aggregate.key a b -o all.proof --public all.public";
    aggregate(here, words).succeeded();
    let words = "verify --key aggregate.key --inputs a/0/public.json a/1/public.json \
                 b/0/public.json -- all.proof";
    aggregate(here, words).succeeded();
    run(here, ["verify", "all.proof"]).succeeded();
}

#[test]
fn other_inputs_and_keys_and_changed_aggregates_are_refused() {
    let folder = four();
    let here = folder.path();
    aggregate(here, BY_PUBLIC).succeeded();
    by_inputs(here, [0, 1, 2, 3]).succeeded();
    let ran = by_inputs(here, [0, 2, 1, 3]).failed(1, "the aggregate is not valid");
    assert!(ran.stdout.starts_with("INVALID  all.proof: "), "{ran:?}");
    by_inputs(here, [0, 1, 2, 2]).failed(1, "not valid");

    // Every part of the aggregate, and every public input.
    let proof = fs::read(here.join("all.proof")).expect("an aggregate");
    for place in (8..proof.len()).step_by(proof.len() / 24) {
        flip(&here.join("all.proof"), place);
        aggregate(here, BY_PUBLIC).failed(1, "not valid");
        fs::write(here.join("all.proof"), &proof).expect("written");
    }
    for input in 0..8 {
        flip(&here.join("all.public"), 32 * input);
        let ran = aggregate(here, &format!("{BY_PUBLIC} --json")).failed(1, "not valid");
        assert_eq!(ran.json()["valid"], false, "{ran:?}");
        run(here, ["verify", "all.proof"]).failed(1, "not valid");
        flip(&here.join("all.public"), 32 * input);
    }
    aggregate(here, BY_PUBLIC).succeeded();

    // Keys of other verifying keys, of another string, of another number of proofs.
    make_string(here, "t.srs", "bn254", 8);
    Circuit::<Bn254>::new(2, 2).write_key(&here.join("other.json"));
    for (string, keys) in [
        ("s.srs", "--key other.json:4"),
        ("s.srs", "--key p/vk.json:2 --key other.json:2"),
        ("t.srs", "--key p/vk.json:4"),
    ] {
        let words = format!("key --srs {string} {keys} -o other.key --force");
        aggregate(here, &words).succeeded();
        let words = "verify --key other.key --public all.public all.proof";
        aggregate(here, words).failed(1, "not valid");
    }
    let words = "key --srs t.srs --key p/vk.json:5 -o other.key --force";
    aggregate(here, words).succeeded();
    let words = "verify --key other.key --public all.public all.proof";
    let ran = aggregate(here, words).failed(1, "not valid");
    assert!(
        ran.stdout.contains("an aggregate of 5 proofs has"),
        "{ran:?}"
    );
}

#[test]
fn files_that_cannot_be_read_are_no_verdict_and_named() {
    let folder = four();
    let here = folder.path();
    let write = |name: &str, bytes: &[u8]| fs::write(here.join(name), bytes).expect("written");
    let read = |name: &str| fs::read(here.join(name)).expect("a file");
    let (proof, key) = (read("all.proof"), read("aggregate.key"));
    // A complete but too short list of inputs is not valid.
    write("all.proof", &proof[..proof.len() - 1]);
    let ran = aggregate(here, BY_PUBLIC).failed(1, "not valid");
    assert!(
        ran.stdout.contains("an aggregate of 4 proofs has"),
        "{ran:?}"
    );
    for other in [&b""[..], b"PMILL", b"{\"pi_a\": []}", &key[..]] {
        write("all.proof", other);
        let ran = aggregate(here, &format!("{BY_PUBLIC} --json")).failed(3, "no verdict");
        assert_eq!(ran.json()["valid"], Value::Null, "{ran:?}");
    }
    write("all.proof", &proof);
    for length in [0, 20, 40, key.len() - 1] {
        write("aggregate.key", &key[..length]);
        aggregate(here, BY_PUBLIC).failed(3, "aggregate.key: ");
    }
    let mut bent = key.clone();
    bent[100] ^= 1;
    write("aggregate.key", &bent);
    aggregate(here, BY_PUBLIC).failed(3, "aggregate.key: the checksum");
    write("aggregate.key", &key);
    let absent = BY_PUBLIC.replace("all.public", "absent");
    let ran = aggregate(here, &absent).failed(3, "no verdict");
    assert!(
        ran.stdout
            .contains("unread   all.proof: absent: No such file"),
        "{ran:?}"
    );
    aggregate(here, &BY_PUBLIC.replace("aggregate.key", "absent"))
        .failed(3, "absent: No such file");
    aggregate(here, &BY_PUBLIC.replace("aggregate.key", "p/vk.json"))
        .failed(3, "`proofmill aggregate key` makes a key for aggregates");
    write("p/02/public.json", b"[\"4\"");
    by_inputs(here, [0, 1, 2, 3]).failed(3, "no verdict");
    write("p/02/public.json", b"[\"4\"]");
    let ran = by_inputs(here, [0, 1, 2, 3]).failed(1, "not valid");
    assert!(
        ran.stdout
            .contains("p/02/public.json: 1 public input: the proof has 2"),
        "{ran:?}"
    );

    let fewer = "verify --key aggregate.key --inputs p/00/public.json -- all.proof";
    aggregate(here, fewer).failed(2, "--inputs: 1 file, where the key is for 4 proofs");
    let both =
        "verify --key aggregate.key --inputs p/00/public.json --public all.public -- all.proof";
    aggregate(here, both).failed(2, "cannot be used with");
    aggregate(here, "verify --key aggregate.key all.proof").failed(2, "required");
}

#[test]
fn false_proofs_are_named_and_nothing_is_written() {
    let folder = four();
    let here = folder.path();
    let before = fs::read(here.join("all.proof")).expect("an aggregate");
    let prove = "prove --srs s.srs --key aggregate.key p -o all.proof --public all.public";
    // Two proofs that are valid, of other public inputs.
    for (from, to) in [("p/00", "p/01"), ("p/03", "p/02")] {
        let name = "public.json";
        fs::copy(here.join(from).join(name), here.join(to).join(name)).expect("copied");
    }
    let ran = aggregate(here, prove).failed(1, "2 of 4 proofs are not valid; nothing was written");
    for (number, is_named) in [(0, false), (1, true), (2, true), (3, false)] {
        let line = format!("refused  p/{number:02}/proof.json: ");
        assert_eq!(ran.stderr.contains(&line), is_named, "{ran:?}");
    }
    fs::write(here.join("p/01/proof.json"), "{\"pi_a\": 7}").expect("written");
    let ran = aggregate(here, prove).failed(1, "1 of 4 proofs cannot be read");
    assert!(ran.stderr.contains("refused  p/01/proof.json: "), "{ran:?}");
    fs::remove_file(here.join("p/03/public.json")).expect("removed");
    let ran = aggregate(here, prove).failed(1, "2 of 4 proofs cannot be read");
    assert!(
        ran.stderr.contains("p/03/proof.json: no public inputs"),
        "{ran:?}"
    );
    fs::remove_file(here.join("p/03/proof.json")).expect("removed");
    aggregate(here, prove).failed(1, "3 proofs at these paths, where aggregate.key is for 4");
    let absent = "prove --srs s.srs --key aggregate.key p absent -o all.proof";
    let ran = aggregate(here, absent).failed(1, "1 of 1 file cannot be taken for a proof");
    assert!(
        ran.stderr.contains("refused  absent: No such file"),
        "{ran:?}"
    );
    assert_eq!(
        fs::read(here.join("all.proof")).expect("an aggregate"),
        before
    );
    // Inputs are never overwritten.
    for output in [
        "s.srs",
        "aggregate.key",
        "p/vk.json",
        "p/00/proof.json",
        "p/00/public.json",
    ] {
        let content = fs::read(here.join(output)).expect("a file");
        let words = format!("prove --srs s.srs --key aggregate.key p p/00 -o {output}");
        aggregate(here, &words).failed(2, output);
        assert_eq!(fs::read(here.join(output)).expect("a file"), content);
    }
}

#[test]
fn strings_and_keys_from_anyone_are_checked() {
    let folder = four();
    let here = folder.path();
    make_string(here, "t.srs", "bn254", 4);
    make_string(here, "bls.srs", "bls12-381", 4);
    let prove = |string: &str| {
        aggregate(
            here,
            &format!("prove --srs {string} --key aggregate.key p -o x.proof"),
        )
    };
    prove("t.srs").failed(1, "was made with another reference string");
    prove("bls.srs").failed(1, "over bls12-381, where the key is over bn254");
    prove("p/vk.json").failed(1, "not a reference string for aggregation");
    // The same secrets, extended: another string.
    aggregate(here, "contribute s.srs -o u.srs").succeeded();
    prove("u.srs").failed(1, "was made with another reference string");
    assert!(!here.join("x.proof").exists());

    let string = fs::read(here.join("s.srs")).expect("a string");
    for length in [0, 10, 30, string.len() / 2, string.len() - 1] {
        fs::write(here.join("bad.srs"), &string[..length]).expect("written");
        for words in ["check bad.srs", "contribute bad.srs -o new.srs"] {
            aggregate(here, words).failed(1, "bad.srs: ");
        }
    }
    fs::write(here.join("bad.srs"), &string).expect("written");
    flip(&here.join("bad.srs"), string.len() / 2);
    aggregate(here, "check bad.srs").failed(1, "bad.srs: the checksum");
    assert!(!here.join("new.srs").exists());

    let key = |words: &str| aggregate(here, &format!("key --srs s.srs {words} -o new.key"));
    key("--key p/vk.json:5").failed(1, "5 proofs: this reference string is for 1 to 4");
    key("--key p/vk.json").failed(
        2,
        "expected a verifying key and the number of proofs under it",
    );
    key("--key p/vk.json:0").failed(2, "\"0\" is not a number of proofs");
    key("--key absent:1").failed(1, "absent: No such file");
    key("--key p/00/proof.json:1").failed(1, "p/00/proof.json: another kind of file");
    let words = "key --srs bls.srs --key p/vk.json:4 -o new.key";
    aggregate(here, words).failed(
        1,
        "a key over bn254, where the reference string is over bls12-381",
    );
    // Nobody contributed to the second phase of this key.
    let mut circuit = Circuit::<Bn254>::new(1, 3);
    circuit.key.vk.delta_g2 = circuit.key.vk.gamma_g2;
    circuit.write_key(&here.join("weak.json"));
    key("--key weak.json:1").failed(1, "weak.json: ");
    assert!(!here.join("new.key").exists());

    // Existing files are not overwritten without --force.
    for words in [
        "setup --curve bn254 --capacity 2 -o s.srs",
        "contribute t.srs -o s.srs",
        "key --srs s.srs --key p/vk.json:4 -o aggregate.key",
    ] {
        aggregate(here, words).failed(2, "already exists");
    }
    aggregate(here, "contribute s.srs -o s.srs --force").failed(2, "would overwrite");
    aggregate(here, "setup --curve bn254 --capacity 1048577 -o w.srs").failed(2, "not in");
    aggregate(here, "setup --curve bn254 --capacity 0 -o w.srs").failed(2, "not in");
    assert_eq!(fs::read(here.join("s.srs")).expect("a string"), string);
}

#[test]
fn a_command_that_is_ended_leaves_nothing_behind() {
    let folder = folder();
    let here = folder.path();
    for signal in [Signal::KILL, Signal::TERM] {
        // It takes long, so that it is not done where this test waits long for its turn of the processor.
        let words = "aggregate setup --curve bls12-381 --capacity 262144 -o out/s.srs";
        fs::create_dir_all(here.join("out")).expect("made");
        let running = Running::start(proofmill(here).args(words.split(' ')));
        std::thread::sleep(Duration::from_millis(300));
        running.signal(signal);
        drop(running);
        assert_eq!(fs::read_dir(here.join("out")).expect("a folder").count(), 0);
    }
    // No file may grow, as on a full disk.
    make_string(here, "s.srs", "bn254", 2);
    let program = proofmill(here);
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", r#"trap "" XFSZ; ulimit -f 0; exec "$0" "$@""#])
        .arg(program.get_program())
        .args(["aggregate", "contribute", "s.srs", "-o", "out/s.srs"])
        .current_dir(here)
        .stdin(std::process::Stdio::null());
    finish(&mut command).failed(1, "cannot write out/s.srs");
    assert_eq!(fs::read_dir(here.join("out")).expect("a folder").count(), 0);
}
