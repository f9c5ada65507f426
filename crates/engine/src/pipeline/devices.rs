//! All devices by number, and the choice of a free one.

use proofmill_groth16::Curve;

use super::device::Device;
use crate::interface::DeviceStatus;

/// All devices. A device's number is its index in the options.
pub(super) struct Devices {
    devices: Vec<Device>,
}

// === impl Devices ===

impl Devices {
    pub(super) fn new(devices: Vec<Device>) -> Self {
        Self { devices }
    }

    /// A free device for a proof over `curve`, if possible another one than `before`, which had the partition's last
    /// attempt. An accelerator gets no partition again that it failed at, since a second wrong result would end the job,
    /// and none of a curve that it can do nothing for. While one that can is in use, processors get only partitions that
    /// were tried before, and otherwise work for the other stages.
    pub(super) fn free(&self, before: Option<usize>, curve: Curve) -> Option<usize> {
        let accelerates = |device: &Device| device.accelerates(curve);
        let spared = before.is_none() && self.devices.iter().any(accelerates);
        let takes = |number: &usize| {
            let device = &self.devices[*number];
            let is_suited = match device.accelerator() {
                Some(_) => device.accelerates(curve) && before != Some(*number),
                None => !spared,
            };
            device.is_free() && is_suited
        };
        let mut numbers = (0..self.devices.len()).filter(takes);
        let other = |number: &usize| Some(*number) != before;
        numbers.clone().find(other).or_else(|| numbers.next())
    }

    /// Records that a partition enters the free device `number`.
    pub(super) fn begin(&mut self, number: usize) -> &Device {
        let device = &mut self.devices[number];
        device.begins();
        device
    }

    /// Records that a partition leaves a device.
    pub(super) fn end(&mut self, number: usize, done: bool) {
        self.devices[number].ends(done);
    }

    pub(super) fn get(&self, number: usize) -> Option<&Device> {
        self.devices.get(number)
    }

    /// The device of a number, for recording faults.
    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut Device> {
        self.devices.get_mut(number)
    }

    pub(super) fn status(&self) -> Vec<DeviceStatus> {
        self.devices.iter().map(Device::status).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::DeviceOptions;
    use crate::pipeline::pool;

    const CURVE: Curve = Curve::Bn254;

    fn processors(count: usize) -> Devices {
        let shared = pool("test", 1).unwrap();
        let options = DeviceOptions::processors(count);
        let devices = options.iter().enumerate();
        let devices = devices.map(|(number, it)| Device::new(number, it, &shared).unwrap());
        Devices::new(devices.collect())
    }

    #[test]
    fn an_attempt_prefers_another_device_than_the_last_one() {
        let mut devices = processors(2);
        assert_eq!(devices.free(None, CURVE), Some(0));
        assert_eq!(devices.free(Some(0), CURVE), Some(1));
        devices.begin(1);
        assert_eq!(devices.free(Some(0), CURVE), Some(0));
        devices.begin(0);
        assert_eq!(devices.free(None, CURVE), None);
        devices.end(1, true);
        assert_eq!(devices.free(None, CURVE), Some(1));
        let products: Vec<_> = devices.status().iter().map(|it| it.products).collect();
        assert_eq!(products, [0, 1]);
    }

    #[test]
    fn a_broken_device_gets_no_more_partitions() {
        let mut devices = processors(2);
        devices.begin(0);
        devices.end(0, false);
        devices.get_mut(0).unwrap().fence("on fire");
        assert_eq!(devices.free(None, CURVE), Some(1));
        let broken: Vec<_> = devices.status().into_iter().map(|it| it.broken).collect();
        assert_eq!(broken, [Some("on fire".to_owned()), None]);
    }
}
