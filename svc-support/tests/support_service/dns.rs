//! A DNS server for tests: real DNS over UDP, with the records that a test gives it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::rdata::{MX, TXT};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use tokio::net::UdpSocket;

type Records = Arc<Mutex<HashMap<(String, RecordType), Vec<RData>>>>;

pub(crate) struct Dns {
    pub address: SocketAddr,
    records: Records,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Dns {
    pub(crate) async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let records = Records::default();
        let shared = Arc::clone(&records);
        let serving = tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let answer = answer(&buffer[..length], &shared);
                socket.send_to(&answer, from).await.unwrap();
            }
        });
        Self { address, records, serving }
    }

    /// A text, in pieces as long as one may be.
    pub(crate) fn txt(&self, name: &str, value: &str) {
        let pieces = value.as_bytes().chunks(200).map(|piece| String::from_utf8(piece.to_vec()).unwrap());
        self.put(name, RecordType::TXT, RData::TXT(TXT::new(pieces.collect())));
    }

    pub(crate) fn mx(&self, name: &str, host: &str) {
        self.put(name, RecordType::MX, RData::MX(MX::new(10, Name::from_str(&format!("{host}.")).unwrap())));
    }

    pub(crate) fn forget(&self, name: &str) {
        self.records.lock().unwrap().retain(|(known, _), _| known != name);
    }

    fn put(&self, name: &str, kind: RecordType, data: RData) {
        self.records.lock().unwrap().entry((name.to_owned(), kind)).or_default().push(data);
    }
}

fn answer(question: &[u8], records: &Records) -> Vec<u8> {
    let question = Message::from_vec(question).unwrap();
    let mut answer = question.clone();
    answer.metadata.message_type = MessageType::Response;
    answer.metadata.recursion_available = true;
    let query = question.queries.first().unwrap();
    let name = query.name().to_string().trim_end_matches('.').to_lowercase();
    let found = records.lock().unwrap().get(&(name, query.query_type())).cloned().unwrap_or_default();
    if found.is_empty() {
        answer.metadata.response_code = ResponseCode::NXDomain;
    }
    for data in found {
        answer.answers.push(Record::from_rdata(query.name().clone(), 60, data));
    }
    answer.to_vec().unwrap()
}
