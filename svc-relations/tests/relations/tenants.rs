//! Accounts cannot read or change each other's records, and API keys cannot call internal rpcs. The cases of custom
//! fields are in `custom_fields.rs`.

use chassis_testing::{expected_faults, faults};
use proto::relations::{
    BatchGetClientsRequest, ClientInput, ClientLinkInput, CreateSupplierRequest,
    GetClientByExternalIdRequest, GetSupplierRequest, LinkClientRequest, ListClientLinksRequest,
    ListClientsRequest, ListSuppliersRequest, SupplierInput, UpdateSupplierRequest,
};

use crate::support::{Caller, World, company, is_not_found, mask, person};

async fn link(caller: &Caller, id: &str, client_id: &str) -> Result<(), tonic::Status> {
    let link = ClientLinkInput { client_id: client_id.into(), ..ClientLinkInput::default() };
    let request = caller.request(LinkClientRequest { id: id.into(), link: Some(link) });
    caller.clients().link_client(request).await.map(|_| ())
}

#[tokio::test]
async fn clients_of_another_account_do_not_exist() {
    let world = World::new().await;
    let (owner, stranger) = (world.mesh(), world.mesh());
    let theirs = owner.create(ClientInput { external_id: "x".into(), ..company("Bakery") }).await.unwrap();

    assert!(is_not_found(&stranger.get(&theirs.id).await.unwrap_err()));
    assert!(is_not_found(&stranger.update(&theirs.id, company("B"), &["company_name"]).await.unwrap_err()));
    for search in ["", "bakery"] {
        let page = stranger.list(ListClientsRequest { search: search.into(), ..Default::default() }).await;
        assert_eq!((page.data.len(), page.meta.unwrap().total), (0, 0));
    }
    let batch = stranger.request(BatchGetClientsRequest { ids: vec![theirs.id.clone()] });
    assert_eq!(stranger.clients().batch_get_clients(batch).await.unwrap().into_inner().data, []);
    let by_external_id = stranger.request(GetClientByExternalIdRequest { external_id: "x".into() });
    let status = stranger.clients().get_client_by_external_id(by_external_id).await.unwrap_err();
    assert!(is_not_found(&status));
    assert_eq!(owner.get(&theirs.id).await.unwrap(), theirs, "and it is as it was");
}

#[tokio::test]
async fn links_do_not_cross_accounts() {
    let world = World::new().await;
    let (owner, stranger) = (world.mesh(), world.mesh());
    let (their_company, their_person) =
        (owner.create(company("A")).await.unwrap().id, owner.create(person("B")).await.unwrap().id);
    let own_company = stranger.create(company("C")).await.unwrap().id;
    let own_person = stranger.create(person("D")).await.unwrap().id;
    link(&owner, &their_company, &their_person).await.unwrap();

    assert!(is_not_found(&link(&stranger, &their_company, &own_person).await.unwrap_err()));
    let status = link(&stranger, &own_company, &their_person).await.unwrap_err();
    assert_eq!(faults(&status), expected_faults(&[("/link/client_id", "unknown_reference")]));
    let links = stranger.request(ListClientLinksRequest { id: their_company });
    assert!(is_not_found(&stranger.clients().list_client_links(links).await.unwrap_err()));
}

#[tokio::test]
async fn suppliers_of_another_account_do_not_exist() {
    let world = World::new().await;
    let (owner, stranger) = (world.caller(), world.caller());
    let supplier = SupplierInput { company_name: "Molen".into(), ..SupplierInput::default() };
    let request = owner.request(CreateSupplierRequest { supplier: Some(supplier.clone()) });
    let id = owner.suppliers().create_supplier(request).await.unwrap().into_inner().data.unwrap().id;

    let get = stranger.request(GetSupplierRequest { id: id.clone() });
    assert!(is_not_found(&stranger.suppliers().get_supplier(get).await.unwrap_err()));
    let update = UpdateSupplierRequest { id, supplier: Some(supplier), update_mask: Some(mask(&["city"])) };
    let status = stranger.suppliers().update_supplier(stranger.request(update)).await.unwrap_err();
    assert!(is_not_found(&status));
    let list = stranger.request(ListSuppliersRequest::default());
    let page = stranger.suppliers().list_suppliers(list).await.unwrap().into_inner();
    assert_eq!((page.data.len(), page.meta.unwrap().total), (0, 0));
}

#[tokio::test]
async fn api_keys_cannot_call_internal_rpcs() {
    let world = World::new().await;
    let caller = world.caller();
    let denied = |status: tonic::Status| assert_eq!(status.code(), tonic::Code::PermissionDenied);
    let mut clients = caller.clients();
    denied(clients.batch_get_clients(caller.request(BatchGetClientsRequest::default())).await.unwrap_err());
    let by_external_id = caller.request(GetClientByExternalIdRequest { external_id: "x".into() });
    denied(clients.get_client_by_external_id(by_external_id).await.unwrap_err());
}
