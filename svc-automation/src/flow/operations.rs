//! Writes of flows.

use std::collections::BTreeSet;

use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use chassis_rpc::token::MESH_SCOPE;
use chrono::TimeDelta;
use proto::automation::Flow;
use serde_json::json;
use uuid::Uuid;

use super::{AUDITED, Record, store};
use crate::definition::model::{Definition, Trigger};
use crate::definition::{FlowRef, TriggerType, Version, schedule, store as definitions};
use crate::error::Error;
use crate::event::rules::{canonical, or_empty_object};
use crate::event::{Event, rfc3339};
use crate::ingest;
use crate::run::{self, StartedRun};

pub(super) const NOT_FOUND: Error = Error::NotFound("flow");
/// The event of a scheduled start.
const SCHEDULED_START: &str = "work.recurring";
/// As long as a rollout takes: after this time no program of the release before runs any more.
const UPGRADE: TimeDelta = TimeDelta::hours(1);

/// Which flow gets a definition.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// The one with its name, or else a new one.
    OfItsName,
    /// A new one.
    New,
    /// This one, whatever its name was.
    Existing(Uuid),
}

/// A checked definition that is to be stored.
#[derive(Clone, Copy)]
pub(super) struct Apply<'a> {
    pub target: Target,
    /// The text of its author.
    pub source: &'a str,
    pub definition: &'a Definition,
    /// What the version may do. The same definition with other scopes is another version.
    pub scopes: &'a [String],
    /// Without it a new flow is inactive and an existing one stays as it is.
    pub active: Option<bool>,
    /// Which of the flows of `provision` it is; empty for none.
    pub ready_made: &'a str,
}

/// The result of [`apply`].
pub(super) struct Applied {
    pub flow: Record,
    pub is_created: bool,
    /// Whether the definition is another one.
    pub is_changed: bool,
}

/// The flow that a definition is for; `None` for a new one. The name of a flow belongs to no other.
async fn find_target(tx: &mut Tx<'_>, target: Target, name: &str) -> Result<Option<Record>, Error> {
    let account = tx.account();
    let found = match target {
        Target::Existing(id) => Some(store::find_locked(tx.db(), account, id).await?.ok_or(NOT_FOUND)?),
        Target::New | Target::OfItsName => None,
    };
    match (target, store::find_by_name_locked(tx.db(), account, name).await?) {
        (Target::OfItsName, holder) => Ok(holder),
        (Target::New, Some(holder)) => Err(Error::NameTaken { holder: holder.id }),
        (Target::Existing(id), Some(holder)) if holder.id != id => {
            Err(Error::NameTaken { holder: holder.id })
        }
        (Target::New | Target::Existing(_), _) => Ok(found),
    }
}

/// Stores a definition as a new flow, or as a new version of an existing one.
pub(super) async fn apply(tx: &mut Tx<'_>, apply: Apply<'_>) -> Result<Applied, Error> {
    let (account, now) = (tx.account(), tx.now());
    let definition = apply.definition;
    let json = serde_json::to_string(definition)
        .map_err(|error| Error::internal(format!("a definition cannot be serialised: {error}")))?;
    let version =
        Version { source: apply.source.to_owned(), definition: json, scopes: normalise(apply.scopes) };
    let found = find_target(tx, apply.target, definition.name.trim()).await?;
    let is_created = found.is_none();
    let is_changed = match &found {
        Some(flow) => {
            let current = definitions::find_version(tx.db(), account, flow.id, flow.version).await?;
            let is_same = |current: &Version| {
                current.definition == version.definition && current.scopes == version.scopes
            };
            !current.as_ref().is_some_and(is_same)
        }
        None => true,
    };
    let mut flow = found.unwrap_or_else(|| Record {
        id: tx.id(),
        name: String::new(),
        description: String::new(),
        category: String::new(),
        trigger_type: definition.trigger.trigger_type(),
        trigger_key: String::new(),
        active: false,
        step_count: 0,
        version: 0,
        ready_made: apply.ready_made.to_owned(),
        next_start_at: None,
        created_at: now,
        updated_at: now,
    });
    let active = apply.active.unwrap_or(flow.active);
    if is_changed || flow.active != active {
        if is_changed {
            describe(&mut flow, definition);
        }
        flow.active = active;
        save(tx, &mut flow, is_changed.then_some(&version)).await?;
    } else {
        tx.unaudited("it is as it was");
    }
    Ok(Applied { flow, is_created, is_changed })
}

/// The scopes as they are stored and compared: sorted, each once; `mesh` stands for all.
fn normalise(scopes: &[String]) -> Vec<String> {
    if scopes.iter().any(|scope| scope == MESH_SCOPE) {
        return vec![MESH_SCOPE.to_owned()];
    }
    let scopes: BTreeSet<&String> = scopes.iter().collect();
    scopes.into_iter().cloned().collect()
}

/// Copies to the flow what lists and triggers need of its definition.
fn describe(flow: &mut Record, definition: &Definition) {
    definition.name.trim().clone_into(&mut flow.name);
    flow.description.clone_from(&definition.description);
    definition.category.trim().clone_into(&mut flow.category);
    flow.trigger_type = definition.trigger.trigger_type();
    flow.trigger_key = match &definition.trigger {
        Trigger::Schedule(line) => line.trim().to_owned(),
        trigger => canonical(trigger.key()).to_owned(),
    };
    flow.step_count = i32::try_from(definition.all_steps().len()).unwrap_or(i32::MAX);
}

