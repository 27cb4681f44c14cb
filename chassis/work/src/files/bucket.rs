//! The S3 bucket and the identity that opens it.
//!
//! The first of these that is set is used: an access key (`FILES_S3_KEY_ID`), the role of the pod's service account
//! (`AWS_ROLE_ARN`), the role that an agent on the node provides (`AWS_CONTAINER_CREDENTIALS_FULL_URI`); otherwise the
//! role of the machine. All but the access key give temporary credentials, which are fetched again before they expire.
//! The token files are read each time, because the cluster replaces them.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{Certificate, ClientOptions, ObjectStore, RetryConfig};

use super::settings::{FileSettings, S3Identity};

/// The timeouts of connecting to S3, of one request, and of a request with its retries.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_TIMEOUT: Duration = Duration::from_secs(5);
const RETRIES: usize = 2;

pub(super) fn open(settings: &FileSettings) -> Result<Arc<dyn ObjectStore>, String> {
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&settings.files_s3_bucket)
        .with_region(&settings.files_s3_region)
        .with_retry(retry)
        .with_client_options(client(settings)?);
    if !settings.files_s3_endpoint.is_empty() {
        let plain = settings.files_s3_endpoint.starts_with("http://");
        builder = builder.with_endpoint(&settings.files_s3_endpoint).with_allow_http(plain);
    }
    let store = identified(builder, settings)?.build();
    let store = store.map_err(|error| format!("FILES_S3_BUCKET is not usable: {error}"))?;
    Ok(Arc::new(store))
}

fn client(settings: &FileSettings) -> Result<ClientOptions, String> {
    let client = ClientOptions::new().with_timeout(TIMEOUT).with_connect_timeout(CONNECT_TIMEOUT);
    let Some(file) = &settings.files_s3_ca else { return Ok(client) };
    let unusable = |error: &dyn std::error::Error| {
        format!("FILES_S3_CA ({}) must be a PEM file with certificates: {error}", file.display())
    };
    let pem = std::fs::read(file).map_err(|error| unusable(&error))?;
    let authorities = Certificate::from_pem_bundle(&pem).map_err(|error| unusable(&error))?;
    Ok(authorities.into_iter().fold(client, ClientOptions::with_root_certificate))
}

/// Sets the identity that opens the bucket.
fn identified(builder: AmazonS3Builder, settings: &FileSettings) -> Result<AmazonS3Builder, String> {
    use AmazonS3ConfigKey as Key;
    let S3Identity {
        aws_role_arn: role,
        aws_web_identity_token_file: role_token,
        aws_role_session_name: session,
        aws_endpoint_url_sts: sts,
        aws_container_credentials_full_uri: agent,
        aws_container_authorization_token_file: agent_token,
    } = &settings.files_s3_identity;
    let (id, secret) = (&settings.files_s3_key_id, &settings.files_s3_secret);
    if both_or_none(("FILES_S3_KEY_ID", id), ("FILES_S3_SECRET", secret))? {
        return Ok(builder.with_access_key_id(id).with_secret_access_key(secret));
    }
    if both_or_none(("AWS_ROLE_ARN", role), ("AWS_WEB_IDENTITY_TOKEN_FILE", role_token))? {
        let builder =
            builder.with_config(Key::RoleArn, role).with_config(Key::WebIdentityTokenFile, role_token);
        let builder = builder.with_config(Key::RoleSessionName, session);
        return match sts.as_str() {
            "" => Ok(builder),
            // Without TLS, the token could be read in transit.
            _ if !sts.starts_with("https://") => {
                Err("AWS_ENDPOINT_URL_STS must begin with https://".to_owned())
            }
            _ => Ok(builder.with_config(Key::StsEndpoint, sts)),
        };
    }
    let agent = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", agent);
    let agent_token = ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", agent_token);
    if both_or_none(agent, agent_token)? {
        let builder = builder.with_config(Key::ContainerCredentialsFullUri, agent.1);
        return Ok(builder.with_config(Key::ContainerAuthorizationTokenFile, agent_token.1));
    }
    Ok(builder)
}

/// Whether both settings are set. One without the other is an error and must not select another identity.
fn both_or_none(one: (&str, &String), other: (&str, &String)) -> Result<bool, String> {
    match (one.1.is_empty(), other.1.is_empty()) {
        (true, true) => Ok(false),
        (false, false) => Ok(true),
        _ => Err(format!("{} and {} must be set together", one.0, other.0)),
    }
}
