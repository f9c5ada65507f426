//! The tables inside a stage's table: executor, strategy and speculation.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::diagnostic::Code;
use crate::engine::engine;
use crate::fields::{Fields, MAX_COUNT};
use crate::model::{
    Executor, Hedge, MatchCount, ProcessExecutor, Program, Sandbox, Speculation, Strategy,
};
use crate::suggest::nearest;

/// Maximum number of workers that get the same task.
const MAX_COPIES: u32 = 16;

/// Default of `hedge.min`.
const HEDGE_MIN: Duration = Duration::from_secs(1);

/// Default of `pids_limit` for strict programs.
const PIDS_LIMIT: u32 = 4096;

/// Maximum of `pids_limit`: the kernel's own limit of process ids.
const MAX_PIDS: u32 = 4_194_304;

/// Reads a field whose value is one of `words`; otherwise reports a fault and returns `None`.
pub(crate) fn keyword(
    fields: &mut Fields<'_, '_>,
    key: &'static str,
    words: &[&'static str],
) -> Option<&'static str> {
    let list = words
        .iter()
        .map(|word| format!("\"{word}\""))
        .collect::<Vec<_>>()
        .join(", ");
    if !fields.has(key) {
        fields.missing_word(key, &list);
        return None;
    }
    let text = fields.string(key, &format!("\"{}\"", words[0]))?;
    if let Some(word) = words.iter().find(|&&word| word == text) {
        return Some(word);
    }
    let help = match nearest(&text, words.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("use one of: {list}"),
    };
    let shown: String = text.chars().take(64).collect();
    fields.bad(
        Code::UnknownKind,
        key,
        format!("there is no {shown:?}"),
        help,
    );
    fields.faults().graph_unreliable = true;
    None
}

/// Reads a required field that holds one name.
pub(crate) fn queue_name(
    fields: &mut Fields<'_, '_>,
    key: &'static str,
    example: &str,
) -> Option<String> {
    let name = fields.token(key, example, true);
    if !fields.has(key) {
        fields.missing(key, example);
    }
    name
}

/// Reads the fields of redundant execution; see [`Speculation`].
pub(crate) fn speculation(fields: &mut Fields<'_, '_>) -> Speculation {
    let copies = fields.number32("copies", 1..=MAX_COPIES).unwrap_or(1);
    let accept = fields.number32("accept", 1..=MAX_COPIES).unwrap_or(1);
    let distinct_label = fields.token("distinct_label", "\"prover-\"", true);
    let example = "{ percentile = 95, min = \"2s\" }";
    let hedge = fields.table("hedge", example).map(|mut fields| {
        let hedge = Hedge {
            percentile: fields.number32("percentile", 1..=99).unwrap_or(95),
            min: fields.duration("min").unwrap_or(HEDGE_MIN),
        };
        fields.finish();
        hedge
    });
    Speculation {
        copies,
        accept,
        distinct_label,
        hedge,
    }
}

pub(crate) fn executor(mut fields: Fields<'_, '_>, folder: &Path) -> Option<Executor> {
    let executor = match keyword(&mut fields, "kind", &["process", "native", "engine"])? {
        "engine" => engine(&mut fields, folder).map(Executor::Engine),
        "process" => {
            let common = program_fields(&mut fields, folder, "\"./prove.sh\"");
            let input_flag = text(&mut fields, "input_flag", "\"-i\"");
            let output_flag = text(&mut fields, "output_flag", "\"-o\"");
            let memory_limit = fields.size("memory_limit");
            common.program.map(|program| {
                Executor::Process(ProcessExecutor {
                    program,
                    args: common.args,
                    env: common.env,
                    inherit_env: common.inherit_env,
                    sandbox: common.sandbox,
                    input_flag: input_flag.unwrap_or_else(|| "--input-path".to_owned()),
                    output_flag: output_flag.unwrap_or_else(|| "--output-path".to_owned()),
                    memory_limit,
                })
            })
        }
        _ => {
            if !fields.has("prover") {
                fields.missing("prover", "\"bitcoin.prove\"");
            }
            let prover = text(&mut fields, "prover", "\"bitcoin.prove\"");
            let params = fields.json("params", "{ slots = 4 }").unwrap_or_default();
            prover.map(|prover| Executor::Native {
                prover,
                params: Value::Object(params),
            })
        }
    };
    fields.finish();
    executor
}

/// Fields common to every table that starts a program.
pub(crate) struct ProgramFields {
    /// `None` after a fault.
    pub(crate) program: Option<Program>,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) inherit_env: Vec<String>,
    pub(crate) sandbox: Sandbox,
}

pub(crate) fn program_fields(
    fields: &mut Fields<'_, '_>,
    folder: &Path,
    example: &str,
) -> ProgramFields {
    if !fields.has("program") {
        fields.missing("program", example);
    }
    let program = text(fields, "program", example);
    let args = fields.strings("args", "[\"--fast\"]").unwrap_or_default();
    if args.iter().any(|arg| arg.contains('\0')) {
        let help = "remove the character U+0000";
        fields.bad(Code::BadPath, "args", "an argument holds a NUL", help);
    }
    ProgramFields {
        program: program.map(|program| locate(program, folder)),
        args,
        env: environment(fields),
        inherit_env: inherited(fields),
        sandbox: sandbox(fields),
    }
}

