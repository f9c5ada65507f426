//! A folder with keys: the classes, the portals and the memory of its circuit.

use proofmill_groth16::mirage::ProvingKeyInfo;
use proofmill_kernels::Poseidon2Field;
use proofmill_partition::proof::{KeyForm, MemoryNeeds, PartitionCurve};
use proofmill_partition::{Check, Class, Partition};
use serde_json::{Value, json};

use super::{describe_key, times};
use crate::args::partition::PartitionInfo;
use crate::circuit_folder::{Description, Folder};
use crate::failure::Failure;

/// The answer about a folder.
pub(super) fn describe<E: PartitionCurve>(
    folder: &Folder,
    description: &Description,
    args: &PartitionInfo,
) -> Result<Value, Failure> {
    let partition = folder.partition::<E::ScalarField>()?;
    let mut parts_of = vec![0usize; partition.classes().len()];
    for part in 0..partition.num_parts() {
        parts_of[partition.class_of(part)?] += 1;
    }
    let keys = folder.key_infos::<E>(&partition)?;
    let classes = partition.classes().iter().zip(&parts_of).zip(&keys);
    let classes: Vec<Value> = classes
        .map(|((class, parts), key)| describe_class(class, *parts, key))
        .collect();
    let mut answer = describe_key::<E>(&folder.verifying_key_path())?;
    answer["circuit"] = serde_json::to_value(&description.circuit)?;
    answer["classes"] = classes.into();
    answer["constraints"] = total(&partition, &parts_of).into();
    answer["portals"] = describe_portals(&partition);
    let memory = MemoryNeeds::new::<E>(&partition, &keys);
    answer["memory"] = json!({
        "mapped_bytes": memory.peak(KeyForm::Mapped),
        "plain_bytes": memory.peak(KeyForm::Plain),
    });
    if !args.no_times {
        let circuit = description.circuit.without_witness(folder)?;
        answer["times"] = times::estimate::<E>(&partition, &circuit, &keys, &args.cores)?;
    }
    Ok(answer)
}

fn total<F: Poseidon2Field>(partition: &Partition<F>, parts_of: &[usize]) -> u64 {
    let classes = partition.classes().iter().zip(parts_of);
    classes
        .map(|(class, parts)| (class.layout().constraints * parts) as u64)
        .sum()
}

/// The wires that parts share. Public inputs are not counted as wires, but reads of them are accesses, as they cost the
/// same.
fn describe_portals<F: Poseidon2Field>(partition: &Partition<F>) -> Value {
    let public = partition.num_public_inputs();
    let of_parts = partition.classes().iter().map(Class::accesses);
    let transfers = partition.classes().iter().map(|of| of.transfers().len());
    json!({
        "wires": partition.num_addresses() - public,
        "accesses": partition.num_accesses() - public,
        "accesses_of_a_part_least": of_parts.clone().min(),
        "accesses_of_a_part_most": of_parts.max(),
        "transfers_of_a_part_most": transfers.max(),
    })
}

fn describe_class<F: Poseidon2Field>(
    class: &Class<F>,
    parts: usize,
    key: &ProvingKeyInfo,
) -> Value {
    let layout = class.layout();
    let of = |checks: &[Check]| -> usize {
        checks
            .iter()
            .map(|check| class.constraints_of(*check))
            .sum()
    };
    let accesses = class.accesses();
    let memory = of(&[Check::SumByPart, Check::SumByAddress, Check::EqualValues]);
    json!({
        "name": class.name(),
        "parts": parts,
        "constraints": layout.constraints,
        "of_the_circuit": of(&[Check::Circuit]),
        "of_the_memory_check": memory,
        "of_the_multiset": of(&[Check::Multiset]),
        "of_the_states": of(&[
            Check::LeafBefore,
            Check::EqualTraces,
            Check::EmptyMultiset,
            Check::LeafAfter,
        ]),
        "accesses": accesses,
        "transfers": class.transfers().len(),
        // Setting a portal costs one more, counted among the circuit's own constraints.
        "constraints_an_access": memory.checked_div(accesses).unwrap_or(0),
        "committed": layout.committed,
        "fixed_inputs": layout.preprocessed,
        // Constraints and instance variables, rounded up to a power of two.
        "domain": key.plain.domain,
        "key_bytes": key.file_bytes,
    })
}
