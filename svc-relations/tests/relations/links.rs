//! Links between persons and companies.

use chassis_testing::{expected_faults, faults};
use proto::relations::{
    ClientLink, ClientLinkInput, CreateSupplierRequest, LinkClientRequest, ListClientLinksRequest,
    SupplierInput,
};
use tonic::Status;

use crate::support::{Caller, World, company, is_not_found, person};

async fn link(caller: &Caller, id: &str, client_id: &str, function: &str) -> Result<ClientLink, Status> {
    let link =
        ClientLinkInput { client_id: client_id.into(), function: function.into(), department: String::new() };
    let request = caller.request(LinkClientRequest { id: id.into(), link: Some(link) });
    Ok(caller.clients().link_client(request).await?.into_inner().data.unwrap())
}

async fn links(caller: &Caller, id: &str) -> Result<Vec<ClientLink>, Status> {
    let request = caller.request(ListClientLinksRequest { id: id.into() });
    Ok(caller.clients().list_client_links(request).await?.into_inner().data)
}

async fn create_pair(caller: &Caller) -> (String, String) {
    let company = caller.create(company("Bakery")).await.unwrap().id;
    (company, caller.create(person("de Vries")).await.unwrap().id)
}

#[tokio::test]
async fn the_same_pair_again_replaces_the_link() {
    let world = World::new().await;
    let caller = world.caller().as_mesh();
    let (bakery, sanne) = create_pair(&caller).await;
    let first = link(&caller, &bakery, &sanne, " Baker ").await.unwrap();
    assert_eq!((first.company_id.as_str(), first.client_id.as_str()), (bakery.as_str(), sanne.as_str()));
    assert_eq!((first.function.as_str(), first.department.as_str()), ("Baker", ""));
    let second = link(&caller, &bakery, &sanne, "Owner").await.unwrap();
    assert_eq!(links(&caller, &bakery).await.unwrap(), std::slice::from_ref(&second));
    assert_eq!(links(&caller, &sanne).await.unwrap(), [second], "the person lists it too");
}

#[tokio::test]
async fn only_persons_are_linked_and_only_to_companies() {
    let world = World::new().await;
    let caller = world.caller().as_mesh();
    let (bakery, sanne) = create_pair(&caller).await;
    let unknown = world.clock.id().to_string();
    let supplier = SupplierInput { lastname: "X".into(), ..SupplierInput::default() };
    let request = caller.request(CreateSupplierRequest { supplier: Some(supplier) });
    let supplier = caller.suppliers().create_supplier(request).await.unwrap().into_inner().data.unwrap().id;
    for (client_id, code) in [
        ("", "required"),
        (" ", "required"),
        ("no uuid", "unknown_reference"),
        (unknown.as_str(), "unknown_reference"),
        (supplier.as_str(), "unknown_reference"),
        (bakery.as_str(), "wrong_kind"),
    ] {
        let status = link(&caller, &bakery, client_id, "").await.unwrap_err();
        assert_eq!(faults(&status), expected_faults(&[("/link/client_id", code)]), "{client_id}");
    }
    let status = link(&caller, &sanne, &sanne, "").await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/id", "wrong_kind")]));
    for id in ["no uuid", &"x".repeat(300), &unknown, &supplier] {
        assert!(is_not_found(&link(&caller, id, &sanne, "").await.unwrap_err()), "{id}");
        assert!(is_not_found(&links(&caller, id).await.unwrap_err()), "{id}");
    }
    let status = link(&caller, "no uuid", &sanne, &"x".repeat(256)).await.unwrap_err();
    assert_eq!(
        faults(&status),
        expected_faults(&[("/link/function", "too_long")]),
        "the body is checked first"
    );
    assert_eq!(links(&caller, &bakery).await.unwrap(), []);
}

#[tokio::test]
async fn a_link_needs_a_body() {
    let world = World::new().await;
    let caller = world.caller();
    let (bakery, _) = create_pair(&caller).await;
    let request = caller.request(LinkClientRequest { id: bakery, link: None });
    let status = caller.clients().link_client(request).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/link/client_id", "required")]));
}
