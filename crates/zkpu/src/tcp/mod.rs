//! The NVMe/TCP transport, without input or output: bytes in, protocol data units (PDUs) or a fatal error out.
//!
//! Layouts are those of the NVMe TCP Transport Specification 1.0. Nothing is allocated for a length that a peer
//! claims: a header is checked when its eight bytes are there, and the rest is buffered as it comes.

mod crc32c;
mod decode;
mod encode;
mod pdu;
#[cfg(test)]
mod tests;

pub use crc32c::crc32c;
pub use decode::{Limits, PduDecoder, Receiver};
pub use encode::{Framing, encode};
pub use pdu::{
    DataHeader, Digests, FatalError, IcReq, IcResp, Kind, Payload, Pdu, PduError, ReadyToTransfer,
    Terminate,
};
