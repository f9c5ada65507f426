//! `proofmill zkpu conform`

use std::time::{Duration, Instant};

use proofmill_accelerator::{Device, Error};
use proofmill_zkpu::conformance::{products, protocol};
use proofmill_zkpu::device::{ZkpuOptions, zkpu};
use serde_json::{Value, json};

use super::{connect, host_options};
use crate::args::zkpu::Conform;
use crate::failure::Failure;
use crate::output;
use crate::stages::{milliseconds, short};

/// The outcome of a case.
struct Outcome {
    group: &'static str,
    name: String,
    took: Duration,
    /// The device's failing.
    why: Option<String>,
}

/// Runs cases one after the other and shows how each ended.
struct Suite<'a> {
    args: &'a Conform,
    outcomes: Vec<Outcome>,
    /// Cases that were not asked, since the kernel refuses their commands by itself.
    kept_back: usize,
}

pub(super) fn run(args: &Conform) -> Result<(), Failure> {
    let began = Instant::now();
    let mut suite = Suite {
        args,
        outcomes: Vec::new(),
        kept_back: 0,
    };
    let device = suite.protocol()?;
    suite.products()?;
    suite.report(&device, began.elapsed())
}

// === impl Suite ===

impl Suite<'_> {
    /// Speaks the protocol, and answers the device's name. The device is free afterwards.
    fn protocol(&mut self) -> Result<String, Failure> {
        let driver = connect(&self.args.device)?;
        let identity = driver.identity();
        let name = format!("{} {}", identity.model, identity.serial);
        self.say(&format!(
            "{name}, firmware {}, at {}",
            identity.firmware, self.args.device.address
        ))?;
        for case in protocol(driver.capability()) {
            if !case.reaches(&driver) {
                self.say(&format!(
                    "  --      {}: not asked, the kernel keeps its command back",
                    case.name()
                ))?;
                self.kept_back += 1;
                continue;
            }
            self.case("protocol", case.name(), || case.run(&driver))?;
            if let Some(error) = driver.failure() {
                return Err(lost(&error.to_string(), case.name()));
            }
        }
        Ok(name)
    }

    fn products(&mut self) -> Result<(), Failure> {
        let options = ZkpuOptions::new(host_options(&self.args.device));
        let device = zkpu(options).map_err(|error: Error| Failure::of(&error))?;
        for case in products(self.args.max_log_n.into()) {
            self.case("products", case.name(), || case.run(&device))?;
            if let Some(error) = device.failure() {
                return Err(lost(&error.to_string(), case.name()));
            }
        }
        Ok(())
    }

    fn case(
        &mut self,
        group: &'static str,
        name: &str,
        run: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        let why = run().err();
        let took = began.elapsed();
        match &why {
            None => self.say(&format!("  ok      {name} ({})", short(took)))?,
            Some(why) => self.say(&format!("  FAILED  {name}\n          {why}"))?,
        }
        self.outcomes.push(Outcome {
            group,
            name: name.to_owned(),
            took,
            why,
        });
        Ok(())
    }

    fn say(&self, line: &str) -> Result<(), Failure> {
        match self.args.json {
            true => Ok(()),
            false => output::line(output::plain(line)),
        }
    }

    fn report(&self, device: &str, took: Duration) -> Result<(), Failure> {
        let failed = self.outcomes.iter().filter(|it| it.why.is_some()).count();
        let passed = self.outcomes.len() - failed;
        if self.args.json {
            let answer = json!({
                "device": device,
                "max_log_n": self.args.max_log_n,
                "passed": passed,
                "failed": failed,
                "kept_back": self.kept_back,
                "total_ms": milliseconds(took),
                "cases": self.outcomes.iter().map(Outcome::to_json).collect::<Value>(),
            });
            output::line(answer.to_string())?;
        }
        let kept_back = match self.kept_back {
            0 => String::new(),
            count => format!(", {count} kept back by the kernel"),
        };
        self.say(&format!(
            "{passed} cases passed, {failed} failed{kept_back}, in {}",
            short(took)
        ))?;
        match failed {
            0 => Ok(()),
            failed => Err(Failure::new(format!(
                "the device does not conform: {failed} cases failed"
            ))
            .help("docs/zkpu.md has the rules; the first failed case may have caused the others")),
        }
    }
}

/// The failure when the device is gone, so that no more cases can be run.
fn lost(error: &str, case: &str) -> Failure {
    Failure::new(format!("the device is lost after {case:?}: {error}"))
        .help("no command may end the connection: docs/zkpu.md has the status for each")
}

// === impl Outcome ===

impl Outcome {
    fn to_json(&self) -> Value {
        json!({
            "group": self.group,
            "name": self.name,
            "passed": self.why.is_none(),
            "why": self.why,
            "ms": milliseconds(self.took),
        })
    }
}
