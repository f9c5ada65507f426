//! Runs of a part's code: for its accesses alone, and with the memory check around it.

use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, OptimizationGoal, SynthesisError,
    SynthesisMode,
};
use proofmill_kernels::Poseidon2Field;
use proofmill_r1cs::{Assignment, R1cs, R1csError};

use crate::accesses::{Access, Accesses, CommittedVariables, Memory, Run};
use crate::gadgets::Synthesizer;
use crate::memory_check::{MemoryCheck, Sections, Shape};
use crate::part::Wires;
use crate::{Opening, Part, PartTrace, PartitionError, PartitionedCircuit};

/// All values of a part besides its author's witness.
pub(crate) struct PartValues<'a, F> {
    /// The instance without the leading one and the author's constants.
    pub(crate) fixed: &'a [F],
    pub(crate) trace: &'a PartTrace<F>,
    pub(crate) opening: &'a Opening<F>,
}

/// Adapter of a closure to a circuit; it keeps the closure's error.
struct Closure<'e, G> {
    run: G,
    error: &'e mut Option<PartitionError>,
}

impl<F, G> ConstraintSynthesizer<F> for Closure<'_, G>
where
    F: Poseidon2Field,
    G: FnOnce(ConstraintSystemRef<F>) -> Result<(), PartitionError>,
{
    fn generate_constraints(self, cs: ConstraintSystemRef<F>) -> Result<(), SynthesisError> {
        (self.run)(cs).map_err(|error| {
            let reported = match error {
                PartitionError::Synthesis(error) => error,
                _ => SynthesisError::Unsatisfiable,
            };
            *self.error = Some(error);
            reported
        })
    }
}

/// Runs a part's code without a witness, only to see its accesses.
pub(crate) fn count<F: Poseidon2Field>(
    circuit: &impl PartitionedCircuit<F>,
    part: usize,
) -> Result<Run<F>, PartitionError> {
    run_alone(circuit, part, SynthesisMode::Setup, Accesses::counted())
}

/// Runs a part's code with its witness for the values that it writes to shared wires and transfers.
pub(crate) fn trace<F: Poseidon2Field>(
    circuit: &impl PartitionedCircuit<F>,
    part: usize,
    memory: Memory<'_, F>,
) -> Result<Run<F>, PartitionError> {
    let mode = SynthesisMode::Prove {
        construct_matrices: false,
        generate_lc_assignments: false,
    };
    run_alone(circuit, part, mode, Accesses::in_memory(memory))
}

/// Runs a part's code without its memory check.
fn run_alone<F: Poseidon2Field>(
    circuit: &impl PartitionedCircuit<F>,
    part: usize,
    mode: SynthesisMode,
    accesses: Accesses<'_, F>,
) -> Result<Run<F>, PartitionError> {
    let cs = ConstraintSystem::new_ref();
    cs.set_optimization_goal(OptimizationGoal::Constraints);
    cs.set_mode(mode);
    run(circuit, part, &cs, accesses)
}

/// The constraints of a part with its memory check; its accesses are appended to `log`.
pub(crate) fn constraints<F: Poseidon2Field>(
    circuit: &impl PartitionedCircuit<F>,
    part: usize,
    shape: &Shape,
    log: &mut Vec<Access>,
) -> Result<(R1cs<F>, Run<F>, Sections), PartitionError> {
    let (zeros, opening) = (
        vec![F::zero(); shape.instance()],
        Opening::zero(shape.depth),
    );
    let trace = PartTrace {
        by_part: vec![F::zero(); shape.accesses],
        by_address: vec![F::zero(); shape.accesses],
        transfers: vec![F::zero(); shape.transferred],
    };
    let values = PartValues {
        fixed: &zeros,
        trace: &trace,
        opening: &opening,
    };
    let (mut made, mut error) = (None, None);
    let closure = Closure {
        run: |cs: ConstraintSystemRef<F>| -> Result<(), PartitionError> {
            let with = |check: &MemoryCheck<F>, cs: &_| {
                let accesses = Accesses::constrained(committed(check), log);
                run(circuit, part, cs, accesses)
            };
            made = Some(with_memory_check(&cs, shape, &values, with)?);
            Ok(())
        },
        error: &mut error,
    };
    let system = R1cs::from_circuit(closure);
    match (system, made) {
        (Ok(system), Some((run, sections))) => Ok((system, run, sections)),
        (Err(source), _) => Err(reason(error, part, source)),
        // The closure ran, or there was an error.
        (Ok(_), None) => Err(SynthesisError::MissingCS.into()),
    }
}

/// The assignment of a part with its memory check.
pub(crate) fn assignment<F: Poseidon2Field>(
    circuit: &impl PartitionedCircuit<F>,
    part: usize,
    shape: &Shape,
    values: &PartValues<'_, F>,
) -> Result<(Assignment<F>, Run<F>), PartitionError> {
    let (mut made, mut error) = (None, None);
    let closure = Closure {
        run: |cs: ConstraintSystemRef<F>| -> Result<(), PartitionError> {
            let with = |check: &MemoryCheck<F>, cs: &_| {
                let by_part = &values.trace.by_part;
                let accesses = Accesses::replayed(committed(check), by_part);
                run(circuit, part, cs, accesses)
            };
            made = Some(with_memory_check(&cs, shape, values, with)?);
            Ok(())
        },
        error: &mut error,
    };
    let assignment = Assignment::from_circuit(closure);
    match (assignment, made) {
        (Ok(assignment), Some((run, _))) => Ok((assignment, run)),
        (Err(source), _) => Err(reason(error, part, source)),
        (Ok(_), None) => Err(SynthesisError::MissingCS.into()),
    }
}

fn committed<F>(check: &MemoryCheck<F>) -> CommittedVariables<'_> {
    CommittedVariables {
        accesses: &check.access_variables,
        transfers: &check.transfer_variables,
    }
}

/// The error of the circuit's code, or else that of its constraint system.
fn reason(error: Option<PartitionError>, part: usize, source: R1csError) -> PartitionError {
    error.unwrap_or(PartitionError::System { part, source })
}

/// Synthesises the part's trace and transfers as the first witness variables, then the part's code, then the rest of its memory
/// check.
fn with_memory_check<F: Poseidon2Field>(
    cs: &ConstraintSystemRef<F>,
    shape: &Shape,
    values: &PartValues<'_, F>,
    own: impl FnOnce(&MemoryCheck<F>, &ConstraintSystemRef<F>) -> Result<Run<F>, PartitionError>,
) -> Result<(Run<F>, Sections), PartitionError> {
    let s = Synthesizer::new(cs.clone());
    let check = MemoryCheck::allocate(&s, cs, shape, values.fixed, values.trace)?;
    let run = own(&check, cs)?;
    let sections = check.enforce(&s, values.opening)?;
    Ok((run, sections))
}

fn run<F: Poseidon2Field>(
    circuit: &impl PartitionedCircuit<F>,
    part: usize,
    cs: &ConstraintSystemRef<F>,
    accesses: Accesses<'_, F>,
) -> Result<Run<F>, PartitionError> {
    let before = cs.num_instance_variables();
    let mut view = Part::new(cs.clone(), part, Wires::Traced(Box::new(accesses)));
    circuit.synthesize(part, &mut view)?;
    let run = view.finish();
    let found = cs.num_instance_variables();
    let expected = before + run.constants.len();
    if found != expected {
        let count = found.abs_diff(expected);
        return Err(PartitionError::InstanceVariables { part, count });
    }
    Ok(run)
}
