//! Whether a definition can be run: checks everything that can be known before an event comes. Pure.

use std::collections::HashSet;

use chassis_base::Timezone;
use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use proto::api::Fault;
use proto::{Faults, did_you_mean};

use super::kind::Kind;
use super::model::{Definition, Http, Mail, Retry, Step, Trigger, Wait};
use super::{methods, read, schedule};
use crate::event::rules::{BUILT_IN, canonical, is_event_name};
use crate::template::{self, is_template};
use crate::{duration, egress};

const MAX_STEPS: usize = 100;
const MAX_ID: usize = 64;
const MAX_ATTEMPTS: u32 = 20;
const MAX_TIMEOUT: TimeDelta = TimeDelta::seconds(60);
const MAX_BACKOFF: TimeDelta = TimeDelta::hours(1);
const MAX_WAIT: TimeDelta = TimeDelta::days(366);
const MAX_EVENT: usize = 128;
/// Headers that this service or the connection sets.
const RESERVED_HEADERS: [&str; 8] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "idempotency-key",
    "te",
    chassis_rpc::call::AUTOMATION_DEPTH,
];

/// What the checks of a definition depend on besides its text.
#[derive(Clone, Copy)]
pub(crate) struct CheckContext<'c> {
    /// For schedules, which must have a next time.
    pub now: DateTime<Utc>,
    pub zone: Timezone,
    /// The scopes of whoever applies the definition: its steps may not do more.
    pub scopes: &'c [String],
}

/// Reads and checks a definition. Adds every fault, with a pointer below `at`; a definition with faults must not be used.
pub(crate) fn parse(
    text: &str,
    at: &str,
    context: CheckContext<'_>,
    faults: &mut Faults,
) -> Option<Definition> {
    let definition = read::read(text, at, faults)?;
    check(&definition, at, context, faults);
    Some(definition)
}

fn check(definition: &Definition, at: &str, context: CheckContext<'_>, faults: &mut Faults) {
    let mut check = Check { ids: HashSet::new(), context, faults };
    check.short(&definition.name, at, "name", true);
    check.short(&definition.category, at, "category", false);
    if definition.description.chars().count() > 65_535 || definition.description.contains('\0') {
        check.add(
            at,
            "/description",
            Fault::TooLong,
            "description must have at most 65535 characters of text",
        );
    }
    check.trigger(&definition.trigger, &format!("{at}/trigger"));
    let count = definition.all_steps().len();
    if count == 0 || count > MAX_STEPS {
        let detail = format!("a flow must have 1 to {MAX_STEPS} steps, those inside branches included");
        check.add(at, "/steps", if count == 0 { Fault::Required } else { Fault::TooMany }, detail);
    }
    check.steps(&definition.steps, &format!("{at}/steps"), &mut HashSet::new());
}

struct Check<'c, 'd> {
    ids: HashSet<&'d str>,
    context: CheckContext<'c>,
    faults: &'c mut Faults,
}

