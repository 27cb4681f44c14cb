//! A flow as its author writes it. The published JSON Schema is made of these types, comments included.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A flow: what starts it, and the steps that are taken then.
///
/// Texts of steps may be templates (`{{ data.number }}`). They see `event` (id, type, entity_type, entity_id,
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
    /// A person.
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
    /// Send a signed request to an address outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Http>,
    /// Send a mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<Mail>,
    /// Go on later.
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
    /// How often to try, for `call` and `http`.
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
    /// A span of time: `90s`, `15m`, `2h`, `3d`, `1d12h`.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
    /// A date or a time, usually of the data: `{{ data.due_date }}`. One that is past does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The time of day for a date of `until`, in the account's time zone. Default `09:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// Approved, the run goes on. Rejected or too late, the steps of `otherwise` are taken and the run ends.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approve {
    /// What is asked; may be a template.
    pub title: String,
    /// How long there is to decide. Without it there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// Taken when it was rejected or too late; `steps.<id>.outcome` tells which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub otherwise: Vec<Step>,
}

/// The wait doubles with every failure, less a random part.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retry {
    /// 1 to 20. Default 5.
    #[serde(default = "default_attempts")]
    pub max_attempts: u32,
    /// After the first failure. Default `2s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_wait: Option<String>,
    /// At most, an hour. Default `10m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_wait: Option<String>,
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
    /// The run goes on and ends as `partial`.
    Continue,
}

/// What a step is, for those who have to do it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind<'d> {
    Call(&'d Call),
    Http(&'d Http),
    Mail(&'d Mail),
    Wait(&'d Wait),
    When(&'d str),
    Approve(&'d Approve),
}

impl Step {
    /// The one thing that the step does; the first, should it name several. `None` when it names none.
    pub fn kind(&self) -> Option<Kind<'_>> {
        self.kinds().next()
    }

    /// Everything that the step names; a checked one names exactly one.
    pub fn kinds(&self) -> impl Iterator<Item = Kind<'_>> {
        [
            self.call.as_ref().map(Kind::Call),
            self.http.as_ref().map(Kind::Http),
            self.mail.as_ref().map(Kind::Mail),
            self.wait.as_ref().map(Kind::Wait),
            self.when.as_deref().map(Kind::When),
            self.approve.as_ref().map(Kind::Approve),
        ]
        .into_iter()
        .flatten()
    }

    /// The steps inside of this one, branch by branch, with the name of the branch in the document.
    pub fn branches(&self) -> [(&'static str, &[Step]); 3] {
        let refused = self.approve.as_ref().map(|approve| approve.otherwise.as_slice()).unwrap_or_default();
        [
            ("/then", self.then.as_slice()),
            ("/else", self.otherwise.as_slice()),
            ("/approve/otherwise", refused),
        ]
    }
}

impl Kind<'_> {
    pub fn name(self) -> &'static str {
        match self {
            Self::Call(_) => "call",
            Self::Http(_) => "http",
            Self::Mail(_) => "mail",
            Self::Wait(_) => "wait",
            Self::When(_) => "when",
            Self::Approve(_) => "approve",
        }
    }

    /// Whether doing it changes something elsewhere.
    pub fn is_action(self) -> bool {
        matches!(self, Self::Call(_) | Self::Http(_) | Self::Mail(_))
    }
}

impl Trigger {
    pub fn key(&self) -> &str {
        match self {
            Self::Event(key) | Self::Custom(key) | Self::Schedule(key) => key,
            Self::Manual => "",
        }
    }

    /// As it is stored.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Event(_) => "event",
            Self::Custom(_) => "custom",
            Self::Schedule(_) => "schedule",
            Self::Manual => "manual",
        }
    }
}

impl Definition {
    /// All steps, those inside branches included, in the order of the document.
    pub fn all_steps(&self) -> Vec<&Step> {
        fn collect<'d>(steps: &'d [Step], all: &mut Vec<&'d Step>) {
            for step in steps {
                all.push(step);
                for (_, inner) in step.branches() {
                    collect(inner, all);
                }
            }
        }
        let mut all = Vec::new();
        collect(&self.steps, &mut all);
        all
    }
}

/// The JSON Schema of definitions.
pub(crate) fn schema() -> String {
    let schema = schemars::schema_for!(Definition);
    // Text of a value that was just made.
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
