//! Tests of permissions denied to each role's user on a server with deploy/nats/cluster.conf; every
//! refusal is made by the server.

use std::sync::LazyLock;

use async_nats::{ConnectOptions, Event, HeaderMap};
use proofmill_bus::{ConnectError, JetStreamLog, Leases, open_blobs};
use proofmill_nats_server::Deployed;
use proofmill_orchestrator::remote::Role;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::deployed::{ROLES, connect, options, options_of, user_of};
use crate::support::PATIENCE;

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// One server for all tests: refused operations do not change it.
static SERVER: LazyLock<Deployed> = LazyLock::new(|| {
    let server = Deployed::start();
    let make_streams = || {
        block_on(async {
            let connection = connect(&server, Role::Coordinator).await;
            JetStreamLog::open(&connection, "w").await.unwrap();
            Leases::open(&connection).await.unwrap();
            open_blobs(&connection).await.unwrap();
        });
    };
    // The first test to use it runs in a runtime already.
    std::thread::scope(|scope| scope.spawn(make_streams).join().unwrap());
    server
});

/// A user with a plain client, restricted only by the server's permissions.
struct User {
    role: Role,
    client: async_nats::Client,
    said: mpsc::UnboundedReceiver<String>,
}

impl User {
    async fn connect(role: Role) -> Self {
        Self::connect_as(role, user_of(role)).await
    }

    async fn connect_as(role: Role, user: &str) -> Self {
        let options = options_of(&SERVER, role, user);
        let proofmill_bus::Credentials::UserPassword { user, password } = options.credentials
        else {
            unreachable!()
        };
        let inbox = inbox_of(role, &user);
        let (certificate, key) = options.client_certificate.unwrap();
        let (sender, said) = mpsc::unbounded_channel();
        let client = ConnectOptions::with_user_and_password(user, password)
            .add_root_certificates(options.ca_file.unwrap())
            .add_client_certificate(certificate, key)
            .require_tls(true)
            .custom_inbox_prefix(inbox)
            .connection_timeout(PATIENCE)
            .request_timeout(Some(PATIENCE))
            .event_callback(move |event| {
                if let Event::ServerError(error) = event {
                    let _ = sender.send(error.to_string());
                }
                std::future::ready(())
            })
            .connect(SERVER.server.url())
            .await
            .unwrap();
        Self { role, client, said }
    }

    /// Waits until the server has refused this.
    async fn refused(&mut self, what: &str, subject: &str) {
        let said = timeout(PATIENCE, self.said.recv()).await;
        let said = said.unwrap_or_else(|_| panic!("{}: {what} {subject} is allowed", self.role));
        let said = said.unwrap();
        assert!(
            said.contains(&format!("{what} to \"{subject}\"")),
            "{}: {said}",
            self.role
        );
    }

    async fn may_not_publish(&mut self, subject: &str) {
        self.client
            .publish(subject.to_owned(), "".into())
            .await
            .unwrap();
        self.client.flush().await.unwrap();
        self.refused("Violation for Publish", subject).await;
    }

    async fn may_not_listen(&mut self, subject: &str) {
        let listening = self.client.subscribe(subject.to_owned()).await.unwrap();
        self.client.flush().await.unwrap();
        self.refused("Violation for Subscription", subject).await;
        drop(listening);
    }

    /// Checks that the server has refused nothing, by a request after everything else.
    async fn has_done_nothing_wrong(&mut self) {
        let context = async_nats::jetstream::new(self.client.clone());
        context.query_account().await.unwrap();
        assert_eq!(self.said.try_recv().ok(), None, "{}", self.role);
    }
}

/// Prefix of the subjects of a user's answers.
fn inbox_of(role: Role, user: &str) -> String {
    match role {
        Role::Dispatcher => format!("_INBOX.proofmill.dispatcher.{user}"),
        role => format!("_INBOX.proofmill.{role}"),
    }
}

/// The seat of a role, as tokens of a subject.
fn seat_of(role: Role) -> &'static str {
    match role {
        Role::Dispatcher => "dispatcher.prove.prover",
        role => role.name(),
    }
}

