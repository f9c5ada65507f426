//! Admission of calls: checks that the sender's role may make a call, and that every value in it is
//! valid.
//!
//! The server lets a user publish on the subjects of its own seats only. Everything else is checked
//! here, before any part of a call reaches the coordinator: a dishonest peer can send only the
//! messages of its seat's role, about its own workers, with values that are valid by themselves.
//! Whether they are true (that a lease was given, that a task is live) is checked by the core.

use std::collections::BTreeSet;
use std::sync::Arc;

use proofmill_bus::Key;

use super::role::Role;
use super::seat::Seat;
use super::wire::{Call, CallBody};
use crate::conversation::{
    HostEvent, LeaseRef, Output, Query, Request, RoleEvent, SinkEvent, Submit, WorkerEvent,
    WorkerJoin, WorkerResult,
};
use crate::message::{GROUPING_MAX, REASON_MAX};
use crate::payload::{INLINE_LIMIT, Payload};
use crate::plan::{Plan, QueueIx, StageIx};
use crate::principal::Principal;

/// Maximum number of events in one call.
const EVENTS_MAX: usize = 4096;

/// Maximum number of joins and heartbeats beside them: one of each for as many workers as a process may have.
const PRESENCE_MAX: usize = 2 * 4096;

/// Maximum length of the name of a worker, host, producer or client, in bytes.
const NAME_MAX: usize = 250;

/// Maximum number of labels of a worker, or of a message's needs, and maximum length of each in
/// bytes.
const LABELS_MAX: usize = 256;

/// Maximum number of concurrent assignments of a worker.
const SLOTS_MAX: usize = 1 << 16;

/// Maximum number of grouping values of one message.
const GROUPINGS_MAX: usize = 256;

/// Maximum number of sinks of an emission (`SINKS_MAX`), and maximum length of each name in bytes
/// (`SINK_MAX`): more than is kept.
const SINKS_MAX: usize = 256;
const SINK_MAX: usize = 16 * 1024;

/// Maximum number of leases in one heartbeat.
const RUNNING_MAX: usize = 1 << 16;

/// The reason why a call is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The sender's role may not make this call.
    #[error("not permitted for {0}")]
    NotPermitted(String),
    /// A value in the call is invalid.
    #[error("{0}")]
    Invalid(String),
}

/// Checks a call received on `subject`, and returns the seat of its sender.
///
/// # Errors
/// [`Refused`]: no part of the call may be carried out.
pub fn admit(call: &Call, subject: &str, plan: &Plan) -> Result<Seat, Refused> {
    let not_permitted = || Refused::NotPermitted(subject.chars().take(NAME_MAX).collect());
    let seat = Seat::on_subject(subject).ok_or_else(not_permitted)?;
    check_name("the client's name", &call.client)?;
    let name = seat.name_of(&call.client).ok_or_else(not_permitted)?;
    let role = seat.role();
    let admission = CallAdmission {
        plan,
        role,
        principal: seat.principal(),
        client: name,
    };
    match &call.body {
        CallBody::Request { request, .. } => admission.request(request)?,
        CallBody::Query(query) => admission.query(query)?,
        CallBody::Events {
            events, presence, ..
        } => {
            bounded("the events of a call", events.len(), EVENTS_MAX)?;
            bounded("the presence in a call", presence.len(), PRESENCE_MAX)?;
            events.iter().try_for_each(|event| admission.event(event))?;
            presence
                .iter()
                .try_for_each(|event| admission.presence(event))?;
        }
    }
    Ok(seat)
}

struct CallAdmission<'a> {
    plan: &'a Plan,
    role: Role,
    principal: Option<Principal>,
    /// The client's name within its seat.
    client: &'a str,
}

// === impl CallAdmission ===

