//! Barriers: messages that a collector gathers by a field.

use proofmill_orchestrator::conversation::Submit;
use proofmill_orchestrator::id::Part;
use proofmill_orchestrator::message::grouping;
use proofmill_orchestrator::plan::{Plan, QueueIx};
use serde::Deserialize;

use super::running::json_message;

#[derive(Deserialize)]
struct Member {
    group: u64,
    index: u64,
}

/// The file of a workflow that gathers the messages of queue `parts` into groups of `k`, and emits
/// the groups in chain order.
pub(crate) fn barriers(name: &str, k: u64) -> String {
    format!(
        r#"
        name = "{name}"
        [[source]]
        name = "bench"
        kind = "submit"
        output = "parts"
        [[collector]]
        name = "gather"
        inputs = ["parts"]
        output = "groups"
        strategy = {{ kind = "match", k = {k}, group_by = "/group" }}
        [sequencer]
        input = "groups"
        "#
    )
}

/// The payload of member `index` of a group. The number of a group is also the number of its block.
pub(crate) fn member_json(group: u64, index: u64) -> String {
    format!("{{\"group\":{group},\"index\":{index}}}")
}

/// The message with the payload of [`member_json`].
pub(crate) fn member(plan: &Plan, queue: QueueIx, group: u64, index: u64) -> Submit {
    let json = member_json(group, index);
    let values = grouping(plan, queue, Some(json.as_bytes()));
    let mut request = json_message(queue, group, json);
    request.message.part = Part::from_text(&index.to_string());
    request.message.grouping = values;
    request
}

/// Whether an emitted payload is the group of `block`, with all its `k` members in their order.
pub(crate) fn is_group(block: u64, k: u64, bytes: &[u8]) -> bool {
    let members: Vec<Member> = serde_json::from_slice(bytes).unwrap_or_default();
    let in_place = |(at, member): (u64, &Member)| member.group == block && member.index == at;
    members.len() as u64 == k && (0..).zip(&members).all(in_place)
}

#[cfg(test)]
mod tests {
    use super::{is_group, member_json};

    #[test]
    fn foreign_members_and_gaps_are_noticed() {
        let group = |members: &[(u64, u64)]| {
            let members: Vec<String> = members.iter().map(|(g, i)| member_json(*g, *i)).collect();
            format!("[{}]", members.join(","))
        };
        let whole = [(3, 0), (3, 1)];
        assert!(is_group(3, 2, group(&whole).as_bytes()));
        assert!(!is_group(3, 3, group(&whole).as_bytes()));
        assert!(!is_group(3, 2, group(&[(3, 0), (4, 1)]).as_bytes()));
        assert!(!is_group(3, 2, group(&[(3, 1), (3, 0)]).as_bytes()));
        assert!(!is_group(3, 2, b"{}"));
    }
}
