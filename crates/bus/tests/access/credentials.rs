//! Tests of the credentials and certificates that a server accepts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use proofmill_bus::{Credentials, NatsOptions};
use proofmill_nats_server::{Authority, NatsServer};
use serde_json::{Value, json};

use crate::support::{Certificates, block_on, says, write_secret};

/// A server with a certificate, which requires one of its clients.
fn with_tls(certificates: &Certificates) -> NatsServer {
    let (server, authority) = (&certificates.server, &certificates.authority);
    NatsServer::with_config(&format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {authority:?}, verify: true }}",
        server.certificate, server.key
    ))
}

fn tls_options(server: &NatsServer, certificates: &Certificates) -> NatsOptions {
    let client = certificates.client.clone();
    NatsOptions {
        ca_file: Some(certificates.authority.clone()),
        client_certificate: Some((client.certificate, client.key)),
        ..NatsOptions::new(&server.url())
    }
}

fn with_credentials(server: &NatsServer, credentials: Credentials) -> NatsOptions {
    NatsOptions {
        credentials,
        ..NatsOptions::new(&server.url())
    }
}

#[test]
fn both_sides_show_certificates() {
    let certificates = Certificates::new();
    let server = with_tls(&certificates);
    block_on(async {
        let options = tls_options(&server, &certificates);
        assert_eq!(says(options.clone()).await, None);
        let by_scheme = NatsOptions {
            servers: vec![server.url().replace("nats://", "tls://")],
            ..options
        };
        assert_eq!(says(by_scheme).await, None);
    });
}

#[test]
fn a_server_of_an_unknown_authority_is_refused() {
    let certificates = Certificates::new();
    let server = with_tls(&certificates);
    let other = Authority::new(certificates.dir.path(), "other");
    block_on(async {
        let mut options = tls_options(&server, &certificates);
        options.ca_file = Some(other.certificate);
        let said = says(options.clone()).await.unwrap();
        assert!(said.contains("UnknownIssuer"), "{said}");
        assert!(said.contains("--bus-ca"), "{said}");
        options.ca_file = None;
        let said = says(options).await.unwrap();
        assert!(said.contains("--bus-ca"), "{said}");
    });
}

#[test]
fn a_server_under_another_name_is_refused() {
    let certificates = Certificates::new();
    let server = with_tls(&certificates);
    block_on(async {
        let mut options = tls_options(&server, &certificates);
        options.servers = vec![format!("tls://localhost:{}", server.port())];
        let said = says(options).await.unwrap();
        assert!(
            said.contains("by a name that its certificate has"),
            "{said}"
        );
    });
}

#[test]
fn a_client_without_a_certificate_is_refused() {
    let certificates = Certificates::new();
    let server = with_tls(&certificates);
    block_on(async {
        let mut options = tls_options(&server, &certificates);
        options.client_certificate = None;
        let said = says(options).await.unwrap();
        assert!(said.contains("--bus-cert"), "{said}");
    });
}

#[test]
fn a_client_with_a_certificate_of_another_authority_is_refused() {
    let certificates = Certificates::new();
    let server = with_tls(&certificates);
    let other = Authority::new(certificates.dir.path(), "other").sign("stranger", "stranger");
    block_on(async {
        let mut options = tls_options(&server, &certificates);
        options.client_certificate = Some((other.certificate, other.key));
        let said = says(options).await.unwrap();
        assert!(said.contains("--bus-cert"), "{said}");
    });
}

#[test]
fn a_user_needs_the_password() {
    let server = NatsServer::with_config("authorization { user: a, password: geheim }");
    let user = |password: &str| {
        let (user, password) = ("a".to_owned(), password.to_owned());
        with_credentials(&server, Credentials::UserPassword { user, password })
    };
    block_on(async {
        assert_eq!(says(user("geheim")).await, None);
        let said = says(user("falsch")).await.unwrap();
        assert!(
            said.contains("--bus-user") && !said.contains("falsch"),
            "{said}"
        );
    });
}

#[test]
fn a_token_gets_in_and_another_does_not() {
    let server = NatsServer::with_config("authorization { token: geheim }");
    let token = |token: &str| with_credentials(&server, Credentials::Token(token.into()));
    block_on(async {
        assert_eq!(says(token("geheim")).await, None);
        let said = says(token("falsch")).await.unwrap();
        assert!(
            said.contains("authorization") && !said.contains("falsch"),
            "{said}"
        );
    });
}

