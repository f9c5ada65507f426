//! The owner of the journal: sends, watches and replaces transactions.
//!
//! Every future here may be dropped at any point, and the process killed: what counts is in the journal before it is on the chain.

use std::collections::BTreeMap;
use std::time::Duration;

use alloy_primitives::U256;
use bytes::Bytes;
use proofmill_ethereum::Transaction;

use crate::chain::{CallFailure, Head, Inclusion, Sent};
use crate::contract::Emission;
use crate::error::SettleError;
use crate::event::Event;
use crate::fees::Fees;
use crate::journal::{Attempt, EmissionRange, Entry, Journal};
use crate::options::Options;
use crate::step::{ATTEMPTS_MAX, MISSING_ROUNDS, Seen, Step, decide, is_due};

/// Maximum calldata of a transaction with several emissions; nodes take 128 KiB with everything.
const DATA_MAX: usize = 96 << 10;

/// Maximum calldata of a transaction with one emission.
const DATA_MAX_ALONE: usize = 126 << 10;

/// Maximum estimate of a transaction with several emissions: with the reserve it is below the bound of one transaction.
const GAS_MAX: u64 = 13_900_000;

/// Maximum gas of a transaction (EIP-7825).
const TRANSACTION_GAS_MAX: u64 = 1 << 24;

/// Rounds in which the contract may say that what was settled is not: nodes behind one address may differ by some blocks.
const DENIED_ROUNDS: u32 = 10;

/// Time between two log lines about a wait.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Gas on top of a fifth more than the estimate: the state may change between estimate and block.
const GAS_RESERVE: u64 = 20_000;

/// Transactions of one account to one contract.
pub(crate) struct Settler {
    options: Options,
    journal: Journal,
    /// State of the journal's transactions by nonce; missing for those that were not looked at.
    progress: BTreeMap<u64, Progress>,
}

/// State of a transaction, as the last looks at the chain showed it.
#[derive(Clone, Debug, Default)]
struct Progress {
    state: State,
    /// Rounds in which the nonce was used and no receipt was there.
    missing: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum State {
    /// In no block, or in one that is too young.
    #[default]
    Open,
    /// In a block that is too young to count.
    Included,
    Settled,
    /// In a block without effect, for this reason, which was not told yet.
    Reverted(String),
    /// In a block without effect, which was told.
    Told,
    /// As the last, and no reorganisation is expected to undo it: not looked at any more.
    Final {
        /// Whether it had its effect.
        succeeded: bool,
    },
}

// === impl Settler ===

impl Settler {
    pub(crate) fn new(options: Options, journal: Journal) -> Self {
        Self {
            options,
            journal,
            progress: BTreeMap::new(),
        }
    }

    /// Time between two looks at the chain.
    pub(crate) fn poll(&self) -> Duration {
        self.options.poll
    }

    /// Whether a reorganisation may still undo a transaction.
    pub(crate) fn has_to_watch(&self) -> bool {
        let mut nonces = self.journal.entries().keys();
        nonces.any(|nonce| !self.is_final(*nonce))
    }

    /// Settles emissions, in order; returns once all have their confirmations.
    pub(crate) async fn settle(&mut self, emissions: &[Emission]) -> Result<(), SettleError> {
        // Transactions of an earlier run may be the ones that settle these emissions.
        self.conclude().await?;
        let mut open = emissions;
        let mut denied = 0;
        loop {
            open = self.skip_settled(open).await?;
            let Some(first) = open.first() else {
                return Ok(());
            };
            if !self.has_settled(first) {
                denied = 0;
                self.send_some(open).await?;
                self.conclude().await?;
                continue;
            }
            // Another transaction for it would be paid for nothing, for ever.
            denied += 1;
            if denied > DENIED_ROUNDS {
                let (first, last) = (first.first, first.last);
                return Err(SettleError::Denied { first, last });
            }
            tokio::time::sleep(self.options.poll).await;
            self.look().await?;
        }
    }

