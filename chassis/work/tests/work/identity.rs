//! Files in a bucket that is opened with the role of a cloud pod, whose credentials are requested, expire soon and are
//! requested again. A fake cloud serves over HTTP: it accepts one token at a time, and its bucket accepts only the last
//! credentials that it issued.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use chassis_base::{Clock, Error};
use chassis_testing::service_settings;
use chassis_work::files::{Files, Key};
use chrono::TimeDelta;
use proto::api::Problem;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use uuid::Uuid;

const ROLE: &str = "arn:aws:iam::123456789012:role/files";

/// The state of the fake cloud.
struct Cloud {
    /// The accepted token.
    token: &'static str,
    lifetime: TimeDelta,
    /// How many credentials the token service and the agent have issued.
    by_role: u32,
    by_agent: u32,
    /// The credentials that the bucket accepts: access key id and session token.
    taken: (String, String),
    files: HashMap<String, Bytes>,
}

impl Cloud {
    /// Issues new credentials and invalidates the previous ones.
    fn hand_out(&mut self) -> (String, String, String) {
        let number = self.by_role + self.by_agent;
        self.taken = (format!("ASIA{number}"), format!("session-{number}"));
        let end = (Clock::system().now() + self.lifetime).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        (self.taken.0.clone(), self.taken.1.clone(), end)
    }
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Cloud>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Cloud> {
        self.0.lock().unwrap()
    }
}

fn refusal(code: &str) -> Response {
    (StatusCode::FORBIDDEN, format!("<ErrorResponse><Error><Code>{code}</Code></Error></ErrorResponse>"))
        .into_response()
}

/// `AssumeRoleWithWebIdentity` of the token service.
async fn assume_role(State(cloud): State<Shared>, Query(asked): Query<HashMap<String, String>>) -> Response {
    let mut cloud = cloud.lock();
    let said = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
    assert_eq!((said("Action"), said("RoleArn")), ("AssumeRoleWithWebIdentity", ROLE));
    assert_eq!(said("RoleSessionName"), "administration");
    if said("WebIdentityToken") != cloud.token {
        return refusal("InvalidIdentityToken");
    }
    cloud.by_role += 1;
    let (id, token, end) = cloud.hand_out();
    format!(
        "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
         <AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{id}</AccessKeyId>\
         <SecretAccessKey>secret</SecretAccessKey><SessionToken>{token}</SessionToken>\
         <Expiration>{end}</Expiration></Credentials></AssumeRoleWithWebIdentityResult>\
         </AssumeRoleWithWebIdentityResponse>"
    )
    .into_response()
}

/// The agent on the node.
async fn credentials(State(cloud): State<Shared>, headers: HeaderMap) -> Response {
    let mut cloud = cloud.lock();
    if headers.get(header::AUTHORIZATION).is_none_or(|token| token != cloud.token) {
        return refusal("AccessDenied");
    }
    cloud.by_agent += 1;
    let (id, token, end) = cloud.hand_out();
    let said = serde_json::json!({"AccessKeyId": id, "SecretAccessKey": "secret", "Token": token, "Expiration": end});
    said.to_string().into_response()
}

async fn bucket(
    State(cloud): State<Shared>,
    method: Method,
    Path(path): Path<String>,
    headers: HeaderMap,
    content: Bytes,
) -> Response {
    let mut cloud = cloud.lock();
    let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (id, token) = &cloud.taken;
    if !said("authorization").contains(&format!("Credential={id}/")) || said("x-amz-security-token") != token
    {
        return refusal("ExpiredToken");
    }
    let tags = [(header::ETAG, "\"x\""), (header::LAST_MODIFIED, "Sun, 15 Nov 2026 10:00:00 GMT")];
    match method {
        Method::PUT => {
            cloud.files.insert(path, content);
            tags.into_response()
        }
        _ => match cloud.files.get(&path) {
            Some(found) => (tags, found.clone()).into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
    }
}

/// The identity that opens the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Role,
    Agent,
}

struct World {
    cloud: Shared,
    folder: TempDir,
    plain: SocketAddr,
    encrypted: SocketAddr,
}

impl World {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cloud = Cloud {
            token: "first",
            lifetime: TimeDelta::hours(1),
            by_role: 0,
            by_agent: 0,
            taken: ("none".to_owned(), "none".to_owned()),
            files: HashMap::new(),
        };
        let cloud = Shared(Arc::new(Mutex::new(cloud)));
        let router = Router::new()
            .route("/", post(assume_role))
            .route("/credentials", get(credentials))
            .route("/files/{*path}", any(bucket))
            .with_state(cloud.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let plain = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let encrypted = encrypt(plain, folder.path()).await;
        let world = Self { cloud, folder, plain, encrypted };
        world.write_token("first");
        world
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn write_token(&self, token: &str) {
        std::fs::write(self.path("token"), token).unwrap();
    }

    /// The flags that the cluster sets as variables.
    fn identity(&self, by: By) -> Vec<String> {
        let (token, sts) = (self.path("token"), format!("https://localhost:{}", self.encrypted.port()));
        let agent = format!("http://{}/credentials", self.plain);
        let flags = match by {
            By::Role => vec![
                ("--aws-role-arn", ROLE),
                ("--aws-web-identity-token-file", &token),
                ("--aws-endpoint-url-sts", &sts),
            ],
            By::Agent => vec![
                ("--aws-container-credentials-full-uri", &*agent),
                ("--aws-container-authorization-token-file", &token),
            ],
        };
        flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value.to_owned()]).collect()
    }

    fn files(&self, identity: &[String]) -> Files {
        let (endpoint, authority) = (format!("http://{}", self.plain), self.path("ca.pem"));
        let place =
            ["--files-s3-bucket", "files", "--files-s3-endpoint", &endpoint, "--files-s3-ca", &authority];
        let flags = place.iter().map(|flag| (*flag).to_owned()).chain(identity.iter().cloned());
        Files::new("bare", &service_settings(&flags.collect::<Vec<_>>()).files).unwrap()
    }

    /// How many credentials were issued.
    fn handed_out(&self) -> (u32, u32) {
        let cloud = self.cloud.lock();
        (cloud.by_role, cloud.by_agent)
    }
}

