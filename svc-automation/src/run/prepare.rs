//! Renders a step: what it is about to do, made from its definition and the results of earlier steps. Pure: the same for a
//! run and for a test of a flow.

use chassis_base::formats::email;
use chassis_base::time::midnight;
use chassis_base::{Account, Timezone};
use chrono::{DateTime, NaiveDate, NaiveTime, SubsecRound, TimeZone, Utc};
use serde_json::{Map, Value, json};

use crate::definition::Kind;
use crate::definition::model::{Approve, Http, HttpMethod, Mail, Wait};
use crate::duration;
use crate::event::rfc3339;
use crate::template::{Engine, Rendering};

/// The time of day at which a wait for a date ends, unless the step names one.
const DEFAULT_TIME: NaiveTime = NaiveTime::from_hms_opt(9, 0, 0).expect("a time");
const MAX_RECIPIENTS: usize = 20;

/// A step with all its templates rendered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Prepared {
    /// The arguments.
    Call(Value),
    /// `method`, `url`, `headers` and `body`.
    Http(Value),
    Mail(PreparedMail),
    Wait(DateTime<Utc>),
    When(bool),
    Approve {
        title: String,
        /// Until when there is time to decide.
        until: Option<DateTime<Utc>>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PreparedMail {
    pub to: Vec<String>,
    pub cc: Vec<String>,
    pub reply_to: String,
    pub subject: String,
    pub text: String,
}

impl Prepared {
    /// What is stored of it, and sent again unchanged at every attempt.
    pub(crate) fn input(&self) -> Option<Value> {
        match self {
            Self::Call(input) | Self::Http(input) => Some(input.clone()),
            Self::Mail(mail) => Some(json!({
                "to": mail.to, "cc": mail.cc, "reply_to": mail.reply_to, "subject": mail.subject,
                "text": mail.text,
            })),
            Self::Wait(until) => Some(json!({"until": rfc3339(*until)})),
            Self::Approve { title, until } => Some(json!({"title": title, "until": until.map(rfc3339)})),
            Self::When(_) => None,
        }
    }
}

/// What templates can refer to when a step starts.
pub(crate) struct TemplateContext<'a> {
    pub event: &'a Value,
    /// The results of earlier steps, by id; see [`step_result`].
    pub steps: Map<String, Value>,
    pub account: &'a Account,
    pub account_name: &'a str,
    pub run_id: String,
    pub flow_name: &'a str,
    pub now: DateTime<Utc>,
}

impl TemplateContext<'_> {
    /// The names of templates, with their values.
    pub(crate) fn scope(&self) -> Value {
        let account = self.account;
        json!({
            "event": self.event,
            "data": self.event.get("data").cloned().unwrap_or_default(),
            "steps": self.steps,
            "account": {
                "id": account.id.to_string(), "name": self.account_name, "country": account.country,
                "timezone": account.timezone.name(), "currency": account.currency,
            },
            "run": {"id": self.run_id, "flow_name": self.flow_name},
            "now": rfc3339(self.now),
            "today": self.now.with_timezone(&account.timezone).date_naive().to_string(),
        })
    }
}

/// The result of a step that has ended, as templates of later steps see it.
pub(crate) fn step_result(outcome: &str, answer: &Value, error: &str) -> Value {
    json!({"outcome": outcome, "answer": answer, "error": error})
}

/// A point in time, with the zone that dates and times of day are in.
#[derive(Clone, Copy)]
pub(crate) struct LocalTime {
    pub now: DateTime<Utc>,
    pub zone: Timezone,
}

/// Renders a step; the error says what is wrong with it.
pub(crate) fn prepare(
    kind: Kind<'_>,
    scope: &Value,
    time: LocalTime,
    engine: &Engine,
) -> Result<Prepared, String> {
    let rendering = &engine.rendering(scope);
    match kind {
        Kind::Call(call) => rendering.render_all(&Value::Object(call.with.clone())).map(Prepared::Call),
        Kind::Http(http) => prepare_request(http, scope, rendering).map(Prepared::Http),
        Kind::Mail(mail) => prepare_mail(mail, rendering).map(Prepared::Mail),
        Kind::Wait(wait) => wait_end(wait, time, rendering).map(Prepared::Wait),
        Kind::When(condition) => rendering.condition(condition).map(Prepared::When),
        Kind::Approve(Approve { title, within, .. }) => {
            let until = within.as_deref().and_then(duration::parse).map(|within| time.now + within);
            Ok(Prepared::Approve { title: rendering.render_text(title)?, until })
        }
    }
}

fn prepare_request(http: &Http, scope: &Value, rendering: &Rendering<'_>) -> Result<Value, String> {
    let url = rendering.render_text(&http.url)?;
    let mut headers = Map::new();
    for (name, value) in &http.headers {
        headers.insert(name.clone(), rendering.render_text(value)?.into());
    }
    let body = match &http.body {
        Some(body) => rendering.render_all(body)?,
        None => scope.get("event").cloned().unwrap_or_default(),
    };
    let method = match http.method {
        HttpMethod::Get => "GET",
        HttpMethod::Post => "POST",
        HttpMethod::Put => "PUT",
        HttpMethod::Patch => "PATCH",
        HttpMethod::Delete => "DELETE",
    };
    Ok(json!({"method": method, "url": url, "headers": headers, "body": body}))
}

