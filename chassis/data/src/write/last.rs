//! What the last statement of a write has to store, taken out of the plan.

use chassis_base::error::RecordRef;
use chassis_base::error::database::{is_null_in, is_unique_violation, violated_constraint};
use chassis_base::{AccountId, Error};
use proto::api::Problem;
use sqlx::postgres::PgArguments;
use uuid::Uuid;

use super::deferred::Deferred;
use super::plan::Plan;
use super::statement::{self, Parts, Response, Statement};
use crate::idempotency::{self, WINDOW};
use crate::log::changes::Changes;
use crate::log::entries::Entries;
use crate::log::event::Emitted;
use crate::rows::Rows;
use crate::totals::{Columns, Places};
use crate::withdrawal;

/// The index that lets a record have each version once.
const VERSIONS: &str = "log_of_record";

pub(super) struct LastStatement {
    /// Whose log the entries are in.
    owner: AccountId,
    method: String,
    entries: Entries,
    totals: Columns,
    places: Places,
    /// The records of other services that the write refers to.
    referred: Vec<Uuid>,
    parts: Parts,
    sql: String,
    arguments: PgArguments,
}

impl LastStatement {
    /// `events` come with their depths.
    pub(super) fn new(
        plan: &mut Plan<'_>,
        changes: Changes,
        events: Vec<(Emitted, i32)>,
        response: Option<Response>,
    ) -> Result<Self, Error> {
        let (owner, method) = (changes.account().unwrap_or(plan.account()), plan.origin.method());
        if owner != plan.account() && !events.is_empty() {
            return Err(Error::Internal(format!("{method} told an event while it changed another account")));
        }
        let depth = i32::try_from(plan.depth).unwrap_or(i32::MAX);
        let entries = Entries::new(changes, events, depth, plan.clock);
        let (totals, places) = (plan.totals.rows(), plan.totals.places());
        let (deferred, referred) = (plan.deferred.take(), std::mem::take(&mut plan.referred));
        let parts = Parts {
            deferred: deferred.as_ref().map(Deferred::bound),
            updates: deferred.as_ref().is_some_and(Deferred::is_update),
            guard: !referred.is_empty(),
            number: plan.expected.is_some(),
            entries: Rows::of(entries.ids.len()),
            totals: Rows::joined(totals.0.len()),
            places: Rows::joined(places.0.len()),
            response,
        };
        let sql = parts.sql(deferred.as_ref().map_or("", |deferred| deferred.sql.as_str()));
        let arguments = deferred.map(|deferred| deferred.arguments).unwrap_or_default();
        Ok(Self { owner, method, entries, totals, places, referred, parts, sql, arguments })
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.parts.is_nothing()
    }

    pub(super) fn has_entries(&self) -> bool {
        self.parts.entries != Rows::None
    }

    /// The ids of the log entries.
    pub(super) fn into_ids(self) -> Vec<Uuid> {
        self.entries.ids
    }

    /// Whether it affects no row if the key of the call was used.
    pub(super) fn asks_for_key(&self) -> bool {
        self.parts.response == Some(Response::First)
    }

    /// `response` is the one that repeats of the call get.
    pub(super) fn statement<'q>(&'q mut self, plan: &Plan<'_>, response: Option<&'q [u8]>) -> Statement<'q> {
        let (sql, arguments) = (std::mem::take(&mut self.sql), std::mem::take(&mut self.arguments));
        let mut statement = statement::prepare(sql, arguments);
        if self.parts.guard {
            statement = statement.bind(plan.account()).bind(withdrawal::next_slot()).bind(plan.now);
            statement = statement.bind(&self.referred);
        }
        if let Some((counter, number)) = &plan.expected {
            statement = statement.bind(plan.account()).bind(counter).bind(number);
        }
        if self.has_entries() {
            // Entries of no account, such as a team's credentials, have no reader.
            let is_numbered = !self.owner.uuid().is_nil();
            let (actor, request_id) = (plan.origin.actor(), plan.origin.request_id());
            statement = statement.bind(self.owner).bind(plan.now).bind(actor).bind(request_id);
            statement = statement.bind(&self.method).bind(is_numbered);
            statement = statement::bind_entries(statement, &self.entries, self.parts.entries);
        }
        if self.parts.totals != Rows::None {
            let totals = statement.bind(plan.account());
            statement = statement::bind_totals(totals, &self.totals, self.parts.totals);
            statement = statement::bind_places(statement, &self.places, self.parts.places);
        }
        let Some(stored) = self.parts.response else { return statement };
        let key = plan.caller().and_then(|context| context.idempotency_key.as_deref());
        let route = plan.caller().map(|context| context.rpc);
        statement = statement.bind(plan.account()).bind(response).bind(route).bind(key);
        match stored {
            Response::Amended => statement,
            Response::FirstOrFail => statement.bind(plan.origin.fingerprint()).bind(plan.now),
            Response::First => {
                statement.bind(plan.origin.fingerprint()).bind(plan.now).bind(plan.now - WINDOW)
            }
        }
    }

    /// What it means that the statement failed.
    pub(super) fn failed(&self, plan: &Plan<'_>, error: sqlx::Error) -> Error {
        if violated_constraint(&error) == Some(VERSIONS) {
            let records = self.entries.kinds.iter().zip(&self.entries.record_ids);
            plan.collision.set(records.map(|(kind, id)| RecordRef { kind: kind.clone(), id: id.clone() }));
            return Error::Raced;
        }
        if self.parts.places != Rows::None && is_null_in(&error, "total") {
            return Error::Raced;
        }
        if self.parts.guard && is_null_in(&error, withdrawal::TABLE) {
            let detail =
                "A record that the request refers to is being removed at this moment. Repeat the request.";
            return Error::problem(Problem::Unavailable, detail);
        }
        // Who has the value that must be unique has committed it after the operation asked.
        if self.parts.deferred.is_some() && is_unique_violation(&error) {
            return Error::Raced;
        }
        let error = Error::Database(error);
        let stores_key = matches!(self.parts.response, Some(Response::First | Response::FirstOrFail));
        let awaits_key = stores_key && error.is_lock_timeout();
        if awaits_key { idempotency::still_running() } else { error }
    }
}
