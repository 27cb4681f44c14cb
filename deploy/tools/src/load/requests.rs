//! What clients send: a load is a request with placeholders, which are filled in anew for every request.

use std::collections::BTreeMap;

use deploy_tools::Result;
use deploy_tools::http::Request;
use regex_lite::{Captures, Regex};

/// What [`Target`] calls the ids of accounts.
pub(crate) const ACCOUNT: &str = "account";

/// How many deals a connection moves in turn.
const DEALS_OF_A_CONNECTION: usize = 50;

/// Where requests go, and the records that they may name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Target {
    pub authority: String,
    /// API keys. Of several, which are those of several accounts, each request has any.
    pub keys: Vec<String>,
    /// Ids of the account's records, by the name of their resource; also those of the phases that deals move to, and of
    /// the accounts if there are several.
    pub ids: BTreeMap<String, Vec<String>>,
}

impl Target {
    pub(crate) fn new(authority: &str, key: &str) -> Self {
        Self { authority: authority.to_owned(), keys: vec![key.to_owned()], ids: BTreeMap::new() }
    }

    /// Many accounts: each line of `text` has the id of one and a key of it.
    pub(crate) fn of_accounts(authority: &str, text: &str) -> Result<Self> {
        let parts = |line: &str| {
            let (id, key) = line.split_once(' ').ok_or("each account is a line with its id and a key")?;
            Ok::<_, &str>((id.to_owned(), key.to_owned()))
        };
        let (ids, keys) = text.lines().map(parts).collect::<Result<(Vec<_>, Vec<_>), _>>()?;
        if keys.is_empty() {
            return Err("the file of accounts is empty".into());
        }
        Ok(Self { authority: authority.to_owned(), keys, ids: BTreeMap::from([(ACCOUNT.to_owned(), ids)]) })
    }

    pub(crate) fn ids(&self, resource: &str) -> &[String] {
        self.ids.get(resource).map_or(&[], Vec::as_slice)
    }
}

/// A request with placeholders in path and body:
///
/// - `<number>`, the number of the request;
/// - `<10..99>`, any of these numbers, and `<a|b>`, any of these words;
/// - `<client>`, the id of any client, and so for all that [`Target`] has ids of, except that
/// - `<deal>` and `<phase>` take the connection's own deals one phase further at each turn, so that every move changes
///   something and connections do not wait for one another.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// For messages.
    pub name: String,
    pub path: String,
    /// JSON; without it the request is a GET.
    pub body: String,
    /// The status of a success.
    pub success: u16,
}

impl Load {
    pub(crate) fn get(path: &str) -> Self {
        Self { name: path.to_owned(), path: path.to_owned(), body: String::new(), success: 200 }
    }
}

/// The requests of one connection.
#[derive(Debug)]
pub(crate) struct Requests<'a> {
    target: &'a Target,
    load: &'a Load,
    placeholder: Regex,
    /// Makes the idempotency keys those of this connection.
    series: u64,
    sent: usize,
    message: Vec<u8>,
    /// Of the last request.
    pub path: String,
    pub idempotency_key: String,
}

impl<'a> Requests<'a> {
    pub(crate) fn new(target: &'a Target, load: &'a Load) -> Result<Self> {
        let placeholder = Regex::new("<([^>]+)>")?;
        let (message, path, idempotency_key) = (Vec::new(), String::new(), String::new());
        Ok(Self {
            target,
            load,
            placeholder,
            series: rand::random(),
            sent: 0,
            message,
            path,
            idempotency_key,
        })
    }

    /// The next request, as it is sent.
    pub(crate) fn next(&mut self, number: u64) -> &[u8] {
        self.path = self.fill_in(&self.load.path, number);
        let body = self.fill_in(&self.load.body, number);
        let (method, body) = if body.is_empty() { ("GET", None) } else { ("POST", Some(body.as_str())) };
        self.idempotency_key = body.map(|_| format!("{:016x}-{number}", self.series)).unwrap_or_default();
        let idempotency_key = body.map(|_| self.idempotency_key.as_str());
        let request = Request { method, target: &self.path, key: self.key(), idempotency_key, body };
        self.message.clear();
        request.render(&self.target.authority, &mut self.message);
        self.sent += 1;
        &self.message
    }

