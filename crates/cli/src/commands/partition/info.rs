//! `proofmill partition info`

use std::path::Path;

use proofmill_groth16::with_curve;
use proofmill_partition::proof::{
    ClassKeys, KeyForm, PartitionCurve, PartitionProof, VerifyingKey,
};
use proofmill_partition::{Check, Class, Partition};
use serde_json::{Value, json};

use crate::args::partition::PartitionInfo;
use crate::circuit_folder::{Description, Folder};
use crate::commands::engine::bytes;
use crate::content::{FileKind, curve_of_file};
use crate::failure::Failure;
use crate::output;

pub(super) fn run(args: &PartitionInfo) -> Result<(), Failure> {
    let path = &args.path;
    let answer = if path.is_dir() {
        let folder = Folder::at(path);
        let description = folder.description()?;
        let curve = description.curve()?;
        with_curve!(curve, E => describe_folder::<E>(&folder, &description))?
    } else if FileKind::of_file(path).ok().flatten() == Some(FileKind::PartitionProof) {
        let curve = curve_of_file(FileKind::PartitionProof, path)?;
        with_curve!(curve, E => describe_proof::<E>(path))?
    } else {
        let curve = curve_of_file(FileKind::PartitionKey, path)?;
        with_curve!(curve, E => describe_key::<E>(path))?
    };
    if args.json {
        return output::line(answer.to_string());
    }
    for line in lines(&answer) {
        output::line(output::plain(&line))?;
    }
    Ok(())
}

fn describe_key<E: PartitionCurve>(path: &Path) -> Result<Value, Failure> {
    let key = VerifyingKey::<E>::load(path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    Ok(json!({
        "verifying_key": {
            "curve": E::CURVE.name(),
            "parts": key.num_parts(),
            "public_inputs": key.num_public_inputs(),
            "digest": hex::encode(key.digest()),
            "partition": hex::encode(key.partition()),
            "bytes": key.to_bytes().len(),
            "proof_bytes": PartitionProof::<E>::encoded_size(key.num_parts()),
        }
    }))
}

fn describe_proof<E: PartitionCurve>(path: &Path) -> Result<Value, Failure> {
    let proof = PartitionProof::<E>::load(path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    Ok(json!({
        "proof": {
            "curve": E::CURVE.name(),
            "bytes": proof.to_bytes().len(),
        }
    }))
}

fn describe_folder<E: PartitionCurve>(
    folder: &Folder,
    description: &Description,
) -> Result<Value, Failure> {
    let partition = folder.partition::<E::ScalarField>()?;
    let mut parts_of = vec![0usize; partition.classes().len()];
    for part in 0..partition.num_parts() {
        parts_of[partition.class_of(part)?] += 1;
    }
    let numbered = partition.classes().iter().enumerate();
    let classes: Vec<Value> = numbered
        .map(|(number, class)| {
            let key = ClassKeys::<E>::path(folder.path(), number);
            describe_class(
                class,
                parts_of[number],
                key.metadata().map_or(0, |file| file.len()),
            )
        })
        .collect();
    let mut answer = describe_key::<E>(&folder.verifying_key_path())?;
    answer["circuit"] = serde_json::to_value(&description.circuit)?;
    answer["classes"] = classes.into();
    answer["constraints"] = total(&partition, &parts_of).into();
    let memory = folder.memory::<E>(&partition)?;
    answer["memory"] = json!({
        "mapped_bytes": memory.peak(KeyForm::Mapped),
        "plain_bytes": memory.peak(KeyForm::Plain),
    });
    Ok(answer)
}

fn total<F: proofmill_kernels::Poseidon2Field>(
    partition: &Partition<F>,
    parts_of: &[usize],
) -> u64 {
    let classes = partition.classes().iter().zip(parts_of);
    classes
        .map(|(class, parts)| (class.layout().constraints * parts) as u64)
        .sum()
}

fn describe_class<F: proofmill_kernels::Poseidon2Field>(
    class: &Class<F>,
    parts: usize,
    key_bytes: u64,
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
        "key_bytes": key_bytes,
    })
}

/// The answer as lines of text.
fn lines(answer: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(circuit) = answer.get("circuit") {
        lines.push(format!("circuit        {circuit}"));
    }
    for name in ["verifying_key", "proof"] {
        for (field, value) in answer[name].as_object().into_iter().flatten() {
            let shown = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            lines.push(format!("{:<14} {shown}", field.replace('_', " ")));
        }
    }
    if let Some(total) = answer.get("constraints") {
        lines.push(format!("constraints    {total} in all parts"));
    }
    if let Some(memory) = answer.get("memory") {
        let of = |name: &str| bytes(memory[name].as_u64().unwrap_or(0));
        lines.push(format!(
            "memory         {} to prove, beside the program; {} at least, with keys in their files",
            of("plain_bytes"),
            of("mapped_bytes")
        ));
    }
    for class in answer["classes"].as_array().into_iter().flatten() {
        lines.push(format!(
            "class {}: {} parts of {} constraints: {} of the circuit, {} of the memory check ({} for each of {} \
             accesses, and one more to set a portal), {} of the multiset ({} puts and takes), {} of the states; a key of \
             {} bytes",
            class["name"].as_str().unwrap_or_default(),
            class["parts"],
            class["constraints"],
            class["of_the_circuit"],
            class["of_the_memory_check"],
            class["constraints_an_access"],
            class["accesses"],
            class["of_the_multiset"],
            class["transfers"],
            class["of_the_states"],
            class["key_bytes"],
        ));
    }
    lines
}