/// The same with TLS, with a certificate of an authority that exists only in the folder.
async fn encrypt(plain: SocketAddr, folder: &std::path::Path) -> SocketAddr {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(folder.join("ca.pem"), issuer.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let chain = vec![params.signed_by(&key, &issuer).unwrap().der().clone()];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut outside = acceptor.accept(stream).await.unwrap();
                let mut inside = TcpStream::connect(plain).await.unwrap();
                // Ends when either side closes the connection.
                let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
            });
        }
    });
    address
}

fn key() -> Key {
    Key::new(chassis_testing::account().id, "things", Uuid::new_v4())
}

fn is_unavailable<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Problem { problem: Problem::Unavailable, .. }))
}

#[tokio::test]
async fn credentials_are_asked_for_once_while_they_last() {
    for (by, expected) in [(By::Role, (1, 0)), (By::Agent, (0, 1))] {
        let world = World::start().await;
        let files = world.files(&world.identity(by));
        let key = key();
        for _ in 0..3 {
            files.put(&key, "x").await.unwrap();
            assert_eq!(files.get(&key).await.unwrap().unwrap(), "x");
        }
        assert_eq!(world.handed_out(), expected, "{by:?}");
    }
}

#[tokio::test]
async fn credentials_that_have_ended_are_asked_for_again_with_the_token_that_is_there_then() {
    for by in [By::Role, By::Agent] {
        let world = World::start().await;
        world.cloud.lock().lifetime = TimeDelta::zero();
        let (files, key) = (world.files(&world.identity(by)), key());
        files.put(&key, "x").await.unwrap();
        assert!(files.get(&key).await.unwrap().is_some());
        let (role, agent) = world.handed_out();
        assert_eq!(role + agent, 2, "{by:?}");

        world.cloud.lock().token = "second";
        assert!(is_unavailable(&files.get(&key).await), "{by:?}: the token in the file is no longer taken");
        world.write_token("second");
        assert!(files.get(&key).await.unwrap().is_some(), "{by:?}");
    }
}

#[tokio::test]
async fn without_a_token_that_is_taken_there_are_no_files() {
    for by in [By::Role, By::Agent] {
        let world = World::start().await;
        let files = world.files(&world.identity(by));
        world.write_token("wrong");
        assert!(is_unavailable(&files.put(&key(), "x").await), "{by:?}");
        std::fs::remove_file(world.path("token")).unwrap();
        assert!(is_unavailable(&files.get(&key()).await), "{by:?}");
        assert_eq!(world.handed_out(), (0, 0));
        assert!(world.cloud.lock().files.is_empty());
    }
}

#[tokio::test]
async fn an_access_key_goes_before_a_role_and_a_role_before_the_agent() {
    let world = World::start().await;
    let both = [world.identity(By::Role), world.identity(By::Agent)].concat();
    world.files(&both).put(&key(), "x").await.unwrap();
    assert_eq!(world.handed_out(), (1, 0));

    world.cloud.lock().taken = ("own".to_owned(), String::new());
    let own = ["--files-s3-key-id", "own", "--files-s3-secret", "own"].map(str::to_owned);
    world.files(&[both, own.to_vec()].concat()).put(&key(), "x").await.unwrap();
    assert_eq!(world.handed_out(), (1, 0), "nobody was asked");
}

#[test]
fn half_of_an_identity_is_refused_at_the_start() {
    for (half, missing) in [
        (["--files-s3-key-id", "x"], "FILES_S3_SECRET"),
        (["--aws-role-arn", ROLE], "AWS_WEB_IDENTITY_TOKEN_FILE"),
        (["--aws-web-identity-token-file", "x"], "AWS_ROLE_ARN"),
        (["--aws-container-credentials-full-uri", "http://x"], "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
        (["--files-s3-ca", "/nowhere"], "FILES_S3_CA"),
    ] {
        let flags = [&["--files-s3-bucket", "files"][..], &half].concat();
        let refused = Files::new("bare", &service_settings(&flags).files).err().unwrap();
        assert!(refused.contains(missing), "{half:?}: {refused}");
    }
    let plain = ["--files-s3-bucket", "files", "--aws-role-arn", ROLE, "--aws-web-identity-token-file", "x"];
    let flags = [&plain[..], &["--aws-endpoint-url-sts", "http://x"]].concat();
    let refused = Files::new("bare", &service_settings(&flags).files).err().unwrap();
    assert!(refused.contains("https://"), "{refused}");
}
