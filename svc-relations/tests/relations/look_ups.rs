//! Filters of clients and suppliers, and looking one up by what it has alone.

use chassis_testing::{assert_filters_counted, expected_faults, faults};
use proto::relations::{
    ClientInput, CreateSupplierRequest, ListClientsRequest, ListSuppliersRequest, SupplierInput,
};

use crate::support::{Caller, World, company, person};

type Set = fn(&mut ListClientsRequest, &str);

/// The company or last names of what is found, newest first. Checks the total.
async fn names(caller: &Caller, request: ListClientsRequest) -> Vec<String> {
    let answer = caller.list(request).await;
    let names: Vec<String> =
        answer.data.into_iter().map(|client| client.company_name + &client.lastname).collect();
    assert_eq!(answer.meta.unwrap().total, i64::try_from(names.len()).unwrap());
    names
}

async fn fill(caller: &Caller) {
    let mill = ClientInput {
        external_id: "crm-1".into(),
        email: "Office@Mill.example".into(),
        vat_number: "NL 1234.56.789.B01".into(),
        country: "NL".into(),
        city: "Élst".into(),
        ..company("Mill")
    };
    let swiss = ClientInput {
        external_id: "CRM-1".into(),
        vat_number: "CHE-123.456.789 MWST".into(),
        country: "ch".into(),
        city: "elst".into(),
        ..company("Swiss")
    };
    let ann = ClientInput { email: "office@mill.example".into(), country: "NL".into(), ..person("Ann") };
    for client in [mill, swiss, ann] {
        caller.create(client).await.unwrap();
    }
}

const EXTERNAL_ID: Set = |request, value| request.external_id = value.into();
const EMAIL: Set = |request, value| request.email = value.into();
const VAT: Set = |request, value| request.vat_number = value.into();
const DEBTOR: Set = |request, value| request.debtor_number = value.into();
const CITY: Set = |request, value| request.city = value.into();
const COUNTRY: Set = |request, value| request.country = value.into();

#[tokio::test]
async fn a_client_is_looked_up_by_what_it_has_alone() {
    let world = World::new().await;
    let (caller, stranger) = (world.caller(), world.caller());
    fill(&caller).await;
    fill(&stranger).await;
    for (set, value, expected) in [
        (EXTERNAL_ID, "crm-1", vec!["Mill"]),
        (EXTERNAL_ID, " CRM-1 ", vec!["Swiss"]),
        (EXTERNAL_ID, "crm", vec![]),
        (EMAIL, "OFFICE@mill.example", vec!["Ann", "Mill"]),
        (EMAIL, "mill.example", vec![]),
        (VAT, "NL123456789B01", vec!["Mill"]),
        (VAT, "nl 1234.56.789-b01", vec!["Mill"]),
        (VAT, "CHE123456789MWST", vec!["Swiss"]),
        (VAT, "123456789B01", vec![]),
        (DEBTOR, "d-00002", vec!["Swiss"]),
        (DEBTOR, "2", vec![]),
        (CITY, "ELST", vec!["Swiss"]),
        (CITY, "Élst", vec!["Mill"]),
        (CITY, "els", vec![]),
        (COUNTRY, "nl", vec!["Ann", "Mill"]),
        (COUNTRY, "BE", vec![]),
    ] {
        let mut request = ListClientsRequest::default();
        set(&mut request, value);
        assert_eq!(names(&caller, request.clone()).await, expected, "{value}");
        let private = ListClientsRequest { contact_type: "private".into(), ..request.clone() };
        let persons: Vec<&str> = expected.iter().copied().filter(|name| *name == "Ann").collect();
        assert_eq!(names(&caller, private).await, persons, "{value}");
        let page = ListClientsRequest { page: Some(2), per_page: Some(1), ..request };
        let answer = caller.list(page).await;
        assert_eq!(answer.meta.unwrap().total, i64::try_from(expected.len()).unwrap(), "{value}");
        assert_eq!(answer.data.len(), expected.len().saturating_sub(1), "{value}");
    }
}

#[tokio::test]
async fn a_country_that_does_not_exist_is_refused() {
    let world = World::new().await;
    let caller = world.caller();
    let request = ListClientsRequest { country: "Holland".into(), ..ListClientsRequest::default() };
    let refused = caller.clients().list_clients(caller.request(request)).await.unwrap_err();
    assert_eq!(faults(&refused), expected_faults(&[("/country", "bad_country")]));
}

#[tokio::test]
async fn suppliers_have_the_same_filters_and_are_no_clients() {
    let world = World::new().await;
    let caller = world.caller();
    fill(&caller).await;
    let supplier = SupplierInput {
        company_name: "Farm".into(),
        email: "office@mill.example".into(),
        city: "Elst".into(),
        country: "NL".into(),
        ..SupplierInput::default()
    };
    let request = CreateSupplierRequest { supplier: Some(supplier) };
    caller.suppliers().create_supplier(caller.request(request)).await.unwrap();
    let all = ListSuppliersRequest::default();
    for (request, total) in [
        (ListSuppliersRequest { email: "Office@mill.example".into(), ..all.clone() }, 1),
        (ListSuppliersRequest { city: "elst".into(), country: "nl".into(), ..all.clone() }, 1),
        (ListSuppliersRequest { country: "CH".into(), ..all.clone() }, 0),
        (ListSuppliersRequest { external_id: "crm-1".into(), ..all.clone() }, 0),
        (ListSuppliersRequest { vat_number: "NL123456789B01".into(), ..all.clone() }, 0),
        (ListSuppliersRequest { debtor_number: "D-00001".into(), ..all }, 0),
    ] {
        let query = format!("{request:?}");
        let answer = caller.suppliers().list_suppliers(caller.request(request)).await.unwrap().into_inner();
        assert_eq!(answer.meta.unwrap().total, total, "{query}");
    }
}

#[tokio::test]
async fn a_change_of_country_changes_the_counters_of_both() {
    let world = World::new().await;
    let caller = world.caller();
    let created = caller.create(company("Mill")).await.unwrap();
    caller.create(company("Farm")).await.unwrap();
    world.clock.advance(chrono::TimeDelta::hours(1));
    let belgian = ClientInput { country: "BE".into(), ..ClientInput::default() };
    caller.update(&created.id, belgian, &["country"]).await.unwrap();
    let of = |country: &str| ListClientsRequest { country: country.into(), ..ListClientsRequest::default() };
    assert_eq!(names(&caller, of("BE")).await, ["Mill"]);
    assert_eq!(names(&caller, of("NL")).await, ["Farm"]);
    assert_filters_counted(&world.database, "client", "relations.relation", "role = 'client'").await;
}
