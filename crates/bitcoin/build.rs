//! Refuses to build with header data that is not Bitcoin's.

use sha2::{Digest, Sha256};

const DATA: &str = "data/bitcoin-mainnet-0-31.hex";
const GENESIS: &str = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f";

fn main() {
    println!("cargo::rerun-if-changed={DATA}");
    println!("cargo::rerun-if-changed=build.rs");
    if let Err(error) = check() {
        println!("cargo::error={DATA}: {error}");
    }
}

fn check() -> Result<(), String> {
    let text = std::fs::read_to_string(DATA).map_err(|e| e.to_string())?;
    let mut hashes: Vec<Vec<u8>> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let header = hex::decode(line).map_err(|e| format!("line {}: {e}", index + 1))?;
        if header.len() != 80 {
            return Err(format!(
                "line {}: {} bytes, not 80",
                index + 1,
                header.len()
            ));
        }
        if let Some(previous) = hashes.last()
            && header[4..36] != previous[..]
        {
            return Err(format!("line {}: does not follow line {index}", index + 1));
        }
        hashes.push(Sha256::digest(Sha256::digest(&header)).to_vec());
    }
    if hashes.len() != 32 {
        return Err(format!("{} headers, not 32", hashes.len()));
    }
    let mut genesis = hashes.swap_remove(0);
    genesis.reverse();
    if hex::encode(&genesis) != GENESIS {
        return Err("line 1: not the genesis header".to_owned());
    }
    // The chain fixes every header but the last one's own bytes: its hash must be small.
    if hashes.iter().any(|hash| hash[28..] != [0; 4]) {
        return Err("a header misses the target of its time".to_owned());
    }
    Ok(())
}
