use chassis_testing::eventually;
use serde_json::json;

use crate::support::path_of;
use crate::world::World;

#[tokio::test]
async fn a_file_is_listed_with_its_shape() {
    let world = World::start().await;
    let user = world.user().await;
    let file = user.upload("Photo.JPG", "", b"x").await;
    let time = "2026-11-15T11:00:00.123Z";
    let shown = json!({
        "id": file.id, "name": "Photo.JPG", "extension": "jpg", "url": file.url, "created_at": time,
        "meta": {
            "content_type": "image/jpeg", "size": 1, "source_type": "upload", "source_id": null, "version": 1,
            "updated_at": time,
        },
    });
    assert_eq!(user.get("/v1/files").await, json!({"data": [shown], "meta": {"total": 1}}));
    assert_eq!(user.get(&format!("/v1/files/{}", file.id)).await, json!({"data": shown, "meta": {}}));
    user.api.get("/v1/files/nonsense").await.expect(404);
}

#[tokio::test]
async fn a_list_without_pages_has_all_files_and_with_pages_some() {
    let world = World::start().await;
    let user = world.user().await;
    for index in 0..30 {
        user.upload(&format!("{index:02}.txt"), "", b"x").await;
    }
    let names = async |query: &str| {
        let list = user.get(&format!("/v1/files{query}")).await;
        assert_eq!(list["meta"], json!({"total": 30}));
        let names = list["data"].as_array().unwrap().iter().map(|file| file["name"].clone());
        names.map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = names("").await;
    assert_eq!((all.len(), all[0].as_str(), all[29].as_str()), (30, "29.txt", "00.txt"), "newest first");
    assert_eq!(names("?page=2").await, all[25..]);
    assert_eq!(names("?per_page=4&page=3").await, all[8..12]);
    user.api.get("/v1/files?page=x").await.expect(422);
}

#[tokio::test]
async fn deleting_a_file_removes_its_bytes() {
    let world = World::start().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let (file, other) = (user.upload("a", "", b"x").await, user.upload("b", "", b"x").await);
    let path = format!("/v1/files/{}", file.id);
    stranger.delete(&path).await.expect(404);
    assert_eq!(world.stored_files(), 2);
    assert!(user.delete(&path).await.expect(204).body.is_empty());
    assert_eq!(world.stored_files(), 1);
    user.delete(&path).await.expect(404);
    user.api.get(&path).await.expect(404);
    let gone = world.gateway.api_with("").get(&path_of(&file.url)).await.expect(404);
    assert_eq!(gone.at("/detail"), "This file has been deleted.");
    world.gateway.api_with("").get(&path_of(&other.url)).await.expect(200);
    assert_eq!(user.total("/v1/files").await, 1);
}

#[tokio::test]
async fn bytes_that_the_request_did_not_remove_are_removed_by_the_worker() {
    let world = World::start().await;
    let user = world.user().await;
    let file = user.upload("a", "", b"x").await;
    // What a process leaves that ends after its commit.
    sqlx::query("update work.file set deleted_at = $2 where account_id = $1")
        .bind(user.account.id)
        .bind(world.clock.now())
        .execute(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(world.stored_files(), 1);
    let _worker = world.start_worker().await;
    eventually("the bytes are removed", async || world.stored_files() == 0).await;
    user.api.get(&format!("/v1/files/{}", file.id)).await.expect(404);
}
