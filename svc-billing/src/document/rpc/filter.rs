//! Reads the filter of a list request.

use chassis_base::time::{first_moment, last_moment};
use chassis_rpc::Context;
use proto::billing::ListDocumentsRequest;

use crate::document::store::{Filter, Range};

pub(crate) fn filter(context: &Context, input: ListDocumentsRequest) -> Filter {
    let zone = context.account().timezone;
    // A text that is not an id matches nothing.
    let id = |text: &String| chassis_base::id::parse(text);
    Filter {
        ids: (!input.id.is_empty()).then(|| input.id.iter().filter_map(id).collect()),
        client: Some(&input.client_id)
            .filter(|text| !text.is_empty())
            .map(|text| id(text).unwrap_or_default()),
        subscription: None,
        number: input.number,
        invoice_date: Range { from: input.date_from.parse().ok(), to: input.date_to.parse().ok() },
        due_date: Range { from: input.due_date_from.parse().ok(), to: input.due_date_to.parse().ok() },
        created_at: Range {
            from: first_moment(&input.created_from, zone),
            to: last_moment(&input.created_to, zone),
        },
        search: input.search.trim().to_owned(),
        payment_status: input.payment_status,
        sort: input.sort,
        order: input.order,
    }
}
