//! Tests that each kind of fault is reported at its position, with advice.

mod support;

use support::{FakeHost, codes, fault, with};

use proofmill_workflow::{Code, Diagnostic, validate};

/// A valid workflow, which each test damages in one place.
const SOUND: &str = r#"name = "sound"

[[source]]
name = "blocks"
kind = "range"
start = 0
end = 15
output = "blocks"

[[dispatcher]]
name = "prove"
input = "blocks"
output = "proofs"
labels = ["cpu"]
verify = true
executor = { kind = "native", prover = "test.prove" }

[[collector]]
name = "gather"
inputs = ["proofs"]
output = "groups"
strategy = { kind = "sequential", n = 4 }

[sequencer]
input = "groups"
"#;

#[track_caller]
fn spoiled(from: &str, to: &str, code: Code) -> Diagnostic {
    assert!(SOUND.contains(from), "{from:?} is in the sound workflow");
    fault(&SOUND.replacen(from, to, 1), code)
}

#[test]
fn the_sound_workflow_has_no_fault() {
    assert_eq!(codes(SOUND), []);
}

#[test]
fn values() {
    let n4 = "n = 4 }";
    let output = "output = \"proofs\"";
    for (from, to, code, field) in [
        (
            "name = \"sound\"",
            "name = \"Sound!\"",
            Code::BadName,
            "name",
        ),
        (
            "name = \"prove\"",
            "name = \"pro.ve\"",
            Code::BadName,
            "dispatcher #1.name",
        ),
        (
            output,
            "output = [\"proofs\", 3]",
            Code::WrongType,
            "dispatcher \"prove\".output[1]",
        ),
        (
            output,
            "outptu = \"proofs\"",
            Code::UnknownField,
            "dispatcher \"prove\".outptu",
        ),
        (
            "input = \"blocks\"\n",
            "",
            Code::MissingField,
            "dispatcher \"prove\"",
        ),
        (
            output,
            "output = \"proofs\"\nt_ack = \"30x\"",
            Code::BadDuration,
            "dispatcher \"prove\".t_ack",
        ),
        (
            output,
            "output = \"proofs\"\nt_ack = \"31h\"\nt_ack2 = 1",
            Code::UnknownField,
            "dispatcher \"prove\".t_ack2",
        ),
        (
            output,
            "output = \"proofs\"\nt_ack = \"9000h\"",
            Code::BadDuration,
            "dispatcher \"prove\".t_ack",
        ),
        (
            output,
            "output = \"proofs\"\nt_ack = \"0s\"",
            Code::OutOfRange,
            "dispatcher \"prove\".t_ack",
        ),
        (
            output,
            "output = \"proofs\"\nmemory = \"8 GiB\"",
            Code::BadSize,
            "dispatcher \"prove\".memory",
        ),
        (
            output,
            "output = \"proofs\"\nf_max = 0",
            Code::OutOfRange,
            "dispatcher \"prove\".f_max",
        ),
        (
            output,
            "output = \"proofs\"\nf_max = -1",
            Code::OutOfRange,
            "dispatcher \"prove\".f_max",
        ),
        (
            output,
            "output = \"proofs\"\nf_max = true",
            Code::WrongType,
            "dispatcher \"prove\".f_max",
        ),
        (
            "kind = \"range\"",
            "kind = \"rnage\"",
            Code::UnknownKind,
            "source \"blocks\".kind",
        ),
        (
            "start = 0",
            "rate = \"0/s\"",
            Code::BadRate,
            "source \"blocks\".rate",
        ),
        (
            "start = 0",
            "rate = \"ten/s\"",
            Code::BadRate,
            "source \"blocks\".rate",
        ),
        (
            "{ kind = \"sequential\", n = 4 }",
            "{ kind = \"match\", k = 4, group_by = \"id\" }",
            Code::BadPointer,
            "collector \"gather\".strategy.group_by",
        ),
        (
            "{ kind = \"sequential\", n = 4 }",
            "{ kind = \"match\", k = 4, group_by = \"/~2\" }",
            Code::BadPointer,
            "collector \"gather\".strategy.group_by",
        ),
        (
            n4,
            "n = 4, m = 1 }",
            Code::UnknownField,
            "collector \"gather\".strategy.m",
        ),
        (
            "input = \"groups\"",
            "input = \"groups\"\ndirectory = \"../up\"",
            Code::BadPath,
            "sequencer.directory",
        ),
        (
            "[sequencer]",
            "[sequenser]",
            Code::UnknownField,
            "sequenser",
        ),
    ] {
        let found = spoiled(from, to, code);
        assert_eq!(found.field, field, "{found}");
    }
}

