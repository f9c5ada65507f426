//! Extensions by the program that embeds the orchestrator: provers, sources, strategies, engines.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use proofmill_workflow as file;
use serde_json::Value;

use crate::coordinator::ResultCheck;
use crate::executor::engine::Endpoint;
use crate::executor::{Executor, Native, Prover};
use crate::plan::StrategyMaker;
use crate::sink::{EmissionCheck, PayloadForm};
use crate::source::Source;

/// Makes a stage's executor. The error is a text for the user.
pub type ExecutorMaker =
    Arc<dyn Fn(&file::Dispatcher, &Value) -> Result<Arc<dyn Executor>, String> + Send + Sync>;

/// Makes a source of a kind that the orchestrator itself does not implement; `None` for other
/// kinds.
pub type SourceMaker =
    Arc<dyn Fn(&file::SourceKind) -> Option<Result<Box<dyn Source>, String>> + Send + Sync>;

/// Makes the endpoints of a stage's engines, in their order.
pub type EndpointMaker = Arc<dyn Fn(&file::EngineExecutor) -> Vec<Arc<dyn Endpoint>> + Send + Sync>;

/// Makes the check that the emitting process applies to a stage's results, from the stage's
/// `params`.
pub type CheckMaker = Arc<dyn Fn(&Value) -> Result<Arc<dyn EmissionCheck>, String> + Send + Sync>;

/// Makes the check that the coordinator applies to a stage's results, from the stage's `params`.
pub type ResultCheckMaker =
    Arc<dyn Fn(&Value) -> Result<Arc<dyn ResultCheck>, String> + Send + Sync>;

/// Provers, sources, strategies and forms of payloads by name, and the maker of engine endpoints.
#[derive(Clone, Default)]
pub struct Registry {
    executors: BTreeMap<String, ExecutorMaker>,
    checks: BTreeMap<String, CheckMaker>,
    result_checks: BTreeMap<String, ResultCheckMaker>,
    endpoints: Option<EndpointMaker>,
    strategies: BTreeMap<String, StrategyMaker>,
    sources: Vec<SourceMaker>,
    payload_forms: BTreeMap<String, PayloadForm>,
}

// === impl Registry ===

impl Registry {
    /// Registers a native prover: `make` is called for each stage that names it, with the `params`
    /// of the workflow file.
    pub fn prover<P, F>(&mut self, name: &str, make: F) -> &mut Self
    where
        P: Prover,
        F: Fn(&Value) -> Result<P, String> + Send + Sync + 'static,
    {
        self.executor(name, move |stage, params| {
            let prover = Arc::new(make(params)?);
            Ok(Arc::new(Native::new(
                prover,
                stage.fan_out,
                stage.time_limit,
            )))
        })
    }

    /// As [`Registry::prover`], for a prover that verifies: the emitting process checks the results
    /// of stages that run it and are marked `verify = true`.
    pub fn verifier<P, F>(&mut self, name: &str, make: F) -> &mut Self
    where
        P: Prover + EmissionCheck,
        F: Fn(&Value) -> Result<P, String> + Send + Sync + 'static,
    {
        let make = Arc::new(make);
        let made = make.clone();
        let check: CheckMaker = Arc::new(move |params| Ok(Arc::new(made(params)?)));
        self.checks.insert(name.to_owned(), check);
        self.prover(name, move |params| make(params))
    }

    /// As [`Registry::prover`], for a prover whose results can be checked: the coordinator checks those of
    /// stages that run it and are marked `check_results = true`.
    pub fn checked_prover<P, F>(&mut self, name: &str, make: F) -> &mut Self
    where
        P: Prover + ResultCheck,
        F: Fn(&Value) -> Result<P, String> + Send + Sync + 'static,
    {
        let make = Arc::new(make);
        let made = make.clone();
        let check: ResultCheckMaker = Arc::new(move |params| Ok(Arc::new(made(params)?)));
        self.result_checks.insert(name.to_owned(), check);
        self.prover(name, move |params| make(params))
    }

