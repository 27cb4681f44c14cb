//! Whatever is sent, the answer is never a server error.

use http::Method;
use serde_json::{Value, json};

use crate::support::Mesh;

/// Values that do not belong anywhere, as JSON text.
pub(crate) fn values() -> Vec<String> {
    let mut values: Vec<String> = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "-1",
        "1.5",
        "1e400",
        "-1e400",
        "1e-400",
        "99999999999999999999999999",
        "0.1000000000000000000000000001",
        "[]",
        "[[]]",
        "{}",
        "{\"a\": {}}",
        "\"\"",
        "\" \"",
        "\"\\u0000\"",
        "\"a\\u0000b\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud800\"",
        "\"\\udc00x\"",
        "\"\\uFFFF\"",
        "\"2026-02-30\"",
        "\"12.50\"",
        "\"NaN\"",
        "\"%s%n\"",
        "\"'; drop table relation; --\"",
        "\"<script>\"",
        "\"\\r\\nBcc: x@y.z\"",
        "\"019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05\"",
        "\"\u{202e}\u{feff}\"",
        "\"e\u{301}\"",
        "\"\\\\\"",
    ]
    .map(str::to_owned)
    .to_vec();
    values.push(json!("x".repeat(256)).to_string());
    values.push(json!("é".repeat(70_000)).to_string());
    values.push("[".repeat(31) + &"]".repeat(31));
    values.push("[".repeat(100_000) + &"]".repeat(100_000));
    values.push("{\"a\":".repeat(40) + "1" + &"}".repeat(40));
    values
}

/// The names that bodies of the contract use.
fn names() -> Vec<String> {
    let pool = proto::policy::pool();
    let inputs = pool.all_messages().filter(|message| message.name().ends_with("Input"));
    let mut names: Vec<String> =
        inputs.flat_map(|m| m.fields().map(|f| f.name().to_owned()).collect::<Vec<_>>()).collect();
    names.extend(["client", "supplier", "update_mask", "id", "account_id", "a~b/c", ""].map(str::to_owned));
    names.sort();
    names.dedup();
    names
}

#[tokio::test]
async fn no_body_gives_a_server_error() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let all: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let api = mesh.api(&all).await;
    let added = async |path: &str, body: Value| {
        let made = api.post(path, body).await.expect(201);
        format!("{path}/{}", made.at("/data/id").as_str().unwrap())
    };
    let client = added("/v1/clients", json!({"company_name": "Bakery"})).await;
    let links = format!("{client}/links");
    let supplier = added("/v1/suppliers", json!({"company_name": "Mill"})).await;
    let invoice = added("/v1/invoices", json!({"title": "T", "total_excl_vat": 5})).await;
    let payments = format!("{invoice}/payments");
    let made = api.post(&payments, json!({"amount": 1})).await.expect(201);
    let payment = format!("{payments}/{}", made.at("/data/payment/id").as_str().unwrap());
    let credit = format!("{invoice}/credit");
    let subscription = added("/v1/subscriptions", json!({"title": "T"})).await;
    let id = client.trim_start_matches("/v1/clients/");
    let deal = added("/v1/deals", json!({"title": "D", "client_id": id})).await;
    let move_deal = format!("{deal}/move");
    let project = added("/v1/projects", json!({"name": "P"})).await;
    let task = added("/v1/tasks", json!({"title": "T"})).await;
    let note = added("/v1/notes", json!({"body": "N"})).await;
    let ticket = added("/v1/tickets", json!({"subject": "S"})).await;
    let messages = format!("{ticket}/messages");
    let targets = [
        (Method::POST, "/v1/clients"),
        (Method::PATCH, client.as_str()),
        (Method::POST, "/v1/suppliers"),
        (Method::PATCH, supplier.as_str()),
        (Method::POST, links.as_str()),
        (Method::POST, "/v1/invoices"),
        (Method::PATCH, invoice.as_str()),
        (Method::POST, payments.as_str()),
        (Method::PATCH, payment.as_str()),
        (Method::POST, credit.as_str()),
        (Method::POST, "/v1/quotes"),
        (Method::POST, "/v1/subscriptions"),
        (Method::PATCH, subscription.as_str()),
        (Method::POST, "/v1/deals"),
        (Method::PATCH, deal.as_str()),
        (Method::POST, move_deal.as_str()),
        (Method::POST, "/v1/projects"),
        (Method::PATCH, project.as_str()),
        (Method::POST, "/v1/tasks"),
        (Method::PATCH, task.as_str()),
        (Method::POST, "/v1/notes"),
        (Method::PATCH, note.as_str()),
        (Method::POST, "/v1/tickets"),
        (Method::PATCH, ticket.as_str()),
        (Method::POST, messages.as_str()),
    ];
    let headers = [("content-type", "application/json")];
    let mut sent = 0;
    for value in values() {
        // One value for every name at once, then the bare value as the whole body, then each in company.
        let fields: Vec<String> =
            names().iter().map(|name| format!("{}: {value}", Value::from(name.as_str()))).collect();
        let mut bodies = vec![value.clone(), format!("{{{}}}", fields.join(","))];
        let company = r#""company_name": "B", "title": "T", "name": "N", "subject": "S", "body": "B""#;
        bodies.extend(
            fields.iter().filter(|_| value.len() < 300).map(|field| format!("{{{company}, {field}}}")),
        );
        for body in &bodies {
            let (method, path) = &targets[sent % targets.len()];
            let answer = api.send(method.clone(), path, &headers, body.clone()).await;
            assert!(answer.status.as_u16() < 500, "{method} {path} {:.300}: {}", body, answer.status);
            sent += 1;
        }
    }
    assert!(sent > 1000, "{sent}");
}

