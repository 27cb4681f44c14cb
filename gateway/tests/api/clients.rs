//! The shapes of the contract, seen through the gateway.

use serde_json::{Value, json};

use crate::support::{Mesh, RELATIONS};

#[tokio::test]
async fn a_client_has_every_field_of_its_shape() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let created = api
        .post("/v1/clients", json!({"company_name": "  Bakery  ", "external_id": "crm-1"}))
        .await
        .expect(201);
    let id = created.at("/data/id").as_str().unwrap().to_owned();
    assert_eq!(created.header("location"), Some(format!("/v1/clients/{id}").as_str()));
    assert_eq!(
        created.json(),
        json!({
            "data": {
                "id": id, "type": "company", "company_name": "Bakery", "firstname": "", "lastname": "", "email": "",
                "phone": "", "address": "", "zipcode": "", "city": "", "country": "NL",
                "company_registration_number": "", "vat_number": "", "website": "", "iban": "",
                "bank_account_name": "", "bic": "", "payment_term": null, "quote_expiration_days": null,
                "default_revenue_account": "", "email_invoices": "", "email_reminders": "", "mail_salutation": "",
                "debtor_number": "D-00001",
                "meta": {
                    "external_id": "crm-1", "created_at": "2026-11-15T11:00:00.123Z",
                    "updated_at": "2026-11-15T11:00:00.123Z", "version": 1, "anonymized_at": null,
                },
            },
            "meta": {},
        })
    );
    let fetched = api.get(&format!("/v1/clients/{id}")).await.expect(200);
    assert_eq!(fetched.body, created.body);
}

#[tokio::test]
async fn a_patch_changes_what_it_names_and_null_clears() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let body =
        json!({"company_name": "Bakery", "city": "Utrecht", "payment_term": 14, "email": "a@example.com"});
    let path =
        format!("/v1/clients/{}", api.post("/v1/clients", body).await.at("/data/id").as_str().unwrap());
    mesh.clock.advance(chrono::TimeDelta::seconds(1));
    let changed =
        api.patch(&path, json!({"city": null, "payment_term": null, "phone": "1"})).await.expect(200);
    let data = changed.at("/data");
    assert_eq!(
        (&data["city"], &data["payment_term"], &data["phone"]),
        (&json!(""), &Value::Null, &json!("1"))
    );
    assert_eq!((&data["email"], &data["company_name"]), (&json!("a@example.com"), &json!("Bakery")));
    assert_eq!(data["meta"]["updated_at"], "2026-11-15T11:00:01.123Z");
    mesh.clock.advance(chrono::TimeDelta::seconds(1));
    for nothing in [json!({}), json!({"unknown": 1}), json!({"phone": "1"})] {
        assert_eq!(api.patch(&path, nothing).await.expect(200).at("/data"), data, "nothing changes");
    }
    let wrapped =
        api.patch(&path, json!({"client": {"city": "Delft", "phone": "2"}, "phone": "3"})).await.expect(200);
    assert_eq!((wrapped.at("/data/city"), wrapped.at("/data/phone")), (json!("Delft"), json!("3")));
    let refused = api.patch(&path, json!({"type": null, "company_name": null})).await.expect(422);
    let locations: Vec<String> = refused.faults().into_iter().map(|(location, _)| location).collect();
    assert!(locations.contains(&"/type".to_owned()), "{locations:?}");
}

#[tokio::test]
async fn an_external_id_is_taken_once_and_the_answer_says_by_whom() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let first = api.post("/v1/clients", json!({"company_name": "A", "external_id": "x"})).await.expect(201);
    let taken = api.post("/v1/clients", json!({"company_name": "B", "external_id": "x"})).await.expect(409);
    assert_eq!((taken.at("/code"), taken.at("/data/id")), (json!("external_id_taken"), first.at("/data/id")));
    let other = api.post("/v1/clients", json!({"company_name": "C"})).await.expect(201);
    let path = format!("/v1/clients/{}", other.at("/data/id").as_str().unwrap());
    api.patch(&path, json!({"external_id": "x"})).await.expect(409);
    mesh.api(RELATIONS)
        .await
        .post("/v1/clients", json!({"company_name": "D", "external_id": "x"}))
        .await
        .expect(201);
}

#[tokio::test]
async fn suppliers_are_a_list_of_their_own() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let supplier = api.post("/v1/suppliers", json!({"company_name": "Mill"})).await.expect(201);
    assert_eq!(supplier.at("/data/debtor_number"), "");
    let id = supplier.at("/data/id");
    let id = id.as_str().unwrap();
    assert_eq!(supplier.header("location"), Some(format!("/v1/suppliers/{id}").as_str()));
    api.get(&format!("/v1/clients/{id}")).await.expect(404);
    assert_eq!(api.get("/v1/clients").await.at("/meta/total"), 0);
    let nothing = api.patch(&format!("/v1/suppliers/{id}"), json!({"iban": "ignored"})).await.expect(422);
    assert_eq!(nothing.faults(), [(String::new(), "no_field".to_owned())]);
    let changed = api.patch(&format!("/v1/suppliers/{id}"), json!({"city": "Zaandam"})).await.expect(200);
    assert_eq!(changed.at("/data/city"), "Zaandam");
}

#[tokio::test]
async fn a_person_is_linked_to_a_company_and_linked_again() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let id = async |body: Value| {
        api.post("/v1/clients", body).await.expect(201).at("/data/id").as_str().unwrap().to_owned()
    };
    let company = id(json!({"company_name": "Bakery"})).await;
    let person = id(json!({"lastname": "Jansen"})).await;
    let path = format!("/v1/clients/{company}/links");
    let link = api.post(&path, json!({"client_id": person, "function": "Baker"})).await.expect(201);
    let expected = json!({"company_id": company, "client_id": person, "function": "Baker", "department": ""});
    assert_eq!(link.json(), json!({"data": expected, "meta": {}}));
    let again = api.post(&path, json!({"client_id": person, "department": "Ovens"})).await.expect(201);
    assert_eq!((again.at("/data/function"), again.at("/data/department")), (json!(""), json!("Ovens")));
    for (body, code) in [
        (json!({}), "required"),
        (json!({"client_id": mesh.clock.id().to_string()}), "unknown_reference"),
        (json!({"client_id": "no uuid"}), "unknown_reference"),
        (json!({"client_id": company}), "wrong_kind"),
    ] {
        let answer = api.post(&path, body).await.expect(422);
        assert_eq!(answer.faults(), [("/client_id".to_owned(), code.to_owned())]);
    }
    let swapped = api.post(&format!("/v1/clients/{person}/links"), json!({"client_id": person})).await;
    swapped.expect(422);
}

#[tokio::test]
async fn a_trigger_without_flows_matches_nothing() {
    let mesh = Mesh::start().await;
    let api = mesh.api(&["webhooks.write"]).await;
    let body = json!({"event": "order.shipped", "data": {"exact": 0.1, "deep": [1, {"a": null}]}, "entity_id": 4711});
    let answer = api.post("/v1/webhooks/trigger", body).await.expect(200);
    assert_eq!(
        answer.json(),
        json!({"data": {"event": "order.shipped", "matched": 0, "runs": []}, "meta": {}})
    );
    for event in ["", "Upper", "a b", &"x".repeat(129)] {
        let answer = api.post("/v1/webhooks/trigger", json!({"event": event})).await.expect(422);
        assert_eq!(answer.faults()[0].0, "/event", "{event:?}");
    }
}
