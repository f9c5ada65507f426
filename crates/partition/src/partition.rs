//! A partition: the part of a circuit in parts that does not depend on a witness.

use std::fmt;

use ark_ff::{BigInteger, PrimeField};
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_kernels::Poseidon2Field;
use proofmill_r1cs::Assignment;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::access_order::AccessOrder;
use crate::accesses::{MAX_ACCESSES, Memory, Recorder, Run};
use crate::class::Class;
use crate::memory_check;
use crate::multiset::{self, Transfer};
use crate::part_runs::{Classes, check_transfers, later_part};
use crate::public_state::{Challenges, PublicState};
use crate::state::States;
use crate::synthesis::{self, PartValues};
use crate::tree::depth;
use crate::{Opening, PartTrace, PartitionError, PartitionedCircuit};

/// The most parts of a partition.
pub const MAX_PARTS: usize = 1 << 24;

/// Domain of [`Partition::digest`].
const DIGEST_DOMAIN: &[u8] = b"proofmill/partition/3";

/// The witness-independent data of a circuit in parts: the constraints of each class, and the preprocessed
/// inputs of each part. Keys are made from it, and its digest represents it in transcripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition<F: PrimeField> {
    pub(crate) order: AccessOrder,
    pub(crate) classes: Vec<Class<F>>,
    pub(crate) parts: Vec<PartRecord<F>>,
    pub(crate) depth: usize,
}

/// The record of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartRecord<F> {
    pub(crate) class: usize,
    pub(crate) constants: Vec<F>,
    /// The digest of its accesses and transfers: another run of its code must have the same.
    pub(crate) accesses: [u8; 32],
}

/// The values of all accesses to shared wires, public inputs included: one for each wire, however often it is read; and
/// the values of all transfers.
///
/// They are secret: `Debug` prints their numbers only.
#[derive(Clone, PartialEq, Eq)]
pub struct Traces<F> {
    /// The value of each address, those of the public inputs first: each has one.
    values: Vec<F>,
    public: usize,
    /// The number of accesses.
    accesses: usize,
    /// The values of each part's transfers.
    transfers: Vec<Box<[F]>>,
}

// === impl Traces ===

impl<F> Traces<F> {
    /// The public inputs.
    pub fn public_inputs(&self) -> &[F] {
        &self.values[..self.public]
    }

    /// The value of each address.
    pub(crate) fn values(&self) -> &[F] {
        &self.values
    }

    /// The values of each part's transfers.
    pub(crate) fn transfers(&self) -> &[Box<[F]>] {
        &self.transfers
    }
}

impl<F> fmt::Debug for Traces<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Traces");
        let transferred: usize = self.transfers.iter().map(|values| values.len()).sum();
        shown
            .field("values", &self.values.len())
            .field("transferred", &transferred)
            .finish()
    }
}

// === impl Partition ===

impl<F: Poseidon2Field> Partition<F> {
    /// Runs the code of all parts for their constraints, on the current rayon pool. The circuit needs no witness. The
    /// constraints of one part for each thread are held at a time, besides those of each class.
    ///
    /// # Errors
    ///
    /// [`PartitionError`] if the circuit breaks a rule of [`PartitionedCircuit`];
    /// [`PartitionError::ClassDiffers`] names the first difference between parts of a class.
    pub fn new(circuit: &impl PartitionedCircuit<F>) -> Result<Self, PartitionError> {
        let count = circuit.num_parts();
        if !(1..=MAX_PARTS).contains(&count) {
            return Err(PartitionError::Size {
                what: "parts",
                found: count,
                least: 1,
                most: MAX_PARTS,
            });
        }
        let public_inputs = circuit.num_public_inputs();
        if public_inputs > MAX_ACCESSES {
            return Err(PartitionError::Size {
                what: "public inputs",
                found: public_inputs,
                least: 0,
                most: MAX_ACCESSES,
            });
        }
        let depth = depth(count + 1);
        let mut recorder = Recorder::new(public_inputs)?;
        let mut starts = vec![public_inputs];
        let Classes {
            classes,
            mut firsts,
        } = Classes::of(circuit, depth)?;
        let mut parts = Vec::with_capacity(count);
        let mut transferred = 0;
        let window = 2 * rayon::current_num_threads();
        for start in (0..count).step_by(window) {
            let runs: Vec<_> = (start..count.min(start + window))
                .into_par_iter()
                .map(|part| match firsts.contains_key(&part) {
                    // It was run for its class.
                    true => Ok(None),
                    false => later_part(circuit, part, &classes).map(Some),
                })
                .collect();
            for (part, run) in (start..).zip(runs) {
                let run = match run? {
                    Some(run) => run,
                    None => firsts.remove(&part).expect("the first part of a class"),
                };
                recorder.record(part, &run.log)?;
                if let Some(difference) = run.difference {
                    return Err(PartitionError::ClassDiffers {
                        class: circuit.class(part),
                        first: classes[run.class].first_part(),
                        part,
                        difference,
                    });
                }
                transferred += run.run.transferred.len();
                check_transfers(transferred)?;
                starts.push(recorder.addresses.len());
                parts.push(PartRecord {
                    class: run.class,
                    constants: run.run.constants,
                    accesses: run.run.digest,
                });
            }
        }
        Ok(Self {
            order: AccessOrder::new(recorder.addresses, starts),
            classes,
            parts,
            depth,
        })
    }

