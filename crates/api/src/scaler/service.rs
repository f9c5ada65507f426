//! The calls of an external scaler.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use proofmill_orchestrator::core::PoolStatus;
use tonic::{Code, Request, Response, Status};

use super::pools::PoolReader;
use super::proto::external_scaler_server::ExternalScaler;
use super::proto::{
    GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, MetricSpec,
    MetricValue, ScaledObjectRef,
};

/// The only metric: the wanted number of workers. Each replica stands for one, so that there are as many replicas as
/// are wanted.
const METRIC: &str = "workers_wanted";

/// Time between two looks for a stream.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The gRPC service.
pub(super) struct ScalerCalls {
    reader: Arc<PoolReader>,
}

/// A stream of [`ScalerCalls::stream_is_active`].
struct ActivityStream {
    reader: Arc<PoolReader>,
    metadata: HashMap<String, String>,
    /// The last value that was sent.
    last: Option<bool>,
    ended: bool,
}

// === impl ScalerCalls ===

impl ScalerCalls {
    pub(super) fn new(reader: PoolReader) -> Self {
        Self {
            reader: Arc::new(reader),
        }
    }

    async fn wanted(&self, object: &ScaledObjectRef) -> Result<u64, Status> {
        wanted(&self.reader, &object.scaler_metadata).await
    }
}

async fn wanted(reader: &PoolReader, metadata: &HashMap<String, String>) -> Result<u64, Status> {
    let pools = reader.read().await?;
    pools.find(metadata).map(|pool: &PoolStatus| pool.wanted)
}

#[tonic::async_trait]
impl ExternalScaler for ScalerCalls {
    async fn is_active(
        &self,
        request: Request<ScaledObjectRef>,
    ) -> Result<Response<IsActiveResponse>, Status> {
        let result = self.wanted(request.get_ref()).await? > 0;
        Ok(Response::new(IsActiveResponse { result }))
    }

    type StreamIsActiveStream =
        Pin<Box<dyn Stream<Item = Result<IsActiveResponse, Status>> + Send>>;

    async fn stream_is_active(
        &self,
        request: Request<ScaledObjectRef>,
    ) -> Result<Response<Self::StreamIsActiveStream>, Status> {
        let stream = ActivityStream {
            reader: self.reader.clone(),
            metadata: request.into_inner().scaler_metadata,
            last: None,
            ended: false,
        };
        let changes = stream::unfold(stream, |mut stream| async move {
            let next = stream.next().await?;
            Some((next, stream))
        });
        Ok(Response::new(Box::pin(changes)))
    }

    async fn get_metric_spec(
        &self,
        request: Request<ScaledObjectRef>,
    ) -> Result<Response<GetMetricSpecResponse>, Status> {
        // A trigger with wrong metadata is reported where KEDA shows it first.
        self.wanted(request.get_ref()).await?;
        let spec = MetricSpec {
            metric_name: METRIC.to_owned(),
            target_size: 1,
            target_size_float: 1.0,
        };
        Ok(Response::new(GetMetricSpecResponse {
            metric_specs: vec![spec],
        }))
    }

    async fn get_metrics(
        &self,
        request: Request<GetMetricsRequest>,
    ) -> Result<Response<GetMetricsResponse>, Status> {
        let request = request.into_inner();
        if request.metric_name != METRIC {
            return Err(Status::invalid_argument(format!(
                "there is one metric, {METRIC:?}"
            )));
        }
        let object = request.scaled_object_ref.unwrap_or_default();
        let wanted = self.wanted(&object).await?;
        let value = MetricValue {
            metric_name: METRIC.to_owned(),
            metric_value: i64::try_from(wanted).unwrap_or(i64::MAX),
            metric_value_float: wanted as f64,
        };
        Ok(Response::new(GetMetricsResponse {
            metric_values: vec![value],
        }))
    }
}

// === impl ActivityStream ===

impl ActivityStream {
    /// The next change. A mill that does not answer changes nothing: it may be between two leaders.
    async fn next(&mut self) -> Option<Result<IsActiveResponse, Status>> {
        if self.ended {
            return None;
        }
        loop {
            if self.last.is_some() {
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
            match wanted(&self.reader, &self.metadata).await {
                Ok(wanted) => {
                    let result = wanted > 0;
                    if self.last.replace(result) != Some(result) {
                        return Some(Ok(IsActiveResponse { result }));
                    }
                }
                Err(status) if status.code() == Code::Unavailable && self.last.is_some() => {}
                Err(status) => {
                    self.ended = true;
                    return Some(Err(status));
                }
            }
        }
    }
}
