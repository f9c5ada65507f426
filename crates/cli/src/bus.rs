//! The bus, as the command line describes it.

use std::time::Duration;

use proofmill_bus::{Bucket, Connection, Credentials, NatsOptions, Role};

use crate::args::cluster::BusArgs;
use crate::failure::Failure;

/// Where the password of `--bus-user` is, and a token: on a command line others could read them.
const PASSWORD: &str = "PROOFMILL_BUS_PASSWORD";
const TOKEN: &str = "PROOFMILL_BUS_TOKEN";

/// Longest time that a role waits for a bus that does not answer: servers and roles are started
/// together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(300);

/// Connects as a role; `name` is what the server shows.
pub(crate) async fn connect(args: &BusArgs, role: Role, name: &str) -> Result<Connection, Failure> {
    let url = args.url.as_deref().ok_or_else(|| {
        Failure::usage("no bus to connect to")
            .help("name a NATS server with --bus nats://HOST:4222, or in PROOFMILL_BUS")
    })?;
    let secret = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut options = NatsOptions::new(url);
    options.credentials = if let Some(path) = &args.bus_creds {
        Credentials::CredentialsFile(path.clone())
    } else if let Some(path) = &args.bus_nkey {
        Credentials::NkeyFile(path.clone())
    } else if let Some(user) = &args.bus_user {
        let password = secret(PASSWORD).ok_or_else(|| {
            Failure::usage(format!(
                "--bus-user: no password in the environment, {PASSWORD}"
            ))
        })?;
        Credentials::UserPassword {
            user: user.clone(),
            password,
        }
    } else if let Some(token) = secret(TOKEN) {
        Credentials::Token(token)
    } else {
        Credentials::None
    };
    options.ca_file.clone_from(&args.bus_ca);
    options.client_certificate = args.bus_cert.clone().zip(args.bus_key.clone());
    options.prefix.clone_from(&args.bus_prefix);
    options.replicas = args.replicas;
    options.role = role;
    options.identity.clone_from(&args.bus_identity);
    options.blobs = args.blobs.as_deref().map(|url| {
        let variables = std::env::vars_os();
        let texts = variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Bucket::new(url, texts)
    });
    let wait = match role {
        // A person waits for the answer.
        Role::Operator => Duration::ZERO,
        _ => CONNECT_TIMEOUT,
    };
    options.connect_timeout = args.connect_timeout.unwrap_or(wait);
    options.name = format!("proofmill {role} {name}");
    Ok(Connection::open(options).await?)
}
