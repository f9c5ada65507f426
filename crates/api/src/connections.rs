//! The open connections of a listener: their limits, and the choice of one to close for another.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::Request;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::Instant;

/// Limits on the connections of one TCP listener: their number, and the time for which an idle one is kept
/// open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Most connections at a time (default 512). Beyond that, the oldest connection that never had an
    /// admitted call is closed for a new one; if there is none, the new one waits.
    pub total: usize,
    /// Most connections at a time of one peer address (default 256, since it may be a proxy). IPv6
    /// addresses with the same first 64 bits count as one. Beyond that, the peer's oldest connection that
    /// never had an admitted call is closed for a new one; if there is none, the new one is closed.
    pub per_peer: usize,
    /// Time without an admitted call (one with a token, where tokens are needed) after which a connection
    /// is closed (default 30 s).
    pub idle: Duration,
}

/// The state of one connection, shared with the gate that admits its calls.
#[derive(Clone)]
pub(crate) struct Connection {
    state: Arc<Mutex<ConnectionState>>,
    peer: Option<Peer>,
}

/// A guard for one admitted call, dropped when the call ends. The gate puts one into the extensions of each
/// request that it admits.
#[derive(Clone, Default)]
pub(crate) struct AdmittedCall {
    _call: Option<Arc<AdmittedCallGuard>>,
}

struct ConnectionState {
    calls: usize,
    idle_since: Instant,
    was_admitted: bool,
}

/// Counts one admitted call of a connection until it is dropped.
struct AdmittedCallGuard(Connection);

/// A peer address, or an IPv6 prefix, whose connections share one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peer(IpAddr);

/// A listener's type of address, with the peer if the network has one.
pub(crate) trait Address {
    fn peer(&self) -> Option<Peer>;
}

/// The connections that are being served.
pub(crate) struct Connections {
    tasks: JoinSet<()>,
    open: HashMap<Id, OpenConnection>,
    total: usize,
    /// Most connections of one peer, where peers have addresses.
    per_peer: usize,
}

/// A connection that is being served.
struct OpenConnection {
    peer: Option<Peer>,
    since: Instant,
    connection: Connection,
    abort: AbortHandle,
}

/// Whether there is room for a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionRoom {
    /// Yes.
    Free,
    /// No: every connection has had an admitted call, and must end by itself.
    None,
    /// No: the peer has as many connections as allowed, each of which has had an admitted call.
    NoneForPeer,
}

// === impl ConnectionLimits ===

impl Default for ConnectionLimits {
    /// 512 in all, 256 from one address (which may be a proxy), 30 s.
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
    /// A connection without calls; `peer` is its peer, if the network has one.
    pub(crate) fn new(peer: Option<Peer>) -> Self {
        let state = ConnectionState {
            calls: 0,
            idle_since: Instant::now(),
            was_admitted: false,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            peer,
        }
    }

    /// The connection's peer.
    pub(crate) fn peer(&self) -> Option<Peer> {
        self.peer
    }

    fn admit(&self) -> AdmittedCall {
        let mut state = self.state();
        state.calls += 1;
        state.was_admitted = true;
        AdmittedCall {
            _call: Some(Arc::new(AdmittedCallGuard(self.clone()))),
        }
    }

    pub(crate) fn was_admitted(&self) -> bool {
        self.state().was_admitted
    }

    /// Waits until there has been no admitted call for `limit`.
    pub(crate) async fn until_idle(&self, limit: Duration) {
        loop {
            let (calls, idle) = {
                let state = self.state();
                (state.calls, state.idle_since.elapsed())
            };
            // A call that ends during the sleep is followed by less than `limit` without calls.
            match limit.checked_sub(idle).filter(|left| !left.is_zero()) {
                _ if calls > 0 => tokio::time::sleep(limit).await,
                Some(left) => tokio::time::sleep(left).await,
                None => return,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        // No code panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Drop for AdmittedCallGuard {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.calls -= 1;
        state.idle_since = Instant::now();
    }
}

// === impl AdmittedCall ===

impl AdmittedCall {
    /// Admits a request: marks it, and its connection as used.
    pub(crate) fn mark<B>(request: &mut Request<B>) -> Self {
        let extensions = request.extensions_mut();
        let admitted = extensions
            .get::<Connection>()
            .map_or_else(Self::default, Connection::admit);
        extensions.insert(admitted.clone());
        admitted
    }
}

impl fmt::Debug for AdmittedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmittedCall").finish_non_exhaustive()
    }
}

// === impl Peer ===

impl Peer {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.into()),
            // A subscriber usually has all addresses of a /64.
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

    /// Makes room for a new connection: if there is none, closes a connection that never had an admitted call.
    pub(crate) fn make_room(&mut self, peer: Option<Peer>) -> ConnectionRoom {
        if peer.is_some() {
            let of_peer = self.open.values().filter(|it| it.peer == peer).count();
            if of_peer >= self.per_peer && !self.close_oldest(|it| it.peer == peer) {
                return ConnectionRoom::NoneForPeer;
            }
        }
        // Connections without an address come by a Unix socket of this user.
        if self.open.len() < self.total || self.close_oldest(|it| it.peer.is_some()) {
            ConnectionRoom::Free
        } else {
            ConnectionRoom::None
        }
    }

    pub(crate) fn spawn(
        &mut self,
        peer: Option<Peer>,
        connection: Connection,
        serving: impl Future<Output = ()> + Send + 'static,
    ) {
        let abort = self.tasks.spawn(serving);
        let open = OpenConnection {
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

    /// Waits until a connection has ended. Safe to cancel.
    pub(crate) async fn ended(&mut self) {
        let id = match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => id,
            Some(Err(error)) => error.id(),
            None => return,
        };
        self.open.remove(&id);
    }

    /// Closes the oldest candidate that never had an admitted call; false if there is none.
    fn close_oldest(&mut self, is_candidate: impl Fn(&OpenConnection) -> bool) -> bool {
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

    fn open_connection(connections: &mut Connections, of_peer: Option<Peer>) -> Connection {
        let connection = Connection::new(of_peer);
        connections.spawn(of_peer, connection.clone(), pending());
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
    async fn a_connection_without_admitted_calls_makes_room_and_others_stay() {
        let (one, other) = (peer("192.0.2.1"), peer("192.0.2.2"));
        let mut connections = Connections::new(3, 2);
        let used = open_connection(&mut connections, one);
        let admitted = used.admit();
        open_connection(&mut connections, one);
        // The peer's second connection is closed for its third, which is then used, too.
        assert_eq!(connections.make_room(one), ConnectionRoom::Free);
        open_connection(&mut connections, one).admit();
        assert_eq!(connections.make_room(one), ConnectionRoom::NoneForPeer);
        assert_eq!(connections.make_room(other), ConnectionRoom::Free);
        open_connection(&mut connections, other).admit();
        assert_eq!(connections.make_room(other), ConnectionRoom::None);
        assert_eq!(connections.open.len(), 3);
        drop(admitted);
        assert!(used.was_admitted());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_from_the_end_of_its_last_call() {
        let limit = Duration::from_secs(30);
        let began = Instant::now();
        let connection = Connection::new(None);
        let admitted = connection.admit();
        let held = admitted.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(50)).await;
            drop((admitted, held));
        });
        connection.until_idle(limit).await;
        assert_eq!(began.elapsed(), Duration::from_secs(80));
        let unused = Connection::new(None);
        unused.until_idle(limit).await;
        assert_eq!(began.elapsed(), Duration::from_secs(110));
    }
}
