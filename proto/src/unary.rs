//! The machinery of plain rpcs, one request and one answer: compiled once for all of them, because it sees encoded messages
//! only. A generated server chooses the handler by the path and translates its messages; a generated client translates its own.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;

use bytes::{Buf, BufMut, Bytes};
use prost::Message;
use tonic::body::Body;
use tonic::client;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::server::{Grpc, UnaryService};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The answer of a server; an error is an answer too.
pub type Answer = BoxFuture<Result<http::Response<Body>, Infallible>>;

/// Carries out one call.
pub type Handler = Box<dyn FnOnce(Request<Bytes>) -> BoxFuture<Result<Response<Bytes>, Status>> + Send>;

/// Answers a call. A request with more than `max_size` bytes is refused; without one, tonic's limit of 4 MB holds.
pub fn call(request: http::Request<Body>, handler: Handler, max_size: Option<usize>) -> Answer {
    Box::pin(async move {
        let mut grpc = Grpc::new(AsBytes).apply_max_message_size_config(max_size, None);
        Ok(grpc.unary(Once(Some(handler)), request).await)
    })
}

/// The answer to a path that the service does not have.
pub fn unimplemented() -> Answer {
    Box::pin(std::future::ready(Ok(Status::unimplemented("").into_http())))
}

/// The message of a request. What is not such a message is an internal error, as gRPC defines it.
pub fn decode<M: Message + Default>(request: Request<Bytes>) -> Result<Request<M>, Status> {
    let (metadata, extensions, encoded) = request.into_parts();
    let message = M::decode(encoded).map_err(|error| Status::internal(error.to_string()))?;
    Ok(Request::from_parts(metadata, extensions, message))
}

/// The encoded answer.
pub fn encode<M: Message>(response: Response<M>) -> Result<Response<Bytes>, Status> {
    Ok(response.map(|message| message.encode_to_vec().into()))
}

/// Calls an rpc and translates its messages. An answer of more than 4 MB is refused.
pub async fn send<I: Message, O: Message + Default>(
    channel: &Channel,
    path: &'static str,
    request: Request<I>,
) -> Result<Response<O>, Status> {
    let request = request.map(|message| message.encode_to_vec().into());
    let (metadata, encoded, extensions) = send_encoded(channel.clone(), path, request).await?.into_parts();
    let message = O::decode(encoded).map_err(|error| Status::internal(error.to_string()))?;
    Ok(Response::from_parts(metadata, message, extensions))
}

fn send_encoded(
    channel: Channel,
    path: &'static str,
    request: Request<Bytes>,
) -> BoxFuture<Result<Response<Bytes>, Status>> {
    Box::pin(async move {
        let mut grpc = client::Grpc::new(channel);
        let not_ready = |error| Status::unknown(format!("the channel is not ready: {error}"));
        grpc.ready().await.map_err(not_ready)?;
        grpc.unary(request, PathAndQuery::from_static(path), AsBytes).await
    })
}

/// Tonic calls a handler once for each request.
struct Once(Option<Handler>);

impl UnaryService<Bytes> for Once {
    type Response = Bytes;
    type Future = BoxFuture<Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        match self.0.take() {
            Some(handler) => handler(request),
            None => Box::pin(std::future::ready(Err(Status::internal("the call was already answered")))),
        }
    }
}

/// A codec that passes messages through as encoded bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsBytes;

impl Codec for AsBytes {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for AsBytes {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, target: &mut EncodeBuf<'_>) -> Result<(), Status> {
        target.put(item);
        Ok(())
    }
}

impl Decoder for AsBytes {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(source.copy_to_bytes(source.remaining())))
    }
}
