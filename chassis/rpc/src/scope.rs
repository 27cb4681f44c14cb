//! The scope of the current task: its account, whether it serves a caller or runs in the background, and whether it may
//! have had an effect already. Set by the layer in front of every rpc and by the driver of background work, so that no
//! handler has to pass it along or can forget to.

use std::sync::{Arc, Mutex, PoisonError};

use chassis_base::AccountId;
use chassis_base::error::RecordRef;

tokio::task_local! {
    static SCOPE: Scope;
}

#[derive(Clone)]
struct Scope {
    account: AccountId,
    background: bool,
    dry_run: bool,
    effect: Effect,
    kept: Retained,
}

/// A call to this process.
pub struct Call {
    /// Calls without an account, such as those with a link, share the nil account.
    pub account: AccountId,
    pub dry_run: bool,
    pub effect: Effect,
    pub kept: Retained,
}

/// Runs a call.
pub async fn call<T>(Call { account, dry_run, effect, kept }: Call, work: impl Future<Output = T>) -> T {
    SCOPE.scope(Scope { account, background: false, dry_run, effect, kept }, work).await
}

/// Runs a part of a call outside the task that began it.
pub(crate) async fn continued<T>(account: AccountId, work: impl Future<Output = T>) -> T {
    let (effect, kept) = (Effect::default(), Retained::default());
    call(Call { account, dry_run: false, effect, kept }, work).await
}

/// Runs background work for an account.
pub async fn background<T>(account: AccountId, work: impl Future<Output = T>) -> T {
    let (effect, kept) = (Effect::default(), Retained::default());
    SCOPE.scope(Scope { account, background: true, dry_run: false, effect, kept }, work).await
}

/// The task that runs: the account that it works for, and whether anybody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentTask {
    pub account: AccountId,
    /// Whether no caller waits for the task.
    pub background: bool,
}

/// The account of the current task; `None` for work of the process itself, which runs outside any scope.
pub fn current_task() -> Option<CurrentTask> {
    SCOPE.try_with(|scope| CurrentTask { account: scope.account, background: scope.background }).ok()
}

/// Whether the current call is to be undone. What cannot be undone is then not done.
pub fn is_dry_run() -> bool {
    SCOPE.try_with(|scope| scope.dry_run).unwrap_or_default()
}

/// The effect of the current call; outside a call, one that nobody reads.
pub fn effect() -> Effect {
    SCOPE.try_with(|scope| scope.effect.clone()).unwrap_or_default()
}

/// Keeps a value until the response of the current call is sent; outside a call the value is dropped.
pub fn keep(value: impl Send + 'static) {
    let _ = SCOPE.try_with(|scope| {
        if !scope.background {
            scope.kept.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(value));
        }
    });
}

/// The values that a call keeps until its response is sent.
#[derive(Clone, Default)]
pub struct Retained(Arc<Mutex<Values>>);

type Values = Vec<Box<dyn Send>>;

impl Retained {
    pub fn take(&self) -> Values {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a call has committed so far, for the layer that responds in its place after a timeout.
#[derive(Clone, Default)]
pub struct Effect(Arc<Mutex<Option<Done>>>);

/// A commit that was sent.
#[derive(Clone)]
pub struct Done {
    /// Whether the database confirmed the commit; if not, its outcome is unknown.
    certain: bool,
    /// The record that the call changes, if it changes a single one.
    pub record: Option<RecordRef>,
}

impl Effect {
    /// Records that a commit is about to be sent. The record of an earlier commit of the call stays.
    pub fn commits(&self, record: Option<RecordRef>) {
        self.change(|done| {
            done.get_or_insert(Done { certain: false, record });
        });
    }

    pub fn committed(&self) {
        self.change(|done| {
            if let Some(done) = done {
                done.certain = true;
            }
        });
    }

    /// Records that the database refused the commit. A confirmed earlier commit stays.
    pub fn refused(&self) {
        self.change(|done| {
            done.take_if(|done| !done.certain);
        });
    }

    /// Whether a commit may have happened, and to which record.
    pub fn may_have_happened(&self) -> Option<Done> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Option<Done>)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_commit_leaves_what_was_committed_before() {
        let effect = Effect::default();
        assert!(effect.may_have_happened().is_none());
        effect.commits(None);
        assert!(effect.may_have_happened().is_some());
        effect.refused();
        assert!(effect.may_have_happened().is_none());
        let record = Some(RecordRef { kind: "invoice".to_owned(), id: "7".to_owned() });
        effect.commits(record.clone());
        effect.committed();
        effect.commits(None);
        effect.refused();
        assert_eq!(effect.may_have_happened().unwrap().record, record);
    }
}
