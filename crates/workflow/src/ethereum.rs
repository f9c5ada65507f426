//! The fields of a source that follows an Ethereum chain.

use std::time::Duration;

use crate::diagnostic::Code;
use crate::fields::Fields;
use crate::model::{ChainStart, SourceKind};
use crate::template::Template;
use crate::url::HttpUrl;

/// Maximum number of endpoints.
const MAX_ENDPOINTS: usize = 16;

/// Maximum of `confirmations` and `reorg_depth`, in blocks.
const MAX_DEPTH: u32 = 4096;

/// Default of `poll`: time between two requests for the head.
const POLL: Duration = Duration::from_secs(2);

/// Default of `reorg_depth`, in blocks: two epochs of the main chain.
const REORG_DEPTH: u32 = 64;

pub(crate) fn ethereum(fields: &mut Fields<'_, '_>) -> Option<SourceKind> {
    let rpc = endpoints(fields);
    let from = match fields.has("from") {
        true => start(fields),
        false => fields
            .string("from", "")
            .map_or(Some(ChainStart::Behind(0)), |_| None),
    };
    let most = u64::from(MAX_DEPTH);
    let confirmations = fields.number("confirmations", 0..=most).unwrap_or(0);
    let poll = fields.duration("poll").unwrap_or(POLL);
    let full = fields.boolean("full").unwrap_or(false);
    let payload = fields.any_json("payload").map(Template::new);
    if full && payload.is_some() {
        let message = "`full` extends the default payload, which `payload` replaces";
        let help = "remove `full`, or remove `payload` to have the whole block as `block`";
        fields.bad(Code::PayloadWithFull, "payload", message.to_owned(), help);
    }
    let reorg_depth = fields.number32("reorg_depth", 1..=MAX_DEPTH);
    Some(SourceKind::Ethereum {
        rpc: rpc?,
        from: from?,
        confirmations,
        poll,
        full,
        payload,
        reorg_depth: reorg_depth.unwrap_or(REORG_DEPTH),
    })
}

/// Reads `rpc`: one endpoint or several of one chain.
pub(crate) fn endpoints(fields: &mut Fields<'_, '_>) -> Option<Vec<HttpUrl>> {
    let example = "\"http://127.0.0.1:8545\"";
    if !fields.has("rpc") {
        fields.missing("rpc", example);
    }
    let rpc = fields.one_or_more("rpc", example).unwrap_or_default();
    if fields.has("rpc") && !(1..=MAX_ENDPOINTS).contains(&rpc.len()) {
        let message = format!("{} endpoints", rpc.len());
        let help = format!("name 1 to {MAX_ENDPOINTS} of them");
        fields.bad(Code::OutOfRange, "rpc", message, help);
    }
    let mut urls = Vec::with_capacity(rpc.len());
    for url in &rpc {
        match HttpUrl::try_new(url) {
            Ok(url) => urls.push(url),
            Err(why) => {
                let help = "write http://HOST:PORT/PATH, or https, without a user";
                fields.bad(Code::BadUrl, "rpc", why.to_string(), help);
            }
        }
    }
    let is_complete = urls.len() == rpc.len() && !urls.is_empty();
    is_complete.then_some(urls)
}

/// Reads `from`: a block, `"head"`, or the number of blocks behind the head as a negative number.
fn start(fields: &mut Fields<'_, '_>) -> Option<ChainStart> {
    if fields.is_string("from") {
        let text = fields.string("from", "\"head\"")?;
        if text == "head" {
            return Some(ChainStart::Behind(0));
        }
        let help = "write a block, \"head\", or a negative number of blocks behind it";
        let shown: String = text.chars().take(64).collect();
        fields.bad(
            Code::UnknownKind,
            "from",
            format!("there is no {shown:?}"),
            help,
        );
        return None;
    }
    let number = fields.integer("from")?;
    Some(match u64::try_from(number) {
        Ok(block) => ChainStart::At(block),
        Err(_) => ChainStart::Behind(number.unsigned_abs()),
    })
}
