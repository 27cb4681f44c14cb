//! The events that deals emit because time passes. Owns the conditions; chassis runs the scans. The scan for deals
//! without an open task belongs to the service that has the tasks.

use chassis_data::Tx;
use chassis_work::scan::{Emission, Findings, Scan, Threshold};

use super::{events, store};
use crate::error::Error;

const LOCK: &str = "select 1 from crm.deal \
                    where account_id = $1 and id = any($2) and $3::text[] is not null order by id for update";

/// A time of a deal `d` as a cause: milliseconds, which do not depend on settings of the connection.
macro_rules! moment {
    ($column:literal) => {
        concat!("(extract(epoch from d.", $column, ") * 1000)::bigint::text")
    };
}

/// A query for open deals `d` that meet a condition, with their cause.
macro_rules! open {
    ($cause:expr, $condition:literal) => {
        concat!(
            "select d.id as entity_id, ",
            $cause,
            " as cause from crm.deal d where d.account_id = $1 and d.status = 'open' and ",
            $condition
        )
    };
}

/// Whether the deal of a remembered cause still has that cause. Its status does not matter: it may be opened again.
macro_rules! same {
    ($cause:expr) => {
        concat!(
            "exists (select from crm.deal d where d.account_id = $1 and d.id = reported.entity_id and ",
            $cause,
            " = reported.cause)"
        )
    };
}

/// All scans of deals.
pub(crate) fn all() -> Vec<Scan> {
    vec![
        // Emitted once for each period without a change: every change starts a new period.
        Scan {
            event: "deal.stalled",
            threshold: Threshold::Days(14),
            causes: open!(moment!("updated_at"), "d.updated_at <= $2"),
            lock: LOCK,
            kept: same!(moment!("updated_at")),
            external: None,
            emit,
        },
        // Emitted once for each time that the deal is in a phase.
        Scan {
            event: "deal.phase_idle",
            threshold: Threshold::Days(7),
            causes: open!(moment!("phase_since"), "d.phase_since <= $2"),
            lock: LOCK,
            kept: same!(moment!("phase_since")),
            external: None,
            emit,
        },
        // Emitted once for each expected date.
        Scan {
            event: "deal.close_due",
            threshold: Threshold::None,
            causes: open!("to_char(d.expected_close_date, 'YYYY-MM-DD')", "d.expected_close_date <= $3"),
            lock: LOCK,
            kept: same!("to_char(d.expected_close_date, 'YYYY-MM-DD')"),
            external: None,
            emit,
        },
    ]
}

fn emit<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Emission<'a> {
    Box::pin(async move { Ok(emit_all(tx, findings).await?) })
}

async fn emit_all(tx: &mut Tx<'_>, findings: &Findings) -> Result<(), Error> {
    let account = tx.account();
    for deal in store::count_timed_events(tx.db(), account, &findings.entities()).await? {
        events::time_passed(tx, findings.event, &deal, findings.threshold_data());
    }
    Ok(())
}
