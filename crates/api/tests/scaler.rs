//! The external scaler, called as KEDA calls it: with a generated client, over gRPC on a real port.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proofmill_api::scaler::proto::external_scaler_client::ExternalScalerClient;
use proofmill_api::scaler::proto::{GetMetricsRequest, ScaledObjectRef};
use proofmill_api::scaler::{ScaledMill, Scaler, ScalerOptions};
use proofmill_api::{
    Cancellation, Client, ConnectionLimits, Operations, PortError, Submission, TlsFiles, control,
};
use proofmill_nats_server::Authority;
use proofmill_orchestrator::mill::{Mill, Options, Registry};
use proofmill_workflow::Workflow;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_stream::StreamExt;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Status};

/// Two pools of one worker group, and one of another. No worker ever joins, so that messages stay.
const WORKFLOW: &str = r#"
name = "scaled"
[[source]]
name = "outside"
kind = "submit"
output = "in"
[[dispatcher]]
name = "prove"
group = "gpus"
input = "in"
output = "proofs"
executor = { kind = "native", prover = "none" }
[[dispatcher]]
name = "wrap"
input = "proofs"
output = "wrapped"
executor = { kind = "native", prover = "none" }
[sequencer]
input = "wrapped"
[[scaling]]
name = "spot"
group = "gpus"
labels = ["spot"]
estimate = "1m"
within = "1m"
hold = "1s"
max = 20
[[scaling]]
name = "rest"
group = "gpus"
labels = ["rest"]
"#;

/// A limit that is reached only if something is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

struct Site {
    operations: Operations,
    url: String,
    /// The scaler stops when it is dropped.
    _stop: oneshot::Sender<()>,
    _mill: Mill,
    _folder: tempfile::TempDir,
}

// === impl Site ===

impl Site {
    async fn open(change: impl FnOnce(&mut ScalerOptions, &Path)) -> Self {
        Self::open_through(change, false).await
    }

    /// A site whose scaler asks the mill through its control socket, if so asked.
    async fn open_through(
        change: impl FnOnce(&mut ScalerOptions, &Path),
        through_socket: bool,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let workflow = Workflow::parse(WORKFLOW, Path::new("scaled.toml")).expect("a workflow");
        let options = Options::in_directory(folder.path());
        let mill = Mill::open(&workflow, Registry::default(), options).await;
        let mill = mill.expect("open");
        let handle = mill.handle();
        let operations = Operations::new(handle.operator(), handle.source(), mill.blobs().clone());
        let scaled = match through_socket {
            false => ScaledMill::Here(operations.clone()),
            true => {
                let (state, served) = (folder.path().to_owned(), operations.clone());
                tokio::spawn(async move { control::serve(&state, served).await });
                ScaledMill::Elsewhere(client(folder.path()).await)
            }
        };
        let mut options = options_on_loopback();
        change(&mut options, folder.path());
        let scaler = Scaler::open(&options).await.expect("it listens");
        let url = scaler.url();
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(scaler.serve(scaled, async {
            // The sender is gone when the test ends.
            let _ = stopped.await;
        }));
        Self {
            operations,
            url,
            _stop: stop,
            _mill: mill,
            _folder: folder,
        }
    }

    async fn keda(&self) -> ExternalScalerClient<Channel> {
        let endpoint = Endpoint::from_shared(self.url.clone()).expect("an address");
        ExternalScalerClient::new(endpoint.connect().await.expect("it listens"))
    }

    async fn submit(&self, block: u64) {
        let submission = Submission {
            queue: "in".to_owned(),
            first: block,
            last: block,
            part: None,
            payload: RawValue::from_string("{}".to_owned()).expect("JSON"),
            requires: None,
            traceparent: None,
            tracestate: None,
        };
        self.operations.submit(submission).await.expect("taken");
    }
}

