//! A site with the API of Ethproofs, on a port of this machine.

#![allow(
    dead_code,
    reason = "the program's tests use this too, and not all of it"
)]

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// Behaviour of the site at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// It carries the call out.
    Fine,
    /// It takes the call and never answers.
    Mute,
    /// It answers 503.
    Broken,
    /// It does not know the key.
    Locked,
}

/// A call that was carried out, or answered with 409.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) step: String,
    pub(crate) block: u64,
    pub(crate) authorization: String,
    pub(crate) body: Value,
    pub(crate) status: u16,
}

#[derive(Debug)]
struct State {
    mood: Mood,
    /// Connections that were made, whatever became of them.
    connections: usize,
    calls: Vec<Call>,
    /// Proofs that the site has, in Base64.
    proofs: BTreeMap<u64, String>,
    /// Clusters that the site has, by their numbers.
    clusters: BTreeMap<u64, Value>,
    /// Connections that are never answered.
    mute: Vec<TcpStream>,
}

/// The site. Its thread runs until the process ends.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

// === impl Site ===

impl Site {
    pub(crate) fn start(mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let state = State {
            mood,
            connections: 0,
            calls: Vec::new(),
            proofs: BTreeMap::new(),
            clusters: BTreeMap::new(),
            mute: Vec::new(),
        };
        let site = Self {
            address,
            state: Arc::new(Mutex::new(state)),
        };
        let served = site.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let site = served.clone();
                // A client that has gone.
                std::thread::spawn(move || drop(site.serve(stream)));
            }
        });
        site
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/api/v0", self.address)
    }

    pub(crate) fn be(&self, mood: Mood) {
        let mut state = self.state.lock().expect("not poisoned");
        state.mood = mood;
        state.mute.clear();
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.lock().expect("not poisoned").connections
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.state.lock().expect("not poisoned").calls.clone()
    }

    pub(crate) fn proofs(&self) -> BTreeMap<u64, String> {
        self.state.lock().expect("not poisoned").proofs.clone()
    }

    pub(crate) fn clusters(&self) -> BTreeMap<u64, Value> {
        self.state.lock().expect("not poisoned").clusters.clone()
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let (head, body) = read_request(&mut stream)?;
        let mut lines = head.lines();
        let first = lines.next().unwrap_or_default().to_owned();
        let authorization = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("authorization")
                .then(|| value.trim().to_owned())
        });
        let mut state = self.state.lock().expect("not poisoned");
        state.connections += 1;
        let (status, answer) = match state.mood {
            Mood::Mute => {
                state.mute.push(stream);
                return Ok(());
            }
            Mood::Broken => (503, String::new()),
            Mood::Locked => (401, "Invalid API key".to_owned()),
            Mood::Fine if first.contains("/clusters") => {
                about_clusters(&mut state.clusters, &first, &body)
            }
            Mood::Fine => carry_out(&mut state, &first, authorization, &body),
        };
        drop(state);
        let length = answer.len();
        write!(
            stream,
            "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}"
        )
    }
}

/// Does what the routes of the real site do.
fn carry_out(
    state: &mut State,
    first: &str,
    authorization: Option<String>,
    body: &[u8],
) -> (u16, String) {
    let path = first
        .strip_prefix("POST /api/v0/proofs/")
        .and_then(|rest| rest.strip_suffix(" HTTP/1.1"));
    let Some(step) = path.filter(|path| ["queued", "proving", "proved"].contains(path)) else {
        return (404, format!("no route {first}"));
    };
    let body: Value = match serde_json::from_slice(body) {
        Ok(body) => body,
        Err(error) => return (400, format!("Invalid request: {error}")),
    };
    let number = |name: &str| body.get(name).and_then(Value::as_u64);
    let (Some(block), Some(_)) = (number("block_number"), number("cluster_id")) else {
        return (400, "Invalid request".to_owned());
    };
    let proof = body.get("proof").and_then(Value::as_str).map(str::to_owned);
    if step == "proved" && (number("proving_time").is_none_or(|ms| ms == 0) || proof.is_none()) {
        return (
            400,
            "Invalid request: proving_time must be a positive number".to_owned(),
        );
    }
    let status = if state.proofs.contains_key(&block) {
        409
    } else {
        200
    };
    if let Some(proof) = proof.filter(|_| status == 200) {
        state.proofs.insert(block, proof);
    }
    state.calls.push(Call {
        step: step.to_owned(),
        block,
        authorization: authorization.unwrap_or_default(),
        body,
        status,
    });
    match status {
        200 => (status, json!({ "proof_id": block }).to_string()),
        _ => (status, "Proof already proved".to_owned()),
    }
}

/// Does what the routes of the real site do with clusters. Only version 7 of a zkVM is known.
fn about_clusters(clusters: &mut BTreeMap<u64, Value>, first: &str, body: &[u8]) -> (u16, String) {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let version = body.get("zkvm_version_id").and_then(Value::as_u64);
    let words: Vec<&str> = first.split(' ').collect();
    let [method, path, _] = words[..] else {
        return (400, "no request".to_owned());
    };
    match (method, path.strip_prefix("/api/v0/clusters")) {
        ("GET", Some("")) => {
            let listed = |(id, cluster): (&u64, &Value)| json!({ "id": id, "name": cluster["name"], "hardware_description": cluster["hardware_description"], "versions": [] });
            (
                200,
                clusters.iter().map(listed).collect::<Value>().to_string(),
            )
        }
        ("POST", Some("")) if version != Some(7) => (400, "Invalid zkvm version".to_owned()),
        ("POST", Some("")) => {
            let id = clusters.len() as u64 + 1;
            clusters.insert(id, body);
            (200, json!({ "id": id }).to_string())
        }
        ("PATCH", Some(rest)) => {
            let id = rest.trim_start_matches('/').parse().unwrap_or(0);
            let Some(cluster) = clusters.get_mut(&id).and_then(Value::as_object_mut) else {
                return (404, "Cluster not found".to_owned());
            };
            let changes = body.as_object().cloned().unwrap_or_default();
            cluster.extend(changes);
            (200, json!({ "success": true }).to_string())
        }
        _ => (404, format!("no route {first}")),
    }
}

fn read_request(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let is_length = name.eq_ignore_ascii_case("content-length");
                is_length.then(|| value.trim().parse::<usize>().ok())?
            });
            let end = at + 4 + length.unwrap_or(0);
            while bytes.len() < end {
                let count = stream.read(&mut chunk)?;
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                bytes.extend_from_slice(&chunk[..count]);
            }
            return Ok((head, bytes[at + 4..end].to_vec()));
        }
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&chunk[..count]);
    }
}
