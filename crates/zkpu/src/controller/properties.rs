//! Properties of the controller, its enabling, reset and shutdown.

use crate::controller::device::MsmDevice;
use crate::controller::events::Events;
use crate::controller::features::Features;
use crate::controller::state::{BASE_SETS, Controller, QUEUE_ENTRIES_MAX, RANGE_SETS};
use crate::nvme::{Capabilities, Configuration, ControllerStatus, Status, property};

/// Time to become ready, in units of 500 ms.
const TIMEOUT_UNITS: u8 = 20;
const VERSION: u32 = 0x0002_0000;

impl<D: MsmDevice> Controller<D> {
    /// Reads a property of 4 bytes, or of 8 if `is_wide`.
    ///
    /// # Errors
    ///
    /// *Connect Invalid Parameters* (82h) for an offset or size that the controller does not have.
    pub fn property(&self, offset: u32, is_wide: bool) -> Result<u64, Status> {
        let capabilities = Capabilities::new(QUEUE_ENTRIES_MAX, TIMEOUT_UNITS).0;
        Ok(match (offset, is_wide) {
            (property::CAP, true) => capabilities,
            (property::CAP, false) => capabilities & 0xffff_ffff,
            (0x04, false) => capabilities >> 32,
            (property::VS, false) => VERSION.into(),
            (property::CC, false) => self.configuration.0.into(),
            (property::CSTS, false) => self.status.0.into(),
            (property::NSSR, false) => 0,
            _ => return Err(Status::CONNECT_INVALID_PARAMETERS),
        })
    }

    /// Writes a property of 4 bytes.
    ///
    /// # Errors
    ///
    /// *Connect Invalid Parameters* (82h) for a property that cannot be written, or not in 8 bytes.
    pub fn set_property(&mut self, offset: u32, is_wide: bool, value: u64) -> Result<(), Status> {
        let value = value as u32;
        match (offset, is_wide) {
            (property::CC, false) => self.configure(Configuration(value)),
            (property::CSTS, false) => {
                self.status.0 &= !(value & ControllerStatus::SUBSYSTEM_RESET);
            }
            (property::NSSR, false) if value == property::NSSR_RESET => {
                self.reset();
                self.configuration = Configuration::default();
                self.status = ControllerStatus(ControllerStatus::SUBSYSTEM_RESET);
            }
            (property::NSSR, false) => {}
            _ => return Err(Status::CONNECT_INVALID_PARAMETERS),
        }
        Ok(())
    }

    fn configure(&mut self, configuration: Configuration) {
        let was_enabled = self.configuration.is_enabled();
        self.configuration = configuration;
        if was_enabled && !configuration.is_enabled() {
            self.reset();
            self.status.0 &= ControllerStatus::SUBSYSTEM_RESET;
        }
        if !was_enabled && configuration.is_enabled() {
            self.enable();
        }
        if configuration.shutdown() != 0 && !self.status.has(ControllerStatus::SHUT_DOWN) {
            self.cancel_all_jobs();
            self.status.0 |= ControllerStatus::SHUT_DOWN;
        }
    }

    fn enable(&mut self) {
        let configuration = self.configuration;
        let sets = configuration.command_sets();
        let is_supported = (sets == 0 || sets == 6)
            && configuration.page_size() == 0
            && configuration.arbitration() == 0;
        if !is_supported {
            self.status.0 |= ControllerStatus::FATAL;
            return;
        }
        self.all_sets = sets == 6;
        self.status.0 |= ControllerStatus::READY;
    }

    /// Controller reset: jobs end without replies, sets are removed; memory, counters and logs stay.
    pub(super) fn reset(&mut self) {
        self.forget_all_jobs();
        self.forget_replies();
        self.counters.resets += 1;
        self.all_sets = false;
        // The keep alive timer is the association's, which outlives the reset.
        let keep_alive_ms = self.features.keep_alive_ms;
        self.features = Features::default();
        self.features.keep_alive_ms = keep_alive_ms;
        self.events = Events::default();
        self.bases = [None; BASE_SETS];
        self.range_sets = [const { None }; RANGE_SETS];
        self.program_active = true;
    }
}
