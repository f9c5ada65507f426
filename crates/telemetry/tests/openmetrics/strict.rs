//! A strict reader of the OpenMetrics text format, version 1.0.0: what it takes, any scraper takes.
//!
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>

use std::collections::{BTreeMap, BTreeSet};

/// An exemplar of a page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Exemplar {
    /// Name of the sample that it belongs to.
    pub(crate) sample: String,
    /// Labels of that sample.
    pub(crate) of: Labels,
    /// Its own labels.
    pub(crate) labels: Labels,
    /// Its value.
    pub(crate) value: f64,
}

type Labels = BTreeMap<String, String>;

/// One line with a value.
struct Sample {
    name: String,
    labels: Labels,
    value: f64,
    exemplar: Option<(Labels, f64)>,
}

/// The family of metrics that the lines are about.
#[derive(Default)]
struct Family {
    name: String,
    kind: Option<String>,
    has_help: bool,
    samples: Vec<Sample>,
}

/// Reads a page, and returns its exemplars.
///
/// # Errors
/// The line that breaks a rule, and the rule.
pub(crate) fn read(page: &str) -> Result<Vec<Exemplar>, String> {
    let body = page
        .strip_suffix("# EOF\n")
        .ok_or("no `# EOF` at the end")?;
    let mut families: Vec<Family> = Vec::new();
    for line in body.split_terminator('\n') {
        read_line(line, &mut families).map_err(|rule| format!("{line:?}: {rule}"))?;
    }
    if !body.is_empty() && !body.ends_with('\n') {
        return Err("a line without an end".to_owned());
    }
    let mut names = BTreeSet::new();
    let mut exemplars = Vec::new();
    for family in families {
        if !names.insert(family.name.clone()) {
            return Err(format!("{} comes twice", family.name));
        }
        let why = |rule: &str| format!("{}: {rule}", family.name);
        check(&family).map_err(|rule| why(&rule))?;
        let with_exemplars = family.samples.into_iter();
        exemplars.extend(with_exemplars.filter_map(|sample| {
            let (labels, value) = sample.exemplar?;
            Some(Exemplar {
                sample: sample.name,
                of: sample.labels,
                labels,
                value,
            })
        }));
    }
    Ok(exemplars)
}

fn read_line(line: &str, families: &mut Vec<Family>) -> Result<(), String> {
    if line.is_empty() || line.contains('\r') {
        return Err("an empty line, or a carriage return".to_owned());
    }
    let Some(metadata) = line.strip_prefix('#') else {
        let sample = read_sample(line)?;
        let family = families.last_mut().ok_or("no family")?;
        family.samples.push(sample);
        return Ok(());
    };
    let metadata = metadata.strip_prefix(' ').ok_or("no comments")?;
    let mut words = metadata.splitn(3, ' ');
    let (word, name) = (words.next(), words.next().unwrap_or_default());
    let rest = words.next().unwrap_or_default();
    if families.last().is_none_or(|family| family.name != name) {
        check_name(name, true)?;
        families.push(Family {
            name: name.to_owned(),
            ..Family::default()
        });
    }
    let family = families.last_mut().ok_or("no family")?;
    if !family.samples.is_empty() {
        return Err("metadata after samples".to_owned());
    }
    match word {
        Some("HELP") if !family.has_help => family.has_help = true,
        Some("TYPE") if family.kind.is_none() => family.kind = Some(rest.to_owned()),
        Some("UNIT") if name.ends_with(&format!("_{rest}")) => {}
        _ => return Err("unknown or repeated metadata".to_owned()),
    }
    Ok(())
}

/// Checks the samples of a family by its type.
fn check(family: &Family) -> Result<(), String> {
    let suffixes: &[&str] = match family.kind.as_deref() {
        Some("gauge") => &[""],
        Some("counter") => &["_total", "_created"],
        Some("histogram") => &["_bucket", "_count", "_sum", "_created"],
        _ => return Err("no type, or one that this project has not".to_owned()),
    };
    let mut seen = BTreeSet::new();
    for sample in &family.samples {
        let suffix = sample.name.strip_prefix(&family.name);
        let suffix = suffix.filter(|suffix| suffixes.contains(suffix));
        let suffix = suffix.ok_or_else(|| format!("a sample named {}", sample.name))?;
        if !seen.insert((&sample.name, &sample.labels)) {
            return Err(format!("{} {:?} comes twice", sample.name, sample.labels));
        }
        if !suffix.is_empty() && (sample.value.is_nan() || sample.value < 0.0) {
            return Err(format!("{} is {}", sample.name, sample.value));
        }
        if let Some((labels, value)) = &sample.exemplar {
            if !matches!(suffix, "_bucket" | "_total") {
                return Err("an exemplar of a sample that can have none".to_owned());
            }
            let characters = labels.iter();
            let characters =
                characters.map(|(name, value)| name.chars().count() + value.chars().count());
            if characters.sum::<usize>() > 128 {
                return Err("an exemplar with more than 128 characters".to_owned());
            }
            if value.is_nan() {
                return Err("an exemplar without a value".to_owned());
            }
        }
    }
    match family.kind.as_deref() {
        Some("histogram") => check_histogram(family),
        _ => Ok(()),
    }
}

