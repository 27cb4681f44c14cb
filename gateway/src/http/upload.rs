//! Uploads: a form (`multipart/form-data`) or the bytes themselves, passed on to the service as they arrive. Backpressure
//! reaches the client: nothing is read before the service has taken what came before it.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use chassis_rpc::peer::Part;
use futures::StreamExt;
use futures::future::{Either, select};
use futures::stream::BoxStream;
use http::request::Parts;
use http::{HeaderMap, header};
use multer::Multipart;
use prost::encoding::{WireType, encode_key, encode_varint};
use proto::api::Problem;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tonic::{Response, Status};

use super::body::media_type;
use super::form_body::{Allowance, FormBody, TooMuch};
use super::problem::Refusal;
use super::upstream::{Upstream, UpstreamCall};

/// The part of a form that is the file.
const FILE: &str = "file";
/// The most bytes of one message to the service.
const CHUNK: usize = 64 << 10;
/// The most memory that one upload takes: what is around the file of a form, a part that is being read, one that is being
/// sent, one in the channel, and the window of the stream.
pub(super) const COST: usize = MAX_AROUND_BYTES + 4 * CHUNK;
/// The most fields of a form besides the file, and the most bytes of one of them.
const MAX_FIELDS: usize = 20;
const MAX_FIELD_BYTES: u64 = 16 << 10;
/// The most bytes of a form before its file, and the most after it. The parser may hold them all at once.
const MAX_AROUND_BYTES: usize = 128 << 10;
/// How long a client may send nothing.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// An upload whose description has been read.
pub(super) struct Upload {
    /// The description as a JSON object: the fields of the form, or of the query.
    pub description: Bytes,
    content: Content,
}

enum Content {
    Body(BoxStream<'static, Result<Bytes, axum::Error>>),
    Form(Box<Form>),
}

/// A form whose fields before the file have been read.
struct Form {
    parts: Multipart<'static>,
    allowance: Allowance,
    /// `None` when all of it has been read.
    file: Option<multer::Field<'static>>,
}

impl Upload {
    /// Reads everything before the content.
    pub(super) async fn open(parts: &Parts, body: Body) -> Result<Self, Refusal> {
        let sent = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let mut fields = Map::new();
        if let Some(query) = parts.uri.query() {
            // A pair that cannot be read is refused when the query is bound.
            for (name, value) in form_pairs(query) {
                fields.insert(name, Value::String(value));
            }
        }
        let content = if media_type(&parts.headers).eq_ignore_ascii_case("multipart/form-data") {
            let boundary = multer::parse_boundary(sent.unwrap_or_default()).map_err(|_| {
                Refusal::new(Problem::Malformed, "The form has no `boundary` in its Content-Type.")
            })?;
            let allowance = Allowance::new(MAX_AROUND_BYTES);
            let body = FormBody::new(body.into_data_stream(), allowance.clone());
            let mut parts = Multipart::new(body, boundary);
            let file = read_fields(&mut parts, &allowance, &mut fields).await?;
            describe(&mut fields, file.file_name(), file.content_type().map(AsRef::as_ref));
            Content::Form(Box::new(Form { parts, allowance, file: Some(file) }))
        } else {
            let name = disposition_name(&parts.headers);
            describe(&mut fields, name.as_deref(), sent);
            Content::Body(body.into_data_stream().boxed())
        };
        Ok(Self { description: Value::Object(fields).to_string().into(), content })
    }

    /// Sends the description, which `call` has as its message, and then the content, as the field with this number.
    pub(super) async fn send(
        mut self,
        upstream: &Upstream,
        call: &UpstreamCall,
        field: u32,
    ) -> Result<Result<Response<Bytes>, Status>, Refusal> {
        let (sender, receiver) = mpsc::channel(1);
        let answer = std::pin::pin!(upstream.upload(call, receiver));
        // Has the sender, so that the service refuses the upload when this ends early or is dropped.
        let pump = std::pin::pin!(self.pump(sender, field));
        match select(answer, pump).await {
            // The service need not wait for the end, for example when there is too much.
            Either::Left((answer, _)) => Ok(answer),
            Either::Right((Ok(()), answer)) => Ok(answer.await),
            Either::Right((Err(refusal), _)) => Err(refusal),
        }
    }

