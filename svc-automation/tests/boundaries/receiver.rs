//! A server outside that has an effect for each `webhook-id` once, and can be made to stand still before or after it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use chassis_testing::eventually;
use serde_json::Value;
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    Nothing,
    /// The request has come and nothing has happened yet.
    BeforeEffect,
    /// It has happened, and the answer is not sent yet.
    BeforeAnswer,
}

pub struct Receiver {
    pub url: String,
    hold: watch::Sender<Hold>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Bodies by their `webhook-id`.
    effects: HashMap<String, Bytes>,
    requests: usize,
    /// The names of what stands still.
    held: Vec<String>,
}

impl Receiver {
    pub async fn start() -> Arc<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let receiver =
            Arc::new(Self { url, hold: watch::Sender::new(Hold::Nothing), seen: Mutex::default() });
        let app = Router::new().fallback(receive).with_state(Arc::clone(&receiver));
        tokio::spawn(async move { axum::serve(listener, app).await });
        receiver
    }

    /// What stood still before goes on.
    pub fn hold(&self, hold: Hold) {
        self.seen.lock().unwrap().held.clear();
        self.hold.send_replace(hold);
    }

    /// Waits until a request whose name begins so stands still.
    pub async fn until_held(&self, name: &str) {
        let is_held = || self.seen.lock().unwrap().held.iter().any(|held| held.starts_with(name));
        eventually("a request stands still", async || is_held()).await;
    }

    pub fn effects(&self) -> usize {
        self.seen.lock().unwrap().effects.len()
    }

    pub fn requests(&self) -> usize {
        self.seen.lock().unwrap().requests
    }

    async fn stand_still(&self, place: Hold, body: &Bytes) {
        let mut hold = self.hold.subscribe();
        if *hold.borrow_and_update() == place {
            let name = serde_json::from_slice::<Value>(body).unwrap()["name"].as_str().unwrap().to_owned();
            self.seen.lock().unwrap().held.push(name);
            let _ = hold.wait_for(|now| *now != place).await;
        }
    }
}

async fn receive(State(receiver): State<Arc<Receiver>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let id = headers["webhook-id"].to_str().unwrap().to_owned();
    receiver.stand_still(Hold::BeforeEffect, &body).await;
    {
        let mut seen = receiver.seen.lock().unwrap();
        seen.requests += 1;
        let first = seen.effects.entry(id).or_insert_with(|| body.clone());
        if *first != body {
            // The id stands for what is sent: the run fails, and with it the test.
            return StatusCode::CONFLICT;
        }
    }
    receiver.stand_still(Hold::BeforeAnswer, &body).await;
    StatusCode::OK
}
