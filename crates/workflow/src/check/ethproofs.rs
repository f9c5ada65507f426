//! Rules for reports to Ethproofs: something is emitted, the named stage exists, and the key is not sent in the clear.

use super::checker::Checker;
use super::stages::file_is_there;
use crate::diagnostic::Code;
use crate::document::Field;
use crate::ethproofs::Ethproofs;
use crate::suggest::nearest;
use crate::url::HttpUrl;

pub(super) fn check(checker: &mut Checker<'_>) {
    let Some(ethproofs) = &checker.workflow.ethproofs else {
        return;
    };
    let at = Field::table(Ethproofs::SECTION);
    if checker.workflow.sequencer.is_none() {
        let message = "without a sequencer no proof is emitted, and none is reported";
        let help = "add a `[sequencer]`, or remove `[ethproofs]`";
        checker.push(Code::NothingEmitted, &at, message, help);
    }
    if let Some(stage) = &ethproofs.begins_at
        && checker.workflow.dispatcher(stage).is_none()
    {
        let stages = checker.workflow.dispatchers.iter();
        let names: Vec<&str> = stages.map(|stage| stage.name.as_str()).collect();
        let help = match nearest(stage, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use one of: {}", names.join(", ")),
        };
        let shown: String = stage.chars().take(64).collect();
        let message = format!("there is no dispatcher {shown:?}");
        checker.push(Code::UnknownStage, &at.child("begins_at"), message, help);
    }
    if !ethproofs.url.is_tls() && !is_loopback(&ethproofs.url) {
        let message = "the key would be sent unencrypted";
        let help = "write https://HOST/PATH; only a server on this machine may have http";
        checker.push(Code::BadUrl, &at.child("url"), message, help);
    }
    if let Some(ca) = &ethproofs.ca {
        file_is_there(checker, &at.child("ca"), ca);
    }
}

/// Whether the address names this machine itself.
fn is_loopback(url: &HttpUrl) -> bool {
    let host = url.host().trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
