//! Settings of the exporter, from OpenTelemetry's environment variables.
//!
//! <https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/> and
//! <https://opentelemetry.io/docs/specs/otel/protocol/exporter/>. A variable for traces alone
//! (`OTEL_EXPORTER_OTLP_TRACES_…`) comes before that for all signals; an empty one counts as unset.

use std::path::PathBuf;
use std::time::Duration;

use proofmill_trace::Sampler;

/// Spans that the queue holds, by default: more than OpenTelemetry's 2,048, since a burst of small tasks makes
/// several spans for each.
const QUEUE_DEFAULT: usize = 8_192;

/// Maximum number of spans that the queue may be set to hold: a span takes about a kilobyte.
const QUEUE_MAX: usize = 1 << 20;

/// Maximum number of bytes of a list of headers or attributes.
const LIST_MAX: usize = 16 * 1024;

/// Maximum number of attributes of the resource.
const ATTRIBUTES_MAX: usize = 128;

/// Settings of the exporter: collector, protocol, limits and sampler.
#[derive(Clone, PartialEq)]
pub struct Settings {
    /// Address of the collector: for gRPC its origin, for HTTP the whole address.
    pub endpoint: String,
    /// Protocol.
    pub protocol: Protocol,
    /// Headers of each request, such as a token: secret.
    pub headers: Vec<(String, String)>,
    /// Authority of the collector's certificate (PEM), besides the system's.
    pub certificate: Option<PathBuf>,
    /// Time limit of a request.
    pub timeout: Duration,
    /// Attributes of the resource, `service.name` among them.
    pub resource: Vec<(String, String)>,
    /// Choice of traces.
    pub sampler: Sampler,
    /// Spans that the queue holds.
    pub queue: usize,
    /// Maximum number of spans of a request.
    pub batch: usize,
    /// Longest time that a span waits for others.
    pub delay: Duration,
}

/// Protocol of the exporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// OTLP over gRPC.
    Grpc,
    /// OTLP over HTTP, in protobuf.
    Http,
}

/// A variable that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {why}")]
pub struct SettingsError {
    variable: String,
    why: String,
}

/// The variables, read by `lookup`.
struct Variables<F> {
    lookup: F,
}

// === impl Settings ===

