//! Suppliers.

use chassis_testing::{expected_faults, faults};
use proto::relations::{
    CreateSupplierRequest, GetSupplierRequest, ListSuppliersRequest, Relation, RelationType, SupplierInput,
    UpdateSupplierRequest,
};
use tonic::Status;

use crate::support::{Caller, World, company, is_not_found, mask};

async fn create(caller: &Caller, supplier: SupplierInput) -> Result<Relation, Status> {
    let request = caller.request(CreateSupplierRequest { supplier: Some(supplier) });
    Ok(caller.suppliers().create_supplier(request).await?.into_inner().data.unwrap())
}

async fn update(
    caller: &Caller,
    id: &str,
    supplier: SupplierInput,
    names: Option<&[&str]>,
) -> Result<Relation, Status> {
    let request =
        UpdateSupplierRequest { id: id.into(), supplier: Some(supplier), update_mask: names.map(mask) };
    Ok(caller.suppliers().update_supplier(caller.request(request)).await?.into_inner().data.unwrap())
}

async fn get(caller: &Caller, id: &str) -> Result<Relation, Status> {
    let request = caller.request(GetSupplierRequest { id: id.into() });
    Ok(caller.suppliers().get_supplier(request).await?.into_inner().data.unwrap())
}

fn mill() -> SupplierInput {
    SupplierInput { company_name: "Molen".into(), city: "Utrecht".into(), ..SupplierInput::default() }
}

#[tokio::test]
async fn suppliers_are_a_list_of_their_own() {
    let world = World::new().await;
    let caller = world.caller();
    let client = caller.create(company("Bakery")).await.unwrap();
    let supplier = create(&caller, mill()).await.unwrap();
    assert_eq!((supplier.debtor_number.as_str(), supplier.country.as_str()), ("", "NL"));
    assert_eq!(get(&caller, &supplier.id).await.unwrap(), supplier);
    assert!(is_not_found(&caller.get(&supplier.id).await.unwrap_err()));
    assert!(is_not_found(&get(&caller, &client.id).await.unwrap_err()));
    for search in ["", "mol", "ut"] {
        let request = ListSuppliersRequest { search: search.into(), ..ListSuppliersRequest::default() };
        let page = caller.suppliers().list_suppliers(caller.request(request)).await.unwrap().into_inner();
        assert_eq!((page.data, page.meta.unwrap().total), (vec![supplier.clone()], 1), "{search:?}");
    }
    assert_eq!(caller.total("").await, 1);
    let next = caller.create(company("B")).await.unwrap();
    assert_eq!(next.debtor_number, "D-00002", "a supplier takes no number");
}

#[tokio::test]
async fn a_supplier_follows_the_same_rules_as_a_client() {
    let world = World::new().await;
    let caller = world.caller();
    let bad = SupplierInput { email: "x".into(), country: "XX".into(), ..SupplierInput::default() };
    let mut found = faults(&create(&caller, bad).await.unwrap_err());
    found.sort();
    let expected = [
        ("/supplier/country", "bad_country"),
        ("/supplier/email", "bad_email"),
        ("/supplier/firstname", "required"),
    ];
    assert_eq!(found, expected_faults(&expected));
    let id = create(&caller, mill()).await.unwrap().id;
    let private = SupplierInput {
        r#type: RelationType::Private.into(),
        firstname: "Jan".into(),
        ..SupplierInput::default()
    };
    let changed = update(&caller, &id, private, Some(&["type", "firstname"])).await.unwrap();
    assert_eq!((changed.r#type(), changed.company_name.as_str()), (RelationType::Private, "Molen"));
    let replaced = update(&caller, &id, mill(), None).await.unwrap();
    assert_eq!((replaced.r#type(), replaced.firstname.as_str()), (RelationType::Company, ""));
}

#[tokio::test]
async fn a_change_of_a_supplier_needs_a_field() {
    let world = World::new().await;
    let caller = world.caller();
    let id = create(&caller, mill()).await.unwrap().id;
    let status = update(&caller, &id, SupplierInput::default(), Some(&[])).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/supplier", "no_field")]));
    let status = update(&caller, &id, SupplierInput::default(), Some(&["iban"])).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/update_mask", "not_allowed")]));
    assert!(is_not_found(&update(&caller, "x", mill(), Some(&["city"])).await.unwrap_err()));
}

#[tokio::test]
async fn the_totals_of_suppliers_follow_their_types() {
    let world = World::new().await;
    let caller = world.caller();
    let total = async |contact_type: &str| {
        let request =
            ListSuppliersRequest { contact_type: contact_type.into(), ..ListSuppliersRequest::default() };
        let answer = caller.suppliers().list_suppliers(caller.request(request)).await.unwrap();
        answer.into_inner().meta.unwrap().total
    };
    let id = create(&caller, mill()).await.unwrap().id;
    create(&caller, mill()).await.unwrap();
    assert_eq!((total("").await, total("company").await, total("private").await), (2, 2, 0));
    let private = SupplierInput {
        r#type: RelationType::Private.into(),
        lastname: "J".into(),
        ..SupplierInput::default()
    };
    update(&caller, &id, private, Some(&["type", "lastname"])).await.unwrap();
    assert_eq!((total("").await, total("company").await, total("private").await), (2, 1, 1));
}
