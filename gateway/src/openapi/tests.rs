use std::path::PathBuf;
use std::{env, fs};

use super::*;

const UPDATE: &str = "UPDATE_OPENAPI";

/// Compares with a committed file of this crate, or writes it when asked to.
fn assert_committed(name: &str, made: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
    if env::var_os(UPDATE).is_some() {
        fs::write(&path, made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    if committed == made {
        return;
    }
    let at = committed.lines().zip(made.lines()).position(|(a, b)| a != b);
    let line = at.unwrap_or_else(|| committed.lines().count().min(made.lines().count()));
    panic!(
        "gateway/{name} is not what the proto files say, first at line {}:\n  committed: {}\n  made now:  {}\n\
         When the change is meant, write the file anew with `{UPDATE}=1 cargo test -p gateway openapi`.",
        line + 1,
        committed.lines().nth(line).unwrap_or("(end of file)"),
        made.lines().nth(line).unwrap_or("(end of file)"),
    );
}

/// Method, path, scope and status of each route.
fn rows(table: &str) -> Vec<Vec<String>> {
    table.lines().skip(1).map(|line| line.split('\t').take(4).map(str::to_owned).collect()).collect()
}

#[test]
fn the_committed_document_is_the_one_that_is_served() {
    assert_committed("openapi.json", &printed(&document(&policy::commented())));
}

#[test]
fn the_committed_route_table_is_the_one_that_is_served() {
    assert_committed("routes.tsv", &route_table(&routes(policy::pool())));
}

#[test]
fn every_route_is_one_of_the_public_contract_or_of_its_additions() {
    let mut agreed = rows(include_str!("../../tests/data/contract-routes.tsv"));
    assert_eq!(agreed.len(), 101);
    agreed.extend(rows(include_str!("../../tests/data/added-routes.tsv")));
    let served = rows(&route_table(&routes(policy::pool())));
    assert!(!served.is_empty());
    for row in &served {
        assert!(agreed.contains(row), "not as agreed: {row:?}");
    }
}

#[test]
fn every_area_says_first_what_it_is() {
    for tag in document(&policy::commented())["tags"].as_array().unwrap() {
        let (name, text) = (tag["name"].as_str().unwrap(), tag["description"].as_str().unwrap());
        assert!(super::begins_with(text, name), "{name}: {text}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn visit(node: &Value, document: &Value) {
        match node {
            Value::Object(fields) => {
                if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                    let found = document.pointer(target.trim_start_matches('#'));
                    assert!(found.is_some_and(Value::is_object), "{target}");
                }
                fields.values().for_each(|value| visit(value, document));
            }
            Value::Array(entries) => entries.iter().for_each(|entry| visit(entry, document)),
            _ => {}
        }
    }
    let document = document(&policy::commented());
    visit(&document, &document);
}

#[test]
fn every_operation_has_a_name_of_its_own_a_summary_and_its_answers() {
    let document = document(&policy::commented());
    let mut names = std::collections::BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            let at = format!("{verb} {path}");
            assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{at}");
            assert!(!operation["summary"].as_str().unwrap().is_empty(), "{at}");
            for status in ["400", "429", "500", "503", "504"] {
                assert!(operation["responses"][status].is_object(), "{at} {status}");
            }
            let needs_a_key = operation["security"] != json!([]);
            assert_eq!(operation["responses"]["401"].is_object(), needs_a_key, "{at}");
            let parameters = operation["parameters"].as_array().unwrap();
            let can_expand = parameters.iter().any(|parameter| parameter["name"] == "expand");
            let can_be_long = operation.get("requestBody").is_some() || can_expand;
            assert_eq!(operation["responses"]["413"].is_object(), can_be_long, "{at}");
            assert_eq!(
                operation["responses"]["414"].is_object(),
                verb == "get",
                "{at}: an address can be too long"
            );
        }
    }
}

