//! The operations that the descriptor gives, and the contracts that are refused.

use chassis_transcode::contract::{Answer, operations};
use http::Method;

use crate::support::{compile, product, sample};

#[test]
fn an_operation_has_its_route_its_peer_and_its_policy() {
    let get = product().operation("GetClient");
    assert_eq!(get.name, "admin.relations.v1.ClientService.GetClient");
    assert_eq!(get.grpc_path, "/admin.relations.v1.ClientService/GetClient");
    assert_eq!(get.peer, "relations");
    assert_eq!((get.method.clone(), get.path.as_str()), (Method::GET, "/v1/clients/{id}"));
    assert_eq!(get.policy.scope, "relations.read");
    assert!(!get.request.takes_body() && get.envelope().unwrap().has_body());
    assert!(product().operation("UpdateClient").request.takes_body());
    assert!(product().operations.iter().all(|operation| !operation.name.ends_with("BatchGetClients")));
}

#[test]
fn a_create_whose_result_can_be_fetched_has_a_location() {
    let location = |name: &str, path: &[(&str, &str)], id: &str| {
        let contract = if name.ends_with("Client") { product() } else { sample() };
        contract.operation(name).location_of(path, id)
    };
    assert_eq!(product().operation("CreateClient").location.as_deref(), Some("/v1/clients"));
    assert_eq!(location("CreateClient", &[], "01-a").as_deref(), Some("/v1/clients/01-a"));
    assert_eq!(location("CreatePart", &[("id", "t%201")], "p").as_deref(), Some("/v1/things/t%201/parts/p"));
    assert_eq!(location("CreatePart", &[], "p"), None);
    assert_eq!(location("CreateThing", &[], "a b\r\n"), None);
    assert_eq!(location("LinkClient", &[("id", "1")], "x"), None);
    assert_eq!(location("GetThing", &[("id", "1")], "x"), None);
}

const HEAD: &str = r#"
    syntax = "proto3";
    package admin.case.v1;
    import "admin/api/v1/http_body.proto";
    import "admin/api/v1/policy.proto";
    import "admin/api/v1/signed_body.proto";
    import "google/api/annotations.proto";
    import "google/protobuf/duration.proto";
    import "google/protobuf/field_mask.proto";
    message Data { string id = 1; }
    message Response { Data data = 1; }
    message Request { string id = 1; int32 number = 2; Data body = 3; }
    message Id { string id = 1; string other = 2; }
"#;

const OK: &str = "option (admin.api.v1.method) = {access: ACCESS_KEY scope: \"any\" success: 200};";

/// What is said about a contract whose service has these rpcs.
fn refusal(messages: &str, rpcs: &str) -> String {
    let source = format!("{HEAD}{messages}\nservice S {{ {rpcs} }}");
    operations(&compile(&source)).unwrap_err().to_string()
}

fn rpc(name: &str, input: &str, output: &str, http: &str) -> String {
    format!("rpc {name}({input}) returns ({output}) {{ option (google.api.http) = {{{http}}}; {OK} }}")
}

fn refused(messages: &str, rpcs: &str, said: &str) {
    let refusal = refusal(messages, rpcs);
    assert!(refusal.starts_with("admin.case.v1.S.") && refusal.contains(said), "{refusal}");
}

#[test]
fn an_ambiguous_route_is_refused() {
    let first = rpc("A", "Id", "Response", "get: \"/v1/a/{id}\"");
    let same = rpc("B", "Id", "Response", "get: \"/v1/a/{other}\"");
    refused("", &(first.clone() + &same), "also the route of admin.case.v1.S.A");
    let renamed = rpc("B", "Id", "Response", "delete: \"/v1/a/{other}/b\"");
    refused("", &(first.clone() + &renamed), "use one name for the same place");
    let beside = rpc("B", "Id", "Response", "get: \"/v1/a/list\"")
        + &rpc("C", "Id", "Response", "delete: \"/v1/a/{id}\"");
    let source = format!("{HEAD}service S {{ {first}{beside} }}");
    assert_eq!(operations(&compile(&source)).unwrap().len(), 3);
}