    /// The number of parts.
    pub fn num_parts(&self) -> usize {
        self.parts.len()
    }

    /// The number of public inputs of the whole circuit.
    pub fn num_public_inputs(&self) -> usize {
        self.order.public().len()
    }

    /// The number of accesses of all parts, those of the public inputs included: the length of
    /// either trace.
    pub const fn num_accesses(&self) -> usize {
        self.order.entries()
    }

    /// The number of addresses, one for each wire that parts share: the values that [`Traces`] have.
    pub const fn num_addresses(&self) -> usize {
        self.order.num_addresses()
    }

    /// The number of values that all parts put into the multiset and take, multiplicities included.
    pub fn num_transferred(&self) -> usize {
        let parts = self.parts.iter();
        parts
            .map(|part| self.classes[part.class].shape().transferred)
            .sum()
    }

    /// About the bytes that it takes in memory.
    pub fn bytes(&self) -> usize {
        let constants = self
            .parts
            .iter()
            .map(|part| size_of_val(&part.constants[..]));
        let systems = self.classes.iter().map(|class| class.system().memory());
        self.order.bytes()
            + size_of_val(&self.parts[..])
            + constants.sum::<usize>()
            + systems.sum::<usize>()
    }

    /// The classes, in the order of their first parts.
    pub fn classes(&self) -> &[Class<F>] {
        &self.classes
    }

    /// The class of a part, as an index into [`classes`](Self::classes).
    ///
    /// # Errors
    ///
    /// [`PartitionError::NoPart`].
    pub fn class_of(&self, part: usize) -> Result<usize, PartitionError> {
        Ok(self.part(part)?.class)
    }