/// Those that take a query.
const LISTS: [&str; 15] = [
    "/v1/clients",
    "/v1/suppliers",
    "/v1/invoices",
    "/v1/workorders",
    "/v1/subscriptions",
    "/v1/deals",
    "/v1/phases",
    "/v1/projects",
    "/v1/tasks",
    "/v1/notes",
    "/v1/files",
    "/v1/tickets",
    "/v1/ticket-channels",
    "/v1/ticket-statuses",
    "/v1/email-domains",
];

#[tokio::test]
async fn no_query_path_or_header_gives_a_server_error() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let all: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let api = mesh.api(&all).await;
    let long = "9".repeat(5000);
    let values = [
        "",
        "0",
        "-1",
        "1e9",
        "%00",
        "%ff",
        "%",
        "%u1234",
        "a%00b",
        "%F0%9F%98%80",
        "%27",
        "'%20or%201=1",
        "%25",
        "_",
        "\\",
        &long,
    ];
    for value in values {
        let names = [
            "page",
            "per_page",
            "search",
            "contact_type",
            "id",
            "",
            "%00",
            "client_id",
            "number",
            "date_from",
            "due_date_to",
            "created_from",
            "created_to",
            "updated_from",
            "payment_status",
            "sort",
            "order",
            "status",
            "active",
            "pipeline_id",
            "phase_id",
            "project_id",
            "deal_id",
        ];
        for name in names {
            for path in LISTS {
                let answer = api.get(&format!("{path}?{name}={value}")).await;
                assert!(answer.status.as_u16() < 500, "{path}?{name}={value}: {}", answer.status);
            }
        }
        if !value.is_empty() && !value.contains('\'') {
            let answer = api.get(&format!("/v1/clients/{value}")).await;
            assert!([400, 404].contains(&answer.status.as_u16()), "{value}: {}", answer.status);
        }
    }
    for authorization in
        ["Bearer", "Bearer ", "bearer x", "Basic dXNlcjpwYXNz", "Bearer ba_a_b_c", "ba", "Bearer \u{7f}"]
    {
        let anonymous = mesh.gateway.api_with("");
        if let Ok(answer) =
            anonymous.try_send(Method::GET, "/v1/clients", &[("authorization", authorization)], "").await
        {
            assert_eq!(answer.status, 401, "{authorization:?}");
        }
    }
}
