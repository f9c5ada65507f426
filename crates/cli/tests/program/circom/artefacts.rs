//! Files that circom and snarkjs make from the test circuits, made once and kept in the target folder.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ark_bn254::Fr;
use sha2::{Digest, Sha256};

use super::powers_of_tau;
use super::tools::{circom, home, snarkjs};
use crate::support::finish;

/// A circuit of `tests/circom`.
#[derive(Debug)]
pub(crate) struct Circuit {
    pub(crate) name: &'static str,
    pub(crate) curve: Curve,
    /// Folder of the files made from the circuit, once they are made.
    made: OnceLock<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Curve {
    Bn254,
    Bls12381,
}

/// A Merkle proof with Poseidon.
pub(crate) static MERKLE: Circuit = Circuit::new("merkle", Curve::Bn254);
/// A signature on Baby Jubjub.
pub(crate) static EDDSA: Circuit = Circuit::new("eddsa", Curve::Bn254);
/// SHA-256 of 64 bytes.
pub(crate) static SHA256: Circuit = Circuit::new("sha256", Curve::Bn254);
/// Four factors, over BLS12-381.
pub(crate) static PRODUCT: Circuit = Circuit::new("product", Curve::Bls12381);

/// Base-two logarithm of the constraints that the powers of tau of BN254 suffice for: those of SHA-256.
const POWER: u32 = 16;
/// The same of BLS12-381, for the product.
const SMALL_POWER: &str = "4";
/// Beacon of the last contribution to every key; an arbitrary value.
const BEACON: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// Version of the files made here; increase it when they change.
const EDITION: u8 = 1;

// === impl Circuit ===

impl Circuit {
    const fn new(name: &'static str, curve: Curve) -> Self {
        Self {
            name,
            curve,
            made: OnceLock::new(),
        }
    }

    /// The compiled circuit.
    pub(crate) fn r1cs(&self) -> PathBuf {
        self.file("r1cs")
    }

    /// An assignment that satisfies it.
    pub(crate) fn witness(&self) -> PathBuf {
        self.file("wtns")
    }

    /// A key that snarkjs made.
    pub(crate) fn key(&self) -> PathBuf {
        self.file("zkey")
    }

    /// The verifying key, as snarkjs exports it.
    pub(crate) fn verifying_key(&self) -> PathBuf {
        self.file("vk.json")
    }

    /// The powers of tau that the key was made with.
    pub(crate) fn powers_of_tau(&self) -> PathBuf {
        powers_of_tau_of(self.curve)
    }

    fn file(&self, extension: &str) -> PathBuf {
        let folder = self.made.get_or_init(|| self.make());
        folder.join(format!("{}.{extension}", self.name))
    }

    /// Compiles it, and makes a witness, and a key with a contribution.
    fn make(&self) -> PathBuf {
        kept(self.name, |folder| {
            let name = self.name;
            let mut compile = circom();
            compile
                .args([&format!("circuits/{name}.circom"), "-l", "node_modules"])
                .args(["--r1cs", "--wasm", "--prime", self.curve.prime(), "-o"])
                .arg(folder);
            finish(&mut compile).succeeded();
            let input = home().join("inputs").join(format!("{name}.json"));
            let path = |extension: &str| format!("{name}.{extension}");
            snarkjs(
                folder,
                [
                    "wtns",
                    "calculate",
                    &format!("{name}_js/{name}.wasm"),
                    &input.to_string_lossy(),
                    &path("wtns"),
                ],
            )
            .succeeded();
            let powers = powers_of_tau_of(self.curve);
            snarkjs(
                folder,
                [
                    "groth16",
                    "setup",
                    &path("r1cs"),
                    &powers.to_string_lossy(),
                    "first.zkey",
                ],
            )
            .succeeded();
            snarkjs(
                folder,
                ["zkey", "beacon", "first.zkey", &path("zkey"), BEACON, "10"],
            )
            .succeeded();
            std::fs::remove_file(folder.join("first.zkey")).expect("removed");
            snarkjs(
                folder,
                [
                    "zkey",
                    "export",
                    "verificationkey",
                    &path("zkey"),
                    &path("vk.json"),
                ],
            )
            .succeeded();
        })
    }
}

// === impl Curve ===

impl Curve {
    /// Circom's name for the curve's scalar field.
    fn prime(self) -> &'static str {
        match self {
            Self::Bn254 => "bn128",
            Self::Bls12381 => "bls12381",
        }
    }
}

/// Prepared powers of tau: for BLS12-381 a small ceremony by snarkjs from beginning to end, for
/// BN254 our own of a known τ (see [`powers_of_tau`]).
fn powers_of_tau_of(curve: Curve) -> PathBuf {
    static BN254: OnceLock<PathBuf> = OnceLock::new();
    static BLS12_381: OnceLock<PathBuf> = OnceLock::new();
    match curve {
        Curve::Bn254 => BN254
            .get_or_init(|| {
                kept("bn254", |folder| {
                    let [tau, alpha, beta] = [0x7461_7531, 0x616c_7068, 0x6265_7461].map(Fr::from);
                    let file = powers_of_tau::prepared(POWER, tau, alpha, beta);
                    std::fs::write(folder.join("powers.ptau"), file).expect("written");
                })
            })
            .join("powers.ptau"),
        Curve::Bls12381 => BLS12_381
            .get_or_init(|| {
                kept("bls12-381", |folder| {
                    let steps: [&[&str]; 3] = [
                        &["new", "bls12-381", SMALL_POWER, "new.ptau"],
                        &["beacon", "new.ptau", "beacon.ptau", BEACON, "10"],
                        &["prepare", "phase2", "beacon.ptau", "powers.ptau"],
                    ];
                    for step in steps {
                        let args = std::iter::once("powersoftau").chain(step.iter().copied());
                        snarkjs(folder, args).succeeded();
                    }
                })
            })
            .join("powers.ptau"),
    }
}

/// A folder in the target folder, filled by `make` once for these tools, circuits and inputs. If it exists, it is
/// complete.
fn kept(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    static EDITIONS: OnceLock<PathBuf> = OnceLock::new();
    let all = EDITIONS.get_or_init(|| {
        Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("interop")
            .join(edition())
    });
    let folder = all.join(name);
    if !folder.exists() {
        std::fs::create_dir_all(all).expect("made");
        let begun = tempfile::Builder::new()
            .prefix(&format!(".{name}-"))
            .tempdir_in(all)
            .expect("a folder");
        make(begun.path());
        let begun = begun.keep();
        if std::fs::rename(&begun, &folder).is_err() {
            // Another run of the tests was first.
            assert!(folder.exists(), "{} cannot be made", folder.display());
            std::fs::remove_dir_all(begun).expect("removed");
        }
    }
    folder
}

/// A short digest of everything that the files here depend on: tools, circuits, inputs and the edition.
fn edition() -> String {
    let mut digest = Sha256::new();
    digest.update([EDITION]);
    digest.update(std::fs::read(home().join("package-lock.json")).expect("the lock file"));
    for part in ["circuits", "inputs"] {
        let entries = std::fs::read_dir(home().join(part)).expect("a folder");
        let mut files: Vec<PathBuf> = entries.map(|it| it.expect("an entry").path()).collect();
        files.sort();
        for file in files {
            digest.update(file.file_name().expect("a name").as_encoded_bytes());
            digest.update(std::fs::read(file).expect("a file"));
        }
    }
    hex::encode(&digest.finalize()[..8])
}
