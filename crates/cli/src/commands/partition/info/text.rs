//! The answer as lines of text.

use serde_json::Value;

use crate::commands::engine::bytes;

/// Steps of a proof in an answer, and their names in a line.
const STEPS: [(&str, &str); 6] = [
    ("keys_s", "keys"),
    ("trace_s", "trace"),
    ("commit_s", "commit"),
    ("challenge_s", "challenge"),
    ("prove_s", "prove"),
    ("aggregate_s", "aggregate"),
];

/// All lines.
pub(super) fn lines(answer: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(circuit) = answer.get("circuit") {
        lines.push(format!("circuit        {circuit}"));
    }
    for name in ["verifying_key", "proof"] {
        for (field, value) in answer[name].as_object().into_iter().flatten() {
            let shown = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            lines.push(format!("{:<14} {shown}", field.replace('_', " ")));
        }
    }
    if let Some(total) = answer.get("constraints") {
        lines.push(format!("constraints    {total} in all parts"));
    }
    if let Some(memory) = answer.get("memory") {
        let of = |name: &str| bytes(memory[name].as_u64().unwrap_or(0));
        lines.push(format!(
            "memory         {} to prove, beside the program; {} at least, with keys in their files",
            of("plain_bytes"),
            of("mapped_bytes")
        ));
    }
    if let Some(portals) = answer.get("portals") {
        lines.push(format!(
            "portals        {} shared wires, {} accesses; {} to {} accesses and up to {} puts and takes in a part",
            portals["wires"],
            portals["accesses"],
            portals["accesses_of_a_part_least"],
            portals["accesses_of_a_part_most"],
            portals["transfers_of_a_part_most"],
        ));
    }
    for class in answer["classes"].as_array().into_iter().flatten() {
        lines.push(class_line(class));
    }
    if let Some(times) = answer.get("times") {
        lines.extend(time_lines(times));
    }
    lines
}

fn class_line(class: &Value) -> String {
    format!(
        "class {}: {} parts of {} constraints, proved over {} points: {} of the circuit, {} of the memory check ({} for \
         each of {} accesses, and one more to set a portal), {} of the multiset ({} puts and takes), {} of the states; a \
         key of {} bytes",
        class["name"].as_str().unwrap_or_default(),
        class["parts"],
        class["constraints"],
        class["domain"],
        class["of_the_circuit"],
        class["of_the_memory_check"],
        class["constraints_an_access"],
        class["accesses"],
        class["of_the_multiset"],
        class["transfers"],
        class["of_the_states"],
        class["key_bytes"],
    )
}

fn time_lines(times: &Value) -> Vec<String> {
    let mut lines = vec![
        format!(
            "times          {}",
            times["basis"].as_str().unwrap_or_default()
        ),
        format!(
            "critical path  {} (slowest commitment and slowest proof)",
            in_steps(&times["critical_path"])
        ),
    ];
    for on_cores in times["on_cores"].as_array().into_iter().flatten() {
        let cores = match on_cores["cores"].as_u64() {
            Some(1) => "1 core".to_owned(),
            cores => format!("{} cores", cores.unwrap_or(0)),
        };
        lines.push(format!(
            "{:<14} {}",
            format!("on {cores}"),
            in_steps(on_cores)
        ));
    }
    lines
}

/// `1.20 s: keys 0.10 s, trace …`
fn in_steps(times: &Value) -> String {
    let of = |field: &str| seconds(times[field].as_f64().unwrap_or(0.0));
    let steps = STEPS.map(|(field, name)| format!("{name} {}", of(field)));
    format!("{}: {}", of("total_s"), steps.join(", "))
}

fn seconds(value: f64) -> String {
    match value {
        value if value < 0.1 => format!("{:.1} ms", 1e3 * value),
        value if value < 100.0 => format!("{value:.2} s"),
        value => format!("{value:.0} s"),
    }
}
