//! Rpcs that a `call` step names: which exist, whether arguments fit, and the translation between JSON and the wire in
//! both directions. Pure; the call itself is made in `run::worker`.

use std::sync::{LazyLock, OnceLock};

use bytes::Bytes;
use chassis_rpc::token;
use chassis_transcode::{RequestPlan, ResponsePlan};
use http::uri::PathAndQuery;
use prost_reflect::DescriptorPool;
use proto::Faults;
use proto::policy::{RPCS, Rpc};
use serde_json::{Map, Value};

use super::arguments::Arguments;

/// Packages whose rpcs flows cannot call: those that every service implements or that are not about an account, and this
/// service's own, because no service calls itself.
const EXCLUDED_PACKAGES: [&str; 7] = ["accounts", "api", "audit", "automation", "gateway", "log", "scans"];

/// An rpc that flows can call.
pub(crate) struct Method {
    pub path: PathAndQuery,
    /// The service that implements it.
    pub peer: String,
    rpc: &'static Rpc,
    arguments: Arguments,
    request: RequestPlan,
    response: ResponsePlan,
}

/// By the index of the rpc: what flows have named so far. The descriptor of the contract, which takes 4 MB, is read again
/// for each and not kept.
static METHODS: LazyLock<Vec<OnceLock<Result<Method, String>>>> =
    LazyLock::new(|| RPCS.iter().map(|_| OnceLock::new()).collect());

/// Finds an rpc by its name, such as `admin.work.v1.TaskService/CreateTask`; the error says what is wrong with the name.
pub(crate) fn find(name: &str) -> Result<&'static Method, String> {
    let name = name.strip_prefix('/').unwrap_or(name);
    let (service_name, method_name) = name
        .split_once('/')
        .ok_or("must name a service and a method, as in admin.work.v1.TaskService/CreateTask")?;
    let mut siblings = Vec::new();
    for (index, rpc) in RPCS.iter().enumerate() {
        match rpc.path.trim_start_matches('/').split_once('/') {
            Some(path) if path == (service_name, method_name) => {
                let method =
                    METHODS[index].get_or_init(|| proto::policy::read(|contract| Method::of(rpc, contract)));
                return method.as_ref().map_err(Clone::clone);
            }
            Some((service, method)) if service == service_name => siblings.push(method),
            _ => {}
        }
    }
    if siblings.is_empty() {
        return Err(format!("there is no service {service_name}"));
    }
    Err(format!("{service_name} has no method {method_name}; it has {}", siblings.join(", ")))
}

impl Method {
    fn of(rpc: &'static Rpc, contract: &DescriptorPool) -> Result<Self, String> {
        let name = rpc.path.trim_start_matches('/');
        let (service_name, method_name) = name.split_once('/').unwrap_or_default();
        let service = contract.get_service_by_name(service_name);
        let method = service.and_then(|found| found.methods().find(|method| method.name() == method_name));
        let method = method.ok_or_else(|| format!("{name} cannot be called"))?;
        let peer = method.parent_service().package_name().split('.').nth(1).unwrap_or_default().to_owned();
        if EXCLUDED_PACKAGES.contains(&peer.as_str()) {
            return Err(format!("{service_name} is not for flows"));
        }
        if method.is_client_streaming() || method.is_server_streaming() {
            return Err(format!("{name} streams, and a step makes one call with one answer"));
        }
        let refused = |why: &dyn std::fmt::Display| format!("{name} cannot be called from a flow: {why}");
        let request = RequestPlan::of_message(&method.input()).map_err(|refusal| refused(&refusal))?;
        let response = ResponsePlan::of_message(&method.output()).map_err(|refusal| refused(&refusal))?;
        let arguments = Arguments::of(&method.input());
        Ok(Self { path: PathAndQuery::from_static(rpc.path), peer, rpc, arguments, request, response })
    }

    /// The scopes that a call needs.
    pub(crate) fn scopes(&self) -> Vec<String> {
        token::needed_scopes(self.rpc)
    }

    /// The error says why a flow with these scopes may not call it.
    pub(crate) fn check_scopes(&self, scopes: &[String]) -> Result<(), String> {
        if token::allows(scopes, self.rpc) {
            return Ok(());
        }
        let (name, scopes) = (self.rpc.path.trim_start_matches('/'), self.scopes().join(" and "));
        Err(format!("{name} needs the scope {scopes}, which whoever applied this flow does not have"))
    }

    /// Checks the arguments, as far as that is possible before the templates in them are rendered.
    pub(crate) fn check(&self, with: &Map<String, Value>, at: &str, faults: &mut Faults) {
        let templates = self.arguments.check(with, at, faults);
        let text = Value::Object(with.clone()).to_string();
        let Ok(bound) = self.request.bind(&[], None, Some(text.as_bytes())) else { return };
        for entry in bound.faults.into_entries() {
            let pointer = format!("{at}{}", entry.pointer);
            // The value of a template is not known yet, so its text says nothing about its type.
            let is_template =
                |template: &String| pointer == *template || pointer.starts_with(&format!("{template}/"));
            if !templates.iter().any(is_template) {
                faults.add_at(pointer, entry.code(), entry.detail);
            }
        }
    }

    /// The request message, or why the arguments do not fit it.
    pub(crate) fn encode(&self, input: &Value) -> Result<Bytes, String> {
        let text = input.to_string();
        let bound = self.request.bind(&[], None, Some(text.as_bytes())).map_err(|error| error.to_string())?;
        if bound.faults.is_empty() {
            return Ok(bound.message.into());
        }
        let faults = bound.faults.entries().iter();
        let details: Vec<String> =
            faults.map(|entry| format!("{}: {}", entry.pointer, entry.detail)).collect();
        Err(format!("the arguments do not fit: {}", details.join("; ")))
    }

    /// The response message as JSON.
    pub(crate) fn decode(&self, wire: &[u8]) -> Result<Value, String> {
        if !self.response.has_body() {
            return Ok(Value::Object(Map::new()));
        }
        let mut text = Vec::new();
        self.response.render(wire, &mut text).map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;
    use proto::api::Fault;
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
    fn only_rpcs_that_exist_and_flows_may_call_are_found() {
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
    fn a_name_that_is_almost_one_of_the_message_has_that_in_its_fault() {
        let mut faults = Faults::default();
        let with = json!({"id": "x", "client": {"pay_term": 14}});
        find(UPDATE).ok().unwrap().check(with.as_object().unwrap(), "/with", &mut faults);
        assert_eq!(faults.entries()[0].pointer, "/with/client/pay_term");
        assert!(faults.entries()[0].detail.ends_with("did you mean `payment_term`?"), "{faults:?}");
    }

    #[test]
    fn what_is_required_must_be_there_unless_an_update_leaves_it() {
        let missing = [("/with/link/client_id".to_owned(), Fault::Required)];
        assert_eq!(checked(LINK, &json!({"id": "x", "link": {}})), missing);
        assert_eq!(checked(UPDATE, &json!({"id": "x", "client": {}})), []);
    }

    #[test]
    fn a_mask_has_the_names_of_the_given_fields() {
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
    fn a_response_is_decoded_with_the_names_of_the_reference() {
        let method = find("admin.relations.v1.ClientService/GetClient").ok().unwrap();
        let client = Relation { id: "x".into(), city: "Delft".into(), ..Relation::default() };
        let decoded = method.decode(&GetClientResponse { data: Some(client) }.encode_to_vec()).unwrap();
        assert_eq!(decoded["data"]["city"], "Delft");
        assert_eq!(decoded["data"]["payment_term"], Value::Null);
    }
}
