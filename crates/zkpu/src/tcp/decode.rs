//! Reading PDUs from a stream of bytes.

use crate::bytes::{u16_at, u32_at};
use crate::tcp::crc32c;
use crate::tcp::encode::{FLAG_LAST, FLAG_SUCCESS};
use crate::tcp::pdu::{
    DataHeader, Digests, FatalError, IcReq, IcResp, Kind, Payload, Pdu, PduError, ReadyToTransfer,
    Terminate,
};

/// The side that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// The controller: it gets what hosts send.
    Controller,
    /// The host: it gets what controllers send.
    Host,
}

/// Most bytes of data in a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// In a command capsule.
    pub capsule_data: usize,
    /// In an H2CData or C2HData PDU.
    pub data: usize,
}

/// Splits a stream into PDUs. After an error it must be dropped with its connection.
#[derive(Debug)]
pub struct PduDecoder {
    receiver: Receiver,
    limits: Limits,
    digests: Digests,
    /// Whether the connection is initialized: before, only ICReq or ICResp may come; after, neither.
    is_initialized: bool,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were read.
    start: usize,
}

/// The places of the parts of a PDU.
#[derive(Clone, Copy)]
struct Layout {
    kind: Kind,
    total: usize,
    header_digest: bool,
    data_digest: bool,
    data_at: usize,
    data_bytes: usize,
}

const COMMON_BYTES: usize = 8;
/// Most bytes before the data: the largest alignment, 32 dwords.
const DATA_OFFSET_MAX: usize = 128;
const TERMINATE_BYTES_MAX: usize = 152;
/// Read bytes that a buffer keeps before it moves the rest to its front.
const COMPACT_BYTES: usize = 1 << 16;

impl PduDecoder {
    /// A decoder of a new connection.
    pub fn new(receiver: Receiver, limits: Limits) -> Self {
        Self {
            receiver,
            limits,
            digests: Digests::default(),
            is_initialized: false,
            buffer: Vec::new(),
            start: 0,
        }
    }

    /// Sets the digests of the PDUs that follow the connection's initialization.
    pub fn initialized(&mut self, digests: Digests) {
        self.is_initialized = true;
        self.digests = digests;
    }

    /// Takes bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        } else if self.start >= COMPACT_BYTES {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes that are buffered and belong to no PDU yet.
    pub fn buffered(&self) -> usize {
        self.buffer.len() - self.start
    }

    #[cfg(test)]
    pub(crate) fn buffer_capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// The next PDU; `None` until more bytes come.
    ///
    /// # Errors
    ///
    /// A [`PduError`] after which the stream cannot be read on.
    pub fn next_pdu(&mut self) -> Result<Option<Pdu>, PduError> {
        let bytes = &self.buffer[self.start..];
        if bytes.len() < COMMON_BYTES {
            return Ok(None);
        }
        let layout = self.layout(bytes)?;
        if bytes.len() < layout.total {
            return Ok(None);
        }
        let pdu = parse(layout, &bytes[..layout.total])?;
        self.start += layout.total;
        Ok(Some(pdu))
    }

    /// Checks the common header.
    fn layout(&self, bytes: &[u8]) -> Result<Layout, PduError> {
        let invalid =
            |at| PduError::new(FatalError::InvalidHeaderField, at, &bytes[..COMMON_BYTES]);
        let kind = Kind::of(bytes[0]).ok_or_else(|| invalid(0))?;
        if !self.may_receive(kind) {
            return Err(invalid(0));
        }
        let is_init = matches!(kind, Kind::IcReq | Kind::IcResp);
        if !kind.is_terminate() && is_init == self.is_initialized {
            return Err(PduError::new(
                FatalError::SequenceError,
                0,
                &bytes[..COMMON_BYTES],
            ));
        }
        let header = kind.header_bytes();
        if usize::from(bytes[2]) != header {
            return Err(invalid(2));
        }
        let total = usize::try_from(u32_at(bytes, 4)).map_err(|_| invalid(4))?;
        let digests = if kind.is_bare() {
            Digests::default()
        } else {
            self.digests
        };
        let before_data = header + if digests.header { 4 } else { 0 };
        let mut layout = Layout {
            kind,
            total,
            header_digest: digests.header,
            data_digest: false,
            data_at: before_data,
            data_bytes: 0,
        };
        if kind.is_terminate() {
            if !(header..=TERMINATE_BYTES_MAX).contains(&total) {
                return Err(invalid(4));
            }
            layout.data_bytes = total - header;
            return Ok(layout);
        }
        if !kind.is_bare() && (bytes[1] & 1 != 0) != digests.header {
            return Err(invalid(1));
        }
        if kind.is_bare() || !kind.has_data() || total <= before_data {
            return if total == before_data {
                Ok(layout)
            } else {
                Err(invalid(4))
            };
        }
        if (bytes[1] & 2 != 0) != digests.data {
            return Err(invalid(1));
        }
        let data_at = usize::from(bytes[3]);
        if data_at < before_data || data_at > DATA_OFFSET_MAX || !data_at.is_multiple_of(4) {
            return Err(invalid(3));
        }
        let after_data = data_at + if digests.data { 4 } else { 0 };
        if total <= after_data {
            return Err(invalid(4));
        }
        layout.data_digest = digests.data;
        layout.data_at = data_at;
        layout.data_bytes = total - after_data;
        let limit = if kind == Kind::CapsuleCmd {
            self.limits.capsule_data
        } else {
            self.limits.data
        };
        if layout.data_bytes > limit {
            return Err(PduError::new(
                FatalError::LimitExceeded,
                4,
                &bytes[..COMMON_BYTES],
            ));
        }
        Ok(layout)
    }

