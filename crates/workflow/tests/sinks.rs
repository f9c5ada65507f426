//! Tests of sinks: the fields that are read, and the faults that are reported.

mod support;

use std::time::Duration;

use proofmill_workflow::{Code, ExecInput, Program, Secret, SinkKind, TransactionSigner};
use support::{codes, fault, sound, with};

const CHAIN: &str = r#"name = "chain"

[defaults]
backoff = { initial = "2s" }

[[source]]
name = "blocks"
kind = "range"
output = "blocks"

[sequencer]
input = "blocks"
"#;

const WEBHOOK: &str = r#"
[[sequencer.sink]]
kind = "webhook"
url = "https://example.org/proofs?key=k"
secret_env = "WEBHOOK_SECRET"
"#;

const STREAM: &str = r#"
[[sequencer.sink]]
kind = "jetstream"
subject = "proofs.verified"
"#;

const EXEC: &str = r#"
[[sequencer.sink]]
kind = "exec"
program = "./good.sh"
"#;

const CONTRACT: &str = r#"
[[sequencer.sink]]
kind = "ethereum"
rpc = "http://127.0.0.1:8545"
contract = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
payload = "bitcoin.header-chain"
key_env = "SETTLEMENT_KEY"
"#;

#[test]
fn sinks_are_read_in_their_order_with_their_defaults() {
    let text = with(&with(&with(CHAIN, WEBHOOK), STREAM), EXEC);
    let text = text.replace("./good.sh\"", "./good.sh\"\ninput = \"file\"");
    let sinks = sound(&text).sequencer.expect("a sequencer").sinks;
    let [webhook, stream, exec] = &sinks[..] else {
        panic!("{sinks:?}");
    };
    assert_eq!(webhook.backoff.initial, Duration::from_secs(2));
    let SinkKind::Webhook {
        url,
        secret,
        time_limit,
        ..
    } = &webhook.kind
    else {
        panic!("{webhook:?}");
    };
    assert_eq!((url.port(), url.path()), (443, "/proofs?key=k"));
    assert_eq!(*secret, Secret::Environment("WEBHOOK_SECRET".into()));
    assert_eq!(*time_limit, Duration::from_secs(30));
    assert!(
        matches!(&stream.kind, SinkKind::JetStream { url: None, subject, .. } if subject == "proofs.verified")
    );
    let SinkKind::Exec { program, input, .. } = &exec.kind else {
        panic!("{exec:?}");
    };
    assert_eq!(*program, Program::File("/w/good.sh".into()));
    assert_eq!(*input, ExecInput::File);
}