#[test]
fn syntax() {
    let found = fault("name = \"a\nkind = 3\n", Code::Syntax);
    assert_eq!(found.line, 1);
    fault("name = \"a\"\nname = \"b\"\n", Code::Syntax);
}

#[test]
fn too_large() {
    fault(
        &" ".repeat(proofmill_workflow::MAX_FILE_SIZE + 1),
        Code::TooLarge,
    );
    let many = "[[queue]]\nname = \"q\"\n".repeat(proofmill_workflow::MAX_STAGES + 1);
    fault(&format!("name = \"a\"\n{many}"), Code::TooLarge);
}

#[test]
fn queues() {
    let found = spoiled(
        "input = \"blocks\"",
        "input = \"block\"",
        Code::UnknownQueue,
    );
    assert_eq!(found.help, "did you mean `blocks`?");
    assert_eq!((found.line, found.column), (12, 9));
    let found = spoiled(
        "input = \"groups\"",
        "input = \"elsewhere\"",
        Code::UnreadQueue,
    );
    assert_eq!(found.field, "collector \"gather\".output");

    let second = with(
        SOUND,
        "[[source]]\nname = \"more\"\nkind = \"submit\"\noutput = \"blocks\"\n",
    );
    let found = fault(&second, Code::TwoWriters);
    assert_eq!(found.field, "source \"more\".output");
    let many = with(
        &second,
        "[[queue]]\nname = \"blocks\"\nwriters = \"many\"\n",
    );
    assert_eq!(codes(&many), []);

    spoiled(
        "inputs = [\"proofs\"]",
        "inputs = [\"proofs\", \"proofs\"]",
        Code::RepeatedQueue,
    );
    let found = fault(
        &with(SOUND, "[[queue]]\nname = \"idle\"\n"),
        Code::UnusedQueue,
    );
    assert!(!found.is_error());
}

#[test]
fn names() {
    let found = spoiled("name = \"gather\"", "name = \"prove\"", Code::DuplicateName);
    assert_eq!(found.line, 19);
    spoiled(
        "name = \"gather\"",
        "name = \"sequencer\"",
        Code::DuplicateName,
    );
    let twice = "[[queue]]\nname = \"blocks\"\n[[queue]]\nname = \"blocks\"\n";
    fault(&with(SOUND, twice), Code::DuplicateName);
}

#[test]
fn a_cycle_is_named() {
    let text = r#"
name = "round"
[[source]]
name = "blocks"
kind = "submit"
output = "a"
[[queue]]
name = "a"
writers = "many"
[[dispatcher]]
name = "one"
input = "a"
output = "b"
executor = { kind = "native", prover = "test.prove" }
[[dispatcher]]
name = "two"
input = "b"
output = "a"
executor = { kind = "native", prover = "test.prove" }
"#;
    let found = fault(text, Code::Cycle);
    assert_eq!(found.message, "a cycle: one -> b -> two -> a -> one");
    assert_eq!(codes(text), [Code::Cycle], "the source feeds the cycle");
}

#[test]
fn a_stage_behind_a_cycle_is_not_reached() {
    let text = with(
        SOUND,
        r#"
[[dispatcher]]
name = "loop"
input = "x"
output = ["x", "y"]
executor = { kind = "native", prover = "test.prove" }
[[dispatcher]]
name = "after"
input = "y"
executor = { kind = "native", prover = "test.prove" }
"#,
    );
    assert_eq!(
        fault(&text, Code::Cycle).message,
        "a cycle: loop -> x -> loop"
    );
    let found = validate(&text, "w.toml".as_ref(), &FakeHost).unwrap_err();
    let lost = found
        .iter()
        .filter(|found| found.code == Code::UnreachableStage);
    assert!(
        lost.clone()
            .any(|found| found.field == "dispatcher \"after\".input")
    );
}

#[test]
fn no_source() {
    fault("name = \"empty\"\n", Code::NoSource);
}

