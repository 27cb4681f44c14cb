//! Reads the filter of a list request.

use chassis_data::list::Selection;
use chassis_rpc::Context;
use proto::billing::ListDocumentsRequest;

use crate::document::store::{Filter, Range};

pub(crate) fn filter(context: &Context, input: ListDocumentsRequest) -> Filter {
    Filter {
        selection: Selection::new(context.account(), &input),
        // A text that is not an id matches nothing.
        client: Some(&input.client_id)
            .filter(|text| !text.is_empty())
            .map(|text| chassis_base::id::parse(text).unwrap_or_default()),
        subscription: None,
        number: input.number,
        invoice_date: Range { from: input.date_from.parse().ok(), to: input.date_to.parse().ok() },
        due_date: Range { from: input.due_date_from.parse().ok(), to: input.due_date_to.parse().ok() },
        search: input.search.trim().to_owned(),
        payment_status: input.payment_status,
    }
}
