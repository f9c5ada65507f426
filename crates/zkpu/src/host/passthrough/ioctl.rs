//! The calls of `<linux/nvme_ioctl.h>`: a command to a device file of the kernel's NVMe driver.

use std::ffi::c_void;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, opcode};

use crate::nvme::{Command, Completion, Status};

/// The queue of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Admin,
    Io,
}

/// `struct nvme_passthru_cmd64`.
#[repr(C)]
#[derive(Debug, Default)]
struct PassthroughCommand {
    opcode: u8,
    flags: u8,
    reserved_1: u16,
    nsid: u32,
    cdw2: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_length: u32,
    data_length: u32,
    cdw10: [u32; 6],
    timeout_ms: u32,
    reserved_2: u32,
    result: u64,
}

/// `NVME_IOCTL_ADMIN64_CMD` or `NVME_IOCTL_IO64_CMD`.
struct Execute<'a> {
    kind: Kind,
    command: &'a mut PassthroughCommand,
}

/// `NVME_IOCTL_ID`.
struct NamespaceId;

const GROUP: u8 = b'N';
const ID: Opcode = opcode::none(GROUP, 0x40);
const ADMIN: Opcode = opcode::read_write::<PassthroughCommand>(GROUP, 0x47);
const IO: Opcode = opcode::read_write::<PassthroughCommand>(GROUP, 0x48);

/// The identifier of the namespace that a device file is of.
pub(super) fn namespace(file: impl AsFd) -> Result<u32, Errno> {
    #[expect(unsafe_code, reason = "a call of the kernel's NVMe driver")]
    // SAFETY: NVME_IOCTL_ID takes no argument, and gives the identifier as its return value. A file of another driver
    // refuses a number that it does not know: the group 'N' belongs to NVMe.
    unsafe {
        rustix::ioctl::ioctl(file, NamespaceId)
    }
}

/// Executes a command: `data` is what the device reads, or where it writes, as the lowest bits of the opcode say. The kernel
/// ends the command, and resets the device if it must, after `timeout`.
pub(super) fn execute(
    file: impl AsFd,
    kind: Kind,
    command: &Command,
    data: &mut [u8],
    timeout: Duration,
) -> Result<Completion, Errno> {
    let mut passed = PassthroughCommand {
        opcode: command.opcode,
        nsid: command.nsid,
        cdw2: command.cdw2,
        cdw10: command.cdw10,
        // The kernel takes an address that is not null for a command without data as one with data.
        address: if data.is_empty() {
            0
        } else {
            data.as_mut_ptr() as u64
        },
        data_length: u32::try_from(data.len()).map_err(|_| Errno::INVAL)?,
        timeout_ms: u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX),
        ..PassthroughCommand::default()
    };
    let call = Execute {
        kind,
        command: &mut passed,
    };
    #[expect(unsafe_code, reason = "a call of the kernel's NVMe driver")]
    // SAFETY: the call reads and writes a `struct nvme_passthru_cmd64`, which `PassthroughCommand` is, and `data_length`
    // bytes at `address`, which are those of `data`, borrowed until it returns. It returns when the device has no more to
    // do with them. There is no metadata.
    let status = unsafe { rustix::ioctl::ioctl(file, call)? };
    Ok(Completion {
        result: [passed.result as u32, (passed.result >> 32) as u32],
        // The status without the phase bit, as the completion's field has it.
        status: Status::from_field(status as u16),
        ..Completion::default()
    })
}

#[expect(unsafe_code, reason = "a call of the kernel's NVMe driver")]
// SAFETY: the pointer is to the structure that the two calls read and write, borrowed mutably as long as this value.
unsafe impl Ioctl for Execute<'_> {
    type Output = IoctlOutput;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        match self.kind {
            Kind::Admin => ADMIN,
            Kind::Io => IO,
        }
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::from_mut(self.command).cast()
    }

    unsafe fn output_from_ptr(
        output: IoctlOutput,
        _: *mut c_void,
    ) -> rustix::io::Result<IoctlOutput> {
        Ok(output)
    }
}

#[expect(unsafe_code, reason = "a call of the kernel's NVMe driver")]
// SAFETY: the call has no argument, so that the pointer is not read.
unsafe impl Ioctl for NamespaceId {
    type Output = u32;

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        ID
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(output: IoctlOutput, _: *mut c_void) -> rustix::io::Result<u32> {
        // Identifiers are positive; one above 2^31 reads as negative.
        Ok(output as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    /// Offsets and numbers by `<linux/nvme_ioctl.h>`, as a C compiler gives them.
    #[test]
    fn the_structure_is_that_of_the_header() {
        assert_eq!(size_of::<PassthroughCommand>(), 80);
        let offsets = [
            offset_of!(PassthroughCommand, nsid),
            offset_of!(PassthroughCommand, cdw2),
            offset_of!(PassthroughCommand, metadata),
            offset_of!(PassthroughCommand, address),
            offset_of!(PassthroughCommand, metadata_length),
            offset_of!(PassthroughCommand, data_length),
            offset_of!(PassthroughCommand, cdw10),
            offset_of!(PassthroughCommand, timeout_ms),
            offset_of!(PassthroughCommand, result),
        ];
        assert_eq!(offsets, [4, 8, 16, 24, 32, 36, 40, 64, 72]);
        assert_eq!((ID, ADMIN, IO), (0x4e40, 0xc050_4e47, 0xc050_4e48));
    }
}
