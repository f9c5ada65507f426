//! Any bytes that a device sends as identify data, log page or discovery log are refused or read without a panic:
//! `cargo +nightly fuzz run pages`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_zkpu::nvme::zkpu::{JobTable, ZkpuCapability, ZkpuHealth};
use proofmill_zkpu::nvme::{
    CONNECT_DATA_BYTES, ConnectData, HealthLog, IdentifyController, NamespaceBlocks,
    parse_discovery_log,
};

fuzz_target!(|bytes: &[u8]| {
    let _ = IdentifyController::decode(bytes);
    let _ = NamespaceBlocks::decode(bytes);
    let _ = ZkpuCapability::decode(bytes);
    let _ = ZkpuHealth::decode(bytes);
    let _ = HealthLog::decode(bytes);
    let _ = parse_discovery_log(bytes);
    if let Some(table) = JobTable::decode(bytes) {
        assert!(
            table
                .jobs
                .iter()
                .flatten()
                .all(|job| table.find(job.number).is_some())
        );
    }
    if let Some(data) = bytes.first_chunk::<CONNECT_DATA_BYTES>() {
        let _ = ConnectData::decode(data);
    }
});
