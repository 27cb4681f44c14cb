//! A public operation: how a REST request becomes a message, and what its response shows. Made by `contract`.

use http::uri::PathAndQuery;
use http::{HeaderName, Method};
use prost_reflect::{Kind, MethodDescriptor};
use proto::api::{Access, MethodPolicy};

use crate::expand::Expansion;
use crate::render::{Form, ResponsePlan};
use crate::request::RequestPlan;

/// Why the contract cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rpc}: {problem}")]
pub struct Error {
    /// For example `admin.relations.v1.ClientService.GetClient`.
    pub rpc: String,
    /// What is wrong and what to change.
    pub problem: String,
}

/// A public rpc: how a REST request becomes its message, and how its result becomes a REST response.
#[derive(Debug)]
pub struct Operation {
    /// `admin.relations.v1.ClientService.GetClient`
    pub name: String,
    /// `/admin.relations.v1.ClientService/GetClient`
    pub grpc_path: PathAndQuery,
    /// The area that serves the rpc, from its package: `relations`.
    pub peer: String,
    pub method: Method,
    /// `/v1/clients/{id}`, which is also the syntax of axum.
    pub path: String,
    pub policy: MethodPolicy,
    pub request: RequestPlan,
    pub response: Answer,
    /// The header with the signature of the body. When set, the body is passed on byte for byte.
    pub signature: Option<HeaderName>,
    /// The path template of a new record without its id; see [`Operation::location_of`].
    pub location: Option<String>,
    /// What the response shows.
    pub answered: Option<Answered>,
    /// The record that the path names, if the operation changes something.
    pub target: Option<Target>,
    /// The references of the records in its answer that it can expand.
    pub expansions: Vec<Expansion>,
}

/// The form of an operation's response.
#[derive(Debug)]
pub enum Answer {
    /// `{"data": …, "meta": …}`.
    Envelope(ResponsePlan),
    /// The unchanged `admin.api.v1.HttpBody` of the service: a page, a redirect.
    HttpBody,
    /// A stream of `admin.api.v1.HttpBody`: a file.
    Stream,
    /// All records of a list, as a stream of the responses that show a page of it.
    Export(ResponsePlan),
}

impl Operation {
    /// Whether the operation needs no key, because an unguessable token in its path or the signature of its body
    /// replaces the key.
    pub fn is_public(&self) -> bool {
        self.policy.access() == Access::Public
    }

    pub fn envelope(&self) -> Option<&ResponsePlan> {
        match &self.response {
            Answer::Envelope(plan) => Some(plan),
            Answer::HttpBody | Answer::Stream | Answer::Export(_) => None,
        }
    }

    /// Whether the answer is a list of records.
    pub fn is_list(&self) -> bool {
        self.answered.as_ref().is_some_and(|answered| answered.is_list)
    }

    /// Whether the answer is all of a list.
    pub fn is_export(&self) -> bool {
        matches!(self.response, Answer::Export(_))
    }

    /// The header `Location` for a new record. `path` contains the raw values of the variables, as for
    /// `RequestPlan::bind`.
    pub fn location_of(&self, path: &[(&str, &str)], id: &str) -> Option<String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if id.is_empty() || !id.bytes().all(plain) {
            return None;
        }
        let mut location = String::new();
        for segment in self.location.as_deref()?.split('/').skip(1) {
            location.push('/');
            location.push_str(match variable(segment) {
                Some(name) => path.iter().find(|(variable, _)| *variable == name)?.1,
                None => segment,
            });
        }
        Some(location + "/" + id)
    }
}

/// The record, or the records, that an operation answers with.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The full name of its message.
    pub message: String,
    /// What the record can be; empty if the message does not show a record whole.
    pub kinds: Vec<String>,
    pub is_list: bool,
    /// See `MessagePolicy.volatile`.
    pub is_volatile: bool,
}

impl Answered {
    /// `None` if `data` of the response is not a message.
    pub(crate) fn by(method: &MethodDescriptor) -> Option<Self> {
        let data = Form::data(&method.output())?;
        let Kind::Message(message) = data.kind() else { return None };
        let policy = proto::policy::message(&message);
        Some(Self {
            message: message.full_name().to_owned(),
            is_list: data.is_list(),
            is_volatile: policy.volatile,
            kinds: policy.kinds,
        })
    }
}

/// The record that a request with this path is about: what `If-Match` refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The variable of the path that holds its id.
    pub variable: String,
    pub kinds: Vec<String>,
}

/// The name of the variable in a segment; `None` for literal text.
pub fn variable(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}
