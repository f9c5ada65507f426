//! `proofmill partition publish`

use proofmill_bus::FolderManifest;
use proofmill_orchestrator::remote::Role;
use proofmill_telemetry::console_line;
use serde_json::json;

use crate::args::partition::PartitionPublish;
use crate::circuit_folder::Folder;
use crate::commands::engine::bytes;
use crate::failure::Failure;
use crate::progress::{Screen, counted};
use crate::provers::published_store;
use crate::{bus, output};

pub(super) async fn run(args: &PartitionPublish) -> Result<(), Failure> {
    let folder = Folder::at(&args.keys);
    let manifest = manifest(&folder)?;
    let connection = bus::connect(&args.bus, Role::Operator, "publish").await?;
    let store = published_store(&connection).await?;
    let shown = args.keys.display();
    let (digest, all) = (manifest.digest(), manifest.bytes());
    if args.remove {
        manifest.remove(&store).await?;
        console_line(output::plain(&format!("{shown}: no longer on the bus")));
    } else {
        let screen = Screen::open();
        let bar = screen.bar("publish", Some(all));
        let published = manifest.publish(&store, folder.path(), |done| {
            bar.set(done, &format!("{} of {}", bytes(done), bytes(all)));
        });
        let published = published.await;
        bar.clear();
        screen.close();
        published?;
        console_line(output::plain(&format!(
            "{shown}: {}, {}, published as {digest}",
            counted(manifest.names().count(), "file"),
            bytes(all)
        )));
    }
    if args.json {
        let answer = json!({
            "published": (!args.remove).then(|| digest.to_string()),
            "files": manifest.names().count(),
            "bytes": all,
        });
        output::line(answer.to_string())?;
    }
    Ok(())
}

/// The manifest of a folder with keys.
pub(super) fn manifest(folder: &Folder) -> Result<FolderManifest, Failure> {
    // Refuses a folder of something else.
    folder.description()?;
    Ok(FolderManifest::of(folder.path(), &folder.file_names()?)?)
}
