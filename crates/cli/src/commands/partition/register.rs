//! `proofmill partition register`

use ark_ec::pairing::Pairing;
use proofmill_api::engine::proto::register_request::Source;
use proofmill_api::engine::proto::{RegisterRequest, SystemFiles};
use proofmill_partition::proof::ClassKeys;
use proofmill_partition::with_partition_curve;
use serde_json::json;

use crate::args::partition::PartitionRegister;
use crate::circuit_folder::Folder;
use crate::commands::engine::{absolute, connect, refused};
use crate::failure::Failure;
use crate::output;
use crate::provers::engine_circuit_name;

pub(super) async fn run(args: &PartitionRegister) -> Result<(), Failure> {
    let folder = Folder::at(&args.keys);
    let curve = folder.description()?.curve()?;
    let classes = tokio::task::block_in_place(
        || with_partition_curve!(curve, E => constraints::<E>(&folder))?,
    )?;
    let client = connect(&args.query.engine).await?;
    let mut names = Vec::new();
    for (name, files) in classes {
        let request = RegisterRequest {
            name: name.clone(),
            source: Some(Source::System(files)),
        };
        let registered = client.register(request).await;
        registered.map_err(|error| refused(&error))?;
        names.push(name);
    }
    match args.query.json {
        true => output::line(json!({ "circuits": names }).to_string()),
        false => names.iter().try_for_each(output::line),
    }
}

/// Writes the constraints of each class beside its key, where they are absent. Names and files of the classes.
fn constraints<E: proofmill_partition::proof::PartitionCurve>(
    folder: &Folder,
) -> Result<Vec<(String, SystemFiles)>, Failure> {
    let partition = folder.partition::<<E as Pairing>::ScalarField>()?;
    let classes = partition.classes().iter().enumerate();
    let files = classes.map(|(number, class)| {
        let path = folder.path().join(format!("class-{number}.pmcs"));
        if !path.exists() {
            class.system().save_precompiled(&path)?;
        }
        let key = ClassKeys::<E>::path(folder.path(), number);
        let files = SystemFiles {
            constraints: absolute(&path)?,
            key: absolute(&key)?,
        };
        Ok((engine_circuit_name::<E>(&key)?, files))
    });
    files.collect()
}