    /// Whether a transaction to the contract that is in the chain settles this emission.
    fn has_settled(&self, emission: &Emission) -> bool {
        let to = self.options.to.into_array();
        let range = EmissionRange::from(emission);
        self.journal.entries().iter().any(|(nonce, entry)| {
            let is_in_chain = matches!(
                self.state(*nonce),
                State::Settled | State::Final { succeeded: true }
            );
            is_in_chain && entry.to == to && entry.emissions.contains(&range)
        })
    }

    /// Looks at the chain until every transaction has its confirmations, or is known to have no effect.
    ///
    /// # Errors
    /// [`SettleError::Reverted`] for a transaction that had no effect, once.
    async fn conclude(&mut self) -> Result<(), SettleError> {
        let mut waited = Duration::ZERO;
        loop {
            let head = self.look().await?;
            let mut nonces = self.journal.entries().keys();
            let is_open =
                |nonce: &&u64| matches!(self.state(**nonce), State::Open | State::Included);
            let Some(nonce) = nonces.find(is_open) else {
                break;
            };
            if waited >= TOLD_EVERY {
                waited = Duration::ZERO;
                self.tell_wait(*nonce, head.as_ref());
            }
            tokio::time::sleep(self.options.poll).await;
            waited += self.options.poll;
        }
        let mut failed = None;
        for (nonce, entry) in self.journal.entries() {
            if let State::Reverted(reason) = self.state(*nonce) {
                let (first, last) = entry.blocks();
                failed = Some((
                    *nonce,
                    SettleError::Reverted {
                        first,
                        last,
                        reason,
                    },
                ));
            }
        }
        let Some((nonce, error)) = failed else {
            return Ok(());
        };
        // If a reorganisation revives the call, the contract's order still admits each emission once.
        self.set(nonce, State::Told);
        Err(error)
    }

    /// Logs what a transaction waits for.
    fn tell_wait(&self, nonce: u64, head: Option<&Head>) {
        let Some((entry, head)) = self.journal.get(nonce).zip(head) else {
            return;
        };
        let (first, last) = entry.blocks();
        let (block, base_fee, max_fee) = (head.number, head.market.base_fee, entry.fees().max_fee);
        let why = match self.state(nonce) {
            State::Included => "it waits for confirmations",
            _ if max_fee <= base_fee => "the base fee is above its offer",
            _ => "no block has taken it",
        };
        tracing::warn!(
            nonce,
            first,
            last,
            block,
            base_fee,
            max_fee,
            "a settlement waits: {why}"
        );
    }