fn sandbox(fields: &mut Fields<'_, '_>) -> Sandbox {
    let strict = match fields.has("sandbox") {
        true => keyword(fields, "sandbox", &["basic", "strict"]) == Some("strict"),
        false => false,
    };
    let pids_limit = fields.number32("pids_limit", 1..=MAX_PIDS);
    if strict {
        return Sandbox::Strict {
            pids_limit: pids_limit.unwrap_or(PIDS_LIMIT),
        };
    }
    if fields.has("pids_limit") {
        let message = "`pids_limit` works for strict programs only, which are in a control group";
        let help = "add `sandbox = \"strict\"`, or remove it";
        fields.bad(Code::UnknownField, "pids_limit", message, help);
    }
    Sandbox::Basic
}

/// Reads a string that is neither empty nor contains a NUL.
pub(crate) fn text(
    fields: &mut Fields<'_, '_>,
    key: &'static str,
    example: &str,
) -> Option<String> {
    let text = fields.string(key, example)?;
    if text.is_empty() || text.contains('\0') {
        let message = if text.is_empty() {
            "an empty string"
        } else {
            "a string with a NUL"
        };
        fields.bad(
            Code::BadPath,
            key,
            message,
            format!("write it as in `{key} = {example}`"),
        );
        return None;
    }
    Some(text)
}

/// Reads `inherit_env`: names of variables that a program inherits.
fn inherited(fields: &mut Fields<'_, '_>) -> Vec<String> {
    let names = fields.strings("inherit_env", "[\"TZ\"]");
    let names = names.unwrap_or_default();
    if !names.iter().all(|name| is_variable_name(name)) {
        let help = "name variables, as in `inherit_env = [\"TZ\"]`; values belong in `env`";
        fields.bad(Code::BadPath, "inherit_env", "not a variable", help);
    }
    names
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn environment(fields: &mut Fields<'_, '_>) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for (name, value) in fields
        .json("env", "{ THREADS = \"4\" }")
        .unwrap_or_default()
    {
        match value {
            Value::String(value) if is_variable_name(&name) && !value.contains('\0') => {
                variables.insert(name, value);
            }
            Value::String(_) => {
                let help = "a variable's name is not empty, and holds neither `=` nor NUL";
                fields.bad(Code::BadPath, "env", "not a variable", help);
            }
            _ => {
                let message = "a variable's value is not a string";
                let help = "write it as in `env = { THREADS = \"4\" }`";
                fields.bad(Code::WrongType, "env", message, help);
            }
        }
    }
    variables
}

/// A bare name is searched in `PATH`; anything else is a path from the workflow's folder.
fn locate(program: String, folder: &Path) -> Program {
    let mut parts = Path::new(&program).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(_)), None) if !program.ends_with(std::path::is_separator) => {
            Program::Search(program)
        }
        _ => Program::File(folder.join(&program).components().collect()),
    }
}

pub(crate) fn path(
    fields: &mut Fields<'_, '_>,
    key: &'static str,
    folder: &Path,
    example: &str,
) -> Option<PathBuf> {
    text(fields, key, example).map(|file| folder.join(file).components().collect())
}

pub(crate) fn strategy(mut fields: Fields<'_, '_>) -> Option<Strategy> {
    let strategy = match keyword(
        &mut fields,
        "kind",
        &["match", "sequential", "range", "custom"],
    )? {
        "match" => {
            if !fields.has("k") {
                fields.missing("k", "8");
            }
            let k = match fields.is_table("k") {
                true => fields
                    .counts("k")
                    .map(|counts| MatchCount::PerQueue(counts.into_iter().collect())),
                false => fields.number32("k", 0..=MAX_COUNT).map(MatchCount::Total),
            };
            if !fields.has("group_by") {
                fields.missing("group_by", "\"/group_id\"");
            }
            let group_by = fields.pointer("group_by");
            k.zip(group_by)
                .map(|(k, group_by)| Strategy::Match { k, group_by })
        }
        "sequential" => {
            if !fields.has("n") {
                fields.missing("n", "4");
            }
            fields
                .number("n", 0..=u64::from(MAX_COUNT))
                .map(|n| Strategy::Sequential { n })
        }
        "range" => queue_name(&mut fields, "by", "\"batches\"").map(|by| Strategy::Range { by }),
        _ => {
            if !fields.has("name") {
                fields.missing("name", "\"by-height\"");
            }
            let name = text(&mut fields, "name", "\"by-height\"");
            let params = fields.json("params", "{ slots = 4 }").unwrap_or_default();
            name.map(|name| Strategy::Custom {
                name,
                params: Value::Object(params),
            })
        }
    };
    fields.finish();
    strategy
}
