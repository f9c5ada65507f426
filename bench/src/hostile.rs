//! Counts whether duplicates, wrong grouping fields and garbage are rejected, and whether valid blocks are emitted.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use proofmill_bus::BlobStore;
use proofmill_orchestrator::conversation::{Reply, Uniqueness};
use proofmill_orchestrator::id::Part;
use proofmill_orchestrator::payload::Encoding;
use proofmill_orchestrator::plan::QueueIx;
use proofmill_orchestrator::port::SourcePort;
use proofmill_orchestrator::source::{self, PAYLOAD_MAX, SourceMessage};
use tokio::time::timeout;

use crate::harness::{
    Common, Progress, Report, RunningMill, StateDisk, Target, is_group, member_json, parse,
    registry,
};

/// Number of messages in a group.
const GROUP_SIZE: u64 = 5;

/// Submissions under way at once.
const SUBMISSIONS_AT_ONCE: usize = 16;

/// Longest wait for the next emission.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of the last message of the first group.
const LAST_OF_FIRST_GROUP: u64 = GROUP_SIZE - 1;

/// First block of the messages that must not be emitted. Valid messages have lower ones.
const INVALID_FIRST_BLOCK: u64 = 1 << 32;

/// Arguments of `proofmill-bench hostile`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Valid messages, in groups of five, are proved, gathered by a field and emitted. Beside them come the
same messages again (half of them while the first are on their way, half after everything has left),
messages whose grouping field is missing or of the wrong kind (half straight to the collector, half
out of a prover), a flood of what is no message at all, and messages that name groups that are not
theirs: more members for groups that have fired, members under another group's block, and known
members with another group's value. Counted are the duplicates recognised, the dead letters that say
why, and what was emitted.

  proofmill-bench hostile
  proofmill-bench hostile --duplicates 5000 --flood 20000")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Duplicate submissions; a multiple of 10
    #[arg(long, default_value_t = 500)]
    duplicates: u64,
    /// Messages with a wrong grouping field
    #[arg(long, default_value_t = 200)]
    wrong: u64,
    /// Garbage and oversized payloads
    #[arg(long, default_value_t = 2000)]
    flood: u64,
    /// Messages that name groups that are not theirs
    #[arg(long, default_value_t = 300)]
    cross: u64,
}

/// The public interface for submissions, and the queues of the experiment.
#[derive(Clone)]
struct Ports {
    source: SourcePort,
    blobs: Arc<BlobStore>,
    tasks: QueueIx,
    proofs: QueueIx,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let is_valid_count = args.duplicates > 0 && args.duplicates.is_multiple_of(2 * GROUP_SIZE);
    anyhow::ensure!(
        is_valid_count,
        "--duplicates must be a multiple of {}",
        2 * GROUP_SIZE
    );
    let disk = StateDisk::fresh(&args.common)?;
    let text = format!(
        r#"
        name = "hostile"
        [[source]]
        name = "tasks-in"
        kind = "submit"
        output = "tasks"
        [[source]]
        name = "proofs-in"
        kind = "submit"
        output = "proofs"
        [[queue]]
        name = "proofs"
        writers = "many"
        [[dispatcher]]
        name = "prove"
        input = "tasks"
        output = "proofs"
        workers = 8
        executor = {{ kind = "native", prover = "instant" }}
        [[collector]]
        name = "gather"
        inputs = ["proofs"]
        output = "proven"
        strategy = {{ kind = "match", k = {GROUP_SIZE}, group_by = "/group" }}
        [sequencer]
        input = "proven"
        "#
    );
    let registry = registry();
    let workflow = parse(&text, &registry)?;
    let mut mill = RunningMill::start(&workflow, registry, &disk, &disk.state("hostile")).await?;
    let ports = Ports {
        source: mill.source.clone(),
        blobs: mill.blobs.clone(),
        tasks: mill.queue("tasks")?,
        proofs: mill.queue("proofs")?,
    };

    let half = args.duplicates / 2;
    let total = (2 * args.duplicates + args.wrong + args.flood + args.cross) as usize;
    let progress = Progress::new("hostile: submissions answered", total);
    let mut replies = Counts::default();
    // Submits the valid messages, and a duplicate right behind each of the first half. The last
    // message of the first group is left for later: without it, nothing is emitted in chain order,
    // so that the mill still remembers all messages when further ones for their groups come.
    let with_twin = |n: u64| std::iter::repeat_n(n, 1 + usize::from(n < half));
    let early = (0..args.duplicates).filter(|n| *n != LAST_OF_FIRST_GROUP);
    let early = early.flat_map(with_twin);
    ports
        .submit_all(
            early.map(valid),
            |ports| ports.tasks,
            &mut replies,
            &progress,
        )
        .await?;
    let is_for_collector = |n: u64| -> bool { n.is_multiple_of(2) };
    let to_collector = (0..args.wrong)
        .filter(|n| is_for_collector(*n))
        .map(ungrouped);
    ports
        .submit_all(to_collector, |ports| ports.proofs, &mut replies, &progress)
        .await?;
    let to_prover = (0..args.wrong)
        .filter(|n| !is_for_collector(*n))
        .map(ungrouped);
    let mut after_prover = Counts::default();
    ports
        .submit_all(to_prover, |ports| ports.tasks, &mut after_prover, &progress)
        .await?;
    let mut flood = Counts::default();
    ports
        .submit_all(
            (0..args.flood).map(garbage),
            |ports| ports.tasks,
            &mut flood,
            &progress,
        )
        .await?;
    let missing_queue_reply = ports.submit(QueueIx(usize::MAX), valid(0)).await?;

