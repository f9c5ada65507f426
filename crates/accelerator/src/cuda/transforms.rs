//! Transforms: passes of the kernel, by a schedule that stands here.

use proofmill_kernels::Domain;
use zeroize::Zeroizing;

use super::arguments::{NttPass, Powers};
use super::machine::{Buffer, Machine};
use super::modules::Module;
use super::words::{Words, write_all};
use crate::device::TransformKind;
use crate::error::Error;
use crate::group::DeviceField;
use crate::ticket::Cancellation;

/// The base-two logarithms of a pass's largest radix, and of a block's columns.
const RADIX_LOG: u32 = 8;
const COLUMNS_LOG: u32 = 2;
/// The base-two logarithm of the upper table's length at most.
const HIGH_LOG: u32 = 16;
/// The largest transform: the values' numbers and exponents fit 32 bits with room to spare.
pub(crate) const MAX_TRANSFORM_LOG: u32 = 28;
/// Values uploaded at once.
pub(crate) const UPLOAD_CHUNK: usize = 1 << 22;
/// Tables kept: those of four domains, or about.
const KEPT_TABLES: usize = 16;

/// The most recently used tables of powers in a machine's memory.
pub(crate) struct Tables<B> {
    kept: Vec<Table<B>>,
}

struct Table<B> {
    /// The field, the element, the factor and the size that the tables are for.
    module: Module,
    key: Vec<u32>,
    powers: Powers,
    /// The memory that the addresses in `powers` point into.
    _memory: [B; 2],
}

/// scale·baseᵉ, for every e below the domain's size.
#[derive(Clone, Copy)]
struct Scaling<F> {
    base: F,
    scale: F,
}

/// One of the one or two transforms of a kind: a transform by a root, with optional scaling before and after.
struct Step<F> {
    root: F,
    before: Option<Scaling<F>>,
    after: Option<Scaling<F>>,
}

/// Transforms `values` in place. The uploaded values are wiped from the machine's memory, also after an error.
pub(crate) fn transform<F: DeviceField, M: Machine>(
    machine: &mut M,
    tables: &mut Tables<M::Buffer>,
    domain: &Domain<F>,
    kind: TransformKind,
    values: &mut [F],
    cancellation: &Cancellation,
) -> Result<(), Error> {
    let size_log = domain.size().trailing_zeros();
    if size_log > MAX_TRANSFORM_LOG {
        return Err(Error::BadJob(format!(
            "a transform of 2^{size_log} values: at most 2^{MAX_TRANSFORM_LOG}"
        )));
    }
    if size_log == 0 {
        return Ok(());
    }
    let words = values.len() * F::WORDS;
    let mut buffers = [machine.allocate(words)?, machine.allocate(words)?];
    let steps = steps(domain, kind);
    let transformed = run_steps(machine, tables, &steps, values, &mut buffers, cancellation);
    let wiped = buffers
        .iter_mut()
        .try_for_each(|buffer| machine.wipe(buffer));
    transformed.and(wiped)
}

/// Uploads `values`, runs the steps, and downloads them.
fn run_steps<F: DeviceField, M: Machine>(
    machine: &mut M,
    tables: &mut Tables<M::Buffer>,
    steps: &[Step<F>],
    values: &mut [F],
    [from, to]: &mut [M::Buffer; 2],
    cancellation: &Cancellation,
) -> Result<(), Error> {
    for (i, chunk) in values.chunks(UPLOAD_CHUNK).enumerate() {
        cancellation.check()?;
        let (at, words) = (i * UPLOAD_CHUNK * F::WORDS, chunk.len() * F::WORDS);
        machine.upload(from, at, words, None, &mut |to| write_all(chunk, to))?;
    }
    let size_log = values.len().trailing_zeros();
    for step in steps {
        cancellation.check()?;
        run(machine, tables, size_log, step, from, to)?;
    }
    let mut words = Zeroizing::new(vec![0_u32; values.len() * F::WORDS]);
    machine.download(from, &mut words)?;
    for (value, words) in values.iter_mut().zip(words.chunks_exact(F::WORDS)) {
        *value = F::read(words).ok_or_else(|| machine.failed("a value is not in the field"))?;
    }
    Ok(())
}

/// The steps of a kind of transform, in order.
fn steps<F: DeviceField>(domain: &Domain<F>, kind: TransformKind) -> Vec<Step<F>> {
    // Neither is zero: a root of unity, a power of two below the modulus, a shift that was checked.
    let inverse = |value: F| value.inverse().unwrap_or(F::ZERO);
    let (root, shift) = (domain.generator(), domain.shift());
    let share = inverse(F::from(domain.size() as u64));
    let forward = |before| Step {
        root,
        before,
        after: None,
    };
    let backward = |base| Step {
        root: inverse(root),
        before: None,
        after: Some(Scaling { base, scale: share }),
    };
    match kind {
        TransformKind::Forward => vec![forward(None)],
        TransformKind::Inverse => vec![backward(F::ONE)],
        TransformKind::CosetForward => vec![forward(Some(Scaling {
            base: shift,
            scale: F::ONE,
        }))],
        TransformKind::CosetInverse => vec![backward(inverse(shift))],
        TransformKind::CosetExtend => vec![backward(shift), forward(None)],
    }
}