/// Activates or deactivates a flow. `None` leaves it as it is.
pub(super) async fn set_active(tx: &mut Tx<'_>, id: Uuid, active: Option<bool>) -> Result<Record, Error> {
    let account = tx.account();
    let mut flow = store::find_locked(tx.db(), account, id).await?.ok_or(NOT_FOUND)?;
    let active = active.unwrap_or(flow.active);
    if flow.active == active {
        tx.unaudited("it is as it was");
        return Ok(flow);
    }
    flow.active = active;
    save(tx, &mut flow, None).await?;
    Ok(flow)
}

/// Stores a flow as its next version, with the time of its next start, which follows from its other fields. Without
/// `definition` that stays as it is.
async fn save(tx: &mut Tx<'_>, flow: &mut Record, definition: Option<&Version>) -> Result<(), Error> {
    let (account, now, zone) = (tx.account(), tx.now(), tx.settings().timezone);
    let is_scheduled = flow.active && flow.trigger_type == TriggerType::Schedule;
    // A line that was valid when it was checked may have no further time.
    flow.next_start_at = is_scheduled.then(|| schedule::next(&flow.trigger_key, now, zone).ok()).flatten();
    flow.version += 1;
    flow.updated_at = now;
    match definition {
        Some(content) => {
            definitions::insert_version(tx.db(), account, flow.id, flow.version, content, now).await?;
        }
        None => {
            definitions::copy_version(tx.db(), account, flow.id, flow.version, now, now - UPGRADE).await?;
        }
    }
    if store::put(tx.db(), account, flow).await? {
        tx.changed(AUDITED, flow.id, &Flow::from(flow.clone()));
        return Ok(());
    }
    // Another transaction has created a flow of this name since it was looked for. This one is run again, and finds it.
    Err(chassis_base::Error::Raced.into())
}

pub(super) async fn delete(tx: &mut Tx<'_>, id: Uuid) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    if !store::delete(tx.db(), account, id, now).await? {
        return Err(NOT_FOUND);
    }
    tx.removed(AUDITED, id);
    Ok(())
}

/// What a person starts a flow with.
#[derive(Clone, Copy)]
pub(super) struct ManualStart<'a> {
    pub flow: Uuid,
    pub entity_type: &'a str,
    pub entity_id: &'a str,
    /// JSON text of an object; may be empty.
    pub data: &'a str,
}

/// Starts a flow by hand, whatever its trigger is and whether it is active or not.
pub(super) async fn start(tx: &mut Tx<'_>, start: ManualStart<'_>) -> Result<StartedRun, Error> {
    let account = tx.account();
    let flow = definitions::find_flow(tx.db(), account, start.flow).await?.ok_or(NOT_FOUND)?;
    // Only the run gets this event. It is not stored: nothing has happened but the start itself.
    let event = Event {
        id: tx.id(),
        kind: flow.trigger_key.clone(),
        entity_type: start.entity_type.to_owned(),
        entity_id: start.entity_id.to_owned(),
        sequence: None,
        data: or_empty_object(start.data),
        occurred_at: tx.now(),
        depth: tx.depth(),
        actor: String::new(),
    };
    Ok(run::operations::start_flow(tx, &flow, &event).await?.into())
}

/// Starts the scheduled flows whose time has come, at most `limit`; returns how many. A time that passed while no process
/// was running is made up for once.
pub(super) async fn start_scheduled(tx: &mut Tx<'_>, limit: i64) -> Result<i64, Error> {
    let (account, now) = (tx.account(), tx.now());
    let mut due = store::find_scheduled_locked(tx.db(), account, now, limit).await?;
    for flow in &mut due {
        let planned = flow.next_start_at.unwrap_or(now);
        let data = json!({"flow_id": flow.id, "flow_name": flow.name, "scheduled_for": rfc3339(planned)});
        let event = Event {
            id: tx.id(),
            kind: SCHEDULED_START.to_owned(),
            entity_type: "flow".to_owned(),
            entity_id: flow.id.to_string(),
            sequence: None,
            data: data.to_string(),
            occurred_at: now,
            depth: 0,
            actor: String::new(),
        };
        run::operations::start_flow(tx, &FlowRef::from(&*flow), &event).await?;
        ingest::operations::ingest(tx, &[event]).await?;
        // The time of the next start is another one.
        save(tx, flow, None).await?;
    }
    Ok(i64::try_from(due.len()).unwrap_or(i64::MAX))
}

/// Shows the flows with these ids.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for id in uuids(ids) {
        if let Some(flow) = store::find(tx.db(), account, id).await? {
            shown.add(id, &Flow::from(flow));
        }
    }
    Ok(())
}

/// Does what goes with a version that changes nothing of the definition, for flows whose version was raised.
pub(crate) async fn copy_definitions(tx: &mut Tx<'_>, ids: &[String]) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    for id in uuids(ids) {
        if let Some(flow) = store::find(tx.db(), account, id).await? {
            definitions::copy_version(tx.db(), account, id, flow.version, now, now - UPGRADE).await?;
        }
    }
    Ok(())
}
