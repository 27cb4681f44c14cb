//! The moment between commit and answer: the service has done its work, and the connection breaks before anyone hears
//! of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gateway::testing::TestGateway;
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

    cutter.armed.store(true, Ordering::SeqCst);
    let list = api.get("/v1/clients").await.expect(200);
    assert_eq!(list.at("/meta/total"), 2, "each was made once, and a read is simply repeated");
    assert_eq!(cutter.cuts.load(Ordering::SeqCst), 3);
}
