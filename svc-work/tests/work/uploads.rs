use chassis_data::Tx;
use chassis_testing::eventually;
use chassis_testing::{expected_faults, faults};
use chassis_work::files::Key;
use chrono::TimeDelta;
use futures::future::select_all;
use futures::{StreamExt, stream};
use proto::work::{FileInput, UploadFileRequest};
use serde_json::json;

use crate::support::{path_of, problem};
use crate::world::World;

fn first(name: &str, data: &[u8]) -> UploadFileRequest {
    let file = FileInput { name: name.to_owned(), content_type: String::new() };
    UploadFileRequest { file: Some(file), data: data.to_vec().into() }
}

fn next(data: &[u8]) -> UploadFileRequest {
    UploadFileRequest { file: None, data: data.to_vec().into() }
}

#[tokio::test]
async fn a_file_that_comes_in_parts_goes_out_as_a_whole() {
    let world = World::start().await;
    let user = world.user().await;
    let parts = vec![first("../notes.TXT", b"Hel"), next(b""), next(b"lo"), next(&[b'!'; 100_000])];
    let file = user.upload_parts(parts).await.unwrap();
    assert_eq!((file.name.as_str(), file.extension.as_str()), ("notes.TXT", "txt"));
    let meta = file.meta.unwrap();
    assert_eq!(
        (meta.content_type.as_str(), meta.size, meta.source_type.as_str()),
        ("text/plain", 100_005, "upload")
    );
    let sent = world.gateway.api_with("").get(&path_of(&file.url)).await.expect(200);
    assert_eq!(&sent.body[..8], b"Hello!!!");
    assert_eq!(sent.body.len(), 100_005);
    let empty = user.upload("empty", "", b"").await;
    assert_eq!(world.gateway.api_with("").get(&path_of(&empty.url)).await.expect(200).body.len(), 0);
}

#[tokio::test]
async fn an_upload_that_is_too_large_or_has_no_name_leaves_no_bytes() {
    let world = World::start().with_flags(&["--files-max-bytes", "1000"]).await;
    let user = world.user().await;
    user.upload_parts(vec![first("a", &[0; 500]), next(&[0; 500])]).await.unwrap();
    let refused = user.upload_parts(vec![first("a", &[0; 500]), next(&[0; 501])]).await.unwrap_err();
    assert_eq!(problem(&refused), "too_large");
    for (parts, expected) in [
        (vec![], ("/file", "required")),
        (vec![next(b"x")], ("/file", "required")),
        (vec![first(" ", b"x")], ("/file/name", "required")),
        (vec![first("a\0", b"x")], ("/file/name", "bad_text")),
        (vec![first("a", b"x"), first("b", b"y")], ("/file", "repeated")),
    ] {
        let refused = user.upload_parts(parts).await.unwrap_err();
        assert_eq!(faults(&refused), expected_faults(&[expected]));
    }
    assert_eq!((world.stored_files(), user.total("/v1/files").await), (1, json!(1)));
}

#[tokio::test]
async fn a_repeated_upload_is_kept_once() {
    let world = World::start().await;
    let user = world.user().await;
    let upload = async |parts: Vec<UploadFileRequest>| {
        let request = user.token.keyed("k", stream::iter(parts));
        user.files().upload_file(request).await.map(|answer| answer.into_inner().data.unwrap())
    };
    let one = upload(vec![first("a", b"xyz")]).await.unwrap();
    let two = upload(vec![first("a", b"x"), next(b"yz")]).await.unwrap();
    assert_eq!(one, two);
    let other = upload(vec![first("a", b"other")]).await.unwrap_err();
    assert_eq!(problem(&other), "idempotency_key_reused");
    assert_eq!((world.stored_files(), user.total("/v1/files").await), (1, json!(1)));
}

#[tokio::test]
async fn an_upload_needs_its_scope() {
    let world = World::start().await;
    let user = world.user().await;
    let mut key = user.token.clone();
    key.scopes = vec!["files.read".to_owned()];
    let refused =
        user.files().upload_file(key.request(stream::iter(vec![first("a", b"x")]))).await.unwrap_err();
    assert_eq!(problem(&refused), "insufficient_scope");
}

#[tokio::test]
async fn uploads_of_one_account_that_do_not_end_leave_room_for_another() {
    let world = World::start().await;
    let [user, other] = [world.user().await, world.user().await];
    // One more than all accounts together can have in memory.
    let endless = (0..33).map(|_| {
        let request = user.request(stream::iter([first("a", b"x")]).chain(stream::pending()));
        let mut files = user.files();
        Box::pin(async move { files.upload_file(request).await.unwrap_err() })
    });
    let (refused, _, _held) = select_all(endless).await;
    assert_eq!(problem(&refused), "unavailable");
    other.upload("b", "", b"y").await;
}

#[tokio::test]
async fn an_upload_that_cannot_be_stored_is_refused_and_not_listed() {
    let world = World::start().await;
    let user = world.user().await;
    let file = user.upload("before", "", b"x").await;
    // A file in place of the folder makes writing fail as a full or broken disk does, even for root.
    let (folder, aside) = (world.files().join("work"), world.files().join("aside"));
    std::fs::rename(&folder, &aside).unwrap();
    std::fs::write(&folder, "in the way").unwrap();
    let refused = user.upload_parts(vec![first("a", b"x")]).await.unwrap_err();
    assert_eq!(problem(&refused), "unavailable");
    world.gateway.api_with("").get(&path_of(&file.url)).await.expect(503);
    assert_eq!(user.total("/v1/files").await, 1);
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&aside, &folder).unwrap();
    world.gateway.api_with("").get(&path_of(&file.url)).await.expect(200);
    user.upload("after", "", b"x").await;
    assert_eq!((world.stored_files(), user.total("/v1/files").await), (2, json!(2)));
}

#[tokio::test]
async fn bytes_that_were_never_listed_are_removed_after_a_day() {
    let world = World::start().await;
    let user = world.user().await;
    let runtime = &world.work.runtime;
    let (db, files) = (&runtime.db, runtime.files().unwrap());
    let listed = user.upload("listed", "", b"x").await;
    let keys: Vec<Key> = (0..3).map(|_| Key::new(user.account.id, "uploads", world.clock.id())).collect();
    files.expect(db, &user.account, &keys).await.unwrap();
    for key in &keys[..2] {
        files.put(key, "never listed").await.unwrap();
    }
    assert_eq!(world.stored_files(), 3);
    world.clock.advance(TimeDelta::hours(25));
    let _worker = world.start_worker().await;
    eventually("they are gone", async || world.stored_files() == 1).await;
    let names = vec![files.reference(&keys[0])];
    let late = db.record(&user.account, &names, async |tx: &mut Tx<'_>, names: &Vec<String>| {
        chassis_work::files::list(tx, names).await
    });
    assert!(late.await.is_err(), "what is removed is not listed");
    let mut connection = world.database.connect().await;
    eventually("nothing is expected any more", async || {
        let left = sqlx::query_scalar("select count(*) from work.file_write");
        let left: i64 = left.fetch_one(&mut connection).await.unwrap();
        left == 0
    })
    .await;
    let listed = user.get(&format!("/v1/files/{}", listed.id)).await["data"].clone();
    let url = path_of(listed["url"].as_str().unwrap());
    world.gateway.api_with("").get(&url).await.expect(200);
}