impl CallAdmission<'_> {
    fn only(&self, role: Role) -> Result<(), Refused> {
        if self.role == role {
            Ok(())
        } else {
            Err(Refused::NotPermitted(format!("a {}", self.role)))
        }
    }

    /// Checks that the worker belongs to the client.
    fn own_worker(&self, worker: &str) -> Result<(), Refused> {
        check_name("the worker's name", worker)?;
        match &self.principal {
            Some(principal) if principal.owns(worker) => Ok(()),
            _ => Err(Refused::NotPermitted(format!(
                "client {:?} about worker {worker:?}",
                self.client
            ))),
        }
    }

    /// Checks that the host of collectors is the client itself.
    fn own_host(&self, host: &str) -> Result<(), Refused> {
        self.only(Role::Collector)?;
        if host == self.client {
            return Ok(());
        }
        check_name("the host's name", host)?;
        Err(Refused::NotPermitted(format!(
            "client {:?} about host {host:?}",
            self.client
        )))
    }

    fn event(&self, event: &RoleEvent) -> Result<(), Refused> {
        match event {
            RoleEvent::Worker(event) => self.worker_event(event),
            RoleEvent::Host(event) => self.host_event(event),
            RoleEvent::Sink(event) => self.sink_event(event),
        }
    }

    fn worker_event(&self, event: &WorkerEvent) -> Result<(), Refused> {
        self.own_worker(event.worker())?;
        match event {
            WorkerEvent::Join(join) => self.join(join),
            WorkerEvent::Heartbeat { running, .. } => {
                bounded("the leases of a heartbeat", running.len(), RUNNING_MAX)
            }
            WorkerEvent::Complete(complete) => self.complete(complete),
            WorkerEvent::Retire { .. }
            | WorkerEvent::Leave { .. }
            | WorkerEvent::Fail(_)
            | WorkerEvent::Release { .. } => Ok(()),
            WorkerEvent::Lost { .. } => Err(Refused::Invalid(
                "a worker does not report its own loss".into(),
            )),
        }
    }

    fn presence(&self, event: &WorkerEvent) -> Result<(), Refused> {
        match event {
            WorkerEvent::Join(_) | WorkerEvent::Heartbeat { .. } => self.worker_event(event),
            _ => Err(Refused::Invalid(
                "presence of other events than joins and heartbeats".into(),
            )),
        }
    }

    fn host_event(&self, event: &HostEvent) -> Result<(), Refused> {
        self.own_host(event.host())?;
        match event {
            HostEvent::Join(join) => join.stages.iter().try_for_each(|stage| self.stage(*stage)),
            HostEvent::Verdicts(verdicts) => {
                let mut stages = verdicts
                    .verdicts
                    .iter()
                    .map(|verdict| verdict.partition.stage);
                stages.try_for_each(|stage| self.stage(stage))
            }
            HostEvent::Heartbeat { .. } | HostEvent::Leave { .. } => Ok(()),
        }
    }

    fn sink_event(&self, event: &SinkEvent) -> Result<(), Refused> {
        self.only(Role::Sequencer)?;
        match event {
            SinkEvent::Attach { .. } => Ok(()),
            SinkEvent::Emitted { places, .. } => {
                bounded("the sinks of an emission", places.len(), SINKS_MAX)?;
                let mut places = places.iter();
                places.try_for_each(|place| bounded("the bytes of a sink", place.len(), SINK_MAX))
            }
        }
    }

    fn join(&self, join: &WorkerJoin) -> Result<(), Refused> {
        let principal = self.principal.as_ref();
        if !principal.is_some_and(|principal| principal.may_join(&join.group)) {
            check_name("the worker group", &join.group)?;
            return Err(Refused::NotPermitted(format!(
                "client {:?} in worker group {:?}",
                self.client, join.group
            )));
        }
        check_labels(&join.labels)?;
        bounded("the slots of a worker", join.slots, SLOTS_MAX)
    }

    fn complete(&self, complete: &WorkerResult) -> Result<(), Refused> {
        let readers = self.readers_after(&complete.lease);
        for output in &complete.outputs {
            self.output(output, &readers)?;
        }
        Ok(())
    }

    /// The stages that read the outputs of the lease's stage.
    fn readers_after(&self, lease: &LeaseRef) -> BTreeSet<StageIx> {
        let stage = self.plan.stage_named(&lease.task.stage);
        let queues = stage.map_or(&[][..], |stage| &self.plan.stage(stage).outputs);
        let readers = queues
            .iter()
            .flat_map(|queue| &self.plan.queue(*queue).readers);
        readers.copied().collect()
    }

    fn output(&self, output: &Output, readers: &BTreeSet<StageIx>) -> Result<(), Refused> {
        check_payload(&output.payload)?;
        check_grouping(&output.grouping, readers)
    }

    fn request(&self, request: &Request) -> Result<(), Refused> {
        match request {
            Request::Submit(submit) => {
                self.only(Role::Source)?;
                self.submit(submit)
            }
            Request::Rewind(rewind) => {
                self.only(Role::Source)?;
                check_token("the source's name", &rewind.source)?;
                let mut queues = rewind.queues.iter();
                queues.try_for_each(|queue| self.submittable_queue(*queue))
            }
            Request::RetryDead(_)
            | Request::DropDead(_)
            | Request::Cancel(_)
            | Request::RunNow(_) => self.only(Role::Operator),
            Request::Pause { name, by, .. } => {
                self.only(Role::Operator)?;
                check_name("the name of what is paused", name)?;
                check_name("the operator's name", by)
            }
            Request::Resume { name, .. } => {
                self.only(Role::Operator)?;
                check_name("the name of what is resumed", name)
            }
        }
    }

    /// Queries that sources and producers need are open to them; operators may make all others, and a console those
    /// whose answers hold no payload.
    fn query(&self, query: &Query) -> Result<(), Refused> {
        match query {
            Query::SourceNext(source) => {
                self.only(Role::Source)?;
                check_name("the source's name", source)
            }
            Query::Status if self.role == Role::Source => Ok(()),
            Query::DeadLetter(_) => self.only(Role::Operator),
            _ if self.role == Role::Console => Ok(()),
            _ => self.only(Role::Operator),
        }
    }

    fn submit(&self, submit: &Submit) -> Result<(), Refused> {
        self.submittable_queue(submit.queue)?;
        check_name("the producer's name", &submit.producer)?;
        if submit.source_next.is_some() {
            check_token("the source's name", &submit.producer)?;
        }
        let message = &submit.message;
        check_payload(&message.payload)?;
        if let Some(needs) = &message.needs {
            check_labels(&needs.labels)?;
        }
        let readers = &self.plan.queue(submit.queue).readers;
        check_grouping(&message.grouping, &readers.iter().copied().collect())
    }

    fn stage(&self, stage: StageIx) -> Result<(), Refused> {
        let stages = self.plan.stages.len();
        if stage.0 < stages {
            return Ok(());
        }
        Err(Refused::Invalid(format!(
            "there is no stage {}: the workflow has {stages}",
            stage.0
        )))
    }

    /// Checks that messages may be submitted to the queue: no stage writes it.
    fn submittable_queue(&self, queue: QueueIx) -> Result<(), Refused> {
        let queues = self.plan.queues.len();
        let Some(plan) = self.plan.queues.get(queue.0) else {
            return Err(Refused::Invalid(format!(
                "there is no queue {}: the workflow has {queues}",
                queue.0
            )));
        };
        let mut stages = self.plan.stages.iter();
        match stages.find(|stage| stage.outputs.contains(&queue)) {
            None => Ok(()),
            Some(writer) => Err(Refused::NotPermitted(format!(
                "a source, of queue {:?}, which stage {:?} writes",
                plan.name, writer.name
            ))),
        }
    }
}

