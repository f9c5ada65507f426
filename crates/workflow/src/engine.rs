//! The fields of an executor that sends its tasks to proving engines.

use std::path::Path;
use std::time::Duration;

use crate::diagnostic::Code;
use crate::fields::Fields;
use crate::inner::{keyword, path, text};
use crate::model::{EngineAddress, EngineExecutor, EnginePriority};
use crate::url::HttpUrl;
use crate::value::InvalidValue;

/// Maximum number of endpoints.
const MAX_ENDPOINTS: usize = 64;

/// Maximum length of a circuit's name in bytes: the engine's own limit.
const MAX_CIRCUIT: usize = 128;

/// Default of `patience`: the longest wait of a task for an engine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn engine(fields: &mut Fields<'_, '_>, folder: &Path) -> Option<EngineExecutor> {
    let circuit = circuit(fields);
    let endpoints = endpoints(fields, folder);
    let generator = text(fields, "generator", "\"mul\"");
    let priority = match fields.has("priority") {
        true => keyword(fields, "priority", &["low", "normal", "high", "critical"]),
        false => fields.string("priority", "").and(None),
    };
    let priority = priority.map(|word| match word {
        "low" => EnginePriority::Low,
        "high" => EnginePriority::High,
        "critical" => EnginePriority::Critical,
        _ => EnginePriority::Normal,
    });
    let token = path(fields, "token", folder, "\"/run/secrets/engine-token\"");
    let ca = path(fields, "ca", folder, "\"ca.pem\"");
    let verifying_key = path(fields, "verifying_key", folder, "\"verification_key.json\"");
    let patience = fields.duration("patience").unwrap_or(PATIENCE);
    Some(EngineExecutor {
        circuit: circuit?,
        endpoints: endpoints?,
        generator,
        priority,
        token,
        ca,
        verifying_key,
        patience,
    })
}

fn circuit(fields: &mut Fields<'_, '_>) -> Option<String> {
    let example = "\"spend\"";
    if !fields.has("circuit") {
        fields.missing("circuit", example);
    }
    let circuit = text(fields, "circuit", example)?;
    let proper = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if circuit.len() <= MAX_CIRCUIT && circuit.bytes().all(proper) {
        return Some(circuit);
    }
    let help = format!(
        "write the circuit's name at the engine, 1 to {MAX_CIRCUIT} of a-z, A-Z, 0-9, `-` and \
         `_`, or its id"
    );
    fields.bad(
        Code::BadName,
        "circuit",
        "not the name of a circuit at an engine",
        help,
    );
    None
}

fn endpoints(fields: &mut Fields<'_, '_>, folder: &Path) -> Option<Vec<EngineAddress>> {
    let example = "[\"unix:.proofmill/engine/engine.sock\"]";
    if !fields.has("endpoints") {
        fields.missing("endpoints", example);
    }
    let texts = fields.one_or_more("endpoints", example)?;
    if !(1..=MAX_ENDPOINTS).contains(&texts.len()) {
        let message = format!("{} endpoints", texts.len());
        let help = format!("name 1 to {MAX_ENDPOINTS} of them");
        fields.bad(Code::OutOfRange, "endpoints", message, help);
        return None;
    }
    let mut endpoints = Vec::with_capacity(texts.len());
    for text in &texts {
        let help = "write unix:PATH, http://HOST:PORT or https://HOST:PORT, without a user";
        match EngineAddress::try_new(text, folder) {
            Err(why) => fields.bad(Code::BadUrl, "endpoints", why.to_string(), help),
            Ok(endpoint) if endpoints.contains(&endpoint) => {
                let message = format!("{endpoint} is listed twice");
                fields.bad(Code::BadUrl, "endpoints", message, "name each engine once");
            }
            Ok(endpoint) => endpoints.push(endpoint),
        }
    }
    (endpoints.len() == texts.len()).then_some(endpoints)
}

// === impl EngineAddress ===

impl EngineAddress {
    /// Reads an address; a relative socket path is resolved against `folder`.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] for a text that is none of `unix:PATH`, `http://HOST:PORT` and `https://HOST:PORT`.
    pub fn try_new(text: &str, folder: &Path) -> Result<Self, InvalidValue> {
        if let Some(socket) = text.strip_prefix("unix:") {
            return match Path::new(socket).file_name() {
                Some(_) if !socket.contains('\0') => {
                    Ok(Self::Socket(folder.join(socket).components().collect()))
                }
                _ => Err(InvalidValue("a socket without a file name".to_owned())),
            };
        }
        let url = HttpUrl::try_new(text)?;
        let port = url.authority().strip_prefix(url.host());
        if port.is_none_or(str::is_empty) || url.path() != "/" {
            let why = "an engine's address is a host and a port, and nothing else";
            return Err(InvalidValue(why.to_owned()));
        }
        Ok(Self::Tcp(url))
    }
}

impl std::fmt::Display for EngineAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(url) => url.fmt(f),
        }
    }
}

// === impl EnginePriority ===

impl EnginePriority {
    /// The name in workflow files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}
