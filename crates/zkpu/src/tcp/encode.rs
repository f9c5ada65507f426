//! Writing PDUs.

use crate::bytes::{put, put_u16, put_u32};
use crate::tcp::crc32c;
use crate::tcp::pdu::{DataHeader, Digests, Payload, Pdu, PduError, Terminate};

/// The form in which a connection's PDUs are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// The connection's digests.
    pub digests: Digests,
    /// Alignment of data, in dwords, less one, as the receiver asked for.
    pub alignment: u8,
}

const FLAG_HEADER_DIGEST: u8 = 1;
const FLAG_DATA_DIGEST: u8 = 1 << 1;
pub(super) const FLAG_LAST: u8 = 1 << 2;
pub(super) const FLAG_SUCCESS: u8 = 1 << 3;

/// Appends a PDU to `output`. Data must be below 2^31 bytes.
pub fn encode(pdu: &Pdu, framing: Framing, output: &mut Vec<u8>) {
    match pdu {
        Pdu::H2cTermReq(terminate) | Pdu::C2hTermReq(terminate) => {
            return encode_terminate(pdu, terminate, output);
        }
        _ => {}
    }
    let kind = pdu.kind();
    let digests = if kind.is_bare() {
        Digests::default()
    } else {
        framing.digests
    };
    let data = payload(pdu).map_or(&[][..], |payload| &payload.bytes);
    let header_bytes = kind.header_bytes();
    let mut header = vec![0; header_bytes];
    header[0] = kind as u8;
    header[2] = header_bytes as u8;
    let mut end = header_bytes + if digests.header { 4 } else { 0 };
    if digests.header {
        header[1] |= FLAG_HEADER_DIGEST;
    }
    let mut padding = 0;
    let mut total = end;
    if !data.is_empty() {
        let unit = (usize::from(framing.alignment) + 1) * 4;
        padding = end.next_multiple_of(unit) - end;
        end += padding;
        header[3] = end as u8;
        total = end + data.len();
        if digests.data {
            header[1] |= FLAG_DATA_DIGEST;
            total += 4;
        }
    }
    put_u32(&mut header, 4, total as u32);
    fill(pdu, data.len() as u32, &mut header);
    output.reserve(total);
    output.extend_from_slice(&header);
    if digests.header {
        output.extend_from_slice(&crc32c(&header).to_le_bytes());
    }
    output.resize(output.len() + padding, 0);
    output.extend_from_slice(data);
    if digests.data && !data.is_empty() {
        output.extend_from_slice(&crc32c(data).to_le_bytes());
    }
}

fn payload(pdu: &Pdu) -> Option<&Payload> {
    match pdu {
        Pdu::CapsuleCmd(_, data) | Pdu::H2cData(_, data) | Pdu::C2hData(_, data) => Some(data),
        _ => None,
    }
}

/// Writes the fields after the common eight bytes.
fn fill(pdu: &Pdu, data_bytes: u32, header: &mut [u8]) {
    match pdu {
        Pdu::IcReq(request) => {
            put_u16(header, 8, request.format);
            header[10] = request.alignment;
            header[11] = request.digests.bits();
            put_u32(header, 12, request.r2ts_max);
        }
        Pdu::IcResp(response) => {
            put_u16(header, 8, response.format);
            header[10] = response.alignment;
            header[11] = response.digests.bits();
            put_u32(header, 12, response.host_data_max);
        }
        Pdu::CapsuleCmd(command, _) => put(header, 8, command),
        Pdu::CapsuleResp(completion) => put(header, 8, completion),
        Pdu::H2cData(fields, _) | Pdu::C2hData(fields, _) => fill_data(fields, data_bytes, header),
        Pdu::R2t(fields) => {
            put_u16(header, 8, fields.cid);
            put_u16(header, 10, fields.tag);
            put_u32(header, 12, fields.offset);
            put_u32(header, 16, fields.length);
        }
        Pdu::H2cTermReq(_) | Pdu::C2hTermReq(_) => {}
    }
}

fn fill_data(fields: &DataHeader, data_bytes: u32, header: &mut [u8]) {
    if fields.is_last {
        header[1] |= FLAG_LAST;
    }
    if fields.is_success {
        header[1] |= FLAG_SUCCESS;
    }
    put_u16(header, 8, fields.cid);
    put_u16(header, 10, fields.tag);
    put_u32(header, 12, fields.offset);
    put_u32(header, 16, data_bytes);
}

fn encode_terminate(pdu: &Pdu, terminate: &Terminate, output: &mut Vec<u8>) {
    let kind = pdu.kind();
    let at_fault = &terminate.header[..terminate.header.len().min(PduError::HEADER_MAX)];
    let mut header = vec![0; kind.header_bytes()];
    header[0] = kind as u8;
    header[2] = kind.header_bytes() as u8;
    put_u32(
        &mut header,
        4,
        (kind.header_bytes() + at_fault.len()) as u32,
    );
    put_u16(&mut header, 8, terminate.error);
    put_u32(&mut header, 10, terminate.information);
    output.extend_from_slice(&header);
    output.extend_from_slice(at_fault);
}
