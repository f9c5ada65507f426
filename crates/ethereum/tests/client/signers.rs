//! Keys in files and variables, and servers that sign.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use proofmill_ethereum::{
    Address, Bytes, KeyError, Local, Remote, SignError, Signer, Transaction, U256,
};
use serde_json::json;

use crate::server::Server;
use crate::transactions::{ANVIL_KEY, local};

fn address() -> Address {
    local(ANVIL_KEY).address()
}

fn transaction() -> Transaction {
    Transaction {
        chain_id: 31_337,
        nonce: 7,
        to: Some(Address::from([0x11; 20])),
        value: U256::from(5),
        data: Bytes::from_static(&[1, 2, 3]),
        gas_limit: 100_000,
        max_fee_per_gas: 30_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
    }
}

async fn read_file_of(text: &str, mode: u32) -> Result<Local, KeyError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("key");
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
    Local::from_file(&path).await
}

#[tokio::test]
async fn keys_are_read_from_private_files() {
    for text in [
        ANVIL_KEY.to_owned(),
        format!("0x{ANVIL_KEY}\n"),
        format!(" {}\r\n", ANVIL_KEY.to_uppercase()),
    ] {
        let read = read_file_of(&text, 0o600).await.expect("a key");
        assert_eq!(read.address(), address());
        let shown = format!("{read:?} {:?}", Signer::Local(local(ANVIL_KEY)));
        assert!(!shown.to_lowercase().contains(&ANVIL_KEY[..8]), "{shown}");
        assert!(shown.contains(&address().to_string()), "{shown}");
    }
    for mode in [0o644, 0o604, 0o602] {
        let error = read_file_of(ANVIL_KEY, mode)
            .await
            .expect_err("others can read it");
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
}

#[tokio::test]
async fn what_is_no_key_is_refused_and_not_shown() {
    let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
    for (text, why) in [
        ("", "64 hexadecimal digits"),
        ("secret", "64 hexadecimal digits"),
        (&ANVIL_KEY[1..], "64 hexadecimal digits"),
        (&format!("{ANVIL_KEY}00"), "64 hexadecimal digits"),
        (&format!("0x0x{}", &ANVIL_KEY[2..]), "64 hexadecimal digits"),
        (&"0".repeat(64), "no key of secp256k1"),
        (order, "no key of secp256k1"),
    ] {
        let error = read_file_of(text, 0o600).await.expect_err(why);
        let shown = format!("{error} {error:?}");
        assert!(shown.contains(why) && shown.contains("/key"), "{shown}");
        assert!(
            !shown.contains("secret") && !shown.contains(&ANVIL_KEY[..8]),
            "{shown}"
        );
    }
    let error = Local::from_environment("PROOFMILL_NO_SUCH_KEY").expect_err("it is not set");
    assert!(
        error
            .to_string()
            .contains("PROOFMILL_NO_SUCH_KEY is missing"),
        "{error}"
    );
    // A variable that is always set, and is no key.
    let error = Local::from_environment("PATH")
        .expect_err("no key")
        .to_string();
    assert!(
        error.starts_with("the variable PATH holds no key"),
        "{error}"
    );
}

async fn remote_sign(server: &Server, asked: &Transaction) -> Result<Bytes, SignError> {
    let remote = Remote::new(server.url.clone(), None, address()).expect("a client");
    let signer = Signer::Remote(remote);
    assert_eq!(signer.address(), address());
    signer.sign(asked).await.map(|signed| signed.raw)
}

#[tokio::test]
async fn servers_answer_with_the_raw_transaction_or_an_object_that_has_it() {
    let raw = local(ANVIL_KEY).sign(&transaction()).expect("signed").raw;
    let results = [
        format!("\"{raw}\""),
        format!(r#"{{"raw": "{raw}", "tx": {{"nonce": "0x0"}}}}"#),
    ];
    for result in results {
        let server = Server::returning([&result]).await;
        assert_eq!(
            remote_sign(&server, &transaction()).await.expect("signed"),
            raw
        );
        let asked = json!([{
            "from": "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
            "to": "0x1111111111111111111111111111111111111111",
            "gas": "0x186a0",
            "maxFeePerGas": "0x6fc23ac00",
            "maxPriorityFeePerGas": "0x3b9aca00",
            "value": "0x5",
            "nonce": "0x7",
            "data": "0x010203",
            "chainId": "0x7a69",
        }]);
        assert_eq!(
            server.requests(),
            [("eth_signTransaction".to_owned(), asked)]
        );
    }
}

#[tokio::test]
async fn clef_is_asked_by_its_own_method() {
    let mut creation = transaction();
    creation.to = None;
    let raw = local(ANVIL_KEY).sign(&creation).expect("signed").raw;
    let server = Server::sending(vec![
        crate::server::ok(r#"{"error": {"code": -32601, "message": "the method does not exist"}}"#),
        crate::server::ok(&format!(r#"{{"result": {{"raw": "{raw}"}}}}"#)),
    ])
    .await;
    assert_eq!(remote_sign(&server, &creation).await.expect("signed"), raw);
    let requests = server.requests();
    let methods: Vec<&str> = requests.iter().map(|(method, _)| method.as_str()).collect();
    assert_eq!(methods, ["eth_signTransaction", "account_signTransaction"]);
    assert!(requests[1].1[0].get("to").is_none());
}

#[tokio::test]
async fn another_transaction_than_was_asked_for_is_refused() {
    type Change = fn(&mut Transaction);
    let changes: [(&str, Change); 8] = [
        ("chain identifier", |it| it.chain_id = 1),
        ("nonce", |it| it.nonce += 1),
        ("receiver", |it| it.to = None),
        ("value", |it| it.value = U256::from(6)),
        ("data", |it| it.data = Bytes::from_static(&[1, 2, 4])),
        ("gas limit", |it| it.gas_limit += 1),
        ("fee", |it| it.max_fee_per_gas += 1),
        ("priority fee", |it| it.max_priority_fee_per_gas -= 1),
    ];
    for (field, change) in changes {
        let mut other = transaction();
        change(&mut other);
        let raw = local(ANVIL_KEY).sign(&other).expect("signed").raw;
        let server = Server::returning([&format!("\"{raw}\"")]).await;
        let error = remote_sign(&server, &transaction()).await.expect_err(field);
        assert!(
            matches!(&error, SignError::Other { field: found, .. } if *found == field),
            "{error}"
        );
    }
    // The right transaction, by another key.
    let raw = local(&"11".repeat(32))
        .sign(&transaction())
        .expect("signed")
        .raw;
    let server = Server::returning([&format!("\"{raw}\"")]).await;
    let error = remote_sign(&server, &transaction())
        .await
        .expect_err("another key");
    assert!(error.to_string().contains("another sender"), "{error}");
}

#[tokio::test]
async fn what_is_no_signed_transaction_is_refused() {
    for (result, why) in [
        ("null", "neither a raw transaction"),
        ("{}", "neither a raw transaction"),
        (r#"{"raw": 5}"#, "neither a raw transaction"),
        (r#""0x0""#, "neither a raw transaction"),
        (r#""0x""#, "no transaction of type 2"),
        (r#""0x02c0""#, "its encoding is invalid"),
        // Legacy and EIP-2930.
        (r#""0xf86b8085""#, "no transaction of type 2"),
        (r#""0x01f86b""#, "no transaction of type 2"),
    ] {
        let server = Server::returning([result]).await;
        let error = remote_sign(&server, &transaction())
            .await
            .expect_err(why)
            .to_string();
        assert!(error.contains(why), "{error}");
    }
    let server = Server::failing([r#"{"code": -32000, "message": "Signing denied"}"#]).await;
    let error = remote_sign(&server, &transaction())
        .await
        .expect_err("denied")
        .to_string();
    assert!(
        error.contains("eth_signTransaction with error -32000: Signing denied"),
        "{error}"
    );
}