    fn may_receive(&self, kind: Kind) -> bool {
        match self.receiver {
            Receiver::Controller => {
                matches!(
                    kind,
                    Kind::IcReq | Kind::H2cTermReq | Kind::CapsuleCmd | Kind::H2cData
                )
            }
            Receiver::Host => matches!(
                kind,
                Kind::IcResp | Kind::C2hTermReq | Kind::CapsuleResp | Kind::C2hData | Kind::R2t
            ),
        }
    }
}

/// Reads a whole PDU whose layout was checked.
fn parse(layout: Layout, bytes: &[u8]) -> Result<Pdu, PduError> {
    let header = &bytes[..layout.kind.header_bytes()];
    if layout.header_digest {
        let digest = u32_at(bytes, header.len());
        if digest != crc32c(header) {
            return Err(PduError::new(FatalError::HeaderDigestError, digest, header));
        }
    }
    let end = layout.data_at + layout.data_bytes;
    let data = &bytes[layout.data_at..end];
    let payload = || Payload {
        is_corrupt: layout.data_digest && u32_at(bytes, end) != crc32c(data),
        bytes: data.to_vec(),
    };
    Ok(match layout.kind {
        Kind::IcReq => Pdu::IcReq(IcReq {
            format: u16_at(header, 8),
            alignment: header[10],
            digests: Digests::of_bits(header[11]),
            r2ts_max: u32_at(header, 12),
        }),
        Kind::IcResp => Pdu::IcResp(IcResp {
            format: u16_at(header, 8),
            alignment: header[10],
            digests: Digests::of_bits(header[11]),
            host_data_max: u32_at(header, 12),
        }),
        Kind::H2cTermReq => Pdu::H2cTermReq(terminate(header, data)),
        Kind::C2hTermReq => Pdu::C2hTermReq(terminate(header, data)),
        Kind::CapsuleCmd => {
            let mut command = [0; 64];
            command.copy_from_slice(&header[8..72]);
            Pdu::CapsuleCmd(command, payload())
        }
        Kind::CapsuleResp => {
            let mut completion = [0; 16];
            completion.copy_from_slice(&header[8..24]);
            Pdu::CapsuleResp(completion)
        }
        Kind::H2cData => Pdu::H2cData(data_header(header, data)?, payload()),
        Kind::C2hData => Pdu::C2hData(data_header(header, data)?, payload()),
        Kind::R2t => Pdu::R2t(ReadyToTransfer {
            cid: u16_at(header, 8),
            tag: u16_at(header, 10),
            offset: u32_at(header, 12),
            length: u32_at(header, 16),
        }),
    })
}

fn terminate(header: &[u8], data: &[u8]) -> Terminate {
    Terminate {
        error: u16_at(header, 8),
        information: u32_at(header, 10),
        header: data.to_vec(),
    }
}

/// The header of a data PDU, whose length field must be that of its data; data without bytes is refused.
fn data_header(header: &[u8], data: &[u8]) -> Result<DataHeader, PduError> {
    if data.is_empty() || usize::try_from(u32_at(header, 16)) != Ok(data.len()) {
        return Err(PduError::new(FatalError::InvalidHeaderField, 16, header));
    }
    Ok(DataHeader {
        cid: u16_at(header, 8),
        tag: u16_at(header, 10),
        offset: u32_at(header, 12),
        is_last: header[1] & FLAG_LAST != 0,
        is_success: header[1] & FLAG_SUCCESS != 0,
    })
}
