//! What a list request asks for.

use chassis_base::paging::Page;
use chassis_base::time::{first_moment, last_moment};
use chassis_rpc::Context;
use proto::billing::ListDocumentsRequest;

use crate::document::store::Wanted;

pub fn wanted(context: &Context, input: ListDocumentsRequest) -> (Wanted, Page) {
    let zone = context.account().timezone;
    // An id that is none matches nothing.
    let id = |text: &String| chassis_base::id::parse(text);
    let wanted = Wanted {
        ids: (!input.id.is_empty()).then(|| input.id.iter().filter_map(id).collect()),
        client: Some(&input.client_id)
            .filter(|text| !text.is_empty())
            .map(|text| id(text).unwrap_or_default()),
        subscription: None,
        number: input.number,
        dates: (input.date_from.parse().ok(), input.date_to.parse().ok()),
        due_dates: (input.due_date_from.parse().ok(), input.due_date_to.parse().ok()),
        created: (first_moment(&input.created_from, zone), last_moment(&input.created_to, zone)),
        search: input.search.trim().to_owned(),
        payment_status: input.payment_status,
        sort: input.sort,
        order: input.order,
    };
    (wanted, Page::new(input.page, input.per_page))
}
