//! Log page C1h: the job table.

use crate::bytes::{put, put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::nvme::zkpu::Shape;

/// Bytes of the page's header, and of an entry.
const JOB_BYTES: usize = 64;

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// Waits for the jobs before it.
    Queued = 1,
    /// In the core.
    Running = 2,
    /// Ended, its result is written.
    Done = 3,
    /// Ended with an error of the core.
    Failed = 4,
    /// Stopped by its timeout.
    TimedOut = 5,
    /// Stopped by the host.
    Cancelled = 6,
}

/// An entry of the job table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobEntry {
    /// Number, never 0.
    pub number: u32,
    /// The host's tag.
    pub tag: u32,
    /// State.
    pub state: JobState,
    /// The core's error, with state `Failed`.
    pub core_error: u8,
    /// Type and code of the status; 0 while live or done.
    pub status: u16,
    /// Number of points.
    pub count: u32,
    /// Window and levels.
    pub shape: Shape,
    /// Curve.
    pub curve: u8,
    /// Bits 0 wait, 1 base, 2 plain, 6 Precompute, 7 Execute Program.
    pub flags: u8,
    /// Submission queue of the start.
    pub queue: u16,
    /// Command identifier of the start.
    pub cid: u16,
    /// Address of the result; of a Precompute, the table.
    pub result: u64,
    /// Cycles of the core.
    pub core_cycles: u64,
    /// Clock cycle of the acceptance.
    pub accepted: u64,
    /// Clock cycle of the end.
    pub ended: u64,
    /// Operations of the core.
    pub operations: u64,
}

/// Log page C1h.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobTable {
    /// Jobs queued and running.
    pub live: u16,
    /// Ends since the event was last cleared.
    pub ends: u32,
    /// Number of the newest job.
    pub newest: u32,
    /// Power-on identifier.
    pub power_on_id: u64,
    /// Slots; an empty one is `None`.
    pub jobs: Vec<Option<JobEntry>>,
}

// === impl JobState ===

impl JobState {
    fn decode(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Queued,
            2 => Self::Running,
            3 => Self::Done,
            4 => Self::Failed,
            5 => Self::TimedOut,
            6 => Self::Cancelled,
            _ => return None,
        })
    }

    /// Whether the job is queued or running.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

// === impl JobEntry ===

impl JobEntry {
    /// Flag of a start with *wait*.
    pub const WAIT: u8 = 1;
    /// Flag of a start by a base set.
    pub const BASE: u8 = 1 << 1;
    /// Flag of a table of plain points.
    pub const PLAIN: u8 = 1 << 2;
    /// Flag of Precompute.
    pub const PRECOMPUTE: u8 = 1 << 6;
    /// Flag of Execute Program.
    pub const EXECUTE: u8 = 1 << 7;

    fn encode(&self) -> [u8; JOB_BYTES] {
        let mut bytes = [0; JOB_BYTES];
        put_u32(&mut bytes, 0, self.number);
        put_u32(&mut bytes, 4, self.tag);
        bytes[8] = self.state as u8;
        bytes[9] = self.core_error;
        put_u16(&mut bytes, 10, self.status);
        put_u32(&mut bytes, 12, self.count);
        put(
            &mut bytes,
            16,
            &[self.shape.window, self.shape.levels, self.curve, self.flags],
        );
        put_u16(&mut bytes, 20, self.queue);
        put_u16(&mut bytes, 22, self.cid);
        put_u64(&mut bytes, 24, self.result);
        put_u64(&mut bytes, 32, self.core_cycles);
        put_u64(&mut bytes, 40, self.accepted);
        put_u64(&mut bytes, 48, self.ended);
        put_u64(&mut bytes, 56, self.operations);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            number: u32_at(bytes, 0),
            tag: u32_at(bytes, 4),
            state: JobState::decode(bytes[8])?,
            core_error: bytes[9],
            status: u16_at(bytes, 10),
            count: u32_at(bytes, 12),
            shape: Shape {
                window: bytes[16],
                levels: bytes[17],
            },
            curve: bytes[18],
            flags: bytes[19],
            queue: u16_at(bytes, 20),
            cid: u16_at(bytes, 22),
            result: u64_at(bytes, 24),
            core_cycles: u64_at(bytes, 32),
            accepted: u64_at(bytes, 40),
            ended: u64_at(bytes, 48),
            operations: u64_at(bytes, 56),
        })
    }
}

// === impl JobTable ===

impl JobTable {
    /// Bytes of a page of `jobs` entries.
    pub const fn bytes(jobs: usize) -> usize {
        JOB_BYTES + jobs * JOB_BYTES
    }

    /// Writes the page.
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; Self::bytes(self.jobs.len())];
        put_u16(&mut page, 0, 1);
        put_u16(
            &mut page,
            2,
            u16::try_from(self.jobs.len()).unwrap_or(u16::MAX),
        );
        put_u16(&mut page, 4, JOB_BYTES as u16);
        put_u16(&mut page, 6, self.live);
        put_u32(&mut page, 8, self.ends);
        put_u32(&mut page, 12, self.newest);
        put_u64(&mut page, 16, self.power_on_id);
        for (to, job) in page[JOB_BYTES..]
            .chunks_exact_mut(JOB_BYTES)
            .zip(&self.jobs)
        {
            if let Some(job) = job {
                to.copy_from_slice(&job.encode());
            }
        }
        page
    }

    /// Reads a page; `None` for another version, for an entry in no known state, or if it is shorter than it says.
    pub fn decode(page: &[u8]) -> Option<Self> {
        if page.len() < JOB_BYTES || u16_at(page, 0) != 1 || u16_at(page, 4) as usize != JOB_BYTES {
            return None;
        }
        let entries = usize::from(u16_at(page, 2));
        let entries = page.get(JOB_BYTES..Self::bytes(entries))?;
        let jobs = entries
            .chunks_exact(JOB_BYTES)
            .map(|bytes| match u32_at(bytes, 0) {
                0 => Some(None),
                _ => JobEntry::decode(bytes).map(Some),
            })
            .collect::<Option<_>>()?;
        Some(Self {
            live: u16_at(page, 6),
            ends: u32_at(page, 8),
            newest: u32_at(page, 12),
            power_on_id: u64_at(page, 16),
            jobs,
        })
    }

    /// The entry of a job.
    pub fn find(&self, number: u32) -> Option<&JobEntry> {
        self.jobs.iter().flatten().find(|job| job.number == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_table_is_read_back_and_a_bad_one_refused() {
        let job = JobEntry {
            number: 5,
            tag: 7,
            state: JobState::Done,
            core_error: 0,
            status: 0,
            count: 1024,
            shape: Shape {
                window: 13,
                levels: 1,
            },
            curve: 0,
            flags: JobEntry::WAIT,
            queue: 1,
            cid: 2,
            result: 4096,
            core_cycles: 99,
            accepted: 1,
            ended: 2,
            operations: 3,
        };
        let table = JobTable {
            live: 0,
            ends: 1,
            newest: 5,
            power_on_id: 8,
            jobs: vec![None, Some(job)],
        };
        let page = table.encode();
        assert_eq!(
            &page[..24],
            &[
                1, 0, 2, 0, 64, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0
            ]
        );
        assert_eq!(
            &page[128..152],
            &[
                5, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0, 0, 4, 0, 0, 13, 1, 0, 1, 1, 0, 2, 0
            ]
        );
        assert_eq!(JobTable::decode(&page), Some(table));
        assert_eq!(JobTable::decode(&page[..191]), None);
        let mut unknown = page;
        unknown[136] = 7;
        assert_eq!(JobTable::decode(&unknown), None);
    }
}
