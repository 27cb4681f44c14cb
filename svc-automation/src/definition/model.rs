//! A flow as its author writes it. The published JSON Schema is generated from these types, doc comments included.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

/// A flow: a trigger, and the steps that are taken when it fires.
///
/// Texts of steps may be templates (`{{ data.number }}`). They can use `event` (id, type, entity_type, entity_id,
/// occurred_at, data), `data` (the event's), `steps` (outcome, answer and error of earlier steps, by id), `account`
/// (id, name, country, timezone, currency), `run` (id, flow_name), `now` and `today`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Definition {
    /// Unique in the account: applying a definition of the same name makes a new version of the flow.
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// For lists of flows.
    #[serde(default)]
    pub category: String,
    pub trigger: Trigger,
    /// At least one, at most 100 with those inside branches.
    pub steps: Vec<Step>,
}

/// What starts a flow.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trigger {
    /// A built-in event, such as `invoice.paid`.
    Event(String),
    /// A key of your own, fired through one of the trigger routes.
    Custom(String),
    /// A cron line of five fields, in the account's time zone: `0 9 * * 1` is every Monday at nine.
    Schedule(String),
    /// Started by a person.
    Manual,
}

/// One step. It has exactly one of `call`, `http`, `mail`, `wait`, `when` and `approve`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Unique in the flow: a letter, then letters, digits and `_`, at most 64. Later steps use it to name this one.
    pub id: String,
    /// Call an rpc of the product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
    /// Send a signed HTTP request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Http>,
    /// Send a mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<Mail>,
    /// Continue later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// A condition, such as `data.total_incl_vat > 1000`: takes `then` when it holds, `else` when not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Step>,
    #[serde(default, rename = "else", skip_serializing_if = "Vec::is_empty")]
    pub otherwise: Vec<Step>,
    /// Wait for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<Approve>,
    /// Further attempts after a failure, for `call` and `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// What a failure of this step does to the run.
    #[serde(default)]
    pub on_error: OnError,
    /// How long one attempt may take, at most `60s`, for `call` and `http`. Default `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    /// For example `admin.work.v1.TaskService/CreateTask`.
    pub method: String,
    /// The request message as JSON, with the names of the reference. Texts may be templates.
    #[serde(default)]
    pub with: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Http {
    /// http or https; may be a template.
    pub url: String,
    #[serde(default)]
    pub method: HttpMethod,
    /// Further headers; values may be templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Sent as JSON. Texts may be templates. Without it the event is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum HttpMethod {
    Get,
    #[default]
    Post,
    Put,
    Patch,
    Delete,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mail {
    /// Addresses, separated by commas; may be a template.
    pub to: String,
    #[serde(default)]
    pub cc: String,
    #[serde(default)]
    pub reply_to: String,
    pub subject: String,
    /// Plain text.
    pub text: String,
}

/// Either `for` or `until`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wait {
    /// A duration: `90s`, `15m`, `2h`, `3d`, `1d12h`.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
    /// A date or a time, usually from the data: `{{ data.due_date }}`. For one in the past there is no wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The time of day for a date of `until`, in the account's time zone. Default `09:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// Approved, the run continues. Rejected or expired, the steps of `otherwise` are taken and the run ends.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approve {
    /// The question; may be a template.
    pub title: String,
    /// The time to decide. Without it there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// Taken when it was rejected or has expired; `steps.<id>.outcome` tells which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub otherwise: Vec<Step>,
}

/// The delay between attempts doubles with every failure, less a random part of up to half.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retry {
    /// 1 to 20. Default 5.
    #[serde(default = "default_attempts")]
    pub max_attempts: u32,
    /// The delay after the first failure, at most an hour. Default `2s`.
    pub initial_backoff: Option<String>,
    /// The longest delay, at most an hour. Default `10m`.
    pub max_backoff: Option<String>,
    /// The old name of `initial_backoff`.
    #[schemars(extend("deprecated" = true))]
    pub first_wait: Option<String>,
    /// The old name of `max_backoff`.
    #[schemars(extend("deprecated" = true))]
    pub most_wait: Option<String>,
}

impl Retry {
    /// The delay after the first failure, under whichever of its names the author gave it.
    pub(crate) fn initial_backoff(&self) -> Option<&str> {
        self.initial_backoff.as_deref().or(self.first_wait.as_deref())
    }

    /// The longest delay, under whichever of its names the author gave it.
    pub(crate) fn max_backoff(&self) -> Option<&str> {
        self.max_backoff.as_deref().or(self.most_wait.as_deref())
    }
}

/// Writes the old names, which stored definitions keep: the release before this one, which may run beside it, reads no
/// others. It also means that a definition which differs in these names only is not a new version.
impl Serialize for Retry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Stored<'r> {
            max_attempts: u32,
            #[serde(skip_serializing_if = "Option::is_none")]
            first_wait: Option<&'r str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            most_wait: Option<&'r str>,
        }
        let stored = Stored {
            max_attempts: self.max_attempts,
            first_wait: self.initial_backoff(),
            most_wait: self.max_backoff(),
        };
        stored.serialize(serializer)
    }
}

pub(crate) const DEFAULT_ATTEMPTS: u32 = 5;

fn default_attempts() -> u32 {
    DEFAULT_ATTEMPTS
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnError {
    /// The run has failed.
    #[default]
    Fail,
    /// The run continues and ends as `partial`.
    Continue,
}

/// The JSON Schema of definitions.
pub(crate) fn schema() -> String {
    let schema = schemars::schema_for!(Definition);
    // Serialising a JSON value to text cannot fail.
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
