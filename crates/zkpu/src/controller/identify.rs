//! Identify.

use crate::bytes::{put, put_u16, put_u32, put_u64};
use crate::controller::device::MsmDevice;
use crate::controller::programs::RANGES_MAX;
use crate::controller::state::{
    Controller, Executed, NSID_BLOCKS, NSID_PROGRAMS, RANGE_SETS, data, namespace_set,
};
use crate::nvme::opcode::set;
use crate::nvme::zkpu::BLOCK_BYTES;
use crate::nvme::{Command, IDENTIFY_BYTES, IdentifyController, NamespaceBlocks, Status};

/// Values of CNS.
mod structure {
    pub(super) const NAMESPACE: u32 = 0x00;
    pub(super) const CONTROLLER: u32 = 0x01;
    pub(super) const ACTIVE_NAMESPACES: u32 = 0x02;
    pub(super) const DESCRIPTORS: u32 = 0x03;
    pub(super) const NAMESPACE_OF_SET: u32 = 0x05;
    pub(super) const CONTROLLER_OF_SET: u32 = 0x06;
    pub(super) const ACTIVE_NAMESPACES_OF_SET: u32 = 0x07;
    pub(super) const NAMESPACE_OF_ALL_SETS: u32 = 0x08;
    pub(super) const COMMAND_SETS: u32 = 0x1c;
}

/// 2^6 bytes: granularity of memory ranges.
const RANGE_GRANULARITY_LOG: u16 = 6;
/// Largest namespace identifier that a list can begin after.
const LIST_NSID_MAX: u32 = 0xffff_fffd;

impl<D: MsmDevice> Controller<D> {
    pub(super) fn identify(&self, command: &Command) -> Executed {
        let nsid = command.nsid;
        let command_set = (command.cdw10[1] >> 24) as u8;
        let existing = || match self.namespace_exists(nsid) {
            true => Ok(()),
            false => Err(Status::INVALID_NAMESPACE),
        };
        match command.cdw10[0] & 0xff {
            structure::NAMESPACE => {
                existing()?;
                if nsid != NSID_BLOCKS {
                    return Err(Status::INVALID_COMMAND_SET);
                }
                data(self.namespace_of_blocks().encode())
            }
            structure::CONTROLLER => data(self.identify_controller().encode()),
            structure::ACTIVE_NAMESPACES => data(self.list(nsid, None)?),
            structure::ACTIVE_NAMESPACES_OF_SET => data(self.list(nsid, Some(command_set))?),
            structure::DESCRIPTORS => {
                existing()?;
                data(self.descriptors(nsid))
            }
            structure::NAMESPACE_OF_SET => {
                known_set(command_set)?;
                existing()?;
                if namespace_set(nsid) != command_set {
                    return Err(Status::INVALID_COMMAND_SET);
                }
                data(self.namespace_of_set(command_set))
            }
            structure::CONTROLLER_OF_SET => {
                known_set(command_set)?;
                data(vec![0; IDENTIFY_BYTES])
            }
            structure::NAMESPACE_OF_ALL_SETS => {
                existing()?;
                let mut page = vec![0; IDENTIFY_BYTES];
                page[14] = 1; // ready
                data(page)
            }
            structure::COMMAND_SETS => {
                let mut page = vec![0; IDENTIFY_BYTES];
                put_u32(
                    &mut page,
                    0,
                    1 << set::NVM | 1 << set::MEMORY | 1 << set::PROGRAMS,
                );
                data(page)
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn identify_controller(&self) -> IdentifyController {
        let device = self.device.description();
        IdentifyController {
            serial: device.serial.clone(),
            model: device.model.clone(),
            firmware: device.firmware.clone(),
            mdts: 8,
            controller: 1,
            version: 0x0002_0000,
            kind: 1,
            commands_max: self.queue_entries,
            namespaces: NSID_PROGRAMS,
            subsystem: self.subsystem(),
            fabrics: Some(self.fabrics),
            zkpu: Some(self.capability()),
        }
    }

    fn namespace_of_blocks(&self) -> NamespaceBlocks {
        NamespaceBlocks {
            blocks: self.memory_bytes() / BLOCK_BYTES,
            block_log: 9,
            nguid: self.nguid(NSID_BLOCKS),
        }
    }

    fn namespace_of_set(&self, command_set: u8) -> Vec<u8> {
        let mut page = vec![0; IDENTIFY_BYTES];
        match command_set {
            set::MEMORY => {
                put_u64(&mut page, 0, self.memory_bytes());
                put_u64(&mut page, 8, self.memory_bytes());
                put_u16(&mut page, 16, 4);
            }
            set::PROGRAMS => {
                put_u16(&mut page, 0, 1);
                put_u16(&mut page, 2, RANGE_SETS as u16);
                put_u16(&mut page, 4, RANGE_GRANULARITY_LOG);
                page[6] = RANGES_MAX as u8;
            }
            _ => {}
        }
        page
    }

    /// Namespaces above `after`, of one command set or of all.
    fn list(&self, after: u32, of_set: Option<u8>) -> Result<Vec<u8>, Status> {
        if after > LIST_NSID_MAX {
            return Err(Status::INVALID_NAMESPACE);
        }
        let listed = (NSID_BLOCKS..=NSID_PROGRAMS).filter(|nsid| {
            *nsid > after
                && self.namespace_exists(*nsid)
                && of_set.is_none_or(|of_set| namespace_set(*nsid) == of_set)
        });
        let mut page = vec![0; IDENTIFY_BYTES];
        for (i, nsid) in listed.enumerate() {
            put_u32(&mut page, 4 * i, nsid);
        }
        Ok(page)
    }

    /// Descriptors of NGUID and of the command set.
    fn descriptors(&self, nsid: u32) -> Vec<u8> {
        let mut page = vec![0; IDENTIFY_BYTES];
        put(&mut page, 0, &[2, 16, 0, 0]);
        put(&mut page, 4, &self.nguid(nsid));
        put(&mut page, 20, &[4, 1, 0, 0, namespace_set(nsid)]);
        page
    }

    /// Globally unique: 64 bits of a digest of the serial number, and the namespace.
    fn nguid(&self, nsid: u32) -> [u8; 16] {
        let serial = &self.device.description().serial;
        // FNV-1a: it only has to tell serial numbers apart.
        let digest = serial
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
                (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        let mut nguid = [0; 16];
        put(&mut nguid, 0, b"ZKPU");
        put_u64(&mut nguid, 4, digest);
        put_u32(&mut nguid, 12, nsid);
        nguid
    }
}

fn known_set(command_set: u8) -> Result<(), Status> {
    match command_set {
        set::NVM | set::MEMORY | set::PROGRAMS => Ok(()),
        _ => Err(Status::INVALID_COMMAND_SET),
    }
}
