//! Answers are compressed for callers that accept it.

use std::io::Read;

use flate2::read::GzDecoder;
use http::Method;
use serde_json::json;

use crate::support::{Mesh, RELATIONS};

#[tokio::test]
async fn a_long_answer_is_compressed_as_its_caller_accepts() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    for index in 0..20 {
        api.post("/v1/clients", json!({"company_name": format!("Company {index}")})).await.expect(201);
    }
    let plain = api.get("/v1/clients").await.expect(200);
    assert_eq!(plain.header("content-encoding"), None);
    for (accepted, coding) in [
        ("gzip", Some("gzip")),
        ("br", Some("br")),
        ("zstd", Some("zstd")),
        ("gzip;q=0.5, zstd;q=0.9", Some("zstd")),
        ("gzip;q=0", None),
        ("identity", None),
        ("unheard-of", None),
    ] {
        let headers = [("accept-encoding", accepted)];
        let answer = api.send(Method::GET, "/v1/clients", &headers, "").await.expect(200);
        assert_eq!(answer.header("content-encoding"), coding, "{accepted}");
        if coding.is_some() {
            assert!(answer.body.len() * 3 < plain.body.len(), "{accepted}: {}", answer.body.len());
            assert!(answer.header("vary").is_some_and(|vary| vary.contains("accept-encoding")));
        } else {
            assert_eq!(answer.body, plain.body, "{accepted}");
        }
        if coding == Some("gzip") {
            let mut text = Vec::new();
            GzDecoder::new(answer.body.as_ref()).read_to_end(&mut text).unwrap();
            assert_eq!(text, plain.body);
        }
        let export = api.send(Method::GET, "/v1/clients/export", &headers, "").await.expect(200);
        assert_eq!(export.header("content-encoding"), coding, "{accepted}");
        let short = api.send(Method::GET, "/v1/tasks/none", &headers, "").await;
        assert_eq!(short.header("content-encoding"), None, "what is short stays as it is");
    }
}
