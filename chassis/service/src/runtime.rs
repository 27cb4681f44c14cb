//! The shared resources of a running service.

use std::sync::Arc;

use chassis_base::{Clock, Environment};
use chassis_data::Db;
use chassis_rpc::outgoing::Outgoing;
use chassis_rpc::peer::{PeerAddress, Peers};
use chassis_rpc::references::References;
use chassis_rpc::tls::Tls;
use chassis_rpc::token::Tokens;
use chassis_work::Files;
use chassis_work::mail::Mailer;
use clap::ArgMatches;

use crate::config::{ServiceSettings, Settings};

/// The shared resources of a running service. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    /// The name of the service.
    pub name: &'static str,
    pub db: Db,
    pub clock: Clock,
    pub tokens: Tokens,
    pub tls: Tls,
    pub peers: Peers,
    /// The services that receive this service's events.
    pub listeners: Peers,
    pub mailer: Mailer,
    /// The public address of the gateway.
    pub public_url: String,
    /// `None` for a service that keeps no files.
    pub files: Option<Files>,
    pub environment: Environment,
    /// The command line as a whole, for the settings of [`Service::options`](crate::Service::options).
    pub options: Arc<ArgMatches>,
}

impl Runtime {
    /// Must be called inside the async runtime.
    pub fn new(
        name: &'static str,
        settings: &Settings,
        own: &ServiceSettings,
        options: ArgMatches,
        clock: Clock,
        files: Option<Files>,
    ) -> Result<Self, String> {
        let db = Db::open(
            settings.database.address(),
            name,
            settings.database.pool,
            clock.clone(),
            own.listeners.clone(),
        )?;
        let tls = Tls::open(&settings.tls)?;
        let peers = Peers::new(&own.peers, &tls)?;
        let listeners = own.listeners.iter();
        let listeners =
            listeners.map(|listener| PeerAddress { name: listener.name.clone(), url: listener.url.clone() });
        let listeners = Peers::new(&listeners.collect::<Vec<_>>(), &tls)?;
        let (tokens, mailer) =
            (Tokens::new(&settings.context_secret).of(name), Mailer::new(&own.mail, settings.environment)?);
        let public_url = own.public_url.clone();
        let options = Arc::new(options);
        Ok(Self {
            name,
            db,
            clock,
            tokens,
            tls,
            peers,
            listeners,
            mailer,
            public_url,
            files,
            environment: settings.environment,
            options,
        })
    }

    /// The files of a service with [`Service::KEEPS_FILES`](crate::Service::KEEPS_FILES).
    pub fn files(&self) -> Result<Files, String> {
        self.files
            .clone()
            .ok_or_else(|| format!("{} does not say that it keeps files (KEEPS_FILES)", self.name))
    }

    /// Builds calls to other services.
    pub fn outgoing(&self) -> Outgoing {
        Outgoing::new(self.name, self.peers.clone(), self.tokens.clone(), self.clock.clone())
    }

    /// Looks up references to records of other services.
    pub fn references(&self) -> References {
        References::new(self.outgoing())
    }
}
