//! What a step is about to do, made of its definition and of what is known by then. Pure: the same for a run and for a
//! test of a flow.

use chassis_base::Account;
use chassis_base::formats::email;
use chassis_base::time::midnight;
use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use serde_json::{Map, Value, json};

use crate::duration;
use crate::event::rfc3339;
use crate::flow::definition::{Approve, Http, HttpMethod, Kind, Mail, Wait};
use crate::template::{Engine, Rendering};

/// The time of day at which a wait for a date ends.
const MORNING: NaiveTime = NaiveTime::from_hms_opt(9, 0, 0).expect("a time");
/// Most recipients of a mail.
const MAX_RECIPIENTS: usize = 20;

/// A step with everything in it rendered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Prepared {
    /// The arguments.
    Call(Value),
    /// `method`, `url`, `headers` and `body`.
    Http(Value),
    Mail(Letter),
    Wait(DateTime<Utc>),
    When(bool),
    /// What is asked, and until when there is time.
    Approve(String, Option<DateTime<Utc>>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    pub to: Vec<String>,
    pub cc: Vec<String>,
    pub reply_to: String,
    pub subject: String,
    pub text: String,
}

impl Prepared {
    /// What is kept of it: the same at every attempt.
    pub fn input(&self) -> Option<Value> {
        match self {
            Self::Call(input) | Self::Http(input) => Some(input.clone()),
            Self::Mail(letter) => Some(json!({
                "to": letter.to, "cc": letter.cc, "reply_to": letter.reply_to, "subject": letter.subject,
                "text": letter.text,
            })),
            Self::Wait(until) => Some(json!({"until": rfc3339(*until)})),
            Self::Approve(title, until) => Some(json!({"title": title, "until": until.map(rfc3339)})),
            Self::When(_) => None,
        }
    }
}

/// What is known when a step begins.
pub(crate) struct Known<'a> {
    pub event: &'a Value,
    /// `outcome`, `answer` and `error` of earlier steps, by id.
    pub steps: Map<String, Value>,
    pub account: (&'a Account, &'a str),
    pub run: (String, &'a str),
    pub now: DateTime<Utc>,
}

impl Known<'_> {
    /// As templates see it.
    pub fn scope(&self) -> Value {
        let (account, name) = self.account;
        json!({
            "event": self.event,
            "data": self.event.get("data").cloned().unwrap_or_default(),
            "steps": self.steps,
            "account": {
                "id": account.id.to_string(), "name": name, "country": account.country,
                "timezone": account.timezone.name(), "currency": account.currency,
            },
            "run": {"id": self.run.0, "flow_name": self.run.1},
            "now": rfc3339(self.now),
            "today": self.now.with_timezone(&account.timezone).date_naive().to_string(),
        })
    }
}

/// How a step that has come to its end is seen by later ones.
pub(crate) fn seen(outcome: &str, answer: &Value, error: &str) -> Value {
    json!({"outcome": outcome, "answer": answer, "error": error})
}

/// Renders a step; the error says what is wrong with it.
pub(crate) fn prepare(
    kind: Kind<'_>,
    scope: &Value,
    (now, zone): (DateTime<Utc>, Tz),
    engine: &Engine,
) -> Result<Prepared, String> {
    let rendering = &engine.rendering(scope);
    match kind {
        Kind::Call(call) => rendering.render_all(&Value::Object(call.with.clone())).map(Prepared::Call),
        Kind::Http(http) => request(http, scope, rendering).map(Prepared::Http),
        Kind::Mail(mail) => letter(mail, rendering).map(Prepared::Mail),
        Kind::Wait(wait) => until(wait, (now, zone), rendering).map(Prepared::Wait),
        Kind::When(condition) => rendering.condition(condition).map(Prepared::When),
        Kind::Approve(Approve { title, within, .. }) => {
            let limit = within.as_deref().and_then(duration::parse).map(|within| now + within);
            Ok(Prepared::Approve(rendering.render_text(title)?, limit))
        }
    }
}