impl<'d> Check<'_, 'd> {
    /// Adds a fault of the value at `pointer`, which is relative to `at`.
    fn add(&mut self, at: &str, pointer: &str, fault: Fault, detail: impl Into<String>) {
        self.faults.add_at(format!("{at}{pointer}"), fault, detail);
    }

    fn short(&mut self, text: &str, at: &str, name: &str, required: bool) {
        let pointer = format!("/{name}");
        if required && text.trim().is_empty() {
            self.add(at, &pointer, Fault::Required, format!("{name} is required"));
        }
        if text.chars().count() > 255 {
            self.add(at, &pointer, Fault::TooLong, format!("{name} must have at most 255 characters"));
        }
        if text.contains('\0') {
            self.add(at, &pointer, Fault::BadText, format!("{name} must not contain the character U+0000"));
        }
    }

    fn trigger(&mut self, trigger: &Trigger, at: &str) {
        match trigger {
            Trigger::Event(name) if !BUILT_IN.contains(&canonical(name)) => {
                let meant = did_you_mean(name, BUILT_IN);
                let detail =
                    format!("there is no built-in event {name}; for a key of your own use custom{meant}");
                self.add(at, "/event", Fault::NotAllowed, detail);
            }
            Trigger::Custom(key) if key.is_empty() || key.len() > MAX_EVENT || !is_event_name(key) => {
                let detail = format!("custom must have 1 to {MAX_EVENT} of the characters a-z 0-9 _ . : -");
                self.add(at, "/custom", Fault::BadFormat, detail);
            }
            Trigger::Schedule(line) => {
                if let Err(why) = schedule::next(line, self.context.now, self.context.zone) {
                    self.add(
                        at,
                        "/schedule",
                        Fault::BadFormat,
                        format!("schedule is not a cron line: {why}"),
                    );
                }
            }
            Trigger::Event(_) | Trigger::Custom(_) | Trigger::Manual => {}
        }
    }

    /// `earlier` are the ids of the steps before; the ids of `steps` are added to them.
    fn steps(&mut self, steps: &'d [Step], at: &str, earlier: &mut HashSet<&'d str>) {
        for (index, step) in steps.iter().enumerate() {
            let at = format!("{at}/{index}");
            self.step(step, &at, earlier);
            earlier.insert(&step.id);
            let before = earlier.clone();
            // A branch cannot use the steps of another branch of the same step, since one of them is not taken.
            for branch in step.branches() {
                let mut inside = before.clone();
                self.steps(branch.steps, &format!("{at}{}", branch.pointer), &mut inside);
                earlier.extend(inside);
            }
        }
    }

    fn step(&mut self, step: &'d Step, at: &str, earlier: &HashSet<&'d str>) {
        self.id(step, at);
        let kinds: Vec<Kind<'_>> = step.kinds().collect();
        let [kind] = kinds.as_slice() else {
            let detail = "a step must have exactly one of call, http, mail, wait, when and approve";
            self.add(at, "", Fault::Conflicting, detail);
            return;
        };
        let branches = step.then.len() + step.otherwise.len();
        match kind {
            Kind::When(_) if branches == 0 => {
                self.add(at, "/then", Fault::Required, "a condition needs steps in then or in else");
            }
            Kind::When(_) => {}
            _ if branches > 0 => {
                self.add(at, "", Fault::Conflicting, "only a step with when has then and else");
            }
            _ => {}
        }
        if !matches!(kind, Kind::Call(_) | Kind::Http(_)) && (step.retry.is_some() || step.timeout.is_some())
        {
            self.add(at, "", Fault::Conflicting, "only call and http have retry and timeout");
        }
        self.limits(step, at);
        self.kind(*kind, at, earlier);
    }

    fn id(&mut self, step: &'d Step, at: &str) {
        let id = step.id.as_str();
        let plain = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !id.starts_with(|c: char| c.is_ascii_alphabetic()) || !plain || id.len() > MAX_ID {
            let detail = format!("id must be a letter and then letters, digits and _, at most {MAX_ID}");
            self.add(at, "/id", Fault::BadFormat, detail);
        }
        if !self.ids.insert(id) {
            self.add(at, "/id", Fault::Repeated, format!("there is another step {id}"));
        }
    }

    fn limits(&mut self, step: &Step, at: &str) {
        if let Some(retry) = &step.retry {
            self.retry(retry, &format!("{at}/retry"));
        }
        self.span(step.timeout.as_deref(), at, "/timeout", MAX_TIMEOUT);
    }

    fn retry(&mut self, retry: &Retry, at: &str) {
        let Retry { max_attempts, initial_backoff, max_backoff, first_wait, most_wait } = retry;
        if !(1..=MAX_ATTEMPTS).contains(max_attempts) {
            let detail = format!("max_attempts must be between 1 and {MAX_ATTEMPTS}");
            self.add(at, "/max_attempts", Fault::OutOfRange, detail);
        }
        for (name, value, old_name, old_value) in [
            ("initial_backoff", initial_backoff, "first_wait", first_wait),
            ("max_backoff", max_backoff, "most_wait", most_wait),
        ] {
            if value.is_some() && old_value.is_some() {
                let detail = format!("{old_name} is the old name of {name}; give {name} only");
                self.add(at, &format!("/{old_name}"), Fault::Conflicting, detail);
            }
            self.span(value.as_deref(), at, &format!("/{name}"), MAX_BACKOFF);
            self.span(old_value.as_deref(), at, &format!("/{old_name}"), MAX_BACKOFF);
        }
    }

    fn span(&mut self, text: Option<&str>, at: &str, pointer: &str, max: TimeDelta) {
        let Some(text) = text else { return };
        match duration::parse(text) {
            None => self.add(at, pointer, Fault::BadFormat, duration::FORM),
            Some(span) if span > max => {
                let detail = format!("must be at most {} seconds", max.num_seconds());
                self.add(at, pointer, Fault::OutOfRange, detail);
            }
            Some(_) => {}
        }
    }

    fn kind(&mut self, kind: Kind<'_>, at: &str, earlier: &HashSet<&str>) {
        match kind {
            Kind::Call(call) => {
                self.templates(
                    &serde_json::Value::Object(call.with.clone()),
                    &format!("{at}/call/with"),
                    earlier,
                );
                match methods::find(&call.method) {
                    Ok(method) => {
                        if let Err(why) = method.check_scopes(self.context.scopes) {
                            self.add(at, "/call/method", Fault::NotAllowed, why);
                        }
                        method.check(&call.with, &format!("{at}/call/with"), self.faults);
                    }
                    Err(why) => self.add(at, "/call/method", Fault::UnknownReference, why),
                }
            }
            Kind::Http(http) => self.http(http, at, earlier),
            Kind::Mail(mail) => self.mail(mail, at, earlier),
            Kind::Wait(wait) => self.wait(wait, at, earlier),
            Kind::When(condition) => {
                if let Err(why) = template::check_condition(condition, earlier) {
                    self.add(at, "/when", Fault::BadFormat, format!("when is not a condition: {why}"));
                }
            }
            Kind::Approve(approve) => {
                self.template(&approve.title, at, "/approve/title", earlier);
                self.span(approve.within.as_deref(), at, "/approve/within", MAX_WAIT);
            }
        }
    }

    fn http(&mut self, http: &Http, at: &str, earlier: &HashSet<&str>) {
        self.template(&http.url, at, "/http/url", earlier);
        if !is_template(&http.url)
            && let Err(why) = egress::parse_url(&http.url)
        {
            self.add(at, "/http/url", Fault::BadUrl, format!("url {why}"));
        }
        for (name, value) in &http.headers {
            let pointer = format!("/http/headers/{}", name.replace('~', "~0").replace('/', "~1"));
            let lower = name.to_ascii_lowercase();
            let reserved = RESERVED_HEADERS.contains(&lower.as_str()) || lower.starts_with("webhook-");
            if reserved || http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                self.add(at, &pointer, Fault::BadHeader, format!("{name} cannot be set here"));
            }
            self.template(value, at, &pointer, earlier);
        }
        if let Some(body) = &http.body {
            self.templates(body, &format!("{at}/http/body"), earlier);
        }
    }

    fn mail(&mut self, mail: &Mail, at: &str, earlier: &HashSet<&str>) {
        let Mail { to, cc, reply_to, subject, text } = mail;
        for (name, value) in
            [("to", to), ("cc", cc), ("reply_to", reply_to), ("subject", subject), ("text", text)]
        {
            let pointer = format!("/mail/{name}");
            self.template(value, at, &pointer, earlier);
            let is_required = matches!(name, "to" | "subject" | "text");
            if is_required && value.trim().is_empty() {
                self.add(at, &pointer, Fault::Required, format!("{name} is required"));
            }
            let has_addresses = matches!(name, "to" | "cc" | "reply_to") && !value.trim().is_empty();
            if has_addresses
                && !is_template(value)
                && chassis_base::formats::email::normalise_several(value).is_none()
            {
                let detail = format!("{name} must be e-mail addresses, separated by commas");
                self.add(at, &pointer, Fault::BadEmail, detail);
            }
        }
    }

    fn wait(&mut self, wait: &Wait, at: &str, earlier: &HashSet<&str>) {
        if wait.span.is_some() == wait.until.is_some() {
            self.add(at, "/wait", Fault::Conflicting, "wait must have either for or until");
        }
        self.span(wait.span.as_deref(), at, "/wait/for", MAX_WAIT);
        if let Some(until) = &wait.until {
            self.template(until, at, "/wait/until", earlier);
        }
        if let Some(time) = &wait.at {
            if wait.until.is_none() {
                self.add(at, "/wait/at", Fault::Conflicting, "at belongs to until");
            }
            if NaiveTime::parse_from_str(time, "%H:%M").is_err() {
                self.add(at, "/wait/at", Fault::BadFormat, "at must be a time of day such as 09:00");
            }
        }
    }

    fn template(&mut self, text: &str, at: &str, pointer: &str, earlier: &HashSet<&str>) {
        if let Err(why) = template::check(text, earlier) {
            self.add(at, pointer, Fault::BadFormat, format!("the template cannot be used: {why}"));
        }
    }

    fn templates(&mut self, value: &serde_json::Value, at: &str, earlier: &HashSet<&str>) {
        match value {
            serde_json::Value::String(text) => self.template(text, at, "", earlier),
            serde_json::Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.templates(item, &format!("{at}/{index}"), earlier);
                }
            }
            serde_json::Value::Object(fields) => {
                for (name, field) in fields {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    self.templates(field, &format!("{at}/{name}"), earlier);
                }
            }
            _ => {}
        }
    }
}
