//! `proofmill ethproofs`: what the site knows about a team's clusters.

use proofmill_ethproofs::{Change, ClusterError, Clusters, Deployment, NewCluster, Token};
use proofmill_workflow::{Ethproofs as Table, Secret};
use serde_json::json;

use crate::args::ethproofs::{Ethproofs, EthproofsCommand, Register, SiteArgs, Update};
use crate::failure::Failure;
use crate::hardware::Hardware;
use crate::output;

/// Runs the command.
pub(crate) async fn run(args: &Ethproofs) -> Result<(), Failure> {
    match &args.command {
        EthproofsCommand::Clusters { site } => list(site).await,
        EthproofsCommand::Register(args) => register(args).await,
        EthproofsCommand::Update(args) => update(args).await,
    }
}

async fn list(site: &SiteArgs) -> Result<(), Failure> {
    let clusters = client(site)?.list().await.map_err(failure)?;
    if site.json {
        return output::line(json!(clusters).to_string());
    }
    for cluster in clusters {
        let hardware = cluster.hardware.as_deref().unwrap_or("hardware not given");
        let id = cluster
            .id
            .map_or_else(|| "-".to_owned(), |id| id.to_string());
        // A line for each, whatever the names are.
        let line = format!("{id:>6}  {}: {hardware}", cluster.name).replace('\n', " ");
        output::line(output::plain(&line))?;
    }
    Ok(())
}

async fn register(args: &Register) -> Result<(), Failure> {
    let cluster = new_cluster(args)?;
    if args.dry_run {
        return output::line(format!("{:#}", json!(cluster)));
    }
    let created = client(&args.site)?.create(&cluster).await;
    let id = created.map_err(|error| {
        let may_exist = matches!(error, ClusterError::Out(_) | ClusterError::Unreadable(_));
        let failure = failure(error);
        match may_exist {
            true => failure.help(
                "the cluster may exist nevertheless: look at `proofmill ethproofs clusters` before you try again",
            ),
            false => failure,
        }
    })?;
    if args.site.json {
        return output::line(json!({ "id": id, "cluster": cluster }).to_string());
    }
    output::line(format!("cluster {id}: {}", cluster.hardware))?;
    output::line(format!(
        "in the workflow file:\n\n[ethproofs]\n{}cluster_id = {id}",
        token_line(&args.site)
    ))
}

/// The cluster to create, with what this machine has where nothing else is said.
fn new_cluster(args: &Register) -> Result<NewCluster, Failure> {
    let (gpus, hardware) = match (args.gpus, &args.hardware) {
        (Some(gpus), Some(hardware)) => (gpus, hardware.clone()),
        _ => {
            let machine = Hardware::of_this_machine()?;
            let words = machine.words(args.machines, NewCluster::HARDWARE_MAX);
            (machine.cards() * args.machines, words)
        }
    };
    Ok(NewCluster {
        name: args.name.clone(),
        zkvm_version: args.zkvm_version,
        // The site counts no cluster without a GPU.
        gpus: gpus.max(1),
        hardware,
        deployment: match args.on_premises {
            true => Deployment::OnPremises,
            false => Deployment::Cloud,
        },
    })
}

async fn update(args: &Update) -> Result<(), Failure> {
    let hardware = match &args.hardware {
        Some(None) => {
            let machine = Hardware::of_this_machine()?;
            Some(machine.words(args.machines, NewCluster::HARDWARE_MAX))
        }
        Some(words) => words.clone(),
        None => None,
    };
    let change = Change {
        name: args.name.clone(),
        zkvm_version: args.zkvm_version,
        gpus: args.gpus,
        hardware,
        active: args.active,
    };
    let clusters = client(&args.site)?;
    clusters.change(args.id, &change).await.map_err(failure)?;
    match args.site.json {
        true => output::line(json!({ "id": args.id, "changed": change }).to_string()),
        false => output::line(format!("cluster {} is changed", args.id)),
    }
}

/// The clusters of the team whose key is named.
fn client(site: &SiteArgs) -> Result<Clusters, Failure> {
    let token = Token::read(&site.token()).map_err(|error| {
        Failure::of(&error).help("the key is made at ethproofs.org; see docs/ethproofs.md")
    })?;
    Ok(Clusters {
        url: site.url.clone(),
        ca: site.ca.clone(),
        token,
        time_limit: Table::TIME_LIMIT,
    })
}

/// The line of a workflow file that names the key.
fn token_line(site: &SiteArgs) -> String {
    match site.token() {
        Secret::Environment(name) => format!("token_env = {}\n", json!(name)),
        // In the file a relative path would begin at the file's own folder.
        Secret::File(path) => {
            let path = std::path::absolute(&path).unwrap_or(path);
            format!("token_file = {}\n", json!(path))
        }
    }
}

fn failure(error: ClusterError) -> Failure {
    Failure::of(&error)
}