    async fn pump(&mut self, sender: mpsc::Sender<Part>, field: u32) -> Result<(), Refusal> {
        while let Some(mut data) = self.next().await? {
            while !data.is_empty() {
                let part = data.split_to(data.len().min(CHUNK));
                if sender.send(Some(message(field, &part))).await.is_err() {
                    // The service has answered, which `send` sees.
                    return Ok(());
                }
            }
        }
        let _ = sender.send(None).await;
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        match &mut self.content {
            Content::Body(body) => match in_time(body.next()).await? {
                Some(Ok(data)) => Ok(Some(data)),
                Some(Err(_)) => Err(ended_early()),
                None => Ok(None),
            },
            Content::Form(form) => {
                if let Some(file) = &mut form.file {
                    // How large a file may be is for the service to say.
                    form.allowance.set(CHUNK);
                    if let Some(data) = step(&form.allowance, file.chunk()).await? {
                        return Ok(Some(data));
                    }
                    form.file = None;
                    form.allowance.set(MAX_AROUND_BYTES);
                }
                match step(&form.allowance, form.parts.next_field()).await? {
                    Some(_) => {
                        let detail = "Nothing may follow the part `file`: send its fields before it, and one file at a time.";
                        Err(Refusal::new(Problem::Malformed, detail))
                    }
                    None => Ok(None),
                }
            }
        }
    }
}

/// The fields of a form up to its file.
async fn read_fields(
    form: &mut Multipart<'static>,
    allowance: &Allowance,
    fields: &mut Map<String, Value>,
) -> Result<multer::Field<'static>, Refusal> {
    for _ in 0..=MAX_FIELDS {
        let field = step(allowance, form.next_field()).await?;
        let Some(mut field) = field else {
            return Err(Refusal::new(Problem::Malformed, "The form has no part `file` with the content."));
        };
        let Some(name) = field.name().map(str::to_owned) else { continue };
        if name == FILE {
            return Ok(field);
        }
        let mut value = BytesMut::new();
        while let Some(data) = step(allowance, field.chunk()).await? {
            if value.len() + data.len() > usize::try_from(MAX_FIELD_BYTES).unwrap_or(usize::MAX) {
                let detail = format!(
                    "The part `{FILE}` must come first, or after fields of at most {MAX_FIELD_BYTES} bytes."
                );
                return Err(Refusal::new(Problem::TooLarge, detail));
            }
            value.extend_from_slice(&data);
        }
        let text = String::from_utf8(value.to_vec())
            .map_err(|_| Refusal::new(Problem::Malformed, "The fields of the form must be UTF-8."))?;
        fields.insert(name, Value::String(text));
    }
    Err(Refusal::new(Problem::Malformed, format!("The form has more than {MAX_FIELDS} fields.")))
}

/// Adds the name and the type of the file that the request has beside its fields, unless these have them.
fn describe(fields: &mut Map<String, Value>, name: Option<&str>, content_type: Option<&str>) {
    for (field, value) in [("name", name), ("content_type", content_type)] {
        let is_missing = fields.get(field).and_then(Value::as_str).is_none_or(str::is_empty);
        if let Some(value) = value.filter(|_| is_missing) {
            fields.insert(field.to_owned(), Value::String(value.to_owned()));
        }
    }
}

/// The name in `Content-Disposition` of a body that is the file itself.
fn disposition_name(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_DISPOSITION)?.to_str().ok()?;
    let (mut plain, mut extended) = (None, None);
    for parameter in value.split(';').skip(1) {
        let (name, value) = parameter.trim().split_once('=')?;
        if name.eq_ignore_ascii_case("filename") {
            plain = Some(value.trim_matches('"').to_owned());
        } else if name.eq_ignore_ascii_case("filename*") {
            let encoded = value.split_once("''").map(|(_, encoded)| encoded);
            extended =
                encoded.and_then(|text| chassis_transcode::path_segment(text).ok()).map(Cow::into_owned);
        }
    }
    extended.or(plain)
}

/// The pairs of a query that can be read.
fn form_pairs(query: &str) -> Vec<(String, String)> {
    let json = chassis_transcode::form_as_json(query.as_bytes()).unwrap_or_default();
    let pairs: Map<String, Value> = serde_json::from_slice(&json).unwrap_or_default();
    pairs.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned()))).collect()
}

/// A message with nothing but this part of the content.
fn message(field: u32, part: &[u8]) -> Bytes {
    let mut message = BytesMut::with_capacity(part.len() + 16);
    encode_key(field, WireType::LengthDelimited, &mut message);
    encode_varint(part.len() as u64, &mut message);
    message.put_slice(part);
    message.freeze()
}

async fn in_time<T>(next: impl Future<Output = T>) -> Result<T, Refusal> {
    tokio::time::timeout(CLIENT_TIMEOUT, next).await.map_err(|_| {
        let seconds = CLIENT_TIMEOUT.as_secs();
        Refusal::new(
            Problem::Timeout,
            format!("Nothing of the upload came for {seconds} seconds. Nothing was stored."),
        )
    })
}

/// A step of the parser of a form.
async fn step<T>(allowance: &Allowance, next: impl Future<Output = multer::Result<T>>) -> Result<T, Refusal> {
    let done = in_time(allowance.within(next)).await?.map_err(|TooMuch| {
        let detail = format!(
            "What the form has before or after the part `{FILE}` must have at most {MAX_AROUND_BYTES} bytes."
        );
        Refusal::new(Problem::TooLarge, detail)
    })?;
    done.map_err(|error| unreadable(&error))
}

fn ended_early() -> Refusal {
    Refusal::new(Problem::Malformed, "The body ended early. Nothing was stored.")
}

fn unreadable(error: &multer::Error) -> Refusal {
    match error {
        multer::Error::StreamReadFailed(_) | multer::Error::IncompleteStream => ended_early(),
        other => Refusal::new(Problem::Malformed, format!("The form cannot be read: {other}.")),
    }
}
