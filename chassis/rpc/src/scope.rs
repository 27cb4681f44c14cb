//! What the present task is doing: for which account, for a caller or in the background, and whether it may have had an
//! effect already. Set by the layer in front of every rpc and by the driver of background work, so that no handler has
//! to pass it along, or can forget to.

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
    effect: Effect,
    kept: Retained,
}

/// Runs a call. Calls of nobody in particular, such as those with a link, are one account together.
pub async fn call<T>(account: AccountId, effect: Effect, kept: Retained, work: impl Future<Output = T>) -> T {
    SCOPE.scope(Scope { account, background: false, effect, kept }, work).await
}

/// Runs background work for an account.
pub async fn background<T>(account: AccountId, work: impl Future<Output = T>) -> T {
    let (effect, kept) = (Effect::default(), Retained::default());
    SCOPE.scope(Scope { account, background: true, effect, kept }, work).await
}

/// Whom a task works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub account: AccountId,
    /// No caller waits for it.
    pub background: bool,
}

/// Whom the present task works for. What runs outside of any scope is the process itself.
pub fn origin() -> Option<Origin> {
    SCOPE.try_with(|scope| Origin { account: scope.account, background: scope.background }).ok()
}

/// The effect of the call that runs; of no interest to anyone outside of a call.
pub fn effect() -> Effect {
    SCOPE.try_with(|scope| scope.effect.clone()).unwrap_or_default()
}

/// Keeps something until the answer of the present call is sent; outside of a call it is not kept.
pub fn keep(thing: impl Send + 'static) {
    let _ = SCOPE.try_with(|scope| {
        if !scope.background {
            scope.kept.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(thing));
        }
    });
}

/// What a call keeps until its answer is sent.
#[derive(Clone, Default)]
pub struct Retained(Arc<Mutex<Things>>);

type Things = Vec<Box<dyn Send>>;

impl Retained {
    pub fn take(&self) -> Things {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a call has done so far, for whoever has to answer in its place.
#[derive(Clone, Default)]
pub struct Effect(Arc<Mutex<Option<Done>>>);

/// A commit that was sent.
#[derive(Clone)]
pub struct Done {
    /// Whether the commit was answered; if not, nobody knows.
    certain: bool,
    /// What it was about, where the call is about one record.
    pub record: Option<RecordRef>,
}

impl Effect {
    /// A commit is about to be sent. What was committed before stays what the call is about.
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

    /// The commit was refused.
    pub fn refused(&self) {
        self.change(|done| {
            done.take_if(|done| !done.certain);
        });
    }

    /// Whether something may have been done, and to which record.
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
