//! Protocol data units and fatal errors.

use std::fmt;

use crate::nvme::{COMMAND_BYTES, COMPLETION_BYTES};

/// Type of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the specification's")]
pub enum Kind {
    IcReq = 0x00,
    IcResp = 0x01,
    H2cTermReq = 0x02,
    C2hTermReq = 0x03,
    CapsuleCmd = 0x04,
    CapsuleResp = 0x05,
    H2cData = 0x06,
    C2hData = 0x07,
    R2t = 0x09,
}

/// A protocol data unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu {
    /// Initialize Connection Request.
    IcReq(IcReq),
    /// Initialize Connection Response.
    IcResp(IcResp),
    /// Host to Controller Terminate Connection Request.
    H2cTermReq(Terminate),
    /// Controller to Host Terminate Connection Request.
    C2hTermReq(Terminate),
    /// Command Capsule, with its data if it has some.
    CapsuleCmd([u8; COMMAND_BYTES], Payload),
    /// Response Capsule.
    CapsuleResp([u8; COMPLETION_BYTES]),
    /// Host to Controller Data Transfer.
    H2cData(DataHeader, Payload),
    /// Controller to Host Data Transfer.
    C2hData(DataHeader, Payload),
    /// Ready to Transfer.
    R2t(ReadyToTransfer),
}

/// The digests that protect a connection's PDUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// CRC-32C of headers.
    pub header: bool,
    /// CRC-32C of data.
    pub data: bool,
}

/// Initialize Connection Request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IcReq {
    /// Format; 0.
    pub format: u16,
    /// Alignment of data to the host, in dwords, less one.
    pub alignment: u8,
    /// Digests that the host asks for.
    pub digests: Digests,
    /// R2Ts outstanding for each command, less one.
    pub r2ts_max: u32,
}

/// Initialize Connection Response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IcResp {
    /// Format; 0.
    pub format: u16,
    /// Alignment of data to the controller, in dwords, less one.
    pub alignment: u8,
    /// Digests that the connection has.
    pub digests: Digests,
    /// Most bytes of data in an H2CData PDU.
    pub host_data_max: u32,
}

/// Terminate Connection Request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminate {
    /// Code of the fatal error; a peer's may be unknown.
    pub error: u16,
    /// The object of the error, mostly a byte offset in the header.
    pub information: u32,
    /// The header at fault, at most 128 bytes.
    pub header: Vec<u8>,
}

/// Header of a data PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// The command's identifier.
    pub cid: u16,
    /// Tag of the R2T that asked for the data; 0 towards the host.
    pub tag: u16,
    /// Offset in the command's data.
    pub offset: u32,
    /// Whether this is the last PDU of the R2T, or of the command's data.
    pub is_last: bool,
    /// Whether the command has succeeded with this PDU and gets no response capsule.
    pub is_success: bool,
}

/// Ready to Transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyToTransfer {
    /// The command's identifier.
    pub cid: u16,
    /// Tag that the data must bear.
    pub tag: u16,
    /// Offset in the command's data.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
}

/// Data of a PDU.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Payload {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether the data's digest was wrong. Such data must not be used; the connection stays.
    pub is_corrupt: bool,
}

/// Fatal error status of a Terminate Connection Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FatalError {
    /// A field of the header has a value that it must not have.
    InvalidHeaderField = 1,
    /// A PDU that must not come now.
    SequenceError = 2,
    /// The header's digest is wrong.
    HeaderDigestError = 3,
    /// Data beyond what was asked for.
    DataOutOfRange = 4,
    /// More data, or more R2Ts, than was agreed.
    LimitExceeded = 5,
    /// A parameter that is not supported.
    UnsupportedParameter = 6,
}

/// An error after which the connection ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fatal} at {information} of a PDU of type {:#04x}", header.first().copied().unwrap_or_default())]
pub struct PduError {
    /// The error.
    pub fatal: FatalError,
    /// Byte offset in the header, or the digest received.
    pub information: u32,
    /// The header at fault, as far as it came.
    pub header: Vec<u8>,
}

