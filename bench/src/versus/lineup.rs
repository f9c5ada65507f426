//! Who takes part in one comparison, and how they take turns.

use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Map, Value};

use super::{Comparison, Contender, Measured, Options, Purpose};
use crate::harness::{Figures, Progress};
use crate::peers::command;

/// What a peer says when it is asked to take part.
pub(crate) enum Offer<'a> {
    /// It does; some run in more than one way.
    Runs(Vec<Contender<'a>>),
    /// It cannot, and why.
    LeftOut(String),
}

/// Who takes part in one comparison.
pub(crate) struct Lineup<'a> {
    options: &'a Options,
    settings: Map<String, Value>,
    ours: Contender<'a>,
    peers: Vec<Contender<'a>>,
    notes: Vec<String>,
}

// === impl Lineup ===

impl<'a> Lineup<'a> {
    /// Ours, and the settings that tell this comparison from others. The settings fill the
    /// placeholders of peers that are commands, who are set up here as well.
    pub(crate) fn new(
        options: &'a Options,
        settings: Map<String, Value>,
        ours: Contender<'a>,
    ) -> Self {
        let peers = options
            .commands
            .iter()
            .map(|peer| command::contender(peer, &settings))
            .collect();
        Self {
            options,
            settings,
            ours,
            peers,
            notes: Vec::new(),
        }
    }

    /// Asks a peer, if it is wanted. One that is wanted by name and cannot is an error.
    pub(crate) fn ask(
        &mut self,
        name: &str,
        peer: impl FnOnce() -> anyhow::Result<Offer<'a>>,
    ) -> anyhow::Result<()> {
        if !self.options.wants(name) {
            return Ok(());
        }
        match peer().with_context(|| format!("setting up {name}"))? {
            Offer::Runs(contenders) => self.peers.extend(contenders),
            Offer::LeftOut(why) => {
                anyhow::ensure!(!self.options.names(name), "{name} cannot take part: {why}");
                self.notes.push(format!("{name} is left out: {why}"));
            }
        }
        Ok(())
    }

    /// Ours in another way, to be compared with.
    pub(crate) fn add(&mut self, contender: Contender<'a>) {
        self.peers.push(contender);
    }

    /// A line below the table.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Checks that all compute the same, then lets them run in turns. Each round begins with
    /// another contender, so that none always runs after the same one.
    pub(crate) fn run(mut self) -> anyhow::Result<Comparison> {
        let mut all = vec![self.ours];
        all.append(&mut self.peers);
        let expected = all[0].run(Purpose::Check).context("our own run")?.result;
        for peer in &mut all[1..] {
            let name = peer.name.clone();
            let found = peer
                .run(Purpose::Check)
                .with_context(|| format!("the first run of {name}"))?
                .result;
            match (&expected, found) {
                (Some(expected), Some(found)) => anyhow::ensure!(
                    *expected == found,
                    "{name} computed something else than we did: {found}, and we {expected}"
                ),
                _ => self
                    .notes
                    .push(format!("{name}: its result is not compared")),
            }
        }

        let mut runs: Vec<Runs> = all.iter().map(|_| Runs::default()).collect();
        let samples = self.options.samples as usize;
        let progress = Progress::new("rounds", samples);
        let began = Instant::now();
        for round in 0..samples {
            if began.elapsed() > Duration::from_secs(self.options.seconds) && round > 0 {
                self.notes.push(format!(
                    "{round} rounds of {samples}: --seconds {} had passed",
                    self.options.seconds
                ));
                break;
            }
            for turn in 0..all.len() {
                let index = (round + turn) % all.len();
                if runs[index].ms.len() >= samples {
                    continue;
                }
                let sample = all[index]
                    .run(Purpose::Measure)
                    .with_context(|| format!("a run of {}", all[index].name))?;
                runs[index].add(sample);
            }
            progress.set(round + 1);
        }
        drop(progress);

        let mut measured = all
            .iter()
            .zip(runs)
            .map(|(contender, runs)| runs.finish(&contender.name));
        let ours = measured.next().context("ours is the first")?;
        Ok(Comparison {
            settings: self.settings,
            ours,
            peers: measured.collect(),
            notes: self.notes,
        })
    }
}

/// The runs of one contender.
#[derive(Default)]
struct Runs {
    ms: Vec<f64>,
    stages: Vec<(&'static str, Vec<f64>)>,
}

impl Runs {
    fn add(&mut self, sample: super::Sample) {
        self.ms.extend(sample.ms);
        for (name, ms) in sample.stages {
            match self.stages.iter_mut().find(|(known, _)| *known == name) {
                Some((_, runs)) => runs.push(ms),
                None => self.stages.push((name, vec![ms])),
            }
        }
    }

    fn finish(self, name: &str) -> Measured {
        Measured {
            name: name.to_owned(),
            ms: Figures::of(self.ms),
            stages: self
                .stages
                .into_iter()
                .map(|(name, runs)| (name, Figures::of(runs)))
                .collect(),
        }
    }
}
