//! A stand-in for Mollie: a real HTTP server on a free port that stores customers, payments, mandates and refunds. A
//! test can make it pay, fail, charge back, or answer badly. It follows Mollie's documentation also where that is
//! awkward: a checkout cannot be canceled through the API, an idempotency key is valid for the same request only, and
//! no webhook is sent for a mandate that was withdrawn.

#![expect(clippy::expect_used, reason = "a test cannot go on without its stand-in")]

mod api;
mod fault;
mod payments;
mod reply;
mod server;
mod state;
mod webhook;

pub use fault::InjectedFault;
pub use webhook::signature;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use http::Method;
use rust_decimal::Decimal;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::MandateStatus;
use crate::mollie::Settings;
use state::{HeldPayment, State};

const KEY: &str = "test_dHar4XY7LxsDOtmnkVtjNVWXLSlXsM";
/// Long enough on a busy machine.
const TIMEOUT_MS: u64 = 20_000;

/// Serves until it is dropped.
pub struct StandIn {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    client: reqwest::Client,
    _serving: JoinSet<()>,
}

impl StandIn {
    /// Starts the server with the machine's clock.
    #[expect(clippy::disallowed_methods, reason = "stands for Mollie, whose clock is not ours")]
    pub async fn start() -> Self {
        Self::start_at(Utc::now).await
    }

    /// Starts the server with the test's clock, which dates the payments.
    pub async fn start_at(now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound port");
        let state = Arc::new(Mutex::new(State::new(format!("http://{address}/v2"), KEY, Box::new(now))));
        let mut serving = JoinSet::new();
        serving.spawn(server::serve(listener, Arc::clone(&state)));
        Self { address, state, client: webhook::client(), _serving: serving }
    }

    /// The value of `MOLLIE_API_URL`.
    pub fn url(&self) -> String {
        format!("http://{}/v2", self.address)
    }

    /// The value of `MOLLIE_API_KEY`.
    pub fn api_key(&self) -> &'static str {
        KEY
    }

    /// Settings for a [`crate::mollie::Mollie`] that talks to this server. The timeout is long; a test of
    /// [`InjectedFault::Silent`] lowers `mollie_timeout_ms`.
    pub fn settings(&self) -> Settings {
        Settings {
            mollie_api_key: KEY.to_owned(),
            mollie_api_url: self.url(),
            mollie_webhook_secrets: String::new(),
            mollie_timeout_ms: TIMEOUT_MS,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The payer pays; a first payment grants a mandate. The methods that change a payment send its webhook, and
    /// return the HTTP status of the webhook's answer, if the webhook is on this machine and answered.
    pub async fn pay(&self, payment: &str) -> Option<u16> {
        self.state().pay(payment);
        self.send_webhook(payment).await
    }

    /// The payment fails, for a reason in the bank's words.
    pub async fn fail(&self, payment: &str, reason: &str) -> Option<u16> {
        self.change(payment, |held| {
            held.status = "failed";
            held.failure = Some(reason.to_owned());
        })
        .await
    }

    pub async fn expire(&self, payment: &str) -> Option<u16> {
        self.change(payment, |held| held.status = "expired").await
    }

    /// The payer leaves the checkout.
    pub async fn cancel(&self, payment: &str) -> Option<u16> {
        self.change(payment, |held| held.status = "canceled").await
    }

    /// The payer's bank takes the money back.
    pub async fn charge_back(&self, payment: &str, amount: Decimal, reason: &str) -> Option<u16> {
        self.change(payment, |held| {
            held.charged_back += amount;
            held.failure = Some(reason.to_owned());
        })
        .await
    }

    /// The merchant refunds in Mollie's dashboard.
    pub async fn refund(&self, payment: &str, amount: Decimal) -> Option<u16> {
        self.state().refund(payment, amount, serde_json::Value::Null);
        self.send_webhook(payment).await
    }

    async fn change(&self, payment: &str, change: impl FnOnce(&mut HeldPayment)) -> Option<u16> {
        change(self.state().payment_mut(payment));
        self.send_webhook(payment).await
    }

    /// Posts the payment's webhook, as every change does. May be repeated, as Mollie repeats webhooks.
    pub async fn send_webhook(&self, payment: &str) -> Option<u16> {
        let (url, secret) = {
            let mut state = self.state();
            if state.muted {
                return None;
            }
            (state.payment_mut(payment).webhook_url.clone(), state.webhook_secret.clone())
        };
        webhook::post(&self.client, &url?, payment, secret.as_deref()).await
    }

    /// Sets whether webhooks are lost from now on.
    pub fn mute(&self, muted: bool) {
        self.state().muted = muted;
    }

    /// Signs webhooks from now on.
    pub fn sign_with(&self, secret: &str) {
        self.state().webhook_secret = Some(secret.to_owned());
    }

    /// Sets whether an open payment can be canceled through the API. By default collections can and checkouts cannot.
    pub fn cancelable(&self, payment: &str, cancelable: bool) {
        self.state().payment_mut(payment).cancelable = cancelable;
    }

    /// Sets the status of new mandates; valid by default.
    pub fn new_mandates(&self, status: MandateStatus) {
        self.state().new_mandates = status;
    }

    /// The payer withdraws a mandate, which disappears. Mollie sends no webhook.
    pub fn withdraw_mandate(&self, mandate: &str) {
        self.state().mandates.retain(|held| held.id != mandate);
    }

    /// The ids of all mandates, oldest first.
    pub fn mandates(&self) -> Vec<String> {
        self.state().mandates.iter().map(|held| held.id.clone()).collect()
    }

    /// The bank confirms or refuses a mandate. Mollie sends no webhook.
    pub fn set_mandate(&self, mandate: &str, status: MandateStatus) {
        self.state().mandate_mut(mandate).status = status;
    }

    /// The next request with this method gets this fault; several faults apply in turn.
    pub fn inject(&self, method: &Method, fault: InjectedFault) {
        self.state().faults.push((method.clone(), fault));
    }

    /// Discards the idempotency keys, as Mollie does after an hour.
    pub fn forget_keys(&self) {
        self.state().keys.clear();
    }

    /// Sets the largest number of entries on a page of a list.
    pub fn page_size(&self, entries: usize) {
        self.state().page_size = entries;
    }

    /// The ids of all payments, oldest first.
    pub fn payments(&self) -> Vec<String> {
        self.state().payments.iter().map(|held| held.id.clone()).collect()
    }

    /// The ids of all customers, oldest first.
    pub fn customers(&self) -> Vec<String> {
        self.state().customers.iter().map(|(id, _)| id.clone()).collect()
    }

    /// Creates a payment as another program would that uses the same profile.
    pub fn add_payment(&self, metadata: serde_json::Value) -> String {
        self.state().add_foreign_payment(metadata)
    }

    /// The number of requests so far, including refused ones.
    pub fn requests(&self) -> usize {
        self.state().requests
    }
}