fn bounded(what: &str, count: usize, limit: usize) -> Result<(), Refused> {
    if count <= limit {
        return Ok(());
    }
    let why = format!("{what} are {count}, the limit is {limit}");
    Err(Refused::Invalid(why))
}

/// Checks a name, which is shown to people and written into records.
fn check_name(what: &str, name: &str) -> Result<(), Refused> {
    let is_shown = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_shown) {
        return Ok(());
    }
    Err(Refused::Invalid(format!(
        "{what} is not valid: expected 1 to {NAME_MAX} printable ASCII characters"
    )))
}

/// Checks a name that becomes a token of a key in the log.
fn check_token(what: &str, name: &str) -> Result<(), Refused> {
    check_name(what, name)?;
    if !name.contains('.') && Key::new(name).is_ok() {
        return Ok(());
    }
    Err(Refused::Invalid(format!("{what} cannot be part of a key")))
}

fn check_labels(labels: &BTreeSet<String>) -> Result<(), Refused> {
    bounded("the labels of a worker", labels.len(), LABELS_MAX)?;
    let mut labels = labels.iter();
    labels.try_for_each(|label| bounded("the bytes of a label", label.len(), LABELS_MAX))
}

/// Checks a payload. Groups are refused: only the core makes them.
fn check_payload(payload: &Payload) -> Result<(), Refused> {
    match payload {
        Payload::Inline { bytes, .. } => {
            bounded("the bytes of an inline payload", bytes.len(), INLINE_LIMIT)
        }
        Payload::Blob { .. } => Ok(()),
        Payload::Group { .. } => Err(Refused::Invalid("a message may not carry a group".into())),
    }
}

fn check_grouping(
    grouping: &[(StageIx, Result<Arc<str>, String>)],
    readers: &BTreeSet<StageIx>,
) -> Result<(), Refused> {
    bounded(
        "the grouping values of a message",
        grouping.len(),
        GROUPINGS_MAX,
    )?;
    grouping.iter().try_for_each(|(stage, value)| {
        if !readers.contains(stage) {
            let why = format!("stage {} does not read the message's queue", stage.0);
            return Err(Refused::Invalid(why));
        }
        match value {
            Ok(value) => bounded("the bytes of a grouping value", value.len(), GROUPING_MAX),
            Err(why) => bounded("the bytes of a reason", why.len(), REASON_MAX),
        }
    })
}
