//! Parsing of compose files.

use serde_json::Value;

/// A service of a compose file, with the parts that matter here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ComposeService {
    pub(super) name: String,
    /// The words of the command.
    pub(super) command: Option<String>,
    /// Paths of the environment files, relative to the compose file.
    pub(super) env_files: Vec<String>,
    /// The variables, in order. The value is `None` where the file names a variable without one.
    pub(super) variables: Vec<(String, Option<String>)>,
}

/// The services of a compose file.
pub(super) fn parse(text: &str) -> Result<Vec<ComposeService>, String> {
    // The reader limits depth, aliases and size.
    let options = serde_saphyr::options! { strict_booleans: true };
    let document: Value =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?;
    let services = document.get("services").and_then(Value::as_object);
    let services = services.ok_or("it has no `services`")?;
    services
        .iter()
        .map(|(name, service)| read_service(name, service))
        .collect()
}

/// Merges the services of a further file into those of the files before it, as compose does: a single value
/// is replaced, a list is extended.
pub(super) fn merge(services: &mut Vec<ComposeService>, further: Vec<ComposeService>) {
    for over in further {
        match services.iter_mut().find(|under| under.name == over.name) {
            Some(under) => {
                under.command = over.command.or(under.command.take());
                under.env_files.extend(over.env_files);
                // In order, since the last value of a name counts.
                under.variables.extend(over.variables);
            }
            None => services.push(over),
        }
    }
}

fn read_service(name: &str, service: &Value) -> Result<ComposeService, String> {
    let fault = |what: &str| format!("the service {name}: {what}");
    let command = service.get("command").or(service.get("entrypoint"));
    let variables = match service.get("environment") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(lines)) => {
            let line = |line: &Value| {
                let line = scalar(line)?;
                Some(match line.split_once('=') {
                    Some((name, value)) => (name.trim().to_owned(), Some(value.to_owned())),
                    None => (line.trim().to_owned(), None),
                })
            };
            let lines: Option<Vec<_>> = lines.iter().map(line).collect();
            lines.ok_or_else(|| fault("`environment` has an entry that is not NAME=value"))?
        }
        Some(Value::Object(entries)) => {
            let entry = |(name, value): (&String, &Value)| {
                if value.is_null() {
                    return Some((name.clone(), None));
                }
                Some((name.clone(), Some(scalar(value)?)))
            };
            let entries: Option<Vec<_>> = entries.iter().map(entry).collect();
            entries
                .ok_or_else(|| fault("`environment` has a value that is not text or a number"))?
        }
        Some(_) => return Err(fault("`environment` is neither a list nor a map")),
    };
    let one_file = |file: &Value| scalar(file).or_else(|| scalar(file.get("path")?));
    let env_files = match service.get("env_file") {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(files)) => files.iter().map(one_file).collect(),
        Some(file) => one_file(file).map(|file| vec![file]),
    };
    Ok(ComposeService {
        name: name.to_owned(),
        command: command.and_then(words),
        env_files: env_files.ok_or_else(|| fault("`env_file` does not name files"))?,
        variables,
    })
}

fn words(command: &Value) -> Option<String> {
    match command {
        Value::Array(words) => {
            let words: Vec<String> = words.iter().filter_map(scalar).collect();
            Some(words.join(" "))
        }
        other => scalar(other),
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_and_lists_are_both_understood() {
        let services = parse(
            "services:\n  a:\n    command: dispatcher\n    env_file: .env\n    environment:\n      \
             - X=1=2   # a comment\n      - Y\n  b:\n    command: [\"push0\", \"collector\"]\n    \
             env_file:\n      - path: one.env\n      - two.env\n    environment:\n      N: 10\n      \
             F: true\n      E:\n",
        )
        .unwrap();
        assert_eq!(
            services[0].variables,
            [("X".into(), Some("1=2".into())), ("Y".into(), None)]
        );
        assert_eq!(services[0].env_files, [".env"]);
        assert_eq!(services[1].command.as_deref(), Some("push0 collector"));
        assert_eq!(services[1].env_files, ["one.env", "two.env"]);
        let b = &services[1].variables;
        assert!(b.contains(&("N".into(), Some("10".into()))) && b.contains(&("E".into(), None)));
    }

    #[test]
    fn a_further_file_adds_and_replaces() {
        let mut services = parse(
            "services:\n  a:\n    command: dispatcher\n    env_file: one.env\n    environment:\n      \
             - X=1\n      - Y=1\n",
        )
        .unwrap();
        let further = parse(
            "services:\n  a:\n    env_file: two.env\n    environment:\n      X: 2\n  b:\n    \
             command: collector\n",
        )
        .unwrap();
        merge(&mut services, further);
        let [a, b] = &services[..] else {
            panic!("{services:?}")
        };
        assert_eq!(
            (a.command.as_deref(), b.name.as_str()),
            (Some("dispatcher"), "b")
        );
        assert_eq!(a.env_files, ["one.env", "two.env"]);
        let one = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        assert_eq!(a.variables, [one("X", "1"), one("Y", "1"), one("X", "2")]);
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        for wrong in [
            "",
            "x: 1",
            "services: []",
            "services:\n  a:\n    environment: 5",
            "services:\n  a:\n    environment:\n      - [1]",
            "a: &a [*a]",
            "\t- {",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