#[test]
fn groups() {
    let n = "n = 4 }";
    spoiled(n, "n = 0 }", Code::EmptyGroup);
    let strategy = "strategy = { kind = \"sequential\", n = 4 }";
    let matching =
        |k: &str| format!("strategy = {{ kind = \"match\", k = {k}, group_by = \"/id\" }}");
    spoiled(strategy, &matching("0"), Code::EmptyGroup);
    spoiled(strategy, &matching("{}"), Code::EmptyGroup);
    spoiled(strategy, &matching("{ proofs = 0 }"), Code::EmptyGroup);
    let found = spoiled(
        strategy,
        &matching("{ proof = 2, proofs = 1 }"),
        Code::CountNotInput,
    );
    assert_eq!(found.help, "did you mean `proofs`?");
    spoiled(strategy, &matching("{ proof = 2 }"), Code::InputNotCounted);
    spoiled(
        strategy,
        &matching("{ proofs = 17 }"),
        Code::GroupNeverFills,
    );
    spoiled(strategy, &matching("17"), Code::GroupNeverFills);
    spoiled(strategy, &matching("20000"), Code::QueueBelowGroup);

    let by = |by: &str| format!("strategy = {{ kind = \"range\", by = \"{by}\" }}");
    let found = spoiled(strategy, &by("prooofs"), Code::ByNotInput);
    assert_eq!(found.help, "did you mean `proofs`?");
    spoiled(strategy, &by("proofs"), Code::NothingToJoin);
    spoiled(
        "output = \"groups\"",
        "output = \"groups\"\npartial = true",
        Code::PartialWithoutTimeout,
    );

    let short = with(SOUND, "[[queue]]\nname = \"proofs\"\nq_max = 3\n");
    let found = fault(&short, Code::QueueBelowGroup);
    assert_eq!(
        found.message,
        "a group needs 4 messages, and `proofs` holds 3"
    );
}

#[test]
fn a_sequential_group_must_be_filled_by_the_range() {
    let found = spoiled("end = 15", "end = 14", Code::GroupNeverFills);
    assert!(
        found
            .message
            .contains("the group of blocks 12 to 15 never fills"),
        "{found}"
    );
    let found = spoiled("start = 0", "start = 2", Code::GroupNeverFills);
    assert!(
        found
            .message
            .contains("the group of blocks 0 to 3 never fills"),
        "{found}"
    );
    spoiled("end = 15", "end = 17\nchunk = 3", Code::GroupNeverFills);
    let text = SOUND.replace("end = 15", "end = 14").replace(
        "output = \"groups\"",
        "output = \"groups\"\npartial = true\nt_collect = \"1s\"",
    );
    assert_eq!(codes(&text), []);
    assert_eq!(codes(&SOUND.replace("end = 15\n", "")), [], "for ever");
}

#[test]
fn several_messages_of_a_block_do_not_make_a_chain() {
    spoiled(
        "output = \"proofs\"",
        "output = \"proofs\"\nfan_out = true",
        Code::GroupAmbiguous,
    );
    let text = SOUND
        .replace(
            "output = \"proofs\"",
            "output = [\"proofs\", \"parts\"]\nfan_out = true",
        )
        .replace(
            "{ kind = \"sequential\", n = 4 }",
            "{ kind = \"match\", k = 4, group_by = \"/id\" }",
        )
        .replace("output = \"groups\"\n", "")
        .replace("input = \"groups\"", "input = \"parts\"");
    let found = fault(&text, Code::SequencerNotChain);
    assert!(found.message.contains("`prove` fans out"), "{found}");
    let both = with(
        &SOUND.replace(
            "inputs = [\"proofs\"]\noutput = \"groups\"",
            "inputs = [\"proofs\"]",
        ),
        "[[dispatcher]]\nname = \"again\"\ninput = \"blocks\"\noutput = \"groups\"\n\
         executor = { kind = \"native\", prover = \"test.prove\" }\n\
         [[dispatcher]]\nname = \"twice\"\ninput = \"blocks\"\noutput = \"groups\"\n\
         executor = { kind = \"native\", prover = \"test.prove\" }\n\
         [[queue]]\nname = \"groups\"\nwriters = \"many\"\n",
    );
    fault(&both, Code::SequencerNotChain);
}

#[test]
fn the_sequencer_starts_at_a_block_that_comes() {
    let input = "input = \"groups\"";
    spoiled(
        input,
        "input = \"groups\"\nstart = 16",
        Code::SequencerStart,
    );
    spoiled(input, "input = \"groups\"\nstart = 5", Code::SequencerStart);
    spoiled("start = 0", "start = 4", Code::SequencerStart);
    assert_eq!(
        codes(&SOUND.replace(input, "input = \"groups\"\nstart = 8")),
        []
    );
    spoiled("start = 0", "start = 40", Code::EmptyRange);
}

