//! Connecting to the server: validation of the options, and the client's settings.

use std::future::ready;
use std::path::Path;
use std::time::{Duration, Instant};

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};

use super::connection::{ANSWER_TIMEOUT, ConnectedSince, with_sources};
use super::options::{ConnectError, Credentials, NatsOptions};
use super::refusal::Refusals;
use crate::certificate::certificate_remedy;
use crate::secret::read_secret;

/// Connects; `connected` and `refusals` are updated by later events of the connection.
pub(super) async fn connect(
    options: &NatsOptions,
    connected: ConnectedSince,
    refusals: Refusals,
) -> Result<Client, ConnectError> {
    check(options)?;
    let connect = connect_options(options, connected, refusals).await?;
    let connected = connect.connect(options.servers.clone()).await;
    connected.map_err(|error| {
        let mut why = with_sources(&error);
        let remedy = remedy(options, error.kind(), &why);
        let is_final = remedy.is_some()
            || matches!(
                error.kind(),
                ConnectErrorKind::ServerParse
                    | ConnectErrorKind::Authentication
                    | ConnectErrorKind::AuthorizationViolation
                    | ConnectErrorKind::Tls
            );
        if let Some(remedy) = remedy {
            why = format!("{why}; {remedy}");
        }
        ConnectError::Unreachable {
            servers: options.shown(),
            why,
            is_final,
        }
    })
}

/// Advice for a server that refuses this client, or that this client does not trust.
fn remedy(options: &NatsOptions, kind: ConnectErrorKind, why: &str) -> Option<String> {
    let remedy = match kind {
        ConnectErrorKind::AuthorizationViolation => {
            "the server does not know this user, or the secret is not this user's: see \
             --bus-user, --bus-nkey, --bus-creds"
        }
        ConnectErrorKind::Authentication => {
            return match &options.credentials {
                Credentials::NkeyFile(path) | Credentials::CredentialsFile(path) => Some(format!(
                    "{} does not contain the seed of an nkey",
                    path.display()
                )),
                _ => None,
            };
        }
        _ if why.contains("received fatal alert") => {
            "the server wants a client certificate of an authority that it trusts: name one with \
             --bus-cert and --bus-key"
        }
        _ => return certificate_remedy(why, "--bus-ca"),
    };
    Some(remedy.into())
}

fn check(options: &NatsOptions) -> Result<(), ConnectError> {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if options.prefix.is_empty() || !options.prefix.bytes().all(is_name_byte) {
        return Err(ConnectError::Setting(format!(
            "the prefix {:?} cannot be part of a stream's name: use ASCII letters, digits, `_` \
             and `-`",
            options.prefix
        )));
    }
    if let Some(identity) = options.identity()
        && options.membership.has_user()
        && (identity.is_empty() || identity.len() > 63 || !identity.bytes().all(is_name_byte))
    {
        return Err(ConnectError::Setting(format!(
            "the user {identity:?} cannot be part of a subject: give --bus-identity, 1 to 63 \
             ASCII letters, digits, `_` and `-`, as in the user's permissions on the server"
        )));
    }
    if !matches!(options.replicas, 1 | 3 | 5) {
        return Err(ConnectError::Setting(format!(
            "{} replicas: 1, 3 or 5 are possible",
            options.replicas
        )));
    }
    Ok(())
}

async fn connect_options(
    options: &NatsOptions,
    connected: ConnectedSince,
    refusals: Refusals,
) -> Result<ConnectOptions, ConnectError> {
    let mut connect = ConnectOptions::new()
        .name(&options.name)
        .custom_inbox_prefix(options.inbox())
        .ping_interval(Duration::from_secs(2))
        .connection_timeout(Duration::from_secs(3))
        .request_timeout(Some(ANSWER_TIMEOUT))
        // Reconnects without limit, so that a server that was full or away for long is still found.
        .max_reconnects(None)
        .reconnect_delay_callback(|attempts| {
            let millis = 20 << attempts.min(6);
            Duration::from_millis(millis)
        })
        .event_callback(move |event| {
            match event {
                Event::Connected => {
                    connected.set(Some(Instant::now()));
                    tracing::info!("connected to the bus");
                }
                Event::Disconnected => {
                    connected.set(None);
                    tracing::warn!("the connection to the bus is lost");
                }
                Event::ServerError(error) => refusals.note(&error.to_string()),
                other => tracing::debug!(event = %other, "bus"),
            }
            ready(())
        });
    connect = match &options.credentials {
        Credentials::None => connect,
        Credentials::UserPassword { user, password } => {
            connect.user_and_password(user.clone(), password.clone())
        }
        Credentials::Token(token) => connect.token(token.clone()),
        Credentials::NkeyFile(path) => connect.nkey(read_secret(path).await?.trim().to_owned()),
        Credentials::CredentialsFile(path) => {
            let text = read_secret(path).await?;
            connect.credentials(&text).map_err(|error| {
                ConnectError::Setting(format!("{} holds no credentials: {error}", path.display()))
            })?
        }
    };
    if let Some(path) = &options.ca_file {
        let metadata = tokio::fs::metadata(path).await;
        metadata.map_err(unreadable(path))?;
        connect = connect.add_root_certificates(path.clone());
        connect = connect.require_tls(true);
    }
    if let Some((certificate, key)) = &options.client_certificate {
        let metadata = tokio::fs::metadata(certificate).await;
        metadata.map_err(unreadable(certificate))?;
        read_secret(key).await?;
        connect = connect.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(connect)
}

fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> ConnectError {
    let path = path.to_owned();
    move |source| ConnectError::File { path, source }
}
