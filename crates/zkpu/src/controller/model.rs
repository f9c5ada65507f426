//! A functional model of the device: memory, and the CPU's kernels in place of the core.

use std::sync::mpsc::{Receiver, TryRecvError, channel};

use ark_bls12_377::{Fr, G1Affine, G1Projective};
use ark_ec::AffineRepr;
use ark_ff::{BigInt, BigInteger, PrimeField, Zero};
use proofmill_kernels::msm_bigint;

use crate::controller::cycles::{CycleModel, precompute_cycles};
use crate::controller::device::{
    Area, CoreCounters, CoreEnd, CoreJob, CoreState, DeviceDescription, DeviceError, MsmDevice,
    Stop, Work,
};
use crate::curve::{encode_result, points_of_table, table_of_plain};
use crate::nvme::zkpu::{SCALAR_BYTES, Shape};

/// A scalar out of Montgomery form.
type Scalar = BigInt<4>;

/// Core error codes.
const SCALAR_NOT_BELOW_ORDER: u8 = 4;
const OTHER: u8 = 15;
/// (r − 1) / 2: scalars above it are replaced by r minus them, and the sign flipped.
const HALF_ORDER: Scalar = <Fr as PrimeField>::MODULUS_MINUS_ONE_DIV_TWO;

/// The thread on which a model computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// In [`MsmDevice::poll`]: deterministic, for tests.
    Inline,
    /// On a thread of its own: the controller goes on.
    Thread,
}

/// Settings of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelOptions {
    /// Serial number, at most 20 printable characters.
    pub serial: String,
    /// Bytes of memory: a multiple of 4,096, at most 2^40.
    pub memory_bytes: u64,
    /// Adders of the cycle model: 1 or 2.
    pub adders: u8,
    /// Identifier that must differ after every loss of memory.
    pub power_on_id: u64,
    /// The thread on which it computes.
    pub execution: Execution,
}

/// A device whose core is the CPU. It gives the circuit's results with the cycles of [`CycleModel`]; its clock stands
/// still but for them.
#[derive(Debug)]
pub struct FunctionalModel {
    description: DeviceDescription,
    memory: Vec<u8>,
    cycles: u64,
    model: CycleModel,
    execution: Execution,
    core: Core,
}

#[derive(Debug)]
enum Core {
    Idle,
    Inline(CoreJob),
    Thread(CoreJob, Receiver<Computed>),
}

/// The bytes to write and the operations, or the core's error.
type Computed = Result<(Vec<u8>, u64), u8>;

// === impl FunctionalModel ===

impl FunctionalModel {
    /// A model with its memory zero. Its pages are taken when they are written.
    pub fn new(options: ModelOptions) -> Self {
        Self {
            description: DeviceDescription {
                serial: options.serial,
                model: "ZKPU functional model".into(),
                firmware: "1.0".into(),
                memory_bytes: options.memory_bytes,
                adders: options.adders,
                window_min: 4,
                window_max: 18,
                levels_max: 31,
                count_max: 1 << 26,
                clock_khz: 100_000,
                power_on_id: options.power_on_id,
                is_functional: true,
            },
            memory: vec![0; usize::try_from(options.memory_bytes).unwrap_or(0)],
            cycles: 0,
            model: CycleModel {
                adders: options.adders,
            },
            execution: options.execution,
            core: Core::Idle,
        }
    }

    fn range(&self, first: u64, length: u64) -> Result<std::ops::Range<usize>, DeviceError> {
        let error = DeviceError { first, length };
        let end = first.checked_add(length).ok_or(error)?;
        let range =
            usize::try_from(first).map_err(|_| error)?..usize::try_from(end).map_err(|_| error)?;
        if range.end > self.memory.len() {
            return Err(error);
        }
        Ok(range)
    }

    /// The scalars and the table that a job reads.
    fn inputs(&self, job: &CoreJob) -> Result<[&[u8]; 2], DeviceError> {
        let bytes = |(first, length): Area| Ok(&self.memory[self.range(first, length)?]);
        let [scalars, table] = job.reads();
        Ok([bytes(scalars)?, bytes(table)?])
    }

