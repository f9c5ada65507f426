//! Environment files, and the substitution of variables in values, as in compose.

use std::collections::BTreeMap;

/// Longest value that substitution may produce, in bytes.
const MAX_VALUE: usize = 64 << 10;

/// Adds the variables of a file with lines `NAME=value`, which may have quotes and a leading `export`.
pub(super) fn parse(text: &str, into: &mut BTreeMap<String, String>) -> Result<(), String> {
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else {
            return Err(format!("line {number} is not NAME=value"));
        };
        let name = name.trim();
        if !is_name(name) {
            return Err(format!("line {number}: {name:?} does not name a variable"));
        }
        let value = value.trim();
        let fault = |why| format!("line {number}: {why}");
        let value = if let Some(rest) = value.strip_prefix('\'') {
            let (value, _) = rest
                .split_once('\'')
                .ok_or_else(|| fault("the quote is not closed".into()))?;
            value.to_owned()
        } else if let Some(rest) = value.strip_prefix('"') {
            let (value, _) = rest
                .split_once('"')
                .ok_or_else(|| fault("the quote is not closed".into()))?;
            substitute(value, into).map_err(fault)?
        } else {
            let value = value.split(" #").next().unwrap_or_default().trim_end();
            substitute(value, into).map_err(fault)?
        };
        into.insert(name.to_owned(), value);
    }
    Ok(())
}

/// Replaces `$NAME`, `${NAME}`, `${NAME:-default}` and `${NAME-default}` in `text`; `$$` is a `$`. An
/// unknown variable is empty.
pub(super) fn substitute(
    text: &str,
    variables: &BTreeMap<String, String>,
) -> Result<String, String> {
    let mut value = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        value.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            value.push('$');
            rest = after;
        } else if let Some(after) = rest.strip_prefix('{') {
            let (inside, after) = after
                .split_once('}')
                .ok_or_else(|| format!("`${{{after}` is not closed"))?;
            value.push_str(&braced(inside, variables)?);
            rest = after;
        } else {
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            if end == 0 {
                value.push('$');
            } else {
                value.push_str(variables.get(&rest[..end]).map_or("", String::as_str));
            }
            rest = &rest[end..];
        }
        if value.len() > MAX_VALUE {
            return Err(format!("the value is over {MAX_VALUE} bytes"));
        }
    }
    value.push_str(rest);
    Ok(value)
}

fn braced(inside: &str, variables: &BTreeMap<String, String>) -> Result<String, String> {
    let end = inside
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(inside.len());
    let (name, operator) = inside.split_at(end);
    if !is_name(name) {
        return Err(format!("`${{{inside}}}` does not name a variable"));
    }
    let set = variables.get(name);
    let filled = set.filter(|value| !value.is_empty());
    let known = |value: Option<&String>| value.cloned();
    if operator.is_empty() {
        Ok(known(set).unwrap_or_default())
    } else if let Some(default) = operator.strip_prefix(":-") {
        Ok(known(filled).unwrap_or_else(|| default.to_owned()))
    } else if let Some(default) = operator.strip_prefix('-') {
        Ok(known(set).unwrap_or_else(|| default.to_owned()))
    } else if let Some(why) = operator.strip_prefix(":?").or(operator.strip_prefix('?')) {
        known(filled).ok_or_else(|| format!("{name} is not set: {why}"))
    } else {
        Err(format!("`${{{inside}}}` is not understood"))
    }
}

fn is_name(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.bytes().all(fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_variables_are_read() {
        let mut variables = BTreeMap::new();
        let text = "# a comment\n\nA=1\nexport B = two # not this\nC='$A'\nD=\"x${A}y\"\nE=\n";
        parse(text, &mut variables).unwrap();
        let of = |name: &str| variables[name].as_str();
        assert_eq!(
            [of("A"), of("B"), of("C"), of("D"), of("E")],
            ["1", "two", "$A", "x1y", ""]
        );
        for wrong in [
            "A",
            "1A=2",
            "A B=3",
            "A='",
            "A=\"",
            "A=${",
            "A=${}",
            "A=${B?no}",
        ] {
            assert!(parse(wrong, &mut BTreeMap::new()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn defaults_stand_where_there_is_nothing() {
        let variables =
            BTreeMap::from([("SET".into(), "1".into()), ("EMPTY".into(), String::new())]);
        for (text, expected) in [
            ("${NEXT_BLOCK:-23818220}", "23818220"),
            ("${SET:-2}", "1"),
            ("${EMPTY:-2}", "2"),
            ("${EMPTY-2}", ""),
            ("${NONE-2}", "2"),
            ("$SET/$NONE/$$SET/$", "1//$SET/$"),
            ("plain", "plain"),
        ] {
            assert_eq!(substitute(text, &variables).unwrap(), expected, "{text}");
        }
    }
}