#[test]
fn workers() {
    let labels = "labels = [\"cpu\"]";
    spoiled(labels, "workers = 0", Code::NoWorkers);
    let found = spoiled(
        labels,
        "labels = [\"cpu\"]\nrequires = [\"cpu\", \"gpu\"]",
        Code::UnmetRequirement,
    );
    assert_eq!(found.message, "the workers of group \"prove\" lack: gpu");
    spoiled(
        labels,
        "memory = \"8GiB\"\nmemory_available = \"4GiB\"",
        Code::UnmetMemory,
    );
    spoiled(labels, "heartbeat = \"15s\"", Code::SlowHeartbeat);
    spoiled(labels, "t_ack = \"10s\"", Code::SlowHeartbeat);
    spoiled(
        "[[source]]",
        "[defaults]\nt_ack = \"10s\"\n[[source]]",
        Code::SlowHeartbeat,
    );
    spoiled(labels, "backoff = { initial = \"2m\" }", Code::BackoffOrder);
    spoiled(
        "output = \"proofs\"",
        "fan_out = true",
        Code::FanOutToNobody,
    );
}

#[test]
fn copies() {
    let labels = "labels = [\"cpu\"]";
    for (to, code, message) in [
        (
            "workers = 3\ncopies = 2\naccept = 3",
            Code::AcceptAboveCopies,
            "3 results of a task cannot come from 2 copies of it",
        ),
        (
            "workers = 2\ncopies = 3",
            Code::TooFewWorkers,
            "each task is for 3 workers, and group \"prove\" has 2",
        ),
        (
            "workers = 3\ncopies = 3\nlabels = [\"prover-a\"]\ndistinct_label = \"prover-\"",
            Code::TooFewWorkers,
            "each task is for workers with 3 different labels that begin with \"prover-\", and \
             group \"prove\" has 1",
        ),
        (
            "workers = 2\ncopies = 2\naccept = 2\nfan_out = true",
            Code::AcceptWithFanOut,
            "the elements of several results cannot be matched to each other",
        ),
        (
            "workers = 2\ncopies = 2\nbatch = 4",
            Code::BatchWithCopies,
            "a task for several workers cannot be part of a batch",
        ),
        ("copies = 17", Code::OutOfRange, "17 is not from 1 to 16"),
        (
            "hedge = { percentile = 100 }",
            Code::OutOfRange,
            "100 is not from 1 to 99",
        ),
        (
            "hedge = { after = \"2s\" }",
            Code::UnknownField,
            "there is no field `after` here",
        ),
    ] {
        let first = |found: &Diagnostic| found.code == code;
        let found = validate(&SOUND.replace(labels, to), "w.toml".as_ref(), &FakeHost);
        let found = found.expect_err(to).into_iter().find(first);
        assert_eq!(found.expect(to).message, message);
    }
    let sound = "workers = 3\ncopies = 3\naccept = 2\nhedge = { percentile = 90, min = \"2s\" }";
    assert_eq!(codes(&SOUND.replace(labels, sound)), []);
}

#[test]
fn deadlines() {
    let sequencer = "[sequencer]";
    let at = |text: &str| format!("[deadline]\n{text}\n[sequencer]");
    spoiled(sequencer, &at(""), Code::MissingField);
    spoiled(sequencer, &at("slot = \"12\""), Code::BadDuration);
    let twice = "slot = \"12s\"\non_missed = \"skip\"";
    let found = spoiled(sequencer, &at(twice), Code::UnknownKind);
    assert_eq!(found.help, "use one of: \"keep\", \"drop\"");
    let drop = "slot = \"12s\"\non_missed = \"drop\"";
    let found = spoiled(sequencer, &at(drop), Code::DropWithSequencer);
    assert_eq!(found.field, "deadline.on_missed");
    let sound = at("slot = \"12s\"\non_missed = \"keep\"");
    assert_eq!(codes(&SOUND.replace(sequencer, &sound)), []);
}

