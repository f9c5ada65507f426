//! Requests as nodes expect them, and answers that are none.

use proofmill_ethereum::{
    Address, B256, BlockId, Bytes, Call, CallError, Rpc, RpcError, SendError, U256,
};
use serde_json::{Value, json};

use crate::server::{Server, ok};

const HASH: &str = "0xabababababababababababababababababababababababababababababababab";

fn hash() -> B256 {
    B256::repeat_byte(0xab)
}

fn rpc(server: &Server) -> Rpc {
    Rpc::new(server.url.clone(), None).expect("a client")
}

/// Raw bytes and their hash.
fn raw() -> (Vec<u8>, String) {
    (
        vec![1],
        "0x5fe7f977e71dba2ea1a68e21057beebb9be2ac30c6410aa38d4f3fbe41dcffd2".to_owned(),
    )
}

fn header(number: &str, hash: &str) -> String {
    format!(
        r#"{{"number":"{number}","hash":{hash},"parentHash":"{HASH}","timestamp":"0x66aabbcc",
            "gasLimit":"0x1c9c380","baseFeePerGas":"0x7","transactions":[]}}"#
    )
}

fn receipt(change: impl FnOnce(&mut Value)) -> String {
    let mut receipt = json!({
        "transactionHash": HASH, "blockNumber": "0x5", "blockHash": HASH, "status": "0x1",
        "gasUsed": "0x5208", "effectiveGasPrice": "0x77359400", "contractAddress": null,
        "logs": [{"address": "0x1111111111111111111111111111111111111111", "topics": [HASH], "data": "0x0102"}],
    });
    change(&mut receipt);
    receipt.to_string()
}

#[tokio::test]
async fn numbers_are_asked_for_and_read() {
    let server = Server::returning([
        "\"0x7a69\"",
        "\"0x3b9aca00\"",
        "\"0x10\"",
        "\"0x5\"",
        "\"0xde0b6b3a7640000\"",
    ])
    .await;
    let rpc = rpc(&server);
    let account = Address::repeat_byte(0x11);
    assert_eq!(rpc.chain_id().await.expect("read"), 31_337);
    assert_eq!(rpc.priority_fee().await.expect("read"), 1_000_000_000);
    assert_eq!(rpc.head().await.expect("read"), 16);
    assert_eq!(rpc.nonce(account, BlockId::Pending).await.expect("read"), 5);
    let balance = rpc
        .balance(account, BlockId::Hash(hash()))
        .await
        .expect("read");
    assert_eq!(balance, U256::from(10).pow(U256::from(18)));
    let account = "0x1111111111111111111111111111111111111111";
    assert_eq!(
        server.requests(),
        [
            ("eth_chainId".to_owned(), json!([])),
            ("eth_maxPriorityFeePerGas".to_owned(), json!([])),
            ("eth_blockNumber".to_owned(), json!([])),
            (
                "eth_getTransactionCount".to_owned(),
                json!([account, "pending"])
            ),
            (
                "eth_getBalance".to_owned(),
                json!([account, {"blockHash": HASH}])
            ),
        ]
    );
}

#[tokio::test]
async fn numbers_in_another_form_are_refused() {
    for result in [
        "null",
        "16",
        "\"16\"",
        "\"0x\"",
        "\"0x01\"",
        "\"0x10000000000000000\"",
        "[\"0x1\"]",
        "{}",
        "true",
    ] {
        let server = Server::returning([result, result, result]).await;
        let rpc = rpc(&server);
        let account = Address::ZERO;
        let errors = [
            rpc.head().await.expect_err(result),
            rpc.chain_id().await.expect_err(result),
            rpc.nonce(account, BlockId::Latest).await.expect_err(result),
        ];
        for (error, method) in
            errors
                .iter()
                .zip(["eth_blockNumber", "eth_chainId", "eth_getTransactionCount"])
        {
            let text = error.to_string();
            assert!(
                text.contains(method) && text.contains("not a number such as \"0x10\""),
                "{text}"
            );
        }
    }
    let wide = format!("\"0x1{}\"", "0".repeat(64));
    let server = Server::returning([&wide, &wide]).await;
    let rpc = rpc(&server);
    rpc.balance(Address::ZERO, BlockId::Latest)
        .await
        .expect_err("too wide");
    rpc.priority_fee().await.expect_err("too wide");
}

