//! Calls about a team's clusters: what they are called, and on which machines they prove.
//!
//! Source: `lib/openapi/clusters.ts`, `lib/zod/schemas/cluster.ts` and `app/api/v0/clusters` of
//! <https://github.com/ethproofs/ethproofs>, commit 98b7a6f1.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{AUTHORIZATION, HeaderMap};
use proofmill_http::{HttpClient, HttpError};
use proofmill_workflow::HttpUrl;
use serde::{Deserialize, Serialize};

use crate::answer::{Verdict, verdict};
use crate::token::Token;

/// Most bytes of a list of clusters that are read.
const LIST_BYTES_MAX: usize = 4 << 20;

/// Place of the clusters in the API.
const PATH: &str = "/clusters";

/// The clusters of the team that a key belongs to.
#[derive(Clone, Debug)]
pub struct Clusters {
    /// Address of the API.
    pub url: HttpUrl,
    /// File of further certificates to trust (PEM).
    pub ca: Option<PathBuf>,
    /// The team's key.
    pub token: Token,
    /// Longest time of one call.
    pub time_limit: Duration,
}

/// A cluster, as the site lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// Its number, `cluster_id` of a workflow file; `None` if the site has given it none yet.
    pub id: Option<u64>,
    /// Its name.
    pub name: String,
    /// Its hardware, in words.
    #[serde(rename = "hardware_description")]
    pub hardware: Option<String>,
}

/// A place where machines stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Deployment {
    /// At a provider, by the hour.
    #[serde(rename = "cloud-hosted")]
    Cloud,
    /// On the team's own premises.
    #[serde(rename = "on-prem")]
    OnPremises,
}

/// A cluster to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewCluster {
    /// Its name, at most [`NAME_MAX`](Self::NAME_MAX) characters.
    pub name: String,
    /// Number of the zkVM's version at the site.
    #[serde(rename = "zkvm_version_id")]
    pub zkvm_version: u32,
    /// GPUs of all its machines, at least 1: the site has no other count.
    #[serde(rename = "num_gpus")]
    pub gpus: u32,
    /// Its hardware, in words, at most [`HARDWARE_MAX`](Self::HARDWARE_MAX) characters.
    #[serde(rename = "hardware_description")]
    pub hardware: String,
    /// Where its machines stand.
    #[serde(rename = "deployment_type")]
    pub deployment: Deployment,
}

/// Changes of a cluster. What is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of the zkVM's version at the site.
    #[serde(rename = "zkvm_version_id", skip_serializing_if = "Option::is_none")]
    pub zkvm_version: Option<u32>,
    /// GPUs of all its machines. The site refuses a change between one and several.
    #[serde(rename = "num_gpus", skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// Its hardware, in words.
    #[serde(
        rename = "hardware_description",
        skip_serializing_if = "Option::is_none"
    )]
    pub hardware: Option<String>,
    /// Whether it takes proofs.
    #[serde(rename = "is_active", skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
}

/// The reason why a call about clusters failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The address, or its certificates, cannot be used.
    #[error("the address of Ethproofs: {0}")]
    Address(String),
    /// The site does not know the key or the cluster, or another one answers at its address.
    #[error("Ethproofs does not know the key, the cluster or the address: {0}")]
    Unknown(String),
    /// The site does not take the call.
    #[error("Ethproofs does not take it: {0}")]
    Refused(String),
    /// There is no connection to the site.
    #[error("Ethproofs is not reached: {0}")]
    NotReached(String),
    /// The site's limiter asks for a pause.
    #[error("too many calls of this key: call again in {} s", .0.as_secs())]
    Limited(Duration),
    /// The site does not answer, or fails. It may have done what it was asked.
    #[error("Ethproofs does not answer: {0}")]
    Out(String),
    /// The site's answer is not what its description says.
    #[error("the answer of Ethproofs cannot be read: {0}")]
    Unreadable(String),
}

#[derive(Deserialize)]
struct Created {
    id: u64,
}

// === impl NewCluster ===

impl NewCluster {
    /// Most characters of a name.
    pub const NAME_MAX: usize = 50;

    /// Most characters of the hardware's description.
    pub const HARDWARE_MAX: usize = 200;
}