    fn end(&mut self, job: &CoreJob, computed: Computed) -> CoreState {
        let cycles = match job.work {
            Work::Product => self.model.cycles(job.count.into(), job.shape),
            Work::Precompute => precompute_cycles(job.count, job.shape),
        };
        self.cycles = self.cycles.saturating_add(cycles);
        self.core = Core::Idle;
        let written = computed.and_then(|(bytes, operations)| {
            self.write(job.result, &bytes).map_err(|_| OTHER)?;
            Ok(operations)
        });
        let (error, operations) = match written {
            Ok(operations) => (0, operations),
            Err(error) => (error, 0),
        };
        CoreState::Ended(CoreEnd {
            error,
            counters: CoreCounters([cycles, operations, 0, 0, 0]),
        })
    }
}

impl MsmDevice for FunctionalModel {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn cycles(&self) -> u64 {
        self.cycles
    }

    fn read(&self, first: u64, to: &mut [u8]) -> Result<(), DeviceError> {
        let range = self.range(first, to.len() as u64)?;
        to.copy_from_slice(&self.memory[range]);
        Ok(())
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<(), DeviceError> {
        let range = self.range(first, from.len() as u64)?;
        self.memory[range].copy_from_slice(from);
        Ok(())
    }

    fn fill(&mut self, first: u64, length: u64) -> Result<(), DeviceError> {
        let range = self.range(first, length)?;
        self.memory[range].fill(0);
        Ok(())
    }

    fn start(&mut self, job: CoreJob) {
        self.core = match self.execution {
            Execution::Inline => Core::Inline(job),
            Execution::Thread => {
                let (sender, receiver) = channel();
                let inputs = self
                    .inputs(&job)
                    .map(|[scalars, table]| (scalars.to_vec(), table.to_vec()));
                let spawned =
                    std::thread::Builder::new()
                        .name("zkpu-core".into())
                        .spawn(move || {
                            let computed = inputs.map_err(|_| OTHER);
                            let computed = computed
                                .and_then(|(scalars, table)| compute(&job, &scalars, &table));
                            // The job may have been cancelled.
                            let _ = sender.send(computed);
                        });
                // Without a thread the sender is gone, and the job ends with an error.
                drop(spawned);
                Core::Thread(job, receiver)
            }
        };
    }

    fn poll(&mut self) -> CoreState {
        match &self.core {
            Core::Idle => CoreState::Idle,
            Core::Inline(job) => {
                let job = *job;
                let inputs = self.inputs(&job).map_err(|_| OTHER);
                let computed = inputs.and_then(|[scalars, table]| compute(&job, scalars, table));
                self.end(&job, computed)
            }
            Core::Thread(job, receiver) => {
                let job = *job;
                match receiver.try_recv() {
                    Ok(computed) => self.end(&job, computed),
                    Err(TryRecvError::Empty) => CoreState::Running,
                    Err(TryRecvError::Disconnected) => self.end(&job, Err(OTHER)),
                }
            }
        }
    }

    fn stop(&mut self) -> Stop {
        // A thread that computes goes on, and nobody gets its result.
        self.core = Core::Idle;
        Stop::Obeyed(CoreCounters::default())
    }
}

fn compute(job: &CoreJob, scalars: &[u8], table: &[u8]) -> Computed {
    match job.work {
        Work::Product => {
            let (sum, operations) = multiply(scalars, table, job.shape)?;
            Ok((encode_result(&sum).to_vec(), operations))
        }
        Work::Precompute => Ok((table_of_plain(table, job.shape), 0)),
    }
}

/// The product as the circuit computes it: each level's digits of a scalar times that level's entry of the table.
/// Entries that are no points count as infinity.
fn multiply(scalars: &[u8], table: &[u8], shape: Shape) -> Result<(G1Projective, u64), u8> {
    let points = points_of_table(table);
    let levels = usize::from(shape.levels);
    let mut bases: Vec<G1Affine> = Vec::new();
    let mut parts: Vec<Scalar> = Vec::new();
    let mut operations = 0;
    for (bytes, of_point) in scalars
        .chunks_exact(SCALAR_BYTES as usize)
        .zip(points.chunks_exact(levels))
    {
        let mut limbs = [0; 4];
        for (limb, from) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
            *limb = u64::from_le_bytes(from.try_into().map_err(|_| OTHER)?);
        }
        let recoded = Recoded::new(BigInt(limbs), shape).ok_or(SCALAR_NOT_BELOW_ORDER)?;
        operations += recoded.operations;
        for ((is_negative, magnitude), point) in recoded.parts.iter().zip(of_point) {
            let Some(point) = point.filter(|point| !point.is_zero() && !magnitude.is_zero()) else {
                continue;
            };
            bases.push(if *is_negative { -point } else { point });
            parts.push(*magnitude);
        }
    }
    if bases.is_empty() {
        return Ok((G1Projective::zero(), operations));
    }
    Ok((msm_bigint(&bases, &parts), operations))
}

