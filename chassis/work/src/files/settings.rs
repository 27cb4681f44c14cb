//! The settings of files.

use std::path::PathBuf;

use clap::Args;

/// Where files are stored.
#[derive(Args, Clone, Debug)]
pub struct FileSettings {
    /// Folder for files if no bucket is set
    #[arg(long, env = "FILES_DIR", default_value = ".local/files", global = true)]
    pub files_dir: PathBuf,

    /// Maximum size of an uploaded file in bytes; at most 16 MiB
    #[arg(long, env = "FILES_MAX_BYTES", default_value_t = MAX_FILE_BYTES, value_parser = file_size, global = true)]
    pub files_max_bytes: usize,

    /// S3 bucket for files; empty: files are stored in the folder
    #[arg(long, env = "FILES_S3_BUCKET", default_value = "", global = true)]
    pub files_s3_bucket: String,

    /// Address of the S3 service, for example http://localhost:9000; empty: the AWS endpoint of the region
    #[arg(long, env = "FILES_S3_ENDPOINT", default_value = "", global = true)]
    pub files_s3_endpoint: String,

    /// Region of the bucket
    #[arg(long, env = "FILES_S3_REGION", default_value = "eu-west-1", global = true)]
    pub files_s3_region: String,

    /// PEM file with certificate authorities that are trusted for the S3 service and the token service, in addition to
    /// those of the machine
    #[arg(long, env = "FILES_S3_CA", global = true)]
    pub files_s3_ca: Option<PathBuf>,

    /// Id of the access key to the bucket; empty: the identity below, else the role of the machine
    #[arg(long, env = "FILES_S3_KEY_ID", default_value = "", hide_env_values = true, global = true)]
    pub files_s3_key_id: String,

    /// Secret of that access key
    #[arg(long, env = "FILES_S3_SECRET", default_value = "", hide_env_values = true, global = true)]
    pub files_s3_secret: String,

    #[command(flatten)]
    pub files_s3_identity: S3Identity,
}

/// The AWS identity of a pod. AWS defines the names, and the cluster sets the variables: the first two for roles of
/// service accounts, the last two for pod identity.
#[derive(Args, Clone, Debug, Default)]
pub struct S3Identity {
    /// Role that opens the bucket, authenticated by the token below
    #[arg(long, env = "AWS_ROLE_ARN", default_value = "", global = true)]
    pub aws_role_arn: String,

    /// File with the token for that role; read each time
    #[arg(long, env = "AWS_WEB_IDENTITY_TOKEN_FILE", default_value = "", global = true)]
    pub aws_web_identity_token_file: String,

    /// Name of the role's sessions in the logs of AWS
    #[arg(long, env = "AWS_ROLE_SESSION_NAME", default_value = "administration", global = true)]
    pub aws_role_session_name: String,

    /// Address of the token service, with https; empty: the AWS endpoint of the region
    #[arg(long, env = "AWS_ENDPOINT_URL_STS", default_value = "", global = true)]
    pub aws_endpoint_url_sts: String,

    /// Address of the agent that provides credentials
    #[arg(long, env = "AWS_CONTAINER_CREDENTIALS_FULL_URI", default_value = "", global = true)]
    pub aws_container_credentials_full_uri: String,

    /// File with the token that the agent requires; read each time
    #[arg(long, env = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", default_value = "", global = true)]
    pub aws_container_authorization_token_file: String,
}

/// The size limit of the gateway.
const MAX_FILE_BYTES: usize = 16 << 20;

fn file_size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|size| (1..=MAX_FILE_BYTES).contains(size));
    size.ok_or_else(|| format!("must be a number from 1 to {MAX_FILE_BYTES}"))
}
