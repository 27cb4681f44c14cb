//! Somebody who reads the reference.

use serde_json::{Value, json};

use crate::chromium::Tab;

pub(crate) struct Reader {
    pub tab: Tab,
    pub host: String,
}

impl Reader {
    /// `None`, with a message, when no browser is installed.
    pub(crate) async fn start(test: &str) -> Option<Self> {
        let tab = Tab::open(test).await?;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, gateway::pages::router()).await });
        Some(Self { tab, host })
    }

    /// Opens a page as a link does that somebody was sent, and waits until it is drawn.
    pub(crate) async fn open(&mut self, path: &str) {
        // Else only another fragment would be gone to, and the page stays as it is.
        self.tab.go("about:blank").await;
        self.tab.go(&format!("{}{path}", self.host)).await;
        if path.starts_with("/docs") {
            self.until("document.documentElement.dataset.ready !== undefined").await;
        }
    }

    /// Waits until an expression is true.
    pub(crate) async fn until(&mut self, expression: &str) {
        let waiting = format!(
            "new Promise(done => {{ const look = () => ({expression}) ? done(true) : setTimeout(look, 5); look(); }})"
        );
        self.promised(&waiting).await;
    }

    /// What a promise comes to.
    pub(crate) async fn promised(&mut self, expression: &str) -> Value {
        let options = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.tab.call("Runtime.evaluate", options).await;
        assert!(answer.get("exceptionDetails").is_none(), "{answer}");
        answer["result"]["value"].clone()
    }

    pub(crate) async fn press(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowUp" => 38,
            "ArrowDown" => 40,
            _ => 0,
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event = json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code});
            self.tab.call("Input.dispatchKeyEvent", event).await;
        }
    }

    pub(crate) async fn write(&mut self, text: &str) {
        self.tab.call("Input.insertText", json!({"text": text})).await;
    }

    pub(crate) async fn heading(&mut self) -> String {
        self.tab.evaluate("document.querySelector('h1').textContent").await.as_str().unwrap().to_owned()
    }

    pub(crate) async fn path(&mut self) -> String {
        let path = self.tab.evaluate("location.pathname + location.hash").await;
        path.as_str().unwrap().to_owned()
    }

    /// Opens what is folded.
    pub(crate) async fn unfold(&mut self) {
        self.tab
            .evaluate("for (const details of document.querySelectorAll('main details')) details.open = true")
            .await;
    }

    pub(crate) async fn screen(&mut self, width: u32, scheme: &str) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.tab.call("Emulation.setDeviceMetricsOverride", size).await;
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]);
        self.tab.call("Emulation.setEmulatedMedia", json!({"features": features})).await;
    }
}
