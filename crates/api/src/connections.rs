//! The connections of a listener: how many there are, from where, and which one makes room for another.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::Request;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::Instant;

/// Limits on the connections of one TCP listener: their number, and the time for which an idle one
/// is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at a time. Where there are as many, the oldest one that never had a call let in is closed
    /// for a further one; if there is none, the further one waits.
    pub total: usize,
    /// Connections at a time of one peer address; IPv6 addresses count as one when their first 64 bits
    /// are equal. Where there are as many, the peer's oldest one that never had a call let in is closed for a
    /// further one; if there is none, the further one is closed.
    pub per_peer: usize,
    /// Time after which a connection is closed on which no call that was let in (one with a token, where
    /// tokens are needed) is under way.
    pub idle: Duration,
}

/// One connection, as the gate sees it that lets its calls in.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Mutex<Standing>>);

/// Kept as long as a call that was let in is under way. A request carries one among its extensions from
/// the gate on.
#[derive(Clone, Default)]
pub(crate) struct Admitted {
    _call: Option<Arc<Call>>,
}

struct Standing {
    calls: usize,
    idle_since: Instant,
    was_admitted: bool,
}

struct Call(Connection);

/// Peers that share one bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer(IpAddr);

/// The address of the other end, if the network has one.
pub(crate) trait Address {
    fn peer(&self) -> Option<Peer>;
}

/// Connections that are served.
pub(crate) struct Connections {
    tasks: JoinSet<()>,
    open: HashMap<Id, Open>,
    total: usize,
    /// Connections of one peer, where peers have addresses.
    per_peer: usize,
}

struct Open {
    peer: Option<Peer>,
    since: Instant,
    connection: Connection,
    abort: AbortHandle,
}

/// Whether a further connection has a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Free,
    /// Every connection has had a call let in, and must end by itself.
    None,
    /// Every one of its peer has, of which there are as many as may be.
    NoneForPeer,
}

// === impl ConnectionLimits ===

impl Default for ConnectionLimits {
    /// 512, 256 from one address (that of a proxy, perhaps), 30 s.
    fn default() -> Self {
        Self {
            total: 512,
            per_peer: 256,
            idle: Duration::from_secs(30),
        }
    }
}

// === impl Connection ===

impl Connection {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Standing {
            calls: 0,
            idle_since: Instant::now(),
            was_admitted: false,
        })))
    }

    fn admit(&self) -> Admitted {
        let mut standing = self.standing();
        standing.calls += 1;
        standing.was_admitted = true;
        Admitted {
            _call: Some(Arc::new(Call(self.clone()))),
        }
    }

    pub(crate) fn was_admitted(&self) -> bool {
        self.standing().was_admitted
    }

    /// Waits until no call that was let in has been under way for `limit`.
    pub(crate) async fn until_idle(&self, limit: Duration) {
        loop {
            let (calls, idle) = {
                let standing = self.standing();
                (standing.calls, standing.idle_since.elapsed())
            };
            // A call that ends while this sleeps has ended for less than the limit after it.
            match limit.checked_sub(idle).filter(|left| !left.is_zero()) {
                _ if calls > 0 => tokio::time::sleep(limit).await,
                Some(left) => tokio::time::sleep(left).await,
                None => return,
            }
        }
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut standing = self.0.standing();
        standing.calls -= 1;
        standing.idle_since = Instant::now();
    }
}

// === impl Admitted ===

impl Admitted {
    /// Marks a request that is let in, and its connection as one that is used.
    pub(crate) fn mark<B>(request: &mut Request<B>) -> Self {
        let extensions = request.extensions_mut();
        let admitted = extensions
            .get::<Connection>()
            .map_or_else(Self::default, Connection::admit);
        extensions.insert(admitted.clone());
        admitted
    }
}

impl fmt::Debug for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted").finish_non_exhaustive()
    }
}

// === impl Peer ===

impl Peer {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.into()),
            // One subscriber has all addresses of a /64.
            IpAddr::V6(address) => Self(Ipv6Addr::from(u128::from(address) >> 64 << 64).into()),
        }
    }
}

