//! `proofmill vkd info`

use proofmill_directory::DEPTH;
use proofmill_directory::store::KeyDirectory;
use serde_json::{Value, json};

use super::directory::open;
use crate::args::vkd::Info;
use crate::failure::Failure;
use crate::output;

pub(super) fn run(args: &Info) -> Result<(), Failure> {
    let directory = open(&args.directory)?;
    let proved = proved_epochs(&directory)?;
    let count: u64 = proved.iter().map(|(first, last)| last - first + 1).sum();
    let depth = directory.tree().depth();
    if args.json {
        let ranges: Vec<Value> = proved
            .iter()
            .map(|(first, last)| json!([first, last]))
            .collect();
        let answer = json!({
            "epoch": directory.epoch(),
            "root": directory.root(),
            "keys": directory.tree().len(),
            "depth": depth,
            "proved": { "epochs": count, "ranges": ranges },
        });
        return output::line(answer.to_string());
    }
    output::line(format!("epoch          {}", directory.epoch()))?;
    output::line(format!("root           {}", directory.root()))?;
    output::line(format!("keys           {}", directory.tree().len()))?;
    if depth != DEPTH {
        output::line(format!(
            "levels         {depth}, for tests: a directory has {DEPTH}"
        ))?;
    }
    output::line(format!("proved epochs  {}", listed(&proved)))
}

/// The epochs that have a record, as ranges of the first and the last.
fn proved_epochs(directory: &KeyDirectory) -> Result<Vec<(u64, u64)>, Failure> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in 1..=directory.epoch() {
        let path = directory.record_path(number);
        let is_proved = path
            .try_exists()
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
        match ranges.last_mut() {
            _ if !is_proved => {}
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    Ok(ranges)
}

fn listed(ranges: &[(u64, u64)]) -> String {
    if ranges.is_empty() {
        return "none".to_owned();
    }
    let shown = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn ranges_are_listed() {
        assert_eq!(super::listed(&[]), "none");
        assert_eq!(super::listed(&[(1, 3), (5, 5)]), "1-3, 5");
    }
}
