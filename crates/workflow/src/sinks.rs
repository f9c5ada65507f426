//! The tables `[[sequencer.sink]]`: destinations of emitted payloads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::decode::backoff;
use crate::diagnostic::Code;
use crate::fields::Fields;
use crate::inner::{keyword, path, program_fields, text};
use crate::model::{Backoff, ExecInput, Secret, Sink, SinkKind};
use crate::settlement::settlement;

/// Maximum number of sinks of a sequencer.
pub(crate) const MAX_SINKS: usize = 64;

/// Default time limit of one webhook request.
const WEBHOOK_LIMIT: Duration = Duration::from_secs(30);

/// Maximum length of a subject in bytes: the NATS server's own limit for names.
const MAX_SUBJECT: usize = 255;

pub(crate) fn sink(mut fields: Fields<'_, '_>, inherited: &Backoff, folder: &Path) -> Option<Sink> {
    let backoff = backoff(&mut fields, inherited);
    let kinds = &["webhook", "jetstream", "ethereum", "exec"];
    let kind = match keyword(&mut fields, "kind", kinds)? {
        "webhook" => webhook(&mut fields, folder),
        "jetstream" => jetstream(&mut fields, folder),
        "ethereum" => {
            settlement(&mut fields, folder).map(|sink| SinkKind::Ethereum(Box::new(sink)))
        }
        _ => exec(&mut fields, folder),
    };
    fields.finish();
    Some(Sink {
        kind: kind?,
        backoff,
    })
}

fn webhook(fields: &mut Fields<'_, '_>, folder: &Path) -> Option<SinkKind> {
    if !fields.has("url") {
        fields.missing("url", "\"https://example.org/proofs\"");
    }
    let url = fields.url("url");
    let secret = secret(
        fields,
        ["secret_env", "secret_file"],
        WEBHOOK_SECRET,
        folder,
    );
    let ca = path(fields, "ca", folder, "\"ca.pem\"");
    let time_limit = fields.duration("time_limit").unwrap_or(WEBHOOK_LIMIT);
    Some(SinkKind::Webhook {
        url: url?,
        secret: secret?,
        ca,
        time_limit,
    })
}

/// Example of a variable with the secret of a webhook.
const WEBHOOK_SECRET: &str = "\"WEBHOOK_SECRET\"";

/// Reads the place of a secret: the field `keys[0]` names a variable, or the field `keys[1]` a file. Does not check that the
/// file exists: only the sequencer's machine should have it.
pub(crate) fn secret(
    fields: &mut Fields<'_, '_>,
    keys: [&'static str; 2],
    example: &str,
    folder: &Path,
) -> Option<Secret> {
    let [variable_key, file_key] = keys;
    let variable = text(fields, variable_key, example);
    if variable.as_ref().is_some_and(|name| name.contains('=')) {
        let help = "a variable's name holds no `=`; the secret itself does not belong here";
        fields.bad(Code::BadPath, variable_key, "not a variable", help);
    }
    let file = path(fields, file_key, folder, "\"/run/secrets/key\"");
    match (fields.has(variable_key), fields.has(file_key)) {
        (true, true) => {
            let message = format!("`{variable_key}` is given too");
            let help = "keep one of the two";
            fields.bad(Code::TwoSecrets, file_key, message, help);
        }
        (false, false) => fields.missing(variable_key, example),
        _ => {}
    }
    let variable = variable.map(Secret::Environment);
    variable.or_else(|| file.map(Secret::File))
}

fn jetstream(fields: &mut Fields<'_, '_>, folder: &Path) -> Option<SinkKind> {
    let url = text(fields, "url", "\"nats://127.0.0.1:4222\"");
    if url.as_deref().is_some_and(|url| !is_nats(url)) {
        let message = "not addresses of a NATS server, or they contain a user";
        let help = "write nats://HOST:PORT or tls://HOST:PORT, several with commas between them; \
                    credentials belong in the file that `creds` names";
        fields.bad(Code::BadUrl, "url", message, help);
    }
    if !fields.has("subject") {
        fields.missing("subject", "\"proofs.verified\"");
    }
    let subject = text(fields, "subject", "\"proofs.verified\"");
    if subject.as_deref().is_some_and(|text| !is_subject(text)) {
        let message = "not a subject that can be published to";
        let help = "write tokens with dots between them, without `*`, `>` and spaces, as in \
                    \"proofs.verified\"";
        fields.bad(Code::BadSubject, "subject", message, help);
    }
    let stream = text(fields, "stream", "\"PROOFS\"");
    let is_stream = |name: &String| is_subject(name) && !name.contains(['.', '/', '\\']);
    if stream.as_ref().is_some_and(|name| !is_stream(name)) {
        let help = "write the name of a stream, as in \"PROOFS\"";
        fields.bad(Code::BadName, "stream", "not the name of a stream", help);
    }
    let creds = path(fields, "creds", folder, "\"/run/secrets/proofs.creds\"");
    let ca = path(fields, "ca", folder, "\"ca.pem\"");
    for key in ["creds", "ca"] {
        if url.is_none() && fields.has(key) {
            let message = "without `url` the cluster's own connection is used";
            fields.bad(Code::UnknownField, key, message, "add `url`, or remove it");
        }
    }
    Some(SinkKind::JetStream {
        url,
        subject: subject?,
        stream,
        creds,
        ca,
    })
}

/// Addresses of NATS servers, without a user.
fn is_nats(text: &str) -> bool {
    text.split(',').all(|server| {
        let server = server.trim();
        let host = server
            .strip_prefix("nats://")
            .or_else(|| server.strip_prefix("tls://"));
        let fine = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'@' | b'/');
        host.is_some_and(|host| !host.is_empty() && host.bytes().all(fine))
    })
}

/// A subject without wildcards.
fn is_subject(text: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'>');
    let token = |token: &str| !token.is_empty() && token.bytes().all(fine);
    text.len() <= MAX_SUBJECT && !text.starts_with('$') && text.split('.').all(token)
}

fn exec(fields: &mut Fields<'_, '_>, folder: &Path) -> Option<SinkKind> {
    let common = program_fields(fields, folder, "\"./publish.sh\"");
    let input = match fields.has("input") {
        true => keyword(fields, "input", &["stdin", "file"]),
        false => fields.string("input", "").and(None),
    };
    let input = match input {
        Some("file") => ExecInput::File,
        _ => ExecInput::Stdin,
    };
    let time_limit = fields.duration("time_limit");
    Some(SinkKind::Exec {
        program: common.program?,
        args: common.args,
        env: common.env,
        inherit_env: common.inherit_env,
        sandbox: common.sandbox,
        input,
        time_limit,
    })
}

// === impl SinkKind ===

impl SinkKind {
    /// The file of CA certificates, if the sink's table names one.
    pub(crate) fn ca(&self) -> Option<&PathBuf> {
        match self {
            Self::Webhook { ca, .. } | Self::JetStream { ca, .. } => ca.as_ref(),
            Self::Ethereum(sink) => sink.ca.as_ref(),
            Self::Exec { .. } => None,
        }
    }

    /// The file of a contract's ABI, if the sink's table names one.
    pub(crate) fn abi(&self) -> Option<&PathBuf> {
        match self {
            Self::Ethereum(sink) => sink.functions.as_ref().map(|functions| &functions.abi),
            _ => None,
        }
    }
}
