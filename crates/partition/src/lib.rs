//! Circuits too large for one machine: cut into parts that share wires, and reduced to one rank-1
//! constraint system for each part, after sections 4.2, 4.3 and 6.3 of Hekaton
//! (eprint.iacr.org/2024/1208).
//!
//! # The model
//!
//! An author implements [`PartitionedCircuit`] once. Parts share wires by name: a *portal* is set in
//! one part and read in it and later ones ([`Part::set`], [`Part::get`]); a read-only memory is a
//! family of portals with an index, the address; a *cell* of the read-write memory is stored to and
//! loaded from any number of times ([`Part::store`], [`Part::load`]). Names do not depend on values,
//! so every access has an address that is fixed with the circuit; each store has one of its own.
//! Parts of a class have the same constraints, and share a key.
//!
//! What depends on values goes through one *multiset* of the whole circuit ([`Part::put`], [`Part::put_times`],
//! [`Part::take`]): everything put, in any part, is taken, in any part. With it circuits look values up in tables
//! (`examples/lookup.rs`) and check memories whose addresses are computed: to read, a machine takes the record
//! (address, time, word) of the access before and puts it again with the time of this one.
//!
//! ```
//! use ark_bn254::Fr;
//! use ark_relations::gr1cs::LinearCombination;
//! use ark_std::rand::{SeedableRng, rngs::StdRng};
//! use proofmill_partition::{Challenges, Part, Partition, PartitionError, PartitionedCircuit};
//!
//! /// y = x⁸ for a public y, one squaring in each part.
//! struct EighthPower(Fr);
//!
//! impl PartitionedCircuit<Fr> for EighthPower {
//!     fn num_parts(&self) -> usize {
//!         3
//!     }
//!     fn class(&self, part: usize) -> &'static str {
//!         ["first", "middle", "last"][part]
//!     }
//!     fn num_public_inputs(&self) -> usize {
//!         1
//!     }
//!     fn public_inputs(&self) -> Vec<Fr> {
//!         let square = self.0 * self.0;
//!         vec![square * square * square * square]
//!     }
//!     fn synthesize(&self, part: usize, wires: &mut Part<'_, Fr>) -> Result<(), PartitionError> {
//!         let x = match part {
//!             0 => wires.witness(self.0)?,
//!             _ => wires.get(("power", part - 1))?,
//!         };
//!         let square = match part {
//!             2 => wires.public_input(0)?,
//!             _ => wires.witness(x.value * x.value)?,
//!         };
//!         let of = |wire: proofmill_partition::Wire<Fr>| {
//!             move || LinearCombination::from(wire.variable)
//!         };
//!         wires.cs().enforce_r1cs_constraint(of(x), of(x), of(square))?;
//!         if part < 2 {
//!             wires.set(("power", part), square)?;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! // Once for the circuit: it needs no witness.
//! let partition = Partition::new(&EighthPower(Fr::from(0)))?;
//! // For each proof.
//! let circuit = EighthPower(Fr::from(3));
//! let traces = partition.trace(&circuit)?;
//! // Drawn after the traces are committed to; here they are not.
//! let challenges = Challenges { alpha: Fr::from(1001), beta: Fr::from(1002) };
//! let states = partition.states(&traces, challenges, &mut StdRng::seed_from_u64(1))?;
//! for part in 0..partition.num_parts() {
//!     let trace = partition.part_trace(&traces, part)?;
//!     let opening = states.opening(part)?;
//!     let assignment = partition.assignment(&circuit, part, &trace, &challenges, &opening)?;
//!     let class = &partition.classes()[partition.class_of(part)?];
//!     assert!(class.system().is_satisfied(assignment.z()).is_ok());
//! }
//! // The verifier's check besides the proofs of all parts.
//! let (public, path) = (partition.public_state(), states.public_path());
//! assert!(public.holds(&[Fr::from(6561)], &challenges, states.root(), &path));
//! # Ok::<(), PartitionError>(())
//! ```
//!
//! # The reduction
//!
//! Every access is an entry (address, value). The trace *by part*, T, has them in the order of parts
//! and of each part's code; the trace *by address*, A, has the same entries sorted by address. Both
//! begin with the public inputs, which have addresses 1, 2, …, and are cut at the same places: a part
//! with s accesses has s entries of each. They are committed to, and so are the values of all *transfers*, puts and
//! takes, with the multiplicities of those that have one. Then α and β are drawn. Two running sums (logarithmic
//! derivatives, eprint.iacr.org/2022/1530) are kept in *states*: of 1/(α − (value + β·address)) over T, less that over
//! A; and of times/(α − value) over puts, less 1/(α − value) over takes. The state after part i is (salt, last value
//! of A, the first sum, the second). States are the leaves of a Merkle tree ([`tree`]), with the one that the public
//! inputs make at position 0. Part i opens the leaves at positions i − 1 and i (counted from 1), and checks that its
//! entries and transfers lead from one to the other. After the last part both sums are 0.
//!
//! The instance of a part is 1, the root, α, β, and inputs that the partition fixes
//! ([`Partition::preprocessed`]): a verifier's key has them, no prover chooses them. Those that are addresses are in
//! the instance times β ([`Partition::instance`]), so that an entry's denominator is a sum of variables. The committed
//! variables are the first of the witness.
//!
//! # Possible cheats of a prover, and the checks that refuse them
//!
//! | cheat | check |
//! |---|---|
//! | set a portal to another value than the circuit's | [`Check::Circuit`]: the entry is equal to the sum it is set to |
//! | read another value than was set | the entry of A has the set value's address: [`Check::EqualValues`] |
//! | hide that entry: A is no permutation of T | [`Check::EqualTraces`], except with probability 2·entries/\|F\| over α and β (Schwartz–Zippel) |
//! | add something else to a sum than its entry yields | [`Check::SumByPart`], [`Check::SumByAddress`], [`Check::Multiset`]: what is added, times the denominator, is the numerator |
//! | an entry or value at which a denominator is 0 | the same rows: the numerator is not 0. Only a put with multiplicity 0 could then add anything, at 1/\|F\| for each such put |
//! | sort A so that equal addresses are apart | addresses of A are preprocessed; that they start at 1 and go on with the same or the next was checked when the partition was made |
//! | read another address (a renamed portal, another part's) | addresses of T are preprocessed; then the sums differ: [`Check::EqualTraces`] |
//! | return a stale value from a cell | each store has its own address, fixed with the circuit: as a wrong value |
//! | skip the equality where A is cut between parts | the address before is preprocessed, the value before comes from the state: [`Check::EqualValues`] of the next part |
//! | begin with other sums than the public inputs make, or with a multiset that is not empty | position 0 is the verifier's: [`PublicState::holds`] |
//! | claim another public input | as above; parts read public inputs as entries of T |
//! | go on from another state than the part before ended with | both open the same position: [`Check::LeafBefore`], [`Check::LeafAfter`], and collision resistance |
//! | swap, repeat or shift parts | positions and addresses are preprocessed, the number of parts is the verifier's |
//! | a tree with two leaves for a position | the path's bits are preprocessed and as many as the tree has levels: one root has one leaf at each position |
//! | take a leaf for a node above it, or the reverse | all paths have the same length |
//! | end early, with sums that differ | whether a part is last is preprocessed: [`Check::EqualTraces`], [`Check::EmptyMultiset`] |
//! | leave entries out of A | both traces have as many entries, cut at the same places |
//! | take a value that was never put, put one that is never taken, or another number of times | [`Check::EmptyMultiset`], except with probability 2·transfers/\|F\| over α |
//! | put or take another value than the circuit's, or with another multiplicity | [`Check::Circuit`]: the committed value is equal to the wire or sum |
//! | leave out a put or a take, or make a put of a take | transfers are rows of the class, whose digest is fixed |
//! | wrap a multiplicity around the characteristic | one transfer adds 1 or −1, and there are fewer than 2³²; a put with a multiplicity adds any number, which for a table is right, and with −1 is a take: circuits that must not allow it use puts without |
//! | cancel an entry of a trace against a value of the multiset | each has its own sum |
//! | choose values after α and β | the committed variables are fixed by commitments, of which α and β are hashes ([`proof`]) |
//! | a constraint system that is not the class's, other constants | class digests and preprocessed inputs are in [`Partition::digest`], and in the verifier's key |
//!
//! # The differences from the paper
//!
//! * Entries have no part number: T's order is fixed by preprocessed addresses and committed places,
//!   so nothing is left for it to say. The two constraints that sort T are gone, and so is T's last
//!   entry in states.
//! * That A is sorted is checked once, when the partition is made, as its addresses are preprocessed.
//! * Sums of fractions instead of products, whose denominators are sums of variables: one constraint for an entry
//!   instead of two. An access costs 3 constraints instead of 13, and a set one more.
//! * The multiset. A transfer costs one constraint, and one more for each of its values, which ties the committed
//!   variable to the circuit: two for a put or a take, three for a put with a multiplicity.
//! * The public inputs are entries of both traces, and the leaf at position 0 is the state that they
//!   make, which a verifier computes: any part can read them, and the first part is like the others.
//! * The tree has four children to a node: 267 constraints for two binary levels.
//!
//! # One proof
//!
//! [`proof`] has the rest: keys, the transcript that draws α and β, the prover that holds one part at a time, and
//! the verifier. `docs/partition.md` has the whole protocol.
//!
//! # Memory
//!
//! Parts are synthesised one after the other; no structure has all constraints. A [`Partition`] holds
//! one constraint system for each class, and a number of 32 bits for each access and for each shared wire; [`Traces`]
//! hold one value for each shared wire and for each transfer, and one for each multiplicity; [`States`] six field
//! elements for each part.
//!
//! # The verifier alone
//!
//! Without the feature `prover`, which is on by default, there are [`proof::VerifyingKey`], [`proof::PartitionProof`],
//! [`PublicState`] and [`tree`]: enough to verify, and no code that makes constraints or proofs. It does not build for
//! `wasm32-unknown-unknown`: the kernels call blst's assembly and the operating system's memory maps.

