//! Files over REST: as a form, as bytes, and what is no upload.

use std::time::Duration;

use gateway::testing::{Answer, Api};
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::Mesh;

const FILES: &[&str] = &["files.read", "files.write"];
const FORM: (&str, &str) = ("content-type", "multipart/form-data; boundary=edge");

/// A part of a form.
fn part(name: &str, more: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n");
    [head.as_bytes(), content, b"\r\n"].concat()
}

fn form(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat().as_slice(), b"--edge--\r\n"].concat()
}

async fn send(api: &Api, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
    api.send(Method::POST, path, headers, body).await
}

/// The content of a file, from its address.
async fn content(mesh: &Mesh, file: &Answer) -> Vec<u8> {
    let url = file.at("/data/url");
    let path = url.as_str().unwrap().split_once("/files/").unwrap().1.to_owned();
    mesh.gateway.api_with("").get(&format!("/files/{path}")).await.expect(200).body.to_vec()
}

/// More than a chunk, a message and a window, and not the same anywhere.
fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|index| u8::try_from((index * 7 + index / 251) % 256).unwrap()).collect()
}

#[tokio::test]
async fn a_file_comes_as_a_form_or_as_its_bytes_and_is_the_same() {
    let mesh = Mesh::start().await;
    let api = mesh.api(FILES).await;
    let sent = bytes(700_000);
    let file = part("file", "; filename=\"Angebot für Ørsted.pdf\"\r\nContent-Type: application/pdf", &sent);
    let answer = send(&api, "/v1/files", &[FORM], form(&[file])).await.expect(201);
    assert_eq!(answer.at("/data/name"), "Angebot für Ørsted.pdf");
    assert_eq!(answer.at("/data/meta/content_type"), "application/pdf");
    assert_eq!(answer.at("/data/meta/size"), 700_000);
    let id = answer.at("/data/id");
    assert_eq!(answer.header("location").unwrap(), format!("/v1/files/{}", id.as_str().unwrap()));
    assert_eq!(content(&mesh, &answer).await, sent);

    let named = [
        ("content-type", "image/png"),
        ("content-disposition", "attachment; filename*=UTF-8''caf%C3%A9.png"),
    ];
    let answer = send(&api, "/v1/files", &named, sent.clone()).await.expect(201);
    assert_eq!((answer.at("/data/name"), answer.at("/data/extension")), (json!("café.png"), json!("png")));
    let answer =
        send(&api, "/v1/files?name=own.txt", &[("content-type", "text/plain")], vec![]).await.expect(201);
    assert_eq!((answer.at("/data/name"), answer.at("/data/meta/size")), (json!("own.txt"), json!(0)));
    assert_eq!(content(&mesh, &answer).await, b"");

    // The name of the form is before that of the file.
    let parts = [part("name", "", b"better.txt"), part("file", "; filename=\"worse.txt\"", b"text")];
    let answer = send(&api, "/v1/files", &[FORM], form(&parts)).await.expect(201);
    assert_eq!(answer.at("/data/name"), "better.txt");
    assert_eq!(content(&mesh, &answer).await, b"text");
    assert_eq!(api.get("/v1/files").await.at("/meta/total"), 4);
}

#[tokio::test]
async fn a_repeated_upload_is_one_file_and_another_content_is_refused() {
    let mesh = Mesh::start().await;
    let api = mesh.api(FILES).await;
    let keyed = [("content-type", "text/plain"), ("idempotency-key", "once")];
    let first = send(&api, "/v1/files?name=a.txt", &keyed, b"one".to_vec()).await.expect(201);
    let second = send(&api, "/v1/files?name=a.txt", &keyed, b"one".to_vec()).await.expect(201);
    assert_eq!(first.at("/data/id"), second.at("/data/id"));
    assert_eq!(second.header("x-idempotent-replay"), Some("true"));
    let other = send(&api, "/v1/files?name=a.txt", &keyed, b"two".to_vec()).await.expect(422);
    assert_eq!(other.at("/code"), "idempotency_key_reused");
    assert_eq!(api.get("/v1/files").await.at("/meta/total"), 1);
}

