//! Tests that stages and queues are linked in both directions, and that defaults reach every stage.

use std::time::Duration;

use proofmill_workflow::{
    Executor, JsonPointer, ProcessExecutor, Program, Sandbox, Workflow, render,
};

const TEXT: &str = r#"
name = "plan"
[defaults]
t_ack = "1m"
q_max = 50
backoff = { initial = "2s" }
[[source]]
name = "blocks"
kind = "range"
output = ["a", "b"]
rate = "30/m"
[[queue]]
name = "c"
q_max = 7
[[dispatcher]]
name = "one"
input = "a"
output = "c"
r_max = 0
backoff = { max = "3s" }
executor = { kind = "process", program = "bin/../prove", args = ["-x"], env = { A = "b" } }
[[dispatcher]]
name = "two"
input = "a"
executor = { kind = "process", program = "prove" }
[[collector]]
name = "join"
inputs = ["b", "c"]
strategy = { kind = "match", k = 2, group_by = "/id" }
"#;

#[test]
fn stages_and_queues_are_linked() {
    let workflow =
        Workflow::parse(TEXT, "/srv/w.toml").unwrap_or_else(|f| panic!("{}", render(&f)));
    let linked = workflow.link();
    let names: Vec<&str> = linked
        .stages
        .iter()
        .map(|stage| stage.name.as_str())
        .collect();
    assert_eq!(names, ["blocks", "one", "two", "join"]);
    let queue = |name: &str| linked.queue_by_name(name).expect("a queue");
    let stage = |name: &str| linked.stage_by_name(name).expect("a stage").id;
    assert_eq!(queue("a").writers, [stage("blocks")]);
    assert_eq!(queue("a").readers, [stage("one"), stage("two")]);
    assert_eq!((queue("a").q_max, queue("c").q_max), (50, 7));
    let pointer = JsonPointer::try_new("/id").expect("a pointer");
    assert_eq!(queue("b").grouping, [(stage("join"), pointer)]);
    assert_eq!(queue("a").grouping, []);
    assert_eq!(
        linked.stage(stage("join")).inputs,
        [queue("b").id, queue("c").id]
    );
}

#[test]
fn defaults_reach_every_stage() {
    let workflow =
        Workflow::parse(TEXT, "/srv/w.toml").unwrap_or_else(|f| panic!("{}", render(&f)));
    let one = &workflow.dispatcher("one").expect("a stage").policy;
    assert_eq!((one.t_ack, one.r_max), (Duration::from_secs(60), 0));
    assert_eq!(one.backoff.initial, Duration::from_secs(2));
    assert_eq!(one.backoff.max, Duration::from_secs(3));
    let two = &workflow.dispatcher("two").expect("a stage").policy;
    assert_eq!((two.r_max, two.backoff.max), (3, Duration::from_secs(60)));
    let rate = workflow.sources[0].rate.expect("a rate");
    assert_eq!(
        (rate.per_second(), rate.interval()),
        (0.5, Duration::from_secs(2))
    );
}

#[cfg(unix)]
#[test]
fn programs_are_found_from_the_files_folder() {
    let workflow =
        Workflow::parse(TEXT, "/srv/w.toml").unwrap_or_else(|f| panic!("{}", render(&f)));
    let program = |name: &str| match &workflow.dispatcher(name).expect("a stage").executor {
        Executor::Process(process) => process.program.clone(),
        Executor::Native { .. } | Executor::Engine(_) => panic!("a program"),
    };
    assert_eq!(program("one"), Program::File("/srv/bin/../prove".into()));
    assert_eq!(program("two"), Program::Search("prove".to_owned()));
}

#[test]
fn programs_are_given_what_is_named_and_confined_as_is_asked() {
    let process = |more: &str| -> ProcessExecutor {
        let text = TEXT.replace("program = \"prove\"", &format!("program = \"prove\"{more}"));
        let workflow = Workflow::parse(&text, "/srv/w.toml");
        let workflow = workflow.unwrap_or_else(|f| panic!("{}", render(&f)));
        match workflow
            .dispatcher("two")
            .expect("a stage")
            .executor
            .clone()
        {
            Executor::Process(process) => process,
            other => panic!("{other:?}"),
        }
    };
    let plain = process("");
    assert_eq!(plain.inherit_env, [""; 0]);
    assert_eq!(plain.sandbox, Sandbox::Basic);
    assert_eq!(process(", sandbox = \"basic\"").sandbox, Sandbox::Basic);
    let strict = process(", inherit_env = [\"TZ\", \"RAYON_NUM_THREADS\"], sandbox = \"strict\"");
    assert_eq!(strict.inherit_env, ["TZ", "RAYON_NUM_THREADS"]);
    assert_eq!(strict.sandbox, Sandbox::Strict { pids_limit: 4096 });
    let bounded = process(", sandbox = \"strict\", pids_limit = 8");
    assert_eq!(bounded.sandbox, Sandbox::Strict { pids_limit: 8 });

    for (more, field) in [
        (", pids_limit = 8", "pids_limit"),
        (", sandbox = \"strict\", pids_limit = 0", "pids_limit"),
        (", sandbox = \"stict\"", "sandbox"),
        (", inherit_env = [\"A=b\"]", "inherit_env"),
        (", inherit_env = \"TZ\"", "inherit_env"),
    ] {
        let text = TEXT.replace("program = \"prove\"", &format!("program = \"prove\"{more}"));
        let faults = Workflow::parse(&text, "/srv/w.toml").expect_err(more);
        let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
        let at = format!("dispatcher \"two\".executor.{field}");
        assert_eq!(fields, [at.as_str()], "{more}");
    }
}

#[test]
fn engines_are_found_from_the_files_folder() {
    let executor = "{ kind = \"engine\", circuit = \"spend\", token = \"t\", \
                    endpoints = [\"unix:run/../e.sock\", \"http://[::1]:9464\"] }";
    let text = TEXT.replace("{ kind = \"process\", program = \"prove\" }", executor);
    let workflow =
        Workflow::parse(&text, "/srv/w.toml").unwrap_or_else(|f| panic!("{}", render(&f)));
    let Executor::Engine(engine) = &workflow.dispatcher("two").expect("a stage").executor else {
        panic!("an engine");
    };
    let endpoints: Vec<String> = engine.endpoints.iter().map(|at| at.to_string()).collect();
    assert_eq!(endpoints, ["unix:/srv/run/../e.sock", "http://[::1]:9464"]);
    assert_eq!(engine.token.as_deref(), Some("/srv/t".as_ref()));
    assert_eq!(engine.patience, Duration::from_secs(60));
    assert_eq!((&engine.generator, engine.priority), (&None, None));
}
