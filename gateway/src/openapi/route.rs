//! The public operations of the contract, and their table as text.

use std::collections::BTreeSet;

use chassis_transcode::contract::{self, Operation};
use chassis_transcode::{Form, PAGE};
use http::Method;
use prost_reflect::{
    Cardinality, DescriptorPool, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
};
use proto::api::{Access, MethodPolicy};
use proto::policy;

/// Stands in place of a scope in the table of routes.
const PUBLIC: &str = "public";
pub(super) const FIELD_MASK: &str = "google.protobuf.FieldMask";

/// How much of a list an operation answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListPart {
    Page,
    Whole,
}

/// One public operation.
#[derive(Clone, Debug)]
pub struct Route {
    pub verb: Method,
    /// The path with its variables, for example `/v1/clients/{id}`.
    pub path: String,
    pub tag: String,
    pub policy: MethodPolicy,
    pub rpc: MethodDescriptor,
    /// The request field of the body; `*` for the whole request, empty for no body.
    body: String,
    /// Whether the answer is one record with a version, which is then its `ETag`.
    pub shows_version: bool,
    /// Whether it changes something of a record with a version, which `If-Match` can name.
    pub takes_version: bool,
    /// How much of a list the answer is, if it is one.
    list: Option<ListPart>,
    /// What `expand` can name.
    pub expansions: Vec<String>,
}

/// Every rpc with an HTTP rule, in the order of path and verb.
pub fn routes(pool: &DescriptorPool) -> Vec<Route> {
    let operations = contract::operations(pool).unwrap_or_default();
    let mut routes: Vec<Route> = pool
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
        .flat_map(|rpc| Route::all(&rpc, &operations))
        .collect();
    routes.sort_by(|a, b| (&a.path, a.verb.as_str()).cmp(&(&b.path, b.verb.as_str())));
    routes
}

/// The names of the messages that show a record which a path names by its id: what such a path answers with, one or a
/// list of them, and what creates them.
pub(super) fn records(routes: &[Route]) -> BTreeSet<String> {
    let named: BTreeSet<&str> =
        routes.iter().filter_map(|route| route.path.split_once("/{id}")).map(|(before, _)| before).collect();
    let names_one = |route: &&Route| route.path.contains("/{id}") || named.contains(route.path.as_str());
    let data = |route: &Route| match Form::data(&route.rpc.output())?.kind() {
        Kind::Message(message) => Some(message.full_name().to_owned()),
        _ => None,
    };
    routes.iter().filter(names_one).filter_map(data).collect()
}

/// One line for each route: verb, path, scope, status of success, rpc.
pub fn route_table(routes: &[Route]) -> String {
    let mut table = String::from("method\tpath\tscope\tsuccess\trpc\n");
    for route in routes {
        let line = [
            route.verb.as_str(),
            &route.path,
            route.scope(),
            &route.policy.success.to_string(),
            &format!("{}/{}", route.rpc.parent_service().full_name(), route.rpc.name()),
        ];
        table.push_str(&line.join("\t"));
        table.push('\n');
    }
    table
}

impl Route {
    /// Those of an rpc: a list can be asked for by its pages, and as a whole.
    fn all(rpc: &MethodDescriptor, operations: &[Operation]) -> Vec<Self> {
        let of_rpc = operations.iter().filter(|operation| operation.name == rpc.full_name());
        of_rpc.filter_map(|operation| Self::of(rpc, operation)).collect()
    }

    fn of(rpc: &MethodDescriptor, operation: &Operation) -> Option<Self> {
        let rule = policy::http_rule(rpc)?;
        Some(Self {
            verb: operation.method.clone(),
            path: operation.path.clone(),
            tag: policy::service(rpc).tag,
            policy: policy::method(rpc)?,
            rpc: rpc.clone(),
            body: rule.body,
            shows_version: operation.envelope().is_some_and(chassis_transcode::ResponsePlan::has_version),
            takes_version: operation.target.is_some(),
            list: match operation.method == Method::GET && operation.is_list() {
                false => None,
                true if operation.is_export() => Some(ListPart::Whole),
                true => Some(ListPart::Page),
            },
            expansions: operation.expansions.iter().map(|expansion| expansion.name.clone()).collect(),
        })
    }

