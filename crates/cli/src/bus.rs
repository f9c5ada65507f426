//! Connecting to the bus that the command line names.

use std::time::Duration;

use proofmill_bus::{Bucket, Connection, Credentials, Membership, MissingStream, NatsOptions};
use proofmill_orchestrator::remote::Role;
use proofmill_telemetry::console_line;

use crate::args::cluster::BusArgs;
use crate::failure::Failure;
use crate::output;

/// Environment variable of `--bus`.
const URL: &str = "PROOFMILL_BUS";

/// Environment variables with the password of `--bus-user` and with a token. They are not arguments because other users
/// of the machine can read a command line.
const PASSWORD: &str = "PROOFMILL_BUS_PASSWORD";
const TOKEN: &str = "PROOFMILL_BUS_TOKEN";

/// Default time for which a role keeps trying to reach a bus: servers and roles are often started together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(300);

/// Prints the bus at `url`, without user names and passwords, and whether it is the one in the environment: a command
/// that also works without a bus uses one that a shell's profile names.
pub(crate) fn print(url: &str) {
    let in_environment = std::env::var(URL).is_ok_and(|value| value == url);
    let from = if in_environment {
        format!(" ({URL})")
    } else {
        String::new()
    };
    let shown = NatsOptions::new(url).shown();
    console_line(output::plain(&format!("bus: {shown}{from}")));
}

/// Connects as `role`. The connection's name, which the NATS server shows, is `proofmill ROLE NAME`.
pub(crate) async fn connect(args: &BusArgs, role: Role, name: &str) -> Result<Connection, Failure> {
    let wait = match role {
        // A person is waiting for the answer, so one attempt is enough.
        Role::Operator => Duration::ZERO,
        _ => CONNECT_TIMEOUT,
    };
    open(args, role, role.membership(), wait, name).await
}

/// Connects with an operator's rights, for a process that runs on: it waits for the server, and for the streams.
pub(crate) async fn connect_service(args: &BusArgs, name: &str) -> Result<Connection, Failure> {
    let creator = Role::Coordinator.name();
    let role = Role::Operator;
    let membership = Membership::new(role.name(), MissingStream::Wait { creator });
    open(args, role, membership, CONNECT_TIMEOUT, name).await
}

async fn open(
    args: &BusArgs,
    role: Role,
    membership: Membership,
    wait: Duration,
    name: &str,
) -> Result<Connection, Failure> {
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
                "--bus-user: the environment variable {PASSWORD} has no password"
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
    options.membership = membership;
    options.identity.clone_from(&args.bus_identity);
    options.blobs = args.blobs.as_deref().map(|url| {
        let variables = std::env::vars_os();
        let texts = variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Bucket::new(url, texts)
    });
    options.connect_timeout = args.connect_timeout.unwrap_or(wait);
    options.name = format!("proofmill {role} {name}");
    Ok(Connection::open(options).await?)
}