impl Address for SocketAddr {
    fn peer(&self) -> Option<Peer> {
        Some(Peer::of(self.ip()))
    }
}

impl Address for tokio::net::unix::SocketAddr {
    fn peer(&self) -> Option<Peer> {
        None
    }
}

// === impl Connections ===

impl Connections {
    pub(crate) fn new(total: usize, per_peer: usize) -> Self {
        Self {
            tasks: JoinSet::new(),
            open: HashMap::new(),
            total,
            per_peer,
        }
    }

    /// Looks for a place for a further connection; one that never had a call let in is closed for it.
    pub(crate) fn make_place(&mut self, peer: Option<Peer>) -> Place {
        if peer.is_some() {
            let of_peer = self.open.values().filter(|it| it.peer == peer).count();
            if of_peer >= self.per_peer && !self.close_oldest(|it| it.peer == peer) {
                return Place::NoneForPeer;
            }
        }
        // Those without an address are behind a socket of this user's.
        if self.open.len() < self.total || self.close_oldest(|it| it.peer.is_some()) {
            Place::Free
        } else {
            Place::None
        }
    }

    pub(crate) fn spawn(
        &mut self,
        peer: Option<Peer>,
        connection: Connection,
        serving: impl Future<Output = ()> + Send + 'static,
    ) {
        let abort = self.tasks.spawn(serving);
        let open = Open {
            peer,
            since: Instant::now(),
            connection,
            abort,
        };
        self.open.insert(open.abort.id(), open);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits until one has ended. Cancelling this loses nothing.
    pub(crate) async fn ended(&mut self) {
        let id = match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => id,
            Some(Err(error)) => error.id(),
            None => return,
        };
        self.open.remove(&id);
    }

    fn close_oldest(&mut self, is_candidate: impl Fn(&Open) -> bool) -> bool {
        let candidates = self.open.iter().filter(|(_, it)| is_candidate(it));
        let oldest = candidates
            .filter(|(_, it)| !it.connection.was_admitted())
            .min_by_key(|(_, it)| it.since)
            .map(|(id, _)| *id);
        let Some(open) = oldest.and_then(|id| self.open.remove(&id)) else {
            return false;
        };
        open.abort.abort();
        true
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    fn peer(address: &str) -> Option<Peer> {
        Some(Peer::of(address.parse().expect("an address")))
    }

    fn opened(connections: &mut Connections, of: Option<Peer>) -> Connection {
        let connection = Connection::new();
        connections.spawn(of, connection.clone(), pending());
        connection
    }

    #[test]
    fn an_ipv6_network_and_a_mapped_address_are_one_peer() {
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:2"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
    }

    #[tokio::test]
    async fn one_that_never_had_a_call_let_in_makes_room_and_others_stay() {
        let (one, other) = (peer("192.0.2.1"), peer("192.0.2.2"));
        let mut connections = Connections::new(3, 2);
        let used = opened(&mut connections, one);
        let admitted = used.admit();
        opened(&mut connections, one);
        // The peer's second one is closed for its third, which then is used, too.
        assert_eq!(connections.make_place(one), Place::Free);
        opened(&mut connections, one).admit();
        assert_eq!(connections.make_place(one), Place::NoneForPeer);
        assert_eq!(connections.make_place(other), Place::Free);
        opened(&mut connections, other).admit();
        assert_eq!(connections.make_place(other), Place::None);
        assert_eq!(connections.open.len(), 3);
        drop(admitted);
        assert!(used.was_admitted());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_from_the_end_of_its_last_call() {
        let limit = Duration::from_secs(30);
        let began = Instant::now();
        let connection = Connection::new();
        let admitted = connection.admit();
        let held = admitted.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(50)).await;
            drop((admitted, held));
        });
        connection.until_idle(limit).await;
        assert_eq!(began.elapsed(), Duration::from_secs(80));
        let unused = Connection::new();
        unused.until_idle(limit).await;
        assert_eq!(began.elapsed(), Duration::from_secs(110));
    }
}
