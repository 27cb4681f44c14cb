//! The moment between commit and answer: the service has done its work, and the connection breaks before the answer
//! arrives.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gateway::testing::TestGateway;
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Mesh, RELATIONS};

/// Passes bytes on, and cuts a connection at the first answer that the service sends while it is armed.
#[derive(Clone, Default)]
struct Cutter {
    armed: Arc<AtomicBool>,
    cuts: Arc<AtomicUsize>,
}

impl Cutter {
    async fn in_front_of(&self, service: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cutter = self.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(cutter.clone().pass(client, service));
            }
        });
        address
    }

    async fn pass(self, client: TcpStream, service: SocketAddr) {
        let server = TcpStream::connect(service).await.unwrap();
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let requests = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
        // HTTP/2 frames: three bytes of length, one of type, five more, then the content. Type 1 starts an answer.
        let mut head = [0; 9];
        while from_server.read_exact(&mut head).await.is_ok() {
            if head[3] == 1 && self.armed.swap(false, Ordering::SeqCst) {
                self.cuts.fetch_add(1, Ordering::SeqCst);
                break;
            }
            let mut content = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            if from_server.read_exact(&mut content).await.is_err()
                || to_client.write_all(&head).await.is_err()
                || to_client.write_all(&content).await.is_err()
            {
                break;
            }
        }
        requests.abort();
    }
}

#[tokio::test]
async fn a_lost_answer_loses_nothing_and_doubles_nothing() {
    let mesh = Mesh::start().await;
    let cutter = Cutter::default();
    let behind = cutter.in_front_of(mesh.relations_address()).await;
    let gateway =
        TestGateway::start(&mesh.database, &mesh.clock, &[format!("relations=http://{behind}")], &[]).await;
    let account = gateway.account("Bakery").await;
    let api = gateway.api(&account, RELATIONS).await;

    cutter.armed.store(true, Ordering::SeqCst);
    let keyed = api.post_keyed("/v1/clients", "k", json!({"company_name": "Keyed"})).await.expect(201);
    assert_eq!(
        keyed.header("x-idempotent-replay"),
        Some("true"),
        "the gateway asked again and got the first answer"
    );
    let repeated = api.post_keyed("/v1/clients", "k", json!({"company_name": "Keyed"})).await.expect(201);
    assert_eq!(repeated.body, keyed.body);

    cutter.armed.store(true, Ordering::SeqCst);
    let bare = api.post("/v1/clients", json!({"company_name": "Bare"})).await.expect(503);
    assert_eq!(bare.at("/code"), "unavailable", "without a key the gateway must not repeat a write");
    assert_eq!(bare.at("/may_have_happened"), true);

    cutter.armed.store(true, Ordering::SeqCst);
    let list = api.get("/v1/clients").await.expect(200);
    assert_eq!(list.at("/meta/total"), 2, "each was made once, and a read is simply repeated");
    assert_eq!(cutter.cuts.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_request_that_ends_before_its_commit_has_not_happened_and_does_not_say_that_it_may_have() {
    let mesh = Mesh::start_with(&["--deadline-ms", "3000"]).await;
    let api = mesh.api(&["tasks.read", "tasks.write"]).await;
    let mut holder = mesh.database.connect().await;
    sqlx::raw_sql("begin; lock work.task in share mode").execute(&mut holder).await.unwrap();
    let answer = api.post("/v1/tasks", json!({"title": "Late"})).await.expect(504);
    assert_eq!((answer.at("/code"), answer.at("/may_have_happened")), (json!("timeout"), json!(null)));
    sqlx::raw_sql("rollback").execute(&mut holder).await.unwrap();
    let list = api.get("/v1/tasks").await.expect(200);
    assert_eq!(list.at("/meta/total"), 0);
}

#[tokio::test]
async fn a_request_that_ends_during_the_statement_that_commits_says_so_and_a_repeat_makes_no_second_record() {
    let mesh = Mesh::start_with(&["--deadline-ms", "3000"]).await;
    let api = mesh.api(RELATIONS).await;
    let mut holder = mesh.database.connect().await;
    sqlx::raw_sql("begin; lock relations.relation in share mode").execute(&mut holder).await.unwrap();
    let headers = [("content-type", "application/json"), ("idempotency-key", "once")];
    let send = async || {
        let body = json!({"company_name": "Late"}).to_string();
        api.send(Method::POST, "/v1/clients", &headers, body).await
    };
    let answer = send().await.expect(504);
    assert_eq!((answer.at("/code"), answer.at("/may_have_happened")), (json!("timeout"), json!(true)));
    assert_eq!(answer.at("/data/record_kind"), "client");
    sqlx::raw_sql("rollback").execute(&mut holder).await.unwrap();
    send().await.expect(201);
    let list = api.get("/v1/clients").await.expect(200);
    assert_eq!(list.at("/meta/total"), 1);
}

#[tokio::test]
async fn a_document_that_is_made_is_answered_for_although_its_pdf_cannot_be_noted() {
    let mesh = Mesh::start().await;
    let api = mesh.api(&["relations.write", "invoices.read", "invoices.write"]).await;
    let refuse = "create function billing.refuse() returns trigger language plpgsql as
            $$ begin raise exception 'locked' using errcode = '55P03'; end $$;
        create trigger refuse before update on billing.document
            for each row execute function billing.refuse()";
    sqlx::raw_sql(refuse).execute(&mut mesh.database.connect().await).await.unwrap();
    let client = api.post("/v1/clients", json!({"company_name": "Bakery"})).await.expect(201).at("/data/id");
    let row = json!({"name": "Row", "unit_price": 10, "vat_rate": "0"});
    let body = json!({"title": "Bread", "client_id": client, "generation_mode": "final", "rows": [row]});
    let made = api.post("/v1/invoices", body).await.expect(201);
    let found = api.get("/v1/invoices").await.expect(200);
    assert_eq!((found.at("/meta/total"), found.at("/data/0/number")), (json!(1), made.at("/data/number")));
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_names_the_record_that_may_be_there() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    // The session ends while the transaction is being committed.
    let end = "create function relations.end_session() returns trigger language plpgsql as
            $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
        create constraint trigger end_session after insert on relations.relation deferrable initially deferred
            for each row execute function relations.end_session()";
    let mut connection = mesh.database.connect().await;
    sqlx::raw_sql(end).execute(&mut connection).await.unwrap();
    let lost = api.post("/v1/clients", json!({"company_name": "Perhaps"})).await.expect(503);
    assert_eq!((lost.at("/code"), lost.at("/may_have_happened")), (json!("unavailable"), json!(true)));
    assert_eq!(lost.at("/data/record_kind"), "client");
    let id = lost.at("/data/record_id").as_str().unwrap().to_owned();
    assert!(chassis_base::id::parse(&id).is_some(), "{id}");
    sqlx::raw_sql("drop trigger end_session on relations.relation").execute(&mut connection).await.unwrap();
    api.get(&format!("/v1/clients/{id}")).await.expect(404);
}
