//! A chain in memory: blocks, a pool, fees, reorganisations, nodes that fail and show receipts late; and a contract that counts.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use alloy_primitives::B256;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_ethereum::{Recovered, Transaction};
use proofmill_settlement::{
    CallFailure, Chain, ChainError, Contract, Emission, Head, Inclusion, Market, Sent,
};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::time::Instant;

/// Time between two blocks.
const INTERVAL_MS: u64 = 1000;

/// Gas of one call.
pub(crate) const GAS: u64 = 50_000;

/// Probabilities and bounds of failures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// Probability that a request fails.
    pub(crate) faults: f64,
    /// Probability of a reorganisation at a block.
    pub(crate) reorganisations: f64,
    /// Maximum number of blocks that a reorganisation replaces.
    pub(crate) depth_max: usize,
    /// Probability that the pool forgets its transactions at a block.
    pub(crate) forgets: f64,
    /// Probability that another program uses the account at a block.
    pub(crate) foreign: f64,
    /// Probability that the base fee rises twentyfold for some blocks.
    pub(crate) spikes: f64,
    /// Probability that the receipt of a transaction is not shown at a request.
    pub(crate) late: f64,
}

impl Weather {
    pub(crate) const CALM: Self = Self {
        faults: 0.0,
        reorganisations: 0.0,
        depth_max: 1,
        forgets: 0.0,
        foreign: 0.0,
        spikes: 0.0,
        late: 0.0,
    };
}

#[derive(Clone)]
struct Block {
    transactions: Vec<(B256, Option<Transaction>, Inclusion)>,
    /// The account's nonce after the block.
    nonce: u64,
    /// The number that the contract expects after the block.
    next: u64,
}

/// The state of the chain, its node and its contract.
pub(crate) struct World {
    random: StdRng,
    pub(crate) weather: Weather,
    blocks: Vec<Block>,
    pool: Vec<(B256, Transaction)>,
    base_fee: u128,
    /// Number of blocks that the present spike lasts.
    spike: u32,
    /// Time of the world when the present life began, in milliseconds.
    began_ms: u64,
    /// Begin of the present life, in its runtime's time.
    life: Option<Instant>,
    pub(crate) undone: usize,
    pub(crate) reverted: usize,
    pub(crate) replaced: usize,
}

impl World {
    fn now_ms(&self) -> u64 {
        let life = self
            .life
            .map_or(0, |life| life.elapsed().as_millis() as u64);
        self.began_ms + life
    }

    fn last(&self) -> &Block {
        self.blocks.last().expect("a genesis block")
    }

    /// Number that the contract expects.
    pub(crate) fn next(&self) -> u64 {
        self.last().next
    }

    /// Wei spent on transactions in blocks, and the bound of their offers.
    pub(crate) fn spent(&self) -> (u128, u128) {
        let mut sums = (0, 0);
        for (_, transaction, inclusion) in self.blocks.iter().flat_map(|block| &block.transactions)
        {
            if let Some(transaction) = transaction {
                sums.0 += u128::from(inclusion.gas_used) * inclusion.gas_price;
                sums.1 += u128::from(transaction.gas_limit) * transaction.max_fee_per_gas;
            }
        }
        sums
    }

    /// Begins the chain anew, with an account that has sent nothing for so many nonces: a development node that lost its data.
    pub(crate) fn restart(&mut self, nonce: u64) {
        let genesis = Block {
            transactions: Vec::new(),
            nonce,
            next: 0,
        };
        // Time goes on: the blocks that it would have are empty.
        let count = self.blocks.len();
        self.blocks = vec![genesis; count];
        self.pool.clear();
    }

    /// Number of transactions of the account in the chain.
    pub(crate) fn included(&self) -> usize {
        let transactions = self.blocks.iter().flat_map(|block| &block.transactions);
        transactions.count()
    }

    fn advance(&mut self) {
        while (self.blocks.len() as u64) * INTERVAL_MS <= self.now_ms() {
            self.mine();
        }
    }

    fn mine(&mut self) {
        let weather = self.weather;
        if self.random.random_bool(weather.reorganisations) {
            self.reorganise();
        }
        if self.random.random_bool(weather.forgets) {
            self.pool.clear();
        }
        self.spike = self.spike.saturating_sub(1);
        if self.random.random_bool(weather.spikes) {
            self.spike = 10;
        }
        self.base_fee = match self.spike {
            0 => self.random.random_range(8..12),
            _ => self.random.random_range(150..250),
        };
        self.add_block();
        if self.random.random_bool(weather.foreign) {
            let hash = B256::from(self.random.random::<[u8; 32]>());
            let inclusion = self.inclusion(true, 1);
            let last = self.blocks.last_mut().expect("just added");
            last.transactions.push((hash, None, inclusion));
            last.nonce += 1;
        }
    }

