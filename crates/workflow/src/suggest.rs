//! "did you mean": the known name nearest to a misspelt one.

/// The name in `known` nearest to `given`, if it is near enough to be a typing mistake.
pub(crate) fn nearest<'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let given: Vec<char> = given.chars().take(65).collect();
    if given.len() > 64 {
        return None;
    }
    known
        .into_iter()
        .filter(|name| name.len() <= 64)
        .map(|name| (distance(&given, &name.chars().collect::<Vec<_>>()), name))
        .filter(|&(distance, name)| distance > 0 && distance <= (name.len() / 3).clamp(1, 3))
        .min()
        .map(|(_, name)| name)
}

/// Edits (insert, delete, replace, swap neighbours) from one word to the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1; b.len() + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y))
                .min(last[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && x == &b[j - 1] && &a[i - 1] == y {
                best = best.min(before[j - 1] + 1);
            }
            row[j + 1] = best;
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_mended_and_another_word_is_not() {
        let known = ["input", "output", "workers", "k"];
        assert_eq!(nearest("ouptut", known), Some("output"));
        assert_eq!(nearest("worker", known), Some("workers"));
        assert_eq!(nearest("imput", known), Some("input"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"x".repeat(10_000), known), None);
    }
}