    fn key(&self) -> Option<&'a str> {
        let keys = &self.target.keys;
        keys.get(rand::random_range(0..keys.len().max(1))).map(String::as_str)
    }

    fn fill_in(&self, template: &str, number: u64) -> String {
        let value = |found: &Captures<'_>| self.value(&found[1], number);
        self.placeholder.replace_all(template, value).into_owned()
    }

    fn value(&self, word: &str, number: u64) -> String {
        let range = word.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..=to.parse().ok()?));
        if let Some(range) = range {
            return rand::random_range::<u64, _>(range).to_string();
        }
        let words: Vec<&str> = word.split('|').collect();
        match words.as_slice() {
            ["number"] => number.to_string(),
            [resource] => self.id(resource).to_owned(),
            words => words[rand::random_range(0..words.len())].to_owned(),
        }
    }

    /// Nothing when the account has none, which the service refuses.
    fn id(&self, resource: &str) -> &str {
        let ids = self.target.ids(resource);
        let turn = DEALS_OF_A_CONNECTION.min(self.target.ids("deal").len()).max(1);
        let first = usize::try_from(self.series >> 32).unwrap_or(0);
        let number = match resource {
            "deal" => first + self.sent % turn,
            "phase" => self.sent / turn + 1,
            _ => rand::random_range(0..ids.len().max(1)),
        };
        ids.get(number % ids.len().max(1)).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn target() -> Target {
        let ids =
            |name: &str, count| (name.to_owned(), (0..count).map(|number| format!("id{number}")).collect());
        let ids = BTreeMap::from([ids("client", 100), ids("deal", 100), ids("phase", 3)]);
        Target { ids, ..Target::new("h:1", "ba_x") }
    }

    fn paths(path: &str) -> HashSet<String> {
        let (target, load) = (target(), Load::get(path));
        let mut requests = Requests::new(&target, &load).unwrap();
        let next = |number| {
            requests.next(number);
            requests.path.clone()
        };
        (0..3000).map(next).collect()
    }

    #[test]
    fn placeholders_are_drawn_from_all_and_nowhere_else() {
        assert_eq!(paths("/v1/clients/<client>").len(), 100);
        assert_eq!(paths("/<open|close>"), HashSet::from(["/open".to_owned(), "/close".to_owned()]));
        assert_eq!(paths("/?page=<18..22>"), (18..=22).map(|page| format!("/?page={page}")).collect());
        assert_eq!(paths("/<number>/x").len(), 3000);
    }

    #[test]
    fn requests_are_spread_over_all_accounts() {
        let target = Target::of_accounts("h:1", "a1 ba_one\na2 ba_two\na3 ba_three\n").unwrap();
        assert_eq!(target.ids(ACCOUNT), ["a1", "a2", "a3"]);
        let load = Load::get("/");
        let mut requests = Requests::new(&target, &load).unwrap();
        let mut used = HashSet::new();
        for number in 0..200 {
            let message = String::from_utf8_lossy(requests.next(number)).into_owned();
            used.extend(
                message.lines().find_map(|line| line.strip_prefix("authorization: ")).map(str::to_owned),
            );
        }
        let expected = ["Bearer ba_one", "Bearer ba_two", "Bearer ba_three"];
        assert_eq!(used, HashSet::from(expected.map(str::to_owned)));
        assert!(Target::of_accounts("h:1", "").is_err() && Target::of_accounts("h:1", "ba_one").is_err());
    }

    #[test]
    fn a_deal_is_moved_to_another_phase_each_time() {
        let (target, load) = (target(), Load { body: "<phase>".to_owned(), ..Load::get("/<deal>") });
        let mut requests = Requests::new(&target, &load).unwrap();
        let mut phases = HashMap::new();
        for number in 0..500 {
            let phase = String::from_utf8_lossy(requests.next(number)).lines().last().map(str::to_owned);
            assert_ne!(phases.insert(requests.path.clone(), phase.clone()), Some(phase));
        }
        assert_eq!(phases.len(), DEALS_OF_A_CONNECTION);
    }
}
