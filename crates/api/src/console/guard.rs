//! Admission of requests to the console: own pages only, and each visitor's rights.
//!
//! A request must come from a page of this server: its origin, and what the browser says of its site, must agree with the
//! host that it names. On loopback that host must be an address or `localhost`, since another name would be one that a page
//! has made to point here. A change must also name its origin, and carry the number of its session.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use tokio::net::TcpListener;

use super::assets;
use super::sessions::{Sessions, Visitor};
use super::visitors::{Role, Visitors};
use crate::connections::AdmittedCall;
use crate::page::refuse_other_names;
use crate::refused::Refused;

/// Header with the session's number, which changes must carry.
pub(super) const CSRF_HEADER: &str = "x-csrf-token";

/// The door of a console: visitors, sessions, and the facts about the port that requests are checked against.
pub(super) struct Door {
    pub(super) visitors: Visitors,
    pub(super) sessions: Sessions,
    /// `http` or `https`.
    pub(super) scheme: &'static str,
    /// Whether the port is on loopback.
    pub(super) is_loopback: bool,
    /// Name of the session's cookie. Cookies of a host are shared by its ports, so each port has a name of its own.
    pub(super) cookie: String,
}

/// The visitor of an admitted request; none if nobody has logged in.
#[derive(Clone, Debug)]
pub(super) struct MaybeVisitor(pub(super) Option<Visitor>);

// === impl Door ===

impl Door {
    /// A door on a port; the cookie has the port in its name.
    pub(super) fn new(visitors: Visitors, is_secure: bool, is_loopback: bool, port: u16) -> Self {
        let prefix = if is_secure { "__Host-" } else { "" };
        Self {
            visitors,
            sessions: Sessions::default(),
            scheme: if is_secure { "https" } else { "http" },
            is_loopback,
            cookie: format!("{prefix}proofmill-{port}"),
        }
    }

    /// A door on a loopback port, through which everybody looks and nobody acts.
    pub(super) fn of_onlookers(listener: &TcpListener) -> Self {
        // A socket that has no address is refused when it is served; the port is only part of a cookie that nobody gets.
        let port = listener.local_addr().map_or(0, |address| address.port());
        Self::new(Visitors::onlookers(), false, true, port)
    }

    /// The value of `Set-Cookie` that begins a session, or ends it if the id is empty.
    pub(super) fn set_cookie(&self, id: &str) -> String {
        let secure = match self.scheme {
            "https" => "; Secure",
            _ => "",
        };
        let end = if id.is_empty() { "; Max-Age=0" } else { "" };
        let name = &self.cookie;
        format!("{name}={id}; Path=/; HttpOnly; SameSite=Strict{secure}{end}")
    }

    fn admit(&self, request: &Request) -> Result<MaybeVisitor, Refused> {
        let headers = request.headers();
        if self.is_loopback {
            refuse_other_names(request.uri(), headers)?;
        }
        self.refuse_other_pages(headers)?;
        let visitor = self
            .session_id(headers)
            .and_then(|id| self.sessions.visit(id));
        let path = request.uri().path();
        let is_public = !path.starts_with("/api/") || path == "/api/session";
        match *request.method() {
            Method::GET | Method::HEAD => {
                if !is_public && visitor.is_none() && !self.visitors.may_look() {
                    return Err(not_logged_in());
                }
            }
            Method::POST => {
                if !headers.contains_key(header::ORIGIN) {
                    return Err(other_page());
                }
                // Whoever logs in has no session yet; the token is what no other page has.
                if path != "/api/login" {
                    check_csrf(visitor.as_ref(), headers)?;
                }
            }
            _ => {
                let status = StatusCode::METHOD_NOT_ALLOWED;
                return Err(Refused::new(status, "the console has GET and POST only"));
            }
        }
        Ok(MaybeVisitor(visitor))
    }

    /// Refuses a request that another page makes: it names another origin than this server, or the browser says that it
    /// comes from another site. The server's own pages name its origin when they load modules.
    fn refuse_other_pages(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let is_own_site = headers
            .get("sec-fetch-site")
            .is_none_or(|site| site == "same-origin" || site == "none");
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let is_own_origin = origins.next().is_none_or(|origin| {
            let origin = origin.to_str().ok();
            let authority = origin.and_then(|it| it.strip_prefix(self.scheme)?.strip_prefix("://"));
            authority.is_some() && authority == host
        });
        let is_single = hosts.next().is_none() && origins.next().is_none();
        match host.is_some() && is_single && is_own_site && is_own_origin {
            true => Ok(()),
            false => Err(other_page()),
        }
    }

    fn session_id<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let cookies = headers.get_all(header::COOKIE).iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        let pairs = cookies.flat_map(|value| value.split(';'));
        let mut pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
        pairs.find_map(|(name, value)| (name == self.cookie).then_some(value))
    }
}

// === impl MaybeVisitor ===

impl MaybeVisitor {
    /// The visitor, who must have this role at least.
    pub(super) fn with_role(&self, role: Role) -> Result<&Visitor, Refused> {
        let visitor = self.0.as_ref().ok_or_else(not_logged_in)?;
        if visitor.role >= role {
            return Ok(visitor);
        }
        let why = format!(
            "{} is a {}: this needs an {}",
            visitor.name,
            visitor.role.word(),
            role.word()
        );
        Err(Refused::new(StatusCode::FORBIDDEN, why))
    }
}