    mill.wait_until_idle().await?;
    let groups = args.duplicates / GROUP_SIZE;
    let (mut extra, mut changed) = (Counts::default(), Counts::default());
    let kind = |n: &u64| n % 3;
    let more = (0..args.cross).filter(|n| kind(n) == 0);
    let more = more.map(|n| extra_member(n, groups, 0));
    ports
        .submit_all(more, |ports| ports.proofs, &mut extra, &progress)
        .await?;
    let others = (0..args.cross).filter(|n| kind(n) == 1);
    let others = others.map(|n| extra_member(n, groups, 1));
    ports
        .submit_all(others, |ports| ports.tasks, &mut extra, &progress)
        .await?;
    let known = (0..args.cross).filter(|n| kind(n) == 2);
    let known = known.map(|n| changed_member(n, groups));
    ports
        .submit_all(known, |ports| ports.tasks, &mut changed, &progress)
        .await?;
    mill.wait_until_idle().await?;
    let first = with_twin(LAST_OF_FIRST_GROUP).map(valid);
    ports
        .submit_all(first, |ports| ports.tasks, &mut replies, &progress)
        .await?;
    let mut emitted = Vec::new();
    while (emitted.len() as u64) < groups {
        match timeout(PATIENCE, mill.emitted.recv()).await {
            Ok(block) => emitted.push(block.context("the mill has stopped")?),
            Err(_) => break,
        }
    }
    let late = half..args.duplicates;
    ports
        .submit_all(
            late.map(valid),
            |ports| ports.tasks,
            &mut replies,
            &progress,
        )
        .await?;
    drop(progress);
    mill.wait_until_idle().await?;
    while let Ok(block) = mill.emitted.try_recv() {
        emitted.push(block);
    }
    let dead = mill.leader.operator().all_dead_letters().await?;
    let reasons: Vec<String> = dead.into_iter().map(|dead| dead.reason).collect();
    let summary = mill.finish().await?;

    let explained = reasons
        .iter()
        .filter(|reason| reason.contains("grouping field"))
        .count();
    let invalid = emitted
        .iter()
        .enumerate()
        .filter(|(at, block)| {
            *at as u64 != block.first || !is_group(block.first, GROUP_SIZE, &block.bytes)
        })
        .count();
    let (duplicates, wrong) = (args.duplicates as usize, args.wrong as usize);
    let mut report = Report::new("Hostile: duplicates, wrong fields, garbage", &disk);
    report.must_be("valid messages accepted", replies.accepted, duplicates);
    report.must_be("duplicates recognised", replies.duplicates, duplicates);
    report.must_be(
        "wrong messages refused at submission",
        replies.rejected,
        wrong.div_ceil(2),
    );
    report.must_be(
        "wrong messages found after a prover",
        after_prover.accepted,
        wrong / 2,
    );
    report.must_be("in the dead-letter queue", reasons.len(), wrong);
    report.must_be("dead letters with the reason", explained, wrong);
    report.must_be(
        "garbage and oversized refused",
        flood.invalid,
        args.flood as usize,
    );
    let refused = usize::from(matches!(missing_queue_reply, Reply::Invalid { .. }));
    report.must_be("message for a missing queue refused", refused, 1);
    let extra_sent = (0..args.cross).filter(|n| kind(n) < 2).count();
    let gather = summary.status.stages.iter();
    let skipped = gather
        .filter(|stage| &*stage.stage == "gather")
        .map(|stage| stage.counters.skipped)
        .sum::<u64>();
    report.must_be(
        "further members of fired groups, accepted",
        extra.accepted,
        extra_sent,
    );
    report.must_be(
        "further members kept out of every group",
        skipped as usize,
        extra_sent,
    );
    report.must_be(
        "known members with another group's value, not accepted",
        changed.duplicates + changed.differing,
        args.cross as usize - extra_sent,
    );
    report.must_be("groups emitted", emitted.len(), groups as usize);
    report.must_be("invalid groups emitted", invalid, 0);
    report.must_be(
        "other answers",
        [&replies, &after_prover, &flood, &extra, &changed]
            .map(|counts| counts.other)
            .iter()
            .sum(),
        0,
    );
    report.must_be("left unfinished", summary.status.live, 0);
    report.figure("groups", groups as f64, "", Target::None, "");
    report.put("deduplicated", replies.duplicates);
    report.put("rejected", reasons.len());
    report.put("refused", flood.invalid);
    report.put("invalid_emitted", invalid);
    report.put("strangers", extra_sent);
    report.put("strangers_skipped", skipped);
    report.put("lost", groups as usize - emitted.len().min(groups as usize));
    report.put("duplicated", emitted.len().saturating_sub(groups as usize));
    report.finish(&args.common)
}

