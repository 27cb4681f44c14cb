//! A small service of the sample contract: pages, files and forms, without a database. It is spoken to over real gRPC;
//! only what it answers is made up.

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::serve::ListenerExt;
use bytes::{BufMut, Bytes, BytesMut};
use chassis_base::error::status::of_problem;
use chassis_rpc::token::{self, Identity, Tokens};
use chassis_testing::TestDatabase;
use gateway::testing::TestGateway;
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use prost::Message;
use prost_reflect::DescriptorPool;
use proto::api::{Fault, HttpBody, Problem, SignedBody};
use proto::{At, Faults};
use tonic::Status;

/// A gateway that serves the sample contract with the small service behind it.
pub(crate) struct Pages {
    pub gateway: TestGateway,
    _database: TestDatabase,
}

impl Pages {
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let database = TestDatabase::new(&[("gateway", &gateway::MIGRATIONS)]).await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peers = [format!("sample=http://{}", listener.local_addr().unwrap())];
        let router = Router::new().fallback(serve);
        // Else the parts of an answer wait for each other's acknowledgement.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let clock = chassis_testing::clock();
        let gateway = TestGateway::start_serving(&contract(), &database, &clock, &peers, flags).await;
        Self { gateway, _database: database }
    }
}

/// The contract of the transcoding tests.
pub(crate) fn contract() -> DescriptorPool {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../chassis/transcode/tests/transcode");
    let product = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto");
    let mut compiler = protox::Compiler::new([folder, product]).unwrap();
    compiler.include_imports(true).include_source_info(true).open_file("sample.proto").unwrap();
    DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice()).unwrap()
}

/// The largest file that passes.
pub(crate) const LARGE: usize = 16 << 20;
const PART: usize = 64 << 10;

#[derive(Clone, PartialEq, Message)]
struct OneText {
    #[prost(string, tag = "1")]
    text: String,
}

#[derive(Clone, PartialEq, Message)]
struct AnswerPage {
    #[prost(string, tag = "1")]
    token: String,
    #[prost(message, optional, tag = "2")]
    answer: Option<PageAnswer>,
}

#[derive(Clone, PartialEq, Message)]
struct PageAnswer {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    remark: String,
}

#[derive(Clone, PartialEq, Message)]
struct HearSigned {
    #[prost(message, optional, tag = "1")]
    event: Option<SignedBody>,
}

async fn serve(request: Request<Body>) -> Response {
    let path = request.uri().path().to_owned();
    let token =
        request.headers().get(token::HEADER).and_then(|token| token.to_str().ok()).unwrap_or_default();
    let identity =
        Tokens::new(chassis_testing::secret()).of("sample").verify(token, chassis_testing::moment());
    let frame = request.into_body().collect().await.unwrap().to_bytes();
    let message = frame.slice(5..);
    if path.ends_with("/FetchPage") {
        return fetch(&OneText::decode(message).unwrap().text);
    }
    let answer = match (path.rsplit('/').next().unwrap(), identity) {
        (_, None) => Err(of_problem(Problem::Unauthenticated, "No context token.", Vec::new(), None)),
        ("ShowPage", Some(identity)) => show(&OneText::decode(message).unwrap().text, &identity),
        ("AnswerPage", Some(_)) => reply(AnswerPage::decode(message).unwrap()),
        ("HearSigned", Some(identity)) => hear(HearSigned::decode(message).unwrap(), &identity),
        ("ExportThing", Some(identity)) => export(&OneText::decode(message).unwrap().text, &identity),
        // data { views: 3 }
        ("CountPage", Some(_)) => Ok(vec![0x0a, 2, 0x08, 3]),
        // An account is made known to the service.
        ("ProvisionAccount", Some(_)) => Ok(Vec::new()),
        (other, _) => Err(Status::unimplemented(other.to_owned())),
    };
    answer.map_or_else(Status::into_http, |message| framed(&[message], "0"))
}

fn framed(messages: &[Vec<u8>], code: &'static str) -> Response {
    let mut frames = BytesMut::new();
    for message in messages {
        frames.put_u8(0);
        frames.put_u32(u32::try_from(message.len()).unwrap());
        frames.put_slice(message);
    }
    let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), HeaderValue::from_static(code))]);
    let body = Full::new(frames.freeze()).with_trailers(async move { Some(Ok(trailers)) });
    Response::builder().header("content-type", "application/grpc").body(Body::new(body)).unwrap()
}

