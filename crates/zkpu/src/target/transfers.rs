//! Data on its way from the host: commands that wait for it, and R2Ts that ask for it.

use std::collections::{BTreeMap, VecDeque};

use crate::nvme::Command;
use crate::tcp::{DataHeader, FatalError, Payload, ReadyToTransfer};

/// R2Ts outstanding at once on a connection; each may take a megabyte of memory.
const R2TS_MAX: usize = 4;

/// The transfers of a connection.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    /// By the tag of the R2T.
    active: BTreeMap<u16, Transfer>,
    /// Commands without an R2T yet, and the bytes they need.
    waiting: VecDeque<(Command, u32)>,
    tag: u16,
}

#[derive(Debug)]
struct Transfer {
    command: Command,
    length: u32,
    data: Vec<u8>,
    is_corrupt: bool,
}

/// An error in a data PDU, and the offset in its header.
pub(super) type DataError = (FatalError, u32);

impl Transfers {
    /// Queues a command that needs `length` bytes.
    pub(super) fn push(&mut self, command: Command, length: u32) {
        self.waiting.push_back((command, length));
    }

    /// The next R2T to send.
    pub(super) fn next_r2t(&mut self) -> Option<ReadyToTransfer> {
        if self.active.len() >= R2TS_MAX {
            return None;
        }
        let (command, length) = self.waiting.pop_front()?;
        // At most four tags are in use, so a free one is near.
        let tag = loop {
            self.tag = self.tag.wrapping_add(1);
            if !self.active.contains_key(&self.tag) {
                break self.tag;
            }
        };
        self.active.insert(
            tag,
            Transfer {
                command,
                length,
                data: Vec::new(),
                is_corrupt: false,
            },
        );
        Some(ReadyToTransfer {
            cid: command.cid,
            tag,
            offset: 0,
            length,
        })
    }

    /// Takes data; gives the command with all its data once it is whole.
    pub(super) fn receive(
        &mut self,
        header: &DataHeader,
        payload: &Payload,
    ) -> Result<Option<(Command, Payload)>, DataError> {
        let Some(transfer) = self.active.get_mut(&header.tag) else {
            return Err((FatalError::SequenceError, 10));
        };
        if transfer.command.cid != header.cid {
            return Err((FatalError::SequenceError, 8));
        }
        let received = transfer.data.len() as u32;
        if header.offset != received {
            return Err((FatalError::DataOutOfRange, 12));
        }
        if payload.bytes.len() as u64 > u64::from(transfer.length - received) {
            return Err((FatalError::DataOutOfRange, 16));
        }
        transfer.data.extend_from_slice(&payload.bytes);
        transfer.is_corrupt |= payload.is_corrupt;
        if transfer.data.len() as u64 == u64::from(transfer.length) {
            let whole = self.active.remove(&header.tag);
            return Ok(whole.map(|whole| {
                let payload = Payload {
                    bytes: whole.data,
                    is_corrupt: whole.is_corrupt,
                };
                (whole.command, payload)
            }));
        }
        // The host says that nothing more comes for this R2T: the command would wait for ever.
        if header.is_last {
            return Err((FatalError::InvalidHeaderField, 1));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(cid: u16) -> Command {
        Command {
            cid,
            ..Command::default()
        }
    }

    fn header(tag: u16, cid: u16, offset: u32, is_last: bool) -> DataHeader {
        DataHeader {
            cid,
            tag,
            offset,
            is_last,
            is_success: false,
        }
    }

    #[test]
    fn four_commands_at_a_time_are_asked_for() {
        let mut transfers = Transfers::default();
        for cid in 0..6 {
            transfers.push(command(cid), 8);
        }
        let asked: Vec<_> = std::iter::from_fn(|| transfers.next_r2t()).collect();
        assert_eq!(asked.len(), 4);
        let whole = transfers
            .receive(&header(asked[2].tag, 2, 0, true), &vec![5; 8].into())
            .unwrap();
        assert_eq!(whole.unwrap(), (command(2), vec![5; 8].into()));
        assert_eq!(transfers.next_r2t().unwrap().cid, 4);
        assert_eq!(transfers.next_r2t(), None);
    }

    #[test]
    fn data_that_was_not_asked_for_is_an_error() {
        let mut transfers = Transfers::default();
        transfers.push(command(7), 8);
        let tag = transfers.next_r2t().unwrap().tag;
        let part = Payload::from(vec![0; 4]);
        let mut error = |header: DataHeader, payload: &Payload| {
            transfers.receive(&header, payload).unwrap_err()
        };
        assert_eq!(
            error(header(tag + 1, 7, 0, false), &part),
            (FatalError::SequenceError, 10)
        );
        assert_eq!(
            error(header(tag, 8, 0, false), &part),
            (FatalError::SequenceError, 8)
        );
        assert_eq!(
            error(header(tag, 7, 4, false), &part),
            (FatalError::DataOutOfRange, 12)
        );
        assert_eq!(
            error(header(tag, 7, 0, false), &vec![0; 9].into()),
            (FatalError::DataOutOfRange, 16)
        );
        assert_eq!(
            error(header(tag, 7, 0, true), &part),
            (FatalError::InvalidHeaderField, 1)
        );
    }

    #[test]
    fn corrupt_data_is_marked_when_it_is_whole() {
        let mut transfers = Transfers::default();
        transfers.push(command(7), 8);
        let tag = transfers.next_r2t().unwrap().tag;
        let corrupt = Payload {
            bytes: vec![0; 4],
            is_corrupt: true,
        };
        assert_eq!(
            transfers.receive(&header(tag, 7, 0, false), &corrupt),
            Ok(None)
        );
        let whole = transfers.receive(&header(tag, 7, 4, true), &vec![0; 4].into());
        assert!(whole.unwrap().unwrap().1.is_corrupt);
    }
}