fn request(http: &Http, scope: &Value, rendering: &Rendering<'_>) -> Result<Value, String> {
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

fn letter(mail: &Mail, rendering: &Rendering<'_>) -> Result<Letter, String> {
    let addresses = |name: &str, text: &str| -> Result<Vec<String>, String> {
        let rendered = rendering.render_text(text).map_err(|error| format!("{name}: {error}"))?;
        if rendered.trim().is_empty() {
            return Ok(Vec::new());
        }
        let several = email::normalise_several(&rendered)
            .ok_or_else(|| format!("{name}: `{rendered}` is no e-mail address"))?;
        Ok(several.split(',').map(str::to_owned).collect())
    };
    let (to, cc) = (addresses("to", &mail.to)?, addresses("cc", &mail.cc)?);
    if to.is_empty() {
        return Err("to: there is no address to send to".to_owned());
    }
    if to.len() + cc.len() > MAX_RECIPIENTS {
        return Err(format!("to: a mail goes to at most {MAX_RECIPIENTS} addresses"));
    }
    let reply_to = addresses("reply_to", &mail.reply_to)?.into_iter().next().unwrap_or_default();
    let text =
        |name: &str, text: &str| rendering.render_text(text).map_err(|error| format!("{name}: {error}"));
    Ok(Letter { to, cc, reply_to, subject: text("subject", &mail.subject)?, text: text("text", &mail.text)? })
}

fn until(
    wait: &Wait,
    (now, zone): (DateTime<Utc>, Tz),
    rendering: &Rendering<'_>,
) -> Result<DateTime<Utc>, String> {
    if let Some(span) = &wait.span {
        let span = duration::parse(span).ok_or_else(|| format!("for {}", duration::FORM))?;
        return Ok(now + span);
    }
    let text = rendering.render_text(wait.until.as_deref().unwrap_or_default())?;
    let text = text.trim();
    if let Ok(day) = text.parse::<NaiveDate>() {
        let time = wait.at.as_deref().and_then(|at| NaiveTime::parse_from_str(at, "%H:%M").ok());
        return Ok(moment(day, time.unwrap_or(MORNING), zone));
    }
    let time = DateTime::parse_from_rfc3339(text);
    time.map(|time| time.to_utc()).map_err(|_| format!("until: `{text}` is neither a date nor a time"))
}

/// A time of day in a zone; one that the clock leaves out counts from the day's beginning.
fn moment(day: NaiveDate, time: NaiveTime, zone: Tz) -> DateTime<Utc> {
    let found = zone.from_local_datetime(&day.and_time(time)).earliest();
    let since_midnight = time.signed_duration_since(NaiveTime::MIN);
    found.map_or_else(|| midnight(day, zone) + since_midnight, |time| time.to_utc())
}

/// The longest that a run waits; a date of the data may be any.
pub(crate) const LONGEST_WAIT: TimeDelta = TimeDelta::days(5 * 366);

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(wait: &Wait, data: &Value) -> Result<String, String> {
        let now = chassis_testing::moment();
        let zone = chrono_tz::Europe::Amsterdam;
        let scope = json!({"data": data});
        let prepared = prepare(Kind::Wait(wait), &scope, (now, zone), &Engine::default())?;
        let Prepared::Wait(until) = prepared else { panic!("a wait") };
        Ok(until.to_rfc3339())
    }

    #[test]
    fn a_wait_ends_on_the_accounts_morning_or_at_its_time() {
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
    fn a_time_that_the_clock_leaves_out_comes_all_the_same() {
        let day = NaiveDate::from_ymd_opt(2026, 3, 29).unwrap();
        let time = NaiveTime::from_hms_opt(2, 30, 0).unwrap();
        assert_eq!(moment(day, time, chrono_tz::Europe::Amsterdam).to_rfc3339(), "2026-03-29T01:30:00+00:00");
    }

    #[test]
    fn a_mail_without_a_proper_address_says_which() {
        let mail = |to: &str| Mail {
            to: to.into(),
            cc: String::new(),
            reply_to: String::new(),
            subject: "S".into(),
            text: "T".into(),
        };
        let scope = json!({"data": {"email": "a@example.com, b@example.com", "none": ""}});
        let prepared = |to: &str| letter(&mail(to), &Engine::default().rendering(&scope));
        assert_eq!(prepared("{{ data.email }}").unwrap().to, ["a@example.com", "b@example.com"]);
        assert!(prepared("{{ data.none }}").unwrap_err().starts_with("to: "));
        assert!(prepared("nobody").unwrap_err().contains("nobody"));
    }
}
