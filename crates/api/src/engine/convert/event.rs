//! Conversion of events into messages.

use proofmill_engine::{Event, EventKind, PipelineStage, Span, StageEnd};

use super::view::{priority, state, tier};
use crate::engine::proto;
use crate::engine::proto::event::Kind;

/// An event as a message.
pub(crate) fn event(event: &Event) -> proto::Event {
    let kind = match &event.kind {
        EventKind::Job {
            job,
            priority: urgency,
            partitions,
            state: now,
        } => {
            let (state, failure) = state(now);
            Kind::Job(proto::JobEvent {
                job: job.to_string(),
                priority: priority(*urgency).into(),
                partitions: *partitions,
                state: state.into(),
                failure,
            })
        }
        EventKind::Admitted { span: which, bytes } => Kind::Admitted(proto::AdmittedEvent {
            span: Some(span(which)),
            bytes: *bytes,
        }),
        EventKind::Began {
            span: which,
            stage: step,
            worker,
        } => Kind::Began(proto::BeganEvent {
            span: Some(span(which)),
            stage: stage(*step).into(),
            worker: worker.to_string(),
        }),
        EventKind::Ended {
            span: which,
            stage: step,
            worker,
            began_us,
            end: how,
            bytes,
        } => Kind::Ended(proto::EndedEvent {
            span: Some(span(which)),
            stage: stage(*step).into(),
            worker: worker.to_string(),
            began_us: *began_us,
            end: end(*how).into(),
            bytes: *bytes,
        }),
        EventKind::Key {
            circuit,
            name,
            tier: near,
            bytes,
            began_us,
        } => Kind::Key(proto::KeyEvent {
            circuit_id: circuit.to_string(),
            circuit: name.to_string(),
            tier: tier(*near).into(),
            bytes: *bytes,
            began_us: *began_us,
        }),
    };
    proto::Event {
        at_us: event.at_us,
        kind: Some(kind),
    }
}

fn span(span: &Span) -> proto::Span {
    proto::Span {
        job: span.job.to_string(),
        partition: span.partition,
        attempt: span.attempt,
        circuit: span.circuit.to_string(),
    }
}

/// A stage.
pub(super) fn stage(stage: PipelineStage) -> proto::Stage {
    match stage {
        PipelineStage::Witness => proto::Stage::Witness,
        PipelineStage::Evaluate => proto::Stage::Evaluate,
        PipelineStage::Prove => proto::Stage::Prove,
        PipelineStage::Finish => proto::Stage::Finish,
        PipelineStage::Verify => proto::Stage::Verify,
    }
}

fn end(end: StageEnd) -> proto::StageEnd {
    match end {
        StageEnd::Done => proto::StageEnd::Done,
        StageEnd::Failed => proto::StageEnd::Failed,
        StageEnd::Dropped => proto::StageEnd::Dropped,
    }
}