/// Checks that exactly the roles in `allowed` may publish to the subjects.
fn only(allowed: &[Role], subjects: &[&str]) {
    block_on(async {
        for role in ROLES {
            let mut user = User::connect(role).await;
            for subject in subjects {
                if allowed.contains(&role) {
                    user.client
                        .publish(subject.to_string(), "".into())
                        .await
                        .unwrap();
                } else {
                    user.may_not_publish(subject).await;
                }
            }
            user.has_done_nothing_wrong().await;
        }
    });
}

/// Checks that exactly the roles in `allowed` may listen on the subjects.
fn only_listen(allowed: &[Role], subjects: &[&str]) {
    block_on(async {
        for role in ROLES {
            let mut user = User::connect(role).await;
            for subject in subjects {
                if allowed.contains(&role) {
                    user.client.subscribe(subject.to_string()).await.unwrap();
                } else {
                    user.may_not_listen(subject).await;
                }
            }
            user.has_done_nothing_wrong().await;
        }
    });
}

#[test]
fn only_a_coordinator_writes_the_log() {
    only(&[Role::Coordinator], &["proofmill.log.other.0123"]);
    only(&[], &["proofmill.log.w", "proofmill_log_w"]);
}

#[test]
fn only_a_coordinator_reads_the_log() {
    let gets = [
        "$JS.API.STREAM.INFO.proofmill_log_x",
        "$JS.API.STREAM.MSG.GET.proofmill_log_x",
    ];
    only(&[Role::Coordinator], &gets);
    only(
        &[Role::Coordinator],
        &["$JS.API.DIRECT.GET.proofmill_log_x"],
    );
    only_listen(&[], &["proofmill.log.>", "proofmill.>", ">"]);
}

#[test]
fn only_a_coordinator_purges() {
    let purges = [
        "$JS.API.STREAM.PURGE.proofmill_log_x",
        "$JS.API.STREAM.PURGE.x_blobs",
        "$JS.API.STREAM.PURGE.x_leases",
    ];
    only(&[Role::Coordinator], &purges);
}

#[test]
fn nobody_deletes_or_changes_a_stream_or_a_message_of_it() {
    for stream in ["proofmill_log_w", "proofmill_blobs", "proofmill_leases"] {
        let operations = [
            "STREAM.DELETE",
            "STREAM.UPDATE",
            "STREAM.MSG.DELETE",
            "STREAM.RESTORE",
        ];
        let subjects = operations.map(|operation| format!("$JS.API.{operation}.{stream}"));
        only(&[], &subjects.each_ref().map(String::as_str));
    }
}

#[test]
fn only_a_coordinator_makes_streams_and_consumers() {
    let makes = [
        "$JS.API.STREAM.CREATE.other",
        "$JS.API.CONSUMER.CREATE.proofmill_blobs.c",
    ];
    only(&[Role::Coordinator], &makes);
    only(&[], &["$JS.API.CONSUMER.DURABLE.CREATE.proofmill_blobs.c"]);
}

#[test]
fn only_a_sequencer_looks_for_the_names_of_streams() {
    only(&[Role::Sequencer], &["$JS.API.STREAM.NAMES"]);
    // The answer would contain the subjects of streams.
    only(&[], &["$JS.API.STREAM.LIST"]);
}

#[test]
fn only_a_sequencer_publishes_what_is_emitted() {
    let subjects = ["proofmill.emitted.w", "proofmill.emitted.w.more"];
    only(&[Role::Sequencer], &subjects);
    only(&[], &["proofmill.emitted"]);
    only_listen(&[], &["proofmill.emitted.w"]);
    let reading = ["$JS.API.STREAM.MSG.GET.proofmill_emitted"];
    only(&[Role::Coordinator, Role::Sequencer], &reading);
    let making = ["$JS.API.STREAM.CREATE.proofmill_emitted"];
    only(&[Role::Coordinator], &making);
}

#[test]
fn only_a_coordinator_takes_the_leaders_lease() {
    only(&[Role::Coordinator], &["proofmill.lead.0123.w.leader"]);
    only(&[], &["proofmill.lease.w.leader"]);
    // The answer would contain the secret word in its subject.
    let gets = [
        "$JS.API.STREAM.INFO.proofmill_leaders",
        "$JS.API.STREAM.MSG.GET.proofmill_leaders",
    ];
    only(&[Role::Coordinator], &gets);
}

#[test]
fn nobody_takes_the_lease_of_another_role() {
    only(&[Role::Sequencer], &["proofmill.lease.w.sequencer"]);
    only(&[Role::Source], &["proofmill.lease.w.source.blocks"]);
    only(&[], &["proofmill.lease.w.other"]);
}

