//! The operator's settings for PDFs.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Clone, Debug)]
#[group(id = "RendererSettings")]
pub(crate) struct Settings {
    /// Folder with fonts for scripts other than Latin, Greek and Cyrillic, which this program has itself. Used before the
    /// fonts of the system (/usr/local/share/fonts, /usr/share/fonts)
    #[arg(long, env = "FONTS_DIR", global = true)]
    pub fonts_dir: Option<PathBuf>,
}