#[test]
fn a_partial_change_demands_no_field_and_a_create_demands_the_required_ones() {
    let document = document(&policy::commented());
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["ClientLinkInput"]["required"], json!(["client_id"]));
    assert_eq!(schemas["ClientPatch"]["required"], Value::Null);
    assert_eq!(schemas["SupplierPatch"]["minProperties"], 1);
}

#[test]
fn a_response_has_every_field_and_says_which_may_be_null() {
    let document = document(&policy::commented());
    let relation = &document["components"]["schemas"]["Relation"];
    let fields = policy::pool().get_message_by_name("admin.relations.v1.Relation").unwrap().fields().count();
    assert_eq!(relation["required"].as_array().unwrap().len(), fields);
    assert_eq!(relation["properties"]["payment_term"]["type"], json!(["integer", "null"]));
    assert_eq!(relation["properties"]["city"]["type"], "string");
}

#[test]
fn a_wrapper_holds_the_fields_and_no_second_wrapper() {
    let document = document(&policy::commented());
    let schemas = &document["components"]["schemas"];
    let wrapper = &schemas["ClientInput"]["properties"]["client"];
    assert_eq!(wrapper["$ref"], "#/components/schemas/ClientFields");
    assert_eq!(schemas["ClientFields"]["properties"]["client"], Value::Null);
    assert!(schemas["ClientFields"]["properties"]["email"].is_object());
}

#[test]
fn a_choice_is_a_schema_of_its_own_and_no_name_says_twice_what_it_is_for() {
    fn visit(node: &Value, at: &str) {
        match node {
            Value::Object(fields) => {
                assert!(!fields.contains_key("enum"), "{at}: a client would get a class for each place");
                fields.iter().for_each(|(name, value)| visit(value, &format!("{at}/{name}")));
            }
            Value::Array(entries) => entries.iter().for_each(|entry| visit(entry, at)),
            _ => {}
        }
    }
    let document = document(&policy::commented());
    visit(&document["paths"], "paths");
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        // The data of events are no messages, and each has its own.
        if !name.ends_with("EventData") {
            visit(&schema["properties"], name);
        }
        for twice in ["PatchPatch", "InputInput", "RequestInput", "PatchInput"] {
            assert!(!name.ends_with(twice), "{name}");
        }
    }
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Deal"]["properties"]["status"]["$ref"], "#/components/schemas/DealStatus");
    assert_eq!(schemas["Relation"]["properties"]["id"]["format"], "uuid");
    assert_eq!(schemas["ClientInput"]["properties"]["type"]["anyOf"][1]["type"], "null");
}

#[test]
fn a_body_does_not_repeat_the_path() {
    let document = document(&policy::commented());
    let change = &document["components"]["schemas"]["UpdateCustomFieldInput"];
    assert_eq!(change["required"], json!(["label"]));
    assert_eq!(change["properties"]["key"], Value::Null);
}

#[test]
fn every_event_is_a_webhook() {
    let document = document(&policy::commented());
    let paid = &document["webhooks"]["invoice.paid"]["post"];
    assert_eq!(
        paid["requestBody"]["content"]["application/json"]["schema"]["$ref"],
        "#/components/schemas/InvoicePaidEvent"
    );
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["InvoicePaidEvent"]["properties"]["type"]["const"], "invoice.paid");
    assert_eq!(schemas["InvoicePaidEventData"]["properties"]["payment_status"]["examples"], json!(["paid"]));
    let methods = policy::pool().services().flat_map(|service| service.methods().collect::<Vec<_>>());
    let scopes: Vec<String> =
        methods.filter_map(|rpc| policy::method(&rpc)).map(|policy| policy.scope).collect();
    for (name, webhook) in document["webhooks"].as_object().unwrap() {
        let scope = webhook["post"]["x-required-scope"].as_str().unwrap().to_owned();
        assert!(scopes.contains(&scope), "{name}: {scope}");
    }
}