#[tokio::test]
async fn responses_that_are_no_answers_are_errors() {
    let large = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{}",
        "x".repeat(9 << 20)
    );
    let deep = format!("{{\"result\":{}", "[".repeat(100_000));
    for (response, expected) in [
        (String::new(), "the request failed"),
        ("nonsense\r\n\r\n".to_owned(), "the request failed"),
        (
            "HTTP/1.1 301 Moved\r\nLocation: http://x\r\n\r\n".to_owned(),
            "HTTP status 301",
        ),
        (
            "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "HTTP status 429",
        ),
        (large, "over 8388608 bytes"),
        (ok(""), "not what was asked for"),
        (ok("{"), "not what was asked for"),
        (ok(&deep), "not what was asked for: recursion limit"),
        (ok("{}"), "neither a result nor an error"),
        (ok("[]"), "not what was asked for"),
        (ok("null"), "not what was asked for"),
        (ok(r#"{"result":"0x1","result":"0x2"}"#), "duplicate field"),
        (ok(r#"{"result":16}"#), "not a number"),
        (
            ok(r#"{"error":{"code":-32000,"message":"busy"}}"#),
            "error -32000: busy",
        ),
        (
            ok(r#"{"result":"0x1","error":{"code":1,"message":"both"}}"#),
            "error 1: both",
        ),
        (ok(r#"{"error":"no"}"#), "not what was asked for"),
        (ok(r#"{"error":{}}"#), "error 0: "),
    ] {
        let server = Server::sending(vec![response]).await;
        let error = rpc(&server).head().await.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error} is not {expected}");
        assert!(
            error.contains("eth_blockNumber"),
            "{error} does not name the method"
        );
    }
}

#[tokio::test]
async fn messages_of_nodes_are_shortened_and_harmless() {
    let error = json!({"code": 1, "message": format!("\u{1b}[31m\n{}", "é".repeat(5000))});
    let server = Server::failing([&error.to_string()]).await;
    let error = rpc(&server).head().await.expect_err("an error");
    let RpcError::Node { message, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(message.chars().count(), 300);
    assert!(!message.chars().any(char::is_control));
}

#[tokio::test]
async fn blocks_are_those_that_were_asked_for() {
    for body in [
        r#"{"number":"0x6","hash":"0xab","parentHash":"0xcd"}"#,
        r#"{"number":"0x5","hash":"ab","parentHash":"0xcd"}"#,
        r#"{"number":"0x5","hash":"0xab"}"#,
        "[1]",
    ] {
        let server = Server::returning([body]).await;
        rpc(&server).block(5, false).await.expect_err(body);
    }
    let server = Server::returning([
        "null",
        r#"{"number":"0x5","hash":"0xAB","parentHash":"0xcd"}"#,
    ])
    .await;
    let rpc = rpc(&server);
    assert_eq!(rpc.block(5, false).await.expect("read"), None);
    let block = rpc.block(5, true).await.expect("read").expect("there");
    assert_eq!((&block.hash[..], &block.parent[..]), ("0xab", "0xcd"));
    assert_eq!(server.requests()[1].1, json!(["0x5", true]));
}

#[tokio::test]
async fn headers_are_asked_for_by_number_name_and_hash() {
    let found = header("0x5", &format!("\"{HASH}\""));
    let pending = header("0x5", "null");
    let server =
        Server::returning([&found, &found, &found, &found, &found, &pending, "null"]).await;
    let rpc = rpc(&server);
    let blocks = [
        BlockId::Latest,
        BlockId::Safe,
        BlockId::Finalized,
        BlockId::Number(5),
        BlockId::Hash(hash()),
    ];
    for block in blocks {
        let header = rpc.header(block).await.expect("read").expect("there");
        assert_eq!(
            (header.number, header.hash, header.parent),
            (5, hash(), hash())
        );
        assert_eq!(
            (header.timestamp, header.base_fee, header.gas_limit),
            (0x66aa_bbcc, Some(7), 30_000_000)
        );
    }
    let header = rpc
        .header(BlockId::Pending)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(header.hash, B256::ZERO);
    assert_eq!(rpc.header(BlockId::Latest).await.expect("read"), None);
    let requests = server.requests();
    let parameters: Vec<&Value> = requests
        .iter()
        .map(|(_, parameters)| &parameters[0])
        .collect();
    assert_eq!(
        parameters,
        [
            "latest",
            "safe",
            "finalized",
            "0x5",
            HASH,
            "pending",
            "latest"
        ]
    );
    assert_eq!(
        (&requests[4].0[..], &requests[3].0[..]),
        ("eth_getBlockByHash", "eth_getBlockByNumber")
    );
}

#[tokio::test]
async fn other_headers_are_refused() {
    let other = format!("\"0x{}\"", "cd".repeat(32));
    let same = format!("\"{HASH}\"");
    for (result, block, why) in [
        (
            header("0x6", &same),
            BlockId::Number(5),
            "it is block 6, not 5",
        ),
        (
            header("0x5", &other),
            BlockId::Hash(hash()),
            "it is block 0xcdcd",
        ),
        (header("0x5", "null"), BlockId::Latest, "`hash` is missing"),
        (
            header("0x5", "\"0xab\""),
            BlockId::Latest,
            "`hash` is not a hash",
        ),
        (
            header("5", &same),
            BlockId::Latest,
            "`number` is not a number",
        ),
        (
            header("0x5", &same).replace("\"0x7\"", "7"),
            BlockId::Latest,
            "`baseFeePerGas` is not a number",
        ),
        ("[]".to_owned(), BlockId::Latest, "it is not an object"),
        ("\"0x5\"".to_owned(), BlockId::Latest, "it is not an object"),
    ] {
        let server = Server::returning([&result]).await;
        let error = rpc(&server).header(block).await.expect_err(why).to_string();
        assert!(error.contains(why), "{error} is not {why}");
    }
    let without = header("0x5", &same).replace("\"baseFeePerGas\":\"0x7\",", "");
    let server = Server::returning([&without]).await;
    let header = rpc(&server)
        .header(BlockId::Latest)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(header.base_fee, None);
}

#[tokio::test]
async fn receipts_are_read_strictly() {
    let created = receipt(|it| {
        it["contractAddress"] = json!("0x2222222222222222222222222222222222222222");
        it["status"] = json!("0x0");
        it["logs"] = json!([]);
    });
    let server = Server::returning([&receipt(|_| ()), &created, "null"]).await;
    let client = rpc(&server);
    let found = client.receipt(hash()).await.expect("read").expect("there");
    assert_eq!(
        (found.transaction, found.block_hash, found.block_number),
        (hash(), hash(), 5)
    );
    assert_eq!(
        (found.succeeded, found.gas_used, found.effective_gas_price),
        (true, 21_000, 2_000_000_000)
    );
    assert_eq!(found.contract_address, None);
    assert_eq!(
        (&found.logs[0].data[..], &found.logs[0].topics[..]),
        (&[1, 2][..], &[hash()][..])
    );
    let found = client.receipt(hash()).await.expect("read").expect("there");
    assert_eq!(
        (found.succeeded, found.contract_address),
        (false, Some(Address::repeat_byte(0x22)))
    );
    assert_eq!(client.receipt(hash()).await.expect("read"), None);

    type Change = fn(&mut Value);
    let changes: [(Change, &str); 10] = [
        (
            |it| it["transactionHash"] = json!(format!("0x{}", "cd".repeat(32))),
            "it is about 0xcdcd",
        ),
        (|it| it["status"] = json!("0x2"), "`status` is 2"),
        (|it| it["status"] = Value::Null, "`status` is missing"),
        (
            |it| it["gasUsed"] = json!(21_000),
            "`gasUsed` is not a number",
        ),
        (
            |it| it["contractAddress"] = json!("0x22"),
            "`contractAddress` is not an address",
        ),
        (
            |it| it["blockNumber"] = Value::Null,
            "`blockNumber` is missing",
        ),
        (|it| it["logs"] = Value::Null, "`logs` is not an array"),
        (
            |it| it["logs"][0]["topics"] = json!([HASH, HASH, HASH, HASH, HASH]),
            "an event has 5 topics",
        ),
        (|it| it["logs"][0]["topics"] = json!(["0x1"]), "not a hash"),
        (
            |it| it["logs"][0]["data"] = json!("0x1"),
            "`data` is not bytes",
        ),
    ];
    for (change, why) in changes {
        let server = Server::returning([&receipt(change)]).await;
        let error = rpc(&server)
            .receipt(hash())
            .await
            .expect_err(why)
            .to_string();
        assert!(error.contains(why), "{error} is not {why}");
    }
}

#[tokio::test]
async fn transactions_and_code_are_found() {
    let found = format!(r#"{{"hash":"{HASH}","blockNumber":null}}"#);
    let other = format!(r#"{{"hash":"0x{}"}}"#, "cd".repeat(32));
    let server =
        Server::returning(["null", &found, &other, "\"0x6080\"", "\"0x\"", "\"0x1\""]).await;
    let rpc = rpc(&server);
    assert!(!rpc.transaction_known(hash()).await.expect("read"));
    assert!(rpc.transaction_known(hash()).await.expect("read"));
    rpc.transaction_known(hash()).await.expect_err("another");
    let address = Address::ZERO;
    assert_eq!(
        rpc.code(address).await.expect("read"),
        Bytes::from_static(&[0x60, 0x80])
    );
    assert!(rpc.code(address).await.expect("read").is_empty());
    rpc.code(address).await.expect_err("half a byte");
}

#[tokio::test]
async fn calls_return_bytes_or_what_the_contract_reverted_with() {
    let call = Call {
        from: Some(Address::repeat_byte(0x11)),
        to: Some(Address::repeat_byte(0x22)),
        data: Bytes::from_static(&[0xaa]),
        value: U256::from(16),
        gas: Some(100_000),
    };
    let server = Server::returning(["\"0x0102\"", "\"0x5208\""]).await;
    let client = rpc(&server);
    let returned = client.call(&call, BlockId::Number(9)).await.expect("read");
    assert_eq!(returned, Bytes::from_static(&[1, 2]));
    assert_eq!(
        client.estimate_gas(&Call::default()).await.expect("read"),
        21_000
    );
    let asked = json!({
        "from": "0x1111111111111111111111111111111111111111",
        "to": "0x2222222222222222222222222222222222222222",
        "data": "0xaa", "value": "0x10", "gas": "0x186a0",
    });
    let requests = server.requests();
    assert_eq!(requests[0], ("eth_call".to_owned(), json!([asked, "0x9"])));
    assert_eq!(requests[1].1, json!([{"data": "0x", "value": "0x0"}]));

    for (error, expected) in [
        (
            r#"{"code":3,"message":"execution reverted","data":"0xaabb"}"#,
            &[0xaa, 0xbb][..],
        ),
        (
            r#"{"code":-32603,"message":"reverted with an unrecognized custom error","data":{"message":"m","data":"0xaabb"}}"#,
            &[0xaa, 0xbb],
        ),
        (
            r#"{"code":-32015,"message":"VM execution error.","data":"Reverted 0xaabb"}"#,
            &[0xaa, 0xbb],
        ),
        (r#"{"code":-32000,"message":"execution reverted"}"#, &[]),
        (
            r#"{"code":3,"message":"execution reverted","data":"not hexadecimal"}"#,
            &[],
        ),
        (
            r#"{"code":3,"message":"execution reverted","data":[1]}"#,
            &[],
        ),
    ] {
        let server = Server::failing([error, error]).await;
        let client = rpc(&server);
        let found = client.call(&call, BlockId::Latest).await.expect_err(error);
        assert!(
            matches!(&found, CallError::Reverted { data, .. } if data[..] == *expected),
            "{found:?}"
        );
        let found = client.estimate_gas(&call).await.expect_err(error);
        assert!(matches!(found, CallError::Reverted { .. }), "{found:?}");
    }
}

#[tokio::test]
async fn a_sent_transaction_is_the_one_that_the_node_took() {
    let (bytes, hash) = raw();
    let other = format!("\"{HASH}\"");
    let server = Server::returning([&format!("\"{hash}\""), &other, "null"]).await;
    let client = rpc(&server);
    assert_eq!(
        client.send_raw(&bytes).await.expect("sent").to_string(),
        hash
    );
    assert_eq!(
        server.requests(),
        [("eth_sendRawTransaction".to_owned(), json!(["0x01"]))]
    );
    for why in ["it took 0xabab", "not a hash"] {
        let error = client.send_raw(&bytes).await.expect_err(why);
        assert!(
            matches!(error, SendError::Rpc(RpcError::Unexpected { .. })),
            "{error:?}"
        );
        assert!(error.to_string().contains(why), "{error}");
    }
    let server = Server::failing([r#"{"code":-32000,"message":"already known"}"#]).await;
    let error = rpc(&server).send_raw(&bytes).await.expect_err("known");
    assert!(matches!(error, SendError::AlreadyKnown(_)), "{error:?}");
    let server = Server::sending(vec![String::new()]).await;
    let error = rpc(&server).send_raw(&bytes).await.expect_err("no answer");
    assert!(
        matches!(error, SendError::Rpc(RpcError::Http { .. })),
        "{error:?}"
    );
}