#[test]
fn executors() {
    let native = "executor = { kind = \"native\", prover = \"test.prove\" }";
    let found = spoiled("test.prove", "test.porve", Code::UnknownProver);
    assert_eq!(found.help, "did you mean \"test.prove\"?");
    let process =
        |program: &str| format!("executor = {{ kind = \"process\", program = {program:?} }}");
    spoiled(native, &process("./nowhere.sh"), Code::MissingProgram);
    spoiled(native, &process("nowhere"), Code::MissingProgram);
    let found = spoiled(native, &process("./plain.sh"), Code::ProgramNotExecutable);
    assert!(found.help.starts_with("run `chmod +x "), "{found}");
    let batch = format!("batch = 2\nf_max = 2\n{}", process("./good.sh"));
    spoiled(native, &batch, Code::BatchNeedsNative);
    let good = SOUND.replace(native, &process("./good.sh"));
    assert_eq!(codes(&good), [Code::NoEmissionCheck]);
    let unverified = good.replace("verify = true\n", "");
    assert_eq!(codes(&unverified), [Code::UnverifiedEmission]);
    spoiled(
        "kind = \"range\"\nstart = 0\nend = 15",
        "kind = \"jsonl\"\nfile = \"no\"",
        Code::MissingFile,
    );
    spoiled(
        "{ kind = \"sequential\", n = 4 }",
        "{ kind = \"custom\", name = \"no\" }",
        Code::UnknownStrategy,
    );
}

#[test]
fn what_leaves_unverified_is_said() {
    let verify = "verify = true\n";
    let found = spoiled(verify, "", Code::UnverifiedEmission);
    assert!(!found.is_error());
    assert_eq!(found.field, "sequencer.input");
    assert_eq!(
        found.message,
        "no stage verifies the results of prove: they are emitted unchecked"
    );

    // A further stage after the verifying one processes its results.
    let more = "[[dispatcher]]\nname = \"more\"\ninput = \"groups\"\noutput = \"made\"\n\
                executor = { kind = \"native\", prover = \"test.prove\" }\n\n[sequencer]";
    let behind = SOUND.replace("[sequencer]", more);
    let behind = behind.replace(
        "[sequencer]\ninput = \"groups\"",
        "[sequencer]\ninput = \"made\"",
    );
    let found = fault(&behind, Code::UnverifiedEmission);
    assert!(found.message.contains("the results of more"), "{found}");

    // Trusting the verifiers is reported, too.
    let name = "name = \"sound\"";
    let trusting = format!("{name}\ntrust_verifiers = true");
    let found = spoiled(name, &trusting, Code::TrustedVerifiers);
    assert!(!found.is_error());
    assert_eq!(found.field, "trust_verifiers");
    let native = "{ kind = \"native\", prover = \"test.prove\" }";
    let program = "{ kind = \"process\", program = \"./good.sh\" }";
    let found = spoiled(native, program, Code::NoEmissionCheck);
    assert!(found.is_error());
    assert_eq!(found.field, "dispatcher \"prove\".verify");
    let trusting = SOUND.replace(name, &trusting).replace(native, program);
    assert_eq!(codes(&trusting), [Code::TrustedVerifiers]);
}

#[test]
fn only_provers_that_offer_a_check_are_checked_before_results_count() {
    let verify = "verify = true";
    let checked = format!("{verify}\ncheck_results = true");
    let found = spoiled(verify, &checked, Code::NoResultCheck);
    assert!(found.is_error());
    assert_eq!(found.field, "dispatcher \"prove\".check_results");
    let sound = SOUND.replace(verify, "check_results = true");
    let sound = sound.replace("prover = \"test.prove\"", "prover = \"test.checked\"");
    assert_eq!(codes(&sound), [Code::UnverifiedEmission]);
}

#[test]
fn engines() {
    let native = "executor = { kind = \"native\", prover = \"test.prove\" }";
    let sound = "circuit = \"spend\", endpoints = [\"unix:e.sock\", \"https://a:9464\"]";
    let engine = |fields: &str| format!("executor = {{ kind = \"engine\", {fields} }}");
    let more = format!("{sound}, generator = \"mul\", priority = \"low\", patience = \"5s\"");
    for fields in [sound, &more] {
        let found = codes(&SOUND.replace(native, &engine(fields)));
        assert_eq!(found, [Code::NoEmissionCheck]);
    }
    for (from, to, code) in [
        ("circuit = \"spend\", ", "", Code::MissingField),
        ("spend", "sp end", Code::BadName),
        ("https://a:9464", "a:9464", Code::BadUrl),
        ("https://a:9464", "https://a", Code::BadUrl),
        ("https://a:9464", "https://a:1/x", Code::BadUrl),
        ("https://a:9464", "unix:", Code::BadUrl),
        ("https://a:9464", "unix:./e.sock", Code::BadUrl),
        ("\"unix:e.sock\", \"https://a:9464\"", "", Code::OutOfRange),
        ("\"low\"", "\"lowest\"", Code::UnknownKind),
        ("\"5s\"", "\"5\"", Code::BadDuration),
        ("generator", "generater", Code::UnknownField),
        (
            "generator = \"mul\"",
            "ca = \"nowhere.pem\"",
            Code::MissingFile,
        ),
        (
            "generator = \"mul\"",
            "verifying_key = \"nowhere.json\"",
            Code::MissingFile,
        ),
    ] {
        spoiled(native, &engine(&more.replace(from, to)), code);
    }
    let with = |field: &str| format!("{field}\n{}", engine(sound));
    spoiled(native, &with("batch = 2"), Code::BatchNeedsNative);
    spoiled(native, &with("fan_out = true"), Code::FanOutOfProof);
}

