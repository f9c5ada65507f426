//! Deployments as people have them.

use std::fs;

use proofmill_workflow::{Late, MatchCount, SourceKind, Strategy, Workflow};

use super::*;

const CORE: &str = r#"
services:
  nats:
    image: nats:2.12.2
    command: -js -DV
  block-collector:
    env_file: ".env"
    environment:
      - INPUT_QUEUE=mo.unused
      - OUTPUT_QUEUE=mo.blocks
      - STRATEGY=Block
      - NUM_INPUTS=1
      - SINGLE_OUTPUT=true
      - COLLECT_TIMEOUT_PERIOD_MILLIS=500
      - NEXT_BLOCK=${NEXT_BLOCK:-23818220}
    command: collector
  proof-collector:
    env_file: ".env"
    environment:
      INPUT_QUEUE: mo.block_proofs,mo.blocks
      OUTPUT_QUEUE: mo.completed_proofs
      STRATEGY: Proof
      SINGLE_OUTPUT: true
      COLLECT_TIMEOUT_PERIOD_MILLIS: 500
      NUM_INPUTS: 1
    command: collector
"#;

const SHARED: &str = "L1_RPC=https://node.example/key\nNATS_URL=nats://host:4223\n\
                      MESSAGE_BUS_TYPE=NatsBasic\nSTORAGE_TYPE=Nats\nINPUT_STREAM=mo\n\
                      OUTPUT_STREAM=mo\nMETRICS_PORT=8888\n";

fn dispatcher(name: &str, input: &str, output: &str, more: &str) -> String {
    format!(
        "  {name}:\n    env_file: .env\n    command: dispatcher\n    environment:\n      \
         - INPUT_QUEUE=mo.{input}\n      - OUTPUT_QUEUE=mo.{output}\n      \
         - EXECUTOR_TYPE=JsonExecutor\n      - BINARY=/provers/mock\n{more}"
    )
}

fn import(files: &[(&str, &str)]) -> Result<Imported, ImportError> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    to_workflow(&Deployment::read(folder.path())?)
}

fn workflow(imported: &Imported) -> Workflow {
    Workflow::parse(&imported.workflow, "workflow.toml").unwrap()
}

#[test]
fn the_demo_becomes_a_workflow() {
    let mut steps = "services:\n".to_owned();
    steps += &dispatcher(
        "partitioner",
        "blocks",
        "steps",
        "      - MULTIPLE_OUTPUT=1\n",
    );
    for number in 1..=3 {
        steps += &dispatcher(
            &format!("step-prover-{number}"),
            "steps",
            "step_proofs",
            "      - ACK_WAIT=6s\n",
        );
    }
    steps += "  step-collector:\n    env_file: .env\n    command: collector\n    environment:\n      \
              - INPUT_QUEUE=mo.step_proofs\n      - OUTPUT_QUEUE=mo.collected\n      \
              - STRATEGY=Match\n      - SINGLE_OUTPUT=false\n      - NUM_INPUTS=10\n";
    steps += &dispatcher(
        "prover",
        "collected",
        "block_proofs",
        "      - MAX_DELIVER=3\n",
    );
    let imported = import(&[("core.yml", CORE), ("steps.yml", &steps), (".env", SHARED)]).unwrap();
    let workflow = workflow(&imported);
    assert!(matches!(workflow.sources[0].kind, SourceKind::Submit));
    let provers = workflow.dispatcher("step-prover-1").unwrap();
    assert_eq!((provers.workers, provers.input.as_str()), (3, "steps"));
    assert_eq!(provers.policy.t_ack.as_secs(), 6);
    assert!(workflow.dispatcher("partitioner").unwrap().fan_out);
    assert_eq!(workflow.dispatcher("prover").unwrap().policy.r_max, 2);
    assert!(
        matches!(&workflow.collector("step-collector").unwrap().strategy,
        Strategy::Match { group_by, .. } if group_by.to_string() == "/group_id")
    );
    assert!(
        matches!(&workflow.collector("proof-collector").unwrap().strategy,
        Strategy::Range { by } if by == "blocks")
    );
    let sequencer = workflow.sequencer.as_ref().unwrap();
    assert_eq!(
        (sequencer.input.as_str(), sequencer.start),
        ("completed_proofs", 23_818_220)
    );
    let remarks = imported.remarks.join("\n");
    for part in [
        "nats: neither",
        "submit",
        "COLLECT_TIMEOUT_PERIOD_MILLIS",
        "/group_id",
    ] {
        assert!(remarks.contains(part), "{part} is not in {remarks}");
    }
    assert!(!imported.workflow.contains("key"), "{}", imported.workflow);
}

#[test]
fn several_provers_of_each_block_are_gathered_first() {
    let mut provers = "services:\n".to_owned();
    for name in ["sp1", "risc0"] {
        provers += &dispatcher(
            name,
            "blocks",
            "block_proofs",
            &format!("      - CONSUMER_NAME={name}\n"),
        );
    }
    // Whatever push0 counts, a group holds a proof of each: none comes late.
    for counted in ["NUM_INPUTS: 1", "NUM_INPUTS: 2"] {
        let core = CORE.replace("NUM_INPUTS: 1", counted);
        let files = [("core.yml", &*core), ("p.yml", &*provers), (".env", SHARED)];
        let imported = import(&files).unwrap();
        let workflow = workflow(&imported);
        assert_eq!(workflow.dispatchers.len(), 2);
        let gather = workflow.collector("proof-collector-proofs").unwrap();
        let Strategy::Match { k, group_by } = &gather.strategy else {
            panic!("{:?}", gather.strategy);
        };
        assert_eq!((k, group_by.as_str()), (&MatchCount::Total(2), "/block"));
        assert_eq!(gather.late, Late::Dead);
        assert!(workflow.sequencer.is_some());
        let remarks = imported.remarks.join("\n");
        assert!(remarks.contains("before they are joined: 2, "), "{remarks}");
    }
}

#[test]
fn a_directory_of_environments_will_do() {
    let imported = import(&[
        (".env", "INPUT_STREAM=s\n"),
        (
            "prove.env",
            "BINARY=./prove\nINPUT_QUEUE=a,b\nOUTPUT_QUEUE=c\n",
        ),
        (
            "order.env",
            "STRATEGY=Sequential\nINPUT_QUEUE=c\nOUTPUT_QUEUE=d\nNUM_INPUTS=4\n",
        ),
        ("notes.txt", "nothing"),
    ])
    .unwrap();
    let workflow = workflow(&imported);
    assert_eq!(workflow.dispatchers.len(), 2);
    assert!(
        workflow
            .dispatchers
            .iter()
            .all(|stage| stage.group == "prove")
    );
    assert_eq!(workflow.sources.len(), 2);
    assert!(matches!(
        workflow.collectors[0].strategy,
        Strategy::Sequential { n: 4 }
    ));
}

#[test]
fn what_cannot_be_imported_says_why() {
    let told = |files: &[(&str, &str)]| import(files).unwrap_err().to_string();
    assert!(told(&[("x.txt", "")]).contains("holds no dispatcher or collector"));
    let wrong = told(&[("p.env", "INPUT_QUEUE=a\nBINARY=x\nACK_WAIT=soon\n")]);
    assert!(
        wrong.contains("the service p: ACK_WAIT holds \"soon\""),
        "{wrong}"
    );
    let twice = told(&[("a.yml", CORE), ("b.yml", CORE), (".env", SHARED)]);
    assert!(twice.contains("in another file too"), "{twice}");
    assert!(
        told(&[("a.yml", CORE)]).contains(".env"),
        "the file that env_file names is not there"
    );
}