#[cfg(feature = "prover")]
mod access_order;
#[cfg(feature = "prover")]
mod accesses;
#[cfg(feature = "prover")]
pub mod applications;
#[cfg(feature = "prover")]
mod circuit;
#[cfg(feature = "prover")]
mod class;
#[cfg(all(feature = "prover", debug_assertions))]
mod compiled_once;
#[cfg(feature = "prover")]
mod encoding;
#[cfg(feature = "prover")]
mod error;
#[cfg(feature = "prover")]
mod gadgets;
#[cfg(feature = "prover")]
mod memory_check;
#[cfg(feature = "prover")]
mod monolithic;
#[cfg(feature = "prover")]
mod multiset;
#[cfg(feature = "prover")]
mod name;
#[cfg(feature = "prover")]
mod part;
#[cfg(feature = "prover")]
mod part_runs;
#[cfg(feature = "prover")]
mod partition;
#[cfg(feature = "prover")]
mod partition_file;
pub mod proof;
mod public_state;
#[cfg(feature = "prover")]
mod state;
#[cfg(feature = "prover")]
mod synthesis;
// The fuzz targets, which tests run too, name the crate as others do.
#[cfg(all(test, feature = "prover"))]
extern crate self as proofmill_partition;
#[cfg(all(test, feature = "prover"))]
mod tests;
pub mod tree;

#[cfg(all(feature = "prover", debug_assertions))]
pub use compiled_once::compiled_once;
pub use public_state::{Challenges, PublicState};

/// For [`with_partition_curve!`].
#[cfg(feature = "prover")]
#[doc(hidden)]
pub use proofmill_groth16 as groth16;

#[cfg(feature = "prover")]
pub use {
    accesses::MAX_ACCESSES,
    circuit::{DistributedCircuit, PartitionedCircuit},
    class::{Class, Layout},
    encoding::EncodingError,
    error::{Difference, PartitionError},
    memory_check::{Check, Opening, PartTrace},
    monolithic::Monolithic,
    multiset::{MAX_TRANSFER_VALUES, Transfer},
    name::Name,
    part::{Part, Wire},
    partition::{MAX_PARTS, Partition, Traces},
    partition_file::PartitionFileError,
    state::States,
};
