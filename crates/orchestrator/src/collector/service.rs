//! The service that keeps partitions for a coordinator.

use futures_util::future::BoxFuture;
use std::time::Duration;

use tokio::sync::mpsc;

use super::Host;
use crate::conversation::{HostCommand, HostEvent};
use crate::id::fresh_number;
use crate::port::HostPort;
use crate::shutdown::{Level, Shutdown};

/// Time between a host's signs of life. A host that the coordinator has dropped learns it from the answer and
/// joins again.
const BEAT: Duration = Duration::from_secs(1);

/// Maximum number of commands taken at once.
const TURN: usize = 256;

/// Keeps partitions until `shutdown` reaches [`Level::Drain`], then hands them over; ends as well when the
/// coordinator is gone.
pub fn run(mut host: Host, port: HostPort, mut shutdown: Shutdown) -> BoxFuture<'static, ()> {
    // Boxed, so that it is compiled here and not again in every program that calls it.
    Box::pin(async move {
        // A coordinator that has gone is no error of this service: its caller notices by itself.
        let _ = async {
            let (sender, mut commands) = mpsc::unbounded_channel();
            port.join(host.join(fresh_number()), sender).await?;
            let mut turn: Vec<HostCommand> = Vec::with_capacity(TURN);
            loop {
                tokio::select! {
                    count = commands.recv_many(&mut turn, TURN) => {
                        match host.handle(turn.drain(..)) {
                            Some(verdicts) if count > 0 && !verdicts.is_empty() => {
                                let said = HostEvent::Verdicts(host.report(verdicts));
                                port.send_event(said).await?;
                            }
                            Some(_) if count > 0 => {}
                            _ => {
                                let (sender, receiver) = mpsc::unbounded_channel();
                                commands = receiver;
                                port.join(host.join(fresh_number()), sender).await?;
                            }
                        }
                    }
                    () = tokio::time::sleep(BEAT) => {
                        let host = host.name().clone();
                        port.send_event(HostEvent::Heartbeat { host }).await?;
                    }
                    () = port.gone() => return Ok(()),
                    () = shutdown.reached(Level::Drain) => {
                        let host = host.name().clone();
                        return port.send_event(HostEvent::Leave { host }).await;
                    }
                }
            }
        }
        .await;
    })
}
