//! Answers that nobody reads, over real sockets: they hold a bounded part of the gateway's memory and delay nobody else.

use std::net::{Ipv4Addr, SocketAddr};

use chassis_testing::eventually;
use gateway::testing::TestGateway;
use proto::work::{FileInput, UploadFileRequest};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{User, path_of};
use crate::world::World;

const SIZE: usize = 8 << 20;
/// Three quarters of it are for downloads, which take 256 KiB each.
const BYTES_OUT: usize = 4 << 20;
const MAX_DOWNLOADS: usize = 12;
/// Far more than the head of any answer has.
const MAX_HEAD: usize = 64 << 10;

/// An answer whose head was read and whose body was not.
struct Unread {
    status: u16,
    head: String,
    rest: TcpStream,
}

async fn begin(gateway: SocketAddr, from: u8, path: &str) -> Unread {
    begin_with(gateway, from, path, "").await
}

/// The same with more headers.
async fn begin_with(gateway: SocketAddr, from: u8, path: &str, headers: &str) -> Unread {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 << 10).unwrap();
    socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0))).unwrap();
    let mut rest = socket.connect(gateway).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    rest.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        assert!(head.len() < MAX_HEAD, "{}", String::from_utf8_lossy(&head));
        head.push(rest.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Unread { status, head, rest }
}

fn content() -> Vec<u8> {
    (0..SIZE).map(|index| u8::try_from(index / 1000 % 251).unwrap()).collect()
}

/// The path of a large file.
async fn upload(user: &User) -> String {
    let file = FileInput { name: "large.bin".to_owned(), content_type: String::new() };
    let part = |data: &[u8]| UploadFileRequest { file: None, data: data.to_vec().into() };
    let mut parts: Vec<UploadFileRequest> = content().chunks(1 << 20).map(part).collect();
    parts[0].file = Some(file);
    path_of(&user.upload_parts(parts).await.unwrap().url)
}

#[tokio::test]
async fn downloads_that_nobody_reads_hold_a_bounded_part_of_the_gateway() {
    let world = World::start().await;
    let user = world.user().await;
    let path = upload(&user).await;
    let peers = [format!("work={}", world.work.url())];
    let flags = ["--public-rate-per-minute", "0", "--max-bytes-out", &BYTES_OUT.to_string()];
    let gateway = TestGateway::start(&world.database, &world.clock, &peers, &flags).await;
    let downloads = &gateway.app.budgets.downloads;
    // Several addresses, of which each asks for more than its share.
    let all = (2..8).flat_map(|from| [from; 5]).map(|from| begin(gateway.address, from, &path));
    let (mut begun, refused): (Vec<Unread>, Vec<Unread>) =
        futures::future::join_all(all).await.into_iter().partition(|begun| begun.status == 200);
    assert_eq!(begun.len(), MAX_DOWNLOADS);
    assert!(downloads.held() <= BYTES_OUT / 4 * 3, "{}", downloads.held());
    for refused in &refused {
        assert!(matches!(refused.status, 429 | 503), "{}", refused.head);
        assert!(refused.head.contains("retry-after: 1\r\n"), "{}", refused.head);
    }
    // Everybody else is served as ever.
    let other = gateway.api_with(user.api.key());
    for _ in 0..20 {
        other.get("/v1/files").await.expect(200);
    }
    // One that is read on comes as a whole.
    let Unread { head, mut rest, .. } = begun.pop().unwrap();
    assert!(head.contains(&format!("content-length: {SIZE}\r\n")), "{head}");
    let mut read = vec![0; SIZE];
    rest.read_exact(&mut read).await.unwrap();
    assert!(read == content(), "every byte in its place");
    // And whoever goes away gives back what they held.
    drop((begun, rest));
    eventually("nothing is held", async || downloads.held() == 0).await;
    assert_eq!(begin(gateway.address, 2, &path).await.status, 200);
}

#[tokio::test]
async fn lists_that_nobody_reads_hold_a_bounded_part_of_the_gateway() {
    let world = World::start().await;
    let user = world.user().await;
    // A page of about 4 MiB, more than a socket takes by itself.
    for _ in 0..15 {
        user.create("notes", json!({"body": "\u{1f600}".repeat(65_535)})).await;
    }
    let peers = [format!("work={}", world.work.url())];
    // A quarter of it is for answers that come as a whole.
    let flags = ["--max-bytes-out", &BYTES_OUT.to_string()];
    let gateway = TestGateway::start(&world.database, &world.clock, &peers, &flags).await;
    let answers = &gateway.app.budgets.answers;
    let key = format!("authorization: Bearer {}\r\n", user.api.key());
    let list = async |from: u8| begin_with(gateway.address, from, "/v1/notes?per_page=100", &key).await;
    let mut first = list(2).await;
    assert_eq!(first.status, 200, "what is larger than a share passes alone");
    assert!(answers.held() > BYTES_OUT / 4, "{}", answers.held());
    let (same, other) = futures::join!(list(2), list(3));
    assert_eq!(
        (same.status, other.status),
        (429, 503),
        "neither for its address nor for anybody is there room"
    );
    for refused in [same, other] {
        assert!(refused.head.contains("retry-after: 1\r\n"), "{}", refused.head);
    }
    let small = begin_with(gateway.address, 2, "/v1/files", &key).await;
    assert_eq!(small.status, 200, "a small one passes");
    // Most of it, so that the rest is out of the gateway's hands.
    let mut read = vec![0; 3 << 20];
    first.rest.read_exact(&mut read).await.unwrap();
    eventually("nothing is held", async || answers.held() == 0).await;
    assert_eq!(list(2).await.status, 200);
}

#[tokio::test]
async fn a_download_whose_file_disappears_is_aborted_and_not_ended() {
    let world = World::start().await;
    let user = world.user().await;
    let path = upload(&user).await;
    let mut begun = begin(world.gateway.address, 2, &path).await;
    assert_eq!(begun.status, 200);
    std::fs::remove_dir_all(world.files()).unwrap();
    let mut read = Vec::new();
    // Ends or breaks, but never as if all were there.
    let _ = begun.rest.read_to_end(&mut read).await;
    assert!(read.len() < SIZE && content().starts_with(&read), "{}", read.len());
}

#[tokio::test]
async fn a_download_that_nobody_reads_is_not_read_from_the_store() {
    let world = World::start().await;
    let user = world.user().await;
    let path = upload(&user).await;
    let mut unread = begin(world.gateway.address, 2, &path).await;
    // Meanwhile all of it goes the same way to somebody else.
    let other = world.gateway.api_with("").get(&path).await.expect(200);
    assert_eq!(other.body.len(), SIZE);
    std::fs::remove_dir_all(world.files()).unwrap();
    let mut read = Vec::new();
    let _ = (&mut unread.rest).take(SIZE as u64).read_to_end(&mut read).await;
    assert!(read.len() < SIZE, "it was not waiting on the way as a whole");
}

#[tokio::test]
async fn an_empty_file_is_an_empty_answer() {
    let world = World::start().await;
    let user = world.user().await;
    let empty = world.gateway.api_with("").get(&path_of(&user.upload("empty.txt", "", b"").await.url)).await;
    let empty = empty.expect(200);
    assert_eq!((empty.header("content-length"), empty.body.len()), (Some("0"), 0));
}