    /// Registers an executor of any kind under the name of a native prover.
    pub fn executor<F>(&mut self, name: &str, make: F) -> &mut Self
    where
        F: Fn(&file::Dispatcher, &Value) -> Result<Arc<dyn Executor>, String>
            + Send
            + Sync
            + 'static,
    {
        self.executors.insert(name.to_owned(), Arc::new(make));
        self
    }

    /// Registers the maker of engine endpoints.
    pub fn endpoints(&mut self, make: EndpointMaker) -> &mut Self {
        self.endpoints = Some(make);
        self
    }

    /// Registers a collector strategy.
    pub fn strategy(&mut self, name: &str, make: StrategyMaker) -> &mut Self {
        self.strategies.insert(name.to_owned(), make);
        self
    }

    /// Registers a kind of source.
    pub fn source(&mut self, make: SourceMaker) -> &mut Self {
        self.sources.push(make);
        self
    }

    /// Registers a form of payloads, which sinks that call contracts name as `payload`.
    pub fn payload_form(&mut self, name: &str, form: PayloadForm) -> &mut Self {
        self.payload_forms.insert(name.to_owned(), form);
        self
    }

    /// The names of the native provers.
    pub fn prover_names(&self) -> Vec<String> {
        self.executors.keys().cloned().collect()
    }

    /// The names of the native provers whose results the emitting process can check.
    pub fn emission_check_names(&self) -> Vec<String> {
        self.checks.keys().cloned().collect()
    }

    /// The names of the native provers whose results the coordinator can check.
    pub fn result_check_names(&self) -> Vec<String> {
        self.result_checks.keys().cloned().collect()
    }

    /// The names of the strategies.
    pub fn strategy_names(&self) -> Vec<String> {
        self.strategies.keys().cloned().collect()
    }

    pub(crate) fn make_executor(
        &self,
        stage: &file::Dispatcher,
        prover: &str,
        params: &Value,
    ) -> Result<Arc<dyn Executor>, String> {
        let make = self
            .executors
            .get(prover)
            .ok_or_else(|| format!("no native prover {prover:?} is registered in this program"))?;
        make(stage, params)
    }

    pub(crate) fn make_check(
        &self,
        prover: &str,
        params: &Value,
    ) -> Result<Arc<dyn EmissionCheck>, String> {
        let make = self.checks.get(prover).ok_or_else(|| {
            format!(
                "results that {prover:?} has verified cannot be checked again before they are \
                 emitted: the prover offers no check. Verify with another prover, or write \
                 `trust_verifiers = true`"
            )
        })?;
        make(params)
    }

    pub(crate) fn make_result_check(
        &self,
        prover: &str,
        params: &Value,
    ) -> Result<Arc<dyn ResultCheck>, String> {
        let make = self.result_checks.get(prover).ok_or_else(|| {
            format!(
                "results of {prover:?} cannot be checked before they count: the prover offers no \
                 check. Remove `check_results`, or use another prover"
            )
        })?;
        make(params)
    }

    pub(crate) fn make_endpoints(
        &self,
        engine: &file::EngineExecutor,
    ) -> Result<Vec<Arc<dyn Endpoint>>, String> {
        let make = self.endpoints.as_ref();
        let make = make.ok_or("this program cannot talk to engines")?;
        Ok(make(engine))
    }

    pub(crate) fn make_source(
        &self,
        kind: &file::SourceKind,
    ) -> Option<Result<Box<dyn Source>, String>> {
        self.sources.iter().find_map(|make| make(kind))
    }

    pub(crate) fn payload_form_of(&self, name: &str) -> Result<&PayloadForm, String> {
        self.payload_forms.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.payload_forms.keys().map(String::as_str).collect();
            format!(
                "there is no payload {name:?}; this program has {}",
                names.join(", ")
            )
        })
    }

    pub(crate) fn strategies(&self) -> &BTreeMap<String, StrategyMaker> {
        &self.strategies
    }
}

/// The path or name of a process stage's program, for the executor.
pub(crate) fn program_path(program: &file::Program) -> PathBuf {
    match program {
        file::Program::Search(name) => PathBuf::from(name),
        file::Program::File(path) => path.clone(),
    }
}
