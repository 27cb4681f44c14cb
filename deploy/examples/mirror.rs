//! Keeps a copy of an account's records of one service over gRPC, with `FollowLog` of `admin.log.v1.LogService`, as
//! internal teams do it. Records are stored in SQLite as the encoded messages of the contract.
//!
//! Environment: `CREDENTIAL` (from `gateway credential issue`, with the scope `log.internal`), `ACCOUNT` (id or name;
//! default `demo`), `GATEWAY_GRPC` and the address of the service, such as `RELATIONS_GRPC` (host:port). Where the mesh
//! uses TLS: `TLS_CA`, `TLS_CERT` and `TLS_KEY`, PEM files.
//!
//! It can be stopped at any moment and goes on where it was.

use std::env;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use proto::accounts::CreateTokenRequest;
use proto::accounts::token_service_client::TokenServiceClient;
use proto::log::log_service_client::LogServiceClient;
use proto::log::{Change, FollowLogRequest, FollowLogResponse, GetLogHeadRequest};
use rusqlite::{Connection, params};
use tokio::time::{sleep, timeout};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};

/// For connecting, and for the first answer to a call.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than a stream is silent: an empty message comes at least every ten seconds.
const MAX_SILENCE: Duration = Duration::from_secs(30);
/// Between attempts, growing from the first to the second.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(30)];

/// Keeps a copy of an account's records of one service in a SQLite file
#[derive(Parser)]
struct Options {
    /// Made when it is missing
    #[arg(value_name = "COPY.db")]
    copy: PathBuf,
    /// Stop when everything is copied that was there at the start
    #[arg(long)]
    once: bool,
    /// The service; its address is in the variable `RELATIONS_GRPC`, and so on
    #[arg(long, default_value = "relations")]
    service: String,
}

