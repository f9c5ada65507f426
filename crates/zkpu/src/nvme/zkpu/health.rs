//! Log page C0h, and asynchronous events.

use crate::bytes::{put, put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};

const HEALTH_BYTES: usize = 512;

/// Counters of log page C0h, in its order from byte 24 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the page's")]
pub struct Counters {
    pub jobs_accepted: u64,
    pub jobs_completed: u64,
    pub jobs_failed: u64,
    pub jobs_timed_out: u64,
    pub jobs_cancelled: u64,
    pub points: u64,
    /// Busy cycles, operations, conflicts, replicas, stalls.
    pub core: [u64; 5],
    /// Bytes from the host.
    pub bytes_from_host: u64,
    /// Bytes to the host.
    pub bytes_to_host: u64,
    pub commands: u64,
    pub commands_failed: u64,
    pub resets: u64,
    pub transfer_errors: u64,
    pub events: u64,
}

/// Log page C0h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZkpuHealth {
    /// Whether the core is busy.
    pub is_busy: bool,
    /// Whether a fault has fenced the device.
    pub is_fenced: bool,
    /// Code of the fault: 0 none, 1 the core did not stop.
    pub fault: u8,
    /// Firmware version.
    pub firmware: u32,
    /// Power-on identifier.
    pub power_on_id: u64,
    /// Clock cycles since power-on.
    pub cycles: u64,
    /// Counters.
    pub counters: Counters,
    /// Jobs queued and running.
    pub jobs_live: u8,
    /// Base sets in use.
    pub base_sets: u8,
    /// Range sets in use.
    pub range_sets: u8,
}

/// Dword 0 of the completion of an Asynchronous Event Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Jobs ended; log page C1h tells which.
    JobsEnded,
    /// The device is fenced; log page C0h tells why.
    Fault,
    /// An event that this protocol does not define.
    Other(u32),
}

// === impl Counters ===

impl Counters {
    const COUNT: usize = 18;

    fn words(&self) -> [u64; Self::COUNT] {
        let [busy, operations, conflicts, replicas, stalls] = self.core;
        [
            self.jobs_accepted,
            self.jobs_completed,
            self.jobs_failed,
            self.jobs_timed_out,
            self.jobs_cancelled,
            self.points,
            busy,
            operations,
            conflicts,
            replicas,
            stalls,
            self.bytes_from_host,
            self.bytes_to_host,
            self.commands,
            self.commands_failed,
            self.resets,
            self.transfer_errors,
            self.events,
        ]
    }

    fn of_words(words: [u64; Self::COUNT]) -> Self {
        Self {
            jobs_accepted: words[0],
            jobs_completed: words[1],
            jobs_failed: words[2],
            jobs_timed_out: words[3],
            jobs_cancelled: words[4],
            points: words[5],
            core: [words[6], words[7], words[8], words[9], words[10]],
            bytes_from_host: words[11],
            bytes_to_host: words[12],
            commands: words[13],
            commands_failed: words[14],
            resets: words[15],
            transfer_errors: words[16],
            events: words[17],
        }
    }
}

// === impl ZkpuHealth ===

impl ZkpuHealth {
    /// Writes the page, 512 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; HEALTH_BYTES];
        put_u16(&mut page, 0, 1);
        page[2] = u8::from(self.is_busy) | u8::from(self.is_fenced) << 1;
        page[3] = self.fault;
        put_u32(&mut page, 4, self.firmware);
        put_u64(&mut page, 8, self.power_on_id);
        put_u64(&mut page, 16, self.cycles);
        for (i, word) in self.counters.words().iter().enumerate() {
            put_u64(&mut page, 24 + 8 * i, *word);
        }
        put(
            &mut page,
            170,
            &[self.jobs_live, self.base_sets, self.range_sets],
        );
        page
    }

    /// Reads the page; `None` if it is short or of another version.
    pub fn decode(page: &[u8]) -> Option<Self> {
        if page.len() < HEALTH_BYTES || u16_at(page, 0) != 1 {
            return None;
        }
        Some(Self {
            is_busy: page[2] & 1 != 0,
            is_fenced: page[2] & 2 != 0,
            fault: page[3],
            firmware: u32_at(page, 4),
            power_on_id: u64_at(page, 8),
            cycles: u64_at(page, 16),
            counters: Counters::of_words(std::array::from_fn(|i| u64_at(page, 24 + 8 * i))),
            jobs_live: page[170],
            base_sets: page[171],
            range_sets: page[172],
        })
    }
}

// === impl Event ===

impl Event {
    /// The completion's dword 0.
    pub const fn encode(self) -> u32 {
        match self {
            Self::JobsEnded => 0x00c1_0107,
            Self::Fault => 0x00c0_0207,
            Self::Other(word) => word,
        }
    }

    /// Of the completion's dword 0.
    pub const fn decode(word: u32) -> Self {
        match word & 0x00ff_ff07 {
            0x00c1_0107 => Self::JobsEnded,
            0x00c0_0207 => Self::Fault,
            _ => Self::Other(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_health_page_has_its_counters_in_order() {
        let words = std::array::from_fn(|i| i as u64 + 1);
        let health = ZkpuHealth {
            is_busy: true,
            counters: Counters::of_words(words),
            jobs_live: 1,
            base_sets: 2,
            range_sets: 3,
            ..ZkpuHealth::default()
        };
        let page = health.encode();
        assert_eq!(
            (
                page[64], page[72], page[112], page[128], page[144], page[160]
            ),
            (6, 7, 12, 14, 16, 18)
        );
        assert_eq!(page[170..173], [1, 2, 3]);
        assert_eq!(ZkpuHealth::decode(&page), Some(health));
    }

    #[test]
    fn events_are_the_words_of_the_page() {
        assert_eq!(Event::decode(0x00c1_0107), Event::JobsEnded);
        assert_eq!(Event::decode(Event::Fault.encode()), Event::Fault);
        assert_eq!(Event::decode(0x0001_0000), Event::Other(0x0001_0000));
    }
}