async fn client(state: &Path) -> Client {
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(client) = Client::connect(state).await.expect("our own socket") {
            return client;
        }
        assert!(tokio::time::Instant::now() < until, "no socket");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn options_on_loopback() -> ScalerOptions {
    ScalerOptions {
        address: ([127, 0, 0, 1], 0).into(),
        tls: None,
        client_ca: None,
        connections: ConnectionLimits::default(),
    }
}

/// A request as KEDA sends it: with all of the trigger's metadata, its own keys included.
fn object(metadata: &[(&str, &str)]) -> ScaledObjectRef {
    let own = [("scalerAddress", "proofmill:9466")];
    let metadata = own.iter().chain(metadata);
    ScaledObjectRef {
        name: "provers".to_owned(),
        namespace: "chain".to_owned(),
        scaler_metadata: metadata
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    }
}

fn metrics(of: &ScaledObjectRef, name: &str) -> GetMetricsRequest {
    GetMetricsRequest {
        scaled_object_ref: Some(of.clone()),
        metric_name: name.to_owned(),
    }
}

async fn value(keda: &mut ExternalScalerClient<Channel>, of: &ScaledObjectRef) -> f64 {
    let spec = keda.get_metric_spec(of.clone()).await.expect("a spec");
    let [spec] = &spec.into_inner().metric_specs[..] else {
        panic!("one metric");
    };
    assert_eq!((spec.target_size, spec.target_size_float), (1, 1.0));
    let answer = keda.get_metrics(metrics(of, &spec.metric_name)).await;
    let [value] = &answer.expect("a value").into_inner().metric_values[..] else {
        panic!("one value");
    };
    assert_eq!(value.metric_value as f64, value.metric_value_float);
    value.metric_value_float
}

/// Waits until the value is as expected: the mill computes it every two seconds.
async fn until(
    keda: &mut ExternalScalerClient<Channel>,
    of: &ScaledObjectRef,
    is: impl Fn(f64) -> bool,
) {
    let mut last = f64::NAN;
    let reached = async {
        loop {
            last = value(keda, of).await;
            if is(last) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let reached = tokio::time::timeout(PATIENCE, reached).await;
    assert!(reached.is_ok(), "{last} for {:?}", of.scaler_metadata);
}

#[tokio::test]
async fn keda_gets_the_wanted_number_and_hears_of_activity() {
    for through_socket in [false, true] {
        let site = Site::open_through(|_, _| {}, through_socket).await;
        let mut keda = site.keda().await;
        let spot = object(&[("pool", "spot"), ("workflow", "scaled")]);
        let active = keda.is_active(spot.clone()).await.expect("an answer");
        assert!(!active.into_inner().result);
        assert_eq!(value(&mut keda, &spot).await, 0.0);

        let stream = keda.stream_is_active(spot.clone()).await;
        let mut stream = stream.expect("a stream").into_inner();
        let mut heard = async || {
            let next = tokio::time::timeout(PATIENCE, stream.next()).await;
            let next = next.expect("in time").expect("not ended");
            next.expect("no error").result
        };
        assert!(!heard().await, "the state at the beginning");
        for block in 0..30 {
            site.submit(block).await;
        }
        assert!(heard().await, "there is work");
        let active = keda.is_active(spot.clone()).await.expect("an answer");
        assert!(active.into_inner().result);
        // Thirty runs of a minute within a minute: all at once, and 20 are the ceiling.
        until(&mut keda, &spot, |wanted| wanted == 20.0).await;
        // What will come of them at the next stage counts for its pool, which the group alone names.
        let wrap = object(&[("group", "wrap")]);
        until(&mut keda, &wrap, |wanted| wanted >= 1.0).await;
        assert_eq!(value(&mut keda, &object(&[("pool", "rest")])).await, 0.0);

        let cancelled = site.operations.cancel(&Cancellation::All).await;
        cancelled.expect("cancelled");
        assert!(!heard().await, "no work is left");
    }
}

#[tokio::test]
async fn unknown_pools_and_metrics_are_refused_with_the_known_ones() {
    let site = Site::open(|_, _| {}).await;
    let mut keda = site.keda().await;
    let refused = |status: Status, code: Code, why: &str| {
        assert_eq!(status.code(), code, "{status}");
        assert!(status.message().contains(why), "no {why:?} in {status}");
    };
    let known = "there are spot, rest, wrap";
    for metadata in [
        &[("pool", "nowhere")][..],
        &[("pool", "spot"), ("group", "wrap")],
    ] {
        let object = object(metadata);
        let status = keda.is_active(object.clone()).await.expect_err("refused");
        refused(status, Code::NotFound, known);
        let status = keda
            .get_metric_spec(object.clone())
            .await
            .expect_err("refused");
        refused(status, Code::NotFound, known);
        let asked = keda.get_metrics(metrics(&object, "workers_wanted")).await;
        refused(asked.expect_err("refused"), Code::NotFound, known);
        let stream = keda.stream_is_active(object).await.expect("a stream");
        let first = stream.into_inner().next().await.expect("an answer");
        refused(first.expect_err("refused"), Code::NotFound, known);
    }
    let other = object(&[("pool", "spot"), ("workflow", "other")]);
    let status = keda.is_active(other).await.expect_err("refused");
    refused(
        status,
        Code::NotFound,
        "there is no workflow \"other\" here",
    );
    for ambiguous in [object(&[]), object(&[("group", "gpus")])] {
        let status = keda.is_active(ambiguous).await.expect_err("refused");
        refused(status, Code::InvalidArgument, "name one with `pool`");
    }
    let spot = object(&[("pool", "spot")]);
    let asked = keda.get_metrics(metrics(&spot, "cpu")).await;
    refused(
        asked.expect_err("refused"),
        Code::InvalidArgument,
        "workers_wanted",
    );
}

#[tokio::test]
async fn hostile_metadata_is_bounded() {
    let site = Site::open(|_, _| {}).await;
    let mut keda = site.keda().await;
    let long = "x".repeat(40_000);
    let status = keda.is_active(object(&[("pool", &long)])).await;
    let status = status.expect_err("refused");
    assert_eq!(status.code(), Code::NotFound);
    assert!(
        status.message().len() < 500,
        "{} bytes",
        status.message().len()
    );
    let too_long = "x".repeat(70_000);
    let status = keda.is_active(object(&[("pool", &too_long)])).await;
    assert_eq!(status.expect_err("refused").code(), Code::InvalidArgument);
    let many: HashMap<String, String> = (0..3_000)
        .map(|no| (no.to_string(), String::new()))
        .collect();
    let many = ScaledObjectRef {
        scaler_metadata: many,
        ..object(&[])
    };
    let status = keda.is_active(many).await.expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument);
    let spot = keda.is_active(object(&[("pool", "spot")])).await;
    assert!(!spot.expect("it still answers").into_inner().result);
}

#[tokio::test]
async fn beyond_loopback_certificates_are_required() {
    let exposed = ScalerOptions {
        address: ([0, 0, 0, 0], 0).into(),
        ..options_on_loopback()
    };
    let refused = Scaler::open(&exposed).await.err();
    assert!(matches!(refused, Some(PortError::Uncertified(_))));
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(folder.path(), "authority");
    let server = authority.sign("server", "localhost");
    let tls = TlsFiles {
        certificate: server.certificate,
        key: server.key,
    };
    let without_clients = ScalerOptions {
        tls: Some(tls.clone()),
        ..exposed.clone()
    };
    let refused = Scaler::open(&without_clients).await.err();
    assert!(matches!(refused, Some(PortError::Uncertified(_))));
    let complete = ScalerOptions {
        client_ca: Some(authority.certificate.clone()),
        ..without_clients
    };
    assert!(Scaler::open(&complete).await.is_ok());
    let none_in_it = ScalerOptions {
        client_ca: Some(PathBuf::from(&tls.key)),
        ..complete
    };
    let refused = Scaler::open(&none_in_it).await.err();
    assert!(refused.is_some_and(|it| it.to_string().contains("no certificate in it")));
}

#[tokio::test]
async fn a_caller_needs_a_certificate_of_the_authority() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(folder.path(), "authority");
    let other = Authority::new(folder.path(), "other");
    let server = authority.sign("server", "localhost");
    let site = Site::open(|options, _| {
        options.tls = Some(TlsFiles {
            certificate: server.certificate.clone(),
            key: server.key.clone(),
        });
        options.client_ca = Some(authority.certificate.clone());
    })
    .await;
    let read = |path: &Path| std::fs::read(path).expect("our own file");
    let call = async |identity: Option<proofmill_nats_server::Certificate>| {
        let mut tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(read(&authority.certificate)))
            .domain_name("localhost");
        if let Some(identity) = identity {
            let identity = Identity::from_pem(read(&identity.certificate), read(&identity.key));
            tls = tls.identity(identity);
        }
        let endpoint = Endpoint::from_shared(site.url.clone()).expect("an address");
        let channel = endpoint
            .tls_config(tls)
            .expect("certificates")
            .connect()
            .await;
        let channel = channel.map_err(|error| error.to_string())?;
        let mut keda = ExternalScalerClient::new(channel);
        let answer = keda.is_active(object(&[("pool", "spot")])).await;
        answer
            .map(|it| it.into_inner().result)
            .map_err(|error| error.to_string())
    };
    assert_eq!(call(Some(authority.sign("keda", "keda"))).await, Ok(false));
    assert!(call(None).await.is_err(), "a caller without a certificate");
    assert!(
        call(Some(other.sign("liar", "keda"))).await.is_err(),
        "of another authority"
    );
}