fn check_histogram(family: &Family) -> Result<(), String> {
    let mut series: BTreeMap<Labels, Vec<(f64, &Sample)>> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for sample in &family.samples {
        let mut labels = sample.labels.clone();
        let bound = labels.remove("le");
        match sample.name.strip_prefix(&family.name) {
            Some("_bucket") => {
                let bound = read_number(&bound.ok_or("a bucket without a bound")?)?;
                series.entry(labels).or_default().push((bound, sample));
            }
            Some("_count") => drop(counts.insert(labels, sample.value)),
            _ => {}
        }
    }
    if series.keys().ne(counts.keys()) {
        return Err("buckets without a count, or a count without buckets".to_owned());
    }
    for (labels, buckets) in series {
        let (mut below, mut before) = (f64::NEG_INFINITY, 0.0);
        for (bound, sample) in &buckets {
            if *bound <= below || sample.value < before {
                return Err("buckets that do not rise".to_owned());
            }
            if let Some((_, value)) = &sample.exemplar
                && !(*value > below && value <= bound)
            {
                return Err(format!(
                    "an exemplar of {value} in the bucket up to {bound}"
                ));
            }
            (below, before) = (*bound, sample.value);
        }
        if below != f64::INFINITY || counts.get(&labels) != Some(&before) {
            return Err("a last bucket that is not all".to_owned());
        }
    }
    Ok(())
}

/// Reads `NAME{LABELS} VALUE`, perhaps with an exemplar: `# {LABELS} VALUE TIME`.
fn read_sample(line: &str) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let (name, rest) = line.split_at(end);
    check_name(name, true)?;
    let (labels, rest) = match rest.starts_with('{') {
        true => read_labels(rest)?,
        false => (Labels::new(), rest),
    };
    let rest = rest.strip_prefix(' ').ok_or("no space before the value")?;
    let (value, exemplar) = match rest.split_once(" # ") {
        Some((value, exemplar)) => (value, Some(exemplar)),
        None => (rest, None),
    };
    let exemplar = exemplar.map(|exemplar| {
        let (labels, rest) = read_labels(exemplar)?;
        let mut numbers = rest.strip_prefix(' ').ok_or("no value")?.split(' ');
        let value = read_number(numbers.next().unwrap_or_default())?;
        let time = numbers.next().map(read_number).transpose()?;
        if time.is_some_and(|time| !time.is_finite()) || numbers.next().is_some() {
            return Err("an exemplar with more than a value and a time".to_owned());
        }
        Ok::<_, String>((labels, value))
    });
    Ok(Sample {
        name: name.to_owned(),
        labels,
        value: read_number(value)?,
        exemplar: exemplar.transpose()?,
    })
}

/// Reads `{NAME="VALUE",…}`. Returns the rest of the line too.
fn read_labels(text: &str) -> Result<(Labels, &str), String> {
    let mut rest = text.strip_prefix('{').ok_or("no labels")?;
    let mut labels = Labels::new();
    if let Some(rest) = rest.strip_prefix('}') {
        return Ok((labels, rest));
    }
    loop {
        let (name, after) = rest.split_once("=\"").ok_or("a label without a value")?;
        check_name(name, false)?;
        let mut value = String::new();
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next().ok_or("a value without an end")? {
                (at, '"') => break at,
                (_, '\\') => match letters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, letter @ ('"' | '\\'))) => value.push(letter),
                    _ => return Err("an unknown escape".to_owned()),
                },
                (_, letter) => value.push(letter),
            }
        };
        if labels.insert(name.to_owned(), value).is_some() {
            return Err(format!("label {name} comes twice"));
        }
        rest = &after[end + 1..];
        match (rest.strip_prefix(','), rest.strip_prefix('}')) {
            (Some(more), _) => rest = more,
            (_, Some(after)) => return Ok((labels, after)),
            _ => return Err("labels without an end".to_owned()),
        }
    }
}

fn read_number(text: &str) -> Result<f64, String> {
    let is_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    match text {
        "+Inf" => Ok(f64::INFINITY),
        "-Inf" => Ok(f64::NEG_INFINITY),
        "NaN" => Ok(f64::NAN),
        _ if !text.is_empty() && text.bytes().all(is_number) => {
            text.parse().map_err(|_| format!("{text:?} is no number"))
        }
        _ => Err(format!("{text:?} is no number")),
    }
}

fn check_name(name: &str, has_colons: bool) -> Result<(), String> {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let starts = name.bytes().next().is_some_and(is_letter);
    let is_rest = |byte: u8| is_letter(byte) || byte.is_ascii_digit() || has_colons && byte == b':';
    match starts && name.bytes().all(is_rest) {
        true => Ok(()),
        false => Err(format!("{name:?} is no name")),
    }
}
