//! Reads the filter of a list request.

use chassis_base::id;
use chassis_data::list::Selection;
use chassis_rpc::Context;
use proto::billing::{GenerationMode, ListDocumentsRequest};

use crate::document::store::{Filter, Overdue, Range};

pub(crate) fn filter(context: &Context, input: ListDocumentsRequest) -> Filter {
    let today = context.clock.today(context.account().timezone);
    Filter {
        selection: Selection::new(context.account(), &input),
        client: id::filter(&input.client_id),
        subscription: id::filter(&input.subscription_id),
        credits: id::filter(&input.credits),
        is_final: match input.generation_mode() {
            GenerationMode::Unspecified => None,
            GenerationMode::Draft => Some(false),
            GenerationMode::Final => Some(true),
        },
        is_credit: input.is_credit,
        is_open: input.open,
        overdue: input.overdue.map(|is_wanted| Overdue { on: today, is_wanted }),
        amount: Range { from: input.amount_from.parse().ok(), to: input.amount_to.parse().ok() },
        external_id: input.external_id,
        number: input.number,
        invoice_date: Range { from: input.date_from.parse().ok(), to: input.date_to.parse().ok() },
        due_date: Range { from: input.due_date_from.parse().ok(), to: input.due_date_to.parse().ok() },
        search: input.search.trim().to_owned(),
        payment_status: input.payment_status,
    }
}