#[test]
fn an_incomplete_policy_is_refused() {
    refused(
        "",
        "rpc A(Id) returns (Response) { option (google.api.http) = {get: \"/v1/a\"}; }",
        "has no policy",
    );
    refused("", "rpc A(Id) returns (Response);", "has no policy");
    refused("", &format!("rpc A(Id) returns (Response) {{ {OK} }}"), "has no route");
    let mesh = "option (admin.api.v1.method) = {access: ACCESS_MESH};";
    refused(
        "",
        &format!("rpc A(Id) returns (Response) {{ option (google.api.http) = {{get: \"/v1/a\"}}; {mesh} }}"),
        "for the mesh only",
    );
    refused(
        "",
        &format!(
            "rpc A(Id) returns (stream Response) {{ option (google.api.http) = {{get: \"/v1/a\"}}; {OK} }}"
        ),
        "streams nothing but HttpBody",
    );
    refused(
        "",
        &format!(
            "rpc A(stream Id) returns (Response) {{ option (google.api.http) = {{get: \"/v1/a\"}}; {OK} }}"
        ),
        "uploaded in parts",
    );
    let no_status = "option (admin.api.v1.method) = {access: ACCESS_KEY scope: \"any\"};";
    refused(
        "",
        &format!(
            "rpc A(Id) returns (Response) {{ option (google.api.http) = {{get: \"/v1/a\"}}; {no_status} }}"
        ),
        "needs `success`",
    );
}

#[test]
fn a_path_or_body_that_does_not_fit_its_message_is_refused() {
    let case = |http: &str, said: &str| refused("", &rpc("A", "Request", "Response", http), said);
    case("post: \"/v1/a/{missing}\" body: \"body\"", "no string or enum field of that name");
    case("post: \"/v1/a/{number}\" body: \"body\"", "no string or enum field of that name");
    case("post: \"/v1/a\" body: \"missing\"", "no single message, text or bytes field of that name");
    case("post: \"/v1/a\" body: \"number\"", "no single message, text or bytes field of that name");
    case("post: \"/v1/a\"", "map the body to it");
    case("get: \"/v1/a\" body: \"body\"", "takes no body");
    case("get: \"v1/a\"", "must begin with `/`");
    case("get: \"/v1//a\"", "the segment ``");
    case("get: \"/v1/{id}.pdf\"", "use plain text or one");
    case("get: \"/v1/{id}/{id}\"", "twice");
}

#[test]
fn a_field_without_a_json_shape_is_refused() {
    let case = |fields: &str, said: &str| {
        let messages = format!("message Odd {{ {fields} }} message OddResponse {{ Odd data = 1; }}");
        refused(&messages, &rpc("A", "Id", "OddResponse", "get: \"/v1/a\""), said);
    };
    case("double value = 1;", "FORMAT_DECIMAL");
    case("map<string, string> value = 1;", "maps");
    case("oneof one { string a = 1; string b = 2; }", "oneofs");
    case("sint32 value = 1;", "use int32");
    case("google.protobuf.Duration value = 1;", "google.protobuf");
    case("string value = 2001;", "field number");
    case("Odd inner = 1;", "contains itself");
    case("repeated OddResponse inner = 1;", "contains itself");
    case("int32 value = 1 [(admin.api.v1.field) = {format: FORMAT_PERCENTAGE}];", "only a string");
    case("int32 value = 1 [(admin.api.v1.field) = {format: FORMAT_DECIMAL}];", "only a string");
    let bytes = "message Odd { bytes value = 1; }";
    refused(bytes, &rpc("A", "Odd", "Response", "get: \"/v1/a\""), "bytes, which are the whole body");
    let raw = rpc("A", "Odd", "Response", "post: \"/v1/a\" body: \"value\"");
    refused(bytes, &raw, "needs `takes` in its policy");
    let mask = "message Odd { google.protobuf.FieldMask update_mask = 1; }";
    refused(mask, &rpc("A", "Odd", "Response", "get: \"/v1/a\""), "has no body");
    let wrapper = "message Odd { Inner inner = 1; } message Inner { option (admin.api.v1.message) = {wrapper: \"x\"}; string x = 1; }";
    refused(wrapper, &rpc("A", "Odd", "Response", "post: \"/v1/a\" body: \"inner\""), "name of its wrapper");
}

