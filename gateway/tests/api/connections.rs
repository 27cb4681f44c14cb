//! The gateway's port over raw sockets: connections that send nothing, read nothing or come too often are closed, and
//! others are served meanwhile.

use std::net::SocketAddr;

use chassis_testing::{TestDatabase, eventually};
use gateway::keys::NewKey;
use gateway::testing::TestGateway;
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const NO_SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// INITIAL_WINDOW_SIZE 0: nothing of a body may be sent.
const NO_WINDOW: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0];
/// HEADERS of stream 1, complete: GET http://x/healthz.
const GET: &[u8] = b"\x00\x00\x0f\x01\x05\x00\x00\x00\x01\x82\x86\x04\x08/healthz\x01\x01x";
const GO_AWAY: u8 = 7;

/// A gateway without services, and its database: what it answers itself is enough here.
struct Alone {
    gateway: TestGateway,
    _database: TestDatabase,
}

impl std::ops::Deref for Alone {
    type Target = TestGateway;

    fn deref(&self) -> &TestGateway {
        &self.gateway
    }
}

/// How often a connection is tried that a short time-out may close.
const MAX_ATTEMPTS: u32 = 100;

async fn start(flags: &[&str]) -> Alone {
    let database = TestDatabase::new(&[("gateway", &gateway::MIGRATIONS)]).await;
    let gateway = TestGateway::start(&database, &chassis_testing::clock(), &[], flags).await;
    Alone { gateway, _database: database }
}

async fn connect(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

async fn connect_from(source: &str, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
    socket.connect(address).await.unwrap()
}

/// Everything until the gateway closes; a reset is an end too.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    bytes
}

/// The answer to a request on a connection that stays open; `None` when it was closed.
async fn try_ask(stream: &mut TcpStream) -> Option<String> {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.ok()?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"ok\n") {
        stream.read_buf(&mut answer).await.ok().filter(|read| *read > 0)?;
    }
    String::from_utf8(answer).ok()
}

async fn ask(stream: &mut TcpStream) -> String {
    try_ask(stream).await.expect("an answer")
}

/// A connection that has brought a request; on a busy machine the first may come too late for a short time-out.
async fn healthy(address: SocketAddr) -> TcpStream {
    for _ in 0..MAX_ATTEMPTS {
        let mut stream = connect(address, b"").await;
        if try_ask(&mut stream).await.is_some() {
            return stream;
        }
    }
    panic!("none of {MAX_ATTEMPTS} connections was answered");
}

/// A request whose body never ends, with a valid key.
async fn unfinished(gateway: &TestGateway, key: &str) -> TcpStream {
    let head = format!(
        "POST /v1/clients HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n"
    );
    let mut stream = connect(gateway.address, head.as_bytes()).await;
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).await.unwrap();
    assert_eq!(interim, *b"HTTP/1.1 100 Continue\r\n\r\n", "the gateway reads the body");
    stream.write_all(b"{").await.unwrap();
    stream
}

async fn key(gateway: &TestGateway) -> String {
    let account = gateway.account("Bakery").await;
    gateway.api(&account, &["relations.read", "relations.write"]).await.key().to_owned()
}

fn frames(mut bytes: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let [a, b, c, kind, ..] = *bytes {
        kinds.push(kind);
        let length = (usize::from(a) << 16) | (usize::from(b) << 8) | usize::from(c);
        bytes = bytes.get(9 + length..).unwrap_or_default();
    }
    kinds
}

