//! `POST /v1/batch`: many operations in one request. Each goes through everything that a request of its own goes through, and
//! nothing is shared but the connection, the key, and the time.

mod earlier;

use std::net::{IpAddr, SocketAddr};

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chassis_base::Error;
use chassis_rpc::call::{AUTOMATION_DEPTH, IDEMPOTENCY_KEY};
use chassis_transcode::contract::Operation;
use futures::StreamExt;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt, Collected, Limited};
use prost::Message;
use proto::api::{Fault, Problem};
use proto::gateway::{BatchAnswer, BatchOperation, ExecuteBatchRequest, ExecuteBatchResponse};
use proto::{At, Check, Faults};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use tokio::time::{Duration, Instant};
use tonic::Status;

use super::app::App;
use super::byte_budget::{Owner, Reservation};
use super::measured;
use super::problem::{Entry, FaultLocation, Refusal};
use super::upstream::UpstreamCall;
use earlier::Earlier;

/// How many operations run at the same time.
const PARALLEL: usize = 8;
/// What was not begun by then is not tried, so that the answer comes in time.
const BEGIN_WITHIN: Duration = Duration::from_secs(25);
/// The most bytes of all bodies of answers.
const MAX_ANSWERS: usize = 8 << 20;
/// Headers of the batch that hold for each of its operations.
const SHARED_HEADERS: [HeaderName; 5] = [
    header::AUTHORIZATION,
    HeaderName::from_static("prefer"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static(AUTOMATION_DEPTH),
];
/// Headers of an answer that say how its bytes are sent, which is not how they are sent here.
const OF_TRANSPORT: [HeaderName; 3] =
    [header::CONTENT_LENGTH, header::CONTENT_TYPE, header::TRANSFER_ENCODING];

/// The request that a batch came in.
pub(super) struct Origin<'a> {
    pub parts: &'a Parts,
    pub id: &'a str,
    pub from: IpAddr,
    pub owner: Owner,
}

/// Carries out a batch. `faults` are those of reading it.
pub(super) async fn execute(
    app: &App,
    call: &UpstreamCall,
    faults: &Faults,
    origin: &Origin<'_>,
) -> Result<ExecuteBatchResponse, Status> {
    let mut request = ExecuteBatchRequest::decode(call.message.clone())
        .map_err(|error| Status::internal(error.to_string()))?;
    let mut faults = faults.clone();
    request.check(&At::ROOT, None, &mut faults);
    let is_sequential = check(&request, &mut faults);
    if !faults.is_empty() {
        return Err(Error::from(faults).into());
    }
    let batch = Batch {
        app,
        origin,
        begin_until: Instant::now() + BEGIN_WITHIN,
        size: Mutex::new(Size { bytes: 0, reserved: app.budgets.answers.empty(origin.owner) }),
    };
    let operations = request.operations.into_iter().enumerate();
    let data = if is_sequential {
        batch.sequential(operations).await
    } else {
        let nothing = Earlier::default();
        let answers = operations.map(|(place, operation)| batch.answer(place, operation, &nothing));
        futures::stream::iter(answers).buffered(PARALLEL).map(|answer| answer.shown).collect().await
    };
    Ok(ExecuteBatchResponse { data })
}

/// What the checks of the contract do not say. Returns whether the operations run one after the other.
fn check(request: &ExecuteBatchRequest, faults: &mut Faults) -> bool {
    let root = At::ROOT;
    if request.operations.is_empty() && faults.is_empty() {
        faults.add(&root.name("operations"), Fault::Required, "operations must have 1 to 100 entries");
    }
    let is_sequential = match request.order.as_str() {
        "" | "parallel" => false,
        "sequential" => true,
        _ => {
            faults.add(&root.name("order"), Fault::NotAllowed, "order must be parallel or sequential");
            return false;
        }
    };
    let operations = root.name("operations");
    for (place, operation) in request.operations.iter().enumerate().filter(|_| !is_sequential) {
        let uses = [("path", operation.path.contains('{')), ("body", earlier::is_used(&operation.body))];
        for (name, _) in uses.iter().filter(|(_, is_used)| *is_used) {
            let detail = "an earlier answer can be used only with `\"order\": \"sequential\"`";
            faults.add(&operations.index(place).name(name), Fault::NotAllowed, detail);
        }
    }
    is_sequential
}

struct Batch<'a> {
    app: &'a App,
    origin: &'a Origin<'a>,
    begin_until: Instant,
    size: Mutex<Size>,
}

/// How much is in memory of the answers.
struct Size {
    bytes: usize,
    reserved: Reservation,
}

/// The answer to one operation.
struct Answered {
    shown: BatchAnswer,
    is_success: bool,
}

