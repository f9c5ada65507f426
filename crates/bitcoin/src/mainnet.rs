//! The first headers of Bitcoin's main network, built in.

use super::{Header, parse_headers};

/// Headers 0 to 31 of Bitcoin's main network, one a line in hexadecimal. The build fails unless
/// each chains to the next, starting from the genesis block's well-known hash.
pub const MAINNET_0_31: &str = include_str!("../data/bitcoin-mainnet-0-31.hex");

/// The headers of [`MAINNET_0_31`].
pub fn mainnet_headers() -> Vec<Header> {
    parse_headers(MAINNET_0_31.as_bytes()).expect("checked when built")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{U256, check_chain, total_work};

    #[test]
    fn the_built_in_headers_are_bitcoins() {
        let headers = mainnet_headers();
        assert_eq!(headers.len(), 32);
        assert_eq!(check_chain(&headers), Ok(()));
        let genesis = headers[0];
        assert_eq!(genesis.prev_hash().to_string(), "0".repeat(64));
        assert_eq!(genesis.version(), 1);
        // 2009-01-03 18:15:05 UTC.
        assert_eq!(genesis.time(), 1_231_006_505);
        assert_eq!(genesis.nonce(), 2_083_236_893);
        let mut root = genesis.merkle_root();
        root.reverse();
        assert_eq!(
            hex::encode(root),
            "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b"
        );
        assert_eq!(
            headers[1].hash().to_string(),
            "00000000839a8e6886ab5951d76f411475428afc90947ee320161bbf18eb6048"
        );
        let last = headers[31];
        assert_eq!(
            last.hash().to_string(),
            "000000009700ff3494f215c412cd8c0ceabf1deb0df03ce39bcfc223b769d3c4"
        );
        let work = total_work(headers.iter().map(Header::bits)).unwrap();
        assert_eq!(work, U256::from(32 * 0x1_0001_0001));
    }
}