#[test]
fn chains() {
    let range = "kind = \"range\"\nstart = 0\nend = 15";
    let at = |more: &str| format!("kind = \"ethereum\"\n{more}");
    let rpc = "rpc = \"http://127.0.0.1:8545\"";
    spoiled(range, &at(""), Code::MissingField);
    spoiled(range, &at("rpc = []"), Code::OutOfRange);
    let found = spoiled(range, &at("rpc = [\"ws://x/secret\"]"), Code::BadUrl);
    assert!(!found.message.contains("secret"), "{found}");
    for (more, code) in [
        ("from = \"tail\"", Code::UnknownKind),
        ("from = 1.5", Code::WrongType),
        ("from = 99999999999999999999", Code::OutOfRange),
        ("reorg_depth = 0", Code::OutOfRange),
        ("confirmations = 5000", Code::OutOfRange),
        ("poll = \"0s\"", Code::OutOfRange),
        ("payload = \"{block}\"\nfull = true", Code::PayloadWithFull),
        ("payload = nan", Code::OutOfRange),
    ] {
        spoiled(range, &at(&format!("{rpc}\n{more}")), code);
    }
    // Groups of four that begin within one never fill.
    let found = spoiled(
        range,
        &at(&format!("{rpc}\nfrom = 6")),
        Code::GroupNeverFills,
    );
    assert!(!found.help.is_empty());
    for sound in [
        format!("{rpc}\nfrom = 8"),
        format!("{rpc}\nfrom = -3\nfull = true\npoll = \"1s\"\nconfirmations = 12"),
        "rpc = [\"https://a/k\", \"http://b\"]\nfrom = \"head\"\nreorg_depth = 4096".to_owned(),
        format!("{rpc}\npayload = \"{{block}}\""),
        format!("{rpc}\npayload = {{ height = \"{{block}}\", id = \"{{hash}}\" }}"),
    ] {
        let text = SOUND.replace(range, &at(&sound));
        let text = text.replace("input = \"groups\"", "input = \"groups\"\nstart = 8");
        assert_eq!(codes(&text), [], "{sound}");
    }
    let more = "[[source]]\nname = \"more\"\nkind = \"submit\"\noutput = \"proofs\"\n\n\
                [[queue]]\nname = \"proofs\"\nwriters = \"many\"";
    let text = SOUND.replace(range, &at(rpc));
    let found = fault(&with(&text, more), Code::MixedChain);
    assert_eq!(found.field, "source \"blocks\".output");
    assert!(found.message.contains("\"more\" reaches"), "{found}");
}

#[test]
fn joins_cover_the_same_blocks() {
    let join = |more: &str| {
        format!(
            r#"
name = "join"
[[source]]
name = "blocks"
kind = "range"
end = 31
output = "blocks"
[[source]]
name = "batches"
kind = "range"
{more}
output = "batches"
[[collector]]
name = "join"
inputs = ["blocks", "batches"]
strategy = {{ kind = "range", by = "batches" }}
"#
        )
    };
    assert_eq!(codes(&join("end = 31\nchunk = 8")), []);
    fault(&join("end = 39\nchunk = 8"), Code::GroupNeverFills);
    fault(&join("chunk = 8"), Code::GroupNeverFills);
    let crossing = join("end = 31\nchunk = 8").replacen("end = 31", "end = 31\nchunk = 3", 1);
    fault(&crossing, Code::GroupNeverFills);
}

#[test]
fn every_fault_is_reported_at_once() {
    let text = SOUND
        .replace("start = 0", "start = 0\nrate = \"fast\"")
        .replace("labels = [\"cpu\"]", "t_ack = \"soon\"\nmemory = \"much\"")
        .replace("test.prove", "other");
    let found = validate(&text, "w.toml".as_ref(), &FakeHost).unwrap_err();
    let found: Vec<Code> = found.iter().map(|found| found.code).collect();
    assert_eq!(
        found,
        [
            Code::BadRate,
            Code::BadDuration,
            Code::BadSize,
            Code::UnknownProver
        ]
    );
}

