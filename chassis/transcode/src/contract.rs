//! The public operations, read from the descriptor once at start. A contract that cannot be served is refused with an
//! error that says what to change. Does not depend on a server: the gateway builds its router from the operations.

use std::collections::{BTreeMap, HashMap, HashSet};

use http::uri::PathAndQuery;
use http::{HeaderName, Method};
use prost_reflect::{DescriptorPool, MethodDescriptor};
use proto::api::{Access, MethodPolicy, RateClass};
use proto::google::api::HttpRule;
use proto::google::api::http_rule::Pattern;

use crate::expand::Expansion;
use crate::operation::Answered;
pub use crate::operation::{Answer, Error, Operation, variable};
use crate::plan::Shapes;
use crate::records;
use crate::render::ResponsePlan;
use crate::request::RequestPlan;

/// What the path of a list ends with if all of it is asked for.
pub const EXPORT: &str = "/export";
/// The area of the gateway's own operations.
const GATEWAY: &str = "gateway";

/// The message that is the whole response body, without an envelope.
pub const HTTP_BODY: &str = "admin.api.v1.HttpBody";

/// Every public rpc of the contract, in the order of the descriptor.
pub fn operations(pool: &DescriptorPool) -> Result<Vec<Operation>, Error> {
    let (mut operations, mut shapes) = (Vec::new(), Shapes::default());
    for service in pool.services() {
        for method in service.methods() {
            let error = |problem| Error { rpc: method.full_name().to_owned(), problem };
            let Some(mut operation) = operation(&method, &mut shapes).map_err(error)? else { continue };
            let export = export(&method, &operation, &mut shapes).map_err(error)?;
            if operation.method == Method::GET && operation.envelope().is_some() {
                operation.expansions = Expansion::all(&method);
                operation.request.has_expansions = !operation.expansions.is_empty();
            }
            operations.push(operation);
            operations.extend(export);
        }
    }
    refuse_ambiguous(&operations)?;
    let get_paths: HashSet<String> = operations
        .iter()
        .filter(|operation| operation.method == Method::GET)
        .map(|operation| shape(&operation.path))
        .collect();
    for operation in &mut operations {
        let explicit = Some(operation.policy.location.clone()).filter(|path| !path.is_empty());
        let path = explicit.clone().unwrap_or_else(|| operation.path.clone());
        let found = operation.policy.success == 201
            && operation.envelope().is_some_and(ResponsePlan::has_data_id)
            && get_paths.contains(&(shape(&path) + "/{}"));
        if explicit.is_some() && !found {
            let problem = format!("its location {path} has no GET by id, or it creates nothing with an id");
            return Err(Error { rpc: operation.name.clone(), problem });
        }
        operation.location = found.then_some(path);
    }
    let targets = records::targets(&operations);
    for (operation, target) in operations.iter_mut().zip(targets) {
        operation.target = target;
    }
    Ok(operations)
}