/// Admits a request with its visitor, and protects the answer.
pub(super) async fn guard(
    State(door): State<Arc<Door>>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut response = match door.admit(&request) {
        Ok(visitor) => {
            // Strangers' connections are closed for others when there are too many.
            let is_known = visitor.0.is_some() || door.visitors.may_look();
            let _admitted = is_known.then(|| AdmittedCall::mark(&mut request));
            request.extensions_mut().insert(visitor);
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    };
    assets::protect(response.headers_mut());
    response
}

fn check_csrf(visitor: Option<&Visitor>, headers: &HeaderMap) -> Result<(), Refused> {
    let visitor = visitor.ok_or_else(not_logged_in)?;
    let shown = headers.get(CSRF_HEADER);
    if shown.is_some_and(|shown| visitor.has_csrf(shown.as_bytes())) {
        return Ok(());
    }
    let why =
        format!("the header {CSRF_HEADER} has not the number of this session: load the page again");
    Err(Refused::new(StatusCode::FORBIDDEN, why))
}

fn not_logged_in() -> Refused {
    Refused::new(StatusCode::UNAUTHORIZED, "log in with a token first")
}

fn other_page() -> Refused {
    let why = "the console answers its own pages only";
    Refused::new(StatusCode::FORBIDDEN, why)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    const HOST: (&str, &str) = ("host", "127.0.0.1:9467");
    const ORIGIN: (&str, &str) = ("origin", "http://127.0.0.1:9467");

    fn door() -> Door {
        let visitors = Visitors::of_this_run().expect("random numbers");
        Door::new(visitors, false, true, 9467)
    }

    fn status(door: &Door, method: Method, path: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        let refused = door.admit(&request).err();
        refused.map_or(200, |refused| refused.status.as_u16())
    }

    #[test]
    fn only_the_servers_own_pages_are_answered() {
        let door = door();
        let get = |headers: &[(&str, &str)]| status(&door, Method::GET, "/api/events", headers);
        assert_eq!(get(&[HOST]), 200);
        assert_eq!(get(&[HOST, ORIGIN, ("sec-fetch-site", "same-origin")]), 200);
        assert_eq!(get(&[HOST, ("sec-fetch-site", "none")]), 200);
        for other in [
            ("origin", "http://127.0.0.1:9468"),
            ("origin", "https://127.0.0.1:9467"),
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("host", "127.0.0.1:9467"),
        ] {
            assert_eq!(get(&[HOST, other]), 403, "{other:?}");
        }
        assert_eq!(get(&[HOST, ORIGIN, ORIGIN]), 403);
        assert_eq!(get(&[("host", "rebound.example")]), 403);
        assert_eq!(get(&[]), 403);
        let rebound = [
            ("host", "rebound.example:9467"),
            ("origin", "http://rebound.example:9467"),
        ];
        assert_eq!(get(&rebound), 403);
        assert_eq!(status(&door, Method::DELETE, "/", &[HOST, ORIGIN]), 405);
    }

    #[test]
    fn a_change_needs_a_session_its_number_and_an_origin() {
        let door = door();
        let id = door.sessions.begin("alice".into(), Role::Operator);
        let id = id.expect("random numbers");
        let csrf = door.sessions.visit(&id).expect("there").csrf;
        let cookie = format!("other=1; proofmill-9467={id}");
        let cookie = ("cookie", &*cookie);
        let post = |headers: &[(&str, &str)]| status(&door, Method::POST, "/api/action", headers);
        assert_eq!(post(&[HOST, ORIGIN, cookie, (CSRF_HEADER, &csrf)]), 200);
        assert_eq!(post(&[HOST, cookie, (CSRF_HEADER, &csrf)]), 403);
        assert_eq!(post(&[HOST, ORIGIN, cookie]), 403);
        assert_eq!(
            post(&[HOST, ORIGIN, cookie, (CSRF_HEADER, &csrf[1..])]),
            403
        );
        assert_eq!(post(&[HOST, ORIGIN, (CSRF_HEADER, &csrf)]), 401);
        let forged = ("origin", "http://evil.example");
        assert_eq!(post(&[HOST, forged, cookie, (CSRF_HEADER, &csrf)]), 403);
        let of_other_port = format!("proofmill-9468={id}");
        let of_other_port = ("cookie", &*of_other_port);
        assert_eq!(
            post(&[HOST, ORIGIN, of_other_port, (CSRF_HEADER, &csrf)]),
            401
        );
    }

    #[test]
    fn a_viewer_is_no_operator_and_a_stranger_is_neither() {
        let door = door();
        let visitor = |role| {
            let id = door.sessions.begin("bob".into(), role).expect("random");
            MaybeVisitor(door.sessions.visit(&id))
        };
        let (viewer, operator) = (visitor(Role::Viewer), visitor(Role::Operator));
        assert!(viewer.with_role(Role::Viewer).is_ok());
        assert!(operator.with_role(Role::Operator).is_ok());
        let refused = viewer.with_role(Role::Operator).expect_err("refused");
        assert_eq!(
            (refused.status.as_u16(), &*refused.why),
            (403, "bob is a viewer: this needs an operator")
        );
        let refused = MaybeVisitor(None)
            .with_role(Role::Viewer)
            .expect_err("refused");
        assert_eq!(refused.status.as_u16(), 401);
    }

    #[test]
    fn cookies_are_for_this_port_and_for_its_own_pages() {
        assert_eq!(
            door().set_cookie("x"),
            "proofmill-9467=x; Path=/; HttpOnly; SameSite=Strict"
        );
        let visitors = Visitors::of_this_run().expect("random numbers");
        let secure = Door::new(visitors, true, false, 443);
        assert_eq!(
            secure.set_cookie(""),
            "__Host-proofmill-443=; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=0"
        );
        // With TLS, a name is the certificate's, and origins have another scheme.
        let headers = [("host", "mill.example"), ("origin", "https://mill.example")];
        assert_eq!(status(&secure, Method::GET, "/", &headers), 200);
        let headers = [("host", "mill.example"), ("origin", "http://mill.example")];
        assert_eq!(status(&secure, Method::GET, "/", &headers), 403);
    }
}