// === impl Kind ===

impl Kind {
    /// Of the first byte of a PDU.
    pub(crate) fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            0x00 => Self::IcReq,
            0x01 => Self::IcResp,
            0x02 => Self::H2cTermReq,
            0x03 => Self::C2hTermReq,
            0x04 => Self::CapsuleCmd,
            0x05 => Self::CapsuleResp,
            0x06 => Self::H2cData,
            0x07 => Self::C2hData,
            0x09 => Self::R2t,
            _ => return None,
        })
    }

    /// Bytes of the header, its digest not counted.
    pub(crate) const fn header_bytes(self) -> usize {
        match self {
            Self::IcReq | Self::IcResp => 128,
            Self::CapsuleCmd => 72,
            Self::H2cTermReq | Self::C2hTermReq | Self::CapsuleResp => 24,
            Self::H2cData | Self::C2hData | Self::R2t => 24,
        }
    }

    /// Whether the PDU has data.
    pub(crate) const fn has_data(self) -> bool {
        matches!(self, Self::CapsuleCmd | Self::H2cData | Self::C2hData)
    }

    /// Whether digests never protect the PDU.
    pub(crate) const fn is_bare(self) -> bool {
        matches!(
            self,
            Self::IcReq | Self::IcResp | Self::H2cTermReq | Self::C2hTermReq
        )
    }

    /// Whether the PDU ends a connection.
    pub(crate) const fn is_terminate(self) -> bool {
        matches!(self, Self::H2cTermReq | Self::C2hTermReq)
    }
}

// === impl Pdu ===

impl Pdu {
    /// The type.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::IcReq(_) => Kind::IcReq,
            Self::IcResp(_) => Kind::IcResp,
            Self::H2cTermReq(_) => Kind::H2cTermReq,
            Self::C2hTermReq(_) => Kind::C2hTermReq,
            Self::CapsuleCmd(..) => Kind::CapsuleCmd,
            Self::CapsuleResp(_) => Kind::CapsuleResp,
            Self::H2cData(..) => Kind::H2cData,
            Self::C2hData(..) => Kind::C2hData,
            Self::R2t(_) => Kind::R2t,
        }
    }
}

// === impl Digests ===

impl Digests {
    pub(crate) fn of_bits(bits: u8) -> Self {
        Self {
            header: bits & 1 != 0,
            data: bits & 2 != 0,
        }
    }

    pub(crate) fn bits(self) -> u8 {
        u8::from(self.header) | u8::from(self.data) << 1
    }
}

// === impl Payload ===

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            is_corrupt: false,
        }
    }
}

/// Scalars are a witness: the bytes are never shown.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let corrupt = if self.is_corrupt { ", corrupt" } else { "" };
        write!(f, "{} bytes{corrupt}", self.bytes.len())
    }
}

// === impl FatalError ===

impl fmt::Display for FatalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidHeaderField => "invalid header field",
            Self::SequenceError => "PDU sequence error",
            Self::HeaderDigestError => "header digest error",
            Self::DataOutOfRange => "data transfer out of range",
            Self::LimitExceeded => "transfer limit exceeded",
            Self::UnsupportedParameter => "unsupported parameter",
        })
    }
}

// === impl PduError ===

impl PduError {
    /// Bytes of the header at fault that a Terminate Connection Request repeats at most.
    pub(crate) const HEADER_MAX: usize = 128;

    /// An error in a header.
    pub(crate) fn new(fatal: FatalError, information: u32, header: &[u8]) -> Self {
        Self {
            fatal,
            information,
            header: header[..header.len().min(Self::HEADER_MAX)].to_vec(),
        }
    }

    /// The report for the peer.
    pub fn terminate(&self) -> Terminate {
        Terminate {
            error: self.fatal as u16,
            information: self.information,
            header: self.header.clone(),
        }
    }
}
