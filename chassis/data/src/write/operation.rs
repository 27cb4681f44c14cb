//! The operation that a transaction runs. It is a trait, because the compiler does not recognise the futures of
//! closures around the callers' functions as `Send`.

use std::ops::AsyncFn;

use chassis_base::Error;

use super::lazy::LazyTx;
use super::tx::Tx;

/// A function with its arguments, except the transaction.
pub(super) trait Operation {
    type Answer;

    async fn run(&self, tx: &mut LazyTx<'_>) -> Result<Self::Answer, Error>;
}

/// A function of one input.
pub(super) struct Of<'a, I, F> {
    pub input: &'a I,
    pub function: &'a F,
}

/// A function of a request and of values that were prepared for it.
pub(super) struct OfBoth<'a, I, P, F> {
    pub input: &'a I,
    pub prepared: &'a P,
    pub function: &'a F,
}

/// A function of one input that opens its transaction itself, if it needs one.
pub(super) struct Lazily<'a, I, F> {
    pub input: &'a I,
    pub function: &'a F,
}

/// The same for a function that also needs values that were prepared for it.
pub(super) struct LazilyOfBoth<'a, I, P, F> {
    pub input: &'a I,
    pub prepared: &'a P,
    pub function: &'a F,
}

impl<I, T, E, F> Operation for Of<'_, I, F>
where
    E: Into<Error>,
    F: AsyncFn(&mut Tx<'_>, &I) -> Result<T, E>,
{
    type Answer = T;

    async fn run(&self, tx: &mut LazyTx<'_>) -> Result<T, Error> {
        (self.function)(tx.open().await?, self.input).await.map_err(Into::into)
    }
}

impl<I, P, T, E, F> Operation for OfBoth<'_, I, P, F>
where
    E: Into<Error>,
    F: AsyncFn(&mut Tx<'_>, &I, &P) -> Result<T, E>,
{
    type Answer = T;

    async fn run(&self, tx: &mut LazyTx<'_>) -> Result<T, Error> {
        (self.function)(tx.open().await?, self.input, self.prepared).await.map_err(Into::into)
    }
}

impl<I, T, E, F> Operation for Lazily<'_, I, F>
where
    E: Into<Error>,
    F: AsyncFn(&mut LazyTx<'_>, &I) -> Result<T, E>,
{
    type Answer = T;

    async fn run(&self, tx: &mut LazyTx<'_>) -> Result<T, Error> {
        (self.function)(tx, self.input).await.map_err(Into::into)
    }
}

impl<I, P, T, E, F> Operation for LazilyOfBoth<'_, I, P, F>
where
    E: Into<Error>,
    F: AsyncFn(&mut LazyTx<'_>, &I, &P) -> Result<T, E>,
{
    type Answer = T;

    async fn run(&self, tx: &mut LazyTx<'_>) -> Result<T, Error> {
        (self.function)(tx, self.input, self.prepared).await.map_err(Into::into)
    }
}
