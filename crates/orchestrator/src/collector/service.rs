//! Keeps partitions for whoever coordinates.

use futures_util::future::BoxFuture;
use std::time::Duration;

use tokio::sync::mpsc;

use super::Host;
use crate::conversation::{HostCommand, HostEvent};
use crate::id::fresh_number;
use crate::port::HostPort;
use crate::shutdown::{Level, Shutdown};

/// How often a host says that it is there: one that was given up hears so, and joins again.
const BEAT: Duration = Duration::from_secs(1);

/// Things taken at once, at most.
const TURN: usize = 256;

/// Keeps partitions until `shutdown` says [`Level::Drain`], then hands them over, or until the
/// coordinator is gone.
pub fn run(mut host: Host, port: HostPort, mut shutdown: Shutdown) -> BoxFuture<'static, ()> {
    // Boxed: compiled here, and not again in every program that calls it.
    Box::pin(async move {
        // A gone coordinator is no error of this service: whoever runs it sees that by itself.
        let _ = async {
            let (sender, mut told) = mpsc::unbounded_channel();
            port.join(host.join(fresh_number()), sender).await?;
            let mut turn: Vec<HostCommand> = Vec::with_capacity(TURN);
            loop {
                tokio::select! {
                    count = told.recv_many(&mut turn, TURN) => {
                        match host.take(turn.drain(..)) {
                            Some(verdicts) if count > 0 && !verdicts.is_empty() => {
                                let said = HostEvent::Verdicts(host.say(verdicts));
                                port.say(said).await?;
                            }
                            Some(_) if count > 0 => {}
                            _ => {
                                let (sender, receiver) = mpsc::unbounded_channel();
                                told = receiver;
                                port.join(host.join(fresh_number()), sender).await?;
                            }
                        }
                    }
                    () = tokio::time::sleep(BEAT) => {
                        let host = host.name().clone();
                        port.say(HostEvent::Beat { host }).await?;
                    }
                    () = port.gone() => return Ok(()),
                    () = shutdown.reached(Level::Drain) => {
                        let host = host.name().clone();
                        return port.say(HostEvent::Leave { host }).await;
                    }
                }
            }
        }
        .await;
    })
}
