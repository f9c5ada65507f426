//! The devices, by number: which is free, and which was to blame.

use super::device::Device;
use crate::interface::DeviceStatus;

/// All devices. A device's number is its place in the options.
pub(super) struct Devices {
    devices: Vec<Device>,
}

// === impl Devices ===

impl Devices {
    pub(super) fn new(devices: Vec<Device>) -> Self {
        Self { devices }
    }

    /// A free device, rather not the one that had the partition before. Processors that accelerators
    /// spare work for the other stages, as long as the partition was not tried before.
    pub(super) fn free(&self, before: Option<usize>) -> Option<usize> {
        let spared = before.is_none() && self.devices.iter().any(Device::accelerates);
        let takes = |number: &usize| {
            let device = &self.devices[*number];
            device.is_free() && (device.accelerator().is_some() || !spared)
        };
        let mut numbers = (0..self.devices.len()).filter(takes);
        let other = |number: &usize| Some(*number) != before;
        numbers.clone().find(other).or_else(|| numbers.next())
    }

    /// A partition begins on the device of a number, which is free.
    pub(super) fn begin(&mut self, number: usize) -> &Device {
        let device = &mut self.devices[number];
        device.begins();
        device
    }

    /// A partition left a device.
    pub(super) fn end(&mut self, number: usize, done: bool) {
        self.devices[number].ends(done);
    }

    pub(super) fn get(&self, number: usize) -> Option<&Device> {
        self.devices.get(number)
    }

    /// The device of a number, to be told what it is blamed for.
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

    fn processors(count: usize) -> Devices {
        let shared = pool("test", 1).unwrap();
        let options = DeviceOptions::processors(count);
        let devices = options.iter().enumerate();
        let devices = devices.map(|(number, it)| Device::new(number, it, &shared).unwrap());
        Devices::new(devices.collect())
    }

    #[test]
    fn a_partition_rather_gets_a_device_that_it_did_not_have_before() {
        let mut devices = processors(2);
        assert_eq!(devices.free(None), Some(0));
        assert_eq!(devices.free(Some(0)), Some(1));
        devices.begin(1);
        assert_eq!(devices.free(Some(0)), Some(0));
        devices.begin(0);
        assert_eq!(devices.free(None), None);
        devices.end(1, true);
        assert_eq!(devices.free(None), Some(1));
        let products: Vec<_> = devices.status().iter().map(|it| it.products).collect();
        assert_eq!(products, [0, 1]);
    }

    #[test]
    fn a_device_that_broke_gets_nothing_any_more() {
        let mut devices = processors(2);
        devices.begin(0);
        devices.end(0, false);
        devices.get_mut(0).unwrap().fence("on fire");
        assert_eq!(devices.free(None), Some(1));
        let broken: Vec<_> = devices.status().into_iter().map(|it| it.broken).collect();
        assert_eq!(broken, [Some("on fire".to_owned()), None]);
    }
}
