//! What is done with flows as a whole.

use std::collections::BTreeSet;

use chassis_data::Tx;
use chassis_rpc::token::MESH_SCOPE;
use proto::Faults;
use proto::automation::Flow;

use super::definition::{Definition, Trigger};
use super::{AUDITED, Record, check, read, schedule, store};
use crate::Error;
use crate::event::rules::canonical;

/// What applying a definition came to.
pub(crate) struct Applied {
    pub flow: Record,
    pub created: bool,
    pub changed: bool,
}

/// Reads and checks a definition for someone with these scopes; every fault has its place below `at`.
pub(crate) fn understand(
    text: &str,
    at: &str,
    (now, zone): (chrono::DateTime<chrono::Utc>, chrono_tz::Tz),
    scopes: &[String],
    faults: &mut Faults,
) -> Option<Definition> {
    let definition = read::read(text, at, faults)?;
    check::check(&definition, at, (now, zone), scopes, faults);
    Some(definition)
}

/// Stores a definition that was understood: a new flow, or a new version of the one of that name. `active` switches it;
/// without it a new flow is inactive and an existing one stays as it is. `scopes` are what the version may do; the same
/// definition with other ones is another version.
pub(crate) async fn apply(
    tx: &mut Tx<'_>,
    (source, definition): (&str, &Definition),
    scopes: &[String],
    active: Option<bool>,
    ready_made: &str,
) -> Result<Applied, Error> {
    let (account, now) = (tx.account(), tx.now());
    let json = serde_json::to_string(definition)
        .map_err(|error| chassis_base::Error::Internal(format!("a definition as JSON: {error}")))?;
    let version = store::Version { source: source.to_owned(), definition: json, scopes: clean(scopes) };
    let found = store::find_named_locked(tx.db(), account, definition.name.trim()).await?;
    let created = found.is_none();
    let changed = match &found {
        Some(flow) => {
            let stored = store::find_version(tx.db(), account, flow.id, flow.version).await?;
            let same = |stored: &store::Version| {
                stored.definition == version.definition && stored.scopes == version.scopes
            };
            !stored.as_ref().is_some_and(same)
        }
        None => true,
    };
    let mut flow = found.unwrap_or_else(|| Record {
        id: tx.id(),
        version: 0,
        active: false,
        ready_made: ready_made.to_owned(),
        created_at: now,
        ..empty(now)
    });
    let before = (flow.active, flow.version);
    if changed {
        describe(&mut flow, definition);
        flow.version += 1;
        store::insert_version(tx.db(), account, (flow.id, flow.version), &version, now).await?;
    }
    flow.active = active.unwrap_or(flow.active);
    if before != (flow.active, flow.version) {
        save(tx, &mut flow).await?;
    }
    Ok(Applied { flow, created, changed })
}

/// The scopes as they are kept: each once, in order; `mesh` stands for all.
fn clean(scopes: &[String]) -> Vec<String> {
    if scopes.iter().any(|scope| scope == MESH_SCOPE) {
        return vec![MESH_SCOPE.to_owned()];
    }
    let scopes: BTreeSet<&String> = scopes.iter().collect();
    scopes.into_iter().cloned().collect()
}

/// Switches a flow on or off.
pub(crate) async fn switch(tx: &mut Tx<'_>, flow: &mut Record, active: bool) -> Result<(), Error> {
    if flow.active == active {
        return Ok(());
    }
    flow.active = active;
    save(tx, flow).await
}

/// Stores a flow with the time of its next start, which follows from everything else.
async fn save(tx: &mut Tx<'_>, flow: &mut Record) -> Result<(), Error> {
    let (account, now, zone) = (tx.account(), tx.now(), tx.settings().timezone);
    let scheduled = flow.active && flow.trigger_type == "schedule";
    flow.next_start_at = scheduled.then(|| schedule::next(&flow.trigger_key, now, zone).ok()).flatten();
    flow.updated_at = now;
    if store::put(tx.db(), account, flow).await? {
        tx.changed(AUDITED, flow.id, &Flow::from(flow.clone()));
        return Ok(());
    }
    // Someone else has just made a flow of this name; the next attempt finds it.
    Err(chassis_base::Error::Raced.into())
}

fn describe(flow: &mut Record, definition: &Definition) {
    definition.name.trim().clone_into(&mut flow.name);
    flow.description.clone_from(&definition.description);
    definition.category.trim().clone_into(&mut flow.category);
    definition.trigger.type_name().clone_into(&mut flow.trigger_type);
    flow.trigger_key = match &definition.trigger {
        Trigger::Schedule(line) => line.trim().to_owned(),
        trigger => canonical(trigger.key()).to_owned(),
    };
    flow.step_count = i32::try_from(definition.all_steps().len()).unwrap_or(i32::MAX);
}

fn empty(now: chrono::DateTime<chrono::Utc>) -> Record {
    Record {
        id: uuid::Uuid::nil(),
        name: String::new(),
        description: String::new(),
        category: String::new(),
        trigger_type: String::new(),
        trigger_key: String::new(),
        active: false,
        step_count: 0,
        version: 0,
        ready_made: String::new(),
        next_start_at: None,
        created_at: now,
        updated_at: now,
    }
}
