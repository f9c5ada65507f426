//! Tests with deployments like real ones.

use std::fs;

use proofmill_workflow::{ChainStart, Late, MatchCount, SourceKind, Strategy, Workflow};
use serde_json::json;

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
    to_workflow(&Deployment::read(&[folder.path()])?)
}

/// Imports the files `named`, in their order; the others only exist beside them.
fn import_named(named: &[&str], files: &[(&str, &str)]) -> Result<Imported, ImportError> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let named: Vec<PathBuf> = named.iter().map(|name| folder.path().join(name)).collect();
    to_workflow(&Deployment::read(&named)?)
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
    let SourceKind::Ethereum {
        rpc,
        from,
        poll,
        payload: Some(payload),
        reorg_depth,
        ..
    } = &workflow.sources[0].kind
    else {
        panic!("{:?}", workflow.sources[0])
    };
    assert_eq!(
        (rpc[0].authority(), rpc[0].path()),
        ("node.example", "/key")
    );
    assert_eq!(*from, ChainStart::At(23_818_220));
    assert_eq!((poll.as_millis(), *reorg_depth), (500, 256));
    assert_eq!(payload.render_block(7, "0xab", "0xcd", 1), json!(7));
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
        "follows https://node.example;",
        "COLLECT_TIMEOUT_PERIOD_MILLIS",
        "/group_id",
    ] {
        assert!(remarks.contains(part), "{part} is not in {remarks}");
    }
    assert!(!remarks.contains("/key"), "{remarks}");
}

#[test]
fn a_source_that_a_workflow_cannot_follow_is_submitted_to() {
    let dispatched = format!(
        "services:\n{}",
        dispatcher("p", "blocks", "block_proofs", "")
    );
    let imported = |shared: &str, more: &str| {
        let files = [("core.yml", CORE), ("p.yml", &dispatched), (".env", shared)];
        let mut files = files.to_vec();
        files.push(("more.yml", more));
        import(&files).unwrap()
    };
    let kind = |imported: &Imported| workflow(imported).sources[0].kind.clone();
    let nothing = "services: {}\n";
    for next_block in ["", "NEXT_BLOCK=-12\n"] {
        let core = CORE.replace("${NEXT_BLOCK:-23818220}", "${NEXT_BLOCK}");
        let shared = format!("{SHARED}{next_block}");
        let followed = import(&[
            ("core.yml", &core),
            ("p.yml", &dispatched),
            (".env", &shared),
        ]);
        let behind = if next_block.is_empty() { 0 } else { 12 };
        assert!(matches!(kind(&followed.unwrap()),
                SourceKind::Ethereum { from: ChainStart::Behind(blocks), .. } if blocks == behind));
    }
    let socket = SHARED.replace("https://", "wss://");
    let submitted = imported(&socket, nothing);
    assert_eq!(kind(&submitted), SourceKind::Submit);
    let remarks = submitted.remarks.join("\n");
    assert!(
        remarks.contains("L1_RPC is left out: a workflow's source asks"),
        "{remarks}"
    );
    assert!(!remarks.contains("/key"), "{remarks}");
    // Queues that no stage writes are submitted, and a reorganisation would drop submitted messages too.
    let shared_stage = format!(
        "services:\n{}",
        dispatcher("q", "others,mo.blocks", "block_proofs", "")
    );
    let submitted = imported(SHARED, &shared_stage);
    assert_eq!(kind(&submitted), SourceKind::Submit);
    let remarks = submitted.remarks.join("\n");
    assert!(
        remarks.contains("another source reaches the same stages"),
        "{remarks}"
    );
}

#[test]
fn files_are_merged_in_their_order() {
    let steps = format!(
        "services:\n{}",
        dispatcher("p", "blocks", "block_proofs", "")
    );
    let over = "services:\n  block-collector:\n    environment:\n      NEXT_BLOCK: 7\n  p:\n    \
                environment:\n      - BINARY=/provers/${WHICH}\n";
    let shared = format!("{SHARED}WHICH=real\n");
    let files = [
        ("core.yml", CORE),
        ("steps.yml", steps.as_str()),
        ("over.yml", over),
        ("unnamed.yml", "not read"),
        (".env", shared.as_str()),
    ];
    let merged = import_named(&["core.yml", "steps.yml", "over.yml"], &files).unwrap();
    let merged = workflow(&merged);
    assert!(matches!(
        merged.sources[0].kind,
        SourceKind::Ethereum {
            from: ChainStart::At(7),
            ..
        }
    ));
    assert!(
        merged.document().text().contains("/provers/real"),
        "{}",
        merged.document().text()
    );
    // Later files override earlier ones, not the other way round.
    let other = import_named(&["over.yml", "core.yml", "steps.yml"], &files).unwrap();
    assert!(matches!(
        workflow(&other).sources[0].kind,
        SourceKind::Ethereum {
            from: ChainStart::At(23_818_220),
            ..
        }
    ));
    let told = |named: &[&str]| import_named(named, &files).unwrap_err().to_string();
    assert!(told(&["core.yml", "."]).contains("is a directory"));
    assert!(told(&["core.yml", "missing.yml"]).contains("missing.yml"));
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
    // Whatever number push0 has, a group holds a proof of each prover, so that none comes late.
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
fn a_directory_of_environments_is_a_deployment() {
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
