//! What billing settings, tax rates, payment terms and identities have in common: the lock that every change of them
//! holds, the form of a code, and the limit of a list. Knows none of these resources.

pub(crate) mod rules;
mod store;

pub(crate) use store::lock;

/// Proof that this transaction holds the lock on the account's settings, which ends with the transaction.
///
/// One row, that of `billing.settings`, is locked for all four resources. What is decided under the lock, such as which
/// of several identities is the default, still holds when it is written.
#[derive(Debug)]
pub(crate) struct SettingsLock {
    /// The code of the default tax rate, which must not be deleted.
    pub default_tax_code: String,
}