    /// Whether the answer is a list of records, or a page of it.
    pub fn is_list(&self) -> bool {
        self.list == Some(ListPart::Page)
    }

    /// Whether the answer is all of a list, as a file.
    pub fn is_export(&self) -> bool {
        self.list == Some(ListPart::Whole)
    }

    /// Whether it needs no key.
    pub fn is_public(&self) -> bool {
        self.policy.access() == Access::Public
    }

    /// The scope that a key needs; `public` where none is needed.
    fn scope(&self) -> &str {
        if self.is_public() { PUBLIC } else { &self.policy.scope }
    }

    /// Whether a repeat of the request with the same `Idempotency-Key` has no further effect.
    pub fn is_repeatable(&self) -> bool {
        self.verb == Method::POST && !self.is_public()
    }

    /// Whether it can be carried out and undone.
    pub fn is_rehearsable(&self) -> bool {
        !self.verb.is_safe() && !self.is_public() && !self.has_http_body() && !self.policy.cannot_rehearse
    }

    /// Whether the body is passed on unchanged, with a signature in a header.
    pub fn is_signed(&self) -> bool {
        !self.policy.signature.is_empty()
    }

    /// Whether the body is a text or bytes, which are passed on unchanged.
    pub fn is_raw(&self) -> bool {
        !self.policy.takes.is_empty()
    }

    /// The field that such a body fills.
    pub fn raw_body(&self) -> Option<FieldDescriptor> {
        self.rpc.input().get_field_by_name(&self.body).filter(|_| self.is_raw())
    }

    /// Whether the body is a file: a form, or the bytes themselves.
    pub fn is_upload(&self) -> bool {
        self.rpc.is_client_streaming()
    }

    /// Whether there is a body of any kind.
    pub fn has_body(&self) -> bool {
        !self.body.is_empty()
    }

    /// Whether the answer goes out without an envelope.
    pub fn has_http_body(&self) -> bool {
        self.rpc.output().full_name() == contract::HTTP_BODY
    }

    /// The names of the variables in the path.
    pub fn path_variables(&self) -> Vec<&str> {
        self.path.split('/').filter_map(contract::variable).collect()
    }

    /// The message that the body fills.
    pub fn body(&self) -> Option<MessageDescriptor> {
        if self.body == "*" {
            return Some(self.rpc.input());
        }
        match self.rpc.input().get_field_by_name(&self.body)?.kind() {
            Kind::Message(message) => Some(message),
            _ => None,
        }
    }

    /// The request fields that query parameters fill: what a request has besides its path and its body. The bytes of a file
    /// are described by them, unless they come in a form.
    pub fn query(&self) -> Vec<FieldDescriptor> {
        if self.is_upload() {
            return self.body().map(|file| file.fields().collect()).unwrap_or_default();
        }
        if self.body == "*" {
            return Vec::new();
        }
        let mut variables = self.path_variables();
        if self.is_export() {
            variables.extend(PAGE);
        }
        let scalar = |field: &FieldDescriptor| !matches!(field.kind(), Kind::Message(_));
        self.rpc
            .input()
            .fields()
            .filter(|field| scalar(field) && !variables.contains(&field.name()) && field.name() != self.body)
            .collect()
    }

    /// Whether the request changes only the fields that it carries.
    pub fn is_partial(&self) -> bool {
        self.rpc.input().fields().any(|field| {
            field.cardinality() != Cardinality::Repeated
                && matches!(field.kind(), Kind::Message(message) if message.full_name() == FIELD_MASK)
        })
    }
}
