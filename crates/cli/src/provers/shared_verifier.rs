//! The verifier in this process, shared by the stages that verify and the check before emission. Proofs that arrive
//! during a check are checked together in the next one.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};
use std::thread;

use futures_util::future::join_all;
use proofmill_bitcoin::ChunkStatement;
use proofmill_bitcoin::{HeaderChainVerifier, Proof};
use proofmill_groth16::Bls12_381;
use proofmill_verifier::kinds::Groth16;
use proofmill_verifier::{Handle, KeyDigest, Kind, Kinds, Options, Request, Service, Status};
use tokio::runtime;

/// Client name of the mill at its verifier.
const CLIENT: &str = "mill";

/// The verifier's kind of proofs.
static KIND: Groth16<Bls12_381> = Groth16::new();
/// Number of the next request. Every request has its own, so no verdict is reused.
static NEXT_REQUEST_NUMBER: AtomicU64 = AtomicU64::new(0);
/// The verifier; the error if its threads could not be started.
static VERIFIER: LazyLock<Result<Handle, String>> =
    LazyLock::new(|| open().map_err(|error| error.to_string()));

/// The reason why a proof is not passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotPassed {
    /// The proof is not valid.
    Invalid(String),
    /// There is no verdict; another attempt may give one.
    Unknown(String),
}

/// A circuit's verifying key, registered at the verifier on first use.
#[derive(Default)]
pub(super) struct RegisteredKey(OnceLock<KeyDigest>);

/// The first block of a chunk, its statement and its proof.
pub(super) type ClaimedChunk<'a> = (u64, &'a ChunkStatement, &'a Proof);

/// Starts the verifier, which runs until the process ends.
fn open() -> Result<Handle, Box<dyn Error>> {
    let options = Options::of(Kinds::none().with(Groth16::<Bls12_381>::new()));
    let (service, handle) = Service::open(options)?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let thread = thread::Builder::new().name("verifier".to_owned());
    thread.spawn(move || {
        let (_trigger, shutdown) = proofmill_shutdown::channel();
        runtime.block_on(service.run(shutdown));
    })?;
    Ok(handle)
}

// === impl RegisteredKey ===

impl RegisteredKey {
    /// A verdict for each proof, in order. Blocks the calling thread.
    pub(super) fn verify(
        &self,
        verifier: &HeaderChainVerifier,
        proofs: &[ClaimedChunk<'_>],
    ) -> Vec<Result<(), NotPassed>> {
        let unknown = |why: &str| {
            proofs
                .iter()
                .map(|_| Err(NotPassed::Unknown(why.to_owned())))
                .collect()
        };
        let handle = match &*VERIFIER {
            Ok(handle) => handle,
            Err(why) => return unknown(why),
        };
        futures_executor::block_on(async {
            let key = match self.digest(handle, verifier).await {
                Ok(key) => key,
                Err(why) => return unknown(&why),
            };
            let verdicts = proofs
                .iter()
                .map(|proof| verdict(handle, verifier, key, proof));
            join_all(verdicts).await
        })
    }

    async fn digest(
        &self,
        handle: &Handle,
        verifier: &HeaderChainVerifier,
    ) -> Result<KeyDigest, String> {
        if let Some(digest) = self.0.get() {
            return Ok(*digest);
        }
        let key = verifier.vk().to_bytes();
        let added = handle.add_key(CLIENT, KIND.name(), key.into()).await;
        let digest = added.map_err(|error| error.to_string())?;
        Ok(*self.0.get_or_init(|| digest))
    }
}

async fn verdict(
    handle: &Handle,
    verifier: &HeaderChainVerifier,
    key: KeyDigest,
    (block, statement, proof): &ClaimedChunk<'_>,
) -> Result<(), NotPassed> {
    let inputs = statement.to_inputs(verifier.slots());
    let inputs: Vec<_> = inputs.map_err(|error| NotPassed::Invalid(error.to_string()))?;
    let statement = Groth16::<Bls12_381>::compact_statement(&inputs);
    let number = NEXT_REQUEST_NUMBER.fetch_add(1, Ordering::Relaxed);
    let request = Request::new(CLIENT, &number.to_string(), KIND.name(), proof.to_bytes());
    let request = Request {
        // The source is the block, so an invalid proof of one block does not slow down others.
        source: block.to_string().into(),
        ..request.under(key, statement)
    };
    let verdict = handle.verify(request).await;
    match verdict.map(|verdict| verdict.status) {
        Ok(Status::Valid) => Ok(()),
        Ok(Status::Invalid(reason)) => Err(NotPassed::Invalid(reason.to_string())),
        Ok(Status::Unavailable(reason)) => Err(NotPassed::Unknown(reason.to_string())),
        Err(refused) => Err(NotPassed::Unknown(refused.to_string())),
    }
}
