//! An external receiver that has one effect for each `webhook-id`, and can be held before or after it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, StatusCode};
use chassis_testing::eventually;
use serde_json::Value;
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    Nothing,
    /// The request has come and nothing has happened yet.
    BeforeEffect,
    /// It has happened, and the answer is not sent yet.
    BeforeAnswer,
}

pub(crate) struct Receiver {
    pub url: String,
    hold: watch::Sender<Hold>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Bodies by their `webhook-id`.
    effects: HashMap<String, Bytes>,
    requests: usize,
    /// The names of the requests that are held.
    held: Vec<String>,
}

impl Receiver {
    pub(crate) async fn start() -> Arc<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let receiver =
            Arc::new(Self { url, hold: watch::Sender::new(Hold::Nothing), state: Mutex::default() });
        let app = Router::new().fallback(receive).with_state(Arc::clone(&receiver));
        tokio::spawn(async move { axum::serve(listener, app).await });
        receiver
    }

    /// Holds requests from now on; those that were held before continue.
    pub(crate) fn hold(&self, hold: Hold) {
        self.state.lock().unwrap().held.clear();
        self.hold.send_replace(hold);
    }

    /// Waits until a request whose name begins so is held.
    pub(crate) async fn until_held(&self, name: &str) {
        let is_held = || self.state.lock().unwrap().held.iter().any(|held| held.starts_with(name));
        eventually("a request is held", async || is_held()).await;
    }

    pub(crate) fn effects(&self) -> usize {
        self.state.lock().unwrap().effects.len()
    }

    pub(crate) fn requests(&self) -> usize {
        self.state.lock().unwrap().requests
    }

    async fn hold_at(&self, point: Hold, body: &Bytes) {
        let mut hold = self.hold.subscribe();
        if *hold.borrow_and_update() == point {
            let name = serde_json::from_slice::<Value>(body).unwrap()["name"].as_str().unwrap().to_owned();
            self.state.lock().unwrap().held.push(name);
            let _ = hold.wait_for(|now| *now != point).await;
        }
    }
}

async fn receive(Shared(receiver): Shared<Arc<Receiver>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let id = headers["webhook-id"].to_str().unwrap().to_owned();
    receiver.hold_at(Hold::BeforeEffect, &body).await;
    {
        let mut state = receiver.state.lock().unwrap();
        state.requests += 1;
        let first = state.effects.entry(id).or_insert_with(|| body.clone());
        if *first != body {
            // A repeat must have the same content. The run fails, and with it the test.
            return StatusCode::CONFLICT;
        }
    }
    receiver.hold_at(Hold::BeforeAnswer, &body).await;
    StatusCode::OK
}
