//! Ten thousand operations on a real process of relations, which delivers its events to a real process of automation, while
//! both are killed repeatedly: the event of every acknowledged operation is stored once, in the order of its record.
//!
//! This program is the test and, started with `serve`, also the relations that it kills: only the binaries of the own
//! package are there for sure.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

use std::collections::HashMap;
use std::error::Error as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::rc::Rc;

use chassis_base::Clock;
use chassis_service::Service;
use chassis_testing::{
    Process, TestCaller, TestDatabase, eventually, quiet_port, service_database, undelivered,
};
use proto::relations::client_service_client::ClientServiceClient;
use proto::relations::{ClientInput, CreateClientRequest, UpdateClientRequest};
use svc_automation::Automation;
use svc_relations::Relations;
use tokio::sync::watch;
use tokio::task::LocalSet;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};
use uuid::Uuid;

const NAME: &str = "no_event_is_lost_or_duplicated_over_ten_thousand_operations_on_processes_that_are_killed";

const ACCOUNTS: usize = 8;
const CLIENTS: usize = 1_000;
/// Of each client: it is made, and renamed nine times.
const OPERATIONS: usize = 10;
const CONCURRENCY: usize = 16;
const KILLS: usize = 24;

/// The part of the protocol of test programs that those who run them use.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if has("serve") {
        return chassis_service::process::main::<Relations>();
    }
    if has("--list") {
        if !has("--ignored") {
            println!("{NAME}: test");
        }
        return ExitCode::SUCCESS;
    }
    let mut filters = arguments.iter().filter(|argument| !argument.starts_with('-'));
    if filters.all(|filter| NAME.contains(filter.as_str())) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(LocalSet::new().run_until(no_event_is_lost_or_duplicated()));
    }
    ExitCode::SUCCESS
}

/// The name of a client after so many operations.
fn name_of(client: usize, operation: usize) -> String {
    format!("Client {client} as of {operation}")
}

/// Whether a repeat may succeed: the service was not reached, is busy, or still works on the first call.
fn is_transient(status: &Status) -> bool {
    let busy = [Code::Unavailable, Code::DeadlineExceeded, Code::ResourceExhausted, Code::Cancelled];
    let in_progress = proto::api::Problem::IdempotencyInProgress.code().as_bytes();
    let is_in_progress = status.details().windows(in_progress.len()).any(|part| part == in_progress);
    status.source().is_some() || busy.contains(&status.code()) || is_in_progress
}

/// Repeats a call until it is answered, as an integration does.
async fn answered<T>(what: &str, mut call: impl AsyncFnMut() -> Result<Response<T>, Status>) -> T {
    let mut answer = None;
    eventually(what, async || match call().await {
        Ok(response) => {
            answer = Some(response.into_inner());
            true
        }
        Err(status) if is_transient(&status) => false,
        Err(status) => panic!("{what}: {status:?}"),
    })
    .await;
    answer.unwrap()
}

/// Makes a client and renames it again and again; each operation is acknowledged before the next.
async fn operate(channel: &Channel, caller: &TestCaller, client: usize, done: &watch::Sender<usize>) -> Uuid {
    let input =
        |operation| ClientInput { company_name: name_of(client, operation), ..ClientInput::default() };
    let key = |operation| format!("{client}-{operation}");
    let mut service = ClientServiceClient::new(channel.clone());
    let created = answered("a client is made", async || {
        let request = CreateClientRequest { client: Some(input(0)) };
        service.create_client(caller.keyed(&key(0), request)).await
    })
    .await;
    done.send_modify(|count| *count += 1);
    let id = created.data.unwrap().id;
    for operation in 1..OPERATIONS {
        answered("a client is renamed", async || {
            let client = Some(input(operation));
            let request = UpdateClientRequest { id: id.clone(), client, update_mask: None };
            service.update_client(caller.keyed(&key(operation), request)).await
        })
        .await;
        done.send_modify(|count| *count += 1);
    }
    id.parse().unwrap()
}