    /// The emissions from the first that the chain has not settled on. Waits while one is settled in young blocks only.
    async fn skip_settled<'a>(
        &mut self,
        mut emissions: &'a [Emission],
    ) -> Result<&'a [Emission], SettleError> {
        while let Some((emission, rest)) = emissions.split_first() {
            let question = self.options.contract.is_settled(emission);
            let question =
                question.map_err(|reason| refused(std::slice::from_ref(emission), reason))?;
            let head = self.options.chain.head().await?.number;
            let depth = self.options.rules.confirmations.saturating_sub(1);
            let confirmed = head.saturating_sub(depth);
            if self.ask(&question, Some(confirmed), emission).await? {
                emissions = rest;
            } else if self.ask(&question, None, emission).await? {
                tokio::time::sleep(self.options.poll).await;
                self.look().await?;
            } else {
                break;
            }
        }
        Ok(emissions)
    }

    /// Answer of the contract to a question, on block `block` or the last one.
    async fn ask(
        &self,
        question: &Bytes,
        block: Option<u64>,
        emission: &Emission,
    ) -> Result<bool, SettleError> {
        match self.options.chain.call(question.clone(), block).await {
            Ok(answer) if answer.len() == 32 => Ok(answer.iter().any(|byte| *byte != 0)),
            Ok(answer) => {
                let reason = format!(
                    "its answer whether it has settled them has {} bytes",
                    answer.len()
                );
                Err(refused(std::slice::from_ref(emission), reason))
            }
            // At a block before the contract's.
            Err(CallFailure::NoContract) if block.is_some() => Ok(false),
            Err(failure) => Err(self.failed(std::slice::from_ref(emission), failure)),
        }
    }

    /// Sends a transaction that settles one or more of `open`, from the first.
    async fn send_some(&mut self, open: &[Emission]) -> Result<(), SettleError> {
        let (count, data, gas_limit) = self.fit(open).await?;
        let emissions = &open[..count];
        let head = self.options.chain.head().await?;
        let policy = &self.options.rules.fees;
        let fees = policy.first(head.market);
        let fees = fees.ok_or(SettleError::FeesTooHigh {
            base_fee: head.market.base_fee,
            max_fee: policy.max_fee,
        })?;
        let mut nonce = self.options.chain.nonce().await?;
        while self.journal.get(nonce).is_some() {
            nonce += 1;
        }
        let entry = Entry {
            nonce,
            to: self.options.to.into_array(),
            emissions: emissions.iter().map(EmissionRange::from).collect(),
            data: data.to_vec(),
            gas_limit,
            attempts: Vec::new(),
            raw: Vec::new(),
        };
        let entry = self.sign(entry, fees).await?;
        self.progress.remove(&nonce);
        let event = Event::Signed {
            nonce,
            blocks: entry.blocks(),
            hash: entry.hashes().next().unwrap_or_default(),
        };
        self.journal.put(entry)?;
        self.tell(&event);
        self.offer(nonce, &head).await
    }

    /// The number of emissions that fit one transaction, its calldata, and its limit of gas.
    async fn fit(&self, open: &[Emission]) -> Result<(usize, Bytes, u64), SettleError> {
        let mut count = open.len().min(self.options.contract.batch_max().max(1));
        loop {
            let emissions = &open[..count];
            let data = self.options.contract.settle(emissions);
            let data = match data {
                Ok(data) => data,
                Err(_) if count > 1 => {
                    count /= 2;
                    continue;
                }
                Err(reason) => return Err(refused(emissions, reason)),
            };
            if data.len() > DATA_MAX && count > 1 {
                count /= 2;
                continue;
            }
            if data.len() > DATA_MAX_ALONE {
                let reason = format!("a call of {} bytes fits no transaction", data.len());
                return Err(refused(emissions, reason));
            }
            match self.options.chain.estimate_gas(data.clone()).await {
                Ok(gas) if gas > GAS_MAX && count > 1 => count /= 2,
                Ok(gas) => {
                    let mut limit = gas.saturating_add(gas / 5).saturating_add(GAS_RESERVE);
                    if gas <= TRANSACTION_GAS_MAX {
                        limit = limit.min(TRANSACTION_GAS_MAX);
                    }
                    return Ok((count, data, limit));
                }
                // Those before the one that is refused are settled; or all, in several transactions.
                Err(CallFailure::Reverted(_) | CallFailure::Halted(_)) if count > 1 => count /= 2,
                Err(failure) => return Err(self.failed(emissions, failure)),
            }
        }
    }

    /// `entry` with one more attempt, with these fees.
    async fn sign(&self, mut entry: Entry, fees: Fees) -> Result<Entry, SettleError> {
        let transaction = Transaction {
            chain_id: self.options.chain_id,
            nonce: entry.nonce,
            to: Some(entry.contract()),
            value: U256::ZERO,
            data: entry.data.clone().into(),
            gas_limit: entry.gas_limit,
            max_fee_per_gas: fees.max_fee,
            max_priority_fee_per_gas: fees.priority_fee,
        };
        let signed = self.options.signer.sign(&transaction).await;
        let signed = signed.map_err(|error| SettleError::Signer(error.to_string()))?;
        entry.attempts.push(Attempt {
            hash: signed.hash.0,
            max_fee: fees.max_fee,
            priority_fee: fees.priority_fee,
            signed_ms: (self.options.clock)(),
        });
        entry.raw = signed.raw.to_vec();
        Ok(entry)
    }

    /// Offers the last attempt of a transaction to the node; one with higher fees if the node asks for that.
    async fn offer(&mut self, nonce: u64, head: &Head) -> Result<(), SettleError> {
        let Some(entry) = self.journal.get(nonce) else {
            return Ok(());
        };
        match self.options.chain.send(entry.raw.clone().into()).await? {
            Sent::Taken | Sent::NonceUsed => Ok(()),
            // Another machine may offer for the nonce, too: it is not outbid at every look.
            Sent::FeesTooLow(_) if entry.attempts.len() > 1 && !self.may_replace(entry) => Ok(()),
            Sent::FeesTooLow(why) => {
                let fees = self
                    .options
                    .rules
                    .fees
                    .replacement(entry.fees(), head.market);
                let fees = fees.ok_or(SettleError::NotTaken(why))?;
                self.replace(nonce, fees).await
            }
            Sent::Refused(why) => Err(SettleError::NotTaken(why)),
        }
    }

    fn may_replace(&self, entry: &Entry) -> bool {
        let now_ms = (self.options.clock)();
        entry.attempts.len() < ATTEMPTS_MAX && is_due(entry, &self.options.rules, now_ms)
    }

    /// Replaces a transaction by one with these fees. It is offered in the next round if the node does not take it now.
    async fn replace(&mut self, nonce: u64, fees: Fees) -> Result<(), SettleError> {
        let Some(entry) = self.journal.get(nonce) else {
            return Ok(());
        };
        let entry = self.sign(entry.clone(), fees).await?;
        let raw = Bytes::from(entry.raw.clone());
        let blocks = entry.blocks();
        self.journal.put(entry)?;
        self.tell(&Event::Replaced {
            nonce,
            blocks,
            fees,
        });
        match self.options.chain.send(raw).await? {
            Sent::Refused(why) => Err(SettleError::NotTaken(why)),
            Sent::Taken | Sent::NonceUsed | Sent::FeesTooLow(_) => Ok(()),
        }
    }

    /// Looks at the chain once, and does what is to be done about each transaction, the lowest nonce first. Returns the last
    /// block; `None` if there is no transaction to look for.
    pub(crate) async fn look(&mut self) -> Result<Option<Head>, SettleError> {
        let nonces = self.journal.entries().keys().copied();
        let nonces: Vec<u64> = nonces.filter(|nonce| !self.is_final(*nonce)).collect();
        if nonces.is_empty() {
            return Ok(None);
        }
        let head = self.options.chain.head().await?;
        let used = self.options.chain.nonce().await?;
        let mut next = used;
        for nonce in nonces {
            let follows = nonce <= next;
            next = next.max(nonce.saturating_add(1));
            let Some(entry) = self.journal.get(nonce) else {
                continue;
            };
            let mut inclusion = None;
            for hash in entry.hashes() {
                inclusion = self.options.chain.inclusion(hash).await?;
                if inclusion.is_some() {
                    break;
                }
            }
            let seen = Seen {
                head: head.number,
                market: head.market,
                nonce: used,
                follows,
                inclusion,
            };
            let step = decide(entry, &self.options.rules, &seen, (self.options.clock)());
            self.take(nonce, step, &head).await?;
        }
        Ok(Some(head))
    }

    async fn take(&mut self, nonce: u64, step: Step, head: &Head) -> Result<(), SettleError> {
        if step != Step::Missing {
            self.progress.entry(nonce).or_default().missing = 0;
        }
        match step {
            Step::Wait => self.set(nonce, State::Included),
            Step::Settled(inclusion) => self.settled(nonce, inclusion),
            Step::Reverted(inclusion) => self.reverted(nonce, inclusion).await?,
            Step::Final(inclusion) => self.finish(nonce, inclusion).await?,
            Step::Offer => {
                self.reopen(nonce);
                self.offer(nonce, head).await?;
            }
            Step::Replace(fees) => {
                self.reopen(nonce);
                self.replace(nonce, fees).await?;
            }
            Step::Missing => {
                self.reopen(nonce);
                let progress = self.progress.entry(nonce).or_default();
                progress.missing += 1;
                if progress.missing >= MISSING_ROUNDS {
                    let blocks = self.blocks(nonce);
                    self.journal.remove(nonce)?;
                    self.progress.remove(&nonce);
                    self.tell(&Event::Lost { nonce, blocks });
                }
            }
        }
        Ok(())
    }

    /// Notes that a transaction is in no block.
    fn reopen(&mut self, nonce: u64) {
        if self.state(nonce) != State::Open {
            let blocks = self.blocks(nonce);
            self.tell(&Event::Undone { nonce, blocks });
        }
        self.set(nonce, State::Open);
    }

    fn settled(&mut self, nonce: u64, inclusion: Inclusion) {
        if matches!(self.state(nonce), State::Settled | State::Final { .. }) {
            return;
        }
        let attempts = self
            .journal
            .get(nonce)
            .map_or(0, |entry| entry.attempts.len());
        let event = Event::Settled {
            nonce,
            blocks: self.blocks(nonce),
            inclusion,
            attempts,
        };
        self.tell(&event);
        self.set(nonce, State::Settled);
    }

    async fn reverted(&mut self, nonce: u64, inclusion: Inclusion) -> Result<(), SettleError> {
        let is_known = matches!(self.state(nonce), State::Reverted(_) | State::Told);
        let Some(entry) = self.journal.get(nonce).filter(|_| !is_known) else {
            return Ok(());
        };
        let data = Bytes::from(entry.data.clone());
        let before = inclusion.block.saturating_sub(1);
        let is_same = entry.contract() == self.options.to;
        let revert = self.options.chain.revert_at(data, before).await;
        let reason = match revert {
            _ if !is_same => format!("{} is not the contract of now", entry.contract()),
            Ok(data) if !data.is_empty() => self.options.contract.explain(&data),
            _ if inclusion.gas_used >= entry.gas_limit => "it ran out of gas".to_owned(),
            _ => "the node does not say why".to_owned(),
        };
        let event = Event::Reverted {
            nonce,
            blocks: self.blocks(nonce),
            reason: reason.clone(),
            inclusion,
        };
        self.tell(&event);
        self.set(nonce, State::Reverted(reason));
        Ok(())
    }

    /// Ends the watch over a transaction. The journal keeps the last, for its nonce.
    async fn finish(&mut self, nonce: u64, inclusion: Inclusion) -> Result<(), SettleError> {
        match inclusion.succeeded {
            true => self.settled(nonce, inclusion),
            false => self.reverted(nonce, inclusion).await?,
        }
        if matches!(self.state(nonce), State::Reverted(_)) {
            // Not before its reason was told.
            return Ok(());
        }
        if self.journal.next_nonce() == Some(nonce.saturating_add(1)) {
            let succeeded = inclusion.succeeded;
            self.set(nonce, State::Final { succeeded });
            return Ok(());
        }
        self.journal.remove(nonce)?;
        self.progress.remove(&nonce);
        Ok(())
    }

    fn failed(&self, emissions: &[Emission], failure: CallFailure) -> SettleError {
        match failure {
            CallFailure::Chain(error) => error.into(),
            CallFailure::Reverted(data) => refused(emissions, self.options.contract.explain(&data)),
            CallFailure::Halted(why) => refused(emissions, why),
            CallFailure::NoContract => {
                let reason = format!("there is no contract at {}", self.options.to);
                refused(emissions, reason)
            }
        }
    }

    fn state(&self, nonce: u64) -> State {
        let progress = self.progress.get(&nonce);
        progress.map_or(State::Open, |progress| progress.state.clone())
    }

    fn is_final(&self, nonce: u64) -> bool {
        matches!(self.state(nonce), State::Final { .. })
    }

    fn set(&mut self, nonce: u64, state: State) {
        self.progress.entry(nonce).or_default().state = state;
    }

    fn blocks(&self, nonce: u64) -> (u64, u64) {
        self.journal.get(nonce).map_or((0, 0), Entry::blocks)
    }

    fn tell(&self, event: &Event) {
        event.log();
        if let Some(observer) = &self.options.observer {
            observer(event);
        }
    }
}

fn refused(emissions: &[Emission], reason: String) -> SettleError {
    SettleError::Refused {
        first: emissions.first().map_or(0, |emission| emission.first),
        last: emissions.last().map_or(0, |emission| emission.last),
        reason,
    }
}
