//! A stand-in of Mollie: a real HTTP server on a free port that keeps customers, payments, mandates and refunds, and
//! that a test can make pay, fail, charge back, or answer badly. It behaves as Mollie's documents say, also where that
//! is awkward: a checkout cannot be canceled from outside, an idempotency key is only good for the same request, and
//! nobody is told of a mandate that was withdrawn.

#![expect(clippy::expect_used, reason = "a test without its stand-in has to stop")]

mod api;
mod payments;
mod server;
mod state;
mod webhook;

pub use server::Trouble;
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
use state::{Held, State};

const KEY: &str = "test_dHar4XY7LxsDOtmnkVtjNVWXLSlXsM";
/// Long enough for a busy machine.
const TIMEOUT_MS: u64 = 20_000;

/// Serves until it is dropped.
pub struct StandIn {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    client: reqwest::Client,
    _serving: JoinSet<()>,
}

impl StandIn {
    /// With the machine's clock.
    #[expect(clippy::disallowed_methods, reason = "stands for Mollie, whose clock is not ours")]
    pub async fn start() -> Self {
        Self::start_at(Utc::now).await
    }

    /// With a clock of the test's, which payments then are as old as.
    pub async fn start_at(now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound port");
        let state = Arc::new(Mutex::new(State::new(format!("http://{address}/v2"), KEY, Box::new(now))));
        let mut serving = JoinSet::new();
        serving.spawn(server::serve(listener, Arc::clone(&state)));
        Self { address, state, client: webhook::client(), _serving: serving }
    }

    /// For `MOLLIE_API_URL`.
    pub fn url(&self) -> String {
        format!("http://{}/v2", self.address)
    }

    /// For `MOLLIE_API_KEY`.
    pub fn api_key(&self) -> &'static str {
        KEY
    }

    /// With which [`crate::mollie::Mollie`] talks to this. They are patient; a test of [`Trouble::Silent`] lowers
    /// `mollie_timeout_ms`.
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

    /// The payer pays; a first payment gives a mandate. The methods that change a payment tell its webhook, and return
    /// the status that the webhook answered with, if it is on this machine and answered.
    pub async fn pay(&self, payment: &str) -> Option<u16> {
        self.state().pay(payment);
        self.tell(payment).await
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

    /// We refund, but in Mollie's own pages.
    pub async fn refund(&self, payment: &str, amount: Decimal) -> Option<u16> {
        self.state().refund(payment, amount, serde_json::Value::Null);
        self.tell(payment).await
    }

    async fn change(&self, payment: &str, change: impl FnOnce(&mut Held)) -> Option<u16> {
        change(self.state().payment_mut(payment));
        self.tell(payment).await
    }

    /// Posts the payment's webhook, as it is also done after every change. May be repeated: Mollie does.
    pub async fn tell(&self, payment: &str) -> Option<u16> {
        let (url, secret) = {
            let mut state = self.state();
            if state.muted {
                return None;
            }
            (state.payment_mut(payment).webhook_url.clone(), state.webhook_secret.clone())
        };
        webhook::post(&self.client, &url?, payment, secret.as_deref()).await
    }

    /// Webhooks get lost from now on, or not.
    pub fn mute(&self, muted: bool) {
        self.state().muted = muted;
    }

    /// Webhooks are signed from now on.
    pub fn sign_with(&self, secret: &str) {
        self.state().webhook_secret = Some(secret.to_owned());
    }

    /// Whether an open payment may be canceled by us. Collections may, checkouts may not, unless said here.
    pub fn cancelable(&self, payment: &str, cancelable: bool) {
        self.state().payment_mut(payment).cancelable = cancelable;
    }

    /// How mandates begin from now on; valid, unless said here.
    pub fn new_mandates(&self, status: MandateStatus) {
        self.state().new_mandates = status;
    }

    /// The payer withdraws a mandate: it is gone. Mollie tells nobody.
    pub fn withdraw_mandate(&self, mandate: &str) {
        self.state().mandates.retain(|held| held.id != mandate);
    }

    /// The ids of all mandates, oldest first.
    pub fn mandates(&self) -> Vec<String> {
        self.state().mandates.iter().map(|held| held.id.clone()).collect()
    }

    /// For example a mandate that the bank confirms, or refuses. Mollie tells nobody.
    pub fn set_mandate(&self, mandate: &str, status: MandateStatus) {
        self.state().mandate_mut(mandate).status = status;
    }

    /// The next request with the method gets this trouble; several wait in turn.
    pub fn trouble(&self, method: &Method, trouble: Trouble) {
        self.state().troubles.push((method.clone(), trouble));
    }

    /// An hour passes: no request is recognised by its key any more.
    pub fn forget_keys(&self) {
        self.state().keys.clear();
    }

    /// Lists have at most so many entries a page.
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

    /// Makes a payment as somebody else would who uses the same profile.
    pub fn add_payment(&self, metadata: serde_json::Value) -> String {
        self.state().add_foreign_payment(metadata)
    }

    /// How many requests came, also refused ones.
    pub fn requests(&self) -> usize {
        self.state().requests
    }
}
