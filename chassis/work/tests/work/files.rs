//! Files in a folder and in a bucket of a real S3 service.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::os::unix::fs::PermissionsExt;

use chassis_base::{AccountId, Error};
use chassis_testing::{S3Server, service_settings};
use chassis_work::files::{Files, Key};
use futures::TryStreamExt;
use proto::api::{HttpBody, Problem};
use uuid::Uuid;

fn on_disk(folder: &std::path::Path) -> Files {
    Files::new("bare", &service_settings(&["--files-dir", folder.to_str().unwrap()]).files).unwrap()
}

fn is_unavailable<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Problem { problem: Problem::Unavailable, .. }))
}

/// Reads the same bytes as a stream of small messages and as one message.
async fn reads_it_in_parts(files: &Files, key: &Key, content: &[u8]) {
    for streamed in [true, false] {
        let reading = files.open_file(key).await.unwrap().unwrap();
        let answer = reading.answer(HttpBody::default(), streamed).await.unwrap();
        let messages: Vec<HttpBody> = answer.into_inner().try_collect().await.unwrap();
        assert_eq!(messages[0].length, content.len() as u64);
        assert!(messages.iter().all(|message| !streamed || message.data.len() <= 64 << 10));
        let parts: Vec<&[u8]> = messages.iter().map(|message| &message.data[..]).collect();
        assert!(parts.concat() == content && (streamed || parts.len() == 1));
    }
}

/// The facts that hold for every storage.
async fn keeps_what_it_is_given(files: &Files) {
    let account = chassis_testing::account().id;
    let key = Key::new(account, "things", Uuid::new_v4());
    assert_eq!(files.get(&key).await.unwrap(), None);
    files.put(&key, "first").await.unwrap();
    files.put(&key, "first").await.unwrap();
    assert!(matches!(files.put(&key, "second").await, Err(Error::Internal(_))), "a file never changes");
    assert_eq!(files.get(&key).await.unwrap().unwrap(), "first");
    let others = [
        key.clone().number(1),
        key.clone().number(2),
        Key::of_content(account, "things", b"first"),
        Key::new(chassis_testing::account().id, "things", Uuid::new_v4()),
    ];
    for (number, other) in others.iter().enumerate() {
        files.put(other, vec![u8::try_from(number).unwrap(); 100_000]).await.unwrap();
    }
    for (number, other) in others.iter().enumerate() {
        assert_eq!(files.get(other).await.unwrap().unwrap()[..2], [u8::try_from(number).unwrap(); 2]);
    }
    let empty = Key::of_content(account, "empty", b"");
    files.put(&empty, "").await.unwrap();
    reads_it_in_parts(files, &empty, b"").await;
    // Longer than one piece, and not a whole number of pieces.
    let long: Vec<u8> = (0..600_001_u32).map(|place| u8::try_from(place / 999 % 251).unwrap()).collect();
    let long_key = Key::of_content(account, "long", &long);
    files.put(&long_key, long.clone()).await.unwrap();
    reads_it_in_parts(files, &long_key, &long).await;
    assert!(files.open_file(&key.clone().number(99)).await.unwrap().is_none());
    files.delete(&key).await.unwrap();
    files.delete(&key).await.unwrap();
    assert_eq!(files.get(&key).await.unwrap(), None);
    assert!(files.get(&others[0]).await.unwrap().is_some(), "the others stay");
    files.put(&key, "second").await.unwrap();
}

#[tokio::test]
async fn files_stay_on_disk_as_they_were_given() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("not/there/yet");
    let files = on_disk(&inner);
    assert!(!inner.exists(), "the folder is made when it is needed");
    keeps_what_it_is_given(&files).await;
}

#[tokio::test]
async fn files_stay_in_a_bucket_as_they_were_given() {
    let Some(server) = S3Server::start("files_stay_in_a_bucket_as_they_were_given").await else { return };
    keeps_what_it_is_given(&Files::new("bare", &service_settings(&server.flags()).files).unwrap()).await;
}

#[tokio::test]
async fn a_file_is_under_the_service_and_the_account() {
    let folder = tempfile::tempdir().unwrap();
    let account = AccountId::trust(Uuid::from_u128(1));
    on_disk(folder.path())
        .put(&Key::new(account, "things", Uuid::from_u128(2)).number(3), "x")
        .await
        .unwrap();
    let path = "bare/00000000-0000-0000-0000-000000000001/things/00000000000000000000000000000002-3";
    assert_eq!(std::fs::read(folder.path().join(path)).unwrap(), b"x");
}

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn files_on_disk_are_for_nobody_else_also_in_a_folder_of_before() {
    let folder = tempfile::tempdir().unwrap();
    let (service, account) = (folder.path().join("bare"), chassis_testing::account().id);
    std::fs::create_dir(&service).unwrap();
    std::fs::set_permissions(&service, std::fs::Permissions::from_mode(0o755)).unwrap();
    let files = on_disk(folder.path());
    files.put(&Key::new(account, "things", Uuid::nil()), "x").await.unwrap();
    let things = service.join(account.to_string()).join("things");
    let file = std::fs::read_dir(&things).unwrap().next().unwrap().unwrap().path();
    assert_eq!((mode(&service), mode(&things), mode(&file)), (0o700, 0o700, 0o600));
}

#[tokio::test]
async fn a_file_is_read_no_faster_than_it_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (files, content) = (on_disk(folder.path()), vec![1; 3_000_000]);
    let key = Key::of_content(chassis_testing::account().id, "long", &content);
    files.put(&key, content).await.unwrap();
    let begin = async || {
        let reading = files.open_file(&key).await.unwrap().unwrap();
        reading.answer(HttpBody::default(), true).await.unwrap().into_inner()
    };
    let mut slow = begin().await;
    assert_eq!(slow.try_next().await.unwrap().unwrap().length, 3_000_000);
    // Meanwhile other receivers read the whole file.
    for _ in 0..3 {
        let quick: Vec<HttpBody> = begin().await.try_collect().await.unwrap();
        assert_eq!(quick.iter().map(|message| message.data.len()).sum::<usize>(), 3_000_000);
    }
    files.delete(&key).await.unwrap();
    let rest: Result<Vec<HttpBody>, _> = slow.try_collect().await;
    assert!(rest.is_err(), "what was not taken was not read");
}

#[tokio::test]
async fn so_many_files_are_read_at_once_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let (files, content) = (on_disk(folder.path()), vec![1; 300_000]);
    let key = Key::of_content(chassis_testing::account().id, "long", &content);
    files.put(&key, content).await.unwrap();
    let mut begun = Vec::new();
    for _ in 0..256 {
        begun.push(files.open_file(&key).await.unwrap().unwrap());
    }
    assert!(is_unavailable(&files.open_file(&key).await));
    begun.pop();
    assert!(files.open_file(&key).await.unwrap().is_some(), "whoever has read makes room");
}

#[tokio::test]
async fn files_that_cannot_be_reached_are_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let occupied = folder.path().join("file");
    std::fs::write(&occupied, "not a folder").unwrap();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = format!("http://{closed}");
    let away = service_settings(&[
        "--files-s3-bucket",
        "files",
        "--files-s3-endpoint",
        &endpoint,
        "--files-s3-key-id",
        "x",
        "--files-s3-secret",
        "x",
    ]);
    for files in [on_disk(&occupied), Files::new("bare", &away.files).unwrap()] {
        let key = Key::new(chassis_testing::account().id, "things", Uuid::new_v4());
        assert!(is_unavailable(&files.put(&key, "x").await));
        assert!(is_unavailable(&files.get(&key).await));
        assert!(is_unavailable(&files.delete(&key).await));
    }
}