#[test]
fn an_nkey_gets_in_and_another_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let (user, stranger) = (KeyPair::new_user(), KeyPair::new_user());
    let server = NatsServer::with_config(&format!(
        "authorization {{ users = [{{ nkey: {} }}] }}",
        user.public_key()
    ));
    let options = |key: &KeyPair, name: &str| {
        let path = dir.path().join(name);
        write_secret(&path, &format!("{}\n", key.seed().unwrap()));
        with_credentials(&server, Credentials::NkeyFile(path))
    };
    block_on(async {
        assert_eq!(says(options(&user, "user.nk")).await, None);
        let said = says(options(&stranger, "stranger.nk")).await.unwrap();
        assert!(said.contains("--bus-nkey"), "{said}");
        let broken = dir.path().join("broken.nk");
        write_secret(&broken, "SUNOSEED");
        let broken = with_credentials(&server, Credentials::NkeyFile(broken));
        let said = says(broken).await.unwrap();
        assert!(
            said.contains("broken.nk") && !said.contains("SUNOSEED"),
            "{said}"
        );
    });
}

/// Claims, signed as the server requires.
fn jwt(issuer: &KeyPair, subject: &KeyPair, kind: &str, more: Value) -> String {
    let mut nats = json!({ "type": kind, "version": 2 });
    nats.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let claims = json!({
        "jti": format!("{kind}-{}", subject.public_key()),
        "iat": 1_700_000_000,
        "iss": issuer.public_key(),
        "sub": subject.public_key(),
        "name": kind,
        "nats": nats,
    });
    let header = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let signature = issuer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn a_file_of_credentials_gets_in_and_one_of_another_account_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let operator = KeyPair::new_operator();
    let (system, account) = (KeyPair::new_account(), KeyPair::new_account());
    let limits = json!({ "limits": {
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
        "conn": -1, "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
    }});
    let no_jetstream = json!({ "limits": {
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
        "conn": -1, "leaf": -1,
    }});
    let server = NatsServer::with_config(&format!(
        "operator: {}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload {{ {}: {}, {}: {} }}",
        jwt(&operator, &operator, "operator", json!({})),
        system.public_key(),
        system.public_key(),
        jwt(&operator, &system, "account", no_jetstream),
        account.public_key(),
        jwt(&operator, &account, "account", limits),
    ));
    let options = |issuer: &KeyPair, name: &str| {
        let user = KeyPair::new_user();
        let may = json!({ "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1 });
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            jwt(issuer, &user, "user", may),
            user.seed().unwrap()
        );
        let path = dir.path().join(name);
        write_secret(&path, &text);
        with_credentials(&server, Credentials::CredentialsFile(path))
    };
    block_on(async {
        assert_eq!(says(options(&account, "user.creds")).await, None);
        let said = says(options(&KeyPair::new_account(), "stranger.creds"))
            .await
            .unwrap();
        assert!(said.contains("--bus-creds"), "{said}");
        let broken = dir.path().join("broken.creds");
        write_secret(&broken, "geheim");
        let broken = with_credentials(&server, Credentials::CredentialsFile(broken));
        let said = says(broken).await.unwrap();
        assert!(
            said.contains("broken.creds") && !said.contains("geheim"),
            "{said}"
        );
    });
}

/// Files with secrets must not be accessible to all users.
#[test]
fn secrets_that_everybody_can_read_are_refused() {
    let certificates = Certificates::new();
    let server = NatsServer::start();
    let open = |path: &PathBuf| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    };
    let file = certificates.dir.path().join("secret");
    fs::write(&file, KeyPair::new_user().seed().unwrap()).unwrap();
    open(&file);
    let mut by_key = tls_options(&server, &certificates);
    open(&certificates.client.key);
    by_key.credentials = Credentials::None;
    block_on(async {
        for options in [
            with_credentials(&server, Credentials::NkeyFile(file.clone())),
            with_credentials(&server, Credentials::CredentialsFile(file.clone())),
            by_key,
        ] {
            let said = says(options).await.unwrap();
            assert!(said.contains("chmod 600"), "{said}");
        }
    });
}

#[test]
fn missing_files_are_named() {
    let certificates = Certificates::new();
    let server = NatsServer::start();
    let nowhere = PathBuf::from("/nowhere/file");
    let mut options = Vec::new();
    for credentials in [
        Credentials::NkeyFile(nowhere.clone()),
        Credentials::CredentialsFile(nowhere.clone()),
    ] {
        options.push(with_credentials(&server, credentials));
    }
    let mut without = tls_options(&server, &certificates);
    without.ca_file = Some(nowhere.clone());
    options.push(without);
    let mut without = tls_options(&server, &certificates);
    without.client_certificate = Some((nowhere.clone(), certificates.client.key.clone()));
    options.push(without);
    let mut without = tls_options(&server, &certificates);
    without.client_certificate = Some((certificates.client.certificate.clone(), nowhere));
    options.push(without);
    block_on(async {
        for options in options {
            let said = says(options).await.unwrap();
            assert!(said.contains("cannot read /nowhere/file"), "{said}");
        }
    });
}