    /// The number of parts of each class, in the order of [`classes`](Self::classes).
    pub fn parts_of_classes(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes.len()];
        for part in &self.parts {
            counts[part.class] += 1;
        }
        counts
    }

    /// The inputs of a part that the partition fixes: the positions of both leaves, two bits for each level; whether it
    /// is the last; the address before its share of the trace by address; its addresses, by part and by address; its
    /// constants. The part's instance has them after the root, α and β, addresses multiplied by β.
    ///
    /// # Errors
    ///
    /// [`PartitionError::NoPart`].
    pub fn preprocessed(&self, part: usize) -> Result<Vec<F>, PartitionError> {
        let constants = &self.part(part)?.constants;
        let range = self.order.range(part);
        let mut inputs = memory_check::preprocessed(
            part,
            self.num_parts(),
            self.depth,
            self.order.address_before(part),
            self.order.by_part(range.clone()),
            &self.order.by_address(range),
        );
        inputs.extend_from_slice(constants);
        Ok(inputs)
    }

    /// The instance of a part, the leading one first: the root and the challenges, and the
    /// [preprocessed](Self::preprocessed) inputs, addresses multiplied by β.
    ///
    /// # Errors
    ///
    /// [`PartitionError::NoPart`].
    pub fn instance(
        &self,
        part: usize,
        root: F,
        challenges: &Challenges<F>,
    ) -> Result<Vec<F>, PartitionError> {
        let mut fixed = self.preprocessed(part)?;
        let addresses = self.classes[self.part(part)?.class].addresses();
        for address in &mut fixed[addresses] {
            *address *= challenges.beta;
        }
        let mut instance = vec![F::one(), root, challenges.alpha, challenges.beta];
        instance.append(&mut fixed);
        Ok(instance)
    }

    /// The part of the partition with which a verifier checks the public inputs.
    pub fn public_state(&self) -> PublicState {
        let addresses = self.order.by_address(self.order.public());
        PublicState::new(addresses, self.num_parts()).expect("addresses are sorted")
    }

    /// SHA-256 over all that the partition fixes: the field, the numbers of parts and public inputs,
    /// the first addresses of the public state, the classes in order (the digest of their
    /// constraints, the numbers of committed variables, of accesses and of transfers, and the kind of
    /// each transfer in one byte), and for each part in order its class and its preprocessed inputs.
    /// Names do not count.
    ///
    /// The number of accesses tells which inputs are addresses, which a key takes times β.
    ///
    /// Numbers are of 8 bytes, little-endian; field elements have as many bytes as the modulus takes.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        let number =
            |hasher: &mut Sha256, value: usize| hasher.update((value as u64).to_le_bytes());
        hasher.update(DIGEST_DOMAIN);
        let modulus = F::MODULUS.to_bytes_le();
        number(&mut hasher, modulus.len());
        hasher.update(modulus);
        number(&mut hasher, self.num_parts());
        number(&mut hasher, self.num_public_inputs());
        for address in self.order.by_address(self.order.public()) {
            number(&mut hasher, address as usize);
        }
        number(&mut hasher, self.classes.len());
        for class in &self.classes {
            hasher.update(class.digest());
            number(&mut hasher, class.layout().committed);
            number(&mut hasher, class.accesses());
            number(&mut hasher, class.transfers().len());
            for transfer in class.transfers() {
                hasher.update([transfer.code()]);
            }
        }
        for (part, record) in self.parts.iter().enumerate() {
            number(&mut hasher, record.class);
            // There is such a part.
            let inputs = self.preprocessed(part).unwrap_or_default();
            number(&mut hasher, inputs.len());
            for input in inputs {
                hasher.update(input.into_bigint().to_bytes_le());
            }
        }
        hasher.finalize().into()
    }

    /// Runs the code of all parts, one after the other, for the values of shared wires and of transfers.
    ///
    /// # Errors
    ///
    /// [`PartitionError::AccessesChanged`] if the circuit is not the one of the partition;
    /// [`PartitionError::Length`] for another number of public inputs; [`PartitionError::Unmatched`] if the values put
    /// into the multiset are not those that are taken; those of the circuit's code.
    pub fn trace(&self, circuit: &impl PartitionedCircuit<F>) -> Result<Traces<F>, PartitionError> {
        let traces = self.unmatched_trace(circuit)?;
        multiset::check(|| {
            let values = traces.transfers.iter().enumerate();
            values.map(|(part, values)| (self.transfers(part), &values[..]))
        })?;
        Ok(traces)
    }

    /// Like [`trace`](Self::trace), without the comparison of what is put and what is taken.
    pub(crate) fn unmatched_trace(
        &self,
        circuit: &impl PartitionedCircuit<F>,
    ) -> Result<Traces<F>, PartitionError> {
        let public_inputs = circuit.public_inputs();
        check_length(
            "public inputs",
            self.num_public_inputs(),
            public_inputs.len(),
        )?;
        check_length("parts", self.num_parts(), circuit.num_parts())?;
        let public = public_inputs.len();
        let mut values = public_inputs;
        values.reserve_exact(self.order.num_addresses() - public);
        values.resize(self.order.num_addresses(), F::zero());
        let mut transfers = Vec::with_capacity(self.num_parts());
        for (part, record) in self.parts.iter().enumerate() {
            let memory = Memory {
                addresses: self.order.by_part(self.order.range(part)),
                values: &mut values,
            };
            let run = synthesis::trace(circuit, part, memory)?;
            self.check_run(part, record, &run)?;
            transfers.push(run.transferred.into_boxed_slice());
        }
        Ok(Traces {
            values,
            public,
            accesses: self.order.entries(),
            transfers,
        })
    }

    /// A part's share of both traces and the values of its transfers: its committed values.
    ///
    /// # Errors
    ///
    /// [`PartitionError::NoPart`]; [`PartitionError::Length`] for traces of another partition.
    pub fn part_trace(
        &self,
        traces: &Traces<F>,
        part: usize,
    ) -> Result<PartTrace<F>, PartitionError> {
        self.part(part)?;
        self.check_traces(traces)?;
        Ok(self.share(traces, Some(part)))
    }

    /// The states between parts at these challenges, which must be drawn after all parts' shares of
    /// the traces were committed to. Salts are drawn from `rng`.
    ///
    /// # Errors
    ///
    /// [`PartitionError::Length`] for traces of another partition.
    pub fn states(
        &self,
        traces: &Traces<F>,
        challenges: Challenges<F>,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<States<F>, PartitionError> {
        self.salted_states(traces, challenges, |_| F::rand(rng))
    }

    /// Like [`states`](Self::states), with a salt for the state after each part, which only the prover may
    /// know.
    ///
    /// # Errors
    ///
    /// [`PartitionError::Length`] for traces of another partition.
    pub fn salted_states(
        &self,
        traces: &Traces<F>,
        challenges: Challenges<F>,
        salt_of: impl FnMut(usize) -> F,
    ) -> Result<States<F>, PartitionError> {
        self.check_traces(traces)?;
        let share = |part| self.share(traces, part);
        Ok(States::new(self, share, challenges, salt_of))
    }

    /// The assignment of a part, for the system of its class. Runs the part's code again on the values
    /// of its trace.
    ///
    /// # Errors
    ///
    /// [`PartitionError::NoPart`]; [`PartitionError::Length`] for a trace or paths of another
    /// partition; [`PartitionError::AccessesChanged`]; those of the circuit's code.
    pub fn assignment(
        &self,
        circuit: &impl PartitionedCircuit<F>,
        part: usize,
        trace: &PartTrace<F>,
        challenges: &Challenges<F>,
        opening: &Opening<F>,
    ) -> Result<Assignment<F>, PartitionError> {
        let record = self.part(part)?;
        let shape = self.classes[record.class].shape();
        for (what, found) in [
            ("values by part", trace.by_part.len()),
            ("values by address", trace.by_address.len()),
        ] {
            check_length(what, shape.accesses, found)?;
        }
        let (expected, found) = (shape.transferred, trace.transfers.len());
        check_length("values of transfers", expected, found)?;
        for path in [&opening.before_path, &opening.after_path] {
            check_length("levels of a path", self.depth, path.children().len())?;
        }
        let instance = self.instance(part, opening.root, challenges)?;
        let values = PartValues {
            fixed: &instance[1..=shape.instance()],
            trace,
            opening,
        };
        let (assignment, run) = synthesis::assignment(circuit, part, shape, &values)?;
        self.check_run(part, record, &run)?;
        Ok(assignment)
    }

    /// The value of each access, part after part.
    #[cfg(test)]
    pub(crate) fn values_by_part(&self, traces: &Traces<F>) -> Vec<F> {
        self.values(traces, self.order.by_part(0..self.order.entries()))
    }

    #[cfg(test)]
    pub(crate) const fn order(&self) -> &AccessOrder {
        &self.order
    }

    fn part(&self, part: usize) -> Result<&PartRecord<F>, PartitionError> {
        let parts = self.num_parts();
        self.parts
            .get(part)
            .ok_or(PartitionError::NoPart { part, parts })
    }

    /// The transfers of a part that there is.
    pub(crate) fn transfers(&self, part: usize) -> &[Transfer] {
        self.classes[self.parts[part].class].transfers()
    }

    /// Checks that another run of a part's code made the same accesses and transfers and has the same constants.
    fn check_run(
        &self,
        part: usize,
        record: &PartRecord<F>,
        run: &Run<F>,
    ) -> Result<(), PartitionError> {
        // A file may have transfers of a class that are not those of its parts' digests.
        if run.digest == record.accesses && run.transfers == self.transfers(part) {
            return Ok(());
        }
        Err(PartitionError::AccessesChanged { part })
    }

    fn check_traces(&self, traces: &Traces<F>) -> Result<(), PartitionError> {
        check_length("accesses", self.order.entries(), traces.accesses)?;
        check_length("values", self.order.num_addresses(), traces.values.len())?;
        check_length("parts", self.num_parts(), traces.transfers.len())?;
        self.parts
            .iter()
            .zip(&traces.transfers)
            .try_for_each(|(part, values)| {
                let expected = self.classes[part.class].shape().transferred;
                check_length("values of transfers", expected, values.len())
            })
    }

    /// The entries of both traces and the transfers of a part, or of the public inputs.
    fn share(&self, traces: &Traces<F>, part: Option<usize>) -> PartTrace<F> {
        let range = part.map_or_else(|| self.order.public(), |part| self.order.range(part));
        PartTrace {
            by_part: self.values(traces, self.order.by_part(range.clone())),
            by_address: self.values(traces, &self.order.by_address(range)),
            transfers: part.map_or_else(Vec::new, |part| traces.transfers[part].to_vec()),
        }
    }

    fn values(&self, traces: &Traces<F>, addresses: &[u32]) -> Vec<F> {
        let addresses = addresses.iter();
        addresses
            .map(|address| traces.values[*address as usize - 1])
            .collect()
    }
}

fn check_length(what: &'static str, expected: usize, found: usize) -> Result<(), PartitionError> {
    if expected == found {
        return Ok(());
    }
    Err(PartitionError::Length {
        what,
        expected,
        found,
    })
}