// === impl Clusters ===

impl Clusters {
    /// The team's clusters.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub async fn list(&self) -> Result<Vec<Cluster>, ClusterError> {
        let answer = self.call(Method::GET, PATH, Bytes::new()).await?;
        read(&answer)
    }

    /// Creates a cluster, and returns its number. After [`ClusterError::Out`] or
    /// [`ClusterError::Unreadable`] it may exist nevertheless: the site has no way
    /// to ask twice for the same cluster.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub async fn create(&self, cluster: &NewCluster) -> Result<u64, ClusterError> {
        let answer = self.call(Method::POST, PATH, body(cluster)).await?;
        Ok(read::<Created>(&answer)?.id)
    }

    /// Changes a cluster. Doing it again changes nothing more.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub async fn change(&self, id: u64, change: &Change) -> Result<(), ClusterError> {
        let path = format!("{PATH}/{id}");
        self.call(Method::PATCH, &path, body(change)).await?;
        Ok(())
    }

    async fn call(&self, method: Method, path: &str, body: Bytes) -> Result<Vec<u8>, ClusterError> {
        let address = |error: String| ClusterError::Address(error);
        let url = self.url.below(path);
        let url = url.map_err(|error| address(error.to_string()))?;
        let client = HttpClient::new(url, self.ca.as_deref());
        let client = client.map_err(|error| address(error.to_string()))?;
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, self.token.header());
        let answered = client.send(method, headers, body, LIST_BYTES_MAX, self.time_limit);
        let answer = answered.await.map_err(|error| match error {
            HttpError::Setup(why) => ClusterError::Address(why),
            HttpError::Connect(error) => ClusterError::NotReached(error.to_string()),
            error => ClusterError::Out(error.to_string()),
        })?;
        let unreadable = |error: HttpError| ClusterError::Unreadable(error.to_string());
        let body = answer.body.map_err(unreadable)?.to_vec();
        match verdict(answer.status.as_u16(), &body) {
            Verdict::Accepted => Ok(body),
            Verdict::Misconfigured(why) => Err(ClusterError::Unknown(why)),
            Verdict::Refused(why) => Err(ClusterError::Refused(why)),
            Verdict::Failed(why) => Err(ClusterError::Out(why)),
            Verdict::Limited(pause) => Err(ClusterError::Limited(pause)),
            // The site's answer to reports of proofs that it has.
            Verdict::Known => Err(ClusterError::Refused("it answered 409, a conflict".into())),
        }
    }
}

fn body(of: &impl Serialize) -> Bytes {
    let json = serde_json::to_vec(of).expect("numbers and strings are JSON");
    json.into()
}

fn read<T: for<'de> Deserialize<'de>>(answer: &[u8]) -> Result<T, ClusterError> {
    serde_json::from_slice(answer).map_err(|error| ClusterError::Unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_as_the_site_describes_them() {
        let cluster = NewCluster {
            name: "ZKnight-01".into(),
            zkvm_version: 1,
            gpus: 8,
            hardware: "8x NVIDIA H100".into(),
            deployment: Deployment::OnPremises,
        };
        let expected = r#"{"name":"ZKnight-01","zkvm_version_id":1,"num_gpus":8,"hardware_description":"8x NVIDIA H100","deployment_type":"on-prem"}"#;
        assert_eq!(body(&cluster), expected);
        let change = Change {
            gpus: Some(4),
            active: Some(false),
            ..Change::default()
        };
        assert_eq!(body(&change), r#"{"num_gpus":4,"is_active":false}"#);
        assert_eq!(body(&Change::default()), "{}");
    }

    #[test]
    fn lists_are_read_and_other_answers_refused() {
        let text = r#"[{"id":4,"name":"a","hardware_description":null,"versions":[{"id":"x"}]}]"#;
        let clusters: Vec<Cluster> = read(text.as_bytes()).expect("a list");
        assert_eq!((clusters[0].id, &*clusters[0].name), (Some(4), "a"));
        assert_eq!(clusters[0].hardware, None);
        for bad in ["", "{}", "[{}]", "[{\"id\":-1,\"name\":\"a\"}]", "<html>"] {
            assert!(read::<Vec<Cluster>>(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
