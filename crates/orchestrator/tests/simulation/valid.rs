//! Validity of admitted calls: their values must be ones that the core may be given, whoever the caller is.

use std::sync::Arc;

use proofmill_orchestrator::conversation::{
    HostEvent, Request, RoleEvent, SinkEvent, WorkerEvent, WorkerFailure,
};
use proofmill_orchestrator::core::Event;
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::payload::{INLINE_LIMIT, NESTING_MAX, Payload};
use proofmill_orchestrator::plan::{Plan, QueueIx, StageIx};
use proofmill_orchestrator::remote::{Call, CallBody};

use crate::checks::ensure;
use crate::given::is_entrance;
use crate::plans::Scene;
use crate::world::Checked;

fn payloads(call: &Call) -> Vec<&Payload> {
    match &call.body {
        CallBody::Request {
            request: Request::Submit(submit),
            ..
        } => vec![&submit.message.payload],
        CallBody::Events { events, .. } => {
            let results = events.iter().filter_map(|event| match event {
                RoleEvent::Worker(WorkerEvent::Complete(complete)) => Some(&complete.outputs),
                _ => None,
            });
            results.flatten().map(|output| &output.payload).collect()
        }
        _ => Vec::new(),
    }
}

pub(crate) fn check_nesting(call: &Call) -> Checked {
    let deepest = payloads(call).into_iter().map(Payload::nesting).max();
    ensure!(
        deepest.unwrap_or(0) <= NESTING_MAX,
        "(o) a call was decoded with {deepest:?} nested groups"
    );
    Ok(())
}

/// Checks that an event has only values that the core may be given, whoever the caller is.
pub(crate) fn check_valid(scene: &Scene, event: &Event) -> Checked {
    match event {
        Event::Worker(event) => check_worker_event(&scene.plan, event),
        Event::Host(event) => check_host_event(&scene.plan, event),
        Event::Sink(SinkEvent::Emitted { task, .. }) => check_task(task),
        Event::Request { request, .. } => check_request(scene, request),
        _ => Err("it is not for her to say".to_owned()),
    }
}

fn check_worker_event(plan: &Plan, event: &WorkerEvent) -> Checked {
    check_name(event.worker())?;
    match event {
        WorkerEvent::Join(join) => {
            ensure!(
                join.labels.len() <= 256 && join.slots <= 1 << 16,
                "too much"
            );
        }
        WorkerEvent::Heartbeat { running, .. } => {
            let mut running = running.iter();
            running.try_for_each(|lease| check_task(&lease.task))?;
        }
        WorkerEvent::Fail(WorkerFailure { lease, .. }) | WorkerEvent::Release { lease, .. } => {
            check_task(&lease.task)?;
        }
        WorkerEvent::Complete(complete) => {
            check_task(&complete.lease.task)?;
            let stage = plan.stage_named(&complete.lease.task.stage);
            let queues = stage.map_or(&[][..], |stage| &plan.stage(stage).outputs);
            for output in &complete.outputs {
                check_message(plan, queues, &output.payload, &output.grouping)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn check_host_event(plan: &Plan, event: &HostEvent) -> Checked {
    check_name(event.host())?;
    match event {
        HostEvent::Join(join) => {
            let mut stages = join.stages.iter();
            stages.try_for_each(|stage| check_stage(plan, *stage))
        }
        HostEvent::Verdicts(said) => {
            let mut verdicts = said.verdicts.iter();
            verdicts.try_for_each(|verdict| check_stage(plan, verdict.partition.stage))
        }
        _ => Ok(()),
    }
}

fn check_request(scene: &Scene, request: &Request) -> Checked {
    let plan = &scene.plan;
    match request {
        Request::Submit(submit) => {
            check_name(&submit.producer)?;
            check_entrance(scene, submit.queue)?;
            ensure!(
                submit.source_next.is_none() || !submit.producer.contains(['.', ' ', '*']),
                "the producer is no token"
            );
            ensure!(
                Part::new(submit.message.part.as_str()).is_ok(),
                "the part is none"
            );
            let message = &submit.message;
            check_message(plan, &[submit.queue], &message.payload, &message.grouping)
        }
        Request::Rewind(rewind) => {
            check_name(&rewind.source)?;
            let mut queues = rewind.queues.iter();
            queues.try_for_each(|queue| check_entrance(scene, *queue))
        }
        _ => Err("it is not for her to say".to_owned()),
    }
}

fn check_name(name: &str) -> Checked {
    ensure!((1..=250).contains(&name.len()), "a name of {}", name.len());
    Ok(())
}

fn check_task(id: &TaskId) -> Checked {
    ensure!(Part::new(id.part.as_str()).is_ok(), "a part that is none");
    Ok(())
}

fn check_stage(plan: &Plan, stage: StageIx) -> Checked {
    ensure!(stage.0 < plan.stages.len(), "there is no {stage:?}");
    Ok(())
}

fn check_entrance(scene: &Scene, queue: QueueIx) -> Checked {
    let named = scene.plan.queues.get(queue.0);
    let is_one = named.is_some_and(|queue| is_entrance(scene, &queue.name));
    ensure!(is_one, "{queue:?} is no entrance");
    Ok(())
}

fn check_message(
    plan: &Plan,
    queues: &[QueueIx],
    payload: &Payload,
    grouping: &[(StageIx, Result<Arc<str>, String>)],
) -> Checked {
    match payload {
        Payload::Group { .. } => return Err("a group".to_owned()),
        Payload::Inline { bytes, .. } => {
            ensure!(bytes.len() <= INLINE_LIMIT, "{} bytes", bytes.len());
        }
        Payload::Blob { .. } => {}
    }
    for (reader, value) in grouping {
        let mut readers = queues.iter().flat_map(|queue| &plan.queue(*queue).readers);
        ensure!(
            readers.any(|known| known == reader),
            "{reader:?} does not read it"
        );
        let length = value.as_ref().map_or_else(String::len, |value| value.len());
        ensure!(length <= 8 * 1024, "a grouping value of {length} bytes");
    }
    Ok(())
}