impl Settings {
    /// The settings in this process's environment; `None` if traces are not exported, which is the default.
    ///
    /// # Errors
    /// A variable has an invalid value.
    pub fn from_env() -> Result<Option<Self>, SettingsError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// The settings in the variables that `lookup` finds; see [`Settings::from_env`].
    ///
    /// # Errors
    /// As [`Settings::from_env`].
    pub fn from_variables(
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, SettingsError> {
        let from = Variables { lookup };
        if from.is_disabled()? {
            return Ok(None);
        }
        let protocol = from.protocol()?;
        let Some(endpoint) = from.endpoint(protocol)? else {
            return Ok(None);
        };
        let compression = from.of_traces("COMPRESSION");
        if let Some((name, kind)) = compression.filter(|(_, kind)| kind != "none") {
            return Err(error(name, format!("{kind:?} is not supported: use none")));
        }
        let certificate = from.of_traces("CERTIFICATE");
        let queue = from.number("OTEL_BSP_MAX_QUEUE_SIZE", QUEUE_DEFAULT as u64)?;
        let queue = usize::try_from(queue).unwrap_or(usize::MAX);
        let batch = from.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)?;
        let queue = queue.clamp(1, QUEUE_MAX);
        Ok(Some(Self {
            endpoint,
            protocol,
            headers: from.headers()?,
            certificate: certificate.map(|(_, path)| PathBuf::from(path)),
            timeout: from.timeout()?,
            resource: from.resource()?,
            sampler: from.sampler()?,
            queue,
            batch: usize::try_from(batch).unwrap_or(usize::MAX).clamp(1, queue),
            delay: Duration::from_millis(from.number("OTEL_BSP_SCHEDULE_DELAY", 5_000)?),
        }))
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The headers are secret, and an address may hold a token.
        f.debug_struct("Settings")
            .field("protocol", &self.protocol)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

// === impl SettingsError ===

impl SettingsError {
    pub(super) fn of_endpoint(why: String) -> Self {
        error("OTEL_EXPORTER_OTLP_ENDPOINT", why)
    }

    pub(super) fn of_headers(why: String) -> Self {
        error("OTEL_EXPORTER_OTLP_HEADERS", why)
    }

    pub(super) fn of_certificate(why: String) -> Self {
        error("OTEL_EXPORTER_OTLP_CERTIFICATE", why)
    }
}

// === impl Variables ===

impl<F: Fn(&str) -> Option<String>> Variables<F> {
    fn get(&self, name: &str) -> Option<String> {
        let value = (self.lookup)(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// A variable of the exporter, for traces alone or for all signals, with its name.
    fn of_traces(&self, name: &str) -> Option<(String, String)> {
        let names = [
            format!("OTEL_EXPORTER_OTLP_TRACES_{name}"),
            format!("OTEL_EXPORTER_OTLP_{name}"),
        ];
        names
            .into_iter()
            .find_map(|name| self.get(&name).map(|value| (name, value)))
    }

    fn is_disabled(&self) -> Result<bool, SettingsError> {
        let disabled = self.get("OTEL_SDK_DISABLED");
        if disabled.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(true);
        }
        match self.get("OTEL_TRACES_EXPORTER").as_deref() {
            Some("none") => Ok(true),
            None | Some("otlp") => Ok(false),
            Some(other) => Err(error(
                "OTEL_TRACES_EXPORTER",
                format!("{other:?} is not supported: use otlp or none"),
            )),
        }
    }

    fn protocol(&self) -> Result<Protocol, SettingsError> {
        match self.of_traces("PROTOCOL") {
            None => Ok(Protocol::Http),
            Some((name, value)) => match &*value {
                "grpc" => Ok(Protocol::Grpc),
                "http/protobuf" => Ok(Protocol::Http),
                other => Err(error(
                    name,
                    format!("{other:?} is not supported: use grpc or http/protobuf"),
                )),
            },
        }
    }

    fn endpoint(&self, protocol: Protocol) -> Result<Option<String>, SettingsError> {
        let of_traces = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        let of_all = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let (name, endpoint) = match (self.get(of_traces), self.get(of_all)) {
            (Some(endpoint), _) => (of_traces, endpoint),
            (None, None) => return Ok(None),
            (None, Some(endpoint)) => match protocol {
                Protocol::Grpc => (of_all, endpoint),
                Protocol::Http => (
                    of_all,
                    format!("{}/v1/traces", endpoint.trim_end_matches('/')),
                ),
            },
        };
        let has_scheme = ["http://", "https://"]
            .iter()
            .any(|scheme| endpoint.starts_with(scheme));
        match has_scheme {
            true => Ok(Some(endpoint)),
            // The value is not shown: it may hold a token.
            false => Err(error(name, "an address begins with http:// or https://")),
        }
    }

    fn headers(&self) -> Result<Vec<(String, String)>, SettingsError> {
        match self.of_traces("HEADERS") {
            None => Ok(Vec::new()),
            Some((name, value)) => pairs(&value).map_err(|why| error(name, why)),
        }
    }

    fn timeout(&self) -> Result<Duration, SettingsError> {
        match self.of_traces("TIMEOUT") {
            None => Ok(Duration::from_secs(10)),
            Some((name, value)) => {
                let ms = value.parse().ok().filter(|ms| (1..=600_000).contains(ms));
                let wrong = || error(name, format!("{value:?} is not 1 to 600000 milliseconds"));
                ms.map(Duration::from_millis).ok_or_else(wrong)
            }
        }
    }

    fn number(&self, name: &str, default: u64) -> Result<u64, SettingsError> {
        match self.get(name) {
            None => Ok(default),
            Some(value) => value
                .parse()
                .ok()
                .filter(|number| (1..=86_400_000).contains(number))
                .ok_or_else(|| error(name, format!("{value:?} is not a positive number"))),
        }
    }

    fn resource(&self) -> Result<Vec<(String, String)>, SettingsError> {
        let name = "OTEL_RESOURCE_ATTRIBUTES";
        let mut resource = match self.get(name) {
            None => Vec::new(),
            Some(value) => pairs(&value).map_err(|why| error(name, why))?,
        };
        if let Some(service) = self.get("OTEL_SERVICE_NAME") {
            resource.retain(|(key, _)| key != "service.name");
            resource.push(("service.name".to_owned(), service));
        }
        let mut default = |key: &str, value: &str| {
            if !resource.iter().any(|(known, _)| known == key) {
                resource.push((key.to_owned(), value.to_owned()));
            }
        };
        default("service.name", "proofmill");
        default("service.version", env!("CARGO_PKG_VERSION"));
        default("process.pid", &std::process::id().to_string());
        if resource.len() > ATTRIBUTES_MAX {
            return Err(error(name, format!("at most {ATTRIBUTES_MAX} attributes")));
        }
        Ok(resource)
    }

    fn sampler(&self) -> Result<Sampler, SettingsError> {
        let name = "OTEL_TRACES_SAMPLER";
        let Some(kind) = self.get(name) else {
            return Ok(Sampler::default());
        };
        let (follows, kind) = match kind.strip_prefix("parentbased_") {
            Some(kind) => (true, kind),
            None => (false, &*kind),
        };
        let ratio = match kind {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => self.ratio()?,
            _ => {
                let known = "always_on, always_off or traceidratio, alone or after parentbased_";
                return Err(error(
                    name,
                    format!("{kind:?} is not supported: use {known}"),
                ));
            }
        };
        let sampler = Sampler::ratio(ratio);
        let sampler = sampler.map_err(|why| error("OTEL_TRACES_SAMPLER_ARG", why.to_string()))?;
        Ok(if follows {
            sampler.following_callers()
        } else {
            sampler
        })
    }

    fn ratio(&self) -> Result<f64, SettingsError> {
        let name = "OTEL_TRACES_SAMPLER_ARG";
        match self.get(name) {
            None => Ok(1.0),
            Some(value) => {
                let wrong = |_| error(name, format!("{value:?} is not a number from 0 to 1"));
                value.parse().map_err(wrong)
            }
        }
    }
}

fn error(variable: impl Into<String>, why: impl Into<String>) -> SettingsError {
    SettingsError {
        variable: variable.into(),
        why: why.into(),
    }
}

/// The pairs of `KEY=VALUE,…`, with percent-encoded bytes decoded. Errors do not show the values.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    if text.len() > LIST_MAX {
        return Err(format!("it has over {LIST_MAX} bytes"));
    }
    let entries = text.split(',').map(str::trim);
    entries
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            let (key, value) = entry.split_once('=').ok_or("expected KEY=VALUE,…")?;
            let key = key.trim();
            if key.is_empty() {
                return Err("a key is empty".to_owned());
            }
            let value = decoded(value.trim());
            let value = value.ok_or_else(|| format!("the value of {key:?} is malformed"))?;
            Ok((key.to_owned(), value))
        })
        .collect()
}

