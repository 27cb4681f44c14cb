//! What a process is told of files.

use std::path::PathBuf;

use clap::Args;

/// Where files are kept.
#[derive(Args, Clone, Debug)]
pub struct FileSettings {
    /// Folder for files while there is no bucket
    #[arg(long, env = "FILES_DIR", default_value = ".local/files", global = true)]
    pub files_dir: PathBuf,

    /// Largest file that is taken in, in bytes; at most 16 MiB
    #[arg(long, env = "FILES_MAX_BYTES", default_value_t = MAX_FILE_BYTES, value_parser = file_size, global = true)]
    pub files_max_bytes: usize,

    /// S3 bucket for files; empty: they go to the folder
    #[arg(long, env = "FILES_S3_BUCKET", default_value = "", global = true)]
    pub files_s3_bucket: String,

    /// Address of the S3 service, for example http://localhost:9000; empty: the one of AWS in the region
    #[arg(long, env = "FILES_S3_ENDPOINT", default_value = "", global = true)]
    pub files_s3_endpoint: String,

    /// Region of the bucket
    #[arg(long, env = "FILES_S3_REGION", default_value = "eu-west-1", global = true)]
    pub files_s3_region: String,

    /// PEM file with authorities that the certificate of the S3 service, or of the token service, may come from besides
    /// those that the machine knows
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

/// Who a pod is to AWS. The names are AWS' own: the cluster sets these variables by itself, for the roles of service
/// accounts the first two, for pod identity the last two.
#[derive(Args, Clone, Debug, Default)]
pub struct S3Identity {
    /// Role that the bucket is opened with, proven by the token below
    #[arg(long, env = "AWS_ROLE_ARN", default_value = "", global = true)]
    pub aws_role_arn: String,

    /// File with the token that proves it; read anew each time
    #[arg(long, env = "AWS_WEB_IDENTITY_TOKEN_FILE", default_value = "", global = true)]
    pub aws_web_identity_token_file: String,

    /// What the role's sessions are called in the logs of AWS
    #[arg(long, env = "AWS_ROLE_SESSION_NAME", default_value = "administration", global = true)]
    pub aws_role_session_name: String,

    /// Address of the token service, with https; empty: the one of AWS in the region
    #[arg(long, env = "AWS_ENDPOINT_URL_STS", default_value = "", global = true)]
    pub aws_endpoint_url_sts: String,

    /// Address of the agent that hands out credentials
    #[arg(long, env = "AWS_CONTAINER_CREDENTIALS_FULL_URI", default_value = "", global = true)]
    pub aws_container_credentials_full_uri: String,

    /// File with the token that the agent asks for; read anew each time
    #[arg(long, env = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", default_value = "", global = true)]
    pub aws_container_authorization_token_file: String,
}

/// What the gateway can pass on.
const MAX_FILE_BYTES: usize = 16 << 20;

fn file_size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|size| (1..=MAX_FILE_BYTES).contains(size));
    size.ok_or_else(|| format!("must be a number from 1 to {MAX_FILE_BYTES}"))
}
