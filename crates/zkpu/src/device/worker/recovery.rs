//! Recovery from an error of the device: a new connection, or the fence.

use std::time::Duration;

use proofmill_accelerator::Error;

use super::{Worker, give};
use crate::host::{HostError, Zkpu};
use crate::nvme::Status;

/// Starts of one job, after lost connections, before the device counts as failed.
pub(super) const RESTARTS_MAX: u32 = 3;
/// Time before a second attempt to connect. It doubles with each, up to the maximum.
const RECONNECT_DELAY: Duration = Duration::from_millis(100);
const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(1);

impl Worker {
    /// After an error of the device: connects again and restarts its jobs if the connection was lost, else fences it.
    pub(super) fn recover(&mut self, error: HostError) {
        if self.state.failure.get().is_some() {
            return;
        }
        let mut error = error;
        while error.is_loss() {
            for job in &mut self.flying {
                job.restarts += 1;
            }
            if self.flying.iter().any(|job| job.restarts > RESTARTS_MAX) {
                return self.fence(format!("a job was restarted {RESTARTS_MAX} times: {error}"));
            }
            tracing::warn!(device = self.name, %error, "the connection is lost: connecting again");
            match self.reconnect() {
                Ok(()) => return,
                Err(other) => error = other,
            }
            if matches!(error, HostError::Connect { .. }) {
                break;
            }
        }
        self.fence(error.to_string());
    }

    /// Connects again, restores what a reset or a loss of power removed, and restarts the jobs.
    fn reconnect(&mut self) -> Result<(), HostError> {
        let before = *self.driver.capability();
        let serial = self.driver.identity().serial.clone();
        let mut delay = RECONNECT_DELAY;
        let mut attempt = 0;
        let driver = loop {
            attempt += 1;
            match Zkpu::connect(&self.options.host) {
                Ok(driver) => break driver,
                // The old association may not have ended yet.
                Err(error)
                    if error.is_loss()
                        || error.status().is_some_and(|s| s.is(Status::CONNECT_BUSY)) =>
                {
                    if attempt >= self.options.reconnects.max(1) {
                        return Err(HostError::Connect {
                            address: self.options.host.address.clone(),
                            reason: format!("{attempt} attempts failed, the last: {error}"),
                        });
                    }
                    std::thread::park_timeout(delay);
                    delay = (delay * 2).min(RECONNECT_DELAY_MAX);
                }
                Err(error) => return Err(error),
            }
        };
        if driver.identity().serial != serial
            || driver.capability().memory_bytes != before.memory_bytes
        {
            return Err(HostError::Unusable(
                "another device answers at its address".into(),
            ));
        }
        let has_lost_memory = driver.capability().power_on_id != before.power_on_id;
        self.driver = driver;
        for resident in self.bases.values() {
            match has_lost_memory {
                true => resident.write(&self.driver)?,
                false => resident.number(&self.driver)?,
            }
        }
        for at in 0..self.flying.len() {
            self.launch(at)?;
        }
        Ok(())
    }

    /// Takes no more jobs: the reason goes to all that wait.
    pub(super) fn fence(&mut self, reason: String) {
        let error = Error::Failed {
            device: self.name.clone(),
            reason,
        };
        tracing::error!(%error, "the device is fenced");
        let error = self.state.failure.get_or_init(|| error).clone();
        // Without its host the device drops what it still does.
        self.driver.close();
        for job in std::mem::take(&mut self.flying) {
            give(job.sink, Err(error.clone()));
        }
    }
}