#[test]
fn what_could_not_work_is_refused_where_it_stands() {
    let url = "url = \"https://example.org/proofs?key=k\"";
    let secret = "secret_env = \"WEBHOOK_SECRET\"";
    let subject = "subject = \"proofs.verified\"";
    let program = "program = \"./good.sh\"";
    let contract = "contract = \"0x5FbDB2315678afecb367f032d93F642f64180aa3\"";
    let key = "key_env = \"SETTLEMENT_KEY\"";
    for (sink, from, to, code, field) in [
        (WEBHOOK, url, "", Code::MissingField, "sequencer.sink #1"),
        (
            WEBHOOK,
            url,
            "url = \"ftp://example.org\"",
            Code::BadUrl,
            "sequencer.sink #1.url",
        ),
        (WEBHOOK, secret, "", Code::MissingField, "sequencer.sink #1"),
        (
            WEBHOOK,
            secret,
            "secret_env = \"A\"\nsecret_file = \"b\"",
            Code::TwoSecrets,
            "sequencer.sink #1.secret_file",
        ),
        (
            WEBHOOK,
            secret,
            "secret = \"hunter2\"",
            Code::UnknownField,
            "sequencer.sink #1.secret",
        ),
        (
            WEBHOOK,
            secret,
            "secret_env = \"A\"\nca = \"no.pem\"",
            Code::MissingFile,
            "sequencer.sink #1.ca",
        ),
        (
            WEBHOOK,
            secret,
            "secret_env = \"A\"\nbackoff = { initial = \"2m\" }",
            Code::BackoffOrder,
            "sequencer.sink #1.backoff",
        ),
        (
            WEBHOOK,
            "\"webhook\"",
            "\"webhok\"",
            Code::UnknownKind,
            "sequencer.sink #1.kind",
        ),
        (
            STREAM,
            subject,
            "subject = \"proofs.*\"",
            Code::BadSubject,
            "sequencer.sink #1.subject",
        ),
        (
            STREAM,
            subject,
            "subject = \"a\"\nurl = \"nats://me:pw@host\"",
            Code::BadUrl,
            "sequencer.sink #1.url",
        ),
        (
            STREAM,
            subject,
            "subject = \"a\"\nstream = \"A.B\"",
            Code::BadName,
            "sequencer.sink #1.stream",
        ),
        (
            STREAM,
            subject,
            "subject = \"a\"\ncreds = \"x\"",
            Code::UnknownField,
            "sequencer.sink #1.creds",
        ),
        (
            CONTRACT,
            contract,
            "",
            Code::MissingField,
            "sequencer.sink #1",
        ),
        (
            CONTRACT,
            contract,
            "contract = \"0x5FbDB2315678afecb367f032d93F642f64180a\"",
            Code::BadAddress,
            "sequencer.sink #1.contract",
        ),
        (
            CONTRACT,
            "payload = \"bitcoin.header-chain\"",
            "",
            Code::MissingField,
            "sequencer.sink #1",
        ),
        (
            CONTRACT,
            "payload = \"bitcoin.header-chain\"",
            "abi = \"a.json\"\nfunction = \"submit\"\nsettled = \"settled\"",
            Code::MissingFile,
            "sequencer.sink #1.abi",
        ),
        (
            CONTRACT,
            key,
            "key_env = \"A\"\nkey_file = \"b\"",
            Code::TwoSecrets,
            "sequencer.sink #1.key_file",
        ),
        (
            CONTRACT,
            key,
            "key_env = \"A\"\nsigner = \"http://localhost:9000\"",
            Code::TwoSecrets,
            "sequencer.sink #1.key_env",
        ),
        (
            CONTRACT,
            key,
            "signer = \"http://localhost:9000\"",
            Code::MissingField,
            "sequencer.sink #1",
        ),
        (
            CONTRACT,
            key,
            "key_env = \"A\"\nconfirmations = 0",
            Code::OutOfRange,
            "sequencer.sink #1.confirmations",
        ),
        (
            CONTRACT,
            key,
            "key_env = \"A\"\nbatch_wait = \"25h\"",
            Code::OutOfRange,
            "sequencer.sink #1.batch_wait",
        ),
        (
            CONTRACT,
            key,
            "key_env = \"A\"\nbatch = 1\nbatch_wait = \"1m\"",
            Code::OutOfRange,
            "sequencer.sink #1.batch_wait",
        ),
        (
            CONTRACT,
            "rpc = \"http://127.0.0.1:8545\"",
            "rpc = \"ws://127.0.0.1:8545\"",
            Code::BadUrl,
            "sequencer.sink #1.rpc",
        ),
        (
            EXEC,
            program,
            "program = \"./plain.sh\"",
            Code::ProgramNotExecutable,
            "sequencer.sink #1.program",
        ),
        (
            EXEC,
            program,
            "program = \"./good.sh\"\ninput = \"pipe\"",
            Code::UnknownKind,
            "sequencer.sink #1.input",
        ),
    ] {
        let text = with(CHAIN, &sink.replace(from, to));
        let found = fault(&text, code);
        assert_eq!(found.field, field, "{to}");
        assert!(found.line > 12, "{found}");
    }
    let sinks = WEBHOOK.repeat(65);
    assert_eq!(codes(&with(CHAIN, &sinks)), [Code::TooLarge]);
    let table = CHAIN.replace("input = \"blocks\"", "input = \"blocks\"\nsink = 3");
    let found = fault(&table, Code::WrongType);
    assert_eq!(found.help, "begin each with `[[sequencer.sink]]`");
}

#[test]
fn a_contract_is_read_with_its_defaults() {
    let read = |text: &str| {
        let mut sinks = sound(&with(CHAIN, text))
            .sequencer
            .expect("a sequencer")
            .sinks;
        match sinks.remove(0).kind {
            SinkKind::Ethereum(settlement) => *settlement,
            other => panic!("{other:?}"),
        }
    };
    let settlement = read(CONTRACT);
    assert_eq!(settlement.payload.as_deref(), Some("bitcoin.header-chain"));
    assert_eq!(settlement.functions, None);
    let key = Secret::Environment("SETTLEMENT_KEY".into());
    assert_eq!(settlement.signer, TransactionSigner::Key(key));
    assert_eq!(
        (settlement.confirmations, settlement.max_fee_gwei),
        (12, 100)
    );
    assert_eq!(settlement.batch, 8);
    assert_eq!(settlement.batch_wait, Duration::ZERO);
    let waiting = format!("{CONTRACT}\nbatch_wait = \"10m\"");
    assert_eq!(read(&waiting).batch_wait, Duration::from_secs(600));
    let account = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
    let server = format!("signer = \"https://localhost:9000/\"\naccount = \"{account}\"");
    let settlement = read(&CONTRACT.replace("key_env = \"SETTLEMENT_KEY\"", &server));
    assert!(
        matches!(&settlement.signer, TransactionSigner::Server { account: found, .. } if found == account)
    );
}