impl Batch<'_> {
    async fn sequential(
        &self,
        operations: impl Iterator<Item = (usize, BatchOperation)>,
    ) -> Vec<BatchAnswer> {
        let (mut earlier, mut has_failed) = (Earlier::default(), false);
        for (place, operation) in operations {
            let answer = if has_failed {
                let refusal = Refusal::new(Problem::NotTried, "An earlier operation of the batch failed.");
                self.refused(refusal).await
            } else {
                self.answer(place, operation, &earlier).await
            };
            has_failed = has_failed || !answer.is_success;
            earlier.push(answer.shown);
        }
        earlier.into_answers()
    }

    async fn answer(&self, place: usize, operation: BatchOperation, earlier: &Earlier) -> Answered {
        if Instant::now() >= self.begin_until {
            let refusal = Refusal::new(Problem::NotTried, "The time of the batch was over before.");
            return self.refused(refusal).await;
        }
        match self.request(place, operation, earlier) {
            Ok((found, request)) => {
                let is_read = found.method == Method::GET;
                self.shown(self.carry_out(found, request).await, is_read).await
            }
            Err(refusal) => self.refused(refusal).await,
        }
    }

    /// Boxed, because a request of a batch goes the same way as the batch.
    fn carry_out<'s>(&'s self, operation: &'s Operation, request: Request<Body>) -> BoxFuture<'s, Response> {
        Box::pin(measured(self.app, operation, request, self.origin.id, self.origin.from))
    }

    /// The operation, and the request that it would have been alone.
    fn request(
        &self,
        place: usize,
        operation: BatchOperation,
        earlier: &Earlier,
    ) -> Result<(&Operation, Request<Body>), Refusal> {
        let BatchOperation { method, path, body, idempotency_key, if_match } = operation;
        let wrong = |name: &str, detail: String| {
            let location = FaultLocation::Pointer(format!("/operations/{place}/{name}"));
            let entry = Entry { location, code: Fault::NotAllowed.code(), detail };
            Refusal { errors: vec![entry], ..Refusal::new(Problem::Validation, "1 field is not valid.") }
        };
        let path = earlier.in_path(&path).map_err(|detail| wrong("path", detail))?;
        let body = earlier.in_body(&body).map_err(|detail| wrong("body", detail))?;
        let uri: Uri = path.parse().map_err(|_| wrong("path", "must be a path with its query".to_owned()))?;
        if uri.authority().is_some() {
            return Err(wrong("path", "must be a path without a host".to_owned()));
        }
        let method = method.to_ascii_uppercase();
        let found = self.find(&method, uri.path())?;
        if found.policy.max_wait > 0
            || found.is_public()
            || found.request.takes_raw_body()
            || found.envelope().is_none()
        {
            let detail = format!("{method} {} cannot be in a batch; send it alone", found.path);
            return Err(wrong("path", detail));
        }
        let mut headers = HeaderMap::new();
        let sent = &self.origin.parts.headers;
        for name in SHARED_HEADERS {
            for value in sent.get_all(&name) {
                headers.append(name.clone(), value.clone());
            }
        }
        let key = match idempotency_key.as_str() {
            "" => sent.get(IDEMPOTENCY_KEY).map(|key| derived_key(key, place)),
            own => Some(own.to_owned()),
        };
        for (name, value) in
            [(HeaderName::from_static(IDEMPOTENCY_KEY), key), (header::IF_MATCH, Some(if_match))]
        {
            let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
            let field = if name == header::IF_MATCH { "if_match" } else { "idempotency_key" };
            let value = HeaderValue::try_from(value)
                .map_err(|_| wrong(field, "must be of visible ASCII characters".to_owned()))?;
            headers.insert(name, value);
        }
        let body = if body.is_empty() || found.method == Method::GET {
            Body::empty()
        } else {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Body::from(body)
        };
        let mut request = Request::new(body);
        *request.method_mut() = found.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        if let Some(connection) = self.origin.parts.extensions.get::<ConnectInfo<SocketAddr>>() {
            request.extensions_mut().insert(*connection);
        }
        Ok((found, request))
    }

    fn find(&self, method: &str, path: &str) -> Result<&Operation, Refusal> {
        let at = self.app.operations.at(path);
        if at.is_empty() {
            let detail = "There is nothing at this path. See /docs for the reference.";
            return Err(Refusal::new(Problem::NotFound, detail));
        }
        let found = at.iter().find(|operation| operation.method == method);
        found.map(|operation| &***operation).ok_or_else(|| {
            let methods: Vec<&str> = at.iter().map(|operation| operation.method.as_str()).collect();
            let detail = format!("This is not possible here; {} is.", methods.join(", "));
            Refusal::new(Problem::MethodNotAllowed, detail)
        })
    }

    async fn refused(&self, refusal: Refusal) -> Answered {
        self.shown(refusal.into_response(self.origin.id), true).await
    }

    /// The answer as the batch shows it. One that is too long is left out: of a read the whole answer, of a write its body.
    async fn shown(&self, response: Response, is_read: bool) -> Answered {
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAX_ANSWERS).collect().await.map(Collected::to_bytes);
        let body = match body {
            Ok(body) if self.size.lock().await.add(body.len()) => Some(body),
            _ => None,
        };
        if body.is_none() && is_read {
            let detail = "The answers of the batch are too long together. Send this operation alone.";
            let refusal = Refusal::new(Problem::TooLarge, detail).into_response(self.origin.id);
            let (parts, body) = refusal.into_parts();
            let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
            return answered(
                &parts.headers,
                parts.status.as_u16(),
                Some(body).filter(|body| !body.is_empty()),
            );
        }
        answered(&parts.headers, parts.status.as_u16(), body.filter(|body| !body.is_empty()))
    }
}

impl Size {
    fn add(&mut self, bytes: usize) -> bool {
        let fits = self.bytes + bytes <= MAX_ANSWERS && self.reserved.grow(bytes).is_ok();
        if fits {
            self.bytes += bytes;
        }
        fits
    }
}

fn answered(headers: &HeaderMap, status: u16, body: Option<bytes::Bytes>) -> Answered {
    let mut shown = Map::new();
    for (name, value) in headers.iter().filter(|(name, _)| !OF_TRANSPORT.contains(name)) {
        shown.insert(name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into());
    }
    let body = body.and_then(|body| String::from_utf8(body.into()).ok());
    let shown = BatchAnswer { status: status.into(), headers: Value::Object(shown).to_string(), body };
    Answered { shown, is_success: status < 400 }
}

/// A key for the POST at this place of a batch with a key, of a length that every key may have.
fn derived_key(key: &HeaderValue, place: usize) -> String {
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(key.as_bytes()));
    format!("batch-{hash}-{place}")
}