#[test]
fn queues_are_checked_beside_other_faults() {
    let misspelt = SOUND.replace("inputs = [\"proofs\"]", "inputs = [\"proof\"]");
    let queues = [Code::UnreadQueue, Code::UnknownQueue];
    let beside = |from: &str, to: &str, code: Code| {
        assert!(misspelt.contains(from), "{from:?}");
        let mut expected = vec![code];
        expected.extend(queues);
        let mut codes = codes(&misspelt.replacen(from, to, 1));
        codes.sort_by_key(|code| queues.iter().position(|other| other == code));
        assert_eq!(codes, expected, "{to}");
    };
    assert_eq!(codes(&misspelt), queues);
    // In the tables that name the queues, and in others; with stages that can be read and that cannot.
    beside("verify = true", "t_ack = \"soon\"", Code::BadDuration);
    beside(
        "n = 4 }",
        "n = 4 }\nt_collect = \"soon\"",
        Code::BadDuration,
    );
    beside(
        "verify = true",
        "verify = true\nverfy = true",
        Code::UnknownField,
    );
    beside("name = \"prove\"\n", "", Code::MissingField);
    beside("kind = \"range\"", "kind = \"rang\"", Code::UnknownKind);
    beside("kind = \"native\"", "kind = \"naive\"", Code::UnknownKind);
    beside("prover = \"test.prove\"", "prover = 3", Code::WrongType);
    beside("n = 4", "n = 0", Code::EmptyGroup);

    let found = fault(
        &misspelt.replacen("kind = \"range\"", "kind = \"rang\"", 1),
        Code::UnknownQueue,
    );
    assert_eq!(found.help, "did you mean `proofs`?");
    assert_eq!(found.field, "collector \"gather\".inputs[0]");
}

/// A queue is not reported if the name that is missing may be one that could not be read.
#[test]
fn a_name_that_cannot_be_read_makes_no_queue_unknown_or_unread() {
    for (from, to, code) in [
        ("output = \"proofs\"", "output = 3", Code::WrongType),
        ("output = \"proofs\"", "output = \"Proofs!\"", Code::BadName),
        (
            "output = \"proofs\"",
            "outptu = \"proofs\"",
            Code::UnknownField,
        ),
        ("output = \"blocks\"\n", "", Code::MissingField),
        ("input = \"blocks\"\n", "", Code::MissingField),
        (
            "inputs = [\"proofs\"]",
            "inputs = [\"proofs\", 3]",
            Code::WrongType,
        ),
        ("[[dispatcher]]", "[[dispacher]]", Code::UnknownField),
        ("[[dispatcher]]", "[dispatcher]", Code::WrongType),
        ("[sequencer]", "[sequencr]", Code::UnknownField),
    ] {
        assert!(SOUND.contains(from), "{from:?}");
        assert_eq!(codes(&SOUND.replacen(from, to, 1)), [code], "{to}");
    }
    // A wrong executor hides the stage, and not its queues.
    assert_eq!(
        codes(&SOUND.replacen("prover = \"test.prove\"", "prover = 3", 1)),
        [Code::WrongType]
    );
}

#[test]
fn a_fault_is_shown_with_its_line_and_a_caret() {
    let found = spoiled("labels = [\"cpu\"]", "t_ack = \"30x\"", Code::BadDuration);
    let expected = "w.toml:14:9: error: dispatcher \"prove\".t_ack: \"30x\" is not a duration \
                    [bad-duration]\n  14 | t_ack = \"30x\"\n     |         ^^^^^\n  help: write a \
                    whole number and ms, s, m or h, as in \"30s\"";
    assert_eq!(found.to_string(), expected);
}

#[test]
fn the_reference_explains_every_code() {
    let reference = include_str!("../../../docs/workflow.md");
    for code in Code::ALL {
        assert!(
            reference.contains(&format!("| `{code}` |")),
            "docs/workflow.md lacks {code}"
        );
    }
}