    fn inclusion(&self, succeeded: bool, gas_price: u128) -> Inclusion {
        Inclusion {
            block: self.blocks.len() as u64,
            succeeded,
            gas_used: GAS,
            gas_price,
        }
    }

    fn add_block(&mut self) {
        let (mut nonce, mut next) = (self.last().nonce, self.last().next);
        let mut transactions = Vec::new();
        while let Some(at) = self.pool.iter().position(|(_, transaction)| {
            transaction.nonce == nonce && transaction.max_fee_per_gas > self.base_fee
        }) {
            let (hash, transaction) = self.pool.remove(at);
            let result = execute(&transaction.data, next);
            let price = self.base_fee + transaction.max_priority_fee_per_gas;
            let price = price.min(transaction.max_fee_per_gas);
            self.reverted += usize::from(result.is_err());
            let inclusion = self.inclusion(result.is_ok(), price);
            next = result.unwrap_or(next);
            nonce += 1;
            transactions.push((hash, Some(transaction), inclusion));
        }
        self.pool
            .retain(|(_, transaction)| transaction.nonce >= nonce);
        self.blocks.push(Block {
            transactions,
            nonce,
            next,
        });
    }

    /// Replaces some of the last blocks by as many; what was in them comes back in one of these or later, or is forgotten.
    fn reorganise(&mut self) {
        let depth = self.random.random_range(1..=self.weather.depth_max);
        let depth = depth.min(self.blocks.len() - 1);
        let kept = self.blocks.len() - depth;
        let keeps = self.random.random_bool(0.5);
        for block in self.blocks.split_off(kept) {
            for (hash, transaction, _) in block.transactions {
                self.undone += 1;
                self.pool
                    .extend(transaction.filter(|_| keeps).map(|known| (hash, known)));
            }
        }
        for _ in 0..depth {
            if self.random.random_bool(0.5) {
                self.add_block();
            } else {
                let pool = std::mem::take(&mut self.pool);
                self.add_block();
                self.pool = pool;
            }
        }
    }

    fn take(&mut self, raw: &[u8]) -> Sent {
        let recovered = Recovered::decode(raw).expect("a signed transaction");
        let (transaction, hash) = (recovered.transaction, recovered.hash);
        if transaction.nonce < self.last().nonce {
            return Sent::NonceUsed;
        }
        let known = self
            .pool
            .iter_mut()
            .find(|(_, known)| known.nonce == transaction.nonce);
        let Some(known) = known else {
            self.pool.push((hash, transaction));
            return Sent::Taken;
        };
        if known.0 == hash {
            return Sent::Taken;
        }
        let old = &known.1;
        let is_higher = transaction.max_fee_per_gas * 100 >= old.max_fee_per_gas * 110
            && transaction.max_priority_fee_per_gas * 100 >= old.max_priority_fee_per_gas * 110;
        if !is_higher {
            return Sent::FeesTooLow("replacement transaction underpriced".to_owned());
        }
        *known = (hash, transaction);
        self.replaced += 1;
        Sent::Taken
    }
}

/// The number that the contract expects after this call, or the number that it expects instead.
fn execute(data: &[u8], mut next: u64) -> Result<u64, u64> {
    for number in data[1..].as_chunks::<8>().0 {
        if u64::from_be_bytes(*number) != next {
            return Err(next);
        }
        next += 1;
    }
    Ok(next)
}

/// The chain, shared with the test.
#[derive(Clone)]
pub(crate) struct Simulated(Arc<Mutex<World>>);

impl Simulated {
    pub(crate) fn new(seed: u64, weather: Weather) -> Self {
        let genesis = Block {
            transactions: Vec::new(),
            nonce: 3,
            next: 0,
        };
        Self(Arc::new(Mutex::new(World {
            random: StdRng::seed_from_u64(seed),
            weather,
            blocks: vec![genesis],
            pool: Vec::new(),
            base_fee: 10,
            spike: 0,
            began_ms: 0,
            life: None,
            undone: 0,
            reverted: 0,
            replaced: 0,
        })))
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("no panic holds it")
    }

    /// Begins a life: a runtime whose clock starts anew.
    pub(crate) fn begin_life(&self) {
        self.world().life = Some(Instant::now());
    }