/// The passes of one transform, from `from` to `from` by way of `to`.
fn run<F: DeviceField, M: Machine>(
    machine: &mut M,
    tables: &mut Tables<M::Buffer>,
    size_log: u32,
    step: &Step<F>,
    from: &mut M::Buffer,
    to: &mut M::Buffer,
) -> Result<(), Error> {
    let roots = Scaling {
        base: step.root,
        scale: F::ONE,
    };
    let roots = tables.powers(machine, size_log, &roots)?;
    let mut powers = |scaling: &Option<Scaling<F>>| {
        scaling.as_ref().map_or(Ok(Powers::default()), |scaling| {
            tables.powers(machine, size_log, scaling)
        })
    };
    let (before, after) = (powers(&step.before)?, powers(&step.after)?);
    let radices = radix_logs(size_log);
    let mut done_log = 0;
    for (i, &radix_log) in radices.iter().enumerate() {
        let columns_log = COLUMNS_LOG.min(size_log - radix_log);
        let pass = NttPass {
            from: from.address(),
            to: to.address(),
            roots,
            before: if i == 0 { before } else { Powers::default() },
            after: if i + 1 == radices.len() {
                after
            } else {
                Powers::default()
            },
            size_log,
            radix_log,
            done_log,
            columns_log,
        };
        let blocks = 1 << (size_log - radix_log - columns_log);
        let threads = 1 << (radix_log + columns_log - 1);
        machine.launch(Module::Scalars(F::FIELD), &pass, blocks, threads)?;
        std::mem::swap(from, to);
        done_log += radix_log;
    }
    Ok(())
}

/// Passes of nearly equal radix.
fn radix_logs(size_log: u32) -> Vec<u32> {
    let passes = size_log.div_ceil(RADIX_LOG);
    (0..passes).map(|pass| (size_log + pass) / passes).collect()
}

// === impl Tables ===

impl<B: Buffer> Tables<B> {
    pub(crate) fn new() -> Self {
        Self { kept: Vec::new() }
    }

    /// The tables of a scaling's powers, made if they are not kept.
    fn powers<F: DeviceField, M: Machine<Buffer = B>>(
        &mut self,
        machine: &mut M,
        size_log: u32,
        scaling: &Scaling<F>,
    ) -> Result<Powers, Error> {
        let module = Module::Scalars(F::FIELD);
        let mut key = vec![0; 2 * F::WORDS];
        write_all(&[scaling.base, scaling.scale], &mut key);
        key.push(size_log);
        let known = |table: &Table<B>| table.module == module && table.key == key;
        if let Some(at) = self.kept.iter().position(known) {
            let table = self.kept.remove(at);
            self.kept.push(table);
        } else {
            // The tables of one transform are never more than three: none of them goes here.
            if self.kept.len() == KEPT_TABLES {
                self.kept.remove(0);
            }
            let table = Table::new(machine, module, key, size_log, scaling)?;
            self.kept.push(table);
        }
        Ok(self.kept[self.kept.len() - 1].powers)
    }
}

impl<B: Buffer> Table<B> {
    fn new<F: DeviceField, M: Machine<Buffer = B>>(
        machine: &mut M,
        module: Module,
        key: Vec<u32>,
        size_log: u32,
        scaling: &Scaling<F>,
    ) -> Result<Self, Error> {
        let low_bits = size_log.saturating_sub(HIGH_LOG);
        // The kernel skips the lower table where its factor is one, so the scale is in the upper.
        let lower = sequence(F::ONE, scaling.base, 1 << low_bits);
        let step = scaling.base.pow([1 << low_bits]);
        let upper = sequence(scaling.scale, step, 1 << (size_log - low_bits));
        let (high, low) = (upload(machine, &upper)?, upload(machine, &lower)?);
        let powers = Powers {
            high: high.address(),
            low: low.address(),
            low_bits,
            unused: 0,
        };
        Ok(Self {
            module,
            key,
            powers,
            _memory: [high, low],
        })
    }
}

/// `first`, `first`·`ratio`, …
fn sequence<F: DeviceField>(first: F, ratio: F, length: usize) -> Vec<F> {
    std::iter::successors(Some(first), |last| Some(*last * ratio))
        .take(length)
        .collect()
}

fn upload<F: Words, M: Machine>(machine: &mut M, values: &[F]) -> Result<M::Buffer, Error> {
    let words = values.len() * F::WORDS;
    let mut buffer = machine.allocate(words)?;
    machine.upload(&mut buffer, 0, words, None, &mut |to| {
        write_all(values, to);
    })?;
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::{MAX_TRANSFORM_LOG, RADIX_LOG, radix_logs};

    #[test]
    fn passes_cover_every_size() {
        for log in 1..=MAX_TRANSFORM_LOG {
            let radices = radix_logs(log);
            assert_eq!(radices.iter().sum::<u32>(), log);
            assert!(radices.iter().all(|radix| (1..=RADIX_LOG).contains(radix)));
        }
    }
}
