//! Pages of the console: their files, and the events that they read.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{http, ms};

/// Longest wait for the next event, of which there are several a second while tasks are submitted.
const PATIENCE: Duration = Duration::from_secs(30);

/// Open pages.
pub(super) struct Pages {
    close: watch::Sender<bool>,
    pages: JoinSet<anyhow::Result<Closed>>,
}

/// Figures of closed pages.
#[derive(Default)]
pub(super) struct Closed {
    /// Milliseconds from the first request of each page to its first event.
    pub(super) ready_ms: Vec<f64>,
    /// Events that were read.
    pub(super) events: usize,
}

// === impl Pages ===

impl Pages {
    /// Opens `count` pages at once. The first stops reading after its first event; every second one shows `block`.
    pub(super) fn open(address: SocketAddr, count: u16, block: u64) -> Self {
        let (close, closing) = watch::channel(false);
        let mut pages = JoinSet::new();
        for number in 0..count {
            let closing = closing.clone();
            let shown = (number % 2 == 1).then_some(block + u64::from(number));
            pages.spawn(page(address, number == 0, shown, closing));
        }
        Self { close, pages }
    }

    /// Closes the pages.
    pub(super) async fn close(mut self) -> anyhow::Result<Closed> {
        self.close.send_replace(true);
        let mut all = Closed::default();
        while let Some(closed) = self.pages.join_next().await {
            let closed = closed.context("a page panicked")??;
            all.ready_ms.extend(closed.ready_ms);
            all.events += closed.events;
        }
        Ok(all)
    }
}

async fn page(
    address: SocketAddr,
    stalls: bool,
    block: Option<u64>,
    mut closing: watch::Receiver<bool>,
) -> anyhow::Result<Closed> {
    let began = Instant::now();
    load(address).await?;
    let path = "/api/events";
    let mut lines = BufReader::new(http::stream(address, path).await?).lines();
    let status = lines.next_line().await?.unwrap_or_default();
    http::check_status(path, &status)?;
    let mut closed = Closed::default();
    loop {
        let line = tokio::select! {
            line = tokio::time::timeout(PATIENCE, lines.next_line()) => line,
            _ = closing.wait_for(|close| *close) => return Ok(closed),
        };
        let line = line.context("no event comes")??;
        let line = line.context("the console has closed the connection")?;
        // A sign of life has other data.
        if !line.starts_with("data: {") {
            continue;
        }
        if closed.events == 0 {
            closed.ready_ms.push(ms(began.elapsed()));
        }
        closed.events += 1;
        if stalls {
            // The connection stays open and is not read.
            let _ = closing.wait_for(|close| *close).await;
            return Ok(closed);
        }
        if let Some(block) = block {
            let status = http::get(address, &format!("/api/block/{block}")).await?;
            anyhow::ensure!(status.contains("waits_for"), "block {block} has no task");
        }
    }
}

/// Loads the page and all files that it names.
async fn load(address: SocketAddr) -> anyhow::Result<()> {
    let mut known: BTreeSet<String> = ["/".to_owned()].into();
    let mut left = vec!["/".to_owned()];
    while let Some(path) = left.pop() {
        let text = http::get(address, &path).await?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for name in names(&text) {
            let named = match (name.strip_prefix("./"), name.strip_prefix("../")) {
                (Some(name), _) => format!("{folder}/{name}"),
                (_, Some(name)) => format!("/{name}"),
                _ => name.to_owned(),
            };
            if known.insert(named.clone()) {
                left.push(named);
            }
        }
    }
    anyhow::ensure!(known.len() > 5, "the page names no files");
    Ok(())
}

/// Names of scripts and styles in quotes.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('"')
        .filter(|name| name.ends_with(".js") || name.ends_with(".css"))
}
