use chrono::TimeDelta;
use http::Method;

use crate::support::path_of;
use crate::world::World;

#[tokio::test]
async fn a_link_works_for_an_hour_and_then_answers_that_it_has_expired() {
    let world = World::start().await;
    let user = world.user().await;
    let path = path_of(&user.upload("a.txt", "", b"x").await.url);
    let nobody = world.gateway.api_with("");
    world.clock.advance(TimeDelta::minutes(59));
    nobody.get(&path).await.expect(200);
    world.clock.advance(TimeDelta::minutes(2));
    let refused = nobody.get(&path).await.expect(404);
    let detail = "This link has expired. Retrieve the file again for a new one.";
    assert_eq!((refused.at("/code"), refused.at("/detail")), ("not_found".into(), detail.into()));
    let file = user.get("/v1/files").await["data"][0].clone();
    nobody.get(&path_of(file["url"].as_str().unwrap())).await.expect(200);
}

#[tokio::test]
async fn a_link_that_was_changed_is_unknown() {
    let world = World::start().await;
    let user = world.user().await;
    let path = path_of(&user.upload("a.txt", "", b"x").await.url);
    let nobody = world.gateway.api_with("");
    let (_, token) = path.rsplit_once('/').unwrap();
    let mut details = Vec::new();
    for index in [0, 21, 43, 50, 60, 79] {
        let mut changed = token.to_owned().into_bytes();
        changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        details.push(nobody.get(&format!("/files/{changed}")).await.expect(404).at("/detail"));
    }
    for wrong in [&token[..79], "x", "%00", &format!("{token}A")] {
        details.push(nobody.get(&format!("/files/{wrong}")).await.expect(404).at("/detail"));
    }
    details.dedup();
    assert_eq!(details.len(), 1, "the answer does not say why a link is unknown");
}

#[tokio::test]
async fn a_link_leads_into_its_own_account_only() {
    let world = World::start().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let path = path_of(&user.upload("a.txt", "", b"x").await.url);
    // A key makes no difference: everyone who has the link may download.
    stranger.api.get(&path).await.expect(200);
    user.api.get(&path).await.expect(200);
    // Over gRPC the context token must be of the same account.
    let token = path.rsplit_once('/').unwrap().1.to_owned();
    let mut client =
        proto::work::file_download_service_client::FileDownloadServiceClient::new(world.work.channel());
    let request = proto::work::DownloadFileRequest { token };
    let refused = client.download_file(stranger.request(request.clone())).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::NotFound);
    // A caller that does not ask for a stream gets the whole file in one message.
    let mut whole = client.download_file(user.request(request.clone())).await.unwrap().into_inner();
    let message = whole.message().await.unwrap().unwrap();
    assert_eq!((&message.data[..], message.length), (&b"x"[..], 1));
    assert_eq!(whole.message().await.unwrap(), None);
    let mut streaming = user.request(request);
    streaming.metadata_mut().insert(chassis_rpc::call::BODY_STREAM, "true".parse().unwrap());
    let mut parts = client.download_file(streaming).await.unwrap().into_inner();
    let head = parts.message().await.unwrap().unwrap();
    assert_eq!(
        (head.content_type.as_str(), head.length, head.data.len()),
        ("text/plain; charset=utf-8", 1, 0)
    );
    assert_eq!(&parts.message().await.unwrap().unwrap().data[..], b"x");
    assert_eq!(parts.message().await.unwrap(), None);
}

#[tokio::test]
async fn a_file_is_sent_with_headers_that_keep_it_harmless() {
    let world = World::start().await;
    let user = world.user().await;
    let nobody = world.gateway.api_with("");
    for (name, claimed, content_type, disposition) in [
        ("a.pdf", "application/pdf", "application/pdf", "inline; filename=\"a.pdf\""),
        ("a.png", "", "image/png", "inline; filename=\"a.png\""),
        ("a.txt", "text/plain; charset=x", "text/plain; charset=utf-8", "inline; filename=\"a.txt\""),
        ("evil.html", "text/html", "application/octet-stream", "attachment; filename=\"evil.html\""),
        ("evil.svg", "image/svg+xml", "application/octet-stream", "attachment; filename=\"evil.svg\""),
        (
            "a\r\nSet-Cookie: b=c.zip",
            "application/zip",
            "application/zip",
            "attachment; filename=\"aSet-Cookie_ b_c.zip\"; filename*=UTF-8''aSet-Cookie%3A%20b%3Dc.zip",
        ),
        (
            "\"; filename=x\u{202e}.exe",
            "a/b",
            "a/b",
            "attachment; filename=\"__ filename_x.exe\"; filename*=UTF-8''%22%3B%20filename%3Dx.exe",
        ),
    ] {
        let file = user.upload(name, claimed, b"<script>alert(1)</script>").await;
        let sent = nobody
            .send(Method::GET, &path_of(&file.url), &[("origin", "https://x.example")], "")
            .await
            .expect(200);
        for (header, value) in [
            ("content-type", Some(content_type)),
            ("content-disposition", Some(disposition)),
            ("x-content-type-options", Some("nosniff")),
            ("cache-control", Some("private, no-store")),
            ("x-robots-tag", Some("noindex")),
            ("access-control-allow-origin", None),
            ("set-cookie", None),
        ] {
            assert_eq!(sent.header(header), value, "{name}: {header}");
        }
        let policy = sent.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert_eq!(policy.contains("sandbox"), content_type != "application/pdf", "{policy}");
    }
}
