//! Valid inputs for fuzzing to start from.

/// Signed transactions of `tests/client/vectors.json`.
const TRANSACTIONS: [&str; 4] = [
    "02f875827a6980843b9aca008506fc23ac008252089470997970c51812dc3a010c7d01b50e0d17dc79c8880de0b6b3a764000080c001a09eb65a2d344de861e81b312dc591e5861010cd51380f4e5e75d4c673a9ce1efca033a36be5e6229f935ae9fb2b47c4690ee51365568ea75e13969dc38c0d255c72",
    "02f86a018230398090ffffffffffffffffffffffffffffffff830f42408080896080604052600080fdc001a022a5f60ae434a9e1968738da99eaf23c1837f1a020935ce6136d6bd031d89f7aa03b3f53b370d02bff4145192c2d3d98211de12dc3203a43324db30bf3a6228c12",
    "02f8cf83aa36a7871fffffffffffff0101887fffffffffffffff9400000000000000000000000000000000000000ffa0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffb83cababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababc080a0446b4e3c4f14fcd088d0c53efff6f56014f263c93bd27e56e988868dae3d2011a0779d3deb6c9bc21f13d8bf34fd1ab25e18aa6a590831253928558d2f675d8dbf",
    "02f86001808080809400000000000000000000000000000000000000008000c080a011205b52268ea4544ce75fd10ce2edb508d8a036b0649121e02da21fc4417a9fa02b2bb357008811bf5bc741e689a0d74cc13d6d85ee190ee0692654d25fbe4d6e",
];

/// Raw transactions.
pub fn transactions() -> Vec<Vec<u8>> {
    TRANSACTIONS
        .map(|text| hex::decode(text).expect("it is in hexadecimal"))
        .to_vec()
}

/// Bodies of responses: one of each kind of result, and errors of several nodes.
pub fn answers() -> Vec<Vec<u8>> {
    let hash = format!("0x{}", "ab".repeat(32));
    let address = format!("0x{}", "cd".repeat(20));
    let mut results = [
        "null".to_owned(),
        r#""0x1a""#.to_owned(),
        r#""0x""#.to_owned(),
        format!(r#""{hash}""#),
        format!(
            r#"{{"number":"0x5","hash":"{hash}","parentHash":"{hash}","timestamp":"0x66aabbcc","gasLimit":"0x1c9c380","baseFeePerGas":"0x7"}}"#
        ),
        format!(
            r#"{{"transactionHash":"{hash}","blockNumber":"0x5","blockHash":"{hash}","status":"0x1","gasUsed":"0x5208","effectiveGasPrice":"0x7","contractAddress":null,"logs":[{{"address":"{address}","topics":["{hash}"],"data":"0x01"}}]}}"#
        ),
    ]
    .to_vec();
    let raw = TRANSACTIONS[0];
    results.push(format!(r#"{{"raw":"0x{raw}","tx":{{}}}}"#));
    let errors = [
        r#"{"code":-32000,"message":"nonce too low: next nonce 5, tx nonce 3"}"#.to_owned(),
        format!(
            r#"{{"code":3,"message":"execution reverted: no","data":"0x08c379a0{:064x}{:064x}{:0<64}"}}"#,
            32, 2, "6e6f"
        ),
        format!(
            r#"{{"code":-32015,"message":"VM execution error.","data":"Reverted 0x4e487b71{:064x}"}}"#,
            0x11
        ),
        r#"{"code":-32603,"message":"reverted with a custom error","data":{"message":"x","data":"0x01020304"}}"#
            .to_owned(),
    ];
    let results = results
        .iter()
        .map(|result| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
    let errors = errors
        .iter()
        .map(|error| format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#));
    results.chain(errors).map(String::into_bytes).collect()
}