#[tokio::test]
async fn what_is_no_upload_is_refused_and_stores_nothing() {
    let mesh = Mesh::start().await;
    let api = mesh.api(FILES).await;
    let text = [("content-type", "text/plain")];
    let nameless = send(&api, "/v1/files", &text, b"text".to_vec()).await.expect(422);
    assert_eq!(nameless.faults(), [("/name".to_owned(), "required".to_owned())]);
    let large = send(&api, "/v1/files?name=a", &text, vec![0; (16 << 20) + 1]).await.expect(413);
    assert_eq!(large.at("/code"), "too_large");
    let file = || part("file", "; filename=\"a.txt\"", b"text");
    for (case, headers, body) in [
        ("no boundary", ("content-type", "multipart/form-data"), form(&[file()])),
        ("no file", FORM, form(&[part("name", "", b"a.txt")])),
        ("something after the file", FORM, form(&[file(), part("name", "", b"a.txt")])),
        ("two files", FORM, form(&[file(), file()])),
        ("a form that ends early", FORM, file()),
        ("a name that is no text", FORM, form(&[part("name", "", b"\xff"), file()])),
        ("too many fields", FORM, form(&[vec![part("x", "", b"1"); 30].concat(), file()])),
    ] {
        let answer = send(&api, "/v1/files", &[headers], body).await;
        assert_eq!((answer.status.as_u16(), answer.at("/code")), (400, json!("malformed")), "{case}");
    }
    assert_eq!(api.get("/v1/files").await.at("/meta/total"), 0);
    let reader = mesh.api(&["files.read"]).await;
    send(&reader, "/v1/files?name=a.txt", &text, b"text".to_vec()).await.expect(403);
}

#[tokio::test]
async fn a_form_has_its_bytes_in_its_file_and_little_around_it() {
    let mesh = Mesh::start().await;
    let api = mesh.api(FILES).await;
    let padding = format!("\r\nX-Padding: {}", "a".repeat(400 << 10));
    let file = |content: &[u8]| part("file", "; filename=\"a.txt\"", content);
    let largest = bytes(16 << 20);
    for (case, body) in [
        ("a head before the file", form(&[part("name", &padding, b"a.txt"), file(b"text")])),
        ("the head of the file", form(&[part("file", &padding, b"text")])),
        ("many fields", form(&[part("x", "", &[b'a'; 16 << 10]).repeat(12), file(b"text")])),
        ("a head after the file", form(&[file(b"text"), part("name", &padding, b"a.txt")])),
        ("what is before the first part", [padding.as_bytes(), &form(&[file(b"text")])].concat()),
        ("the file", form(&[file(&[largest.as_slice(), &bytes(400 << 10)].concat())])),
    ] {
        let answer = send(&api, "/v1/files", &[FORM], body).await;
        assert_eq!((answer.status.as_u16(), answer.at("/code")), (413, json!("too_large")), "{case}");
        if case != "the file" {
            let detail = answer.at("/detail").to_string();
            assert!(detail.contains("part `file`") && detail.contains("131072"), "{case}: {detail}");
        }
    }
    assert_eq!(api.get("/v1/files").await.at("/meta/total"), 0);
    let few = vec![part("x", "", b"1"); 19].concat();
    let within = part("name", &padding[..100 << 10], b"a.txt");
    send(&api, "/v1/files", &[FORM], form(&[few, within, file(&largest)])).await.expect(201);
}

#[tokio::test]
async fn an_upload_whose_client_goes_away_stores_nothing() {
    let mesh = Mesh::start().await;
    let api = mesh.api(FILES).await;
    let mut connection = TcpStream::connect(mesh.gateway.address).await.unwrap();
    let head = format!(
        "POST /v1/files?name=half.bin HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Length: 400000\r\n\r\n",
        api.key()
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(&bytes(200_000)).await.unwrap();
    connection.shutdown().await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(Duration::from_mins(1), connection.read_to_end(&mut answer)).await.unwrap().unwrap();
    assert!(!String::from_utf8_lossy(&answer).contains(" 201 "), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(api.get("/v1/files").await.at("/meta/total"), 0);
}

#[tokio::test]
async fn an_upload_can_be_tried_and_stores_nothing() {
    let mesh = Mesh::start().await;
    let api = mesh.api(FILES).await;
    let tried = [("content-type", "text/plain"), ("dry-run", "true")];
    let answer = send(&api, "/v1/files?name=a.txt", &tried, b"text".to_vec()).await.expect(201);
    assert_eq!(answer.at("/meta/dry_run/changes/0/kind"), "file");
    assert_eq!(api.get("/v1/files").await.at("/meta/total"), 0);
}