#[test]
fn nobody_reads_the_inbox_of_another_role() {
    for role in ROLES {
        let inbox = inbox_of(role, user_of(role));
        only_listen(&[role], &[&format!("{inbox}.>")]);
    }
    only_listen(&[], &["_INBOX.>", "_INBOX.*.*.>"]);
}

#[test]
fn nobody_answers_what_it_was_not_asked() {
    for role in ROLES {
        only(&[], &[&format!("_INBOX.proofmill.{role}.forged")]);
    }
}

#[test]
fn nobody_calls_the_leader_as_another_role() {
    for role in [
        Role::Dispatcher,
        Role::Collector,
        Role::Sequencer,
        Role::Source,
        Role::Console,
    ] {
        only(&[role], &[&format!("proofmill.leader.w.{}", seat_of(role))]);
    }
    only(
        &[],
        &[
            "proofmill.leader.w.coordinator",
            "proofmill.leader.w.dispatcher",
            "proofmill.leader.w",
        ],
    );
}

/// The attack: a prover claims to have verified.
#[test]
fn a_provers_user_cannot_enlist_in_complete_for_or_listen_to_the_verifiers_group() {
    block_on(async {
        let own = "proofmill.leader.w.dispatcher.prove.prover";
        let others = [
            "proofmill.leader.w.dispatcher.verify.verifier",
            "proofmill.leader.w.dispatcher.verify.prover",
            "proofmill.leader.w.dispatcher.prove.verifier",
        ];
        let ears = [
            "proofmill.client.w.dispatcher.verify.verifier.n",
            "proofmill.client.w.dispatcher.verify.prover.n",
            "_INBOX.proofmill.dispatcher.verifier.>",
            "_INBOX.proofmill.dispatcher.>",
        ];
        let mut prover = User::connect_as(Role::Dispatcher, "prover").await;
        for subject in others {
            prover.may_not_publish(subject).await;
        }
        for subject in ears {
            prover.may_not_listen(subject).await;
        }
        prover.client.publish(own, "".into()).await.unwrap();
        prover.has_done_nothing_wrong().await;
        let mut verifier = User::connect_as(Role::Dispatcher, "verifier").await;
        verifier.may_not_publish(own).await;
        let listening = "proofmill.client.w.dispatcher.prove.prover.n";
        verifier.may_not_listen(listening).await;
        verifier.has_done_nothing_wrong().await;
    });
}

#[test]
fn nobody_hears_the_calls_to_the_leader() {
    only_listen(
        &[Role::Coordinator],
        &["proofmill.leader.w.>", "proofmill.control.w"],
    );
}

#[test]
fn nobody_hears_what_another_role_is_told() {
    for role in [
        Role::Dispatcher,
        Role::Collector,
        Role::Sequencer,
        Role::Source,
        Role::Console,
    ] {
        only_listen(
            &[role],
            &[&format!("proofmill.client.w.{}.n", seat_of(role))],
        );
    }
    only_listen(&[], &["proofmill.client.>"]);
}

#[test]
fn nobody_speaks_as_the_leader() {
    let subjects = [
        "proofmill.hello.w",
        "proofmill.client.w.dispatcher.prove.prover.n",
    ];
    only(&[Role::Coordinator], &subjects);
}

#[test]
fn only_an_operator_asks_and_changes() {
    only(&[Role::Operator], &["proofmill.control.w"]);
}

#[test]
fn a_sequencer_and_a_console_put_no_blobs() {
    let readers = [Role::Sequencer, Role::Console];
    let others = ROLES.into_iter().filter(|role| !readers.contains(role));
    only(&others.collect::<Vec<_>>(), &["proofmill.blob.0123.0"]);
}

/// Users that may put a blob cannot remove it, or others, with any header.
#[test]
fn no_header_removes_blobs() {
    block_on(async {
        let blobs = open_blobs(&connect(&SERVER, Role::Coordinator).await)
            .await
            .unwrap();
        let blob = blobs.put(vec![7; 300_000].into()).await.unwrap();
        let user = User::connect(Role::Dispatcher).await;
        let context = async_nats::jetstream::new(user.client.clone());
        for (name, value) in [
            ("Nats-Rollup", "all"),
            ("Nats-Rollup", "sub"),
            ("Nats-TTL", "1s"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value);
            let subject = format!("proofmill.blob.{blob}.9");
            let sent = context
                .publish_with_headers(subject, headers, "".into())
                .await;
            let refused = sent.unwrap().await.unwrap_err().to_string();
            assert!(!refused.contains("timed out"), "{name}: {value}: {refused}");
        }
        assert_eq!(blobs.get(&blob).await.unwrap().len(), 300_000);
    });
}