/// `None` for an rpc that is not public.
fn operation(method: &MethodDescriptor, shapes: &mut Shapes) -> Result<Option<Operation>, String> {
    let policy = proto::policy::method(method).ok_or("has no policy; add option (admin.api.v1.method)")?;
    let rule = match (proto::policy::http_rule(method), policy.access()) {
        (None, Access::Mesh | Access::Credential) => return Ok(None),
        (_, Access::Unspecified) => {
            return Err("its policy says nothing about access; add `access`".to_owned());
        }
        (Some(_), Access::Mesh | Access::Credential) => {
            return Err("is for the mesh only but has a route; remove option (google.api.http)".to_owned());
        }
        (None, _) => return Err("is public but has no route; add option (google.api.http)".to_owned()),
        (Some(rule), Access::Key | Access::Public) => rule,
    };
    if !matches!(policy.success, 200 | 201 | 204 | 303) {
        return Err("its policy needs `success`: 200, 201, 204 or 303".to_owned());
    }
    let (verb, path) = route(&rule)?;
    let variables = variables(&path)?;
    if !rule.body.is_empty() && matches!(verb, Method::GET | Method::DELETE) {
        return Err(format!("{verb} takes no body; remove `body` from its rule"));
    }
    if policy.access() == Access::Public {
        refuse_guessable(&policy, &variables)?;
    }
    let (needs_a_field, is_upload) = (policy.needs_a_field, method.is_client_streaming());
    let request = RequestPlan::of(&method.input(), &variables, &rule.body, needs_a_field, is_upload, shapes)
        .map_err(|refusal| refusal.to_string())?;
    if request.takes_raw_body() == policy.takes.is_empty() {
        return Err(
            "a body that is a text or bytes needs `takes` in its policy, and any other body has none"
                .to_owned(),
        );
    }
    let signature = signature(&policy, &request)?;
    let response = answer(method, &policy, shapes)?;
    let request = match &response {
        Answer::Envelope(plan) => request.answered_by(plan),
        Answer::HttpBody | Answer::Stream | Answer::Export(_) => request,
    };
    let grpc_path = format!("/{}/{}", method.parent_service().full_name(), method.name());
    Ok(Some(Operation {
        name: method.full_name().to_owned(),
        grpc_path: PathAndQuery::try_from(grpc_path).map_err(|error| error.to_string())?,
        peer: peer(method)?,
        method: verb,
        path,
        policy,
        request,
        response,
        signature,
        location: None,
        answered: Answered::by(method),
        target: None,
        expansions: Vec::new(),
    }))
}

/// Whether all of a list can be asked for, besides its pages. Those of the gateway itself are short.
pub fn is_exportable(operation: &Operation) -> bool {
    operation.method == Method::GET
        && operation.is_list()
        && operation.request.has_page()
        && operation.peer != GATEWAY
        && matches!(operation.response, Answer::Envelope(_))
}

/// The operation that answers with all of a list.
fn export(
    method: &MethodDescriptor,
    list: &Operation,
    shapes: &mut Shapes,
) -> Result<Option<Operation>, String> {
    if !is_exportable(list) {
        return Ok(None);
    }
    let Some(mut export) = operation(method, shapes)? else { return Ok(None) };
    export.path.push_str(EXPORT);
    export.request = export.request.without_page();
    export.response = match export.response {
        Answer::Envelope(plan) => Answer::Export(plan),
        other => other,
    };
    Ok(Some(export))
}

/// A public operation is protected by its path or by a signature, and rate-limited by address instead of key.
fn refuse_guessable(policy: &MethodPolicy, variables: &[&str]) -> Result<(), String> {
    if variables.is_empty() && policy.signature.is_empty() {
        return Err("is public but its path has no variable; put an unguessable token into it".to_owned());
    }
    if policy.rate() != RateClass::Unspecified {
        return Err("is public but has a limit for each key; remove `rate`".to_owned());
    }
    Ok(())
}

/// The header that signs the body. The header requires a `SignedBody` and the reverse, because a signature can only be
/// verified against the exact bytes.
fn signature(policy: &MethodPolicy, request: &RequestPlan) -> Result<Option<HeaderName>, String> {
    match (policy.signature.as_str(), request.takes_signed_body()) {
        ("", false) => Ok(None),
        ("", true) => {
            Err("its body is a SignedBody; its policy needs `signature`, the name of a header".to_owned())
        }
        (_, false) => Err("its policy has `signature`; map the body to a field of SignedBody".to_owned()),
        (name, true) => HeaderName::try_from(name)
            .map(Some)
            .map_err(|_| format!("its policy has `signature: {name}`, which is not a header name")),
    }
}

fn answer(method: &MethodDescriptor, policy: &MethodPolicy, shapes: &mut Shapes) -> Result<Answer, String> {
    let (output, has_type) = (method.output(), !policy.media_type.is_empty());
    match (output.full_name() == HTTP_BODY, has_type) {
        (true, false) if policy.success == 303 => Ok(Answer::HttpBody),
        _ if policy.success == 303 => {
            Err("leads to another page (303); answer with HttpBody and remove `media_type`".to_owned())
        }
        (true, false) => Err("answers with HttpBody; its policy needs `media_type`".to_owned()),
        (true, true) if policy.success == 204 => {
            Err("answers with HttpBody; its policy needs `success` 200 or 201".to_owned())
        }
        (true, true) if method.is_server_streaming() => Ok(Answer::Stream),
        (true, true) => Ok(Answer::HttpBody),
        (false, true) => Err("its policy has `media_type`; answer with HttpBody or remove it".to_owned()),
        (false, false) if method.is_server_streaming() => {
            Err("a public rpc streams nothing but HttpBody; answer with one message".to_owned())
        }
        (false, false) => {
            let plan =
                ResponsePlan::of(&output, policy.success, shapes).map_err(|refusal| refusal.to_string())?;
            Ok(Answer::Envelope(plan))
        }
    }
}

