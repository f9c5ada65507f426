//! Keeps partitions for whoever coordinates.

use futures_util::future::BoxFuture;
use std::time::Duration;

use tokio::sync::mpsc;

use super::Host;
use crate::conversation::HostCommand;
use crate::coordinator::Handle;
use crate::id::fresh_number;
use crate::shutdown::{Level, Shutdown};

/// How often a host says that it is there: one that was given up hears so, and joins again.
const BEAT: Duration = Duration::from_secs(1);

/// Things taken at once, at most.
const TURN: usize = 256;

/// Keeps partitions until `shutdown` says [`Level::Drain`], then hands them over, or until the
/// coordinator is gone.
pub fn run(mut host: Host, handle: Handle, mut shutdown: Shutdown) -> BoxFuture<'static, ()> {
    // Boxed: compiled here, and not again in every program that calls it.
    Box::pin(async move {
        // A gone coordinator is no error of this service: whoever runs it sees that by itself.
        let _ = async {
            let (sender, mut told) = mpsc::unbounded_channel();
            handle.host_join(host.join(fresh_number()), sender).await?;
            let mut turn: Vec<HostCommand> = Vec::with_capacity(TURN);
            loop {
                tokio::select! {
                    count = told.recv_many(&mut turn, TURN) => {
                        match host.take(turn.drain(..)) {
                            Some(verdicts) if count > 0 && !verdicts.is_empty() => {
                                handle.verdicts(host.say(verdicts)).await?;
                            }
                            Some(_) if count > 0 => {}
                            _ => {
                                let (sender, receiver) = mpsc::unbounded_channel();
                                told = receiver;
                                handle.host_join(host.join(fresh_number()), sender).await?;
                            }
                        }
                    }
                    () = tokio::time::sleep(BEAT) => {
                        handle.host_beat(host.name().clone()).await?;
                    }
                    () = handle.gone() => return Ok(()),
                    () = shutdown.reached(Level::Drain) => {
                        return handle.host_leave(host.name().clone()).await;
                    }
                }
            }
        }
        .await;
    })
}
