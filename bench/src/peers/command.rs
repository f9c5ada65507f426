//! Peers that are commands. A command is started once for each run, so that the contenders can take turns.

use std::process::{Command, Stdio};

use anyhow::Context;
use serde_json::{Map, Value};

use crate::versus::{Contender, PeerCommand, Sample};

/// A contender that starts the command for each run. The settings' names in braces are replaced by
/// their values.
pub(crate) fn contender(peer: &PeerCommand, settings: &Map<String, Value>) -> Contender<'static> {
    let words: Vec<String> = peer
        .words
        .iter()
        .map(|word| fill_placeholders(word, settings))
        .collect();
    Contender::new(peer.name.clone(), move |_| {
        let output = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("starting {:?}", words[0]))?;
        anyhow::ensure!(
            output.status.success(),
            "{:?} ended with {}",
            words[0],
            output.status
        );
        let text = String::from_utf8(output.stdout).context("its output is not UTF-8")?;
        let line = text.lines().last().unwrap_or_default();
        parse(line).with_context(|| {
            format!("its last line must be {{\"ms\": NUMBER or [NUMBERS]}}, and is {line:?}")
        })
    })
}

fn fill_placeholders(word: &str, settings: &Map<String, Value>) -> String {
    settings
        .iter()
        .fold(word.to_owned(), |word, (name, value)| {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            word.replace(&format!("{{{name}}}"), &value)
        })
}

fn parse(line: &str) -> anyhow::Result<Sample> {
    let object: Value = serde_json::from_str(line)?;
    let ms = match &object["ms"] {
        Value::Array(runs) => runs.iter().map(milliseconds).collect::<Result<_, _>>()?,
        one => vec![milliseconds(one)?],
    };
    anyhow::ensure!(!ms.is_empty(), "no runs");
    Ok(Sample {
        ms,
        ..Sample::default()
    })
}

fn milliseconds(value: &Value) -> anyhow::Result<f64> {
    value
        .as_f64()
        .filter(|ms| ms.is_finite() && *ms > 0.0)
        .with_context(|| format!("{value} is no time in milliseconds"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versus::Purpose;
    use serde_json::json;

    fn run(peer: &str) -> anyhow::Result<Sample> {
        let settings = json!({ "curve": "bn254", "log_n": 20, "threads": 1 });
        let settings = settings.as_object().unwrap();
        contender(&peer.parse().unwrap(), settings).run(Purpose::Measure)
    }

    #[test]
    fn the_last_line_is_one_run_or_several() {
        assert_eq!(run(r#"one=echo {"ms":2.5}"#).unwrap().ms, [2.5]);
        assert_eq!(
            run(r#"two=printf hello\n{"ms":[1,2]}"#).unwrap().ms,
            [1.0, 2.0]
        );
    }

    #[test]
    fn placeholders_are_filled_in() {
        assert_eq!(run(r#"n=echo {"ms":{log_n}}"#).unwrap().ms, [20.0]);
    }

    #[test]
    fn a_failure_and_a_malformed_line_are_errors() {
        for peer in [
            "a=false",
            "b=echo",
            r#"c=echo {"ms":-1}"#,
            r#"d=echo {"ms":[]}"#,
            "e=/nowhere",
        ] {
            assert!(run(peer).is_err(), "{peer}");
        }
    }
}