/// Valid message `n`: member `n % GROUP_SIZE` of group `n / GROUP_SIZE`, which is also its block.
fn valid(n: u64) -> SourceMessage {
    let (group, index) = (n / GROUP_SIZE, n % GROUP_SIZE);
    message(group, index, member_json(group, index).into())
}

/// A message in the block of one group that is no member of it, with the grouping value of the group
/// that is `off` groups further. Neither group is the first one.
fn extra_member(n: u64, groups: u64, off: u64) -> SourceMessage {
    let json = member_json(other_group(n + off, groups), n % GROUP_SIZE);
    message(other_group(n, groups), GROUP_SIZE + n, json.into())
}

/// A member that a group already has, but with the grouping value of the next group.
fn changed_member(n: u64, groups: u64) -> SourceMessage {
    let json = member_json(other_group(n + 1, groups), n % GROUP_SIZE);
    message(other_group(n, groups), n % GROUP_SIZE, json.into())
}

/// A group other than the first one, for message `n`.
fn other_group(n: u64, groups: u64) -> u64 {
    1 + n % (groups - 1)
}

/// A message whose grouping field is missing or of a type by which messages cannot be grouped.
fn ungrouped(n: u64) -> SourceMessage {
    let json = match n % 7 {
        0 => "{\"index\":0}",
        1 => "{\"group\":null}",
        2 => "{\"group\":1.5}",
        3 => "{\"group\":true}",
        4 => "{\"group\":[1]}",
        5 => "{\"group\":{\"id\":1}}",
        _ => "[]",
    };
    message(INVALID_FIRST_BLOCK + n, 0, json.into())
}

/// Bytes that are not a valid message.
fn garbage(n: u64) -> SourceMessage {
    let bytes: Bytes = match n % 8 {
        0 => vec![0xff; 1000].into(),
        1 => Bytes::new(),
        2 => vec![b'['; 100_000].into(),
        3 => "{\"group\":1,".into(),
        4 => "{\"group\":1} trailing".into(),
        5 => "{\"group\":\"\u{0}\"}".into(),
        6 => "\u{feff}{\"group\":1}".into(),
        _ if n % 256 == 7 => vec![b' '; PAYLOAD_MAX + 1].into(),
        _ => "NaN".into(),
    };
    message(INVALID_FIRST_BLOCK + n, 1, bytes)
}

fn message(block: u64, index: u64, bytes: Bytes) -> SourceMessage {
    SourceMessage {
        first: block,
        last: block,
        part: Part::from_text(&index.to_string()),
        encoding: Encoding::Json,
        bytes,
        needs: None,
        uniqueness: Uniqueness::Multiple,
        next: 0,
        caller: None,
    }
}

#[derive(Default)]
struct Counts {
    accepted: usize,
    duplicates: usize,
    rejected: usize,
    invalid: usize,
    differing: usize,
    other: usize,
}

// === impl Ports ===

impl Ports {
    async fn submit(&self, queue: QueueIx, message: SourceMessage) -> anyhow::Result<Reply> {
        Ok(source::submit(
            &self.source,
            &self.blobs,
            &"stranger".into(),
            queue,
            message,
        )
        .await?)
    }

    async fn submit_all(
        &self,
        messages: impl Iterator<Item = SourceMessage>,
        queue: fn(&Self) -> QueueIx,
        counts: &mut Counts,
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let submit = |message| self.submit(queue(self), message);
        let replies: Vec<Reply> = stream::iter(messages.map(submit))
            .buffered(SUBMISSIONS_AT_ONCE)
            .try_collect()
            .await?;
        for reply in replies {
            *match reply {
                Reply::Accepted => &mut counts.accepted,
                Reply::Duplicate { .. } => &mut counts.duplicates,
                Reply::Rejected { .. } => &mut counts.rejected,
                Reply::Invalid { .. } => &mut counts.invalid,
                Reply::Differs { .. } => &mut counts.differing,
                _ => &mut counts.other,
            } += 1;
            progress.add(1);
        }
        Ok(())
    }
}
