//! Clients of the API: the one place that sends requests and looks at the status of the answers.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::time::Duration;

use deploy_tools::Result;
use deploy_tools::http::{Connection, Request, Response};
use futures::future::try_join_all;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::requests::{Load, Requests, Target};

/// One connection and what it sends.
#[derive(Debug)]
pub(crate) struct Client<'a> {
    connection: Connection,
    load: &'a Load,
    pub requests: Requests<'a>,
}

impl<'a> Client<'a> {
    pub(crate) async fn open(target: &'a Target, load: &'a Load) -> Result<Self> {
        Ok(Self { connection: connect(target).await?, load, requests: Requests::new(target, load)? })
    }

    /// An answer that is not the load's success is an error that shows it.
    pub(crate) async fn send(&mut self, number: u64) -> Result<Response<'_>> {
        let Load { name, success, .. } = self.load;
        let answer = self.connection.send(self.requests.next(number)).await;
        expect(name, *success, answer)
    }

    pub(crate) async fn send_for_json(&mut self) -> Result<Value> {
        Ok(serde_json::from_slice(self.send(0).await?.body)?)
    }
}

async fn connect(target: &Target) -> Result<Connection> {
    let connection = Connection::open(&target.authority).await;
    Ok(connection.map_err(|fault| format!("cannot reach {}: {fault}", target.authority))?)
}

/// The answer, if it has the status of a success.
fn expect<'a>(name: &str, success: u16, answer: io::Result<Response<'a>>) -> Result<Response<'a>> {
    let answer = answer.map_err(|fault| format!("{name}: {fault}"))?;
    if answer.status == success {
        return Ok(answer);
    }
    Err(format!("{name} was answered with {} in place of {success}: {}", answer.status, answer.text()).into())
}

/// A connection for GETs of which each follows from the answer to the one before.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    connection: Connection,
    target: &'a Target,
    message: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(crate) async fn open(target: &'a Target) -> Result<Self> {
        Ok(Self { connection: connect(target).await?, target, message: Vec::new() })
    }

    /// The body of the answer.
    pub(crate) async fn get(&mut self, path: &str) -> Result<&[u8]> {
        let key = self.target.keys.first().map(String::as_str);
        self.message.clear();
        Request { method: "GET", target: path, key, ..Request::default() }
            .render(&self.target.authority, &mut self.message);
        Ok(expect(path, 200, self.connection.send(&self.message).await)?.body)
    }
}

/// On a connection of its own: the gateway closes one that is silent for as long as filling an account may take.
pub(crate) async fn get(target: &Target, path: &str) -> Result<Value> {
    Client::open(target, &Load::get(path)).await?.send_for_json().await
}

/// Which requests are sent, and when.
#[derive(Clone, Debug)]
pub(crate) enum Schedule {
    /// Each connection sends its next request when the answer to the last one is complete, until this moment.
    Until(Instant),
    /// One request for each number, as fast as possible or so many a second.
    Each { numbers: Range<u64>, rate: Option<u32> },
}

impl Schedule {
    /// Waits until the request with this number is to be sent; `false` when there is none.
    async fn wait_for(&self, number: u64, begin: Instant) -> bool {
        match self {
            Self::Until(end) => Instant::now() < *end,
            Self::Each { numbers, rate } => {
                let before = u32::try_from(number - numbers.start).unwrap_or(u32::MAX);
                let is_left = number < numbers.end;
                if let Some(rate) = rate.filter(|_| is_left) {
                    sleep_until(begin + Duration::from_secs(1) * before / rate).await;
                }
                is_left
            }
        }
    }
}

/// A request that was answered as it should be.
#[derive(Debug)]
pub(crate) struct Answered {
    pub number: u64,
    pub sent: Instant,
    pub at: Instant,
}

/// Sends requests over several connections, which take the next number in turn.
pub(crate) async fn run(
    target: &Target,
    load: &Load,
    connections: u32,
    schedule: &Schedule,
    answered: impl Fn(Answered),
) -> Result<()> {
    let clients = try_join_all((0..connections).map(|_| Client::open(target, load))).await?;
    let begin = Instant::now();
    let next = Cell::new(match schedule {
        Schedule::Until(_) => 0,
        Schedule::Each { numbers, .. } => numbers.start,
    });
    let work = async |mut client: Client<'_>| {
        loop {
            let number = next.replace(next.get() + 1);
            if !schedule.wait_for(number, begin).await {
                return Ok(());
            }
            let sent = Instant::now();
            client.send(number).await?;
            answered(Answered { number, sent, at: Instant::now() });
        }
    };
    try_join_all(clients.into_iter().map(work)).await.map(drop)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use deploy_tools::http::authority;
    use deploy_tools::receiver::Receiver;
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn each_number_is_sent_once() {
        let receiver = Receiver::start(mpsc::unbounded_channel().0).await.unwrap();
        let target = Target::new(authority(&receiver.url()).unwrap(), "ba_x");
        for rate in [None, Some(1_000)] {
            let numbers = RefCell::new(Vec::new());
            let schedule = Schedule::Each { numbers: 5..42, rate };
            let record = |answered: Answered| numbers.borrow_mut().push(answered.number);
            run(&target, &Load::get("/"), 4, &schedule, record).await.unwrap();
            numbers.borrow_mut().sort_unstable();
            assert_eq!(numbers.take(), (5..42).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn a_success_of_another_kind_is_an_error() {
        let receiver = Receiver::start(mpsc::unbounded_channel().0).await.unwrap();
        let target = Target::new(authority(&receiver.url()).unwrap(), "ba_x");
        let load = Load { success: 201, ..Load::get("/") };
        let fault = Client::open(&target, &load).await.unwrap().send(1).await.unwrap_err().to_string();
        assert!(fault.starts_with("/ was answered with 200 in place of 201"), "{fault}");
    }
}