/// A scalar's digits, those of each level put together as a sign and a magnitude.
struct Recoded {
    parts: Vec<(bool, Scalar)>,
    /// Digits that are not zero.
    operations: u64,
}

impl Recoded {
    /// `None` for a scalar that is not below the group's order.
    fn new(scalar: Scalar, shape: Shape) -> Option<Self> {
        if scalar >= Fr::MODULUS {
            return None;
        }
        let is_flipped = scalar > HALF_ORDER;
        let mut folded = scalar;
        if is_flipped {
            folded = Fr::MODULUS;
            folded.sub_with_borrow(&scalar);
        }
        let (window, digits, passes) = (u32::from(shape.window), shape.digits(), shape.passes());
        let mut operations = 0;
        let mut carry = false;
        let mut parts = Vec::with_capacity(shape.levels.into());
        for level in 0..u32::from(shape.levels) {
            let first = level * passes;
            let after = digits.min(first + passes).max(first);
            let carry_in = carry;
            for digit in first..after {
                let value = bits(&folded, digit * window, window).0[0] + u64::from(carry);
                // A digit above 2^(w - 1) becomes negative and carries, but for the top one.
                carry = value > 1 << (window - 1) && digit + 1 < digits;
                let is_zero = value == 0 || (carry && value == 1 << window);
                operations += u64::from(!is_zero);
            }
            let width = (after - first) * window;
            let mut magnitude = bits(&folded, first * window, width);
            magnitude.add_with_carry(&Scalar::from(u64::from(carry_in)));
            if carry {
                let mut complement = power_of_two(width);
                complement.sub_with_borrow(&magnitude);
                magnitude = complement;
            }
            parts.push((carry != is_flipped, magnitude));
        }
        Some(Self { parts, operations })
    }
}

/// `count` bits of a number from bit `first` on; those beyond 255 are zero.
fn bits(number: &Scalar, first: u32, count: u32) -> Scalar {
    let mut result = [0; 4];
    for (i, limb) in result.iter_mut().enumerate() {
        let at = first as usize + 64 * i;
        let of = |index: usize| number.0.get(index).copied().unwrap_or(0);
        let (index, shift) = (at / 64, at % 64);
        *limb = of(index) >> shift;
        if shift > 0 {
            *limb |= of(index + 1) << (64 - shift);
        }
        let kept = count.saturating_sub(64 * i as u32);
        if kept < 64 {
            *limb &= (1 << kept) - 1;
        }
    }
    BigInt(result)
}

