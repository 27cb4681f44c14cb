//! The first gRPC calls of an internal team, with the types that are generated from the contract: trade the credential for
//! a token, list clients, create one, and repeat that without a second effect.
//!
//! Environment: `CREDENTIAL` (from `gateway credential issue`), `ACCOUNT` (id or name; default `demo`), `GATEWAY_GRPC` and
//! `RELATIONS_GRPC` (host:port). Where the mesh uses TLS: `TLS_CA`, `TLS_CERT` and `TLS_KEY`, PEM files.

use std::env;
use std::error::Error;

use proto::accounts::CreateTokenRequest;
use proto::accounts::token_service_client::TokenServiceClient;
use proto::relations::client_service_client::ClientServiceClient;
use proto::relations::{ClientInput, CreateClientRequest, ListClientsRequest};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Lives for a minute: a program that runs longer asks for the next one in time.
    let token = token().await?;
    let mut clients = ClientServiceClient::new(connect("RELATIONS_GRPC").await?);

    let page = ListClientsRequest { per_page: Some(3), ..ListClientsRequest::default() };
    let page =
        clients.list_clients(with(&token, page)?).await.map_err(|status| message_of(&status))?.into_inner();
    println!("{} clients, among them:", page.meta.map(|meta| meta.total).unwrap_or_default());
    for client in page.data {
        println!("  {} {}", client.id, client.company_name);
    }

    let key = uuid::Uuid::new_v4().to_string();
    let created = create(&mut clients, &token, &key).await?;
    let repeated = create(&mut clients, &token, &key).await?;
    println!("created {created}");
    println!("the same key again: {repeated}, nothing new");
    Ok(())
}

async fn token() -> Result<String, Box<dyn Error>> {
    let credential =
        env::var("CREDENTIAL").map_err(|_| "CREDENTIAL must be set: gateway credential issue")?;
    let account = env::var("ACCOUNT").unwrap_or_else(|_| "demo".to_owned());
    let request = CreateTokenRequest { credential, account, ..CreateTokenRequest::default() };
    let mut tokens = TokenServiceClient::new(connect("GATEWAY_GRPC").await?);
    Ok(tokens.create_token(request).await.map_err(|status| message_of(&status))?.into_inner().token)
}

async fn create(
    clients: &mut ClientServiceClient<Channel>,
    token: &str,
    key: &str,
) -> Result<String, Box<dyn Error>> {
    let client = ClientInput { company_name: "First call in Rust".to_owned(), ..ClientInput::default() };
    let mut request = with(token, CreateClientRequest { client: Some(client) })?;
    request.metadata_mut().insert("idempotency-key", key.parse()?);
    let answer = clients.create_client(request).await.map_err(|status| message_of(&status))?.into_inner();
    Ok(answer.data.unwrap_or_default().id)
}

/// A request with the token that says for which account it is made.
fn with<T>(token: &str, message: T) -> Result<Request<T>, Box<dyn Error>> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("x-context-token", token.parse()?);
    Ok(request)
}

async fn connect(variable: &str) -> Result<Channel, Box<dyn Error>> {
    let address = env::var(variable).map_err(|_| format!("{variable} must be set, as host:port"))?;
    let Ok(ca) = env::var("TLS_CA") else {
        return Ok(Endpoint::from_shared(format!("http://{address}"))?.connect().await?);
    };
    let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(std::fs::read(ca)?));
    if let (Ok(cert), Ok(key)) = (env::var("TLS_CERT"), env::var("TLS_KEY")) {
        tls = tls.identity(Identity::from_pem(std::fs::read(cert)?, std::fs::read(key)?));
    }
    Ok(Endpoint::from_shared(format!("https://{address}"))?.tls_config(tls)?.connect().await?)
}

fn message_of(status: &Status) -> String {
    format!("{:?}: {}", status.code(), status.message())
}