#[test]
fn a_response_that_is_no_envelope_is_refused() {
    let odd = "message Odd { string other = 1; string data = 2; }";
    refused(odd, &rpc("A", "Id", "Odd", "get: \"/v1/a\""), "must have the field `data`");
    refused("message Odd {}", &rpc("A", "Id", "Odd", "get: \"/v1/a\""), "success 204");
    let gone = "option (admin.api.v1.method) = {access: ACCESS_KEY scope: \"any\" success: 204};";
    refused(
        "",
        &format!(
            "rpc A(Id) returns (Response) {{ option (google.api.http) = {{delete: \"/v1/a\"}}; {gone} }}"
        ),
        "has no fields",
    );
}

#[test]
fn an_answer_as_it_is_names_its_type_and_a_public_path_has_a_token() {
    let export = sample().operation("ExportThing");
    assert!(export.envelope().is_none() && !export.is_public());
    let show = sample().operation("ShowPage");
    assert!(show.envelope().is_none() && show.is_public());
    assert!(matches!(sample().operation("FetchPage").response, Answer::Stream));
    assert!(sample().operation("CountPage").envelope().is_some());
    let case = |output: &str, http: &str, policy: &str, said: &str| {
        let rpc = format!(
            "rpc A(Id) returns ({output}) {{ option (google.api.http) = {{{http}}}; option (admin.api.v1.method) = {{{policy}}}; }}"
        );
        refused("", &rpc, said);
    };
    let body = "admin.api.v1.HttpBody";
    let keyed = "access: ACCESS_KEY scope: \"any\"";
    case(body, "get: \"/v1/a\"", &format!("{keyed} success: 200"), "needs `media_type`");
    let typed = "media_type: \"text/html\"";
    case(body, "get: \"/v1/a\"", &format!("{keyed} success: 204 {typed}"), "`success` 200 or 201");
    case("Response", "get: \"/v1/a\"", &format!("{keyed} success: 200 {typed}"), "answer with HttpBody");
    case("Response", "get: \"/v1/a\"", &format!("{keyed} success: 303"), "leads to another page");
    case(body, "get: \"/v1/a\"", &format!("{keyed} success: 303 {typed}"), "leads to another page");
    let public = format!("access: ACCESS_PUBLIC success: 200 {typed}");
    case(body, "get: \"/v1/a\"", &public, "put an unguessable token into it");
    let limited = format!("{public} rate: RATE_CLASS_EXACT_30_PER_60_SECONDS");
    case(body, "get: \"/v1/a/{id}\"", &limited, "remove `rate`");
    let page = format!(
        "rpc B(Id) returns ({body}) {{ option (google.api.http) = {{get: \"/v1/a/{{id}}\"}}; option (admin.api.v1.method) = {{{public}}}; }}"
    );
    let beside = rpc("C", "Id", "Response", "delete: \"/v1/a/{id}\"");
    refused("", &(page + &beside), "give each a path of its own");
}

#[test]
fn a_signature_and_a_signed_body_go_together_and_stand_for_a_token() {
    let hear = sample().operation("HearSigned");
    assert!(hear.is_public() && !hear.path.contains('{'));
    let messages = "message Signed { admin.api.v1.SignedBody event = 1; string note = 2; } \
                    message Deep { Signed inner = 1; } message Several { repeated admin.api.v1.SignedBody event = 1; } \
                    message Masked { admin.api.v1.SignedBody event = 1; google.protobuf.FieldMask update_mask = 2; }";
    let case = |input: &str, body: &str, policy: &str, said: &str| {
        let rpc = format!(
            "rpc A({input}) returns (Response) {{ option (google.api.http) = {{post: \"/a\" {body}}}; \
             option (admin.api.v1.method) = {{access: ACCESS_PUBLIC success: 200 {policy}}}; }}"
        );
        refused(messages, &rpc, said);
    };
    let (whole, header) = ("body: \"event\"", "signature: \"X-Signature\"");
    case("Signed", whole, "", "put an unguessable token into it");
    case("Request", "body: \"body\"", header, "a field of SignedBody");
    case("Signed", whole, "signature: \"no header\"", "not a header name");
    case("Signed", whole, &format!("{header} needs_a_field: true"), "no body with fields");
    case("Masked", whole, header, "no body with fields");
    case("Signed", "body: \"*\"", header, "map the body to it");
    case("Signed", "", header, "map the body to it");
    case("Deep", "body: \"inner\"", header, "bytes cannot be part");
    case("Several", whole, header, "bytes cannot be part");
    let keyed = rpc("A", "Signed", "Response", "post: \"/v1/a\" body: \"event\"");
    refused(messages, &keyed, "needs `signature`");
}