#[test]
fn late_messages() {
    let n4 = "strategy = { kind = \"sequential\", n = 4 }";
    let with = |late: &str| SOUND.replacen(n4, &format!("{n4}\nlate = {late}"), 1);
    for sound in ["\"dead\"", "\"skip\""] {
        assert_eq!(codes(&with(sound)), [], "{sound}");
    }
    let wrong = fault(&with("\"emitt\""), Code::UnknownKind);
    assert_eq!(
        (&*wrong.field, &*wrong.help),
        ("collector \"gather\".late", "did you mean \"emit\"?")
    );
    let wrong = fault(&with("true"), Code::WrongType);
    assert_eq!(wrong.field, "collector \"gather\".late");
    // The sequencer emits one message per block.
    let wrong = fault(&with("\"emit\""), Code::SequencerNotChain);
    assert!(
        wrong
            .message
            .contains("`gather` emits late messages one by one"),
        "{wrong}"
    );
    assert!(wrong.help.contains("\"dead\""), "{wrong}");
    let gathered = with("\"emit\"").replacen(
        "[sequencer]\ninput = \"groups\"",
        "[[collector]]\nname = \"pairs\"\ninputs = [\"groups\"]\noutput = \"pairs\"\n\
         strategy = { kind = \"match\", k = 2, group_by = \"/id\" }\n[sequencer]\ninput = \"pairs\"",
        1,
    );
    assert_eq!(codes(&gathered), []);
}

/// The sound workflow with a table `[[scaling]]` for each of these bodies.
fn scaled(pools: &[&str]) -> String {
    let tables = pools.iter().map(|pool| format!("[[scaling]]\n{pool}\n"));
    format!("{SOUND}\n{}", tables.collect::<String>())
}

#[test]
fn pools_of_workers() {
    let sound = [
        "group = \"prove\"\nname = \"spot\"\nlabels = [\"spot\"]\nmin = 1\nmax = 1\nfallback = \"rest\"",
        "group = \"prove\"\nname = \"rest\"\nestimate = \"20s\"\nwithin = \"1m\"\nhold = \"1m\"\nfallback_after = \"1m\"",
    ];
    assert_eq!(codes(&scaled(&sound)), []);
    let [spot, rest] = sound;
    let prove = "group = \"prove\"";
    for (pools, code, field) in [
        (
            vec!["name = \"spot\""],
            Code::MissingField,
            "scaling \"spot\"",
        ),
        (
            vec!["group = \"prof\""],
            Code::UnknownGroup,
            "scaling #1.group",
        ),
        (vec![prove, prove], Code::DuplicateName, "scaling #2.group"),
        (
            vec![rest, rest],
            Code::DuplicateName,
            "scaling \"rest\".name",
        ),
        (vec![spot], Code::BadFallback, "scaling \"spot\".fallback"),
        (
            vec!["group = \"prove\"\nmin = 7\nmax = 6"],
            Code::OutOfRange,
            "scaling #1.min",
        ),
        (
            vec!["group = \"prove\"\nmax = 0"],
            Code::OutOfRange,
            "scaling #1.max",
        ),
        (
            vec!["group = \"prove\"\nhold = \"200h\""],
            Code::OutOfRange,
            "scaling #1.hold",
        ),
        (
            vec!["group = \"prove\"\nsize = 4"],
            Code::UnknownField,
            "scaling #1.size",
        ),
    ] {
        let found = fault(&scaled(&pools), code);
        assert_eq!(found.field, field, "{found}");
    }
    let own = "group = \"prove\"\nfallback = \"prove\"";
    assert!(
        fault(&scaled(&[own]), Code::BadFallback)
            .message
            .contains("itself")
    );
    let chain = rest.to_owned() + "\nfallback = \"last\"";
    let last = "group = \"prove\"\nname = \"last\"";
    let found = fault(&scaled(&[spot, &chain, last]), Code::BadFallback);
    assert!(
        found.message.contains("has a fallback pool itself"),
        "{found}"
    );
    let near = fault(&scaled(&["group = \"proves\""]), Code::UnknownGroup);
    assert_eq!(near.help, "did you mean `prove`?");
    // The stage needs a label that only the fallback pool has.
    let needs = scaled(&[
        "group = \"prove\"\nname = \"a\"\nlabels = [\"spot\"]\nfallback = \"b\"",
        "group = \"prove\"\nname = \"b\"\nlabels = [\"cpu\"]",
    ]);
    let needs = needs.replace(
        "labels = [\"cpu\"]\nverify",
        "labels = [\"cpu\"]\nrequires = [\"cpu\"]\nverify",
    );
    let found = fault(&needs, Code::UncoveredStage);
    assert_eq!(found.field, "dispatcher \"prove\".requires");
}
