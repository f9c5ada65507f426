//! Parsing of variables into a [`Config`].

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use proofmill_workflow::HttpUrl;

use super::value::{Field, duration, flag, is_name, is_queue, millis};
use super::{
    Collection, Config, EnvError, Environment, MAX_INPUTS, MAX_QUEUES, Program, Start, Strategy,
};

/// Default of `ACK_WAIT`, which is JetStream's own.
const ACK_WAIT: Duration = Duration::from_secs(30);

/// Default of `METRICS_BIND`, as in push0. A port that is mapped into a container reaches no other address.
const METRICS_BIND: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// A lookup of variables. An empty variable counts as not set, since compose files leave them so.
struct Variables<F>(F);

// === impl Environment ===

impl Environment {
    /// Reads the variables by `variable`, as in `Environment::read(|name| std::env::var(name).ok())`.
    ///
    /// # Errors
    /// The first variable with an invalid value. Variables that only one role needs are checked when the
    /// role runs.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Config, EnvError> {
        let variables = Variables(variable);
        variables.expect_kind("MESSAGE_BUS_TYPE", "NatsBasic")?;
        variables.expect_kind("STORAGE_TYPE", "Nats")?;
        let (input_stream, output_stream) = variables.streams()?;
        let config = Config {
            nats_url: variables.nats_url()?,
            input_stream,
            output_stream,
            input_queues: variables.input_queues()?,
            output_queue: variables.output_queue()?,
            consumer_name: variables.consumer_name()?,
            consumer_per_subject: variables.flag("ONE_CONSUMER_PER_SUBJECT")?.unwrap_or(false),
            ack_wait: variables
                .parsed(
                    "ACK_WAIT",
                    duration,
                    "seconds, or a time such as 500ms, 30s, 5m; at most 24h",
                )?
                .unwrap_or(ACK_WAIT),
            max_deliver: variables.parsed("MAX_DELIVER", positive, "a whole number from 1 up")?,
            metrics: variables.metrics()?,
            program: variables.program()?,
            collection: variables.collection()?,
        };
        if let Some(output) = config.output_queue.as_ref()
            && config.input_queues.contains(output)
        {
            let expected = "another queue than INPUT_QUEUE: messages would go round in a loop";
            return Err(EnvError::holds("OUTPUT_QUEUE", output, expected));
        }
        Ok(config)
    }
}

// === impl Variables ===

impl<F: Fn(&str) -> Option<String>> Variables<F> {
    fn get(&self, name: &str) -> Option<String> {
        let text = (self.0)(name)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn parsed<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, EnvError> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        match parse(&text) {
            Some(value) => Ok(Some(value)),
            None => Err(EnvError::holds(name, text, expected)),
        }
    }

    fn flag(&self, name: &'static str) -> Result<Option<bool>, EnvError> {
        self.parsed(name, flag, "true or false (or 1 or 0)")
    }

    fn expect_kind(&self, name: &'static str, only: &'static str) -> Result<(), EnvError> {
        match self.get(name) {
            Some(text) if !text.eq_ignore_ascii_case(only) => Err(EnvError::holds(
                name,
                text,
                format!("{only}, the only possible value"),
            )),
            _ => Ok(()),
        }
    }

    fn nats_url(&self) -> Result<String, EnvError> {
        let expected = "addresses of NATS servers, as in nats://127.0.0.1:4222";
        let url = self
            .get("NATS_URL")
            .ok_or_else(|| EnvError::missing("NATS_URL", expected))?;
        let fits = |server: &str| {
            let server = server.trim();
            let (scheme, host) = server.split_once("://").unwrap_or(("nats", server));
            ["nats", "tls"].contains(&scheme)
                && !host.is_empty()
                && !host.contains(char::is_whitespace)
        };
        if !url.split(',').all(fits) {
            // The value may contain a password.
            return Err(EnvError::holds("NATS_URL", "…", expected));
        }
        Ok(url)
    }