fn peer(method: &MethodDescriptor) -> Result<String, String> {
    let service = method.parent_service();
    let mut package = service.package_name().split('.');
    match (package.next(), package.next()) {
        (Some(_), Some(area)) if !area.is_empty() => Ok(area.to_owned()),
        _ => Err("its package names no area; use admin.<area>.v1".to_owned()),
    }
}

/// Method and path of a rule.
pub fn route(rule: &HttpRule) -> Result<(Method, String), String> {
    let (method, path) = match &rule.pattern {
        Some(Pattern::Get(path)) => (Method::GET, path),
        Some(Pattern::Put(path)) => (Method::PUT, path),
        Some(Pattern::Post(path)) => (Method::POST, path),
        Some(Pattern::Delete(path)) => (Method::DELETE, path),
        Some(Pattern::Patch(path)) => (Method::PATCH, path),
        None => return Err("its rule has no path; add get, post, put, patch or delete".to_owned()),
    };
    Ok((method, path.clone()))
}

/// The variables of a path, each once, in order.
fn variables(path: &str) -> Result<Vec<&str>, String> {
    let name = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let literal = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    let segments = path.strip_prefix('/').ok_or(format!("its path {path} must begin with `/`"))?;
    let mut variables = Vec::new();
    for segment in segments.split('/') {
        match variable(segment) {
            Some(found) if name(found) && !variables.contains(&found) => variables.push(found),
            Some(found) if name(found) => {
                return Err(format!("its path {path} has `{{{found}}}` twice; rename one"));
            }
            None if literal(segment) => {}
            _ => {
                return Err(format!(
                    "its path {path} has the segment `{segment}`; use plain text or one `{{variable}}`"
                ));
            }
        }
    }
    Ok(variables)
}

/// The path without the names of its variables: paths of the same shape match the same requests.
fn shape(path: &str) -> String {
    let anonymous = |segment| if variable(segment).is_some() { "{}" } else { segment };
    path.split('/').map(anonymous).collect::<Vec<_>>().join("/")
}

fn refuse_ambiguous(operations: &[Operation]) -> Result<(), Error> {
    let mut routes = BTreeMap::new();
    let mut paths: HashMap<&str, &Operation> = HashMap::new();
    let mut names: HashMap<String, (&str, &str)> = HashMap::new();
    for operation in operations {
        let error = |problem| Error { rpc: operation.name.clone(), problem };
        let key = (operation.method.as_str(), shape(&operation.path));
        if let Some(other) = routes.insert(key, &operation.name) {
            return Err(error(format!(
                "{} {} is also the route of {other}; change one of them",
                operation.method, operation.path
            )));
        }
        // CORS headers depend on the path only, because one preflight request covers all of its methods.
        let sibling = *paths.entry(&operation.path).or_insert(operation);
        if sibling.is_public() != operation.is_public() {
            return Err(error(format!(
                "{} is public for one of {} and this one; give each a path of its own",
                operation.path, sibling.name
            )));
        }
        let mut before = String::new();
        for segment in operation.path.split('/').skip(1) {
            if let Some(name) = variable(segment) {
                let (other_name, other) = *names.entry(before.clone()).or_insert((name, &operation.name));
                if other_name != name {
                    return Err(error(format!(
                        "{} has `{{{name}}}` where {other} has `{{{other_name}}}`; use one name for the same place",
                        operation.path
                    )));
                }
            }
            before = before + "/" + if variable(segment).is_some() { "{}" } else { segment };
        }
    }
    Ok(())
}
