//! Rpcs that a flow calls by their name: which there are, whether arguments fit, and both directions of the translation
//! between JSON and the wire. Pure; whoever calls is elsewhere.

use bytes::Bytes;
use chassis_rpc::token;
use chassis_transcode::{RequestPlan, ResponsePlan};
use http::uri::PathAndQuery;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use proto::Faults;
use proto::api::Fault;
use proto::policy::Rpc;
use serde_json::{Map, Value};

use crate::template::is_template;

/// Areas whose rpcs every service has or that are not about an account, and this service itself, since no service calls
/// itself: not for flows.
const FOREIGN: [&str; 5] = ["accounts", "api", "audit", "automation", "scans"];
const FIELD_MASK: &str = "google.protobuf.FieldMask";

/// An rpc that can be called.
pub(crate) struct Method {
    pub path: PathAndQuery,
    /// The service that has it.
    pub peer: String,
    rpc: &'static Rpc,
    input: MessageDescriptor,
    request: RequestPlan,
    response: ResponsePlan,
}

/// Finds an rpc by its name, such as `admin.work.v1.TaskService/CreateTask`; else says what is wrong with it.
pub(crate) fn find(name: &str) -> Result<Method, String> {
    let name = name.strip_prefix('/').unwrap_or(name);
    let (service_name, method_name) = name
        .split_once('/')
        .ok_or("must name a service and a method, as in admin.work.v1.TaskService/CreateTask")?;
    let service = proto::policy::pool()
        .get_service_by_name(service_name)
        .ok_or_else(|| format!("there is no service {service_name}"))?;
    let method = service.methods().find(|method| method.name() == method_name).ok_or_else(|| {
        let known: Vec<String> = service.methods().map(|method| method.name().to_owned()).collect();
        format!("{service_name} has no method {method_name}; it has {}", known.join(", "))
    })?;
    let peer = service.package_name().split('.').nth(1).unwrap_or_default().to_owned();
    if FOREIGN.contains(&peer.as_str()) {
        return Err(format!("{service_name} is not for flows"));
    }
    if method.is_client_streaming() || method.is_server_streaming() {
        return Err(format!("{name} streams, and a step makes one call with one answer"));
    }
    let rpc = proto::policy::RPCS.iter().find(|rpc| rpc.path.strip_prefix('/') == Some(name));
    let rpc = rpc.ok_or_else(|| format!("{name} cannot be called"))?;
    let path = format!("/{name}").parse().map_err(|_| format!("{name} cannot be a path"))?;
    let refused = |why: String| format!("{name} cannot be called from a flow: {why}");
    let input = method.input();
    let request = RequestPlan::of_message(&input).map_err(|refusal| refused(refusal.to_string()))?;
    let response =
        ResponsePlan::of_message(&method.output()).map_err(|refusal| refused(refusal.to_string()))?;
    Ok(Method { path, peer, rpc, input, request, response })
}

impl Method {
    /// The scope that it takes to call it.
    pub fn scope(&self) -> String {
        token::needed_scope(self.rpc)
    }

    /// Why a flow with these scopes may not call it, if so.
    pub fn allowed(&self, scopes: &[String]) -> Result<(), String> {
        if token::allows(scopes, self.rpc) {
            return Ok(());
        }
        let (name, scope) = (self.rpc.path.trim_start_matches('/'), self.scope());
        Err(format!("{name} needs the scope {scope}, which whoever applied this flow does not have"))
    }

    /// Whether the arguments fit, as far as can be known before the templates in them are rendered.
    pub fn check(&self, with: &Map<String, Value>, at: &str, faults: &mut Faults) {
        let mut open = Vec::new();
        check_message(&self.input, with, at, (true, &mut open), faults);
        let text = Value::Object(with.clone()).to_string();
        let Ok(bound) = self.request.bind(&[], None, Some(text.as_bytes())) else { return };
        for entry in bound.faults.into_entries() {
            let place = format!("{at}{}", entry.pointer);
            if !open.iter().any(|open| place == *open || place.starts_with(&format!("{open}/"))) {
                faults.add_at(place, entry.code(), entry.detail);
            }
        }
    }

    /// The request message, or why the arguments do not fit it.
    pub fn encode(&self, input: &Value) -> Result<Bytes, String> {
        let text = input.to_string();
        let bound = self.request.bind(&[], None, Some(text.as_bytes())).map_err(|error| error.to_string())?;
        if bound.faults.is_empty() {
            return Ok(bound.message.into());
        }
        let faults = bound.faults.entries().iter();
        let told: Vec<String> = faults.map(|entry| format!("{}: {}", entry.pointer, entry.detail)).collect();
        Err(format!("the arguments do not fit: {}", told.join("; ")))
    }

    /// The answer as JSON.
    pub fn show(&self, wire: &[u8]) -> Result<Value, String> {
        if !self.response.has_body() {
            return Ok(Value::Object(Map::new()));
        }
        let mut text = Vec::new();
        self.response.render(wire, &mut text).map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|error| error.to_string())
    }
}