/// A file as a stream, in all the ways in which it can come.
fn fetch(token: &str) -> Response {
    let head = HttpBody {
        content_type: "application/pdf".to_owned(),
        disposition: "attachment; filename=\"large.pdf\"".to_owned(),
        length: LARGE as u64,
        ..HttpBody::default()
    };
    let part =
        |size: usize| HttpBody { data: vec![b'x'; size].into(), ..HttpBody::default() }.encode_to_vec();
    let (mut messages, mut code) = (vec![head.encode_to_vec()], "0");
    match token {
        "whole" => messages.extend((0..LARGE / PART).map(|_| part(PART))),
        "broken" => (messages, code) = (vec![messages.remove(0), part(5)], "13"),
        "short" => messages.push(part(5)),
        "odd" => messages.push(vec![0x0a, 200, 1]),
        // Of a service that does not stream yet.
        "old" => {
            messages = vec![HttpBody { data: vec![b'x'; LARGE].into(), length: 0, ..head }.encode_to_vec()];
        }
        "nothing" => messages = Vec::new(),
        _ => return not_found().into_http(),
    }
    framed(&messages, code)
}

fn not_found() -> Status {
    of_problem(Problem::NotFound, "There is nothing at this address.", Vec::new(), None)
}

fn show(token: &str, identity: &Identity) -> Result<Vec<u8>, Status> {
    assert!(identity.is_public() && identity.account.id.uuid().is_nil(), "{identity:?}");
    let page = HttpBody {
        content_type: "text/html; charset=utf-8".to_owned(),
        data: Bytes::from_static(b"<h1>Hello</h1>"),
        ..HttpBody::default()
    };
    let body = match token {
        "page" => page,
        "own" => HttpBody {
            cache_control: "private, max-age=60".to_owned(),
            content_security_policy: "default-src 'self'".to_owned(),
            ..page
        },
        "bytes" => HttpBody { content_type: String::new(), ..page },
        "redirect" => HttpBody { status: 303, location: "/pages/page".to_owned(), ..HttpBody::default() },
        "empty" => HttpBody { status: 204, ..page },
        "gone" => HttpBody { status: 410, ..page },
        "split" => HttpBody { content_type: "text/html\r\nset-cookie: a=b".to_owned(), ..page },
        "interim" => HttpBody { status: 101, ..page },
        "status" => HttpBody { status: 99_999, ..page },
        // A field that ends too early.
        "cut" => return Ok(vec![0x0a, 200, 1]),
        "busy" => return Err(chassis_base::error::status::unavailable("Too much to do.")),
        _ => return Err(not_found()),
    };
    Ok(body.encode_to_vec())
}

fn reply(request: AnswerPage) -> Result<Vec<u8>, Status> {
    if request.token != "page" {
        return Err(not_found());
    }
    let answer = request.answer.unwrap_or_default();
    if answer.name.is_empty() {
        let mut faults = Faults::default();
        faults.add(&At::ROOT.name("answer").name("name"), Fault::Required, "name is required");
        return Err(chassis_base::Error::from(faults).into());
    }
    let text = format!("{}|{}", answer.name, answer.remark);
    let content_type = "text/plain; charset=utf-8".to_owned();
    Ok(HttpBody { content_type, data: text.into(), ..HttpBody::default() }.encode_to_vec())
}

/// Says what arrived.
fn hear(request: HearSigned, identity: &Identity) -> Result<Vec<u8>, Status> {
    assert!(identity.is_public(), "{identity:?}");
    let event = request.event.unwrap();
    if event.signature.is_empty() {
        return Err(of_problem(Problem::BadSignature, "It is not signed.", Vec::new(), None));
    }
    let data = [event.signature.as_bytes(), &b"|"[..], &event.data[..]].concat().into();
    Ok(HttpBody { content_type: "application/octet-stream".to_owned(), data, ..HttpBody::default() }
        .encode_to_vec())
}

fn export(id: &str, identity: &Identity) -> Result<Vec<u8>, Status> {
    assert!(!identity.is_public() && !identity.account.id.uuid().is_nil(), "{identity:?}");
    if id != "thing" {
        return Err(not_found());
    }
    let content_type = "application/xml".to_owned();
    Ok(HttpBody { content_type, data: Bytes::from_static(b"<thing/>"), ..HttpBody::default() }
        .encode_to_vec())
}