fn prepare_mail(mail: &Mail, rendering: &Rendering<'_>) -> Result<PreparedMail, String> {
    let addresses = |name: &str, text: &str| -> Result<Vec<String>, String> {
        let rendered = rendering.render_text(text).map_err(|error| format!("{name}: {error}"))?;
        if rendered.trim().is_empty() {
            return Ok(Vec::new());
        }
        let several = email::normalise_several(&rendered)
            .ok_or_else(|| format!("{name}: `{rendered}` is not an e-mail address"))?;
        Ok(several.split(',').map(str::to_owned).collect())
    };
    let to = addresses("to", &mail.to)?;
    let cc = addresses("cc", &mail.cc)?;
    if to.is_empty() {
        return Err("to: there is no address to send to".to_owned());
    }
    if to.len() + cc.len() > MAX_RECIPIENTS {
        return Err(format!("to: a mail goes to at most {MAX_RECIPIENTS} addresses"));
    }
    let reply_to = addresses("reply_to", &mail.reply_to)?.into_iter().next().unwrap_or_default();
    let text =
        |name: &str, text: &str| rendering.render_text(text).map_err(|error| format!("{name}: {error}"));
    Ok(PreparedMail {
        to,
        cc,
        reply_to,
        subject: text("subject", &mail.subject)?,
        text: text("text", &mail.text)?,
    })
}

fn wait_end(wait: &Wait, time: LocalTime, rendering: &Rendering<'_>) -> Result<DateTime<Utc>, String> {
    if let Some(span) = &wait.span {
        let span = duration::parse(span).ok_or_else(|| format!("for {}", duration::FORM))?;
        return Ok(time.now + span);
    }
    let text = rendering.render_text(wait.until.as_deref().unwrap_or_default())?;
    let text = text.trim();
    if let Ok(day) = text.parse::<NaiveDate>() {
        let at = wait.at.as_deref().and_then(|at| NaiveTime::parse_from_str(at, "%H:%M").ok());
        return Ok(instant(day, at.unwrap_or(DEFAULT_TIME), time.zone));
    }
    // In milliseconds, as every time that is stored and shown.
    let until = DateTime::parse_from_rfc3339(text).map(|until| until.to_utc().trunc_subsecs(3));
    until.map_err(|_| format!("until: `{text}` is neither a date nor a time"))
}

/// The instant of a time of day in a zone. One that the clocks skip is counted from midnight.
fn instant(day: NaiveDate, time: NaiveTime, zone: Timezone) -> DateTime<Utc> {
    let found = zone.from_local_datetime(&day.and_time(time)).earliest();
    let since_midnight = time.signed_duration_since(NaiveTime::MIN);
    found.map_or_else(|| midnight(day, zone) + since_midnight, |time| time.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(wait: &Wait, data: &Value) -> Result<String, String> {
        let now = chassis_testing::moment();
        let zone = Timezone::AMSTERDAM;
        let scope = json!({"data": data});
        let prepared = prepare(Kind::Wait(wait), &scope, LocalTime { now, zone }, &Engine::default())?;
        let Prepared::Wait(until) = prepared else { panic!("a wait") };
        Ok(until.to_rfc3339())
    }

    #[test]
    fn a_wait_for_a_date_ends_at_nine_in_the_accounts_zone_or_at_its_own_time() {
        let until = |at: Option<&str>| Wait {
            span: None,
            until: Some("{{ data.due }}".into()),
            at: at.map(str::to_owned),
        };
        let day = json!({"due": "2026-12-01"});
        assert_eq!(wait(&until(None), &day).unwrap(), "2026-12-01T08:00:00+00:00");
        assert_eq!(wait(&until(Some("17:30")), &day).unwrap(), "2026-12-01T16:30:00+00:00");
        let time = json!({"due": "2026-12-01T10:00:00+02:00"});
        assert_eq!(wait(&until(None), &time).unwrap(), "2026-12-01T08:00:00+00:00");
        for wrong in [json!({"due": "soon"}), json!({"due": null}), json!({})] {
            assert!(wait(&until(None), &wrong).is_err(), "{wrong}");
        }
        let span = Wait { span: Some("3d".into()), until: None, at: None };
        assert_eq!(wait(&span, &json!({})).unwrap(), "2026-11-18T11:00:00.123+00:00");
    }

    #[test]
    fn a_time_that_the_clocks_skip_is_counted_from_midnight() {
        let day = NaiveDate::from_ymd_opt(2026, 3, 29).unwrap();
        let time = NaiveTime::from_hms_opt(2, 30, 0).unwrap();
        assert_eq!(instant(day, time, Timezone::AMSTERDAM).to_rfc3339(), "2026-03-29T01:30:00+00:00");
    }

    #[test]
    fn the_error_of_a_mail_names_the_bad_address() {
        let mail = |to: &str| Mail {
            to: to.into(),
            cc: String::new(),
            reply_to: String::new(),
            subject: "S".into(),
            text: "T".into(),
        };
        let scope = json!({"data": {"email": "a@example.com, b@example.com", "none": ""}});
        let prepared = |to: &str| prepare_mail(&mail(to), &Engine::default().rendering(&scope));
        assert_eq!(prepared("{{ data.email }}").unwrap().to, ["a@example.com", "b@example.com"]);
        assert!(prepared("{{ data.none }}").unwrap_err().starts_with("to: "));
        assert!(prepared("nobody").unwrap_err().contains("nobody"));
    }
}
