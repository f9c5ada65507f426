//! Connections to a server with deploy/nats/cluster.conf, as the user of a role.

use proofmill_bus::{Connection, Credentials, NatsOptions};
use proofmill_nats_server::Deployed;
use proofmill_orchestrator::remote::Role;

use crate::support::PATIENCE;

pub(crate) const ROLES: [Role; 7] = [
    Role::Coordinator,
    Role::Dispatcher,
    Role::Collector,
    Role::Sequencer,
    Role::Source,
    Role::Operator,
    Role::Console,
];

/// The user of a role; of the dispatchers' two users, the one with worker group `prove`.
pub(crate) fn user_of(role: Role) -> &'static str {
    match role {
        Role::Dispatcher => "prover",
        role => role.name(),
    }
}

/// Options with which a role connects, as the user of that role.
pub(crate) fn options(deployed: &Deployed, role: Role) -> NatsOptions {
    options_of(deployed, role, user_of(role))
}

/// Options with which a user connects.
pub(crate) fn options_of(deployed: &Deployed, role: Role, user: &str) -> NatsOptions {
    let client = deployed.client.clone();
    NatsOptions {
        membership: role.membership(),
        credentials: Credentials::UserPassword {
            user: user.into(),
            password: Deployed::password(user),
        },
        ca_file: Some(deployed.authority.clone()),
        client_certificate: Some((client.certificate, client.key)),
        connect_timeout: PATIENCE,
        ..NatsOptions::new(&deployed.server.url())
    }
}

pub(crate) async fn connect(deployed: &Deployed, role: Role) -> Connection {
    Connection::open(options(deployed, role))
        .await
        .expect("the bus")
}