    fn streams(&self) -> Result<(String, String), EnvError> {
        let name = |variable: &'static str| {
            let expected = "the name of a stream: no spaces, and none of . * > / \\";
            self.parsed(
                variable,
                |text| is_name(text).then(|| text.to_owned()),
                expected,
            )
        };
        match (name("INPUT_STREAM")?, name("OUTPUT_STREAM")?) {
            (Some(input), Some(output)) => Ok((input, output)),
            (Some(one), None) | (None, Some(one)) => Ok((one.clone(), one)),
            (None, None) => {
                let expected = "the JetStream stream that the queues are subjects of";
                Err(EnvError::missing("INPUT_STREAM", expected))
            }
        }
    }

    fn input_queues(&self) -> Result<Vec<String>, EnvError> {
        let Some(text) = self.get("INPUT_QUEUE") else {
            return Ok(Vec::new());
        };
        let mut queues = Vec::new();
        for queue in text.split(',').map(str::trim) {
            if !is_queue(queue) || queues.iter().any(|known| known == queue) {
                let expected = "subjects without wildcards, separated by commas, each once";
                return Err(EnvError::holds("INPUT_QUEUE", &text, expected));
            }
            if queues.len() == MAX_QUEUES {
                let expected = format!("at most {MAX_QUEUES} queues");
                return Err(EnvError::holds("INPUT_QUEUE", queue, expected));
            }
            queues.push(queue.to_owned());
        }
        Ok(queues)
    }

    fn output_queue(&self) -> Result<Option<String>, EnvError> {
        self.parsed(
            "OUTPUT_QUEUE",
            |text| (is_queue(text) && !text.contains(',')).then(|| text.to_owned()),
            "one subject without wildcards",
        )
    }

    fn consumer_name(&self) -> Result<Option<String>, EnvError> {
        self.parsed(
            "CONSUMER_NAME",
            |text| is_name(text).then(|| text.to_owned()),
            "a name: no spaces, and none of . * > / \\",
        )
    }

    fn metrics(&self) -> Result<Option<SocketAddr>, EnvError> {
        let port = self.parsed(
            "METRICS_PORT",
            |text| text.parse().ok().filter(|&port| port != 0),
            "a port from 1 to 65535",
        )?;
        let address = self.parsed(
            "METRICS_BIND",
            |text| text.parse().ok(),
            "an address of this machine, as in 127.0.0.1, or 0.0.0.0 or :: for all of them",
        )?;
        Ok(port.map(|port| SocketAddr::new(address.unwrap_or(METRICS_BIND), port)))
    }

    fn program(&self) -> Result<Option<Program>, EnvError> {
        self.expect_kind("EXECUTOR_TYPE", "JsonExecutor")?;
        let multiple_output = self.flag("MULTIPLE_OUTPUT")?.unwrap_or(false);
        let names = self.get("INHERIT_ENV").unwrap_or_default();
        let names = names.split(',').map(str::trim);
        let inherit_env: Vec<String> = names
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        if let Some(odd) = inherit_env.iter().find(|name| name.contains(['=', '\0'])) {
            // Without the value, which may be a secret.
            let name = odd.split(['=', '\0']).next().unwrap_or_default();
            let expected = "names of variables, separated by commas";
            return Err(EnvError::holds(
                "INHERIT_ENV",
                format!("{name}=…"),
                expected,
            ));
        }
        Ok(self.get("BINARY").map(|binary| Program {
            binary: PathBuf::from(binary),
            multiple_output,
            inherit_env,
        }))
    }

    fn collection(&self) -> Result<Option<Collection>, EnvError> {
        let Some(strategy) = self.get("STRATEGY") else {
            return Ok(None);
        };
        let expected = format!("a whole number from 1 to {MAX_INPUTS}");
        let inputs = self.parsed(
            "NUM_INPUTS",
            |text| positive(text).filter(|&inputs| inputs <= MAX_INPUTS),
            &expected,
        )?;
        let next_block = self.parsed::<i64>(
            "NEXT_BLOCK",
            |text| text.parse().ok(),
            "the number of a block; or, of a source, a negative number to count back from the head",
        )?;
        let single_output = self.flag("SINGLE_OUTPUT")?;
        let strategy = match strategy.to_ascii_lowercase().as_str() {
            "match" => Strategy::Match {
                inputs: inputs.ok_or_else(|| {
                    EnvError::missing("NUM_INPUTS", "how many messages make a group")
                })?,
                field: self.parsed(
                    "GROUPING_FIELD",
                    Field::parse,
                    "the name of a field, or a JSON pointer such as /data/block",
                )?,
            },
            "sequential" => Strategy::Sequential {
                blocks: inputs.unwrap_or(1),
                start: next_block
                    .map(|block| {
                        let expected = "a block from 0 up: only a source can count back";
                        u64::try_from(block)
                            .map_err(|_| EnvError::holds("NEXT_BLOCK", block.to_string(), expected))
                    })
                    .transpose()?,
            },
            "proof" => Strategy::Proof {
                proofs: inputs.unwrap_or(1),
            },
            "block" => self.source(inputs, next_block, single_output)?,
            _ => {
                let expected = "Match, Sequential, Block or Proof";
                return Err(EnvError::holds("STRATEGY", strategy, expected));
            }
        };
        let of_one = match strategy {
            Strategy::Match { inputs: size, .. } | Strategy::Sequential { blocks: size, .. } => {
                size == 1
            }
            Strategy::Proof { .. } => false,
            Strategy::Block { .. } => true,
        };
        Ok(Some(Collection {
            strategy,
            single_output: single_output.unwrap_or(of_one),
            collect_timeout: self.parsed(
                "COLLECT_TIMEOUT_PERIOD_MILLIS",
                millis,
                "milliseconds, from 1 to 24 hours of them",
            )?,
        }))
    }

    fn source(
        &self,
        inputs: Option<u32>,
        next_block: Option<i64>,
        single_output: Option<bool>,
    ) -> Result<Strategy, EnvError> {
        let expected = "with STRATEGY=Block: each message is one block";
        if let Some(inputs) = inputs.filter(|&inputs| inputs != 1) {
            let expected = format!("1 {expected}");
            return Err(EnvError::holds("NUM_INPUTS", inputs.to_string(), expected));
        }
        if single_output == Some(false) {
            let expected = format!("true {expected}");
            return Err(EnvError::holds("SINGLE_OUTPUT", "false", expected));
        }
        let url = self.get("L1_RPC").ok_or_else(|| {
            let expected =
                "the address of an Ethereum JSON-RPC endpoint, as in http://127.0.0.1:8545";
            EnvError::missing("L1_RPC", expected)
        })?;
        let rpc = HttpUrl::try_new(&url).map_err(|_| {
            // The path may contain a key.
            let scheme = url.split_once("://").map_or("…", |(scheme, _)| scheme);
            let expected = "an http:// or https:// address without a user, as in \
                            http://127.0.0.1:8545";
            EnvError::holds("L1_RPC", format!("{scheme}://…"), expected)
        })?;
        let start = match next_block {
            None => Start::Behind(0),
            Some(block) => {
                u64::try_from(block).map_or_else(|_| Start::Behind(block.unsigned_abs()), Start::At)
            }
        };
        Ok(Strategy::Block { rpc, start })
    }
}

fn positive(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&number| number > 0)
}