/// 2^`exponent` for exponents below 256, which a carry out of a level never passes: the top level has none.
fn power_of_two(exponent: u32) -> Scalar {
    let mut limbs = [0; 4];
    if let Some(limb) = limbs.get_mut(exponent as usize / 64) {
        *limb = 1 << (exponent % 64);
    }
    BigInt(limbs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::{decode_result, encode_scalars, table};
    use ark_ec::CurveGroup;
    use ark_ff::{AdditiveGroup, Field, UniformRand};
    use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};

    fn model() -> FunctionalModel {
        FunctionalModel::new(ModelOptions {
            serial: "1".into(),
            memory_bytes: 1 << 22,
            adders: 2,
            power_on_id: 1,
            execution: Execution::Inline,
        })
    }

    /// Runs a job and reads its result, its error and its operations.
    fn run(points: &[G1Affine], scalars: &[u8], shape: Shape) -> (u8, u64, Vec<u8>) {
        let mut model = model();
        let job = CoreJob {
            work: Work::Product,
            scalars: 0,
            table: 1 << 20,
            result: 1 << 16,
            count: points.len() as u32,
            shape,
        };
        model.write(job.scalars, scalars).unwrap();
        model.write(job.table, &table(points, shape)).unwrap();
        model.start(job);
        let CoreState::Ended(end) = model.poll() else {
            panic!("it computes when it is polled");
        };
        assert_eq!(model.poll(), CoreState::Idle);
        let mut result = vec![0; 192];
        model.read(job.result, &mut result).unwrap();
        (end.error, end.counters.0[1], result)
    }

    #[test]
    fn a_table_is_made_of_a_plain_one() {
        let mut rng = StdRng::seed_from_u64(4);
        let points: Vec<G1Affine> = (0..5)
            .map(|_| G1Projective::rand(&mut rng).into_affine())
            .collect();
        let shape = Shape {
            window: 9,
            levels: 7,
        };
        let mut model = model();
        let job = CoreJob {
            work: Work::Precompute,
            scalars: 0,
            table: 1 << 20,
            result: 1 << 16,
            count: 5,
            shape,
        };
        let plain = Shape { levels: 1, ..shape };
        model.write(job.table, &table(&points, plain)).unwrap();
        model.start(job);
        let CoreState::Ended(end) = model.poll() else {
            panic!("it computes when it is polled");
        };
        assert_eq!(end.error, 0);
        let expected = table(&points, shape);
        let mut made = vec![0; expected.len() + 1];
        model.read(job.result, &mut made).unwrap();
        assert_eq!(made.pop(), Some(0), "the byte after the table");
        assert_eq!(made, expected);
    }

    #[test]
    fn products_are_right_for_every_shape() {
        let mut rng = StdRng::seed_from_u64(3);
        let points: Vec<G1Affine> = (0..12)
            .map(|_| G1Projective::rand(&mut rng).into_affine())
            .chain([G1Affine::default()])
            .collect();
        let edges = [
            Fr::ZERO,
            Fr::ONE,
            -Fr::ONE,
            Fr::from(HALF_ORDER),
            Fr::from(HALF_ORDER) + Fr::ONE,
        ];
        for (window, levels) in [
            (13, 1),
            (13, 20),
            (18, 14),
            (4, 31),
            (9, 28),
            (10, 7),
            (15, 17),
            (12, 5),
        ] {
            let scalars: Vec<Fr> = (0..points.len())
                .map(|i| match i % 3 {
                    0 => edges[rng.gen_range(0..edges.len())],
                    1 => {
                        Fr::from(2u64).pow([rng.gen_range(0..253_u64)])
                            - Fr::from(rng.gen_range(0..2_u64))
                    }
                    _ => Fr::rand(&mut rng),
                })
                .collect();
            let shape = Shape { window, levels };
            let (error, _, result) = run(&points, &encode_scalars(&scalars), shape);
            let expected: G1Projective = points
                .iter()
                .zip(&scalars)
                .map(|(point, scalar)| *point * scalar)
                .sum();
            assert_eq!(
                (error, decode_result(&result)),
                (0, Ok(expected)),
                "window {window}, levels {levels}"
            );
        }
    }

    #[test]
    fn a_scalar_that_is_not_below_the_order_is_error_four_and_writes_nothing() {
        let point = [G1Projective::rand(&mut StdRng::seed_from_u64(4)).into_affine()];
        let mut scalar = encode_scalars(&[-Fr::ONE]);
        scalar[0] += 1;
        let (error, _, result) = run(
            &point,
            &scalar,
            Shape {
                window: 13,
                levels: 1,
            },
        );
        assert_eq!((error, result), (4, vec![0; 192]));
    }

    #[test]
    fn operations_are_the_digits_that_are_not_zero() {
        let point = [G1Projective::rand(&mut StdRng::seed_from_u64(4)).into_affine()];
        let operations = |scalar: Fr| {
            run(
                &point,
                &encode_scalars(&[scalar]),
                Shape {
                    window: 13,
                    levels: 1,
                },
            )
            .1
        };
        assert_eq!(operations(Fr::ZERO), 0);
        assert_eq!(operations(Fr::from(4096u64)), 1);
        assert_eq!(
            operations(Fr::from(4097u64)),
            2,
            "a negative digit, and its carry"
        );
        assert_eq!(operations(Fr::from(8191u64)), 2);
        assert_eq!(operations(-Fr::ONE), 1, "folded");
    }

    #[test]
    fn memory_ends_where_it_ends() {
        let mut model = model();
        assert!(model.write((1 << 22) - 4, &[1; 4]).is_ok());
        assert!(model.write((1 << 22) - 4, &[1; 5]).is_err());
        assert!(model.write(u64::MAX, &[1; 5]).is_err());
        assert!(model.read(1 << 22, &mut [0; 1]).is_err());
        assert!(model.fill(0, (1 << 22) + 1).is_err());
    }
}
