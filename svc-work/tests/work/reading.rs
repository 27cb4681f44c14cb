//! The content of files for other services.

use proto::work::{DeleteFileRequest, ReadFileRequest};
use tonic::Code;

use crate::support::User;
use crate::world::World;

/// What the first message says, and the content of all.
async fn read(user: &User, id: &str) -> Result<((String, String, i64), Vec<u8>), tonic::Status> {
    let request = user.request(ReadFileRequest { id: id.to_owned() });
    let mut parts = user.files().read_file(request).await?.into_inner();
    let file = parts.message().await?.unwrap().file.unwrap();
    let mut content = Vec::new();
    while let Some(part) = parts.message().await? {
        assert!(part.file.is_none() && part.data.len() <= 64 << 10);
        content.extend_from_slice(&part.data);
    }
    Ok(((file.name, file.content_type, file.size), content))
}

#[tokio::test]
async fn a_file_is_read_in_parts_with_its_name_and_type() {
    let world = World::start().await;
    let user = world.user().await;
    let content: Vec<u8> = (0..=255).cycle().take(700_001).collect();
    let file = user.upload("写真.png", "", &content).await;
    let (about, read_content) = read(&user, &file.id).await.unwrap();
    assert_eq!(about, ("写真.png".to_owned(), "image/png".to_owned(), 700_001));
    assert!(read_content == content);
    let empty = user.upload("empty", "", b"").await;
    assert_eq!(read(&user, &empty.id).await.unwrap().1, b"");
}

#[tokio::test]
async fn a_file_that_is_not_there_or_anothers_is_not_found() {
    let world = World::start().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let (foreign, deleted) = (stranger.upload("a", "", b"a").await.id, user.upload("b", "", b"b").await.id);
    user.files().delete_file(user.request(DeleteFileRequest { id: deleted.clone() })).await.unwrap();
    for id in [foreign.as_str(), &deleted, "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05", "x", ""] {
        assert_eq!(read(&user, id).await.unwrap_err().code(), Code::NotFound, "{id}");
    }
}
