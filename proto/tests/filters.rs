//! What lists can be narrowed to, walked from the contract.

#![allow(clippy::expect_used, clippy::panic, reason = "a test stops where its fact is false")]

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

/// References and closed sets that no list is filtered by under their own names, as `list.field`.
const UNFILTERED: [&str; 11] = [
    // The contract calls it `contact_type`.
    "ListClients.type",
    "ListSuppliers.type",
    // Tickets cannot belong to projects yet.
    "ListTickets.project_id",
    // The path has it.
    "ListPayments.invoice_id",
    "ListProjectHours.project_id",
    "ListWebhookDeliveries.endpoint_id",
    // All invoices of a subscription have its client, and none has a reference of its own.
    "ListSubscriptionInvoices.client_id",
    "ListSubscriptionInvoices.external_id",
    // It names the key itself.
    "ListApiKeys.public_id",
    // Lists of events lead from an event to what came of it.
    "ListRuns.event_id",
    "ListWebhookDeliveries.event_id",
];

/// The fields of a record that refer to another one or have a value of a closed set, with those in its `meta`.
fn filterable(record: &MessageDescriptor) -> Vec<String> {
    let meta = record.get_field_by_name("meta").and_then(|meta| meta.kind().as_message().cloned());
    let fields = record.fields().chain(meta.iter().flat_map(MessageDescriptor::fields));
    let is_filterable = |field: &FieldDescriptor| {
        !field.is_list() && (field.name().ends_with("_id") || matches!(field.kind(), Kind::Enum(_)))
    };
    fields.filter(is_filterable).map(|field| field.name().to_owned()).collect()
}

#[test]
fn every_paged_list_filters_by_every_reference_and_closed_set_of_its_record() {
    let services = proto::policy::pool().services();
    let methods = services.flat_map(|service| service.methods().collect::<Vec<_>>());
    let (mut missing, mut lists) = (Vec::new(), 0);
    for method in methods.filter(|method| method.input().get_field_by_name("page").is_some()) {
        let data = method.output().get_field_by_name("data").expect("a page has data");
        let Kind::Message(record) = data.kind() else { panic!("{} lists no records", method.name()) };
        lists += 1;
        let has = |name: &String| method.input().get_field_by_name(name).is_some();
        let unfiltered = filterable(&record).into_iter().filter(|name| !has(name));
        missing.extend(unfiltered.map(|name| format!("{}.{name}", method.name())));
    }
    missing.retain(|name| !UNFILTERED.contains(&name.as_str()));
    assert!(lists >= 20 && missing.is_empty(), "{lists} lists, without filters: {missing:?}");
}
