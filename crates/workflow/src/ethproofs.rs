//! The table `[ethproofs]`: reports of blocks and their proofs to Ethproofs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::diagnostic::Code;
use crate::fields::Fields;
use crate::inner::{path, text};
use crate::model::Secret;
use crate::url::HttpUrl;
use crate::value::JsonPointer;

/// Maximum of `calls_per_minute`.
const CALLS_MAX: u32 = 6_000;

/// Default of `calls_per_minute`: the site allows 60 for each key.
const CALLS: u32 = 55;

/// Maximum of `queue`, in blocks.
const QUEUE_MAX: u32 = 1_000_000;

/// Default of `queue`: a day of slots of 12 s and more.
const QUEUE: u32 = 8_192;

/// Default of `keep`, in bytes.
const KEEP: u64 = 4 << 30;

/// Maximum of `every`.
const EVERY_MAX: u64 = 1_000_000;

/// Maximum of `cluster_id`: the site's numbers are of 32 bits.
const CLUSTER_MAX: u64 = i32::MAX as u64;

/// Maximum length of `verifier_id`, bytes.
const VERIFIER_ID_MAX: usize = 1_024;

/// The table `[ethproofs]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Ethproofs {
    /// Address of the API.
    pub url: HttpUrl,
    /// File of further certificates to trust (PEM).
    pub ca: Option<PathBuf>,
    /// The team's key.
    pub token: Secret,
    /// The cluster's number at the site.
    pub cluster_id: u64,
    /// Name of the verifying key or image at the site.
    pub verifier_id: Option<String>,
    /// Dispatcher stage with whose first lease proving begins; any stage if absent.
    pub begins_at: Option<String>,
    /// Only blocks that are multiples of this number are reported; 1 by default.
    pub every: u64,
    /// Field of the proof in the emitted message; the whole message if absent.
    pub proof: Option<JsonPointer>,
    /// Field of the number of cycles in the emitted message.
    pub cycles: Option<JsonPointer>,
    /// Time limit of one call; 35 s by default.
    pub time_limit: Duration,
    /// Most calls in a minute; 55 by default.
    pub calls_per_minute: u32,
    /// Most blocks with a report that the site has not taken; 8,192 by default.
    pub queue: u32,
    /// Most bytes of proofs that are kept until the site has them; 4 GiB by default.
    pub keep: u64,
}

// === impl Ethproofs ===

impl Ethproofs {
    pub(crate) const SECTION: &str = "ethproofs";

    /// Default address of the API, as the site's own description has it.
    pub const URL: &str = "https://ethproofs.org/api/v0";

    /// Default time limit of one call: the site ends its own work after 30 s.
    pub const TIME_LIMIT: Duration = Duration::from_secs(35);

    pub(crate) fn read(mut fields: Fields<'_, '_>, folder: &Path) -> Option<Self> {
        let url = match fields.has("url") {
            true => fields.url("url"),
            false => HttpUrl::try_new(Self::URL).ok(),
        };
        let token = token(&mut fields, folder);
        if !fields.has("cluster_id") {
            fields.missing("cluster_id", "1");
        }
        let cluster_id = fields.number("cluster_id", 0..=CLUSTER_MAX);
        let verifier_id = text(&mut fields, "verifier_id", "\"0x2f…\"");
        if verifier_id
            .as_ref()
            .is_some_and(|id| id.len() > VERIFIER_ID_MAX)
        {
            let message = format!("longer than {VERIFIER_ID_MAX} bytes");
            let help = "name the verifying key or the image as it is known at the site";
            fields.bad(Code::OutOfRange, "verifier_id", message, help);
        }
        let begins_at = fields.string("begins_at", "\"prove\"");
        let every = fields.number("every", 1..=EVERY_MAX).unwrap_or(1);
        let proof = fields.pointer("proof");
        let cycles = fields.pointer("cycles");
        let time_limit = fields.duration("time_limit").unwrap_or(Self::TIME_LIMIT);
        let calls = fields.number32("calls_per_minute", 1..=CALLS_MAX);
        let queue = fields.number32("queue", 1..=QUEUE_MAX);
        let keep = fields.size("keep").unwrap_or(KEEP);
        let ca = path(&mut fields, "ca", folder, "\"ca.pem\"");
        fields.finish();
        Some(Self {
            url: url?,
            ca,
            token: token?,
            cluster_id: cluster_id?,
            verifier_id,
            begins_at,
            every,
            proof,
            cycles,
            time_limit,
            calls_per_minute: calls.unwrap_or(CALLS),
            queue: queue.unwrap_or(QUEUE),
            keep,
        })
    }
}

/// Does not check that the key's file exists: only the machines that report should have it.
fn token(fields: &mut Fields<'_, '_>, folder: &Path) -> Option<Secret> {
    let variable = text(fields, "token_env", "\"ETHPROOFS_TOKEN\"");
    if variable.as_ref().is_some_and(|name| name.contains('=')) {
        let help = "a variable's name holds no `=`; the key itself does not belong here";
        fields.bad(Code::BadPath, "token_env", "not a variable", help);
    }
    let file = path(fields, "token_file", folder, "\"/run/secrets/ethproofs\"");
    match (fields.has("token_env"), fields.has("token_file")) {
        (true, true) => {
            let message = "`token_env` is given too";
            fields.bad(
                Code::TwoSecrets,
                "token_file",
                message,
                "keep one of the two",
            );
        }
        (false, false) => fields.missing("token_env", "\"ETHPROOFS_TOKEN\""),
        _ => {}
    }
    let variable = variable.map(Secret::Environment);
    variable.or_else(|| file.map(Secret::File))
}
