//! Compiling the contracts with Solidity's compiler, by its JSON interface on standard input and output.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::failure::Failure;

/// Maximum size of the compiler's answer, in bytes: far above that of the demo's contracts.
const ANSWER_MAX: usize = 16 << 20;

/// The demo's contracts that are the same for every key, by their names in imports.
const SOURCES: [(&str, &str); 4] = [
    (
        "src/HeaderChain.sol",
        include_str!("../../../../../contracts/src/HeaderChain.sol"),
    ),
    (
        "src/BitcoinDifficulty.sol",
        include_str!("../../../../../contracts/src/BitcoinDifficulty.sol"),
    ),
    (
        "src/IGroth16Verifier.sol",
        include_str!("../../../../../contracts/src/IGroth16Verifier.sol"),
    ),
    (
        "src/ProofBatch.sol",
        include_str!("../../../../../contracts/src/ProofBatch.sol"),
    ),
];

/// Name of the verifier's contract.
pub(super) const VERIFIER: &str = "HeaderChainVerifier";

/// Code that creates the demo's contracts.
pub(super) struct Compiled {
    pub(super) verifier: Vec<u8>,
    pub(super) header_chain: Vec<u8>,
}

/// Compiles the contract `HeaderChain` and `verifier`, the text of the contract [`VERIFIER`]. Blocks for some seconds.
pub(super) fn compile(solc: &Path, verifier: &str) -> Result<Compiled, Failure> {
    let verifier_file = format!("{VERIFIER}.sol");
    let sources = SOURCES.iter().map(|(name, text)| (*name, *text));
    let sources = sources.chain([(verifier_file.as_str(), verifier)]);
    let sources: serde_json::Map<String, Value> = sources
        .map(|(name, content)| (name.to_owned(), json!({ "content": content })))
        .collect();
    let input = json!({
        "language": "Solidity",
        "sources": sources,
        "settings": {
            "evmVersion": "prague",
            "optimizer": { "enabled": true, "runs": 1_000_000 },
            "metadata": { "bytecodeHash": "none", "appendCBOR": false },
            "outputSelection": { "*": { "*": ["evm.bytecode.object"] } },
        },
    });
    let shown = solc.display();
    let answer = run(solc, &input.to_string())?;
    let unexpected = |why: String| Failure::new(format!("{shown}: {why}"));
    // npm's solcjs prints a line of its own before the answer.
    let begin = answer.find('{').unwrap_or(0);
    let answer: Value = serde_json::from_str(&answer[begin..])
        .map_err(|error| unexpected(format!("its answer is not JSON: {error}")))?;
    let mut messages = answer["errors"].as_array().into_iter().flatten();
    if let Some(error) = messages.find(|message| message["severity"] == "error") {
        let message = error["formattedMessage"].as_str().unwrap_or("an error");
        return Err(unexpected(message.to_owned()));
    }
    let code = |file: &str, name: &str| {
        let object = answer["contracts"][file][name]["evm"]["bytecode"]["object"].as_str();
        let code = object.and_then(|object| hex::decode(object).ok());
        let code = code.filter(|code| !code.is_empty());
        code.ok_or_else(|| unexpected(format!("it has not compiled the contract {name}")))
    };
    Ok(Compiled {
        verifier: code(&verifier_file, VERIFIER)?,
        header_chain: code("src/HeaderChain.sol", "HeaderChain")?,
    })
}

/// The compiler's answer to `input`.
fn run(solc: &Path, input: &str) -> Result<String, Failure> {
    let shown = solc.display();
    let failed = |error: std::io::Error| {
        Failure::new(format!("{shown} cannot be run: {error}"))
            .help("name Solidity's compiler with --solc; `npm install solc` brings one, as node_modules/.bin/solcjs")
    };
    let mut child = Command::new(solc)
        .arg("--standard-json")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // The compiler reads all of its input before it writes.
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() || output.stdout.len() > ANSWER_MAX {
        let said = String::from_utf8_lossy(&output.stderr);
        let said: String = said.trim().chars().take(400).collect();
        let status = output.status;
        return Err(Failure::new(format!("{shown} ended with {status}: {said}")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