#[tokio::test]
async fn a_connection_that_brings_no_request_is_closed_and_one_that_did_is_not() {
    let gateway = start(&["--head-timeout-ms", "200"]).await;
    let mut good = healthy(gateway.address).await;
    let handshake = [PREFACE, NO_SETTINGS].concat();
    for silence in [b"".as_slice(), &PREFACE[..10], &handshake, b"GET /healthz HTTP/1.1\r\nhost: x"] {
        rest(&mut connect(gateway.address, silence).await).await;
    }
    let mut half = healthy(gateway.address).await;
    half.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
    assert!(rest(&mut half).await.is_empty(), "half of a second request");
    ask(&mut good).await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_one_with_a_request_in_progress_is_not() {
    let gateway = start(&["--idle-timeout-ms", "50"]).await;
    let mut busy = unfinished(&gateway, &key(&gateway).await).await;
    assert!(rest(&mut healthy(gateway.address).await).await.is_empty());
    let answer = rest(&mut connect(gateway.address, &[PREFACE, NO_SETTINGS, GET].concat()).await).await;
    assert!(frames(&answer).contains(&GO_AWAY), "an HTTP/2 client gets GOAWAY: {:?}", frames(&answer));
    busy.write_all(b"}").await.unwrap();
    let answer = rest(&mut busy).await;
    assert!(answer.starts_with(b"HTTP/1.1 503"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_let_go() {
    let gateway = start(&["--write-timeout-ms", "50", "--head-timeout-ms", "1000"]).await;
    let mut good = healthy(gateway.address).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut deaf = socket.connect(gateway.address).await.unwrap();
    let request = format!("GET /openapi.json HTTP/1.1\r\nhost: x\r\npadding: {}\r\n\r\n", "x".repeat(2000));
    // Until nothing more is taken and the gateway has given up.
    let _ = deaf.write_all(request.repeat(400).as_bytes()).await;
    eventually("the client that does not read is let go", async || {
        deaf.take_error().is_ok_and(|error| error.is_some()) || deaf.write(b"x").await.is_err()
    })
    .await;
    let answer = rest(&mut connect(gateway.address, &[PREFACE, NO_WINDOW, GET].concat()).await).await;
    assert!(frames(&answer).contains(&GO_AWAY), "no window: {:?}", frames(&answer));
    ask(&mut good).await;
}

#[tokio::test]
async fn a_body_that_does_not_come_ends_with_the_deadline() {
    let gateway = start(&["--deadline-ms", "100"]).await;
    let mut slow = unfinished(&gateway, &key(&gateway).await).await;
    let answer = rest(&mut slow).await;
    assert!(answer.starts_with(b"HTTP/1.1 504"), "{}", String::from_utf8_lossy(&answer));
}

/// A request without a key, which is refused before its body is read.
fn refused(length: usize, header: &str) -> String {
    format!("POST /v1/clients HTTP/1.1\r\nhost: x\r\n{header}content-length: {length}\r\n\r\n")
}

#[tokio::test]
async fn a_refusal_leaves_the_connection_usable_when_the_body_comes_behind_it() {
    let gateway = start(&[]).await;
    let mut stream = healthy(gateway.address).await;
    for body in ["{}".to_owned(), "x".repeat(3 << 20)] {
        stream.write_all(refused(body.len(), "").as_bytes()).await.unwrap();
        // A later connection is answered: the request above has been refused by now.
        ask(&mut connect(gateway.address, b"").await).await;
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"}") {
            assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "closed after {} bytes", answer.len());
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("connection: close"), "{answer}");
        ask(&mut stream).await;
    }
}

#[tokio::test]
async fn a_refusal_says_so_when_its_connection_ends() {
    let gateway = start(&[]).await;
    let never = refused(2, "");
    let held_back = refused(2, "expect: 100-continue\r\n");
    let too_long = refused(5 << 20, "");
    for request in [never, held_back, too_long] {
        let mut stream = healthy(gateway.address).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = String::from_utf8(rest(&mut stream).await).unwrap();
        assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test]
async fn when_there_are_too_many_connections_a_silent_one_makes_room_and_a_busy_one_does_not() {
    let gateway = start(&["--max-connections", "3"]).await;
    let key = key(&gateway).await;
    let mut silent = connect(gateway.address, b"").await;
    let mut used = healthy(gateway.address).await;
    let _busy = unfinished(&gateway, &key).await;
    let _another = unfinished(&gateway, &key).await;
    assert!(rest(&mut silent).await.is_empty(), "it made room");
    ask(&mut used).await;
    let _third = unfinished(&gateway, &key).await;
    assert!(rest(&mut used).await.is_empty(), "the only idle one");
    let mut refused = connect(gateway.address, b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let answer = String::from_utf8(rest(&mut refused).await).unwrap();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 503"), "{answer}");
}

#[tokio::test]
async fn one_address_cannot_take_the_connections_of_the_others() {
    let gateway = start(&["--max-connections-per-address", "2"]).await;
    let mut first = connect_from("127.0.0.2", gateway.address).await;
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(healthy(gateway.address).await);
    }
    let mut second = connect_from("127.0.0.2", gateway.address).await;
    assert!(rest(&mut others[0]).await.is_empty(), "the longest idle of its own address");
    for mine in [&mut first, &mut second] {
        ask(mine).await;
    }
    // Behind a proxy everybody comes from one address.
    let behind = start(&["--max-connections-per-address", "2", "--trusted-proxies", "1"]).await;
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(healthy(behind.address).await);
    }
    for stream in &mut all {
        ask(stream).await;
    }
}

#[tokio::test]
async fn a_gateway_that_drains_serves_everyone_and_tells_them_to_connect_elsewhere() {
    let gateway = start(&["--drain-ms", "60000"]).await;
    let mut before = healthy(gateway.address).await;
    gateway.drain();
    assert!(ask(&mut before).await.contains("connection: close"));
    assert!(rest(&mut before).await.is_empty());
    let mut after = connect(gateway.address, b"").await;
    assert!(ask(&mut after).await.contains("connection: close"));
}

#[tokio::test]
async fn an_http_2_client_gets_go_away_when_the_gateway_stops() {
    let gateway = start(&[]).await;
    let mut stream = connect(gateway.address, &[PREFACE, NO_SETTINGS, GET].concat()).await;
    let mut answer = Vec::new();
    while !answer.ends_with(b"ok\n") {
        assert!(stream.read_buf(&mut answer).await.unwrap() > 0);
    }
    gateway.drain();
    assert!(frames(&rest(&mut stream).await).contains(&GO_AWAY));
}

#[tokio::test]
async fn a_valid_key_is_accepted_from_an_address_where_others_guess() {
    let gateway = start(&["--failed-auth-per-minute", "1"]).await;
    let known = gateway.api_with(&key(&gateway).await);
    let accepted = known.get("/v1/clients").await;
    assert_eq!(accepted.status, 503, "past the key; there is no service");
    gateway.api_with("ba_guess").get("/v1/clients").await.expect(401);
    let other = gateway.account("Butcher").await;
    let never_seen = gateway.api(&other, &["relations.read"]).await;
    for _ in 0..20 {
        let guesses = (0..10).map(|_| gateway.api_with(&NewKey::generate().text));
        let guesses = guesses.map(|guess| tokio::spawn(async move { guess.get("/v1/clients").await }));
        let guesses: Vec<_> = guesses.collect();
        assert_eq!(never_seen.get("/v1/clients").await.status, 503);
        assert_eq!(known.get("/v1/clients").await.status, 503);
        for guess in guesses {
            let refused = guess.await.unwrap();
            assert!(refused.status == 429 && refused.header("retry-after").is_some(), "{}", refused.status);
        }
    }
    gateway.api_with("").get("/v1/clients").await.expect(429);
}

#[tokio::test]
async fn keys_that_are_guessed_from_an_address_that_has_to_wait_are_looked_up_together() {
    let database = TestDatabase::new(&[("gateway", &gateway::MIGRATIONS)]).await;
    let flags = ["--failed-auth-per-minute", "1", "--max-in-flight", "100"];
    let gateway = TestGateway::start(&database, &chassis_testing::clock(), &[], &flags).await;
    gateway.api_with("").get("/v1/clients").await.expect(401);
    let mut holder = database.connect().await;
    let lock = "begin; lock gateway.api_key in access exclusive mode";
    sqlx::raw_sql(lock).execute(&mut holder).await.unwrap();
    let guesses = (0..20).map(|_| gateway.api_with(&NewKey::generate().text));
    let guesses = guesses.map(|guess| tokio::spawn(async move { guess.get("/v1/clients").await.status }));
    let guesses: Vec<_> = guesses.collect();
    eventually("all of them wait", async || gateway.app.admissions.available_permits() == 80).await;
    let asking = async || {
        let sql = "select count(*) from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock'";
        sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut database.connect().await).await.unwrap()
    };
    eventually("the database is asked", async || asking().await > 0).await;
    assert_eq!(asking().await, 1, "one statement for all of them");
    sqlx::raw_sql("rollback").execute(&mut holder).await.unwrap();
    for guess in guesses {
        assert_eq!(guess.await.unwrap(), 429);
    }
}

#[tokio::test]
async fn bodies_that_never_end_hold_a_bounded_part_of_the_gateway() {
    // A quarter of it, 256 KiB, is for one address; a body that is alone may be larger.
    let gateway = start(&["--max-bytes-in", "1048576"]).await;
    let (key, requests) = (key(&gateway).await, &gateway.app.budgets.requests);
    let body = format!("{{\"company_name\": \"{}\"}}", "x".repeat(300_000));
    let head = format!(
        "POST /v1/clients HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut unfinished = connect(gateway.address, head.as_bytes()).await;
    unfinished.write_all(&body.as_bytes()[..250_000]).await.unwrap();
    eventually("most of it has come", async || requests.held() > 200_000).await;
    let api = gateway.api_with(&key);
    let post = async || {
        let headers = [("content-type", "application/json")];
        api.send(Method::POST, "/v1/clients", &headers, body.clone()).await
    };
    let refused = post().await.expect(429);
    assert!(refused.header("retry-after").is_some());
    let small = api.send(Method::POST, "/v1/clients", &[("content-type", "application/json")], "{}").await;
    assert_eq!(small.status, 503, "a small one passes, and fails because there is no such service");
    drop(unfinished);
    eventually("nothing is held", async || requests.held() == 0).await;
    assert_eq!(post().await.status, 503);
}

#[tokio::test]
async fn the_address_of_a_client_is_what_the_proxy_says_and_not_what_the_client_says() {
    let flags = ["--trusted-proxies", "1", "--failed-auth-per-minute", "1"];
    let gateway = start(&flags).await;
    let guesser = gateway.api_with("ba_guess");
    let from = async |own: &str, by_proxy: &str| {
        let headers = [("x-forwarded-for", own), ("x-forwarded-for", by_proxy)];
        guesser.send(Method::GET, "/v1/clients", &headers, "").await.status.as_u16()
    };
    assert_eq!(from("198.51.100.1", "192.0.2.1").await, 401);
    assert_eq!(from("198.51.100.2", "192.0.2.1").await, 429, "the client cannot choose another");
    assert_eq!(from("198.51.100.2", "2001:db8::1").await, 401);
    assert_eq!(from("198.51.100.2", "2001:db8::2").await, 429, "one network");
}

#[tokio::test]
async fn asking_for_the_readiness_does_not_load_the_mesh() {
    let peer = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peers = [format!("relations=http://{}", peer.local_addr().unwrap())];
    let database = TestDatabase::new(&[("gateway", &gateway::MIGRATIONS)]).await;
    let gateway = TestGateway::start(&database, &chassis_testing::clock(), &peers, &[]).await;
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = peer.accept().await {
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            drop(stream);
        }
    });
    let api = gateway.api_with("");
    let answer = api.get("/readyz").await.expect(200);
    assert_eq!(answer.body, "ready; no answer from: relations\n");
    let first = asked.load(std::sync::atomic::Ordering::Relaxed).max(1);
    let mut answers = 1;
    let refused = loop {
        let answer = api.get("/readyz").await;
        if answer.status != 200 {
            break answer.expect(429);
        }
        answers += 1;
        assert!(answers < 10_000, "never limited");
    };
    assert!(refused.header("retry-after").is_some());
    assert!(
        asked.load(std::sync::atomic::Ordering::Relaxed) < first * answers,
        "asked for each of {answers}"
    );
}