/// The server sends its answers to the subject that the request names, whatever it is.
#[test]
fn an_answer_of_the_servers_is_no_call_no_lease_and_no_frame() {
    // A holder that the machine gives no time for a lease's lifetime loses it, so there are several tries.
    let is_held = (0..4).any(|_| block_on(directed_answers_leave_the_lease()));
    assert!(is_held, "an answer of the server's ends a lease");
}

/// Directs answers of the server to several subjects. Returns whether a lease among them is held on.
async fn directed_answers_leave_the_lease() -> bool {
    let coordinator = connect(&SERVER, Role::Coordinator).await;
    let leases = Leases::open(&coordinator).await.unwrap();
    let lease = leases.take("forged.leader", "a").await;
    let mut calls = coordinator
        .subscribe("proofmill.leader.forged.>")
        .await
        .unwrap();
    let user = User::connect(Role::Dispatcher).await;
    let context = async_nats::jetstream::new(user.client.clone());
    let subject = "proofmill.blob.abcd.0";
    context
        .publish(subject, "anything".into())
        .await
        .unwrap()
        .await
        .unwrap();
    let get = format!("$JS.API.DIRECT.GET.proofmill_blobs.{subject}");
    let wanted = [
        "proofmill.leader.forged.source",
        "proofmill.lease.forged.leader",
    ];
    for reply in wanted {
        let sent = user
            .client
            .publish_with_reply(get.clone(), reply, "".into());
        sent.await.unwrap();
    }
    // A request sent the same way afterwards is answered.
    let answer = user.client.request(get.clone(), "".into()).await.unwrap();
    assert_eq!(answer.payload, "anything");
    // The end of a log's subject is known to coordinators only.
    let sent = user
        .client
        .publish_with_reply(get, "proofmill.log.w", "".into());
    sent.await.unwrap();
    // A call published afterwards is the first that is received.
    user.client
        .publish(
            "proofmill.leader.forged.dispatcher.prove.prover",
            "a call".into(),
        )
        .await
        .unwrap();
    let call = timeout(PATIENCE, futures_util::StreamExt::next(&mut calls)).await;
    let call = call.unwrap().unwrap();
    assert_eq!(call.payload, "a call");
    assert_eq!(
        call.subject,
        "proofmill.leader.forged.dispatcher.prove.prover"
    );
    // The lease stays held, although its latest message was briefly another's.
    tokio::time::sleep(leases.ttl() * 2).await;
    let holder = leases.holder("forged.leader").await.unwrap();
    let taken = leases.try_take("forged.leader", "b").await.unwrap();
    let is_held = holder.as_deref() == Some("a") && taken.is_none();
    if let Some(taken) = taken {
        taken.give_back().await;
    }
    lease.give_back().await;
    is_held
}

/// A user that can direct the server's answers cannot end a leader's lease, even briefly.
#[test]
fn an_answer_of_the_servers_does_not_end_the_leaders_lease() {
    // As above, a machine that stalls ends the lease, too.
    let is_held = (0..4).any(|_| block_on(aimed_answers_leave_the_lease()));
    assert!(is_held, "another process leads");
}

/// Aims answers of the server at a lease. Returns whether it could never be taken.
async fn aimed_answers_leave_the_lease() -> bool {
    let coordinator = connect(&SERVER, Role::Coordinator).await;
    let leases = Leases::open(&coordinator).await.unwrap();
    let lease = leases.take("aimed.leader", "a").await;
    let user = User::connect(Role::Dispatcher).await;
    let context = async_nats::jetstream::new(user.client.clone());
    let blob = "proofmill.blob.aimed.0";
    let stored = context.publish(blob, "x".into()).await.unwrap();
    stored.await.unwrap();
    let get = format!("$JS.API.DIRECT.GET.proofmill_blobs.{blob}");
    for _ in 0..50 {
        for reply in [
            "proofmill.lease.aimed.leader",
            "proofmill.lead.aimed.leader",
        ] {
            let sent = user
                .client
                .publish_with_reply(get.clone(), reply, "".into());
            sent.await.unwrap();
        }
        // A request sent the same way afterwards is answered.
        user.client.request(get.clone(), "".into()).await.unwrap();
        if let Some(taken) = leases.try_take("aimed.leader", "b").await.unwrap() {
            taken.give_back().await;
            return false;
        }
    }
    lease.give_back().await;
    true
}

