//! The contenders of one comparison, and the order of their runs.

use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Map, Value};

use super::{Comparison, Contender, Measured, Options, Purpose};
use crate::harness::{Figures, Progress};
use crate::peers::command;

/// A peer's answer for one comparison.
pub(crate) enum PeerAnswer<'a> {
    /// The peer takes part, in one way or several.
    Runs(Vec<Contender<'a>>),
    /// The peer does not support this comparison, for this reason; it is left out even if named by `--against`.
    LeftOut(String),
    /// The peer supports it but is not available here, for this reason; an error if named by `--against`.
    Missing(String),
}

/// The contenders of one comparison.
pub(crate) struct Contenders<'a> {
    options: &'a Options,
    settings: Map<String, Value>,
    ours: Contender<'a>,
    peers: Vec<Contender<'a>>,
    /// Names of the peers that this comparison supports.
    known: Vec<String>,
    notes: Vec<String>,
}

// === impl Contenders ===

impl<'a> Contenders<'a> {
    /// A comparison of our contender with the peers that are given as commands. `settings` identify
    /// the comparison, and fill the placeholders of the commands.
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
            known: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds the contenders of the peer `name`, if the options want it. `peer` sets it up. Fails if the
    /// peer is missing and was named by `--against`.
    pub(crate) fn add_peer(
        &mut self,
        name: &str,
        peer: impl FnOnce() -> anyhow::Result<PeerAnswer<'a>>,
    ) -> anyhow::Result<()> {
        self.known.push(name.to_owned());
        if !self.options.wants(name) {
            return Ok(());
        }
        match peer().with_context(|| format!("setting up {name}"))? {
            PeerAnswer::Runs(contenders) => self.peers.extend(contenders),
            PeerAnswer::Missing(why) if self.options.is_named(name) => {
                anyhow::bail!("{name} cannot take part: {why}");
            }
            PeerAnswer::LeftOut(why) | PeerAnswer::Missing(why) => {
                self.notes.push(format!("{name} is left out: {why}"));
            }
        }
        Ok(())
    }

    /// Adds a note for each peer that was named by `--against` and that this comparison does not
    /// support.
    fn note_unknown_peers(&mut self) {
        let known = &self.known;
        let named = self.options.named_peers();
        let unknown = named.filter(|name| !known.iter().any(|known| known == name));
        let why = "this comparison does not call it";
        self.notes
            .extend(unknown.map(|name| format!("{name} is left out: {why}")));
    }

    /// Adds another contender, such as a second variant of ours.
    pub(crate) fn add_contender(&mut self, contender: Contender<'a>) {
        self.peers.push(contender);
    }

    /// Adds a line below the table.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Checks that all contenders compute the same result, then runs them in turns and returns their
    /// times. Each round begins with another contender, which spreads the influence that a run has
    /// on the next one.
    pub(crate) fn run(mut self) -> anyhow::Result<Comparison> {
        self.note_unknown_peers();
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::versus::Sample;

    #[derive(Parser)]
    struct Args {
        #[command(flatten)]
        options: Options,
    }

    fn options(against: &str) -> Options {
        Args::parse_from(["bench", "--samples", "1", "--against", against]).options
    }

    fn instant(name: &str) -> Contender<'static> {
        Contender::new(name, |_| {
            Ok(Sample {
                ms: vec![1.0],
                result: Some("the same".to_owned()),
                stages: Vec::new(),
            })
        })
    }

    #[test]
    fn a_peer_that_lacks_the_group_is_left_out_with_a_note_also_when_it_is_named() {
        for against in ["blst,halo2curves", "all"] {
            let options = options(against);
            let mut contenders = Contenders::new(&options, Map::new(), instant("proofmill"));
            let lacks = || {
                Ok(PeerAnswer::LeftOut(
                    "it does not have this group".to_owned(),
                ))
            };
            contenders.add_peer("blst", lacks).unwrap();
            let offers = || Ok(PeerAnswer::Runs(vec![instant("halo2curves")]));
            contenders.add_peer("halo2curves", offers).unwrap();
            let comparison = contenders.run().unwrap();
            let names: Vec<&str> = comparison.peers.iter().map(|peer| &*peer.name).collect();
            assert_eq!(names, ["halo2curves"]);
            let note = "blst is left out: it does not have this group";
            assert_eq!(comparison.notes, [note]);
        }
    }

    #[test]
    fn a_peer_that_is_not_here_is_an_error_only_when_it_is_named() {
        let why = || "`go` is not installed".to_owned();
        let named = options("gnark");
        let mut contenders = Contenders::new(&named, Map::new(), instant("proofmill"));
        let error = contenders
            .add_peer("gnark", || Ok(PeerAnswer::Missing(why())))
            .unwrap_err()
            .to_string();
        assert_eq!(error, "gnark cannot take part: `go` is not installed");

        let all = options("all");
        let mut contenders = Contenders::new(&all, Map::new(), instant("proofmill"));
        contenders
            .add_peer("gnark", || Ok(PeerAnswer::Missing(why())))
            .unwrap();
        let notes = contenders.run().unwrap().notes;
        assert_eq!(notes, ["gnark is left out: `go` is not installed"]);
    }

    #[test]
    fn a_peer_that_a_comparison_does_not_know_is_noted() {
        let options = options("snarkjs,none");
        let contenders = Contenders::new(&options, Map::new(), instant("proofmill"));
        let notes = contenders.run().unwrap().notes;
        assert_eq!(
            notes,
            ["snarkjs is left out: this comparison does not call it"]
        );
    }
}