/// Why a stream ended.
enum Fault {
    /// A later attempt can succeed.
    Temporary(String),
    Final(String),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(Fault::Temporary(fault) | Fault::Final(fault)) => {
            eprintln!("mirror: {fault}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<(), Fault> {
    let mut copy = Copy::open(options)?;
    let mut pause = PAUSES[0];
    loop {
        let before = copy.position()?;
        match follow(options, &mut copy).await {
            Err(Fault::Temporary(fault)) => {
                if copy.position()? != before {
                    pause = PAUSES[0];
                }
                println!("{fault}; again in {pause:?}");
                sleep(pause).await;
                pause = PAUSES[1].min(pause * 2);
            }
            ended => return ended,
        }
    }
}

/// Follows the log from the position of the copy. Returns when the copy is complete, if it is made once.
async fn follow(options: &Options, copy: &mut Copy) -> Result<(), Fault> {
    // A token is valid for a minute, and a stream goes on with the one that it began with. So every stream gets its own.
    let token = token().await?;
    let mut log = LogServiceClient::new(connect(&format!("{}_GRPC", options.service.to_uppercase())).await?);
    let head = log.get_log_head(with(&token, GetLogHeadRequest {})?).await?.into_inner();
    let end = head.head.map(|head| head.position).unwrap_or_default();
    if copy.position()? > end {
        // What came after the backup is gone, and nobody says what that was.
        println!("the data of the service is older than this copy: it is emptied and copied anew");
        copy.clear()?;
    }
    let after = copy.position()?;
    if options.once && after >= end {
        return Ok(());
    }
    let request = FollowLogRequest { after, kinds: Vec::new() };
    let mut stream = log.follow_log(with(&token, request)?).await?.into_inner();
    loop {
        let answer = timeout(MAX_SILENCE, stream.message()).await;
        let answer = answer.map_err(|_| Fault::Temporary("the stream is silent".to_owned()))??;
        let answer = answer.ok_or_else(|| Fault::Temporary("the stream has ended".to_owned()))?;
        copy.store(&answer)?;
        if !answer.entries.is_empty() {
            println!("{} changes, up to position {}", answer.entries.len(), answer.position);
        }
        if options.once && answer.position >= end {
            return Ok(());
        }
    }
}

/// The file. SQLite blocks the thread, which has nothing else to do.
struct Copy {
    connection: Connection,
}

impl Copy {
    fn open(options: &Options) -> Result<Self, Fault> {
        let connection = Connection::open(&options.copy)?;
        connection.execute_batch(
            "begin immediate;
             create table if not exists record (kind text, id text, version integer not null, message text not null,
                image blob not null, primary key (kind, id)) without rowid;
             create table if not exists state (position integer not null);
             insert into state select 0 where not exists (select * from state);
             commit;",
        )?;
        Ok(Self { connection })
    }

    fn position(&self) -> Result<i64, Fault> {
        Ok(self.connection.query_row("select position from state", [], |row| row.get(0))?)
    }

    /// Stores records with the position after them in one transaction: whatever ends this program, the two agree.
    fn store(&mut self, answer: &FollowLogResponse) -> Result<(), Fault> {
        let transaction = self.connection.transaction()?;
        for entry in &answer.entries {
            if entry.change() == Change::Deleted {
                let sql = "delete from record where kind = ? and id = ?";
                transaction.prepare_cached(sql)?.execute(params![entry.kind, entry.record_id])?;
            } else {
                let sql = "insert or replace into record (kind, id, version, message, image) values (?, ?, ?, ?, ?)";
                let image = entry.image.as_ref();
                let row = params![entry.kind, entry.record_id, entry.version, entry.message, image];
                transaction.prepare_cached(sql)?.execute(row)?;
            }
        }
        transaction.execute("update state set position = ?", [answer.position])?;
        Ok(transaction.commit()?)
    }

    fn clear(&mut self) -> Result<(), Fault> {
        let sql = "begin immediate; delete from record; update state set position = 0; commit;";
        Ok(self.connection.execute_batch(sql)?)
    }
}

async fn token() -> Result<String, Fault> {
    let credential = variable("CREDENTIAL")?;
    let account = env::var("ACCOUNT").unwrap_or_else(|_| "demo".to_owned());
    let request = CreateTokenRequest { credential, account, ..CreateTokenRequest::default() };
    let mut tokens = TokenServiceClient::new(connect("GATEWAY_GRPC").await?);
    Ok(tokens.create_token(request).await?.into_inner().token)
}

/// A request with the token that says for which account it is made.
fn with<T>(token: &str, message: T) -> Result<Request<T>, Fault> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("x-context-token", token.parse().map_err(fatal)?);
    Ok(request)
}

async fn connect(name: &str) -> Result<Channel, Fault> {
    let address = variable(name)?;
    let Ok(ca) = env::var("TLS_CA") else {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
        return Ok(endpoint.connect_timeout(TIMEOUT).timeout(TIMEOUT).connect().await?);
    };
    let read = |path: String| std::fs::read(path).map_err(fatal);
    let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(ca)?));
    if let (Ok(cert), Ok(key)) = (env::var("TLS_CERT"), env::var("TLS_KEY")) {
        tls = tls.identity(Identity::from_pem(read(cert)?, read(key)?));
    }
    let endpoint = Endpoint::from_shared(format!("https://{address}"))?.tls_config(tls)?;
    Ok(endpoint.connect_timeout(TIMEOUT).timeout(TIMEOUT).connect().await?)
}

fn variable(name: &str) -> Result<String, Fault> {
    env::var(name).map_err(|_| {
        Fault::Final(format!("{name} must be set; the text at the top of mirror.rs says to what"))
    })
}

fn fatal(error: impl fmt::Display) -> Fault {
    Fault::Final(error.to_string())
}

impl From<Status> for Fault {
    fn from(status: Status) -> Self {
        let message = format!("{:?}: {}", status.code(), status.message());
        match status.code() {
            Code::Unauthenticated
            | Code::PermissionDenied
            | Code::InvalidArgument
            | Code::NotFound
            | Code::Unimplemented => Self::Final(message),
            _ => Self::Temporary(message),
        }
    }
}

impl From<tonic::transport::Error> for Fault {
    fn from(error: tonic::transport::Error) -> Self {
        Self::Temporary(error.to_string())
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Final(error.to_string())
    }
}