/// A text with `%XX` decoded.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let mut decoded = [0];
        hex::decode_to_slice(digits, &mut decoded).ok()?;
        bytes.extend(decoded);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        let lookup = |name: &str| {
            let mut found = variables.iter();
            let found = found.find(|(key, _)| *key == name)?;
            Some(found.1.to_owned())
        };
        Settings::from_variables(lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_exported_unless_an_endpoint_is_named() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        for off in [
            &[][..],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[endpoint, ("OTEL_SDK_DISABLED", "true")],
            &[endpoint, ("OTEL_TRACES_EXPORTER", "none")],
            &[("OTEL_SERVICE_NAME", "x")],
        ] {
            assert_eq!(read(off), Ok(None), "{off:?}");
        }
    }

    #[test]
    fn the_variables_of_the_specification_are_read() {
        let http = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/")]);
        let http = http.expect("valid").expect("on");
        assert_eq!(http.protocol, Protocol::Http);
        assert_eq!(http.endpoint, "http://c:4318/v1/traces");
        assert_eq!((http.batch, http.delay), (512, Duration::from_secs(5)));
        assert!(
            http.resource
                .contains(&("service.name".into(), "proofmill".into()))
        );
        let grpc = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://elsewhere:1"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Bearer%20a%3Db, x=1",
            ),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "service.name=no,deployment.environment=a%2Cb",
            ),
            ("OTEL_SERVICE_NAME", "mill-7"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.5"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "100"),
        ]);
        let grpc = grpc.expect("valid").expect("on");
        assert_eq!(
            (grpc.protocol, &*grpc.endpoint),
            (Protocol::Grpc, "https://c:4317")
        );
        assert_eq!(
            grpc.headers[0],
            ("authorization".into(), "Bearer a=b".into())
        );
        assert_eq!(grpc.timeout, Duration::from_millis(2500));
        assert!(
            grpc.resource
                .contains(&("service.name".into(), "mill-7".into()))
        );
        assert!(
            grpc.resource
                .contains(&("deployment.environment".into(), "a,b".into()))
        );
        let half = Sampler::ratio(0.5).expect("a ratio").following_callers();
        assert_eq!((grpc.sampler, grpc.queue, grpc.batch), (half, 100, 100));
        assert!(!format!("{grpc:?}").contains("Bearer"));
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_variable_and_without_secrets() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c");
        for (variable, value, why) in [
            (
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "secret:4317",
                "begins with http",
            ),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "not supported"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", "not supported"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret", "KEY=VALUE"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "key=secret%zz", "malformed"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0", "milliseconds"),
            ("OTEL_TRACES_EXPORTER", "zipkin", "not supported"),
            ("OTEL_TRACES_SAMPLER", "sometimes", "not supported"),
            ("OTEL_BSP_SCHEDULE_DELAY", "-1", "positive"),
        ] {
            let refused = read(&[endpoint, (variable, value)]).expect_err(value);
            assert!(
                refused.contains(variable) && refused.contains(why),
                "{refused}"
            );
            assert!(!refused.contains("secret"), "{refused}");
        }
        let ratio = [endpoint, ("OTEL_TRACES_SAMPLER", "traceidratio")];
        let refused = read(&[ratio[0], ratio[1], ("OTEL_TRACES_SAMPLER_ARG", "2")]);
        assert!(refused.expect_err("over 1").contains("between 0 and 1"));
    }
}
