//! A real browser, controlled over its own protocol on two pipes: no driver and no port.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// One tab of a browser that ends with the value.
pub(crate) struct Tab {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: Option<String>,
    last: u64,
    /// The events that the browser has sent, oldest first.
    pub events: Vec<Value>,
    _profile: tempfile::TempDir,
    _process: Child,
}

impl Tab {
    /// `None`, with a message, when no browser is installed. With `CI=true` that is a failure.
    pub(crate) async fn open(test: &str) -> Option<Self> {
        if !std::env::split_paths(&std::env::var_os("PATH")?).any(|folder| folder.join("chromium").is_file())
        {
            skip(&format!("{test}: chromium is missing; apt-get install chromium"));
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        // The pipes are the third and fourth file of the browser. Its sandbox needs more rights than a container has.
        let script = "exec chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                      --disable-background-networking --user-data-dir=\"$1\" --remote-debugging-pipe \
                      3<&0 4>&1 </dev/null >/dev/null 2>&1";
        let mut process = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut tab = Self {
            input: process.stdin.take().unwrap(),
            output: BufReader::new(process.stdout.take().unwrap()),
            session: None,
            last: 0,
            events: Vec::new(),
            _profile: profile,
            _process: process,
        };
        let target = tab.call("Target.createTarget", json!({"url": "about:blank"})).await;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = tab.call("Target.attachToTarget", attach).await;
        tab.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Network", "Log", "Runtime", "Audits"] {
            tab.call(&format!("{domain}.enable"), json!({})).await;
        }
        Some(tab)
    }

    /// Opens an address and waits until the page is loaded.
    pub(crate) async fn go(&mut self, url: &str) {
        let from = self.events.len();
        self.call("Page.navigate", json!({"url": url})).await;
        self.until_loaded(from).await;
    }

    /// Clicks the middle of the one element with this selector, and waits until the next page is loaded.
    pub(crate) async fn click(&mut self, selector: &str) {
        let middle = format!(
            "(() => {{ const e = document.querySelector('{selector}'); e.scrollIntoView({{block: 'center'}}); \
             const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2] }})()"
        );
        let at = self.evaluate(&middle).await;
        let from = self.events.len();
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event).await;
        }
        self.until_loaded(from).await;
    }

    pub(crate) async fn evaluate(&mut self, expression: &str) -> Value {
        let answer =
            self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true})).await;
        assert!(answer.get("exceptionDetails").is_none(), "{answer}");
        answer["result"]["value"].clone()
    }

    /// What the reader sees, as text.
    pub(crate) async fn text(&mut self) -> String {
        self.evaluate("document.body.innerText").await.as_str().unwrap().to_owned()
    }

    /// The parameters of the events of this method.
    pub(crate) fn events(&self, method: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["method"] == method).map(|event| &event["params"]).collect()
    }

    async fn until_loaded(&mut self, from: usize) {
        while !self.events[from..].iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.read().await;
            self.events.push(event);
        }
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut message = message.to_string().into_bytes();
        message.push(0);
        self.input.write_all(&message).await.expect("the browser reads its input");
        loop {
            let answer = self.read().await;
            if answer["id"] == self.last {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    async fn read(&mut self) -> Value {
        let mut message = Vec::new();
        self.output.read_until(0, &mut message).await.unwrap();
        assert_eq!(message.pop(), Some(0), "the browser has ended");
        serde_json::from_slice(&message).unwrap()
    }
}

fn skip(line: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "with CI=true nothing may be skipped: {line}");
    eprintln!("SKIPPED {line}");
    if let Ok(file) = std::env::var("TEST_SKIP_FILE") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}
