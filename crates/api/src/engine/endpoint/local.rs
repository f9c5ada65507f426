//! An engine in this process.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use proofmill_engine::{Error, Handle};
use proofmill_orchestrator::executor::engine::{End, Endpoint, EndpointError, Job, Look, Ticket};
use tonic::Status;

use super::convert::{end, forgotten, look, refused, submission};
use crate::engine::{convert, refusal, service};
use crate::grpc::retry_after;

/// What errors call the engine.
const NAME: &str = "in-process";

/// An engine in this process, as an executor sees it.
pub fn in_process_endpoint(handle: Handle) -> Arc<dyn Endpoint> {
    Arc::new(Local(handle))
}

struct Local(Handle);

impl Endpoint for Local {
    fn address(&self) -> &str {
        NAME
    }

    fn look<'a>(&'a self, circuit: &'a str) -> BoxFuture<'a, Result<Look, EndpointError>> {
        Box::pin(async move {
            let listed = service::list_circuits(&self.0).await;
            Ok(look(circuit, &listed.map_err(declined)?))
        })
    }

    fn submit<'a>(
        &'a self,
        request: &'a str,
        job: &'a Job,
    ) -> BoxFuture<'a, Result<Ticket, EndpointError>> {
        Box::pin(async move {
            let planned = convert::submission(submission(request, job), None);
            let submission = planned.and_then(|planned| planned.complete([]));
            let submitted = self.0.submit(submission.map_err(declined)?).await;
            let submitted = submitted.map_err(unanswered)?;
            Ok(Ticket {
                job: submitted.job.to_string(),
                existing: submitted.existing,
            })
        })
    }

    fn result<'a>(
        &'a self,
        id: &'a str,
        job: &'a Job,
    ) -> BoxFuture<'a, Result<End, EndpointError>> {
        Box::pin(async move {
            let id = convert::job_id(id).map_err(declined)?;
            let result = self.0.await_result(id).await;
            let result = result.map_err(|error| forgotten(unanswered(error)))?;
            let result = convert::result(&result).map_err(EndpointError::Unavailable)?;
            end(result, job, None).await
        })
    }

    fn cancel<'a>(
        &'a self,
        job: &'a str,
        waiting: u32,
    ) -> BoxFuture<'a, Result<(), EndpointError>> {
        Box::pin(async move {
            let job = convert::job_id(job).map_err(declined)?;
            let cancelled = self.0.cancel_unless_wanted(job, waiting as usize).await;
            cancelled.map(drop).map_err(unanswered)
        })
    }
}

/// As it would be over gRPC.
fn unanswered(error: Error) -> EndpointError {
    declined(refusal::of(error))
}

fn declined(status: Status) -> EndpointError {
    let retry_after = retry_after(&status);
    refused(status.code(), status.message().to_owned(), retry_after)
}
