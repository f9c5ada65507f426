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
            priority: job_priority,
            partitions,
            state: job_state,
        } => {
            let (state, failure) = state(job_state);
            Kind::Job(proto::JobEvent {
                job: job.to_string(),
                priority: priority(*job_priority).into(),
                partitions: *partitions,
                state: state.into(),
                failure,
            })
        }
        EventKind::Admitted {
            span: engine_span,
            bytes,
        } => Kind::Admitted(proto::AdmittedEvent {
            span: Some(span(engine_span)),
            bytes: *bytes,
        }),
        EventKind::Began {
            span: engine_span,
            stage: engine_stage,
            worker,
        } => Kind::Began(proto::BeganEvent {
            span: Some(span(engine_span)),
            stage: stage(*engine_stage).into(),
            worker: worker.to_string(),
        }),
        EventKind::Ended {
            span: engine_span,
            stage: engine_stage,
            worker,
            began_us,
            end: stage_end,
            bytes,
        } => Kind::Ended(proto::EndedEvent {
            span: Some(span(engine_span)),
            stage: stage(*engine_stage).into(),
            worker: worker.to_string(),
            began_us: *began_us,
            end: end(*stage_end).into(),
            bytes: *bytes,
        }),
        EventKind::Key {
            circuit,
            name,
            tier: key_tier,
            bytes,
            began_us,
        } => Kind::Key(proto::KeyEvent {
            circuit_id: circuit.to_string(),
            circuit: name.to_string(),
            tier: tier(*key_tier).into(),
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