#[test]
fn a_request_is_not_answered_where_the_asker_may_not_speak() {
    block_on(async {
        let coordinator = connect(&SERVER, Role::Coordinator).await;
        let log = JetStreamLog::open(&coordinator, "answered").await.unwrap();
        let mut calls = coordinator
            .subscribe("proofmill.leader.answered.>")
            .await
            .unwrap();
        let stream = async_nats::jetstream::new(coordinator.client().clone())
            .get_stream("proofmill_log_answered")
            .await
            .unwrap();
        let info = stream.cached_info();
        let subject = info.config.subjects[0].clone();
        let user = User::connect(Role::Dispatcher).await;
        let call = "proofmill.leader.answered.dispatcher.prove.prover";
        let asked = user.client.publish_with_reply(call, subject, "".into());
        asked.await.unwrap();
        let call = timeout(PATIENCE, futures_util::StreamExt::next(&mut calls)).await;
        call.unwrap().unwrap().reply("not a frame").await;
        drop(log);
        let log = JetStreamLog::open(&coordinator, "answered").await;
        assert!(log.is_ok(), "{log:?}");
    });
}

/// A refusal is an immediate error with the subject, not a time-out.
#[test]
fn a_refusal_says_what_is_refused() {
    block_on(async {
        let connection = connect(&SERVER, Role::Dispatcher).await;
        let error = JetStreamLog::open(&connection, "w").await.unwrap_err();
        assert!(matches!(error, ConnectError::Refused(_)), "{error}");
        let said = error.to_string();
        for part in [
            "dispatcher",
            "\"$JS.API.STREAM.INFO.proofmill_log_w\"",
            "cluster.conf",
        ] {
            assert!(said.contains(part), "{said}");
        }

        let connection = connect(&SERVER, Role::Source).await;
        let asked = connection.request("proofmill.control.w", "".into(), PATIENCE * 10);
        let said = asked.await.unwrap_err().to_string();
        assert!(
            said.contains("publish to \"proofmill.control.w\""),
            "{said}"
        );

        let connection = connect(&SERVER, Role::Sequencer).await;
        let blobs = open_blobs(&connection).await.unwrap();
        let error = blobs.put("x".into()).await.unwrap_err();
        let said = std::error::Error::source(&error).unwrap().to_string();
        assert!(said.contains("publish to \"proofmill.blob."), "{said}");

        let connection = connect(&SERVER, Role::Dispatcher).await;
        let listening = connection.subscribe("proofmill.control.w").await;
        let refusal = timeout(PATIENCE, connection.refused()).await.unwrap();
        assert_eq!(refusal.subject(), "proofmill.control.w");
        drop(listening);

        // With another role's credentials it may not listen on the subjects of its answers.
        let mut options = options(&SERVER, Role::Operator);
        options.membership = Role::Coordinator.membership();
        let said = proofmill_bus::Connection::open(options)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("this coordinator listen on \"_INBOX.proofmill.coordinator."),
            "{said}"
        );
    });
}

/// An operator gets an error at once if the streams do not exist; other roles wait for them.
#[test]
fn streams_that_a_coordinator_has_yet_to_make_are_waited_for() {
    let server = Deployed::start();
    block_on(async {
        let operator = connect(&server, Role::Operator).await;
        let said = open_blobs(&operator).await.unwrap_err().to_string();
        assert!(said.contains("start a coordinator"), "{said}");
        let dispatcher = connect(&server, Role::Dispatcher).await;
        let waiting = tokio::spawn(async move { open_blobs(&dispatcher).await });
        let coordinator = connect(&server, Role::Coordinator).await;
        let blobs = open_blobs(&coordinator).await.unwrap();
        let found = timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
        let blob = found.put("from a dispatcher".into()).await.unwrap();
        assert_eq!(blobs.get(&blob).await.unwrap(), "from a dispatcher");
    });
}