/// Both processes; the first is automation.
async fn start(database: &TestDatabase) -> (Vec<Process>, SocketAddr) {
    let listens = async |address: SocketAddr| {
        eventually("it listens", async || tokio::net::TcpStream::connect(address).await.is_ok()).await;
    };
    let flags = ["--database-url", database.url(), "--lease-ms", "1000"];
    let automation_address = quiet_port();
    let automation = Process::start(env!("CARGO_BIN_EXE_svc-automation"), automation_address, &flags);
    // Only then the next look for a free port cannot find the same one.
    listens(automation_address).await;
    let this: &'static str = std::env::current_exe().unwrap().to_str().unwrap().to_owned().leak();
    let (address, listener) = (quiet_port(), format!("automation=http://{automation_address}"));
    let database_flags = service_database(database.url(), Relations::NAME).flags();
    let flags = [&database_flags[0], &database_flags[1], "--lease-ms", "1000", "--listeners", &listener];
    let relations = Process::start(this, address, &flags);
    listens(address).await;
    (vec![automation, relations], address)
}

async fn no_event_is_lost_or_duplicated() {
    let schemas = [(Automation::NAME, Automation::migrations()), (Relations::NAME, Relations::migrations())];
    let database = TestDatabase::new(&schemas).await;
    let (mut processes, address) = start(&database).await;
    let clock = Clock::system();
    let callers: Rc<Vec<TestCaller>> =
        Rc::new((0..ACCOUNTS).map(|_| TestCaller::mesh(&chassis_testing::account(), &clock)).collect());
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    let (done, mut progress) = watch::channel(0);
    let done = Rc::new(done);
    let workers: Vec<_> = (0..CONCURRENCY)
        .map(|worker| {
            let (channel, callers, done) = (channel.clone(), Rc::clone(&callers), Rc::clone(&done));
            tokio::task::spawn_local(async move {
                let mut made = Vec::new();
                for client in (worker..CLIENTS).step_by(CONCURRENCY) {
                    let caller = &callers[client % ACCOUNTS];
                    made.push((client, operate(&channel, caller, client, &done).await));
                }
                made
            })
        })
        .collect();
    // Only the workers hold the sender now: should all of them end early, the wait below fails instead of going on for ever.
    drop(done);
    for kill in 1..=KILLS {
        progress.wait_for(|count| *count >= kill * CLIENTS * OPERATIONS / (KILLS + 1)).await.unwrap();
        // One, the other, and every fifth time both.
        for (number, process) in processes.iter_mut().enumerate() {
            if kill % 5 == 0 || kill % 2 == number {
                process.kill_and_restart();
            }
        }
    }
    let mut clients = HashMap::new();
    for worker in workers {
        clients.extend(worker.await.unwrap().into_iter().map(|(client, id)| (id, client)));
    }
    assert_eq!(clients.len(), CLIENTS);
    eventually("every event is delivered", async || undelivered(&database, "relations").await == 0).await;
    compare(&database, &clients).await;
}

/// Each operation's event, once and in order, and no other.
async fn compare(database: &TestDatabase, clients: &HashMap<Uuid, usize>) {
    let mut connection = database.connect().await;
    let events: Vec<(String, String, String)> = sqlx::query_as(
        "select entity_id, type, data::json->>'company_name' from automation.event order by entity_id, sequence",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(events.len(), CLIENTS * OPERATIONS);
    for of_client in events.chunks(OPERATIONS) {
        let client = clients[&of_client[0].0.parse::<Uuid>().unwrap()];
        for (operation, (id, kind, name)) in of_client.iter().enumerate() {
            let expected = if operation == 0 { "customer.created" } else { "customer.updated" };
            assert_eq!((id, kind.as_str()), (&of_client[0].0, expected));
            assert_eq!(*name, name_of(client, operation));
        }
    }
    let (stored, ids, backwards): (i64, i64, i64) = sqlx::query_as(
        "select count(*), count(distinct id), count(*) filter (where received_at < before) from (
            select id, received_at, lag(received_at) over (partition by entity_id order by sequence) as before
            from automation.event) events",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert_eq!((stored, backwards), (ids, 0), "each id once, and none received before the one it follows");
}
