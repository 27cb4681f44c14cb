//! The SQL of subscriptions, and nothing else.

mod list;
mod read;
mod write;

pub(crate) use list::{Filter, list};
pub(crate) use read::{exists, find, list_by_ids, list_due, lock};
pub(crate) use write::{follow_client, insert, replace_lines, update};

/// In the order in which `Record` is read.
macro_rules! columns {
    () => {
        "id, number, title, client_id, client_names, status, term, start_date, end_date, first_date, day_of_month, \
         day_of_week, anchor_date, anchor_day, last_generated, billed_until, next_generate, failures, last_error, \
         total_excl, vat_rate, vat_amount, total_incl, line_count, created_at, updated_at, version"
    };
}
use columns;