/// Names that the message does not have, and required fields that are not there. `whole` is off inside of a message that
/// an update has a part of. `open` collects the places of templates.
fn check_message(
    message: &MessageDescriptor,
    fields: &Map<String, Value>,
    at: &str,
    (whole, open): (bool, &mut Vec<String>),
    faults: &mut Faults,
) {
    let masked = message.fields().any(|field| is_mask(&field));
    for (name, value) in fields {
        let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        match message.get_field_by_name(name) {
            Some(field) if is_mask(&field) => {
                let detail = format!("{name} must be left out: it is filled with the fields that are there");
                faults.add_at(place, Fault::NotAllowed, detail);
            }
            Some(field) => check_value(&field, value, &place, (whole && !masked, &mut *open), faults),
            None => {
                let known = message.fields().filter(|field| !is_mask(field));
                let known: Vec<String> = known.map(|field| field.name().to_owned()).collect();
                let detail = format!("{} has no field {name}; it has {}", message.name(), known.join(", "));
                faults.add_at(place, Fault::NotAllowed, detail);
            }
        }
    }
    for field in message.fields().filter(|field| whole && proto::policy::field(field).required) {
        if matches!(fields.get(field.name()), None | Some(Value::Null)) {
            let place = format!("{at}/{}", field.name());
            faults.add_at(place, Fault::Required, format!("{} is required", field.name()));
        }
    }
}

fn check_value(
    field: &FieldDescriptor,
    value: &Value,
    at: &str,
    (whole, open): (bool, &mut Vec<String>),
    faults: &mut Faults,
) {
    match (value, field.kind()) {
        (Value::String(text), _) if is_template(text) => open.push(at.to_owned()),
        (Value::Object(fields), Kind::Message(message)) if !message.full_name().starts_with("google.") => {
            check_message(&message, fields, at, (whole, open), faults);
        }
        // Free JSON: whatever is inside may have templates.
        (Value::Object(_), Kind::String) => open.push(at.to_owned()),
        (Value::Array(items), _) => {
            for (index, item) in items.iter().enumerate() {
                check_value(field, item, &format!("{at}/{index}"), (whole, &mut *open), faults);
            }
        }
        _ => {}
    }
}

fn is_mask(field: &FieldDescriptor) -> bool {
    matches!(field.kind(), Kind::Message(message) if message.full_name() == FIELD_MASK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;
    use proto::relations::{GetClientResponse, Relation, UpdateClientRequest};
    use serde_json::json;

    const UPDATE: &str = "admin.relations.v1.ClientService/UpdateClient";
    const LINK: &str = "admin.relations.v1.ClientService/LinkClient";

    fn checked(name: &str, with: &Value) -> Vec<(String, Fault)> {
        let mut faults = Faults::default();
        find(name).ok().unwrap().check(with.as_object().unwrap(), "/with", &mut faults);
        faults.entries().iter().map(|entry| (entry.pointer.clone(), entry.code())).collect()
    }

    #[test]
    fn only_rpcs_that_exist_and_are_for_flows_are_found() {
        assert!(find(UPDATE).is_ok() && find("/admin.relations.v1.ClientService/UpdateClient").is_ok());
        for wrong in [
            "UpdateClient",
            "admin.relations.v1.Nobody/UpdateClient",
            "admin.relations.v1.ClientService/Nothing",
            "admin.api.v1.ProvisioningService/ProvisionAccount",
            "admin.accounts.v1.AccountService/CreateAccount",
            "admin.automation.v1.FlowService/StartFlow",
        ] {
            assert!(find(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn arguments_are_checked_around_their_templates() {
        let right =
            json!({"id": "{{ data.id }}", "client": {"payment_term": "{{ data.days }}", "city": "Delft"}});
        assert_eq!(checked(UPDATE, &right), []);
        let wrong = json!({"id": 5, "client": {"payment_term": "soon", "colour": "red"}, "update_mask": "x"});
        let mut found = checked(UPDATE, &wrong);
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let expected = [
            ("/with/client/colour".to_owned(), Fault::NotAllowed),
            ("/with/client/payment_term".to_owned(), Fault::NotAnInteger),
            ("/with/id".to_owned(), Fault::NotAString),
            ("/with/update_mask".to_owned(), Fault::NotAllowed),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_required_must_be_there_unless_an_update_leaves_it() {
        let missing = [("/with/link/client_id".to_owned(), Fault::Required)];
        assert_eq!(checked(LINK, &json!({"id": "x", "link": {}})), missing);
        assert_eq!(checked(UPDATE, &json!({"id": "x", "client": {}})), []);
    }

    #[test]
    fn a_mask_has_the_names_that_are_there() {
        let method = find(UPDATE).ok().unwrap();
        let wire = method.encode(&json!({"id": "x", "client": {"city": "Delft", "email": null}})).unwrap();
        let request = UpdateClientRequest::decode(wire).unwrap();
        let mut paths = request.update_mask.unwrap().paths;
        paths.sort();
        assert_eq!(paths, ["city", "email"]);
        assert_eq!(request.client.unwrap().city, "Delft");
        assert!(method.encode(&json!({"id": 5})).unwrap_err().contains("/id"));
    }

    #[test]
    fn an_answer_is_shown_as_the_reference_has_it() {
        let method = find("admin.relations.v1.ClientService/GetClient").ok().unwrap();
        let client = Relation { id: "x".into(), city: "Delft".into(), ..Relation::default() };
        let shown = method.show(&GetClientResponse { data: Some(client) }.encode_to_vec()).unwrap();
        assert_eq!(shown["data"]["city"], "Delft");
        assert_eq!(shown["data"]["payment_term"], Value::Null);
    }
}
