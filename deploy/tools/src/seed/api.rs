//! The public API, as an integration uses it.

use deploy_tools::http::{Connection, Request, authority};
use serde_json::Value;

/// The connection and what every request needs.
pub(crate) struct Api {
    connection: Connection,
    authority: String,
    key: String,
}

/// An answer that is not an error: what was asked for, or why it cannot be because of what is there already.
pub(crate) enum Answer {
    Done(Value),
    /// 409, with its body.
    Conflict(Value),
}

impl Api {
    pub(crate) async fn connect(base_url: &str, key: &str) -> Result<Self, String> {
        let authority = authority(base_url)?.to_owned();
        let connection = Connection::open(&authority)
            .await
            .map_err(|fault| format!("cannot reach {authority}: {fault}"))?;
        Ok(Self { connection, authority, key: key.to_owned() })
    }

    pub(crate) async fn get(&mut self, target: &str) -> Result<Value, String> {
        self.done("GET", target, None, None).await
    }

    pub(crate) async fn post(&mut self, target: &str, key: &str, body: &Value) -> Result<Value, String> {
        self.done("POST", target, Some(key), Some(body)).await
    }

    pub(crate) async fn patch(&mut self, target: &str, key: &str, body: &Value) -> Result<Value, String> {
        self.done("PATCH", target, Some(key), Some(body)).await
    }

    pub(crate) async fn try_post(&mut self, target: &str, key: &str, body: &Value) -> Result<Answer, String> {
        self.call("POST", target, Some(key), Some(body)).await
    }

    /// Presses a button on a public page.
    pub(crate) async fn press(&mut self, target: &str, body: &Value) -> Result<(), String> {
        let body = body.to_string();
        let request = Request { method: "POST", target, body: Some(&body), ..Request::default() };
        let mut message = Vec::new();
        request.render(&self.authority, &mut message);
        let answer =
            self.connection.send(&message).await.map_err(|fault| format!("POST {target}: {fault}"))?;
        match answer.status {
            303 => Ok(()),
            status => Err(format!("POST {target} was answered with {status}: {}", answer.text())),
        }
    }

    /// How many entries a list has.
    pub(crate) async fn total(&mut self, target: &str) -> Result<u64, String> {
        let answer = self.get(target).await?;
        answer["meta"]["total"].as_u64().ok_or_else(|| format!("{target} has no meta.total"))
    }

    async fn done(
        &mut self,
        method: &str,
        target: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Value, String> {
        match self.call(method, target, key, body).await? {
            Answer::Done(answer) => Ok(answer),
            Answer::Conflict(answer) => Err(format!("{method} {target} was answered with 409: {answer}")),
        }
    }

    /// Anything but 2xx and 409 is an error that shows the server's answer.
    async fn call(
        &mut self,
        method: &str,
        target: &str,
        idempotency_key: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Answer, String> {
        let body = body.map(Value::to_string);
        let mut message = Vec::new();
        let request =
            Request { method, target, key: Some(&self.key), idempotency_key, body: body.as_deref() };
        request.render(&self.authority, &mut message);
        let answer =
            self.connection.send(&message).await.map_err(|fault| format!("{method} {target}: {fault}"))?;
        if !(200..300).contains(&answer.status) && answer.status != 409 {
            let sent = body.map(|body| format!("\n  sent:   {body}")).unwrap_or_default();
            return Err(format!(
                "{method} {target} was answered with {}{sent}\n  answer: {}",
                answer.status,
                answer.text()
            ));
        }
        let value = serde_json::from_slice(answer.body)
            .map_err(|fault| format!("{method} {target}: the answer is not JSON: {fault}"))?;
        Ok(if answer.status == 409 { Answer::Conflict(value) } else { Answer::Done(value) })
    }
}

pub(crate) fn text<'v>(entry: &'v Value, field: &str) -> Result<&'v str, String> {
    entry[field].as_str().ok_or_else(|| format!("no {field} in {entry}"))
}