    pub(crate) fn end_life(&self) {
        let mut world = self.world();
        world.began_ms = world.now_ms();
        world.life = None;
    }

    pub(crate) fn clock(&self) -> Arc<dyn Fn() -> u64 + Send + Sync> {
        let chain = self.clone();
        Arc::new(move || 1_700_000_000_000 + chain.world().now_ms())
    }

    /// A request: time passes before and after its effect, and it may fail with or without one.
    async fn request<T>(&self, serve: impl FnOnce(&mut World) -> T) -> Result<T, ChainError> {
        self.latency().await;
        let (answer, fails) = {
            let mut world = self.world();
            world.advance();
            let faults = world.weather.faults;
            if world.random.random_bool(faults) {
                return Err(ChainError("no answer".to_owned()));
            }
            let answer = serve(&mut world);
            (answer, world.random.random_bool(faults))
        };
        self.latency().await;
        match fails {
            true => Err(ChainError("no answer in time".to_owned())),
            false => Ok(answer),
        }
    }

    async fn latency(&self) {
        let ms = self.world().random.random_range(1..40);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

impl Chain for Simulated {
    fn head(&self) -> BoxFuture<'_, Result<Head, ChainError>> {
        Box::pin(self.request(|world| Head {
            number: world.blocks.len() as u64 - 1,
            market: Market {
                base_fee: world.base_fee,
                priority_fee: 2,
            },
        }))
    }

    fn nonce(&self) -> BoxFuture<'_, Result<u64, ChainError>> {
        Box::pin(self.request(|world| world.last().nonce))
    }

    fn call(&self, data: Bytes, block: Option<u64>) -> BoxFuture<'_, Result<Bytes, CallFailure>> {
        Box::pin(async move {
            let answer = self.request(|world| {
                let block = block.map_or(world.blocks.len() - 1, |block| block as usize);
                let next = world.blocks.get(block).map(|block| block.next)?;
                let asked = u64::from_be_bytes(data[1..].try_into().expect("a number"));
                let mut word = [0; 32];
                word[31] = u8::from(asked < next);
                Some(Bytes::copy_from_slice(&word))
            });
            let missing = || CallFailure::Chain(ChainError("no such block".to_owned()));
            answer.await?.ok_or_else(missing)
        })
    }

    fn estimate_gas(&self, data: Bytes) -> BoxFuture<'_, Result<u64, CallFailure>> {
        Box::pin(async move {
            let result = self
                .request(|world| execute(&data, world.last().next))
                .await?;
            let revert = |next: u64| CallFailure::Reverted(next.to_be_bytes().to_vec().into());
            result.map(|_| GAS).map_err(revert)
        })
    }

    fn revert_at(&self, data: Bytes, block: u64) -> BoxFuture<'_, Result<Bytes, ChainError>> {
        Box::pin(self.request(move |world| {
            let next = world
                .blocks
                .get(block as usize)
                .map_or(0, |block| block.next);
            match execute(&data, next) {
                Ok(_) => Bytes::new(),
                Err(next) => next.to_be_bytes().to_vec().into(),
            }
        }))
    }

    fn send(&self, raw: Bytes) -> BoxFuture<'_, Result<Sent, ChainError>> {
        Box::pin(self.request(move |world| world.take(&raw)))
    }

    fn inclusion(&self, hash: B256) -> BoxFuture<'_, Result<Option<Inclusion>, ChainError>> {
        Box::pin(self.request(move |world| {
            let late = world.weather.late;
            if world.random.random_bool(late) {
                return None;
            }
            let mut all = world.blocks.iter().flat_map(|block| &block.transactions);
            all.find(|(known, ..)| *known == hash)
                .map(|(.., inclusion)| *inclusion)
        }))
    }
}

/// The contract: it takes the numbers 0, 1, … in order.
pub(crate) struct Counter;

impl Contract for Counter {
    fn batch_max(&self) -> usize {
        4
    }

    fn settle(&self, emissions: &[Emission]) -> Result<Bytes, String> {
        let mut data = vec![1];
        data.extend(
            emissions
                .iter()
                .flat_map(|emission| emission.first.to_be_bytes()),
        );
        Ok(data.into())
    }

    fn is_settled(&self, emission: &Emission) -> Result<Bytes, String> {
        let mut data = vec![2];
        data.extend(emission.first.to_be_bytes());
        Ok(data.into())
    }

    fn explain(&self, revert: &[u8]) -> String {
        match revert.try_into().map(u64::from_be_bytes) {
            Ok(next) => format!("expected {next}"),
            Err(_) => "no reason".to_owned(),
        }
    }
}
